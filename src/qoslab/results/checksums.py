"""Seals: what was written, so that a reader can detect changes.

`cell.json` names every file of its cell with size, lines and SHA-256, and `manifest.json` every `cell.json`. Both begin
with a line of their own, the SHA-256 of the rest of the file. A seal shows damage (a copy that stopped, a disk that was
full, a loss of power, an edit by hand). Anybody with write access to a run folder can reseal it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

CELL_RECORD = "cell.json"
CRATE = "ro-crate-metadata.json"
"""Metadata file of an RO-Crate in a run's folder; it lists every file with its SHA-256."""
MOST_BYTES = 4 * 2**30
"""Greatest size of a file that is read for a comparison: no file of a cell is larger."""
_TEXT = frozenset({".json", ".jsonl", ".txt", ".ios", ".tc", ".err", ".yml", ".csv"})
"""Endings of files that have lines."""
_SEAL = re.compile(rb'\A\{\n  "seal": "([0-9a-f]{64})",\n')
_BLOCK = 2**20


class FileSeal(BaseModel):
    """Checksum and size of a written file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int = Field(ge=0)
    lines: int | None = None
    """Number of lines of a text."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @property
    def size(self) -> str:
        """Size in words."""
        words = f"{self.bytes} byte" + ("" if self.bytes == 1 else "s")
        return words if self.lines is None else f"{self.lines} line" + ("" if self.lines == 1 else "s") + f" ({words})"


def seal_of(path: Path) -> FileSeal:
    """The seal of a file as it is now; `OSError` if it cannot be read."""
    digest = hashlib.sha256()
    size = lines = 0
    with path.open("rb") as handle:
        while block := handle.read(_BLOCK):
            digest.update(block)
            size += len(block)
            lines += block.count(b"\n")
    return FileSeal(bytes=size, lines=lines if path.suffix in _TEXT else None, sha256=digest.hexdigest())


def seal_of_content(content: bytes, *, text: bool = False) -> FileSeal:
    """The seal of a file with this content."""
    lines = content.count(b"\n") if text else None
    return FileSeal(bytes=len(content), lines=lines, sha256=hashlib.sha256(content).hexdigest())


def files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file in a cell's folder but its record: its name within the folder, with `/`, and its path."""
    top = len(str(folder)) + 1
    for around, _, names in os.walk(str(folder)):
        for name in names:
            inner = f"{around}/{name}"[top:]
            if inner != CELL_RECORD:
                yield inner, folder / inner


def state_of(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Return the state of a folder's files that changes on a modification: names, sizes, times, inodes."""
    paths = [f"{around}/{name}" for around, _, names in os.walk(str(folder)) for name in names]
    stats = [(path, os.lstat(path)) for path in sorted(paths)]
    return tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats)


def seals(folder: Path) -> dict[str, FileSeal]:
    """The seals of a cell's files, by name within its folder, sorted."""
    return {name: seal_of(path) for name, path in sorted(files_below(folder))}


def sealed(text: bytes) -> bytes:
    """A JSON object (as pydantic lays it out) with its own SHA-256 as its first line."""
    assert text.startswith(b"{\n  ")
    return b'{\n  "seal": "' + hashlib.sha256(text).hexdigest().encode() + b'",\n' + text[2:]


def unsealed(content: bytes) -> tuple[bytes, bool]:
    """Return the argument of `sealed`, and whether it matches its seal. Without a seal: as it is, which nothing speaks
    for.
    """
    found = _SEAL.match(content)
    if found is None:
        return content, False
    text = b"{\n" + content[found.end() :]
    return text, hashlib.sha256(text).hexdigest().encode() == found[1]


def content_difference(name: str, content: bytes, written: FileSeal) -> str:
    """Return how the content of a file differs from what was written, as `difference`."""
    found = seal_of_content(content, text=written.lines is not None)
    return _difference(name, found, written)


def difference(path: Path, name: str, written: FileSeal) -> str:
    """Return how a file differs from what was written, in words for people; empty if it does not."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            return f"{name}: {written.size} were written, {size} bytes are there"
        found = seal_of(path)
    except FileNotFoundError:
        return f"{name} is missing, {written.size} were written"
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"
    return _difference(name, found, written)


def _difference(name: str, found: FileSeal, written: FileSeal) -> str:
    if found.sha256 == written.sha256:
        return ""
    if found.bytes == written.bytes:
        return (
            f"{name}: found content that was changed after the run, in {found.size} "
            f"(SHA-256 {found.sha256[:12]}…, expected {written.sha256[:12]}…)"
        )
    return f"{name}: {written.size} were written, {found.size} are there"


def differences(folder: Path, written: Mapping[str, FileSeal]) -> Iterator[str]:
    """Yield how a cell's files differ from what was written: cut, changed, missing, added."""
    there = dict(files_below(folder))
    for name, seal in written.items():
        # A name that leads elsewhere is no file of the cell.
        if name in there:
            if damage := difference(there[name], name, seal):
                yield damage
        else:
            yield f"{name} is missing, {seal.size} were written"
    for name in sorted(there.keys() - written.keys()):
        yield f"{name} was not written by the run"
