"""Access lists: numbered and named, standard and extended.

They classify, and filter interfaces (`access_group`). `log` is stored without effect; a class-map that uses
the list does not log on IOS either.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from ipaddress import IPv4Address
from math import prod
from typing import Literal, NamedTuple

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import AccessEntry, AccessList, Device, Remark
from qoslab.ios.model.ios_names import PRECEDENCE_NAMES, dscp_text
from qoslab.ios.model.matches import ANY_ADDRESS, ANY_IPV6_ADDRESS, AddressMatch, PortMatch
from qoslab.ios.model.nbar import IPV6_ONLY_PROTOCOLS, PROTOCOLS_BY_NUMBER, PROTOCOLS_BY_PORT, PROTOCOLS_BY_PORT_RANGE
from qoslab.ios.model.object_groups import group_addresses, group_services
from qoslab.ios.model.policy import Criterion
from qoslab.ios.model.port_names import ICMP, ICMP_MESSAGES, PROTOCOLS, TCP, UDP, icmp_text, port_text, protocol_text
from qoslab.ios.registry import BLOCKS, ENGINE
from qoslab.system import program_formats

SEQUENCE_STEP = 10
# The wording of the following refusals is modelled on IOS, not taken from a printout.
DUPLICATE_SEQUENCE = "% Duplicate sequence number"
OTHER_KIND = "% A named {kind} access list with this name already exists"
INVALID_NAME = "% Invalid access list name."
NO_SUCH_GROUP = "% There is no {kind} object group {name}"
EMPTY_GROUP = "% Object group {name} is empty"
TOO_MANY = "% Object groups of access list {name} expand to {count} entries, at most {limit} are allowed"
MAX_EXPANDED_ENTRIES = 2048
"""Maximum entries of a list after expansion of its object groups, as in the manual of the Catalyst 4500."""
KINDS = {"standard": "standard IP", "extended": "extended IP", "ipv6": "IPv6"}

OTHER_PROTOCOLS = "|".join(name for name in PROTOCOLS if name not in ("tcp", "udp", "icmp"))
_OPTIONS = "[(dscp <dscp:dscp>|precedence <precedence:precedence>|fragments|log)+]"
_TCP_OPTIONS = "[(established|dscp <dscp:dscp>|precedence <precedence:precedence>|fragments|log)+]"


def _address_syntax(side: str, *, groups: bool = False) -> str:
    group = f"|object-group <{side}-group:word>" if groups else ""
    return f"(any|host <{side}:address>{group}|<{side}:address> <{side}-wildcard:wildcard>)"


def ports_syntax(side: str, kind: str) -> str:
    """Return the syntax of the ports of one side; `kind` is the type of their arguments."""
    return (
        f"[eq <{side}-port:{kind}>+|neq <{side}-port:{kind}>+|gt <{side}-port:{kind}>|lt <{side}-port:{kind}>"
        f"|range <{side}-port:{kind}> <{side}-port:{kind}>]"
    )


_SOURCE, _DESTINATION = _address_syntax("source"), _address_syntax("destination")
ICMP_SYNTAX = f"[{'|'.join(ICMP_MESSAGES)}|<type:0-255> [<code:0-255>]]"


def _extended_syntax(source: str, destination: str) -> tuple[str, ...]:
    """Return the syntax of entries of extended lists with these addresses."""
    tcp, udp = (
        (ports_syntax("source", f"{name}-port"), ports_syntax("destination", f"{name}-port")) for name in ("tcp", "udp")
    )
    return tuple(
        f"(permit|deny) {body}"
        for body in (
            f"tcp {source} {tcp[0]} {destination} {tcp[1]} {_TCP_OPTIONS}",
            f"udp {source} {udp[0]} {destination} {udp[1]} {_OPTIONS}",
            f"icmp {source} {destination} {ICMP_SYNTAX} {_OPTIONS}",
            f"({OTHER_PROTOCOLS}|<protocol:0-255>) {source} {destination} {_OPTIONS}",
        )
    )


EXTENDED_SYNTAX = _extended_syntax(_SOURCE, _DESTINATION)
_GROUP_SOURCE, _GROUP_DESTINATION = _address_syntax("source", groups=True), _address_syntax("destination", groups=True)
OBJECT_GROUP_SYNTAX = (
    *_extended_syntax(_GROUP_SOURCE, _GROUP_DESTINATION),
    f"(permit|deny) object-group <service:word> {_GROUP_SOURCE} {_GROUP_DESTINATION} {_OPTIONS}",
)
"""Syntax of entries with object groups: 12.4(20)T and later."""
_ENTRIES_BY_SOFTWARE = (
    ("plain-access-lists", EXTENDED_SYNTAX),
    ("switch", EXTENDED_SYNTAX),
    ("object-groups", OBJECT_GROUP_SYNTAX),
)
"""Syntax of entries by required capability of a device."""
STANDARD = "(permit|deny) (any|host <source:address>|<source:address> [<source-wildcard:wildcard>]) [log]"

ENTRY_HELP = {
    "source-port": "Port number or name",
    "destination-port": "Port number or name",
    "eq": "Match only packets on a given port number",
    "neq": "Match only packets not on a given port number",
    "gt": "Match only packets with a greater port number",
    "lt": "Match only packets with a lower port number",
    "range": "Match only packets in the range of port numbers",
    "established": "Match established connections",
    "dscp": "Match packets with given dscp value",
    "fragments": "Check non-initial fragments",
    "log": "Log matches against this entry",
    "type": "ICMP message type",
    "code": "ICMP message code",
    "ahp": "Authentication Header Protocol",
    "esp": "Encapsulation Security Payload",
    "icmp": "Internet Control Message Protocol",
    "pcp": "Payload Compression Protocol",
    "tcp": "Transmission Control Protocol",
    "udp": "User Datagram Protocol",
}
"""Help of words in entries of either IP version."""
_HELP = {
    **ENTRY_HELP,
    "access-list": "Add an access list entry",
    "list": "IP access list number",
    "permit": "Specify packets to forward",
    "deny": "Specify packets to reject",
    "remark": "Access list entry comment",
    "text": "Comment up to 100 characters",
    "standard": "Standard Access List",
    "extended": "Extended Access List",
    "name": "Access-list name",
    "number": "IP access list number",
    "sequence": "Sequence Number",
    "any": "Any host",
    "host": "A single host",
    "object-group": "Object group",
    "service": "Service object group name",
    "source-group": "Source network object group",
    "destination-group": "Destination network object group",
    "source": "Source address",
    "source-wildcard": "Source wildcard bits",
    "destination": "Destination address",
    "destination-wildcard": "Destination wildcard bits",
    "precedence": "Match packets with given precedence value",
    "protocol": "An IP protocol number",
    **dict.fromkeys(ICMP_MESSAGES, "Match this ICMP message"),
    "eigrp": "Cisco's EIGRP routing protocol",
    "gre": "Cisco's GRE tunneling",
    "igmp": "Internet Gateway Message Protocol",
    "ip": "Any Internet Protocol",
    "ipinip": "IP in IP tunneling",
    "nos": "KA9Q NOS compatible IP over IP tunneling",
    "ospf": "OSPF routing protocol",
    "pim": "Protocol Independent Multicast",
}


def _match(args: Args, side: Literal["source", "destination"]) -> AddressMatch:
    """Return the address of one side with ignored bits cleared, as in IOS."""
    address = args.optional(side, IPv4Address)
    if address is None:
        return ANY_ADDRESS
    wildcard = args.optional(f"{side}-wildcard", IPv4Address) or IPv4Address(0)
    return AddressMatch(IPv4Address(int(address) & ~int(wildcard) & 0xFFFFFFFF), wildcard)


def port_matches(args: Args) -> dict[str, PortMatch]:
    """Return the port matches by side, `source` and `destination`."""
    found: dict[str, PortMatch] = {}
    operators: tuple[Literal["eq", "neq", "gt", "lt", "range"], ...] = ("eq", "neq", "gt", "lt", "range")
    items = args.typed_order()
    for index, item in enumerate(items):
        for op in operators:
            if item.value == op:
                side = items[index + 1].name.removesuffix("-port")
                ports = args.values(f"{side}-port", int)
                if op == "range" and ports[0] > ports[1]:
                    ports.reverse()
                found[side] = PortMatch(op, tuple(dict.fromkeys(ports)) if op in ("eq", "neq") else tuple(ports))
    return found


class FamilyWords(NamedTuple):
    """Words of entries that differ between address families."""

    protocols: Mapping[str, int | None]
    icmp: int
    """The protocol with named messages."""
    messages: Mapping[str, tuple[int, int | None]]
    match: Callable[[Args, Literal["source", "destination"]], AddressMatch]
    """Function for the address of one side."""


def parse_entry(args: Args, family: FamilyWords) -> AccessEntry:
    """Return the entry of a line."""
    action: Literal["permit", "deny"] = "permit" if "permit" in args else "deny"
    protocol = args.optional("protocol", int)
    words = args.keywords[args.keywords.index(action) + 1 :]
    if protocol is None and words and words[0] in family.protocols:
        protocol = family.protocols[words[0]]
    icmp_type, icmp_code = args.optional("type", int), args.optional("code", int)
    if protocol == family.icmp:
        for word in words[1:]:
            if word in family.messages:
                icmp_type, icmp_code = family.messages[word]
    ports = port_matches(args) if protocol in (TCP, UDP) else {}
    if ports and "fragments" in args:
        # Fragments other than the first have no ports.
        raise args.invalid_argument("fragments")
    return AccessEntry(
        action=action,
        protocol=protocol,
        source=family.match(args, "source"),
        destination=family.match(args, "destination"),
        source_port=ports.get("source"),
        destination_port=ports.get("destination"),
        icmp_type=icmp_type,
        icmp_code=icmp_code,
        established="established" in args,
        dscp=args.optional("dscp", int),
        precedence=args.optional("precedence", int),
        fragments="fragments" in args,
        log="log" in args,
        service_group=args.optional("service", str),
        source_group=args.optional("source-group", str),
        destination_group=args.optional("destination-group", str),
    )


_IPV4 = FamilyWords(PROTOCOLS, ICMP, ICMP_MESSAGES, _match)


_latest: tuple[AccessList, set[AccessEntry | Remark]] = AccessList("", "extended"), set()
"""The list that was extended last, with its lines as a set: a long list is typed line by line."""


def _list_lines(present: AccessList) -> set[AccessEntry | Remark]:
    latest, lines = _latest
    return lines if latest is present else set(present.lines)


def add_line(present: AccessList, line: AccessEntry | Remark, number: int | None = None) -> AccessList:
    """Return the list with an additional line; an existing equal line stays in its place."""
    global _latest
    last = present.numbers[-1] if present.numbers else 0
    known = _list_lines(present)
    if line in known:
        # IOS ignores an entry that the list already contains. A remark may occur twice on IOS; here it may not, so that
        # pushing the same configuration twice changes nothing.
        return present
    if isinstance(line, Remark):
        number = last
    elif number is None:
        number = last + SEQUENCE_STEP
    at = bisect_right(present.numbers, number)
    if isinstance(line, AccessEntry):
        same = present.lines[bisect_left(present.numbers, number) : at]
        if any(isinstance(each, AccessEntry) for each in same):
            raise RejectedError(DUPLICATE_SEQUENCE)
    extended = replace(
        present,
        lines=(*present.lines[:at], line, *present.lines[at:]),
        numbers=(*present.numbers[:at], number, *present.numbers[at:]),
    )
    known.add(line)
    _latest = extended, known
    return extended


def remove_line(present: AccessList, index: int) -> AccessList:
    """Return the list without one of its lines."""
    return replace(
        present,
        lines=present.lines[:index] + present.lines[index + 1 :],
        numbers=present.numbers[:index] + present.numbers[index + 1 :],
    )


def _configure_numbered_list(session: ConfigSession, args: Args, kind: Literal["standard", "extended"]) -> None:
    lists = session.device.access_lists
    name = str(args.value("list", int))
    if args.unset:
        # Any entry of the line: IOS removes the whole numbered list.
        lists.pop(name, None)
        return
    text = args.optional("text", str)
    line = parse_entry(args, _IPV4) if text is None else Remark(text)
    _store_list(session, add_line(lists.get(name, AccessList(name, kind)), line), line)


_NUMBERED = Undo(table=True, referred=4)


@CONFIG.add(
    "config",
    f"access-list <list:standard-list> ({STANDARD}|remark <text:line>)",
    no=f"access-list <list:standard-list> [{STANDARD}|remark <text:line>]",
    undo=_NUMBERED,
    help=_HELP,
)
def _configure_numbered_standard(session: ConfigSession, args: Args) -> None:
    _configure_numbered_list(session, args, "standard")


def _numbered_extended(session: ConfigSession, args: Args) -> None:
    _configure_numbered_list(session, args, "extended")


for _requires, _entries in _ENTRIES_BY_SOFTWARE:
    _any_entry = "|".join(_entries)
    CONFIG.add(
        "config",
        f"access-list <list:extended-list> ({_any_entry}|remark <text:line>)",
        no=f"access-list <list:extended-list> [{_any_entry}|remark <text:line>]",
        undo=_NUMBERED,
        requires={_requires},
        help=_HELP,
    )(_numbered_extended)


_NAMED = "ip access-list (standard (<number:standard-list>|<name:word>)|extended (<number:extended-list>|<name:word>))"


@CONFIG.add(
    "config",
    _NAMED,
    no=_NAMED,
    # A name or number identifies one list of any kind.
    undo=Undo(
        "access-list (<name:word>|<number:standard-list>)",
        "ip access-list (standard|extended) <name:word>",
        needs_removal=True,
        referred=3,
    ),
    help={**_HELP, "ip": "Global IP configuration subcommands", "access-list": "Named access-list"},
)
def _configure_named(session: ConfigSession, args: Args) -> None:
    lists = session.device.access_lists
    kind: Literal["standard", "extended"] = "standard" if "standard" in args else "extended"
    number = args.optional("number", int)
    name = str(number) if number is not None else args.value("name", str)
    if number is None and not name[0].isalpha():
        raise RejectedError(INVALID_NAME)
    present = lists.get(name)
    if present is not None and present.kind != kind:
        raise RejectedError(OTHER_KIND.format(kind=KINDS[present.kind]))
    if args.unset:
        lists.pop(name, None)
        return
    lists.setdefault(name, AccessList(name, kind))
    session.enter(f"{kind}-acl", name)


def _line(session: ConfigSession, args: Args) -> None:
    lists = session.device.access_lists
    name = session.position.names[0]
    kind: Literal["standard", "extended"] = "standard" if session.position.mode == "standard-acl" else "extended"
    present = lists.get(name, AccessList(name, kind))
    text = args.optional("text", str)
    line = parse_entry(args, _IPV4) if text is None else Remark(text)
    if not args.unset:
        _store_list(session, add_line(present, line, args.optional("sequence", int)), line)
    elif line in present.lines:
        lists[name] = remove_line(present, present.lines.index(line))


def _store_list(session: ConfigSession, access_list: AccessList, line: AccessEntry | Remark) -> None:
    """Store a list with a new line, if its object groups allow that."""
    device = session.device
    if isinstance(line, AccessEntry) and line.object_groups:
        _check_group(device, line.service_group, "service")
        _check_group(device, line.source_group, "network")
        _check_group(device, line.destination_group, "network")
        check_expansion(device, (access_list,))
    device.access_lists[access_list.name] = access_list


def _check_group(device: Device, name: str | None, kind: Literal["network", "service"]) -> None:
    """Refuse a group that does not exist or is empty."""
    if name is None:
        return
    group = device.object_groups.get(name)
    if group is None or group.kind != kind:
        raise RejectedError(NO_SUCH_GROUP.format(kind=kind, name=name))
    if not (
        group_addresses(device.object_groups, name) if kind == "network" else group_services(device.object_groups, name)
    ):
        raise RejectedError(EMPTY_GROUP.format(name=name))


CONFIG.add("standard-acl", f"[<sequence:1-2147483647>] {STANDARD}", no=STANDARD, undo=Undo(STANDARD), help=_HELP)(_line)
for _requires, _entries in _ENTRIES_BY_SOFTWARE:
    for _body in _entries:
        CONFIG.add(
            "extended-acl",
            f"[<sequence:1-2147483647>] {_body}",
            no=_body,
            undo=Undo(_body),
            requires={_requires},
            help=_HELP,
        )(_line)
CONFIG.add(("standard-acl", "extended-acl"), "remark <text:line>", no="remark <text:line>", help=_HELP)(_line)


def _forget_line(session: ConfigSession, args: Args) -> None:
    lists = session.device.access_lists
    present = lists.get(session.position.names[0])
    number = args.value("sequence", int)
    entries = [] if present is None else list(zip(present.numbers, present.lines, strict=True))
    for index, (each, line) in enumerate(entries):
        if present is not None and each == number and isinstance(line, AccessEntry):
            lists[present.name] = remove_line(present, index)


CONFIG.add_no(("standard-acl", "extended-acl"), "<sequence:1-2147483647>", help=_HELP)(_forget_line)


@BLOCKS.register_family(110)
def _config_blocks(device: Device) -> Iterator[list[str]]:
    yield from (access_list_block(each) for each in access_list_order(device) if each.kind != "ipv6")


def access_list_order(device: Device) -> list[AccessList]:
    """Return the access lists in the order of the running configuration."""
    return sorted(
        device.access_lists.values(),
        key=lambda each: (
            *(each.kind == "ipv6", each.is_numbered, int(each.name) if each.is_numbered else 0),
            *(each.kind != "standard", each.name),
        ),
    )


def access_list_block(access_list: AccessList) -> list[str]:
    """Return the lines of one IPv4 access list."""
    texts = [access_line(access_list, line) for line in access_list.lines]
    if access_list.is_numbered and texts:
        return [f"access-list {access_list.name} {text}" for text in texts]
    return [f"ip access-list {access_list.kind} {access_list.name}", *(f" {text}" for text in texts)]


def access_line(access_list: AccessList, line: AccessEntry | Remark) -> str:
    """Return one entry or remark of an IPv4 list, without the list's name."""
    if isinstance(line, Remark):
        return f"remark {line.text}"
    if access_list.kind == "standard":
        source = _standard_source(line.source)
        return f"{line.action} {source}{' log' if line.log else ''}"
    protocol = protocol_text(line.protocol) if line.service_group is None else f"object-group {line.service_group}"
    words = [line.action, protocol, _extended_address(line.source, line.source_group)]
    words += port_words(line, line.source_port)
    words.append(_extended_address(line.destination, line.destination_group))
    words += port_words(line, line.destination_port)
    if line.protocol == ICMP and line.icmp_type is not None:
        words.append(icmp_text(line.icmp_type, line.icmp_code))
    return " ".join([*words, *option_words(line)])


