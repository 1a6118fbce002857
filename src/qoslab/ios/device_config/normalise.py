"""Normalisation: the device model with defaults spelled out, so that equivalent configurations are equal.

Derived values are those of `crates/qos-core`: `compile/parameters.rs` and `config/defaults.rs` there name the sources.
"""

from __future__ import annotations

from dataclasses import replace

from qoslab.ios.commands.police import DEFAULT_CONFORM, DEFAULT_EXCEED
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Device
from qoslab.ios.model.generations import GENERATIONS, QosGeneration
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
    RandomDetect,
    RedThresholds,
    Shape,
)
from qoslab.model.generation import Generation

GREATEST_POLICE_BURST = 512_000_000
"""Bytes."""
EF = 46
ASSURED_FORWARDING = range(1, 5)
"""Classes of assured forwarding (RFC 2597)."""


def fill_in_defaults(device: Device) -> Device:
    """Return a copy with omitted values replaced by the router's defaults.

    Unordered lines, `match` and `set`, are in a fixed order.
    """
    made = device.copy()
    made.class_maps = {name: _normalise_class_map(each) for name, each in device.class_maps.items()}
    made.policy_maps = {name: _normalise_policy_map(each, device) for name, each in device.policy_maps.items()}
    for interface in made.interfaces.values():
        if interface.max_reserved_bandwidth == engine_defaults.CLASSIC_RESERVABLE_PERCENT:
            interface.max_reserved_bandwidth = None
    return made


def _normalise_class_map(class_map: ClassMap) -> ClassMap:
    criteria = (replace(each, values=tuple(sorted(each.values))) for each in class_map.criteria)
    return replace(class_map, criteria=tuple(sorted(criteria, key=_criterion_rank)))


def _criterion_rank(criterion: Criterion) -> str:
    return repr(criterion)


def _normalise_policy_map(policy: PolicyMap, device: Device) -> PolicyMap:
    return replace(policy, classes=tuple(_normalise_class(each, device.generation) for each in policy.classes))


def _normalise_class(each: PolicyClass, generation: Generation) -> PolicyClass:
    return replace(
        each,
        police=None if each.police is None else _normalise_police(each.police),
        shape=None if each.shape is None else _normalise_shape(each.shape, GENERATIONS[generation]),
        shape_buffers=None if each.shape_buffers == engine_defaults.GTS_BUFFERS else each.shape_buffers,
        priority=None if each.priority is None else _normalise_priority(each.priority, GENERATIONS[generation]),
        queue_limit=None if each.queue_limit == _default_limit(GENERATIONS[generation]) else each.queue_limit,
        marks=tuple(sorted(each.marks, key=lambda mark: mark.field)),
    )


def _default_limit(qos: QosGeneration) -> QueueLimit | None:
    """Return the default queue limit if it does not depend on a rate."""
    return QueueLimit(engine_defaults.QUEUE_LIMIT) if qos.queue_limit_ms is None else None


def _normalise_police(police: Police) -> Police:
    two_rate = police.pir is not None
    two_buckets = two_rate or police.violate is not None or police.be is not None
    bc = police.bc if police.dynamic is not None else _default_police_burst(police.bc, police.cir)
    be = police.be
    if police.pir is not None:
        be = _default_police_burst(police.be, police.pir)
    elif two_buckets:
        be = bc if be is None else _default_police_burst(be, police.cir)
    exceed = _sort_actions(police.exceed or DEFAULT_EXCEED)
    return replace(
        police,
        form="cir",
        bc=bc,
        be=be,
        conform=_sort_actions(police.conform or DEFAULT_CONFORM),
        exceed=exceed,
        violate=_sort_actions(police.violate) if police.violate is not None else exceed if two_buckets else None,
    )


def _sort_actions(actions: tuple[PoliceAction, ...]) -> tuple[PoliceAction, ...]:
    return tuple(sorted(actions, key=lambda each: (each.action, each.value or 0)))


