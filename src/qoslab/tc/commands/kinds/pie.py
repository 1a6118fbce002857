"""`pie`: PIE, RFC 8033 (tc-pie(8)). Defaults are those of Linux."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.tc.commands.qdisc_kind import Flag, Parameter, QdiscKind, direct_leaf, on_off
from qoslab.tc.commands.tc_units import count, parse_time


@dataclass(frozen=True, slots=True)
class Pie:
    """Settings of `pie`."""

    limit: int = 1000
    """Queue limit in packets."""
    target_us: int = 15_000
    tupdate_us: int = 15_000
    alpha: int = 2
    """Weight of the delay above the target, in sixteenths per second."""
    beta: int = 20
    """Weight of the change of the delay, in sixteenths per second."""
    ecn: bool = False
    bytemode: bool = False


KINDS = (
    QdiscKind(
        "pie",
        Pie,
        {
            "limit": Parameter("limit", count),
            "target": Parameter("target_us", parse_time),
            "tupdate": Parameter("tupdate_us", parse_time),
            "alpha": Parameter("alpha", count),
            "beta": Parameter("beta", count),
            **on_off("ecn"),
            **on_off("bytemode"),
            "no_dq_rate_estimator": Flag(),
        },
        refused={"dq_rate_estimator": "the engine measures the delay from packet timestamps, as Linux does by default"},
        leaf=direct_leaf("pie"),
    ),
)
