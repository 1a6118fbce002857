"""TCP counters of a host's kernel as rows of the table `hosts`."""

from __future__ import annotations

from collections.abc import Mapping

from qoslab.errors import UserError

COUNTERS = {
    "sent_segments": "Tcp.OutSegs",
    "retransmitted_segments": "Tcp.RetransSegs",
    "timeouts": "TcpExt.TCPTimeouts",
}
"""Columns of `hosts`, and the names in `/proc/net/snmp` and `/proc/net/netstat`.

As RFC 4022 specifies, retransmitted segments are not counted as sent.
"""


def read_counters(text: str, name: str) -> dict[str, int]:
    """Parse `/proc/net/snmp` and `netstat`: pairs of lines with names and values. `name` is for errors."""
    found: dict[str, int] = {}
    lines = [line.split() for line in text.splitlines() if line.strip()]
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        if names[0] != values[0] or len(names) != len(values):
            raise UserError(
                f"{name}: found {values[0]} after {names[0]}, expected pairs of lines with names and values"
            )
        prefix = names[0].rstrip(":")
        found |= {f"{prefix}.{key}": int(value) for key, value in zip(names[1:], values[1:], strict=True)}
    missing = [each for each in COUNTERS.values() if each not in found]
    if missing:
        raise UserError(
            f"{name}: found no {', '.join(missing)}", hint="the file was truncated, or its kernel is not Linux"
        )
    return found


def host_row(host: str, before: Mapping[str, int], after: Mapping[str, int], *, sends: bool) -> dict[str, object]:
    """Return a row of `hosts` with the differences of the counters; `sends`: if the host sends TCP traffic."""
    return {"host": host, "sends": sends} | {column: after[name] - before[name] for column, name in COUNTERS.items()}
