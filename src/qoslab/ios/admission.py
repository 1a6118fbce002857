"""What IOS refuses about a policy as a whole: combinations of actions, wrong directions, too much bandwidth."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.device import Device, Interface
from qoslab.ios.grammar import RejectedError
from qoslab.ios.policy import CLASS_DEFAULT, PolicyClass, PolicyMap

DEFAULT_MAX_RESERVED_PERCENT = 75
"""Classic generation: share of the interface bandwidth that classes may reserve in all."""
MAX_SUM_PERCENT = 99
"""Later generation: what classes may reserve in all; the rest is class-default's."""
MAX_LEVELS = 3
"""Levels of a policy hierarchy."""

# Default `bandwidth` of an interface in kbit/s. Serial: T1, the documented default of IOS.
DEFAULT_BANDWIDTH_KBPS = {
    "Ethernet": 10_000,
    "FastEthernet": 100_000,
    "GigabitEthernet": 1_000_000,
    "TenGigabitEthernet": 10_000_000,
    "Serial": 1544,
}

SUM_EXCEEDS_99 = "Sum total of class bandwidths exceeds 99 percent"
# The wording of the following refusals is modelled on IOS, not taken from a printout.
OUTPUT_ONLY = "CBWFQ : Can be enabled as an output feature only"
SHAPE_OUTPUT_ONLY = "GTS : Can be enabled as an output feature only"
MIXED_UNITS = "All classes with bandwidth should have consistent units"
BANDWIDTH_AND_PRIORITY = "bandwidth and priority can not be configured in the same class"
FAIR_QUEUE_AND_PRIORITY = "fair-queue and priority can not be configured in the same class"
FAIR_QUEUE_NOT_DEFAULT = "fair-queue can only be configured in class class-default"
RED_NEEDS_QUEUE = "random-detect needs bandwidth or shape in the class"
DSCP_AND_PRECEDENCE = "set dscp and set precedence can not be configured in the same class"
# [I] Up to 12.4(15)T a child could queue below a shaper only; the words are remembered, not read.
HIERARCHY_NEEDS_SHAPER = "CBWFQ : Hierarchy supported only if shaping is configured in this class"
PRIORITY_IN_DEFAULT = "priority can not be configured in class class-default"


def interface_bandwidth_kbps(interface: Interface) -> int:
    """Return the configured `bandwidth`, or the default of the interface's type; on a switch that of a forced speed."""
    if interface.bandwidth_kbps is not None:
        return interface.bandwidth_kbps
    if interface.port is not None and interface.speed != "auto":
        return 1000 * int(interface.speed)
    return DEFAULT_BANDWIDTH_KBPS[interface.kind]


def descendants(device: Device, policy: PolicyMap) -> Iterator[PolicyMap]:
    """Yield the policy-map and, below it, every child."""
    yield policy
    for each in policy.classes:
        if each.service_policy is not None and each.service_policy in device.policy_maps:
            yield from descendants(device, device.policy_maps[each.service_policy])


def levels(device: Device, policy: PolicyMap) -> int:
    """Return how many levels the hierarchy below `policy` has, itself included."""
    below = [
        levels(device, device.policy_maps[each.service_policy])
        for each in policy.classes
        if each.service_policy is not None
    ]
    return 1 + max(below, default=0)


def check_class(device: Device, each: PolicyClass) -> None:
    """Refuse combinations of actions that one class can't have."""
    default = each.name == CLASS_DEFAULT
    if each.bandwidth is not None and each.priority is not None:
        raise RejectedError(BANDWIDTH_AND_PRIORITY)
    if each.priority is not None and default:
        raise RejectedError(PRIORITY_IN_DEFAULT)
    if each.fair_queue is not None:
        if device.generation == "classic" and not default:
            raise RejectedError(FAIR_QUEUE_NOT_DEFAULT)
        if each.priority is not None:
            raise RejectedError(FAIR_QUEUE_AND_PRIORITY)
    if each.random_detect is not None and not default and each.bandwidth is None and each.shape is None:
        raise RejectedError(RED_NEEDS_QUEUE)
    fields = {mark.field.removeprefix("ip_") for mark in each.marks}
    if {"dscp", "precedence"} <= fields:
        raise RejectedError(DSCP_AND_PRECEDENCE)


