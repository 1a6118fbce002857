"""`codel`: CoDel, RFC 8289 (tc-codel(8)). Defaults are those of Linux."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.tc.commands.qdisc_kind import Parameter, QdiscKind, direct_leaf, on_off
from qoslab.tc.commands.tc_units import count, parse_time


@dataclass(frozen=True, slots=True)
class Codel:
    """Settings of `codel`."""

    limit: int = 1000
    """Queue limit in packets."""
    target_us: int = 5_000
    interval_us: int = 100_000
    ce_threshold_us: int | None = None
    ecn: bool = False


KINDS = (
    QdiscKind(
        "codel",
        Codel,
        {
            "limit": Parameter("limit", count),
            "target": Parameter("target_us", parse_time),
            "interval": Parameter("interval_us", parse_time),
            "ce_threshold": Parameter("ce_threshold_us", parse_time),
            **on_off("ecn"),
        },
        leaf=direct_leaf("codel"),
    ),
)
