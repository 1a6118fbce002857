"""Refusals of IOS for a policy as a whole; each command has its own rules, applied here."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.cli.grammar import RejectedError
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.engine_rules import IMPOSSIBLE
from qoslab.ios.model.policy import CLASS_DEFAULT, PolicyClass, PolicyMap
from qoslab.ios.registry import (
    ATTACH_RULES,
    CLASS_RULES,
    COMBINATION_WORDS,
    INPUT_RULES,
    OUTPUT_RULES,
    POLICY_RULES,
)

# Default `bandwidth` of an interface in kbit/s. Serial: T1, the documented default of IOS.
DEFAULT_BANDWIDTH_KBPS = {
    "Ethernet": 10_000,
    "FastEthernet": 100_000,
    "GigabitEthernet": 1_000_000,
    "TwoGigabitEthernet": 2_500_000,
    "FiveGigabitEthernet": 5_000_000,
    "TenGigabitEthernet": 10_000_000,
    "TwentyFiveGigE": 25_000_000,
    "FortyGigabitEthernet": 40_000_000,
    "HundredGigE": 100_000_000,
    "Serial": 1544,
    # A PA-A3-T3.
    "ATM": 44_209,
}
VIRTUAL_BANDWIDTH_KBPS = {"Dialer": 56, "Tunnel": 100}
"""Default bandwidth of interfaces without a line in IOS 15 [I]: from memory of `show interfaces`."""
OTHER_BANDWIDTH_KBPS = 100_000
"""Bandwidth of interfaces whose bandwidth depends on members or is unknown, such as Multilink or Port-channel [I]."""

# The wording of the following refusals is modelled on IOS, not taken from a printout.
OUTPUT_ONLY = "CBWFQ : Can be enabled as an output feature only"
CHILD_QUEUES = "{action} can not be configured in a class whose child policy queues"
ONLY_IN_LEAVES = (
    "bandwidth in kbps or percent can not be configured in a class whose child policy queues: use bandwidth remaining"
)
# [I] Up to 12.4(15)T a child could queue below a shaper only; the wording is from memory, not from an output.
HIERARCHY_NEEDS_SHAPER = "CBWFQ : Hierarchy supported only if shaping is configured in this class"
NOT_IN_CLASS = "{action} can not be configured in this class"
_ACTIONS = {"shape_buffers": "shape max-buffers", "queue_thresholds": "queue-limit", "queue_limit_unit": "queue-limit"}
"""Commands of facts that are named differently."""
COMBINATION_WORDS.update(
    {
        ("queueing_child", "priority"): CHILD_QUEUES.format(action="priority"),
        ("queueing_child", "shape"): HIERARCHY_NEEDS_SHAPER,
        ("minimum", "queueing_child"): ONLY_IN_LEAVES,
    }
)


def interface_bandwidth_kbps(interface: Interface) -> int:
    """Return the configured `bandwidth`, or the default of the interface's type or, on a switch, of a forced speed.

    On ATM the contract of a circuit takes precedence.
    """
    if interface.circuit is not None and interface.circuit.contract is not None:
        return interface.circuit.contract.rate_kbps
    if interface.bandwidth_kbps is not None:
        return interface.bandwidth_kbps
    if interface.port is not None and interface.speed != "auto":
        return 1000 * int(interface.speed)
    without_line = VIRTUAL_BANDWIDTH_KBPS.get(interface.kind, OTHER_BANDWIDTH_KBPS)
    return DEFAULT_BANDWIDTH_KBPS.get(interface.kind, without_line)


def descendants(device: Device, policy: PolicyMap) -> Iterator[PolicyMap]:
    """Yield the policy-map and all its descendants."""
    yield policy
    for each in policy.classes:
        if each.service_policy is not None and each.service_policy in device.policy_maps:
            yield from descendants(device, device.policy_maps[each.service_policy])


def levels(device: Device, policy: PolicyMap) -> int:
    """Return the number of levels of the hierarchy of `policy`, including itself."""
    below = [
        levels(device, device.policy_maps[each.service_policy])
        for each in policy.classes
        if each.service_policy is not None
    ]
    return 1 + max(below, default=0)


def check_policy(device: Device, policy: PolicyMap) -> None:
    """Refuse a policy-map by its content, regardless of its interface."""
    family = device.hardware.family
    for each in policy.classes:
        _check_combinations(device, _facts(each))
        for class_rule in CLASS_RULES.of(family):
            class_rule(device, each)
    for policy_rule in POLICY_RULES.of(family):
        policy_rule(device, policy)


def check_children(device: Device, policy: PolicyMap) -> None:
    """Refuse a class with a queueing child policy if it has actions that only the child's classes can have."""
    for each in policy.classes:
        if each.service_policy is None:
            continue
        below = descendants(device, device.policy_maps[each.service_policy])
        if any(part.queueing for child in below for part in child.classes):
            _check_combinations(device, _facts(each) | {"queueing_child"})


