"""Comparison of our counters of qdiscs with those that tc prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded" / "tc" / "counters.json"
"""Messages of Linux 6.1 in user mode, and the JSON of iproute2 6.1 at the same time (tests/lab/tc_guest.py)."""
COMMON = {
    "packets": "packets",
    "bytes": "bytes",
    "drops": "drops",
    "backlog": "backlog_bytes",
    "qlen": "backlog_packets",
}
OF_KIND = {
    "red": {"early": "early_drops", "marked": "ecn_marks"},
    "codel": {"ecn_mark": "ecn_marks", "drop_overlimit": "limit_drops", "ldelay": "delay_us", "dropping": "dropping"},
    "fq_codel": {"ecn_mark": "ecn_marks", "drop_overlimit": "limit_drops"},
    "pie": {"overlimit": "limit_drops", "ecn_mark": "ecn_marks"},
    "cake": {"memory_used": "memory_bytes"},
}
TIN = {
    "sent_packets": "sent_packets",
    "sent_bytes": "sent_bytes",
    "drops": "dropped_packets",
    "ecn_mark": "ecn_marks",
    "ack_drops": "acks_dropped_packets",
    "target_us": "target_us",
    "interval_us": "interval_us",
    "peak_delay_us": "peak_delay_us",
    "avg_delay_us": "average_delay_us",
    "base_delay_us": "base_delay_us",
    "backlog_bytes": "backlog_bytes",
}


def assert_counters_are_those_of_tc(own: list[dict[str, Any]], said: list[dict[str, Any]]) -> None:
    """Compare the values of each qdisc."""
    by_handle = {each["handle"]: each for each in own if each["parent"] == "root" or each["kind"] != "htb"}
    for each in said:
        found = by_handle[each["handle"]]
        names = COMMON | OF_KIND.get(each["kind"], {})
        names = {name: field for name, field in names.items() if name in each}
        assert {name: found[field] for name, field in names.items()} == {name: each[name] for name in names}
        for tin, said_tin in zip(found["tins"], each.get("tins", ()), strict=True):
            assert {name: tin[field] for name, field in TIN.items()} == {name: said_tin[name] for name in TIN}
            assert tin["threshold_bps"] == said_tin["threshold_rate"] * 8
