"""Queues of classes as qdiscs: pfifo, bfifo, sfq and red, with the effective limits of a router."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qoslab.ios.device_config.normalise import flow_queues
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.model.generation import Generation
from qoslab.tc.decision_lists import DecisionList
from qoslab.tc.engine_values import Config, has_own_queue, red_row_values
from qoslab.tc.fidelity import FidelityNotes
from qoslab.tc.objects import Origin

Options = tuple[tuple[str, int | float | None], ...]
SFQ_GREATEST_DEPTH = 127
"""Packets of a flow queue of sfq (SFQ_MAX_DEPTH)."""
DEFAULT_SFQ_LIMIT = 32_512
"""Total limit of all flows if a router has none: the limits of the flow queues apply."""
MAX_RED_BURST = 100_000


@dataclass(frozen=True, slots=True)
class Leaf:
    """A qdisc of a leaf class."""

    kind: str
    options: Options


@dataclass(frozen=True, slots=True)
class LeafContext:
    """Context of a class that determines its queue."""

    generation: Generation
    rate_bps: int
    """Reference rate for time-based limits and for default limits."""
    bandwidth_kbps: int
    """The interface's `bandwidth`."""
    frame_bytes: int
    """Bytes of a full packet as counted by the router."""
    origin: Origin
    decision: DecisionList | None = None
    """Packets of the class; None for class-default."""


def leaf_qdisc(each: Config, place: LeafContext, notes: FidelityNotes) -> Leaf:
    """Return the qdisc of a class without priority."""
    qos = GENERATIONS[place.generation]
    red, fair = each.get("random_detect"), each.get("fair_queue")
    if each.get("queue_thresholds"):
        field = each["queue_thresholds"][0]["field"]
        notes.add_refused(place.origin, f"queue-limit {field}", "a kernel FIFO has one limit for all packets")
    if red is not None and fair is not None:
        notes.add_refused(place.origin, "random-detect", "red has one queue, fair-queue needs several")
        return Leaf("pfifo", (("limit", engine_defaults.QUEUE_LIMIT),))
    if red is not None:
        return _red_leaf(each, red, place, notes)
    if qos.separate_queues:
        return _fair_leaf(each, fair, place, notes) if fair is not None else fifo_leaf(each, place, notes)
    without = each["name"] == CLASS_DEFAULT and each.get("bandwidth") is None
    if fair is not None or each.get("shape") is not None or without:
        return _weighted_fair_leaf(each, place, notes)
    return fifo_leaf(each, place, notes)


def fifo_leaf(each: Config, place: LeafContext, notes: FidelityNotes) -> Leaf:
    """Return the qdisc of a first-in-first-out queue."""
    unit, limit = queue_limit(each, place)
    if unit == "bytes":
        notes.add_exact(place.origin, "queue-limit", f"bfifo of {limit} bytes")
        return Leaf("bfifo", (("limit", limit),))
    if has_own_queue(each):
        notes.add_exact(place.origin, "queue-limit", f"pfifo of {limit} packets")
    return Leaf("pfifo", (("limit", limit),))


