"""Reader of the text output of one side of iperf3.

As seen with 3.12: a line over the whole test ends with `sender` or `receiver`; a client prints both, a server only its
own. The times of omitted intervals count from 0, as do those of the test. KBytes are 1024 bytes, Kbits 1000 bits. The
output of the other side (`--get-server-output`) repeats the values under different stream numbers. A server prints one
test after another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from qoslab.errors import UserError, clip_text
from qoslab.exchange.readers.base import ForeignResults, parse_integer, parse_number, read_report_text
from qoslab.traffic.iperf2 import BITS, BYTES, ReportLine, count_digits

_STREAM = r"\[ *(?P<id>\d+)\](?:\[(?P<role>[TR]X-[CS])\])?"
_CONNECTED = re.compile(_STREAM + r" local (?P<local>\S+) port (?P<port>\d+) connected to \S+ port \d+")
_LINE = re.compile(
    _STREAM + r" +(?P<start>\d+\.\d\d)-(?P<end>\d+\.\d\d) +sec +"
    r"(?P<amount>\d+(?:\.\d+)?) (?P<unit>[KMGT]?)Bytes +"
    r"(?P<rate>\d+(?:\.\d+)?) (?P<rate_unit>[KMGT]?)(?P<rate_in>bits|Bytes)/sec(?P<rest>.*)$"
)
_DATAGRAMS = re.compile(r" +(?P<jitter>[\d.]+) ms +(?P<lost>-?\d+)/(?P<total>\d+) ")
_COUNT = re.compile(r" +(?P<count>\d+)\b")
_END = re.compile(r" (?P<end>sender|receiver|\(omitted\))\s*$")
_ERROR = re.compile(r"iperf3: (?P<error>.+)$")
_VERSION = re.compile(r"(?:^| )iperf (?P<version>3\.\S+)$")
_KNOWN = re.compile(
    rb"\bport \d+ connected to \S+ port \d+"
    rb"|-\d+\.\d\d +sec  .*/sec.*\b(?:sender|receiver) *$|-\d+\.\d\d {2,}sec  .*/sec|^iperf3: |^iperf Done\.",
    re.MULTILINE,
)


@dataclass
class _Stream:
    role: str
    """Role in a bidirectional test, such as `TX-C`."""
    port: int | None = None
    udp: bool = False
    omitted: bool = False
    """True if parts of it were omitted (`-O`)."""
    intervals: list[ReportLine] = field(default_factory=list)
    sender: ReportLine | None = None
    receiver: ReportLine | None = None


@dataclass
class _Test:
    streams: dict[int, _Stream] = field(default_factory=dict)
    client: bool = False
    reverse: bool = False
    sent: bool = False
    """True if its intervals have values that only a sender prints."""


def recognises(head: bytes) -> bool:
    """Recognise a connection, a line of its report, its last line or an error."""
    return not head.lstrip().startswith(b"{") and _KNOWN.search(head) is not None


def read(path: Path) -> ForeignResults:
    """Return streams and intervals. Bytes and rates are the receiver's if the file has them, else the sender's."""
    text = read_report_text(path)
    tests = _split_tests(path, text)
    measured = [test for test in tests if test.streams]
    if len(measured) > 1:
        raise UserError(
            f"{path}: found {len(measured)} tests, expected one",
            hint='split the file at each "Server listening" or "Connecting to host", and import the parts',
        )
    idle = len(tests) > 1 and not tests[-1].streams
    for match in (_ERROR.search(row) for row in text.splitlines()):
        # A server that waits for the next test is stopped by the user.
        if match is not None and not (idle and match["error"] == "interrupt - the server has terminated"):
            raise UserError(
                f"{path}: iperf3 ended with an error: {match['error'].removeprefix('error - ')}",
                hint="the test did not finish",
            )
    versions = [match["version"] for match in map(_VERSION.search, text.splitlines()) if match is not None]
    found = ForeignResults(path.name.removesuffix(".gz").removesuffix(".txt"), " ".join(["iperf3", *versions[:1]]))
    _fill_stream(path, found, measured[0] if measured else _Test())
    return found


def _split_tests(path: Path, text: str) -> list[_Test]:
    """Return the consecutive tests of one side."""
    tests = [_Test()]
    for line, row in _own_lines(text):
        try:
            _take_row(tests, row)
        except (ValueError, ArithmeticError) as error:
            raise UserError(
                f'{path}:{line}: found a malformed number in "{clip_text(row)}", expected a number as iperf3 prints it',
                hint="was the file edited?",
            ) from error
    return tests


def _take_row(tests: list[_Test], row: str) -> None:
    test = tests[-1]
    if "Server listening on " in row:
        tests.append(_Test())
    elif "Connecting to host " in row:
        if test.streams:
            tests.append(_Test())
        tests[-1].client = True
    elif "Reverse mode, " in row:
        test.reverse = True
    elif match := _CONNECTED.search(row):
        if any(each.sender or each.receiver for each in test.streams.values()):
            tests.append(_Test(client=test.client))
            test = tests[-1]
        test.streams[parse_integer(match["id"])] = _Stream("", parse_integer(match["port"]))
    elif match := _LINE.search(row):
        _take_line(test, match)


def _own_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, numbered from 1, without the output of the other side, which ends with an empty line."""
    others = False
    for line, row in enumerate(text.splitlines(), start=1):
        others = "Server output:" in row or (others and bool(row.strip()))
        if not others:
            yield line, row


