"""Values of an engine configuration with the defaults of its generation: rates, bursts, limits and shares.

The rules are those of the engine: `crates/qos-core/src/compile/`, `parameters.rs`, `bandwidth.rs`, `queue_limit.rs` and
`class_tree.rs`. All rates are b/s of the bytes that a router counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from qoslab.ios.device_config.normalise import class_weight_constant, flow_queues
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.generations import GENERATIONS, QosGeneration
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.model.generation import Generation

Config = Mapping[str, Any]
GREATEST_POLICE_BURST = 512_000_000
"""Bytes."""


@dataclass(frozen=True, slots=True)
class PoliceValues:
    """The effective values of a policer."""

    algorithm: Literal["single", "single-rate", "two-rate"]
    """One bucket; RFC 2697; RFC 2698."""
    cir_bps: int
    bc_bytes: int
    pir_bps: int
    be_bytes: int
    conform: tuple[Config, ...]
    exceed: tuple[Config, ...]
    violate: tuple[Config, ...]
    dynamic: bool


@dataclass(frozen=True, slots=True)
class ShapeValues:
    """The effective values of a shaper."""

    rate_bps: int
    """The rate that it enforces; for `shape peak`, the peak rate above the committed one."""
    cir_bps: int
    increment_bytes: int
    """Credit added in each interval."""
    limit_bytes: int
    """Maximum credit."""
    interval_ms: float
    spaced: bool
    """True if packets leave evenly spaced, one by one (IOS-XE)."""


def rate_bps(spec: Config, base_bps: int) -> int:
    """Return a configured rate in b/s; `base_bps` is the base of a percentage."""
    return int(spec["bps"]) if "bps" in spec else base_bps * int(spec["percent"]) // 100


def _default_police_burst(bps: int) -> int:
    least = max(bps // engine_defaults.POLICE_BURST_DIVISOR, engine_defaults.POLICE_LEAST_BURST)
    return min(least, GREATEST_POLICE_BURST)


def _police_burst(burst: Config | None, bps: int) -> int:
    if burst is None:
        return _default_police_burst(bps)
    return int(burst["bytes"]) if "bytes" in burst else bps * int(burst["ms"]) // 8000


def police_values(police: Config, base_bps: int) -> PoliceValues:
    """Return the values of a policer, with defaults filled in."""
    cir = rate_bps(police["cir"], base_bps)
    pir = None if police.get("pir") is None else rate_bps(police["pir"], base_bps)
    bc = _police_burst(police.get("bc"), cir)
    two_buckets = pir is not None or police.get("violate") is not None or police.get("be") is not None
    be = 0
    if pir is not None:
        be = _police_burst(police.get("be"), pir)
    elif two_buckets:
        be = bc if police.get("be") is None else _police_burst(police["be"], cir)
    exceed = tuple(police.get("exceed") or ({"action": "drop"},))
    return PoliceValues(
        "two-rate" if pir is not None else "single-rate" if two_buckets else "single",
        cir,
        bc,
        pir or 0,
        be,
        tuple(police.get("conform") or ({"action": "transmit"},)),
        exceed,
        tuple(police.get("violate") or exceed),
        police.get("dynamic") is not None,
    )


def shape_values(shape: Config, base_bps: int, generation: Generation) -> ShapeValues:
    """Return the values of a shaper, with defaults filled in."""
    qos = GENERATIONS[generation]
    cir = rate_bps(shape["rate"], base_bps)
    interval_ms = max(qos.shape_interval_ms, qos.shape_least_burst_bits * 1000 // cir)
    bc = _shape_burst(shape.get("bc"), cir, cir * interval_ms // 1000)
    be = _shape_burst(shape.get("be"), cir, bc)
    peak = shape["mode"] == "peak"
    rate = cir + cir * be // bc if peak else cir
    spaced = qos.tx_ring is not None
    if spaced:
        increment, limit = rate * engine_defaults.XE_SHAPE_TICK_US // 8_000_000, engine_defaults.XE_SHAPE_CREDIT
        return ShapeValues(rate, cir, increment, limit, engine_defaults.XE_SHAPE_TICK_US / 1000, spaced=True)
    increment = (bc + be if peak else bc) // 8
    return ShapeValues(rate, cir, increment, (bc + be) // 8, bc * 1000 / cir, spaced=False)


def _shape_burst(burst: Config | None, cir_bps: int, default_bits: int) -> int:
    if burst is None:
        return default_bits
    return int(burst["bits"]) if "bits" in burst else cir_bps * int(burst["ms"]) // 1000


def reserved_bps(each: Config, base_bps: int) -> int | None:
    """Return the rate of `bandwidth` or `priority`; None for `remaining`, or if no rate is configured."""
    bandwidth, priority = each.get("bandwidth"), each.get("priority")
    if bandwidth is not None and "kbps" in bandwidth:
        return int(bandwidth["kbps"]) * 1000
    if bandwidth is not None and "percent" in bandwidth:
        return base_bps * int(bandwidth["percent"]) // 100_000 * 1000
    if priority is not None and priority.get("number") is not None:
        number = int(priority["number"])
        return number * 1000 if priority["unit"] == "kbps" else base_bps * number // 100_000 * 1000
    return None


def has_own_queue(each: Config) -> bool:
    """Return whether a class itself has a queue, regardless of its child policy."""
    names = ("bandwidth", "priority", "shape", "queue_limit", "fair_queue", "random_detect")
    return bool(each.get("queue_thresholds")) or any(each.get(name) is not None for name in names)


def has_queueing_policy(config: Config, name: str) -> bool:
    """Return whether a policy-map or one below it has queues."""
    return any(has_queueing_class(config, each) for each in config["policy_maps"][name]["classes"])


def has_queueing_class(config: Config, each: Config) -> bool:
    """Return whether a class or its child policy has queues."""
    child = each.get("service_policy")
    return has_own_queue(each) or (child is not None and has_queueing_policy(config, child))


def ordered_classes(config: Config, name: str) -> list[Config]:
    """Return the classes of a policy-map, with class-default last."""
    classes: list[Config] = list(config["policy_maps"][name]["classes"])
    default = next((each for each in classes if each["name"] == CLASS_DEFAULT), {"name": CLASS_DEFAULT})
    return [*(each for each in classes if each["name"] != CLASS_DEFAULT), default]


@dataclass(frozen=True, slots=True)
class Level:
    """A policy-map's place in a hierarchy, for the shares of its classes."""

    generation: Generation
    base_bps: int
    """Base of percentages of `bandwidth` and `priority`."""
    reservable_percent: int
    """Part of the base that classes may reserve (classic)."""

    @property
    def qos(self) -> QosGeneration:
        """The rules of the generation."""
        return GENERATIONS[self.generation]