def option_words(line: AccessEntry) -> list[str]:
    """Return the options of an entry after its addresses and ports, except ICMP messages."""
    words = ["established"] if line.established else []
    if line.dscp is not None:
        words.append(f"dscp {dscp_text(line.dscp)}")
    if line.precedence is not None:
        words.append(f"precedence {PRECEDENCE_NAMES[line.precedence]}")
    return words + [word for word, given in (("fragments", line.fragments), ("log", line.log)) if given]


def _standard_source(match: AddressMatch) -> str:
    if match == ANY_ADDRESS:
        return "any"
    return f"{match.address}" if int(match.wildcard) == 0 else f"{match.address} {match.wildcard}"


def _extended_address(match: AddressMatch, group: str | None) -> str:
    if group is not None:
        return f"object-group {group}"
    if match == ANY_ADDRESS:
        return "any"
    return f"host {match.address}" if int(match.wildcard) == 0 else f"{match.address} {match.wildcard}"


def port_words(line: AccessEntry, match: PortMatch | None) -> list[str]:
    """Return the words of the port condition of an entry on one side."""
    return [] if match is None else [match.op, *(port_text(line.protocol, port) for port in match.ports)]


@ENGINE.register_family(30)
def _engine_config(device: Device) -> program_formats.DataPlaneConfigPart:
    return {
        "access_lists": {
            **dict.fromkeys(_named_lists(device), UNDEFINED_LIST),
            **{each.list_name: list(map(_engine_entry, criterion_entries(each))) for each in _list_criteria(device)},
            **{name: _engine_access_list(device, each) for name, each in device.access_lists.items()},
            **device.tree_access_lists,
        }
    }


