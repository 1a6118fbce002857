"""Division of a rate among the classes of a policy-map when all of them are busy.

The rules are those of the engine: `crates/qos-core/src/compile/class_tree.rs`, `weights` and `factors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qoslab.ios.device_config.normalise import class_weight_constant, flow_queues
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.policy import CLASS_DEFAULT, Amount, PolicyClass
from qoslab.model.generation import Generation
from qoslab.policy.rate import Rate

MIN_SHARE = (100 - engine_defaults.HQF_RESERVABLE_PERCENT) / 100
"""Share of the rate that HQF leaves to classes without bandwidth."""
TIME_DIVISORS = {"ms": 8_000, "us": 8_000_000}
"""Divisors that turn a rate in b/s times a time in this unit into bytes."""


@dataclass(frozen=True)
class PolicyLevel:
    """The classes of one policy-map that have queues, and the rates to divide among them."""

    generation: Generation
    classes: Sequence[PolicyClass]
    """Classes with rates and defaults filled in, including class-default."""
    base: Rate
    """Base of percentages of bandwidth."""
    capacity: Rate
    """Total rate of the classes."""
    reservable: float
    """Share of the base that the classic generation may reserve."""
    caps: Mapping[str, Rate]
    """Maximum rate of a class: its shaper or policer."""


def reserved_rate(each: PolicyClass, base: Rate) -> Rate | None:
    """Return the rate of `bandwidth` or `priority`; None if neither is configured, or if it is `remaining`."""
    for given in (each.bandwidth, each.priority):
        if given is not None and given.number is not None:
            if given.unit == "kbps":
                return Rate(given.number * 1000)
            if given.unit == "percent":
                return base.multiplied_by(given.number / 100)
    return None


def rate_of(amount: Amount, base: Rate) -> Rate:
    """Return the rate of a shaper or policer; percentages are of `base`."""
    return base.multiplied_by(amount.number / 100) if amount.unit == "percent" else Rate(float(amount.number))


def reference_rate(each: PolicyClass, base: Rate, guaranteed: Rate) -> Rate:
    """Return the rate for queue limits in time: of `bandwidth`, else of the shaper of the class or above it."""
    shaped = None if each.shape is None else rate_of(each.shape.rate, base)
    return reserved_rate(each, guaranteed) or shaped or base


def priority_limit(each: PolicyClass, base: Rate, caps: Mapping[str, Rate]) -> Rate | None:
    """Return the maximum rate of a priority class when all classes are busy; None without a limit."""
    own, cap = reserved_rate(each, base), caps.get(each.name)
    return cap if own is None else own if cap is None else own.lower(cap) or own


def rates_when_all_busy(level: PolicyLevel) -> dict[str, Rate | None]:
    """Return the rate of each class when all are busy; None if it depends on the line or has no limit."""
    priority = _priority_rates(level)
    taken = sum((each for each in priority.values() if each), Rate())
    left = level.capacity - taken
    if left.is_absolute and left.bps < 0:
        left = Rate()
    others = [each for each in level.classes if each.priority is None]
    # Weights are calculated in advance, from the rate of `priority`, without regard to a policer.
    reserved = sum((reserved_rate(each, level.base) or Rate() for each in level.classes if each.priority), Rate())
    qos = GENERATIONS[level.generation]
    if qos.minimum_and_excess:
        return priority | _excess_rates(others, level, left)
    separate = qos.separate_queues
    weights = (
        _queue_weights(others, level.base, reserved) if separate else _conversation_weights(others, level, reserved)
    )
    return priority | _divide_rate(left, weights, level.caps)


def _priority_rates(level: PolicyLevel) -> dict[str, Rate | None]:
    """Return the rates of the priority classes: their limits, or shares of a line that has less than these."""
    classes = [each for each in level.classes if each.priority]
    rates = {each.name: priority_limit(each, level.base, level.caps) for each in classes}
    left = level.capacity
    for number in sorted({each.priority.level or 1 for each in classes if each.priority}):
        names = [each.name for each in classes if each.priority and (each.priority.level or 1) == number]
        total = sum((each for name in names if (each := rates[name])), Rate())
        if left.is_absolute and total.is_absolute and total.bps > left.bps:
            part = left.bps / total.bps
            rates |= {name: each.multiplied_by(part) for name in names if (each := rates[name])}
            total = left
        left = left - total
    return rates


def _excess_rates(classes: Sequence[PolicyClass], level: PolicyLevel, left: Rate) -> dict[str, Rate | None]:
    """Return the rates of IOS-XE: the minimum of each class, and a share of the remaining rate."""
    minimums = {each.name: reserved_rate(each, level.base) or Rate() for each in classes}
    for name, cap in level.caps.items():
        if name in minimums:
            minimums[name] = cap.lower(minimums[name]) or minimums[name]
    reserved = sum(minimums.values(), Rate())
    rest = left - reserved
    if rest.is_absolute and rest.bps < 0:
        # Priority uses some of the reserved rate: the minimums share the rest.
        return _divide_rate(left, minimums, level.caps)
    weights = _excess_weights(classes)
    above = {name: cap - minimums[name] for name, cap in level.caps.items() if name in minimums}
    shares = _divide_rate(rest, weights, above)
    return {name: None if share is None else minimums[name] + share for name, share in shares.items()}


def _excess_weights(classes: Sequence[PolicyClass]) -> dict[str, Rate]:
    """Return the weights for the remaining rate: 1, or the value of `bandwidth remaining`."""
    given = {each.name: each.bandwidth for each in classes if each.bandwidth is not None}
    percent = sum(each.number for each in given.values() if each.unit == "remaining_percent")
    other = max(100 - percent, 1) / max(len(classes) - len(given), 1) if percent else engine_defaults.XE_EXCESS_WEIGHT
    weights = {}
    for each in classes:
        own = given.get(each.name)
        typed = own is not None and own.unit in ("remaining_percent", "remaining_ratio")
        weights[each.name] = Rate(float(own.number if own is not None and typed else other))
    return weights


def _queue_weights(classes: Sequence[PolicyClass], base: Rate, priority: Rate) -> dict[str, Rate]:
    """Return the weights of separate queues: the configured bandwidth; classes without it share the rest equally."""
    bandwidths = {each.name: each.bandwidth for each in classes}
    without = max(sum(each is None for each in bandwidths.values()), 1)
    given = [each for each in bandwidths.values() if each is not None]
    remaining = sum(each.number for each in given if each.unit == "remaining_percent")
    if any(each.unit == "remaining_ratio" for each in given):
        other = Rate(1.0)
    elif remaining:
        other = Rate(max(100 - remaining, 1) / without)
    else:
        reserved = sum((reserved_rate(each, base) or Rate() for each in classes), Rate())
        rest, least = base - reserved - priority, base.multiplied_by(MIN_SHARE)
        enough = rest.bps >= least.bps if rest.is_absolute and least.is_absolute else rest.line >= least.line
        other = (rest if enough else least).multiplied_by(1 / without)
    weights = {}
    for each in classes:
        own = each.bandwidth
        if own is None:
            weights[each.name] = other
        elif own.unit in ("remaining_percent", "remaining_ratio"):
            weights[each.name] = Rate(float(own.number))
        else:
            weights[each.name] = reserved_rate(each, base) or other
    return weights


def _conversation_weights(classes: Sequence[PolicyClass], level: PolicyLevel, priority: Rate) -> dict[str, Rate]:
    """Return the weights of conversations: of a class, its bandwidth; of class-default, one flow of precedence 0."""
    left = level.base.multiplied_by(level.reservable) - priority
    default = next((each for each in level.classes if each.name == CLASS_DEFAULT), None)
    queues = None if default is None or default.fair_queue is None else default.fair_queue.queues
    kbps = int(level.base.bps // 1000) if level.base.is_absolute else 10**6
    constant = class_weight_constant(queues or flow_queues(kbps))
    # A flow of weight 32384 gets as much as a class with this part of the base.
    flow = level.base.multiplied_by(constant / engine_defaults.WEIGHT_NUMERATOR)
    weights = {}
    for each in classes:
        own = each.bandwidth
        if own is not None and own.unit == "remaining_percent":
            weights[each.name] = left.multiplied_by(own.number / 100)
        else:
            weights[each.name] = reserved_rate(each, level.base) or flow
    return weights


def _divide_rate(left: Rate, weights: Mapping[str, Rate], caps: Mapping[str, Rate]) -> dict[str, Rate | None]:
    """Divide a rate by weights; other classes get the part that exceeds a class's cap."""
    shares: dict[str, Rate | None] = {}
    open_ones = dict(weights)
    while open_ones:
        total = sum(open_ones.values(), Rate())
        tried = {name: _weighted_share(left, weight, total) for name, weight in open_ones.items()}
        capped = [name for name, share in tried.items() if share and name in caps and share.lower(caps[name]) != share]
        if not capped:
            return shares | tried
        for name in capped:
            shares[name] = caps[name]
            left -= caps[name]
            del open_ones[name]
    return shares


def _weighted_share(left: Rate, weight: Rate, total: Rate) -> Rate | None:
    ratio = weight.ratio(total)
    if ratio is not None:
        return left.multiplied_by(ratio)
    return weight if total == left else None