def check_policy(device: Device, policy: PolicyMap) -> None:
    """Refuse a policy-map that holds too much or mixes units, whatever interface it is attached to."""
    for each in policy.classes:
        check_class(device, each)
    units = {each.bandwidth.unit for each in policy.classes if each.bandwidth is not None}
    if len(units) > 1:
        raise RejectedError(MIXED_UNITS)
    if _reserved(policy, "percent") > MAX_SUM_PERCENT and device.generation == "hqf":
        raise RejectedError(SUM_EXCEEDS_99)
    remaining = sum(
        each.bandwidth.number
        for each in policy.classes
        if each.bandwidth and each.bandwidth.unit == "remaining_percent"
    )
    if remaining > 100:
        raise RejectedError(SUM_EXCEEDS_99)


def check_attached(device: Device, policy: PolicyMap, interface: Interface, direction: str) -> None:
    """Refuse a policy-map that the interface can't carry in that direction (`input`, `output`)."""
    if direction == "input":
        for part in descendants(device, policy):
            for each in part.classes:
                if each.shape is not None:
                    raise RejectedError(SHAPE_OUTPUT_ONLY)
                if each.queueing:
                    raise RejectedError(OUTPUT_ONLY)
        return
    rate = float(interface_bandwidth_kbps(interface))
    share = DEFAULT_MAX_RESERVED_PERCENT
    if interface.max_reserved_bandwidth is not None:
        share = interface.max_reserved_bandwidth
    _check_reserved(device, policy, interface, rate, rate * share / 100)


def _check_reserved(device: Device, policy: PolicyMap, interface: Interface, rate: float, limit: float) -> None:
    """Refuse a policy-map whose classes reserve more than they may, itself and further down.

    `rate` is what percentages are of, `limit` what classes may have in the classic generation, both in kbit/s.
    """
    reserved = _reserved(policy, "kbps") + rate * _reserved(policy, "percent") / 100
    if device.generation == "hqf":
        if reserved > rate * MAX_SUM_PERCENT / 100:
            raise RejectedError(SUM_EXCEEDS_99)
    elif reserved > limit:
        # Wording modelled on IOS.
        raise RejectedError(
            f"I/f {interface.name} policy-map {policy.name} requested bandwidth {reserved:.0f} (kbps), "
            f"available only {limit:.0f} (kbps)"
        )
    for each in policy.classes:
        if each.service_policy is None:
            continue
        child = device.policy_maps[each.service_policy]
        if device.generation == "classic" and each.shape is None and any(below.queueing for below in child.classes):
            raise RejectedError(HIERARCHY_NEEDS_SHAPER)
        # [I] Below a class its own rate takes the place of the interface's bandwidth, all of it reservable.
        below = _class_rate(each, rate)
        _check_reserved(device, child, interface, below, below)


def _class_rate(each: PolicyClass, rate: float) -> float:
    """Return what a class has, in kbit/s: its shape rate, its bandwidth, or all that its parent has (`rate`)."""
    if each.shape is not None:
        amount = each.shape.rate
        return rate * amount.number / 100 if amount.unit == "percent" else amount.number / 1000
    for given in (each.bandwidth, each.priority):
        if given is not None and given.number is not None and given.unit in ("kbps", "percent"):
            return float(given.number) if given.unit == "kbps" else rate * given.number / 100
    return rate


def check_change(device: Device, policy: PolicyMap) -> None:
    """Refuse `policy` as the new content of its name, on its own, in its hierarchy and wherever it is attached."""
    check_policy(device, policy)
    trial = dict(device.policy_maps)
    trial[policy.name] = policy
    changed = Device(device.hardware, policy_maps=trial)
    for interface in device.interfaces.values():
        for direction, name in (("input", interface.service_policy_input), ("output", interface.service_policy_output)):
            attached = None if name is None else trial.get(name)
            if attached is not None and any(part.name == policy.name for part in descendants(changed, attached)):
                check_attached(changed, attached, interface, direction)


def _reserved(policy: PolicyMap, unit: str) -> int:
    """Return what classes other than class-default reserve in `unit` (kbps, percent)."""
    total = 0
    for each in policy.classes:
        if each.name == CLASS_DEFAULT:
            continue
        if each.bandwidth is not None and each.bandwidth.unit == unit:
            total += each.bandwidth.number
        if each.priority is not None and each.priority.unit == unit and each.priority.number is not None:
            total += each.priority.number
    return total
