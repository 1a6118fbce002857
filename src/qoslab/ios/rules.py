"""Refusals of IOS for a policy as a whole; each command has its own rules, applied here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from functools import lru_cache

from qoslab.ios.cli.grammar import RejectedError
from qoslab.ios.model.device import Device, Family, Interface
from qoslab.ios.model.engine_rules import FACTS, IMPOSSIBLE, ORDERED
from qoslab.ios.model.policy import CLASS_DEFAULT, PolicyClass, PolicyMap
from qoslab.ios.model.rule_kinds import Combination, Order, Sum
from qoslab.ios.registry import (
    ATTACH_RULES,
    CLASS_RULES,
    COMBINATION_WORDS,
    ENGINE_CLASS,
    INPUT_RULES,
    ORDER_WORDS,
    OUTPUT_RULES,
    POLICY_RULES,
)
from qoslab.system import program_formats

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
VIRTUAL_BANDWIDTH_KBPS = {"Dialer": 56, "Tunnel": 100, "Cellular": 50_000}
"""Default bandwidth of interfaces without a line of fixed rate in IOS 15 [I]: from memory of `show interfaces`; of
Cellular with an LTE modem.
"""
GREATEST_BANDWIDTH_KBPS, XE_GREATEST_BANDWIDTH_KBPS = 10_000_000, 200_000_000
"""Greatest `bandwidth` of an interface; that of IOS-XE is from memory [R]."""
OTHER_BANDWIDTH_KBPS = 100_000
"""Bandwidth of interfaces whose bandwidth depends on members or is unknown, such as Multilink or Port-channel [I]."""

# The wording of the following refusals is modelled on IOS, not taken from a printout.
OUTPUT_ONLY = "CBWFQ : Can be enabled as an output feature only"
CHILD_QUEUES = "{action} can not be configured in a class with a queueing child policy"
ONLY_IN_LEAVES = (
    "bandwidth in kbps or percent can not be configured in a class with a queueing child policy: use bandwidth "
    "remaining"
)
# [I] Up to 12.4(15)T, a child could queue only below a shaper; the wording is from memory, not from an output.
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


def hierarchy_depth(device: Device, policy: PolicyMap) -> int:
    """Return the number of levels of the hierarchy of `policy`, including itself."""
    below = [
        hierarchy_depth(device, device.policy_maps[each.service_policy])
        for each in policy.classes
        if each.service_policy is not None
    ]
    return 1 + max(below, default=0)


def check_policy(device: Device, policy: PolicyMap, valid: Iterable[PolicyClass] = ()) -> None:
    """Refuse a policy-map by its content, regardless of its interface.

    Classes of `valid` are valid by themselves, and not examined again.
    """
    family = device.hardware.family
    known = {id(each) for each in valid}
    for each in policy.classes:
        if id(each) in known:
            continue
        facts, unordered = _class_rules(family, each)
        _check_combinations(device, facts)
        if unordered is not None:
            raise RejectedError(ORDER_WORDS[unordered.greatest[0]])
        for class_rule in CLASS_RULES.family_functions(family):
            class_rule(device, each)
    for policy_rule in POLICY_RULES.family_functions(family):
        policy_rule(device, policy)


def check_children(device: Device, policy: PolicyMap) -> None:
    """Refuse a class with a queueing child policy if it has actions that only the child's classes can have."""
    for each in policy.classes:
        if _has_queueing_child(device, each):
            _check_combinations(device, class_facts(device, each))


def _has_queueing_child(device: Device, each: PolicyClass) -> bool:
    return each.service_policy is not None and _has_queueing_class(device, device.policy_maps[each.service_policy])


def _has_queueing_class(device: Device, policy: PolicyMap) -> bool:
    """Return whether a policy-map or a descendant has a class with queueing."""
    return any(part.queueing for each in descendants(device, policy) for part in each.classes)


def _check_combinations(device: Device, facts: frozenset[str]) -> None:
    """Refuse a class with a combination of facts that the engine refuses, with the message of its command."""
    found = find_combination(IMPOSSIBLE, device, facts)
    if found is not None:
        other = found.with_ or next(iter(found.without), "")
        words = COMBINATION_WORDS.get((found.of, other), CHILD_QUEUES if other == "queueing_child" else NOT_IN_CLASS)
        action = _ACTIONS.get(found.of, found.of.replace("_", "-"))
        raise RejectedError(words.format(action=action) if isinstance(words, str) else words(device.hardware.qos))


def find_combination(table: Iterable[Combination], device: Device, facts: Set[str]) -> Combination | None:
    """Return the first combination of a table that these facts about a class have; None if they have none."""
    for each in table:
        if (
            each.of in facts
            and (each.with_ is None or each.with_ in facts)
            and facts.isdisjoint(each.without)
            and each.unless not in device.hardware.qos.allowed
        ):
            return each
    return None


