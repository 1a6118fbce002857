"""The device model with its defaults spelled out, so that two ways to ask for the same are equal.

What a router derives is what `crates/qos-core` has in force: `compile/parameters.rs` and `config/defaults.rs` there
tell the sources.
"""

from __future__ import annotations

from dataclasses import replace

from qoslab.ios.commands.police import DEFAULT_CONFORM, DEFAULT_EXCEED
from qoslab.ios.model import figures
from qoslab.ios.model.device import Device, Generation
from qoslab.ios.model.policy import (
    Amount,
    ClassMap,
    Criterion,
    Police,
    PoliceAction,
    PolicyClass,
    PolicyMap,
    Priority,
    QueueLimit,
    Shape,
)

GREATEST_POLICE_BURST = 512_000_000
"""Bytes."""


def spelled_out(device: Device) -> Device:
    """Return a copy in which what is left out is what the router puts in its place.

    The order of what has no order, `match` and `set` lines, is always the same.
    """
    made = device.copy()
    made.class_maps = {name: _class_map(each) for name, each in device.class_maps.items()}
    made.policy_maps = {name: _policy_map(each, device) for name, each in device.policy_maps.items()}
    for interface in made.interfaces.values():
        if interface.max_reserved_bandwidth == figures.CLASSIC_RESERVABLE_PERCENT:
            interface.max_reserved_bandwidth = None
    return made


def _class_map(class_map: ClassMap) -> ClassMap:
    criteria = (replace(each, values=tuple(sorted(each.values))) for each in class_map.criteria)
    return replace(class_map, criteria=tuple(sorted(criteria, key=_rank)))


def _rank(criterion: Criterion) -> str:
    return repr(criterion)


def _policy_map(policy: PolicyMap, device: Device) -> PolicyMap:
    return replace(policy, classes=tuple(_class(each, device) for each in policy.classes))


def _class(each: PolicyClass, device: Device) -> PolicyClass:
    return replace(
        each,
        police=None if each.police is None else _police(each.police),
        shape=None if each.shape is None else _shape(each.shape, device.generation),
        shape_buffers=None if each.shape_buffers == figures.GTS_BUFFERS else each.shape_buffers,
        priority=None if each.priority is None else _priority(each.priority),
        queue_limit=None if each.queue_limit == QueueLimit(figures.QUEUE_LIMIT) else each.queue_limit,
        marks=tuple(sorted(each.marks, key=lambda mark: mark.field)),
    )


def _police(police: Police) -> Police:
    two_rate = police.pir is not None
    two_buckets = two_rate or police.violate is not None or police.be is not None
    bc = police.bc if police.dynamic is not None else _police_burst(police.bc, police.cir)
    be = police.be
    if police.pir is not None:
        be = _police_burst(police.be, police.pir)
    elif two_buckets:
        be = bc if be is None else _police_burst(be, police.cir)
    exceed = _ordered(police.exceed or DEFAULT_EXCEED)
    return replace(
        police,
        form="cir",
        bc=bc,
        be=be,
        conform=_ordered(police.conform or DEFAULT_CONFORM),
        exceed=exceed,
        violate=_ordered(police.violate) if police.violate is not None else exceed if two_buckets else None,
    )


def _ordered(actions: tuple[PoliceAction, ...]) -> tuple[PoliceAction, ...]:
    return tuple(sorted(actions, key=lambda each: (each.action, each.value or 0)))


def _police_burst(burst: Amount | None, rate: Amount) -> Amount | None:
    if rate.unit != "bps":
        return burst
    if burst is None:
        least = max(rate.number // figures.POLICE_BURST_DIVISOR, figures.POLICE_LEAST_BURST)
        return Amount(min(least, GREATEST_POLICE_BURST), "bytes")
    return Amount(rate.number * burst.number // 8000, "bytes") if burst.unit == "ms" else burst


def _shape(shape: Shape, generation: Generation) -> Shape:
    if shape.rate.unit != "bps" or shape.rate.number == 0:
        return replace(shape, be=shape.be or shape.bc)
    rate = shape.rate.number
    bc = _bits(shape.bc, rate)
    if bc is None:
        interval = figures.HQF_SHAPE_INTERVAL_MS
        if generation == "classic":
            interval = max(figures.CLASSIC_SHAPE_INTERVAL_MS, figures.CLASSIC_LOW_RATE_BURST_BITS * 1000 // rate)
        bc = Amount(rate * interval // 1000, "bits")
    return replace(shape, bc=bc, be=_bits(shape.be, rate) or bc)


def _bits(burst: Amount | None, rate: int) -> Amount | None:
    if burst is None or burst.unit != "ms":
        return burst
    return Amount(rate * burst.number // 1000, "bits")


def _priority(priority: Priority) -> Priority:
    if priority.unit != "kbps" or priority.number is None or priority.burst_bytes is not None:
        return priority
    return replace(priority, burst_bytes=priority.number * figures.PRIORITY_BURST_MS // 8)