def queue_limit(each: Config, place: LeafContext) -> tuple[str, int]:
    """Return unit (`packets`, `bytes`) and limit of a class's queue, as configured or by default."""
    qos = GENERATIONS[place.generation]
    given: Mapping[str, int] | None = each.get("queue_limit")
    if given is not None:
        ((unit, number),) = given.items()
        if unit == "packets":
            return "packets", number
        per_byte = {"bytes": None, "ms": 8000, "us": 8_000_000}[unit]
        return "bytes", number if per_byte is None else max(place.rate_bps * number // per_byte, 1)
    packets = qos.queue_limit(place.rate_bps)
    red = each.get("random_detect") or {}
    if red.get("unit") in ("bytes", "ms", "us"):
        in_time = qos.queue_limit_ms is not None
        return (
            "bytes",
            packets * engine_defaults.XE_QUEUE_LIMIT_PACKET if in_time else engine_defaults.QUEUE_LIMIT_BYTES,
        )
    return "packets", packets


def _fair_leaf(each: Config, fair: Config, place: LeafContext, notes: FidelityNotes) -> Leaf:
    qos = GENERATIONS[place.generation]
    _, limit = queue_limit(each, place)
    flows = fair.get("queues") or qos.class_flow_queues
    depth = fair.get("queue_limit") or max(limit // engine_defaults.FLOW_LIMIT_DIVISOR, 1)
    total = limit if qos.minimum_and_excess else min(depth * flows, DEFAULT_SFQ_LIMIT)
    text = f"sfq with {flows} flow queues of {depth} packets; equal shares in bytes, flows by another hash"
    if depth > SFQ_GREATEST_DEPTH:
        text = f"sfq with {flows} flow queues of {SFQ_GREATEST_DEPTH} packets, the most it has, instead of {depth}"
        depth = SFQ_GREATEST_DEPTH
    notes.add_approximate(place.origin, "fair-queue", text)
    return _sfq_leaf(total, depth, flows, place)


def _sfq_leaf(limit: int, depth: int, flows: int, place: LeafContext) -> Leaf:
    # There cannot be more simultaneous flows than packets.
    most = min(flows, limit)
    options = (("limit", limit), ("depth", depth), ("flows", most), ("divisor", flows), ("quantum", place.frame_bytes))
    return Leaf("sfq", options)


def _weighted_fair_leaf(each: Config, place: LeafContext, notes: FidelityNotes) -> Leaf:
    """Return the qdisc for the flows of a classic class; class-default has flow queues even without `fair-queue`."""
    given: Mapping[str, int] = each.get("queue_limit") or {}
    threshold = given.get("packets", engine_defaults.CONGESTIVE_DISCARD_THRESHOLD)
    flows = (each.get("fair_queue") or {}).get("queues") or flow_queues(place.bandwidth_kbps)
    text = (
        f"sfq with {flows} flow queues and {threshold} packets in all: flows have equal shares, IOS weights them by "
        "precedence (1 to 8)"
    )
    if each.get("shape") is None:
        text += "; with n busy flows IOS gives the class n times the share that one flow has here"
    notes.add_approximate(place.origin, "fair-queue", text)
    return _sfq_leaf(threshold, min(threshold, SFQ_GREATEST_DEPTH), flows, place)


def _red_leaf(each: Config, red: Config, place: LeafContext, notes: FidelityNotes) -> Leaf:
    """Return red with the curve for the possible packets of the class, or else the curve with the least threshold."""
    qos = GENERATIONS[place.generation]
    unit, limit = queue_limit(each, place)
    in_bytes = unit == "bytes"
    known = limit if in_bytes or qos.random_detect_by_limit or red.get("unit") == "percent" else None
    curves = {
        red_row_values(red, value, place.generation, known) for value in _possible_values(red["basis"], place.decision)
    }
    typed = red.get("unit") if red.get("thresholds") else None
    per_byte = {"ms": 8000, "us": 8_000_000}.get(typed or "")
    minimum, maximum, denominator = min(curves)
    size = 1 if in_bytes else place.frame_bytes
    if per_byte is not None:
        minimum, maximum = (place.rate_bps * each // per_byte for each in (minimum, maximum))
    least, most = max(minimum * size, 1), max(maximum * size, minimum * size + 1)
    weight = red.get("exponential_weight") or engine_defaults.RANDOM_DETECT_WEIGHT
    burst = red_burst(least, place.frame_bytes, weight)
    texts = [f"red with thresholds of {least} and {most} bytes, 1/{denominator}; the mean ages while the line is idle"]
    if len(curves) > 1:
        texts.append(f"one curve instead of {len(curves)} by {red['basis']}")
    if not in_bytes:
        texts.append(f"packets count by their bytes, {place.frame_bytes} as one")
    notes.add_approximate(place.origin, "random-detect", "; ".join(texts))
    if burst is None:
        notes.add_refused(
            place.origin, "random-detect exponential-weighting-constant", f"red cannot have {weight} here"
        )
        burst = 1
    options: list[tuple[str, int | float | None]] = [
        ("limit", max(limit * size, most + 1)),
        ("min", least),
        ("max", most),
        ("avpkt", place.frame_bytes),
        ("burst", burst),
        ("bandwidth", place.rate_bps),
        ("probability", round(1 / denominator, 9)),
    ]
    if red.get("ecn"):
        options.append(("ecn", None))
    return Leaf("red", tuple(options))


def _possible_values(basis: str, decision: DecisionList | None) -> Sequence[int]:
    """Return the precedences or code points that packets of a class can have."""
    count, shift = (64, 2) if basis == "dscp" else (8, 5)
    if decision is None or decision.default:
        return range(count)
    members = [row.packets.dsfield for row in decision.rows if row.member]
    if any(each is None or each[1] not in (0xFC, 0xE0) for each in members):
        return range(count)
    found = set()
    for value, mask in (each for each in members if each is not None):
        found |= {one for one in range(count) if ((one << shift) ^ value) & mask & (0xFF << shift) & 0xFF == 0}
    return sorted(found) or range(count)


def red_burst(minimum_bytes: int, packet_bytes: int, weight: int) -> int | None:
    """Return the `burst` for which tc-red(8) averages with weight 2^-weight; None if there is none.

    tc uses the least weight W with `burst + 1 - min/avpkt <= (1 - (1 - 2^-W)^burst) * 2^W` (tc_red_eval_ewma).
    """
    low, high = 1, MAX_RED_BURST
    while low < high:
        middle = (low + high) // 2
        found = red_weight(minimum_bytes, packet_bytes, middle)
        if found is not None and found < weight:
            low = middle + 1
        else:
            high = middle
    return low if red_weight(minimum_bytes, packet_bytes, low) == weight else None


def red_weight(minimum_bytes: int, packet_bytes: int, burst: int) -> int | None:
    """Return the averaging weight that tc-red(8) uses for a burst; None if it refuses the burst."""
    least = burst + 1 - minimum_bytes / packet_bytes
    if least < 1:
        return 0
    for weight in range(1, 32):
        part: Any = 2.0**-weight
        if least <= (1 - (1 - part) ** burst) / part:
            return weight
    return None
