"""Rows of `classes` from parsed `show policy-map interface`, for routers without counters over time. Pure.

The output has fewer values than the counters. Missing values are null, never 0; impossible values are 0: the drops of a
queue that the class does not have, or the bytes of no packets.

The parsed form is Genie's (`ShowPolicyMapInterface`), with the classic generation's shaping table in the form of our
own parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qoslab.analysis.raw import Row

COMMAND = "show policy-map interface"
_BANDWIDTHS = ("kbps", "percent", "remaining_percent", "remaining_ratio")
_OF_A_QUEUE = (
    *("queueing", "queue_depth", "total_drops", "queue_limit_packets", "queue_limit_bytes", "output_queue"),
    *("traffic_shaping", "shape_type", "random_detect", "priority", "flow_based_fair_queueing"),
    *(f"bandwidth_{unit}" for unit in _BANDWIDTHS),
)
"""Keys, at least one of which is printed for a class with a queue, and none for others."""
NOT_PRINTED = "not printed"
"""`queue_discipline` of a class with a queue, since no output shows it."""
_SHARED = "queue_stats_for_all_priority_classes"


def observed_class_rows(device: str, parsed: Mapping[str, Any], time_s: float) -> Iterator[Row]:
    """Return the rows of `classes` from one output; values that the output lacks are missing in the row."""
    for interface, entry in parsed.items():
        for direction, service in entry.get("service_policy", {}).items():
            for policy, content in service.get("policy_name", {}).items():
                for name, counters, around in _classes(content, ""):
                    yield {
                        "device": device,
                        "interface": interface,
                        "direction": direction,
                        "policy": policy,
                        "class": name,
                        "time_s": time_s,
                        **_counters(counters, around),
                    }


@dataclass(frozen=True)
class _Around:
    """Queue data of the policy that contains a class."""

    queued: bool
    """True if it has a queue. If other classes have one, class-default has one too, though releases up to 12.4 print
    none.
    """
    shared: Mapping[str, Any]
    """Queue that priority classes share; empty if none is printed."""

    def sum_levels(self, counter: str) -> int | None:
        """Return the sum over all levels of the shared queue; None if one is unknown, or if there is no queue."""
        levels = self.shared.get("priority_level", {}).values()
        return _sum_if_known(level.get(counter) for level in levels) if levels else None


def _classes(policy: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any], _Around]]:
    classes = policy.get("class_map", {})
    queued = {name for name, counters in classes.items() if any(each in counters for each in _OF_A_QUEUE)}
    if queued:
        queued.add("class-default")
    for name, counters in classes.items():
        yield path + name, counters, _Around(name in queued, policy.get(_SHARED, {}))
        for child in counters.get("child_policy_name", {}).values():
            yield from _classes(child, f"{path}{name}/")


def _counters(entry: Mapping[str, Any], around: _Around) -> Row:
    rate = entry.get("rate", {})
    row: Row = {
        "packets": entry.get("packets"),
        "bytes": entry.get("bytes"),
        "offered_rate_bps": rate.get("offered_rate_bps"),
        "drop_rate_bps": rate.get("drop_rate_bps"),
        **_queue(entry, around),
        "queue_output_packets": entry.get("pkts_output"),
        "queue_output_bytes": entry.get("bytes_output"),
        **_drops(entry, around),
        **_ecn_marks(entry.get("random_detect", {})),
        **{f"bandwidth_{unit}": entry.get(f"bandwidth_{unit}") for unit in _BANDWIDTHS},
    }
    police = entry.get("police")
    if police:
        row |= _police(police)
    shaping = entry.get("traffic_shaping")
    if entry.get("shape_type") or shaping:
        row |= _shape(entry, shaping or {})
    return row


def _queue(entry: Mapping[str, Any], around: _Around) -> Row:
    if not around.queued:
        return {}
    depth = entry.get("traffic_shaping", {}).get("queue_depth", entry.get("queue_depth"))
    if depth is None and "priority" in entry and around.sum_levels("queue_depth") == 0:
        depth = 0
    if "queue_limit_bytes" not in entry:
        return {"queue_discipline": NOT_PRINTED, "queue_depth_packets": depth}
    # The depth is in the unit of the limit.
    limits = {f"queue_limit_{unit}": entry.get(f"queue_limit_{unit}") for unit in ("bytes", "ms")}
    packets = 0 if depth == 0 else None
    return {"queue_discipline": NOT_PRINTED, "queue_depth_packets": packets, "queue_depth_bytes": depth, **limits}


def _drops(entry: Mapping[str, Any], around: _Around) -> Row:
    """Return drops by reason, from the total and from counters of some reasons.

    Drops without a separate counter count as tail drops.
    """
    table = entry.get("random_detect", {}).get("class", {}).values()
    flow, random = entry.get("flow_drops", 0), sum(int(row["random_drop_packets"]) for row in table)
    # The total includes these three as tail drops; drops of flows and of early detection only if they are printed.
    found: Row = {
        "drops_random_tail_packets": 0,
        "drops_aqm_packets": 0,
        "drops_purged_packets": 0,
        "drops_priority_packets": entry.get("priority", {}).get("exceed_drops", 0),
        "drops_flow_packets": flow,
        "drops_random_packets": random,
    }
    if table:
        found["drops_random_bytes"] = _sum_if_known(row.get("random_drop_bytes") for row in table)
    total, octets = entry.get("total_drops"), entry.get("bytes_drops")
    if total is None and (not around.queued or ("priority" in entry and around.sum_levels("total_drops") == 0)):
        total = 0
    elif total is not None:
        total -= flow + random
    found["drops_tail_packets"] = total
    if octets is not None and flow == random == 0:
        found["drops_tail_bytes"] = octets
    nothing = {name.replace("_packets", "_bytes"): 0 for name, count in found.items() if count == 0}
    police = {} if entry.get("police") else {"drops_police_packets": 0, "drops_police_bytes": 0}
    return found | nothing | police


def _ecn_marks(red: Mapping[str, Any]) -> Row:
    """Return the packets marked by early detection, if it marks."""
    if not red.get("explicit_congestion_notification"):
        return {}
    rows = red.get("class", {}).values()
    return {
        f"random_detect_ecn_mark_{unit}": _sum_if_known(row.get(f"ecn_mark_{unit}") for row in rows)
        for unit in ("packets", "bytes")
    }


def _sum_if_known(counts: Iterable[object]) -> int | None:
    """Return the sum; None if one of the counts is unknown."""
    found = 0
    for count in counts:
        if count is None:
            return None
        found += int(str(count))
    return found


def _police(police: Mapping[str, Any]) -> Row:
    row: Row = {
        "police_cir_bps": police.get("cir_bps"),
        "police_bc_bytes": police.get("cir_bc_bytes"),
        "police_pir_bps": police.get("pir_bps"),
        "police_be_bytes": police.get("pir_be_bytes", police.get("cir_be_bytes")),
    }
    dropping = []
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
            dropping.append(counted)
    has_actions = any(police.get(colour, {}).get("actions") for colour in ("conformed", "exceeded", "violated"))
    for unit in ("packets", "bytes"):
        row[f"drops_police_{unit}"] = _sum_if_known(colour.get(unit) for colour in dropping) if has_actions else None
    return row


def _shape(entry: Mapping[str, Any], table: Mapping[str, Any]) -> Row:
    """Return the shaper's settings, from the classic generation's table if there is one."""
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
    }
