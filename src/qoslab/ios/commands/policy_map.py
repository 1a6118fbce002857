"""Policy-map configuration: `policy-map`, `class` and the actions other than `police`."""

from __future__ import annotations

from dataclasses import replace

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.class_map import check_name
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import (
    CLASS_DEFAULT,
    Amount,
    Bandwidth,
    FairQueue,
    Mark,
    PolicyClass,
    PolicyMap,
    Priority,
    RandomDetect,
    RedThresholds,
    SetField,
    Shape,
)
from qoslab.ios.rules import MAX_LEVELS, check_change, descendants, levels

LEAST_EXCESS_BURST = 256
"""Bits; none at all (0) is possible too."""
MAX_CLASSES = {"classic": 64, "hqf": 256}

# The wording of the following refusals is modelled on IOS, not taken from a printout.
POLICY_IN_USE = "% Policy-map {name} is being used"
POLICY_UNKNOWN = "% policy map {name} not configured"
CLASS_UNKNOWN = "% class map {name} not configured"
TOO_MANY_CLASSES = "% Policy-map {name} has the maximum of {limit} classes"
LOOP = "% Policy-map {name} can not be its own child"
TOO_DEEP = "% Policy-map hierarchy exceeds {limit} levels"
POWER_OF_TWO = "Number of dynamic queues must be a power of 2 (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)"


def policy_users(device: Device, name: str) -> list[str]:
    """Return what refers to a policy-map: the names of interfaces and of parent policy-maps."""
    interfaces = [
        i.name for i in device.interfaces.values() if name in (i.service_policy_input, i.service_policy_output)
    ]
    parents = [p.name for p in device.policy_maps.values() if any(c.service_policy == name for c in p.classes)]
    return interfaces + parents


def change_class(session: ConfigSession, changed: PolicyClass) -> None:
    """Put `changed` in place of the class being configured, unless IOS refuses the result."""
    policy = session.policy_map
    classes = tuple(changed if each.name == changed.name else each for each in policy.classes)
    result = replace(policy, classes=classes)
    if result == policy:
        return
    check_change(session.device, result)
    session.device.policy_maps[policy.name] = result


@CONFIG.add(
    "config",
    "policy-map <name:word>",
    no="policy-map <name:word>",
    undo=Undo(referred=1, anew=True),
    help={"policy-map": "Configure QoS Policy Map", "name": "policy-map name"},
)
def _policy_map(session: ConfigSession, args: Args) -> None:
    maps = session.device.policy_maps
    name = check_name(args, args.value("name", str))
    if args.unset:
        if policy_users(session.device, name):
            raise RejectedError(POLICY_IN_USE.format(name=name))
        maps.pop(name, None)
        return
    maps.setdefault(name, PolicyMap(name))
    session.enter("policy-map", name)


@CONFIG.add(
    "policy-map",
    "description <text:line>",
    no=True,
    help={"description": "Policy-Map description", "text": "Up to 200 characters describing this Policy-Map"},
)
def _description(session: ConfigSession, args: Args) -> None:
    policy = replace(session.policy_map, description=None if args.unset else args.value("text", str))
    session.device.policy_maps[policy.name] = policy


@CONFIG.add(
    "policy-map",
    "class <name:word> [insert-before <other:word>]",
    no="class <name:word>",
    undo=Undo(ordered=lambda args: args.value("name", str) != CLASS_DEFAULT),
    help={
        "class": "policy criteria",
        "name": "class-map name",
        "insert-before": "insert class before an existing class",
        "other": "class-map name",
    },
)
def _class(session: ConfigSession, args: Args) -> None:
    policy = session.policy_map
    name = args.value("name", str)
    if args.unset:
        remaining = replace(policy, classes=tuple(each for each in policy.classes if each.name != name))
        session.device.policy_maps[policy.name] = remaining
        return
    if policy.find(name) is None:
        if name != CLASS_DEFAULT and name not in session.device.class_maps:
            raise RejectedError(CLASS_UNKNOWN.format(name=name))
        limit = MAX_CLASSES[session.device.generation]
        if len(policy.classes) >= limit:
            raise RejectedError(TOO_MANY_CLASSES.format(name=policy.name, limit=limit))
        position = _position(policy, args, name)
        classes = (*policy.classes[:position], PolicyClass(name), *policy.classes[position:])
        session.device.policy_maps[policy.name] = replace(policy, classes=classes)
    session.enter("policy-class", name)


