"""Priority and custom queueing: `priority-list`, `queue-list`, and their use on interfaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.interface_queueing import PRIORITIES, CustomList, CustomQueue, PriorityList, QueueRule
from qoslab.ios.model.policy import PolicyMap
from qoslab.ios.model.port_names import TCP, UDP, port_text
from qoslab.ios.registry import BLOCKS, INTERFACE_LINES, OUTPUT_RULES
from qoslab.ios.rules import descendants
from qoslab.system import program_formats

MUST_REMOVE = "Must remove {what} configuration first."
"""Wording of IOS for `priority-group`, from its list of caveats; that for other commands is assumed [I]."""

_LEVEL = "(high|medium|normal|low)"
_PROTOCOL = "(arp|cdp|ip|ipv6|ipx)"
_KEYWORD = "[fragments|gt <bytes:0-65535>|lt <bytes:0-65535>|list <acl:1-2699>|tcp <tcp:tcp-port>|udp <udp:udp-port>]"
_PRIORITY = (
    f"protocol {_PROTOCOL} {_LEVEL} {_KEYWORD}|interface <name:interface> {_LEVEL}|default {_LEVEL}"
    "|queue-limit <high:0-32767> <medium:0-32767> <normal:0-32767> <low:0-32767>"
)
_CUSTOM = (
    f"protocol {_PROTOCOL} <queue:0-16> {_KEYWORD}|interface <name:interface> <queue:0-16>|default <queue:0-16>"
    "|lowest-custom <queue:1-16>|queue <queue:0-16> (byte-count <count:1-16777215>|limit <packets:0-32767>)"
)
_HELP = {
    "priority-list": "Build a priority list",
    "queue-list": "Build a custom queue list",
    "number": "List number",
    "protocol": "Priority queueing by protocol",
    "interface": "Establish priorities for packets from a named interface",
    "default": "Set the queue for unspecified datagrams",
    "queue-limit": "Set queue limits for priority queues",
    "lowest-custom": "Set lowest number of queue to be treated as custom",
    "queue": "Queue number",
    "byte-count": "Specify size in bytes of a particular queue",
    "count": "size in bytes",
    "limit": "Set queue entry limit of a particular queue",
    "packets": "number of queue entries",
    "high": "High limit",
    "medium": "Medium limit",
    "normal": "Normal limit",
    "low": "Lower limit",
    "arp": "IP ARP",
    "cdp": "Cisco Discovery Protocol",
    "ip": "IP",
    "ipv6": "IPv6",
    "ipx": "Novell IPX",
    "fragments": "Prioritize fragmented IP packets",
    "gt": "Classify packets greater than a specified size",
    "lt": "Classify packets less than a specified size",
    "bytes": "Packet size, in bytes",
    "list": "To specify an access list",
    "acl": "IP access list",
    "tcp": "Prioritize TCP packets 'to' or 'from' the specified port",
    "udp": "Prioritize UDP packets 'to' or 'from' the specified port",
    "name": "Interface",
    "priority-group": "Assign a priority group to an interface",
    "custom-queue-list": "Assign a custom queue list to an interface",
}


@router_command(
    "config",
    f"priority-list <number:1-16> ({_PRIORITY})",
    no=f"priority-list <number:1-16> [{_PRIORITY}]",
    undo=Undo(table=True, referred=4),
    help=_HELP,
)
def _configure_priority_list(session: ConfigSession, args: Args) -> None:
    number, lists = args.value("number", int), session.device.priority_lists
    present = lists.get(number, PriorityList(number))
    words = args.keywords
    level = next((PRIORITIES.index(word) for word in reversed(words) if word in PRIORITIES), None)
    if "queue-limit" in args:
        limits = tuple(args.value(level, int) for level in PRIORITIES)
        present = replace(present, limits=None if args.unset else limits)
    elif "default" in args:
        present = replace(present, default=None if args.unset else level)
    elif "protocol" in args or "interface" in args:
        present = replace(present, rules=_change_rules(present.rules, _parse_rule(args, level or 0), args))
    elif args.unset:
        present = PriorityList(number)
    lists.pop(number, None)
    if present != PriorityList(number):
        lists[number] = present


@router_command(
    "config",
    f"queue-list <number:1-16> ({_CUSTOM})",
    no=f"queue-list <number:1-16> [{_CUSTOM}]",
    undo=Undo(table=True, referred=4),
    help=_HELP,
)
def _configure_queue_list(session: ConfigSession, args: Args) -> None:
    number, lists = args.value("number", int), session.device.queue_lists
    present = lists.get(number, CustomList(number))
    queue = args.optional("queue", int) or 0
    if "lowest-custom" in args:
        present = replace(present, lowest=None if args.unset else queue)
    elif "default" in args:
        present = replace(present, default=None if args.unset else queue)
    elif "protocol" in args or "interface" in args:
        present = replace(present, rules=_change_rules(present.rules, _parse_rule(args, queue), args))
    elif "byte-count" in args or "limit" in args:
        present = replace(present, queues=_queue_values(present.queues, queue, args))
    elif args.unset:
        present = CustomList(number)
    lists.pop(number, None)
    if present != CustomList(number):
        lists[number] = present


def _parse_rule(args: Args, queue: int) -> QueueRule:
    name = args.optional("name", str)
    if name is not None:
        return QueueRule(queue, None, name)
    words = args.keywords
    protocol = words[words.index("protocol") + 1]
    kinds: tuple[tuple[Literal["gt", "lt", "list", "tcp", "udp"], str], ...] = (
        ("gt", "bytes"),
        ("lt", "bytes"),
        ("list", "acl"),
        ("tcp", "tcp"),
        ("udp", "udp"),
    )
    if "fragments" in args:
        return QueueRule(queue, protocol, kind="fragments")
    for kind, argument in kinds:
        if kind in words[words.index("protocol") :]:
            return QueueRule(queue, protocol, kind=kind, value=args.value(argument, int))
    return QueueRule(queue, protocol)


def _change_rules(rules: tuple[QueueRule, ...], rule: QueueRule, args: Args) -> tuple[QueueRule, ...]:
    """Return the rules with a rule added or removed. A rule for the same packets gets a new queue in its place."""
    same = [each for each in rules if replace(each, queue=rule.queue) == rule]
    if args.unset:
        return tuple(each for each in rules if each not in same)
    return tuple(rule if each in same else each for each in rules) if same else (*rules, rule)


def _queue_values(queues: tuple[CustomQueue, ...], number: int, args: Args) -> tuple[CustomQueue, ...]:
    found = next((each for each in queues if each.number == number), CustomQueue(number))
    if "limit" in args:
        found = replace(found, limit=None if args.unset else args.value("packets", int))
    else:
        found = replace(found, byte_count=None if args.unset else args.value("count", int))
    others = [each for each in queues if each.number != number]
    made = [*others, *([] if found == CustomQueue(number) else [found])]
    return tuple(sorted(made, key=lambda each: each.number))


# Queueing methods of an interface.


@router_command("interface", "priority-group <number:1-16>", no=True, help=_HELP)
def _configure_priority_group(session: ConfigSession, args: Args) -> None:
    number = None if args.unset else args.value("number", int)
    made = replace(session.interface, priority_group=number)
    if number is not None:
        check_queueing(session.device, made, "priority-group")
    session.interface.priority_group = number


@router_command("interface", "custom-queue-list <number:1-16>", no=True, help=_HELP)
def _configure_custom_queue_list(session: ConfigSession, args: Args) -> None:
    number = None if args.unset else args.value("number", int)
    made = replace(session.interface, custom_queue_list=number)
    if number is not None:
        check_queueing(session.device, made, "custom-queue-list")
    session.interface.custom_queue_list = number


def check_queueing(device: Device, interface: Interface, asked: str) -> None:
    """Refuse the command if the interface has queueing of another kind."""
    fair = interface.fair_queue is not None and interface.fair_queue.enabled
    # The data plane has one level of queues: packets from a shaper do not pass a list's queues too (our restriction).
    kinds = (
        ("priority-group", interface.priority_group is not None),
        ("custom-queue-list", interface.custom_queue_list is not None),
        ("traffic-shape", bool(interface.shapers)),
        ("fair-queue", fair),
        ("random-detect", interface.random_detect is not None),
        (
            "service-policy output",
            asked != "fair-queue" and _has_configured_queues(device, interface.service_policy_output),
        ),
    )
    for what, there in kinds:
        if there and what != asked and {what, asked} != {"traffic-shape", "fair-queue"}:
            raise RejectedError(MUST_REMOVE.format(what=what))


def _has_configured_queues(device: Device, name: str | None) -> bool:
    policy = None if name is None else device.policy_maps.get(name)
    return policy is not None and any(each.queueing for part in descendants(device, policy) for each in part.classes)


@OUTPUT_RULES.register_family(5)
def _output_rule(device: Device, policy: PolicyMap, interface: Interface) -> None:
    if any(each.queueing for part in descendants(device, policy) for each in part.classes):
        bare = replace(interface, fair_queue=None, service_policy_output=None)
        check_queueing(device, bare, "service-policy output")


# As printed.


@INTERFACE_LINES.register_family(105, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.priority_group is not None:
        yield f"priority-group {interface.priority_group}"
    if interface.custom_queue_list is not None:
        yield f"custom-queue-list {interface.custom_queue_list}"


@BLOCKS.register_family(125, family="router")
def _config_blocks(device: Device) -> Iterator[list[str]]:
    for priority in sorted(device.priority_lists.values(), key=lambda each: each.number):
        yield [f"priority-list {priority.number} {line}" for line in _priority_lines(priority)]
    for custom in sorted(device.queue_lists.values(), key=lambda each: each.number):
        yield [f"queue-list {custom.number} {line}" for line in _custom_lines(custom)]


def _priority_lines(priority: PriorityList) -> Iterator[str]:
    for rule in priority.rules:
        yield rule_text(rule, PRIORITIES[rule.queue])
    if priority.default is not None:
        yield f"default {PRIORITIES[priority.default]}"
    if priority.limits is not None:
        yield f"queue-limit {' '.join(map(str, priority.limits))}"


def _custom_lines(custom: CustomList) -> Iterator[str]:
    for rule in custom.rules:
        yield rule_text(rule, str(rule.queue))
    if custom.default is not None:
        yield f"default {custom.default}"
    if custom.lowest is not None:
        yield f"lowest-custom {custom.lowest}"
    for queue in custom.queues:
        if queue.byte_count is not None:
            yield f"queue {queue.number} byte-count {queue.byte_count}"
        if queue.limit is not None:
            yield f"queue {queue.number} limit {queue.limit}"


def rule_text(rule: QueueRule, queue: str) -> str:
    """Return a rule as in the configuration or, without a queue's name, as in `show queueing`."""
    words = ["interface", rule.interface, queue] if rule.interface is not None else ["protocol", rule.protocol, queue]
    if rule.kind is not None:
        words.append(rule.kind)
    if rule.kind in ("tcp", "udp"):
        words.append(port_text(TCP if rule.kind == "tcp" else UDP, rule.value))
    elif rule.kind not in (None, "fragments"):
        words.append(str(rule.value))
    return " ".join(word for word in words if word)


