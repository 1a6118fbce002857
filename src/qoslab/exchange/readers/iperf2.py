"""What iperf 2 printed, of one side alone."""

from __future__ import annotations

import re
from pathlib import Path

from qoslab.errors import UserError
from qoslab.exchange.readers.base import Foreign, text_of
from qoslab.traffic.iperf2 import read_report

_LINE = re.compile(rb"^\[\s*(?:\d+|ID|SUM)\]", re.MULTILINE)


def knows(head: bytes) -> bool:
    """By a line of its report; iperf3, whose lines are much alike, is asked before."""
    return _LINE.search(head) is not None


def read(path: Path) -> Foreign:
    """Streams with a line over the whole test, and the lines of their intervals. The rates are those of the side."""
    report = read_report(text_of(path))
    totals = report.totals()
    if report.errors:
        raise UserError(f"{path}: iperf ended with an error: {report.errors[0]}")
    if not totals:
        raise UserError(f"{path}: found no line of iperf 2 over a whole test, expected one for each stream")
    found = Foreign(path.stem, f"iperf {report.version}".strip())
    for place, (stream, total) in enumerate(totals.items(), start=1):
        udp = total.datagrams is not None
        found.flow(
            place,
            total.end_s,
            total.bytes,
            tool="iperf",
            protocol="udp" if udp else "tcp",
            local_port=report.local_ports.get(stream),
            goodput_bps=total.bps,
            retransmits=total.retransmits,
            datagrams=total.datagrams,
            lost=total.lost,
            jitter_ms=total.jitter_ms,
        )
        found.seconds = max(found.seconds, total.end_s)
        for line in report.lines[stream]:
            if line is not total:
                found.interval(place, line.start_s, line.end_s, line.bytes, line.bps)
    found.notes.append("figures are those of the side that printed them; iperf 2 rounds bytes to three digits")
    return found