def _position(policy: PolicyMap, args: Args, name: str) -> int:
    """Return where a new class goes: last, but before class-default, or before the class that the line names."""
    present = [each.name for each in policy.classes]
    other = args.optional("other", str)
    if other is not None:
        if other not in present or name == CLASS_DEFAULT:
            raise args.invalid("other")
        return present.index(other)
    default_is_last = bool(present) and present[-1] == CLASS_DEFAULT
    return len(present) - 1 if default_is_last else len(present)


_SET_FIELDS: tuple[SetField, ...] = ("dscp", "ip_dscp", "precedence", "ip_precedence", "cos", "qos_group")


@CONFIG.add(
    "policy-class",
    "set ([ip] dscp <value:dscp>|[ip] precedence <value:precedence>|cos <value:0-7>|qos-group <value:0-99>)",
    no="set ([ip] dscp [<value:dscp>]|[ip] precedence [<value:precedence>]|cos [<value:0-7>]|qos-group [<value:0-99>])",
    undo=Undo(key="set ([ip] dscp|[ip] precedence|cos|qos-group)"),
    requires={"router"},
    help={
        "set": "Set QoS values",
        "ip": "Set IP specific values",
        "dscp": "Set DSCP in IP(v4) and IPv6 packets",
        "precedence": "Set precedence in IP(v4) and IPv6 packets",
        "cos": "Set IEEE 802.1Q/ISL class of service/user priority",
        "qos-group": "Set QoS Group",
        "value": "New value",
    },
)
def change_marks(session: ConfigSession, args: Args) -> None:
    """Carry out a `set` line of a class."""
    word = args.keywords[-1].replace("-", "_")
    name = f"ip_{word}" if "ip" in args else word
    field = next(each for each in _SET_FIELDS if each == name)
    present = session.policy_class
    # `set dscp` and `set ip dscp` write the same bits: the later line replaces the earlier.
    others = [mark for mark in present.marks if mark.field.removeprefix("ip_") != word]
    if args.unset:
        gone = args.optional("value", int)
        marks = [mark for mark in present.marks if mark.field != field or gone not in (None, mark.value)]
    else:
        marks = [*others, Mark(field, args.value("value", int))]
    marks.sort(key=lambda mark: _SET_FIELDS.index(mark.field))
    change_class(session, replace(present, marks=tuple(marks)))


_SHAPE_HELP = {
    "shape": "Traffic Shaping",
    "average": "configure token bucket: CIR (bps) [Bc (bits) [Be (bits)]], send out Bc only per interval",
    "peak": "configure token bucket: CIR (bps) [Bc (bits) [Be (bits)]], send out Bc+Be per interval",
    "rate": "Target Bit Rate (bits per second)",
    "bc": "bits per interval, sustained",
    "be": "bits per interval, excess",
    "percent": "% of interface bandwidth for Committed information rate",
    "share": "Percentage",
    "bc-ms": "Sustained burst in milliseconds",
    "be-ms": "Excess burst in milliseconds",
    "ms": "milliseconds",
}


def _shape_syntax(top: int) -> str:
    return (
        f"shape (average|peak) (<rate:8000-{top}> [<bc:256-154400000> [<be:0-154400000>]]"
        "|percent <share:1-100> [<bc-ms:10-2000> ms [<be-ms:10-2000> ms]])"
    )


