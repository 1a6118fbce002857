"""IPv6 access lists: `ipv6 access-list NAME` and its entries.

Their use is that of IPv4 access lists (`access_list`). `flow-label`, `routing`, `mobility` and the options of
filters (`reflect`, `time-range`) are not accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address, IPv6Interface
from typing import Literal

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.access_list import (
    ENTRY_HELP,
    INVALID_NAME,
    KINDS,
    OTHER_KIND,
    FamilyWords,
    access_list_order,
    add_line,
    option_words,
    parse_entry,
    port_words,
    ports_syntax,
    remove_line,
)
from qoslab.ios.model.device import AccessEntry, AccessList, Device, Remark
from qoslab.ios.model.ios_names import ipv6_text
from qoslab.ios.model.matches import ANY_IPV6_ADDRESS, AddressMatch
from qoslab.ios.model.port_names import ICMPV6, ICMPV6_MESSAGES, IPV6_PROTOCOLS, icmpv6_text, ipv6_protocol_text
from qoslab.ios.registry import BLOCKS


def _address(side: str) -> str:
    return f"(any|host <{side}-host:ipv6-address>|<{side}:ipv6-prefix>)"


_SOURCE, _DESTINATION = _address("source"), _address("destination")
_SEQUENCE = "[sequence <sequence:1-4294967294>]"
_OPTIONS = "[(dscp <dscp:dscp>|fragments|log)+]"
_ICMP = f"[{'|'.join(ICMPV6_MESSAGES)}|<type:0-255> [<code:0-255>]]"
_OTHERS = "|".join(name for name in IPV6_PROTOCOLS if name not in ("tcp", "udp", "icmp"))
_TCP_PORTS, _UDP_PORTS = (
    (ports_syntax("source", f"{name}-port"), ports_syntax("destination", f"{name}-port")) for name in ("tcp", "udp")
)
ENTRIES = tuple(
    f"(permit|deny) {body}"
    for body in (
        f"tcp {_SOURCE} {_TCP_PORTS[0]} {_DESTINATION} {_TCP_PORTS[1]} [(established|dscp <dscp:dscp>|fragments|log)+]",
        f"udp {_SOURCE} {_UDP_PORTS[0]} {_DESTINATION} {_UDP_PORTS[1]} {_OPTIONS}",
        f"icmp {_SOURCE} {_DESTINATION} {_ICMP} {_OPTIONS}",
        f"({_OTHERS}|<protocol:0-255>) {_SOURCE} {_DESTINATION} {_OPTIONS}",
    )
)

_HELP = {
    **ENTRY_HELP,
    "permit": "Specify packets to forward",
    "deny": "Specify packets to reject",
    "remark": "Access list entry comment",
    "text": "Comment up to 100 characters",
    "sequence": "Sequence number for this entry",
    "any": "Any source or destination prefix",
    "host": "A single host",
    "source": "Source IPv6 prefix",
    "source-host": "Source IPv6 address",
    "destination": "Destination IPv6 prefix",
    "destination-host": "Destination IPv6 address",
    "protocol": "An IPv6 protocol number",
    **dict.fromkeys(ICMPV6_MESSAGES, "Match this ICMP message"),
    "ipv6": "Any IPv6",
    "sctp": "Streams Control Transmission Protocol",
}


@router_command(
    "config",
    "ipv6 access-list <name:word>",
    no="ipv6 access-list <name:word>",
    # The same key as an IPv4 list, since a name identifies one list of either version.
    undo=Undo("access-list <name:word>", "ipv6 access-list <name:word>", needs_removal=True, referred=3),
    help={
        "ipv6": "Global IPv6 configuration subcommands",
        "access-list": "Configure access lists",
        "name": "User selected string identifying this access list",
    },
)
def _configure_named(session: ConfigSession, args: Args) -> None:
    lists = session.device.access_lists
    name = args.value("name", str)
    if not name[0].isalpha():
        # IPv6 has no numbered access lists.
        raise RejectedError(INVALID_NAME)
    present = lists.get(name)
    if present is not None and present.kind != "ipv6":
        raise RejectedError(OTHER_KIND.format(kind=KINDS[present.kind]))
    if args.unset:
        lists.pop(name, None)
        return
    lists.setdefault(name, AccessList(name, "ipv6"))
    session.enter("ipv6-acl", name)


def _match(args: Args, side: Literal["source", "destination"]) -> AddressMatch:
    """Return the address of one side: a host, a prefix or any."""
    host = args.optional(f"{side}-host", IPv6Address)
    if host is not None:
        return AddressMatch(host, IPv6Address(0))
    prefix = args.optional(side, IPv6Interface)
    if prefix is None:
        return ANY_IPV6_ADDRESS
    return AddressMatch(prefix.network.network_address, prefix.network.hostmask)


_IPV6 = FamilyWords(IPV6_PROTOCOLS, ICMPV6, ICMPV6_MESSAGES, _match)


def _line(session: ConfigSession, args: Args) -> None:
    lists, name = session.device.access_lists, session.position.names[0]
    present = lists.get(name, AccessList(name, "ipv6"))
    text = args.optional("text", str)
    line = parse_entry(args, _IPV6) if text is None else Remark(text)
    if not args.unset:
        lists[name] = add_line(present, line, args.optional("sequence", int))
    elif line in present.lines:
        lists[name] = remove_line(present, present.lines.index(line))


for _body in ENTRIES:
    router_command(
        "ipv6-acl",
        # The number may precede or follow the entry; `show ipv6 access-list` prints it after the entry.
        f"({_SEQUENCE} {_body}|{_body} sequence <sequence:1-4294967294>)",
        no=_body,
        undo=Undo(_body),
        help=_HELP,
    )(_line)
router_command("ipv6-acl", "remark <text:line>", no="remark <text:line>", help=_HELP)(_line)


def _forget_line(session: ConfigSession, args: Args) -> None:
    lists, number = session.device.access_lists, args.value("sequence", int)
    present = lists.get(session.position.names[0])
    if present is None:
        return
    for index, (each, line) in enumerate(zip(present.numbers, present.lines, strict=True)):
        if each == number and isinstance(line, AccessEntry):
            lists[present.name] = remove_line(present, index)


CONFIG.add_no("ipv6-acl", "sequence <sequence:1-4294967294>", requires={"router"}, help=_HELP)(_forget_line)


@BLOCKS.register_family(114)
def _config_blocks(device: Device) -> Iterator[list[str]]:
    for each in access_list_order(device):
        if each.kind == "ipv6":
            yield ipv6_access_list_block(each)


def ipv6_access_list_block(access_list: AccessList) -> list[str]:
    """Return the lines of one IPv6 access list."""
    return [f"ipv6 access-list {access_list.name}", *(f" {ipv6_access_line(line)}" for line in access_list.lines)]


def ipv6_access_line(line: AccessEntry | Remark) -> str:
    """Return one entry or remark of an IPv6 list."""
    if isinstance(line, Remark):
        return f"remark {line.text}"
    words = [line.action, ipv6_protocol_text(line.protocol), _address_text(line.source)]
    words += port_words(line, line.source_port)
    words.append(_address_text(line.destination))
    words += port_words(line, line.destination_port)
    if line.protocol == ICMPV6 and line.icmp_type is not None:
        words.append(icmpv6_text(line.icmp_type, line.icmp_code))
    return " ".join([*words, *option_words(line)])


def _address_text(match: AddressMatch) -> str:
    if match == ANY_IPV6_ADDRESS:
        return "any"
    if int(match.wildcard) == 0:
        return f"host {ipv6_text(match.address)}"
    return f"{ipv6_text(match.address)}/{128 - int(match.wildcard).bit_length()}"