def _take_line(test: _Test, match: re.Match[str]) -> None:
    stream = test.streams.setdefault(parse_integer(match["id"]), _Stream(""))
    stream.role = match["role"] or ""
    rest = match["rest"]
    end = _END.search(rest)
    datagrams, count = _DATAGRAMS.match(rest), _COUNT.match(rest)
    rate, unit = parse_number(match["rate"]), match["rate_unit"]
    line = ReportLine(
        stream=parse_integer(match["id"]),
        start_s=parse_number(match["start"]),
        end_s=parse_number(match["end"]),
        bytes=round(parse_number(match["amount"]) * BYTES[match["unit"]]),
        bps=rate * (BITS[unit] if match["rate_in"] == "bits" else 8 * BYTES[unit]),
        rate_digits=count_digits(match["rate"]),
        jitter_ms=parse_number(datagrams["jitter"]) if datagrams else None,
        lost=parse_integer(datagrams["lost"]) if datagrams else None,
        datagrams=parse_integer(datagrams["total"]) if datagrams else None,
        retransmits=parse_integer(count["count"]) if count and not datagrams else None,
    )
    if end is None:
        test.sent = test.sent or line.retransmits is not None
        if stream.omitted and not stream.intervals and line.start_s > 0:
            # The interval began in an omitted part: its start is before 0, and its bytes count from 0.
            line = replace(line, start_s=0.0, bps=line.bytes * 8 / line.end_s)
        stream.intervals.append(line)
    elif end["end"] == "(omitted)":
        stream.omitted = True
    else:
        stream.udp = datagrams is not None
        setattr(stream, end["end"], line)


def _fill_stream(path: Path, found: ForeignResults, test: _Test) -> None:
    ends = {number: _ends_test(stream) for number, stream in test.streams.items()}
    if not any(ends.values()):
        raise UserError(
            f'{path}: found no summary line of iperf3, expected one that ends with "sender" or "receiver"',
            hint="is the file complete, and did the test finish?",
        )
    # With both directions each stream has a sender and a receiver line; a server prints only its own side.
    both = {len(each) for each in ends.values()}
    if len(both) > 1:
        short = min(ends, key=lambda number: len(ends[number]))
        raise UserError(
            f"{path}: found stream [{short}] with fewer summary lines than another, expected the same number",
            hint="is the file complete?",
        )
    for place, stream in enumerate(test.streams.values(), start=1):
        total = stream.receiver or stream.sender
        assert total is not None
        traffic = f"{found.name} {stream.role}".strip()
        found.add_flow(
            place,
            total.end_s - total.start_s,
            total.bytes,
            traffic=traffic,
            tool="iperf3",
            protocol="udp" if stream.udp else "tcp",
            local_port=stream.port,
            goodput_bps=total.rate_bps,
            sender_bps=stream.sender.rate_bps if stream.sender is not None else None,
            retransmits=stream.sender.retransmits if stream.sender is not None else None,
            datagrams=total.datagrams,
            lost=found.read_loss(total.lost, place, total.datagrams),
            jitter_ms=total.jitter_ms,
        )
        found.seconds = max(found.seconds, total.end_s)
        for line in stream.intervals:
            found.add_interval(place, line.start_s, line.end_s, line.bytes, line.rate_bps, traffic=traffic)
        found.note_interval_losses(place, ((line.start_s, line.lost) for line in stream.intervals))
    found.notes.append("iperf3 rounds bytes and rates in text output to three digits; iperf3 -J prints all digits")
    if test.sent or (test.client and not test.reverse):
        found.notes.append("intervals of a sender count data passed to its kernel, not received data")
    if any(stream.receiver is None for stream in test.streams.values()):
        found.notes.append("values without a receiver line are the sender's")


def _ends_test(stream: _Stream) -> list[str]:
    return [name for name in ("sender", "receiver") if getattr(stream, name) is not None]