UNDEFINED_LIST: list[program_formats.AccessListEntry] = []
"""Access list that is referenced but not configured: it matches nothing (assumed, not documented)."""


def _list_criteria(device: Device) -> set[Criterion]:
    """Return the criteria of class-maps with a separate access list in the data plane."""
    criteria = {criterion for each in device.class_maps.values() for criterion in each.criteria}
    return {replace(each, negate=False) for each in criteria if each.list_name}


def criterion_entries(criterion: Criterion) -> list[AccessEntry]:
    """Return the entries that represent a criterion; empty if no packet of a lab matches it."""
    if criterion.type == "rtp_ports":
        return [AccessEntry("permit", UDP, destination_port=PortMatch("range", each)) for each in criterion.ranges]
    return protocol_entries(criterion.name or "") if criterion.type == "protocol" else []


def protocol_entries(name: str) -> list[AccessEntry]:
    """Return the entries that represent a protocol identified by ports or number; empty for other protocols."""
    address = ANY_IPV6_ADDRESS if name in IPV6_ONLY_PROTOCOLS else ANY_ADDRESS
    entries = [AccessEntry("permit", number, address, address) for number in PROTOCOLS_BY_NUMBER.get(name, ())]
    matches = [(number, PortMatch("eq", ports)) for number, ports in PROTOCOLS_BY_PORT.get(name, ())]
    if (ports := PROTOCOLS_BY_PORT_RANGE.get(name)) is not None:
        matches.append((UDP, PortMatch("range", ports)))
    for number, match in matches:
        entries += [
            AccessEntry("permit", number, address, address, source_port=match),
            AccessEntry("permit", number, address, address, destination_port=match),
        ]
    return entries


