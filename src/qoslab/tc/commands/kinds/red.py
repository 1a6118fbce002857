"""`red`: random early detection (tc-red(8)).

The mean depth and its thresholds are in bytes. The weight of a packet in the mean is derived from `burst`, `min` and
`avpkt` as in tc. Between the thresholds the engine drops packets independently of each other; Linux spaces its drops
more evenly, with the same mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.tc.commands.qdisc_kind import Flag, Leaf, Parameter, ParameterError, QdiscKind
from qoslab.tc.commands.tc_units import count, parse_probability, parse_rate, parse_size

MAX_EXPONENT = 31


@dataclass(frozen=True, slots=True)
class Red:
    """Settings of `red`."""

    limit: int = 0
    """Queue limit in bytes."""
    min: int = 0
    """Mean depth in bytes above which packets may be dropped; 0: a third of `max`."""
    max: int = 0
    """Mean depth in bytes above which all packets are dropped; 0: a quarter of `limit`."""
    avpkt: int = 0
    """Bytes of an average packet."""
    burst: int = 0
    """Allowed burst in packets; 0: (2 min + max) / (3 avpkt)."""
    probability: float = 0.02
    ecn: bool = False
    bandwidth_bps: int = 10_000_000
    """Rate at which the mean of an idle queue decays in Linux; the engine uses the line rate."""

    def __post_init__(self) -> None:
        for name, value in (("limit", self.limit), ("avpkt", self.avpkt)):
            if value <= 0:
                raise ParameterError(name, f"found no {name}, expected {name} BYTES")
        if self.high <= self.low:
            raise ParameterError("min", f"found min {self.low} and max {self.high}, expected min below max")
        if self.packets <= 0 or self.packets + 1 - self.low / self.avpkt < 1:
            least = int(self.low / self.avpkt) + 1
            raise ParameterError("burst", f"found burst {self.packets}, expected at least {least} (min / avpkt)")

    @property
    def high(self) -> int:
        """The upper threshold in bytes."""
        return self.max or self.limit // 4

    @property
    def low(self) -> int:
        """The lower threshold in bytes."""
        return self.min or self.high // 3

    @property
    def packets(self) -> int:
        """The allowed burst in packets."""
        return self.burst or (2 * self.low + self.high) // (3 * self.avpkt)

    @property
    def exponent(self) -> int:
        """The n of the weight 2⁻ⁿ, by the rule of tc (`tc_red_eval_ewma`).

        It is the least n for which an average of a burst of packets stays below `min`:
        burst + 1 - min/avpkt ≤ (1 - (1 - W)^burst) / W.
        """
        wanted = self.packets + 1 - self.low / self.avpkt
        for exponent in range(1, MAX_EXPONENT):
            weight = 2.0**-exponent
            if wanted <= (1 - (1 - weight) ** self.packets) / weight:
                return exponent
        return MAX_EXPONENT


def _engine_leaf(settings: Red) -> Leaf:
    return Leaf(
        {
            "kind": "red",
            "limit": settings.limit,
            "min": settings.low,
            "max": settings.high,
            "exponential_weight": settings.exponent,
            "denominator": max(round(1 / settings.probability), 1),
            "ecn": settings.ecn,
        }
    )


KINDS = (
    QdiscKind(
        "red",
        Red,
        {
            "limit": Parameter("limit", parse_size),
            "min": Parameter("min", parse_size),
            "max": Parameter("max", parse_size),
            "avpkt": Parameter("avpkt", parse_size),
            "burst": Parameter("burst", count),
            "probability": Parameter("probability", parse_probability),
            "bandwidth": Parameter("bandwidth_bps", parse_rate),
            "ecn": Flag({"ecn": True}),
        },
        refused={
            "adaptive": "the engine does not adapt the probability",
            "harddrop": "the engine always drops above max",
            "nodrop": "the engine drops packets that are not ECN-capable",
        },
        leaf=_engine_leaf,
    ),
)