def class_weights(level: Level, classes: Sequence[Config], queued: Sequence[bool]) -> list[int]:
    """Return the weights of classes without priority in the rate that priority leaves, in any common unit.

    `queued` is true for a class with a queue. A class with priority, or without a queue, has no share: its value is
    that of a class without bandwidth.
    """
    if level.qos.separate_queues:
        return _queue_weights(level, classes, queued)
    return _conversation_weights(level, classes)


def _queue_weights(level: Level, classes: Sequence[Config], queued: Sequence[bool]) -> list[int]:
    given = [each.get("bandwidth") for each in classes]
    takes_part = [
        each["name"] == CLASS_DEFAULT or (each.get("priority") is None and own)
        for each, own in zip(classes, queued, strict=True)
    ]
    without = max(sum(part and own is None for part, own in zip(takes_part, given, strict=True)), 1)
    remaining = sum(own["remaining_percent"] for own in given if own is not None and "remaining_percent" in own)
    excess = level.qos.minimum_and_excess
    if any(own is not None and "remaining_ratio" in own for own in given):
        other = 1_000_000
    elif remaining:
        other = max(100 - remaining, 1) * 1_000_000 // without
    elif excess:
        other = engine_defaults.XE_EXCESS_WEIGHT * 1_000_000
    else:
        reserved = sum(reserved_bps(each, level.base_bps) or 0 for each in classes)
        least = level.base_bps * (100 - (level.qos.reservable_percent or 0)) // 100
        other = max(level.base_bps - reserved, least) // without
    found = []
    for each, own in zip(classes, given, strict=True):
        if own is None or (excess and ("kbps" in own or "percent" in own)):
            found.append(other)
        elif "remaining_percent" in own:
            found.append(own["remaining_percent"] * 1_000_000)
        elif "remaining_ratio" in own:
            found.append(own["remaining_ratio"] * 1_000_000)
        else:
            found.append(reserved_bps(each, level.base_bps) or other)
    return [max(each, 1) for each in found]


def _conversation_weights(level: Level, classes: Sequence[Config]) -> list[int]:
    """Weights of conversations: a class by its bandwidth, class-default as one flow of precedence 0."""
    default = classes[-1]
    queues = (default.get("fair_queue") or {}).get("queues") or flow_queues(level.base_bps // 1000)
    flow = level.base_bps * class_weight_constant(queues) // engine_defaults.WEIGHT_NUMERATOR
    priority = sum(reserved_bps(each, level.base_bps) or 0 for each in classes if each.get("priority") is not None)
    left = max(level.base_bps * level.reservable_percent // 100 - priority, 0)
    found = []
    for each in classes:
        own = each.get("bandwidth")
        if own is not None and "remaining_percent" in own:
            found.append(left * own["remaining_percent"] // 100)
        else:
            found.append(reserved_bps(each, level.base_bps) or flow)
    return [max(each, 1) for each in found]


def red_row_values(red: Config, value: int, generation: Generation, limit: int | None) -> tuple[int, int, int]:
    """Return minimum threshold, maximum threshold and mark probability denominator of a precedence or code point.

    `limit` is the queue limit if default thresholds are derived from it, or if thresholds are percentages of it.
    """
    from qoslab.ios.device_config.normalise import red_thresholds
    from qoslab.ios.model.policy import RandomDetect, RedThresholds

    typed = tuple(
        (each["value"], RedThresholds(each["min"], each["max"], each.get("denominator")))
        for each in red.get("thresholds", ())
    )
    model = RandomDetect(basis=red["basis"], unit=red.get("unit"), thresholds=typed)
    found = red_thresholds(model, value, generation, limit)
    return found.minimum, found.maximum, found.denominator or engine_defaults.RANDOM_DETECT_DENOMINATOR
