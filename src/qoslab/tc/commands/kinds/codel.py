"""`codel`: CoDel, RFC 8289 (tc-codel(8)). Defaults are those of Linux."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.tc.commands.qdisc_kind import Flag, Kind, Leaf, Parameter
from qoslab.tc.commands.tc_units import count, time_us


@dataclass(frozen=True, slots=True)
class Codel:
    """Settings of `codel`."""

    limit: int = 1000
    """Queue limit in packets."""
    target_us: int = 5_000
    interval_us: int = 100_000
    ce_threshold_us: int | None = None
    ecn: bool = False


def _leaf(settings: Codel) -> Leaf:
    return Leaf(
        {
            "kind": "codel",
            "limit": settings.limit,
            "target_us": settings.target_us,
            "interval_us": settings.interval_us,
            "ce_threshold_us": settings.ce_threshold_us,
            "ecn": settings.ecn,
        }
    )


KINDS = (
    Kind(
        "codel",
        Codel,
        {
            "limit": Parameter("limit", count),
            "target": Parameter("target_us", time_us),
            "interval": Parameter("interval_us", time_us),
            "ce_threshold": Parameter("ce_threshold_us", time_us),
            "ecn": Flag({"ecn": True}),
            "noecn": Flag({"ecn": False}),
        },
        leaf=_leaf,
    ),
)
