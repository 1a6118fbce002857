"""`htb`: hierarchical token buckets (tc-htb(8)).

A class has its rate, and up to its ceil a share, by quantum, of the bandwidth that its siblings do not use. There are
two differences from Linux: the bucket of `rate` has no separate burst (`burst` is refused), and the rate of a class
never exceeds the ceil of its parent.
"""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.tc.commands.qdisc_kind import ClassShare, Parameter, ParameterError, QdiscKind
from qoslab.tc.commands.tc_units import UnitError, parse_rate, parse_size

R2Q = 10
"""Default ratio of rate in bytes per second to quantum in bytes."""
MIN_QUANTUM, MAX_QUANTUM = 1_000, 200_000
"""Bounds of a quantum by `r2q` in Linux, bytes."""
FULL_FRAME = 1600
"""MTU for default buckets in tc, bytes."""


def minor_number(text: str) -> int:
    """Return the minor number, in hexadecimal, of a class ID; `1:10` and `10` are the same."""
    try:
        return int(text.rpartition(":")[2].removeprefix("0x"), 16)
    except ValueError:
        raise UnitError("the minor number of a class, such as 20 for 1:20") from None


@dataclass(frozen=True, slots=True)
class Htb:
    """Settings of `htb`."""

    default: int | None = None
    """Minor number of the class of unclassified packets; without one, these bypass all classes in Linux."""


@dataclass(frozen=True, slots=True)
class HtbClass:
    """Settings of a class."""

    rate_bps: int = 0
    ceil_bps: int | None = None
    """Equal to the rate if not given."""
    cburst: int | None = None
    """Bytes of the bucket of `ceil`."""
    quantum: int | None = None

    def __post_init__(self) -> None:
        if self.rate_bps <= 0:
            raise ParameterError("rate_bps", "found no rate, expected rate RATE")
        if self.ceil_bps is not None and self.ceil_bps < self.rate_bps:
            raise ParameterError(
                "ceil_bps", f"found ceil {self.ceil_bps}bit, expected at least rate {self.rate_bps}bit"
            )


def _class_share(settings: HtbClass) -> ClassShare:
    by_rate = min(max(settings.rate_bps // 8 // R2Q, MIN_QUANTUM), MAX_QUANTUM)
    burst = FULL_FRAME if settings.cburst is None else settings.cburst
    return ClassShare(
        minimum_bps=settings.rate_bps,
        weight=settings.quantum or by_rate,
        shape={"rate_bps": settings.ceil_bps or settings.rate_bps, "burst_bytes": burst, "deficit": True},
    )


KINDS = (
    QdiscKind(
        "htb",
        Htb,
        {"default": Parameter("default", minor_number)},
        refused={
            "r2q": "give each class its quantum",
            "direct_qlen": "unclassified packets go to the default class",
            "offload": "the engine is not a network card",
        },
        classes=QdiscKind(
            "class htb",
            HtbClass,
            {
                "rate": Parameter("rate_bps", parse_rate),
                "ceil": Parameter("ceil_bps", parse_rate),
                "cburst": Parameter("cburst", parse_size),
                "quantum": Parameter("quantum", parse_size),
            },
            refused={
                "prio": "classes of the engine share by quantum alone",
                "burst": "the engine's minimum rate has no bucket; the burst of ceil is cburst",
                **dict.fromkeys(("mpu", "overhead", "linklayer"), "use those of cake, or a rate that includes them"),
            },
            class_share=_class_share,
        ),
    ),
)