def find_amount(row: Sum, config: object) -> int:
    """Return the number of a class, in the engine's configuration, that a sum of the engine adds."""
    numbers = (
        _rule_number(_rule_value(config, each.key), 0)
        for each in row.of
        if each.when is None or _rule_value(config, each.when[0]) == each.when[1]
    )
    return next(filter(None, numbers), 0)


def exceeds_share(amounts: Iterable[tuple[str, int]], whole: int, percent: int) -> bool:
    """Return whether classes together have more than a percentage of a whole; class-default may use the rest of it."""
    total = 0
    for name, amount in sorted(amounts, key=lambda each: each[0] == CLASS_DEFAULT):
        total += amount
        if amount and total > whole * (100 if name == CLASS_DEFAULT else percent) // 100:
            return True
    return False


def class_facts(device: Device, each: PolicyClass) -> frozenset[str]:
    """Return the facts about a class that occur in the engine's combinations."""
    facts, _ = _class_rules(device.hardware.family, each)
    return facts | {"queueing_child"} if _has_queueing_child(device, each) else facts


def engine_class(family: Family, each: PolicyClass) -> program_formats.PolicyClass:
    """Return a class in the engine's configuration, without values from table-maps."""
    found: program_formats.PolicyClass = {"name": each.name}
    for part in ENGINE_CLASS.family_functions(family):
        found |= part(each)
    return found


@lru_cache(maxsize=4096)
def _class_rules(family: Family, each: PolicyClass) -> tuple[frozenset[str], Order | None]:
    """Return the facts about a class without its child, and the values that are not in order, if there are any."""
    config = engine_class(family, each)
    words = ((fact, _rule_word(_rule_value(config, fact.key))) for fact in FACTS)
    facts = frozenset(fact.name for fact, word in words if word is not None and (not fact.words or word in fact.words))
    return facts, next((order for order in ORDERED if _is_first_greater(config, order)), None)


def _is_first_greater(config: object, order: Order) -> bool:
    """Return whether both values are known and the first is greater than the second."""
    least, greatest = (
        _rule_number(_rule_value(config, key), default) if _rule_value(config, key.rpartition(".")[0]) else None
        for key, default in (order.least, order.greatest)
    )
    return least is not None and greatest is not None and least > greatest


def _rule_number(value: object, default: int | None) -> int | None:
    """Return a number, or that of a rate."""
    number = next(iter(value.values())) if isinstance(value, dict) else value
    return number if isinstance(number, int) else default


def _rule_value(config: object, key: str) -> object:
    """Return the value of a key; None without one."""
    for part in key.split("."):
        config = config.get(part) if isinstance(config, dict) else None
    return config


def _rule_word(config: object) -> str | None:
    """Return the word of a value: a text, or the name of an only part; empty for other values, None without one."""
    if isinstance(config, str):
        return config
    if isinstance(config, dict) and len(config) == 1:
        return str(next(iter(config)))
    return None if config is None or config == [] else ""


def check_attachment(device: Device, policy: PolicyMap, interface: Interface, direction: str) -> None:
    """Refuse a policy-map that cannot be attached to the interface in that direction (`input`, `output`)."""
    family = device.hardware.family
    if direction == "output":
        for output_rule in OUTPUT_RULES.family_functions(family):
            output_rule(device, policy, interface)
        return
    for part in descendants(device, policy):
        for each in part.classes:
            for input_rule in INPUT_RULES.family_functions(family):
                input_rule(each)
            if each.queueing:
                raise RejectedError(OUTPUT_ONLY)


def check_attachable(device: Device, interface: Interface, direction: str) -> None:
    """Refuse any policy-map in that direction (`input`, `output`) that conflicts with those of other interfaces."""
    for rule in ATTACH_RULES.family_functions(device.hardware.family):
        rule(device, interface, direction)


def check_change(device: Device, policy: PolicyMap) -> None:
    """Refuse the new definition `policy` if it is invalid by itself, in its hierarchy or where it is attached."""
    present = device.policy_maps.get(policy.name)
    check_policy(device, policy, () if present is None else present.classes)
    trial = dict(device.policy_maps)
    trial[policy.name] = policy
    attached = [
        (interface, direction, trial[name])
        for interface in device.interfaces.values()
        for direction, name in (("input", interface.service_policy_input), ("output", interface.service_policy_output))
        if name is not None and name in trial
    ]
    queues = _has_queueing_class(device, policy) and not (present is not None and _has_queueing_class(device, present))
    if not attached and not queues and all(each.service_policy is None for each in policy.classes):
        return
    changed = Device(device.hardware, policy_maps=trial)
    check_children(changed, policy)
    # A parent may have actions that require a child without queueing.
    for other in trial.values() if queues else ():
        if any(part.name == policy.name for part in descendants(changed, other)):
            check_children(changed, other)
    for interface, direction, outer in attached:
        if any(part.name == policy.name for part in descendants(changed, outer)):
            check_attachment(changed, outer, interface, direction)