def _default_police_burst(burst: Amount | None, rate: Amount) -> Amount | None:
    if rate.unit != "bps":
        return burst
    if burst is None:
        least = max(rate.number // engine_defaults.POLICE_BURST_DIVISOR, engine_defaults.POLICE_LEAST_BURST)
        return Amount(min(least, GREATEST_POLICE_BURST), "bytes")
    return Amount(rate.number * burst.number // 8000, "bytes") if burst.unit == "ms" else burst


def _normalise_shape(shape: Shape, qos: QosGeneration) -> Shape:
    if shape.rate.unit != "bps" or shape.rate.number == 0:
        return replace(shape, be=shape.be or shape.bc)
    rate = shape.rate.number
    bc = _burst_bits(shape.bc, rate)
    if bc is None:
        interval = max(qos.shape_interval_ms, qos.shape_least_burst_bits * 1000 // rate)
        bc = Amount(rate * interval // 1000, "bits")
    return replace(shape, bc=bc, be=_burst_bits(shape.be, rate) or bc)


def _burst_bits(burst: Amount | None, rate: int) -> Amount | None:
    if burst is None or burst.unit != "ms":
        return burst
    return Amount(rate * burst.number // 1000, "bits")


def _normalise_priority(priority: Priority, qos: QosGeneration) -> Priority:
    if priority.unit != "kbps" or priority.number is None or priority.burst_bytes is not None:
        return priority
    rounded_kbps = priority.number - priority.number % qos.priority_burst_step_kbps
    return replace(priority, burst_bytes=rounded_kbps * engine_defaults.PRIORITY_BURST_MS // 8)


def resolve_percentages(
    each: PolicyClass, rate_bps: int | None, guaranteed_bps: int | None, generation: Generation
) -> PolicyClass:
    """Return a class with percentages converted to rates and defaults filled in, as in the engine.

    `rate_bps` is the base of percentages of `police` and `shape`, `guaranteed_bps` that of `bandwidth` and `priority`;
    without a base they are unchanged.
    """
    police, shape = each.police, each.shape
    if police is not None:
        pir = None if police.pir is None else _absolute_rate(police.pir, rate_bps)
        police = replace(police, cir=_absolute_rate(police.cir, rate_bps), pir=pir)
    if shape is not None:
        shape = replace(shape, rate=_absolute_rate(shape.rate, rate_bps))
    bandwidth, priority = each.bandwidth, each.priority
    if guaranteed_bps is not None and bandwidth is not None and bandwidth.unit == "percent":
        bandwidth = replace(bandwidth, unit="kbps", number=guaranteed_bps * bandwidth.number // 100_000)
    if guaranteed_bps is not None and priority is not None and priority.unit == "percent":
        priority = replace(priority, unit="kbps", number=guaranteed_bps * (priority.number or 0) // 100_000)
    made = replace(each, police=police, shape=shape, bandwidth=bandwidth, priority=priority)
    made = _normalise_class(made, generation)
    # Defaults that `fill_in_defaults` leaves out.
    return replace(made, queue_limit=each.queue_limit, shape_buffers=each.shape_buffers)


def _absolute_rate(amount: Amount, base_bps: int | None) -> Amount:
    if amount.unit != "percent" or base_bps is None:
        return amount
    return Amount(base_bps * amount.number // 100, "bps")


def red_thresholds(red: RandomDetect, value: int, generation: Generation, limit: int | None) -> RedThresholds:
    """Return the thresholds of a precedence or code point, in packets, or in the unit of `limit`.

    `limit` is the queue limit if thresholds are derived from it or are in percent of it.
    """
    denominator = engine_defaults.RANDOM_DETECT_DENOMINATOR
    typed = dict(red.thresholds).get(value, red.aggregate)
    if typed is not None and red.unit == "percent" and limit is not None:
        minimum, maximum = (limit * each // 100 for each in (typed.minimum, typed.maximum))
        return RedThresholds(minimum, maximum, typed.denominator or denominator)
    if typed is not None:
        return replace(typed, denominator=typed.denominator or denominator)
    by_dscp = red.basis == "dscp"
    if limit is not None:
        greatest = max(limit // 2, 1)
        return RedThresholds(greatest * _red_parts(value, by_dscp=by_dscp) // 16, greatest, denominator)
    qos = GENERATIONS[generation]
    least, by_drop = qos.random_detect_min, qos.random_detect_min_by_dscp
    minimum = _red_least_by_dscp(value, least, by_drop) if by_dscp else least[value]
    return RedThresholds(minimum, engine_defaults.RANDOM_DETECT_MAX, denominator)


def _red_parts(value: int, *, by_dscp: bool) -> int:
    """Return the minimum threshold in sixteenths of the maximum (`random_detect_by_limit`)."""
    if not by_dscp:
        return 8 + value
    above, drop = divmod(value, 8)
    if value == EF:
        return 15
    if above in ASSURED_FORWARDING and drop in (2, 4, 6):
        return 16 - drop
    return 8 + above if drop == 0 else 8


def _red_least_by_dscp(value: int, by_precedence: tuple[int, ...], by_drop: tuple[tuple[int, ...], int]) -> int:
    """Return the minimum threshold of a code point in packets (`random_detect_min_by_dscp`)."""
    above, drop = divmod(value, 8)
    if value == EF:
        return by_drop[1]
    if above in ASSURED_FORWARDING and drop in (2, 4, 6):
        return by_drop[0][drop // 2 - 1]
    return by_precedence[above] if above and drop == 0 else by_precedence[0]


def flow_queues(bandwidth_kbps: int) -> int:
    """Return the number of flow queues of weighted fair queueing (`dynamic_queues`)."""
    return next(
        (queues for most, queues in ((64, 16), (128, 32), (256, 64), (512, 128)) if bandwidth_kbps <= most), 256
    )


def class_weight_constant(queues: int) -> int:
    """Return the weight constant of classes for a number of flow queues. Unconfirmed."""
    table = ((32, 64), (64, 57), (128, 30), (256, 16), (512, 8), (1024, 4), (2048, 2))
    return next((constant for most, constant in table if queues <= most), 1)
