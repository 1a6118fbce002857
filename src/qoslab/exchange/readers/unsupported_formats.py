"""Well-known formats that no reader reads, each with a way to convert them."""

from __future__ import annotations

import re
from pathlib import Path

from qoslab.errors import UserError

_UNPACK = "unpack it, and import the result: {}"
_EDITCAP = "convert it, and import the result: editcap -F pcapng {} new.pcapng"
_AS_CSV = "write its values as CSV, with a header such as time_s,download_Mbps,rtt_ms"
_PRINTED = "import the capture itself, as written by tcpdump -w"

_BINARY = (
    (rb"\x28\xb5\x2f\xfd", "a file compressed by zstd", _UNPACK.format("zstd -d")),
    (rb"\xfd7zXZ\0", "a file compressed by xz", _UNPACK.format("xz -d")),
    (rb"BZh[1-9]", "a file compressed by bzip2", _UNPACK.format("bzip2 -d")),
    (rb"\x04\x22\x4d\x18", "a file compressed by lz4", _UNPACK.format("lz4 -d")),
    (rb"\x1f\x9d", "a file compressed by compress", _UNPACK.format("uncompress")),
    (rb"PK\x03\x04", "a zip archive", _UNPACK.format("unzip")),
    (rb"snoop\0\0\0", "a capture of snoop", _EDITCAP),
    (rb"XCP\0|GMBU|RTSS", "a capture of a network analyser", _EDITCAP),
    (rb"\xa1\xb2\xcd\x34|\x34\xcd\xb2\xa1", "a capture of a modified pcap format", _EDITCAP),
)
_TEXT = (
    (rb"^(?:MIGRATED )?[A-Z][\w ]* TEST from |^Interim result: |^(?:THROUGHPUT|MEAN_LATENCY)\b", "output of netperf"),
    (rb"^PING \S+ \(|^Pinging \S+ .*with \d+ bytes|^\d+ bytes from .*time=", "output of ping"),
    (rb"^traceroute to |^HOST: .*Loss%", "output of traceroute or mtr"),
)
_TCPDUMP = rb"^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{6} (?:\S+ +(?:In|Out) +)?IP6? "


def unsupported_format_error(path: Path, head: bytes) -> UserError | None:
    """Return the error for a file in a format that is known but not read; None for any other file."""
    for pattern, what, hint in _BINARY:
        if re.match(pattern, head):
            return _format_error(path, what, hint.format(path))
    for pattern, what in _TEXT:
        if re.search(pattern, head, re.MULTILINE):
            return _format_error(path, what, _AS_CSV)
    if re.search(_TCPDUMP, head, re.MULTILINE):
        return _format_error(path, "packets printed by tcpdump", _PRINTED)
    return None


def _format_error(path: Path, what: str, hint: str) -> UserError:
    return UserError(f"{path}: found {what}, expected a format listed by `qoslab import --help`", hint=hint)