def _check_combinations(device: Device, facts: set[str]) -> None:
    """Refuse a class with a combination of facts that the engine refuses, with the message of its command."""
    qos = device.hardware.qos
    for each in IMPOSSIBLE:
        if (
            each.of in facts
            and (each.with_ is None or each.with_ in facts)
            and facts.isdisjoint(each.without)
            and each.unless not in qos.allowed
        ):
            other = each.with_ or next(iter(each.without), "")
            words = COMBINATION_WORDS.get((each.of, other), CHILD_QUEUES if other == "queueing_child" else NOT_IN_CLASS)
            action = _ACTIONS.get(each.of, each.of.replace("_", "-"))
            raise RejectedError(words.format(action=action) if isinstance(words, str) else words(qos))


def _facts(each: PolicyClass) -> set[str]:
    """Return the facts about a class, as in its engine configuration, that occur in the engine's combinations."""
    bandwidth, limit, red = each.bandwidth, each.queue_limit, each.random_detect
    statements = {
        "class_default": each.name == CLASS_DEFAULT,
        "priority": each.priority is not None,
        "priority_level": each.priority is not None and each.priority.level is not None,
        "bandwidth": bandwidth is not None,
        "minimum": bandwidth is not None and bandwidth.unit in ("kbps", "percent"),
        "remaining_ratio": bandwidth is not None and bandwidth.unit == "remaining_ratio",
        "fair_queue": each.fair_queue is not None,
        "shape": each.shape is not None,
        # Without a shaper they have no effect.
        "shape_buffers": each.shape_buffers is not None and each.shape is not None,
        "random_detect": red is not None,
        "random_detect_unit": red is not None and red.unit not in (None, "packets", "percent"),
        "queue_limit": limit is not None,
        "queue_limit_unit": limit is not None and limit.unit not in ("packets", "percent"),
        "queue_thresholds": bool(each.queue_thresholds),
    }
    return {name for name, holds in statements.items() if holds}


def check_attached(device: Device, policy: PolicyMap, interface: Interface, direction: str) -> None:
    """Refuse a policy-map that cannot be attached to the interface in that direction (`input`, `output`)."""
    family = device.hardware.family
    if direction == "output":
        for output_rule in OUTPUT_RULES.of(family):
            output_rule(device, policy, interface)
        return
    for part in descendants(device, policy):
        for each in part.classes:
            for input_rule in INPUT_RULES.of(family):
                input_rule(each)
            if each.queueing:
                raise RejectedError(OUTPUT_ONLY)


def check_attachable(device: Device, interface: Interface, direction: str) -> None:
    """Refuse any policy-map in that direction (`input`, `output`) that conflicts with those of other interfaces."""
    for rule in ATTACH_RULES.of(device.hardware.family):
        rule(device, interface, direction)


def check_change(device: Device, policy: PolicyMap) -> None:
    """Refuse the new definition `policy` if it is invalid by itself, in its hierarchy or where it is attached."""
    check_policy(device, policy)
    trial = dict(device.policy_maps)
    trial[policy.name] = policy
    changed = Device(device.hardware, policy_maps=trial)
    for other in trial.values():
        # A parent may have actions that require a child without queueing.
        if any(part.name == policy.name for part in descendants(changed, other)):
            check_children(changed, other)
    for interface in device.interfaces.values():
        for direction, name in (("input", interface.service_policy_input), ("output", interface.service_policy_output)):
            attached = None if name is None else trial.get(name)
            if attached is not None and any(part.name == policy.name for part in descendants(changed, attached)):
                check_attached(changed, attached, interface, direction)
