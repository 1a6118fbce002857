"""Reader of text reports of iperf 2, of one side; `iperf2_csv` reads reports of `-y C`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from qoslab.errors import UserError, clip_text
from qoslab.exchange.readers import iperf2_csv
from qoslab.exchange.readers.base import ForeignResults, arm_name, read_head, read_report_text
from qoslab.traffic.iperf2 import Report, ReportLine, read_report

_LINE = re.compile(rb"^\[\s*(?:\d+|ID|SUM)\]", re.MULTILINE)
_ROW = re.compile(r"^\[ *(?P<id>\d+)\] +(?:(?P<connected>local )|\d+\.\d+- *(?P<end>\d+\.\d+) sec )")
_SUM = re.compile(r"^\[SUM\] +(?P<start>\d+\.\d+)- *\d+\.\d+ sec ", re.MULTILINE)
_MEASURED_INTERVAL = re.compile(r"\d+\.\d\d(?!00)\d\d")
"""An end measured by a clock: intervals last at least hundredths of a second."""
_ROUNDED_INTERVAL = re.compile(r"- *\d+\.\d\d? sec ")
_WHOLE_TEST = "is the file complete, and did the test finish?"


def recognises(head: bytes) -> bool:
    """Recognise a line of its report. iperf3, which has similar lines, is tried first."""
    return _LINE.search(head) is not None or iperf2_csv.recognises(head)


def read(path: Path) -> ForeignResults:
    """Return streams with a line over the whole test, and the lines of their intervals. The rates are those of this
    side.
    """
    if iperf2_csv.recognises(read_head(path)):
        return iperf2_csv.read(path)
    text = read_report_text(path)
    report = read_report(text)
    totals = report.totals()
    if report.errors:
        raise UserError(f"{path}: iperf ended with an error: {report.errors[0]}")
    malformed = _find_malformed(text, report)
    if not totals:
        reason = "found no iperf 2 line for the whole test, expected one for each stream"
        raise UserError(f"{path}{malformed or ':'}{';' if malformed else ''} {reason}")
    _check_one_test(path, text)
    _check_whole(path, text, report, totals)
    if malformed:
        raise UserError(f"{path}{malformed}, expected a number as iperf prints it", hint="was the file edited?")
    found = ForeignResults(arm_name(path), f"iperf {report.version}".strip())
    if _may_be_first(text, report):
        found.notes.append("it has one line per stream: if iperf was started with -i, the text stops after an interval")
    for place, (stream, total) in enumerate(totals.items(), start=1):
        udp = total.datagrams is not None
        found.add_flow(
            place,
            total.end_s,
            total.bytes,
            tool="iperf",
            protocol="udp" if udp else "tcp",
            local_port=report.local_ports.get(stream),
            goodput_bps=total.rate_bps,
            retransmits=total.retransmits,
            datagrams=total.datagrams,
            lost=found.read_loss(total.lost, place, total.datagrams),
            jitter_ms=total.jitter_ms,
        )
        found.seconds = max(found.seconds, total.end_s)
        for line in report.lines[stream]:
            if line is not total:
                found.add_interval(place, line.start_s, line.end_s, line.bytes, line.rate_bps)
        own = (line for line in report.lines[stream] if line is not total)
        found.note_interval_losses(place, ((line.start_s, line.lost) for line in own))
    found.notes.append("values come from the side that printed them; iperf 2 rounds bytes to three digits")
    return found


def _find_malformed(text: str, report: Report) -> str:
    """Return the line of the first malformed number and a finding about it; empty if there is none."""
    if not report.malformed:
        return ""
    line = report.malformed[0]
    return f':{line}: found a malformed number in "{clip_text(text.splitlines()[line - 1])}"'


def _check_one_test(path: Path, text: str) -> None:
    """Raise `UserError` if streams are consecutive, as in the tests of a server or in appended outputs."""
    ended: set[str] = set()
    measured: set[str] = set()
    rows = [(place, row) for place, row in enumerate(map(_ROW.match, text.splitlines())) if row]
    last = {row["id"]: place for place, row in rows if row["end"]}
    for place, row in rows:
        if row["connected"] and (ended or row["id"] in measured):
            raise UserError(
                f"{path}:{place + 1}: found stream [{row['id']}] after the end of stream [{min(ended or measured)}], "
                "expected one test",
                hint='split the file at the start of each test ("connected with"), and import the parts',
            )
        if row["end"]:
            measured.add(row["id"])
        if last.get(row["id"]) == place:
            ended.add(row["id"])


def _check_whole(path: Path, text: str, report: Report, totals: dict[int, ReportLine]) -> None:
    """Raise `UserError` for a truncated report, whose first intervals would count as whole tests."""
    for stream in sorted(report.lines.keys() | report.local_ports.keys()):
        if stream not in totals or _is_first_interval(report.lines[stream], totals[stream], report):
            reason = f"found no summary line of stream [{stream}], expected one"
            malformed = _find_malformed(text, report)
            raise UserError(f"{path}{malformed or ':'}{';' if malformed else ''} {reason}", hint=_WHOLE_TEST)
    longest = max(totals, key=lambda stream: totals[stream].end_s)
    for stream, total in totals.items():
        if total.end_s < totals[longest].end_s / 2:
            raise UserError(
                f"{path}: found stream [{stream}] ending after {total.end_s:g} s and [{longest}] after "
                f"{totals[longest].end_s:g} s, expected streams of one test",
                hint=_WHOLE_TEST,
            )
    sums = [row["start"] for row in _SUM.finditer(text)]
    # A server may have clients of one stream each, and a test in both directions has no sum.
    client = "Client connecting to" in text and "Server listening on" not in text
    if client and len(totals) > 1 and not (sums and float(sums[-1]) == 0):
        reason = f"found no [SUM] line for the whole test, expected one for {len(totals)} streams"
        raise UserError(f"{path}: {reason}", hint=_WHOLE_TEST)
    if len(totals) > 1 and _may_be_first(text, report) and not _ROUNDED_INTERVAL.search(text):
        reason = f"found {len(totals)} streams that all end after {totals[longest].end_s:.4f} s, as intervals do"
        raise UserError(f"{path}: {reason}, expected summary lines", hint=_WHOLE_TEST)
    number, row = len(text.splitlines()), text.splitlines()[-1]
    if row.startswith("[") and not text.endswith(("\n", "\r")):
        reason = f'found the row "{clip_text(row)}" without a line end, expected a complete one'
        raise UserError(f"{path}:{number}: {reason}", hint="is the file complete? If it is, end the row with a newline")


def _is_first_interval(own: Sequence[ReportLine], total: ReportLine, report: Report) -> bool:
    """Return whether a stream's last line that begins at 0 is its first interval: later lines of this or another stream
    show it.
    """
    if len(own) == 1:
        return any(len(lines) > 1 and lines[0].end_s == total.end_s for lines in report.lines.values())
    return any(line.end_s > line.start_s >= total.end_s for line in own)


def _may_be_first(text: str, report: Report) -> bool:
    """Return whether each stream has only one line, which could be a first interval."""
    ends = {row["end"] for row in map(_ROW.match, text.splitlines()) if row and row["end"]}
    alone = all(len(lines) == 1 for lines in report.lines.values())
    return alone and len(ends) == 1 and not _MEASURED_INTERVAL.fullmatch(ends.pop())
