"""Kinds of damage: of the bytes of any file, and of the place of an expected file."""

from __future__ import annotations

import functools
import gzip
import os
import random
import re
import socket
import zlib
from collections.abc import Callable
from pathlib import Path

MEGABYTE = 1_000_000
"""Size of a large file."""

Bytes = Callable[[bytes], bytes]
Place = Callable[[Path, bytes], object]


def _fill(piece: bytes) -> Bytes:
    return lambda content: (piece * (MEGABYTE // len(piece) + 1))[:MEGABYTE]


def _numbers(replacement: bytes) -> Bytes:
    """Replace each number of the text."""
    return lambda content: re.sub(rb"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", lambda _: replacement, content)[:MEGABYTE]


def _words(replacement: bytes) -> Bytes:
    """Replace each third word in quotation marks."""

    def damaged(content: bytes) -> bytes:
        count = iter(range(1 << 30))
        return re.sub(
            rb'"[^"\n]{1,60}"', lambda found: found[0] if next(count) % 3 else b'"' + replacement + b'"', content
        )[:MEGABYTE]

    return damaged


def _noise(content: bytes) -> bytes:
    return random.Random(1).randbytes(65_536)


def _flip_bytes(every: int) -> Bytes:
    """Return a function that changes one byte in every `every` bytes."""

    def damaged(content: bytes) -> bytes:
        draw, changed = random.Random(every), bytearray(content)
        for place in range(every // 2, len(changed), every):
            changed[place] ^= draw.randrange(1, 256)
        return bytes(changed)

    return damaged


@functools.cache
def _zeros() -> bytes:
    """Return 600 MB in less than 1 MB."""
    packing, piece = zlib.compressobj(9, wbits=31), bytes(MEGABYTE)
    return b"".join([*(packing.compress(piece) for _ in range(600)), packing.flush()])


def _repeat_content(content: bytes) -> bytes:
    return (content * (MEGABYTE // max(1, len(content)) + 1))[:MEGABYTE]


BYTES: dict[str, Bytes] = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "a line end": lambda content: b"\n",
    "first third": lambda content: content[: len(content) // 3],
    "last bytes missing": lambda content: content[:-7],
    "first bytes missing": lambda content: content[3:],
    "twice": lambda content: content * 2,
    "repeated to 1 MB": _repeat_content,
    "NUL": lambda content: bytes(65_536),
    "NUL in between": lambda content: content.replace(b"e", b"\0"),
    "NUL appended": lambda content: content + b"\0",
    "noise": _noise,
    "some bytes changed": _flip_bytes(997),
    "many bytes changed": _flip_bytes(61),
    "not UTF-8": lambda content: content.replace(b"t", b"\xff"),
    "UTF-16": lambda content: content.decode("latin-1").encode("utf-16"),
    "UTF-8 with byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "old Mac line ends": lambda content: content.replace(b"\n", b"\r"),
    "no line ends": lambda content: content.replace(b"\n", b" "),
    "lists in lists": _fill(b"["),
    "objects in objects": _fill(b'{"a":'),
    "commas": lambda content: b"[" + b"1," * (MEGABYTE // 2) + b"1]",
    "keys": lambda content: b"{" + b",".join(b'"%d":1' % number for number in range(90_000)) + b"}",
    "columns": lambda content: b",".join(b"c%d_kbps" % number for number in range(80_000)) + b"\n",
    "a long line": _fill(b"x"),
    "blanks": _fill(b" "),
    "quotation marks": _fill(b'"'),
    "digits": _fill(b"9"),
    "numbers of 400 digits": _numbers(b"9" * 400),
    "numbers beyond floats": _numbers(b"1e999"),
    "numbers below zero": _numbers(b"-7"),
    "all numbers zero": _numbers(b"0"),
    "NaN": _numbers(b"NaN"),
    "64-bit numbers": _numbers(b"18446744073709551615"),
    "escape sequences": _words(rb"\u001b[2J\u001b]0;x\u0007\u202e"),
    "line ends in texts": _words(rb"a\n::error::FORGED\nFORGED"),
    "lone surrogates": _words(rb"\ud800"),
    "NUL in texts": _words(rb"a\u0000b"),
    "long texts": _words(b"x" * 9000),
    "markup": _words(b"<script>alert(0)</script>"),
    "compressed": lambda content: gzip.compress(content, mtime=0),
    "compressed and truncated": lambda content: gzip.compress(content, mtime=0)[:-9],
    "compressed zeros": lambda content: _zeros(),
    "compressed twice": lambda content: gzip.compress(gzip.compress(content, mtime=0), mtime=0),
}
"""Changes of the bytes of a file, by name."""


def _link(target: str) -> Place:
    return lambda path, content: path.symlink_to(target)


def _directory(path: Path, content: bytes) -> None:
    path.mkdir()


def _unreadable(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0)


def _socket(path: Path, content: bytes) -> None:
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(before)


def _sparse(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.truncate(path, 10 * 2**30)


def _link_to_itself(path: Path, content: bytes) -> None:
    path.symlink_to(path.name)


PLACES: dict[str, Place] = {
    "missing": lambda path, content: None,
    "a folder": _directory,
    "a FIFO": lambda path, content: os.mkfifo(path),
    "a socket": _socket,
    "unreadable": _unreadable,
    "a link to nothing": _link("nowhere"),
    "a link to itself": _link_to_itself,
    "a link to /dev/zero": _link("/dev/zero"),
    "a link to /dev/full": _link("/dev/full"),
    "a link to the folder": _link("."),
    "a link to /proc/self/mem": _link("/proc/self/mem"),
    "10 GiB": _sparse,
}
"""Replacements for a file, by name."""

NAMES: dict[str, bytes] = {
    "not UTF-8": b"a\xff",
    "a line end": b"a\n::error::FORGED\nFORGED",
    "a carriage return": b"a\rFORGED",
    "escape sequences": b"a\x1b[2J\x1b]0;x\x07",
    "order of writing": "a\u202egnp".encode(),
    "a line separator": "a\u2028FORGED".encode(),
    "markup": b"<script>alert(0)<",
    "an option": b"--to",
    "a quotation mark": b"a\"b'c`id`$(id)",
    "255 bytes": b"x" * 240,
    "blanks": b"  a  ",
    "a percent sign": b"a%s%n{0}{{x}}",
    "a comma": b"=1+1,a;b\tc",
}
"""Names of files, without their extensions."""
UNPRINTABLE = {
    *("not UTF-8", "a line end", "a carriage return", "escape sequences", "order of writing", "a line separator"),
}
"""Names that no output shows unchanged."""
