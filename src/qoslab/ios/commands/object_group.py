"""Object groups: `object-group network` and `object-group service` (12.4(20)T and later).

Entries of extended access lists refer to them (`access_list`), and compile to one entry for each combination of their
objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Literal, cast

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.access_list import ICMP_SYNTAX, OTHER_PROTOCOLS, check_expansion
from qoslab.ios.commands.class_map import order_by_reference
from qoslab.ios.model.device import Device
from qoslab.ios.model.matches import PortMatch
from qoslab.ios.model.object_groups import NetworkObject, ObjectGroup, ServiceObject, nested_groups
from qoslab.ios.model.port_names import ICMP, ICMP_MESSAGES, PROTOCOLS, TCP, UDP, icmp_text, port_text, protocol_text
from qoslab.ios.registry import BLOCKS

# Cisco, "Object Groups for ACLs", restrictions: a group that is used can neither be removed nor made empty. The wording
# of the following refusals is modelled on IOS, not taken from a printout.
IN_USE = "% Object group {name} is in use, it can not be removed"
LAST_OBJECT = "% Object group {name} is in use, its last object can not be removed"
OTHER_KIND = "% Object group {name} is a {kind} object group"
UNKNOWN = "% Object group {name} is not configured"
LOOP = "% Object group {name} can not contain itself"

_HELP = {
    "object-group": "Object-group configuration",
    "network": "network group",
    "service": "service group",
    "name": "object-group name",
    "description": "Object group description",
    "text": "Up to 200 characters describing this group",
    "group-object": "Nested object group",
    "group": "Nested object group name",
    "host": "Host address of the object-group member",
    "address": "Network address of the group members",
    "mask": "Network mask",
    "length": "Network mask length",
    "range": "Match only packets in the range",
    "first": "Start address",
    "last": "End address",
    "any": "Any host",
    "source": "Source port",
    "source-port": "Port number or name",
    "destination-port": "Port number or name",
    "eq": "Match only packets on a given port number",
    "gt": "Match only packets with a greater port number",
    "lt": "Match only packets with a lower port number",
    "tcp-udp": "TCP or UDP protocol",
    "protocol": "An IP protocol number",
    "type": "ICMP message type",
    "code": "ICMP message code",
    **dict.fromkeys(PROTOCOLS, "This protocol"),
    **dict.fromkeys(ICMP_MESSAGES, "This ICMP message"),
}


_REQUIRES = {"object-groups"}


@CONFIG.add(
    "config",
    "object-group (network|service) <name:word>",
    no="object-group (network|service) <name:word>",
    undo=Undo(
        "object-group <name:word>", "object-group (network|service) <name:word>", needs_block_removal=True, referred=5
    ),
    requires=_REQUIRES,
    help=_HELP,
)
def _configure_object_group(session: ConfigSession, args: Args) -> None:
    groups, name = session.device.object_groups, args.value("name", str)
    kind: Literal["network", "service"] = "network" if "network" in args else "service"
    present = groups.get(name)
    if present is not None and present.kind != kind:
        raise RejectedError(OTHER_KIND.format(name=name, kind=present.kind))
    if args.unset:
        if present is not None and (_is_used_by_access_list(session.device, name) or _is_nested(session.device, name)):
            raise RejectedError(IN_USE.format(name=name))
        groups.pop(name, None)
        return
    groups.setdefault(name, ObjectGroup(name, kind))
    session.enter(f"{kind}-group", name)


def _is_used_by_access_list(device: Device, name: str) -> bool:
    """Return whether an entry of an access list refers to the group, directly or through another group."""
    named = {group for each in device.access_lists.values() for entry in each.entries for group in entry.object_groups}
    return any(part.name == name for group in named for part in nested_groups(device.object_groups, group))


def _is_nested(device: Device, name: str) -> bool:
    """Return whether another group refers to this one."""
    return any(name in each.groups for each in device.object_groups.values())


@CONFIG.add(("network-group", "service-group"), "description <text:line>", no=True, requires=_REQUIRES, help=_HELP)
def _configure_description(session: ConfigSession, args: Args) -> None:
    _store_group(session, replace(_current_group(session), description=None if args.unset else args.value("text", str)))


def _current_group(session: ConfigSession) -> ObjectGroup:
    return session.device.object_groups[session.position.names[0]]


def _store_group(session: ConfigSession, group: ObjectGroup) -> None:
    """Replace the group of the same name, unless access lists do not allow it."""
    groups = session.device.object_groups
    before = groups[group.name]
    if group.empty and not before.empty and _is_used_by_access_list(session.device, group.name):
        raise RejectedError(LAST_OBJECT.format(name=group.name))
    groups[group.name] = group
    try:
        check_expansion(session.device, session.device.access_lists.values())
    except RejectedError:
        groups[group.name] = before
        raise


_NETWORK = (
    "(host <first:address>|<address:address> (<mask:mask>|<length:length>)|range <first:address> <last:address>|any)"
)


_GROUP = "group-object <group:word>"
_HOLDS = Undo(attaches=True)
"""A nested group is removed before other changes, since the nesting may be reversed."""


@CONFIG.add("network-group", _NETWORK, no=_NETWORK, undo=Undo(late=True), requires=_REQUIRES, help=_HELP)
@CONFIG.add("network-group", _GROUP, no=_GROUP, undo=_HOLDS, requires=_REQUIRES, help=_HELP)
def _configure_network(session: ConfigSession, args: Args) -> None:
    group, each = _current_group(session), _network_object(session, args)
    others = tuple(one for one in group.networks if one != each)
    if args.unset:
        _store_group(session, replace(group, networks=others))
    elif each not in group.networks:
        _store_group(session, replace(group, networks=(*others, each)))


def _network_object(session: ConfigSession, args: Args) -> NetworkObject:
    name = args.optional("group", str)
    if name is not None:
        return NetworkObject("group", group=_nestable_name(session, args, name))
    if "any" in args:
        return NetworkObject("any")
    address = args.optional("address", IPv4Address)
    if address is not None:
        mask = args.optional("mask", IPv4Address) or args.value("length", IPv4Address)
        wildcard = int(mask) ^ 0xFFFFFFFF
        if wildcard & (wildcard + 1):
            raise RejectedError(f"Bad mask 0x{int(mask):X} for address {address}")
        return NetworkObject("subnet", address, mask)
    first, last = args.value("first", IPv4Address), args.optional("last", IPv4Address)
    if last is None:
        return NetworkObject("host", first)
    if last < first:
        raise args.invalid_argument("last")
    return NetworkObject("range", first, last)


def _nestable_name(session: ConfigSession, args: Args, name: str) -> str:
    """Return the name of a group that may be nested in the current one."""
    group, groups = _current_group(session), session.device.object_groups
    if args.unset:
        return name
    if name not in groups:
        raise RejectedError(UNKNOWN.format(name=name))
    if groups[name].kind != group.kind:
        raise RejectedError(OTHER_KIND.format(name=name, kind=groups[name].kind))
    if any(each.name == group.name for each in nested_groups(groups, name)):
        raise RejectedError(LOOP.format(name=group.name))
    return name


def _ports_syntax(side: str, kind: str) -> str:
    port = f"<{side}-port:{kind}>"
    return f"({port}|eq {port}|gt {port}|lt {port}|range {port} {port})"


_SERVICES = (
    *(
        f"{word} [source {_ports_syntax('source', kind)}] [{_ports_syntax('destination', kind)}]"
        for word, kind in (("tcp", "tcp-port"), ("udp", "udp-port"), ("tcp-udp", "tcp-port"))
    ),
    f"icmp {ICMP_SYNTAX}",
    f"({OTHER_PROTOCOLS}|<protocol:0-255>)",
)


@CONFIG.add("service-group", _GROUP, no=_GROUP, undo=_HOLDS, requires=_REQUIRES, help=_HELP)
def _configure_service(session: ConfigSession, args: Args) -> None:
    group, each = _current_group(session), _service_object(session, args)
    others = tuple(one for one in group.services if one != each)
    if args.unset:
        _store_group(session, replace(group, services=others))
    elif each not in group.services:
        _store_group(session, replace(group, services=(*others, each)))


for _syntax in _SERVICES:
    CONFIG.add("service-group", _syntax, no=_syntax, undo=Undo(_syntax, late=True), requires=_REQUIRES, help=_HELP)(
        _configure_service
    )


def _service_object(session: ConfigSession, args: Args) -> ServiceObject:
    name = args.optional("group", str)
    if name is not None:
        return ServiceObject(group=_nestable_name(session, args, name))
    number = args.optional("protocol", int)
    if number is not None:
        return ServiceObject((number,))
    word = args.keywords[0]
    if word == "tcp-udp":
        return ServiceObject((TCP, UDP), _port_match(args, "source"), _port_match(args, "destination"))
    protocol = PROTOCOLS[word]
    if protocol is None:
        return ServiceObject()
    if protocol == ICMP:
        icmp_type, icmp_code = args.optional("type", int), args.optional("code", int)
        for each in args.keywords[1:]:
            icmp_type, icmp_code = ICMP_MESSAGES[each]
        return ServiceObject((ICMP,), icmp_type=icmp_type, icmp_code=icmp_code)
    return ServiceObject((protocol,), _port_match(args, "source"), _port_match(args, "destination"))


def _port_match(args: Args, side: str) -> PortMatch | None:
    """Return the condition on the ports of one side; a single port is `eq`."""
    ports = args.values(f"{side}-port", int)
    if not ports:
        return None
    items = args.typed_order()
    first = next(index for index, item in enumerate(items) if item.name == f"{side}-port")
    op = items[first - 1].name
    if op == "range" and ports[0] > ports[1]:
        ports.reverse()
    return PortMatch(
        cast("Literal['eq', 'gt', 'lt', 'range']", op) if op in ("gt", "lt", "range") else "eq", tuple(ports)
    )


@BLOCKS.register_family(68, family="router")
def _config_blocks(device: Device) -> Iterator[list[str]]:
    for name in group_order(device):
        group = device.object_groups[name]
        yield [f"object-group {group.kind} {name}", *(f" {line}" for line in group_lines(group))]


def group_order(device: Device) -> list[str]:
    """Return the names of the object groups in the order of the running configuration."""
    return order_by_reference({name: each.groups for name, each in device.object_groups.items()})


def group_lines(group: ObjectGroup) -> Iterator[str]:
    """Yield the lines below an object group."""
    if group.description is not None:
        yield f"description {group.description}"
    yield from map(_network_text, group.networks)
    yield from map(_service_text, group.services)


def _network_text(each: NetworkObject) -> str:
    match each.kind:
        case "any":
            return "any"
        case "host":
            return f"host {each.first}"
        case "subnet":
            return f"{each.first} {each.second}"
        case "range":
            return f"range {each.first} {each.second}"
        case "group":
            return f"group-object {each.group}"


def _service_text(each: ServiceObject) -> str:
    if each.group:
        return f"group-object {each.group}"
    if not each.protocols:
        return "ip"
    words = ["tcp-udp" if len(each.protocols) > 1 else protocol_text(each.protocols[0])]
    if each.source_port is not None:
        words += ["source", _port_words(each, each.source_port)]
    if each.destination_port is not None:
        words.append(_port_words(each, each.destination_port))
    if each.icmp_type is not None:
        words.append(icmp_text(each.icmp_type, each.icmp_code))
    return " ".join(words)


def _port_words(each: ServiceObject, match: PortMatch) -> str:
    return " ".join([match.op, *(port_text(each.protocols[0], port) for port in match.ports)])