def _named_lists(device: Device) -> set[str]:
    """Return the names of access lists that class-maps and interfaces refer to."""
    criteria = [criterion for each in device.class_maps.values() for criterion in each.criteria]
    names = {each.name for each in criteria if each.type == "access_group" and each.name is not None}
    rules = [rule for each in device.priority_lists.values() for rule in each.rules]
    rules += [rule for each in device.queue_lists.values() for rule in each.rules]
    numbers = {rule.value for rule in rules if rule.kind == "list"}
    for interface in device.interfaces.values():
        numbers |= {limit.number for limit in interface.rate_limits if limit.match == "access-group"}
        numbers |= {shaper.access_list for shaper in interface.shapers if shaper.access_list is not None}
    return names | {str(number) for number in numbers}


def _engine_access_list(device: Device, access_list: AccessList) -> list[program_formats.AccessListEntry]:
    return [_engine_entry(each) for entry in access_list.entries for each in expand_entry(device, entry)]


def expand_entry(device: Device, entry: AccessEntry) -> list[AccessEntry]:
    """Return the entries without object groups for an entry: one for each combination of the groups' members."""
    if not entry.object_groups:
        return [entry]
    return [
        replace(each, source=source, destination=destination, source_group=None, destination_group=None)
        for each in _expand_service(device, entry)
        for source in _expand_address(device, entry.source, entry.source_group)
        for destination in _expand_address(device, entry.destination, entry.destination_group)
    ]


