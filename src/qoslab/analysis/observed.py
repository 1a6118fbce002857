"""Parsed `show policy-map interface` → rows of `classes`, for routers that give no counters over time. Pure.

The parsed form is Genie's (`ShowPolicyMapInterface`) with the classic print's shaping table as our own parser adds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from qoslab.analysis.raw import Row

COMMAND = "show policy-map interface"
_BANDWIDTHS = ("kbps", "percent", "remaining_percent", "remaining_ratio")


def observed_class_rows(device: str, parsed: Mapping[str, Any], time_s: float) -> Iterator[Row]:
    """Rows of `classes` from one output; what the print does not say is missing in the row."""
    for interface, entry in parsed.items():
        for direction, service in entry.get("service_policy", {}).items():
            for policy, content in service.get("policy_name", {}).items():
                for name, counters in _classes(content, ""):
                    yield {
                        "device": device,
                        "interface": interface,
                        "direction": direction,
                        "policy": policy,
                        "class": name,
                        "time_s": time_s,
                        **_counters(counters),
                    }


def _classes(policy: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, counters in policy.get("class_map", {}).items():
        yield path + name, counters
        for child in counters.get("child_policy_name", {}).values():
            yield from _classes(child, f"{path}{name}/")


def _counters(entry: Mapping[str, Any]) -> Row:
    rate = entry.get("rate", {})
    row: Row = {
        "packets": entry.get("packets"),
        "bytes": entry.get("bytes"),
        "offered_rate_bps": rate.get("offered_rate_bps"),
        "drop_rate_bps": rate.get("drop_rate_bps"),
        "queue_depth_packets": entry.get("queue_depth"),
        "queue_output_packets": entry.get("pkts_output"),
        "queue_output_bytes": entry.get("bytes_output"),
        **_drops(entry),
        **{f"bandwidth_{unit}": entry.get(f"bandwidth_{unit}") for unit in _BANDWIDTHS},
    }
    police = entry.get("police")
    if police:
        row |= _police(police)
    shaping = entry.get("traffic_shaping")
    if entry.get("shape_type") or shaping:
        row |= _shape(entry, shaping or {})
    return row


def _drops(entry: Mapping[str, Any]) -> Row:
    """Packets dropped by reason: the print has their total, and of some reasons how many of it are theirs."""
    total = entry.get("total_drops")
    table = entry.get("random_detect", {}).get("class", {}).values()
    random = sum(int(row["random_drop_packets"]) for row in table) if table else None
    flow = entry.get("flow_drops")
    exceed = entry.get("priority", {}).get("exceed_drops")
    found: Row = {"drops_flow_packets": flow, "drops_random_packets": random, "drops_priority_packets": exceed}
    if total is not None:
        found["drops_tail_packets"] = total - (flow or 0) - (random or 0)
    return found


def _police(police: Mapping[str, Any]) -> Row:
    row: Row = {
        "police_cir_bps": police.get("cir_bps"),
        "police_bc_bytes": police.get("cir_bc_bytes"),
        "police_pir_bps": police.get("pir_bps"),
        "police_be_bytes": police.get("pir_be_bytes", police.get("cir_be_bytes")),
    }
    dropped = {"packets": 0, "bytes": 0}
    for colour in ("conformed", "exceeded", "violated"):
        counted = police.get(colour)
        if not counted:
            continue
        row |= {
            f"police_{colour}_packets": counted.get("packets"),
            f"police_{colour}_bytes": counted.get("bytes"),
            f"police_{colour}_rate_bps": counted.get("bps"),
        }
        if "drop" in counted.get("actions", {}):
            for unit in dropped:
                dropped[unit] += counted.get(unit) or 0
    return row | {f"drops_police_{unit}": count for unit, count in dropped.items()}


def _shape(entry: Mapping[str, Any], table: Mapping[str, Any]) -> Row:
    """The settings, from the classic print's table where there is one."""
    committed = table.get("sustain_bits_per_interval", entry.get("shape_bc_bps"))
    return {
        "shape_mode": entry.get("shape_type", "average"),
        "shape_cir_bps": entry.get("shape_cir_bps", table.get("average_rate_bps")),
        "shape_target_bps": table.get("target_rate_bps", entry.get("target_shape_rate")),
        "shape_bc_bits": committed,
        "shape_be_bits": table.get("excess_bits_per_interval", entry.get("shape_be_bps")),
        "shape_interval_ms": table.get("interval_ms"),
        "shape_byte_limit": table.get("byte_limit"),
        "shape_increment_bytes": table.get("increment_bytes"),
        "shape_active": table.get("shaping_active"),
        "shape_sent_packets": table.get("packets"),
        "shape_sent_bytes": table.get("bytes"),
        "shape_delayed_packets": table.get("packets_delayed"),
        "shape_delayed_bytes": table.get("bytes_delayed"),
        "queue_depth_packets": table.get("queue_depth", entry.get("queue_depth")),
    }
