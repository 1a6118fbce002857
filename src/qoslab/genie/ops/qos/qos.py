"""The feature `qos` of any system, with its counters."""

from __future__ import annotations

from typing import ClassVar

from genie.ops.base import Base


class Qos(Base):  # type: ignore[misc]
    """Classes and policies of a device."""

    exclude: ClassVar[list[str]] = [
        "packets",
        "bytes",
        "bps",
        "rate",
        "packets_marked",
        "exceed_drops",
        "queue_depth",
        "mean_queue_depth",
        "total_drops",
        "no_buffer_drops",
        "flow_drops",
        "bytes_drops",
        "pkts_output",
        "bytes_output",
        "pkts_matched",
        "bytes_matched",
        "pkts_queued",
        "bytes_queued",
        "packets_delayed",
        "bytes_delayed",
        "shaping_active",
        "dynamic_bucket",
        "transmitted",
        "random_drop",
        "tail_drop",
        "transmitted_packets",
        "transmitted_bytes",
        "random_drop_packets",
        "random_drop_bytes",
        "tail_drop_packets",
        "tail_drop_bytes",
        "ecn_mark_packets",
        "ecn_mark_bytes",
    ]
    """Keys that Genie's Diff ignores, as they change every second."""