# The highest rates are remembered from the command line of each generation, not confirmed by a document.
@CONFIG.add("policy-class", _shape_syntax(154_400_000), no=True, requires={"classic"}, help=_SHAPE_HELP)
@CONFIG.add("policy-class", _shape_syntax(1_000_000_000), no=True, requires={"hqf"}, help=_SHAPE_HELP)
def _shape(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if args.unset:
        change_class(session, replace(present, shape=None))
        return
    rate, share = args.optional("rate", int), args.optional("share", int)
    amounts = [Amount(number, "bits") for name in ("bc", "be") for number in args.values(name, int)]
    amounts += [Amount(number, "ms") for name in ("bc-ms", "be-ms") for number in args.values(name, int)]
    if any(0 < number < LEAST_EXCESS_BURST for number in args.values("be", int)):
        raise args.invalid("be")
    shape = Shape(
        mode="average" if "average" in args else "peak",
        rate=Amount(rate, "bps") if rate is not None else Amount(share or 0, "percent"),
        bc=amounts[0] if amounts else None,
        be=amounts[1] if len(amounts) > 1 else None,
    )
    change_class(session, replace(present, shape=shape))


_BANDWIDTH_HELP = {
    "bandwidth": "Bandwidth",
    "kbps": "Kilo Bits per second",
    "percent": "% of total Bandwidth",
    "share": "Percentage",
    "remaining": "% of the remaining bandwidth",
    "ratio": "ratio for sharing excess bandwidth",
    "parts": "Ratio",
}


@CONFIG.add(
    "policy-class",
    "bandwidth (<kbps:8-2000000>|percent <share:1-100>|remaining percent <share:1-100>)",
    no=True,
    requires={"router"},
    help=_BANDWIDTH_HELP,
)
@CONFIG.add(
    "policy-class",
    "bandwidth remaining ratio <parts:1-1000>",
    no=True,
    undo=Undo(key="bandwidth"),
    requires={"hqf"},
    help=_BANDWIDTH_HELP,
)
def _bandwidth(session: ConfigSession, args: Args) -> None:
    bandwidth = None
    if not args.unset:
        kbps, share, parts = (args.optional(name, int) for name in ("kbps", "share", "parts"))
        if kbps is not None:
            bandwidth = Bandwidth("kbps", kbps)
        elif parts is not None:
            bandwidth = Bandwidth("remaining_ratio", parts)
        elif share is not None:
            bandwidth = Bandwidth("remaining_percent" if "remaining" in args else "percent", share)
    change_class(session, replace(session.policy_class, bandwidth=bandwidth))


_PRIORITY_HELP = {
    "priority": "Strict Scheduling Priority for this Class",
    "kbps": "Kilo Bits per second",
    "burst": "Burst in bytes",
    "percent": "% of total bandwidth",
    "share": "Percentage",
    "level": "Multi-Level Priority Queue",
    "queue": "Priority level",
}


@CONFIG.add(
    "policy-class",
    "priority [(<kbps:8-2000000>|percent <share:1-100>) [<burst:32-2000000>]]",
    no=True,
    requires={"router"},
    help=_PRIORITY_HELP,
)
@CONFIG.add(
    "policy-class",
    "priority level <queue:1-2>",
    no=True,
    undo=Undo(key="priority"),
    requires={"hqf"},
    help=_PRIORITY_HELP,
)
def _priority(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if args.unset:
        change_class(session, replace(present, priority=None))
        return
    kbps, share = args.optional("kbps", int), args.optional("share", int)
    priority = Priority(level=args.optional("queue", int))
    if kbps is not None:
        priority = Priority("kbps", kbps, args.optional("burst", int))
    elif share is not None:
        priority = Priority("percent", share, args.optional("burst", int))
    change_class(session, replace(present, priority=priority))


@CONFIG.add(
    "policy-class",
    "fair-queue [<queues:16-4096>]",
    no=True,
    requires={"router"},
    help={"fair-queue": "Enable Flow-based Fair Queuing in this Class", "queues": "Number Dynamic Conversation Queues"},
)
def _fair_queue(session: ConfigSession, args: Args) -> None:
    queues = args.optional("queues", int)
    if queues is not None and queues & (queues - 1):
        raise RejectedError(POWER_OF_TWO)
    fair_queue = None if args.unset else FairQueue(queues)
    change_class(session, replace(session.policy_class, fair_queue=fair_queue))


@CONFIG.add(
    "policy-class",
    "queue-limit <packets:1-4096> [packets]",
    no=True,
    requires={"router"},
    help={"queue-limit": "Queue Max Threshold for Tail Drop", "packets": "Packets"},
)
def _queue_limit(session: ConfigSession, args: Args) -> None:
    limit = None if args.unset else args.value("packets", int)
    change_class(session, replace(session.policy_class, queue_limit=limit))


_RANDOM_DETECT_DETAIL = (
    "random-detect [exponential-weighting-constant|precedence <level:precedence>|dscp <code-point:dscp>]"
)


@CONFIG.add(
    "policy-class",
    "random-detect [dscp-based|prec-based|exponential-weighting-constant <weight:1-16>"
    "|precedence <level:precedence> <minimum:1-4096> <maximum:1-4096> [<denominator:1-65535>]"
    "|dscp <code-point:dscp> <minimum:1-4096> <maximum:1-4096> [<denominator:1-65535>]]",
    no=_RANDOM_DETECT_DETAIL,
    undo=Undo(key=_RANDOM_DETECT_DETAIL, parts=True, afresh=True),
    requires={"router"},
    help={
        "random-detect": "Enable Random Early Detection as drop policy",
        "dscp-based": "Enable dscp-based WRED as drop policy",
        "prec-based": "Enable precedence-based WRED as drop policy",
        "exponential-weighting-constant": "weight for mean queue depth calculation",
        "weight": "integer in 1..16 used in weighted average to mean 2^number",
        "precedence": "parameters for each precedence value",
        "level": "IP precedence",
        "dscp": "parameters for each dscp value",
        "code-point": "Differentiated services codepoint value",
        "minimum": "minimum threshold (number of packets)",
        "maximum": "maximum threshold (number of packets)",
        "denominator": "mark probability denominator",
    },
)
def _random_detect(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if args.unset and args.keywords == ("random-detect",):
        change_class(session, replace(present, random_detect=None))
        return
    red = present.random_detect or RandomDetect()
    if args.unset and present.random_detect is None:
        return
    if "exponential-weighting-constant" in args:
        red = replace(red, exponential_weight=None if args.unset else args.value("weight", int))
    elif "dscp" in args or "precedence" in args:
        red = _red_thresholds(red, args)
    elif "dscp-based" in args and red.basis != "dscp":
        red = replace(red, basis="dscp", thresholds=())
    elif "dscp-based" not in args and red.basis != "precedence":
        red = replace(red, basis="precedence", thresholds=())
    change_class(session, replace(present, random_detect=red))


def _red_thresholds(red: RandomDetect, args: Args) -> RandomDetect:
    basis = "dscp" if "dscp" in args else "precedence"
    if basis != red.basis:
        raise args.invalid(basis)
    value = args.value("code-point" if basis == "dscp" else "level", int)
    table = dict(red.thresholds)
    if args.unset:
        table.pop(value, None)
    else:
        minimum, maximum = args.value("minimum", int), args.value("maximum", int)
        if minimum > maximum:
            raise args.invalid("maximum")
        table[value] = RedThresholds(minimum, maximum, args.optional("denominator", int))
    return replace(red, thresholds=tuple(sorted(table.items())))


@CONFIG.add(
    "policy-class",
    "service-policy <policy:word>",
    no=True,
    requires={"router"},
    help={"service-policy": "Configure QoS Service Policy", "policy": "policy-map name"},
)
def _service_policy(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    device = session.device
    if args.unset:
        change_class(session, replace(present, service_policy=None))
        return
    name = args.value("policy", str)
    child = device.policy_maps.get(name)
    if child is None:
        raise RejectedError(POLICY_UNKNOWN.format(name=name))
    policy = session.policy_map
    if any(part.name == policy.name for part in descendants(device, child)):
        raise RejectedError(LOOP.format(name=policy.name))
    if _levels_above(device, policy.name) + 1 + levels(device, child) > MAX_LEVELS:
        raise RejectedError(TOO_DEEP.format(limit=MAX_LEVELS))
    change_class(session, replace(present, service_policy=name))


def _levels_above(device: Device, name: str) -> int:
    """Return how many levels of policy-maps there are above the policy-map `name`."""
    parents = [p.name for p in device.policy_maps.values() if any(c.service_policy == name for c in p.classes)]
    return max((1 + _levels_above(device, parent) for parent in parents), default=0)
