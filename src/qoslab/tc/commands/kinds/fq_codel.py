"""`fq_codel`: FQ-CoDel, RFC 8290 (tc-fq_codel(8)). Defaults are those of Linux."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.tc.commands.qdisc_kind import Parameter, QdiscKind, direct_leaf, on_off
from qoslab.tc.commands.tc_units import count, parse_size, parse_time


@dataclass(frozen=True, slots=True)
class FqCodel:
    """Settings of `fq_codel`."""

    limit: int = 10_240
    """Queue limit of all flows together, in packets."""
    flows: int = 1024
    quantum: int = 1514
    """Bytes per turn of a flow; Linux uses the interface's MTU plus the Ethernet header."""
    target_us: int = 5_000
    interval_us: int = 100_000
    ce_threshold_us: int | None = None
    memory_limit: int = 32 << 20
    """Memory limit in bytes as Linux counts them: 2304 for a full packet."""
    drop_batch: int = 64
    """Packets dropped at once from the longest flow if a limit is exceeded."""
    ecn: bool = True


KINDS = (
    QdiscKind(
        "fq_codel",
        FqCodel,
        {
            "limit": Parameter("limit", count),
            "flows": Parameter("flows", count),
            "quantum": Parameter("quantum", parse_size),
            "target": Parameter("target_us", parse_time),
            "interval": Parameter("interval_us", parse_time),
            "ce_threshold": Parameter("ce_threshold_us", parse_time),
            "memory_limit": Parameter("memory_limit", parse_size),
            "drop_batch": Parameter("drop_batch", count),
            **on_off("ecn"),
        },
        refused={"ce_threshold_selector": "it selects packets by a mask of the DS field, which the engine does not do"},
        leaf=direct_leaf("fq_codel"),
    ),
)
