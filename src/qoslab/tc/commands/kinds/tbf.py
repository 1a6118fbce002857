"""`tbf`: a token bucket that shapes (tc-tbf(8)), with a FIFO or another qdisc below it."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.system import program_formats
from qoslab.tc.commands.qdisc_kind import Leaf, Parameter, ParameterError, QdiscKind
from qoslab.tc.commands.tc_units import parse_rate, parse_size, parse_time


@dataclass(frozen=True, slots=True)
class Tbf:
    """Settings of `tbf`."""

    rate_bps: int = 0
    burst: int = 0
    """Size of the bucket in bytes."""
    limit: int | None = None
    """Queue limit in bytes."""
    latency_us: int | None = None
    """Queue limit as a time: the bytes sent at `rate` in this time, plus a burst."""

    def __post_init__(self) -> None:
        if self.rate_bps <= 0:
            raise ParameterError("rate_bps", "found no rate, expected rate RATE")
        if self.burst <= 0:
            raise ParameterError("burst", "found no burst, expected burst BYTES")
        if (self.limit is None) == (self.latency_us is None):
            found = "neither limit nor latency" if self.limit is None else "both limit and latency"
            raise ParameterError("limit", f"found {found}, expected either limit BYTES or latency TIME")

    @property
    def queue_bytes(self) -> int:
        """Queue limit in bytes."""
        if self.limit is not None:
            return self.limit
        return self.rate_bps * (self.latency_us or 0) // 8_000_000 + self.burst


def _engine_shape(settings: Tbf) -> program_formats.TreeShape:
    return {"rate_bps": settings.rate_bps, "burst_bytes": settings.burst}


def _engine_leaf(settings: Tbf) -> Leaf:
    return Leaf({"kind": "bfifo", "limit": settings.queue_bytes}, _engine_shape(settings))


KINDS = (
    QdiscKind(
        "tbf",
        Tbf,
        {
            "rate": Parameter("rate_bps", parse_rate),
            **dict.fromkeys(("burst", "buffer", "maxburst"), Parameter("burst", parse_size)),
            "limit": Parameter("limit", parse_size),
            "latency": Parameter("latency_us", parse_time),
        },
        refused={
            "peakrate": "the engine's shaper has one bucket",
            **dict.fromkeys(("mtu", "minburst"), "it belongs to peakrate, which the engine does not have"),
            **dict.fromkeys(("mpu", "overhead", "linklayer"), "use those of cake, or a rate that includes them"),
        },
        leaf=_engine_leaf,
        shape=_engine_shape,
    ),
)