# For the data plane.


def engine_priority(device: Device, number: int) -> program_formats.InterfaceQueueingPriority:
    """Return a priority list for the data plane; an undefined list puts all packets into its default queue [I]."""
    made = device.priority_lists.get(number, PriorityList(number))
    rules = [_engine_rule(each) for each in made.rules if _has_data_plane_packets(device, each)]
    queueing: program_formats.InterfaceQueueingPriority = {"type": "priority", "rules": rules}
    if made.default is not None:
        queueing["default"] = made.default
    if made.limits is not None:
        queueing["limits"] = list(made.limits)
    return queueing


def engine_custom(device: Device, number: int) -> program_formats.InterfaceQueueingCustom:
    """Return a custom queue list for the data plane; an undefined list puts all packets into its default queue [I]."""
    made = device.queue_lists.get(number, CustomList(number))
    queueing: program_formats.InterfaceQueueingCustom = {
        "type": "custom",
        "rules": [_engine_rule(each) for each in made.rules if _has_data_plane_packets(device, each)],
        "queues": [_engine_queue(each) for each in made.queues],
    }
    if made.default is not None:
        queueing["default"] = made.default
    if made.lowest is not None:
        queueing["lowest"] = made.lowest
    return queueing


def _has_data_plane_packets(device: Device, rule: QueueRule) -> bool:
    """Return whether the data plane has such packets: of an interface of this router or a supported protocol."""
    return rule.interface in device.interfaces or rule.protocol in ("ip", "ipv6", "arp")


def _engine_queue(queue: CustomQueue) -> program_formats.CustomQueue:
    made: program_formats.CustomQueue = {"number": queue.number}
    if queue.limit is not None:
        made["limit"] = queue.limit
    if queue.byte_count is not None:
        made["byte_count"] = queue.byte_count
    return made


def _engine_rule(rule: QueueRule) -> program_formats.QueueRule:
    made: program_formats.QueueRule = {"queue": rule.queue}
    if rule.interface is not None:
        return made | {"interface": rule.interface}
    protocols: dict[str, program_formats.QueuedProtocol] = {"ip": "ip", "ipv6": "ipv6", "arp": "other"}
    made["protocol"] = protocols[rule.protocol or ""]
    match rule.kind:
        case "fragments":
            made["fragments"] = True
        case "gt":
            made["larger_than"] = rule.value
        case "lt":
            made["smaller_than"] = rule.value
        case "list":
            made["access_list"] = str(rule.value)
        case "tcp" | "udp":
            made["port"] = {"protocol": TCP if rule.kind == "tcp" else UDP, "number": rule.value}
    return made
