"""What IOS refuses about a policy as a whole: combinations of actions, wrong directions, too much bandwidth."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.cli.grammar import RejectedError
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.policy import CLASS_DEFAULT, PolicyClass, PolicyMap

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
NOT_TOGETHER = "{one} and {other} can not be configured in the same class"
FAIR_QUEUE_NOT_DEFAULT = "fair-queue can only be configured in class class-default"
RED_NEEDS_QUEUE = "random-detect needs bandwidth or shape in the class"
DSCP_AND_PRECEDENCE = "set dscp and set precedence can not be configured in the same class"
CHILD_QUEUES = "{action} can not be configured in a class whose child policy queues"
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
    if each.priority is not None:
        if default:
            raise RejectedError(PRIORITY_IN_DEFAULT)
        for other in ("bandwidth", "fair-queue", "shape"):
            if getattr(each, other.replace("-", "_")) is not None:
                first, second = sorted((other, "priority"))
                raise RejectedError(NOT_TOGETHER.format(one=first, other=second))
    if each.fair_queue is not None and device.generation == "classic":
        if not default:
            raise RejectedError(FAIR_QUEUE_NOT_DEFAULT)
        if each.bandwidth is not None:
            raise RejectedError(NOT_TOGETHER.format(one="bandwidth", other="fair-queue"))
    if each.random_detect is not None and not default and each.bandwidth is None and each.shape is None:
        raise RejectedError(RED_NEEDS_QUEUE)
    fields = {mark.field.removeprefix("ip_") for mark in each.marks}
    if {"dscp", "precedence"} <= fields:
        raise RejectedError(DSCP_AND_PRECEDENCE)


def check_children(device: Device, policy: PolicyMap) -> None:
    """Refuse a class that has what only the classes of its child policy can have, where that queues."""
    for each in policy.classes:
        if each.service_policy is None:
            continue
        below = descendants(device, device.policy_maps[each.service_policy])
        if not any(part.queueing for child in below for part in child.classes):
            continue
        for action in ("priority", "fair-queue", "random-detect"):
            if getattr(each, action.replace("-", "_")) is not None:
                raise RejectedError(CHILD_QUEUES.format(action=action))
        if device.generation == "classic" and each.shape is None:
            raise RejectedError(HIERARCHY_NEEDS_SHAPER)


def check_policy(device: Device, policy: PolicyMap) -> None:
    """Refuse a policy-map that holds too much or mixes units, whatever interface it is attached to."""
    for each in policy.classes:
        check_class(device, each)
    units = {each.bandwidth.unit for each in policy.classes if each.bandwidth is not None}
    if len(units) > 1:
        raise RejectedError(MIXED_UNITS)
    if device.generation == "hqf":
        _check_sum(policy, _reserved(policy, "percent"), _own(policy, "percent"), 100)
    remaining = sum(
        each.bandwidth.number
        for each in policy.classes
        if each.bandwidth and each.bandwidth.unit == "remaining_percent"
    )
    if remaining > 100:
        raise RejectedError(SUM_EXCEEDS_99)


def _check_sum(policy: PolicyMap, reserved: float, own: float, rate: float) -> None:
    """Refuse more than the later generation has; class-default's own comes out of what the others leave."""
    if reserved > rate * MAX_SUM_PERCENT / 100 or reserved + own > rate:
        raise RejectedError(SUM_EXCEEDS_99)


def _own(policy: PolicyMap, unit: str) -> int:
    """Return what class-default has as its own bandwidth in `unit`."""
    default = policy.find(CLASS_DEFAULT)
    bandwidth = None if default is None else default.bandwidth
    return bandwidth.number if bandwidth is not None and bandwidth.unit == unit else 0


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
    _check_reserved(device, policy, interface, rate, rate, rate * share / 100)


def _check_reserved(
    device: Device, policy: PolicyMap, interface: Interface, rate: float, guaranteed: float, limit: float
) -> None:
    """Refuse a policy-map whose classes reserve more than they may, itself and further down; all in kbit/s.

    `rate` is what percentages of `shape` are of, `guaranteed` those of `bandwidth` and `priority`; `limit` is what
    classes may have in the classic generation.
    """
    reserved = _reserved(policy, "kbps") + guaranteed * _reserved(policy, "percent") / 100
    if device.generation == "hqf":
        own = _own(policy, "kbps") + guaranteed * _own(policy, "percent") / 100
        _check_sum(policy, reserved, own, guaranteed)
    elif reserved > limit:
        # Wording modelled on IOS.
        raise RejectedError(
            f"I/f {interface.name} policy-map {policy.name} requested bandwidth {reserved:.0f} (kbps), "
            f"available only {limit:.0f} (kbps)"
        )
    for each in policy.classes:
        if each.service_policy is None:
            continue
        below, least = rate, guaranteed
        if each.bandwidth is not None and each.bandwidth.unit in ("kbps", "percent"):
            share = each.bandwidth.number
            least = float(share) if each.bandwidth.unit == "kbps" else guaranteed * share / 100
        if each.shape is not None:
            amount = each.shape.rate
            below = least = rate * amount.number / 100 if amount.unit == "percent" else amount.number / 1000
        # [I] Below a class its own rate takes the place of the interface's bandwidth, all of it reservable.
        _check_reserved(device, device.policy_maps[each.service_policy], interface, below, least, least)


def check_change(device: Device, policy: PolicyMap) -> None:
    """Refuse `policy` as the new content of its name, on its own, in its hierarchy and wherever it is attached."""
    check_policy(device, policy)
    trial = dict(device.policy_maps)
    trial[policy.name] = policy
    changed = Device(device.hardware, policy_maps=trial)
    for other in trial.values():
        # A parent may have what goes with a child that does not queue only.
        if any(part.name == policy.name for part in descendants(changed, other)):
            check_children(changed, other)
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