def _expand_address(device: Device, match: AddressMatch, group: str | None) -> list[AddressMatch]:
    return [match] if group is None else group_addresses(device.object_groups, group)


def _expand_service(device: Device, entry: AccessEntry) -> list[AccessEntry]:
    if entry.service_group is None:
        return [entry]
    return [
        replace(
            entry,
            service_group=None,
            protocol=protocol,
            source_port=each.source_port,
            destination_port=each.destination_port,
            icmp_type=each.icmp_type,
            icmp_code=each.icmp_code,
        )
        for each in group_services(device.object_groups, entry.service_group)
        for protocol in each.protocols or (None,)
    ]


def check_expansion(device: Device, lists: Iterable[AccessList]) -> None:
    """Refuse access lists whose object groups expand to more entries than the data plane should check per packet."""
    for each in lists:
        count = sum(_entry_expansions(device, entry) for entry in each.entries if entry.object_groups)
        if count > MAX_EXPANDED_ENTRIES:
            raise RejectedError(TOO_MANY.format(name=each.name, count=count, limit=MAX_EXPANDED_ENTRIES))


def _entry_expansions(device: Device, entry: AccessEntry) -> int:
    sides = ((entry.source, entry.source_group), (entry.destination, entry.destination_group))
    return len(_expand_service(device, entry)) * prod(len(_expand_address(device, *side)) for side in sides)


def _engine_entry(entry: AccessEntry) -> program_formats.AccessListEntry:
    return {
        "action": entry.action,
        "protocol": entry.protocol,
        "source": _engine_address(entry.source),
        "destination": _engine_address(entry.destination),
        "source_port": _engine_ports(entry.source_port),
        "destination_port": _engine_ports(entry.destination_port),
        "dscp": entry.dscp,
        "precedence": entry.precedence,
        "established": entry.established,
        "icmp_type": entry.icmp_type,
        "icmp_code": entry.icmp_code,
        "fragments": entry.fragments,
    }


def _engine_address(match: AddressMatch) -> program_formats.AddressMatch:
    return {"address": str(match.address), "wildcard": str(match.wildcard)}


def _engine_ports(match: PortMatch | None) -> program_formats.PortMatch | None:
    return None if match is None else {"op": match.op, "ports": list(match.ports)}
