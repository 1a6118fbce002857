"""Access lists that filter an interface's packets: `ip access-group` and `ipv6 traffic-filter`.

A list that is not configured, or that has no entries, permits everything; packets of the router itself are not filtered
on output (Cisco, "ip access-group").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, cast

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import AccessGroups, Device, Interface
from qoslab.ios.registry import ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.system import program_formats

# Our own wording, and no refusal: the list may be replaced later.
OTHER_FAMILY = "Access list {name} is an {other} list: no {family} packets are filtered"

_IPV4 = "ip access-group (<list:1-199>|<list:1300-2699>|<name:word>) (in|out)"
_HELP = {
    "list": "IP access list (standard or extended)",
    "name": "Access-list name",
    "in": "inbound packets",
    "out": "outbound packets",
}


@router_command(
    ("interface", "subinterface"),
    _IPV4,
    no="ip access-group [(<list:1-199>|<list:1300-2699>|<name:word>)] (in|out)",
    undo=Undo(line="ip access-group <name:word> (in|out)", attaches=True),
    help={**_HELP, "access-group": "Specify access control for packets"},
)
def _configure_access_group(session: ConfigSession, args: Args) -> None:
    number = args.optional("list", int)
    _attach(session, args, args.optional("name", str) if number is None else str(number), 4)


@router_command(
    ("interface", "subinterface"),
    "ipv6 traffic-filter <name:word> (in|out)",
    no="ipv6 traffic-filter [<name:word>] (in|out)",
    undo=Undo(line="ipv6 traffic-filter <name:word> (in|out)", attaches=True),
    help={**_HELP, "ipv6": "IPv6 interface subcommands", "traffic-filter": "Access control list for packets"},
)
def _configure_traffic_filter(session: ConfigSession, args: Args) -> None:
    _attach(session, args, args.optional("name", str), 6)


def _attach(session: ConfigSession, args: Args, name: str | None, version: Literal[4, 6]) -> None:
    interface = session.interface
    if name is not None and args.optional("name", str) == name and not name[0].isalpha():
        # A number outside the ranges of access lists.
        raise args.invalid_argument("name")
    if args.unset:
        name = None
    elif (
        name is not None and name in session.device.access_lists and not _is_list_defined(session.device, name, version)
    ):
        other = "IPv4" if version == 6 else "IPv6"
        session.notices.append(OTHER_FAMILY.format(name=name, other=other, family=f"IPv{version}"))
    present = interface.filters if version == 4 else interface.ipv6_filters
    changed = replace(present, input=name) if "in" in args else replace(present, output=name)
    if version == 4:
        interface.filters = changed
    else:
        interface.ipv6_filters = changed


def _is_list_defined(device: Device, name: str, version: Literal[4, 6]) -> bool:
    """Return whether an access list of that name exists for that version of IP."""
    found = device.access_lists.get(name)
    return found is not None and (found.kind == "ipv6") == (version == 6)


@INTERFACE_LINES.register_family(31, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    yield from _group_lines("ip access-group", interface.filters)


@INTERFACE_LINES.register_family(86, family="router")
def _ipv6_lines(interface: Interface) -> Iterator[str]:
    yield from _group_lines("ipv6 traffic-filter", interface.ipv6_filters)


def _group_lines(command: str, groups: AccessGroups) -> Iterator[str]:
    if groups.input is not None:
        yield f"{command} {groups.input} in"
    if groups.output is not None:
        yield f"{command} {groups.output} out"


def filter_names(device: Device, interface: Interface) -> tuple[list[str], list[str]]:
    """Return the names of the effective input and output access lists of an interface."""
    names: tuple[list[str], list[str]] = ([], [])
    versions: tuple[tuple[AccessGroups, Literal[4, 6]], ...] = ((interface.filters, 4), (interface.ipv6_filters, 6))
    for groups, version in versions:
        for found, name in zip(names, (groups.input, groups.output), strict=True):
            # A missing list permits everything; a list with this name may exist for the other IP version.
            if name is not None and _is_list_defined(device, name, version):
                found.append(name)
    return names


def engine_filters(device: Device, interface: Interface) -> dict[str, list[str]]:
    """Return the data plane's keys of an interface's or a subinterface's filters."""
    names = dict(zip(("access_groups_input", "access_groups_output"), filter_names(device, interface), strict=True))
    return {key: value for key, value in names.items() if value}


@ENGINE_INTERFACE.register_family(51, family="router")
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    return cast("program_formats.InterfaceConfigPart", engine_filters(device, interface))
