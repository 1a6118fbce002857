"""Class-map configuration: `class-map` and its `match` lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import cast

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import Device
from qoslab.ios.model.ios_names import dscp_text, join_with_blanks, vlans_text
from qoslab.ios.model.nbar import MATCH_LIST, PROTOCOLS, PROTOCOLS_BY_NUMBER, PROTOCOLS_BY_PORT
from qoslab.ios.model.policy import CLASS_DEFAULT, ClassMap, Criterion
from qoslab.ios.registry import BLOCKS, ENGINE
from qoslab.system import program_formats

MATCH = (
    "match [not] (any"
    "|access-group (<list:1-2699>|name <access-list:word>)"
    "|[ip] dscp <dscp:dscp>+"
    "|[ip] precedence <precedence:precedence>+"
    "|cos <cos:0-7>+"
    "|vlan <vlans:vlans>+"
    f"|protocol ({'|'.join((*PROTOCOLS, *PROTOCOLS_BY_PORT, *PROTOCOLS_BY_NUMBER))}|rtp [audio])"
    "|ip rtp <lower:2000-65535> <range:0-16383>"
    "|packet length (min <minimum:1-9999> [max <maximum:1-9999>]|max <maximum:1-9999>)"
    "|input-interface <interface:interface>"
    "|qos-group <group:0-99>"
    "|discard-class <discard:0-7>"
    "|class-map <class:word>)"
)

LAST_PORT = 65535

IN_USE = "% Class-map {name} is being used"
# The wording of the following refusals is modelled on IOS, not taken from a printout.
WELL_KNOWN = "% class-default is a well-known class and is not configurable under class-map"
# Our own wording: the input of a packet is known by port.
NO_INPUT_SUBINTERFACE = (
    "% match input-interface does not accept a subinterface here: use match vlan in a policy of the port"
)
LOOP = "% Class-map {name} can not match itself"


def check_name(device: Device, args: Args, name: str) -> str:
    """Return the class or policy name, or refuse one that is too long."""
    if len(name) > device.hardware.qos.longest_name:
        raise args.invalid_argument("name")
    return name


def class_map_users(device: Device, name: str) -> list[str]:
    """Return the names of the policy-maps and other class-maps that refer to a class-map."""
    policies = [policy.name for policy in device.policy_maps.values() if policy.find(name) is not None]
    classes = [
        other.name
        for other in device.class_maps.values()
        if any(criterion.type == "class_map" and criterion.name == name for criterion in other.criteria)
    ]
    return policies + classes


@CONFIG.add(
    "config",
    "class-map [match-all|match-any] <name:word>",
    no="class-map [match-all|match-any] <name:word>",
    undo=Undo(line="class-map [match-all|match-any] <name:word>", referred=2, rewrite=True),
    help={
        "class-map": "Configure QoS Class Map",
        "match-all": "Logical-AND all matching statements under this classmap",
        "match-any": "Logical-OR all matching statements under this classmap",
        "name": "class-map name",
    },
)
def _configure_class_map(session: ConfigSession, args: Args) -> None:
    maps = session.device.class_maps
    name = check_name(session.device, args, args.value("name", str))
    if name == CLASS_DEFAULT:
        raise RejectedError(WELL_KNOWN)
    if args.unset:
        if name in maps and class_map_users(session.device, name):
            raise RejectedError(IN_USE.format(name=name))
        maps.pop(name, None)
        return
    present = maps.get(name, ClassMap(name))
    if "match-any" in args:
        present = replace(present, match="any")
    elif "match-all" in args:
        present = replace(present, match="all")
    maps[name] = present
    session.enter("class-map", name)


@CONFIG.add(
    "class-map",
    "description <text:line>",
    no=True,
    help={"description": "Class-Map description", "text": "Up to 200 characters describing this Class-Map"},
)
def _configure_description(session: ConfigSession, args: Args) -> None:
    _replace(session, replace(session.class_map, description=None if args.unset else args.value("text", str)))


@router_command(
    "class-map",
    MATCH,
    no=MATCH,
    undo=Undo(key=MATCH, ordered=lambda args: True),
    help={
        "match": "classification criteria",
        "not": "Negate this match result",
        "any": "Any packets",
        "access-group": "Access group",
        "list": "Access list index",
        "name": "Named Access List",
        "access-list": "Access list name",
        "ip": "IP specific values",
        "dscp": "Match DSCP in IP(v4) and IPv6 packets",
        "precedence": "Match Precedence in IP(v4) and IPv6 packets",
        "cos": "IEEE 802.1Q/ISL class of service/user priority values",
        "vlan": "VLANs to match",
        "vlans": "VLAN ID, or a range of them",
        "protocol": "Protocol",
        "packet": "Layer 3 Packet length",
        "length": "Layer 3 Packet length",
        "min": "Minimum length of packet in bytes",
        "minimum": "Minimum length of packet in bytes",
        "max": "Maximum length of packet in bytes",
        "maximum": "Maximum length of packet in bytes",
        "input-interface": "Select an input interface to match",
        "interface": "Interface type and number",
        "qos-group": "Qos-group",
        "group": "Qos Group value",
        "discard-class": "Discard behavior identifier",
        "discard": "Discard Class value",
        "class-map": "Class map",
        "class": "class-map name",
        "rtp": "Real-time Transport Protocol, identified by UDP port",
        "audio": "match voice packets",
        "lower": "Lower bound of UDP destination port",
        "range": "Range of UDP ports",
        "bgp": "Border Gateway Protocol",
        "eigrp": "Enhanced Interior Gateway Routing Protocol",
        "http": "World Wide Web traffic",
        "icmp": "Internet Control Message",
        "ipv6": "IPV6",
        "ospf": "Open Shortest Path First",
        "rip": "Routing Information Protocol",
        "secure-http": "Secured HTTP",
        "smtp": "Simple Mail Transfer Protocol",
        "tcp": "Transmission Control Protocol",
        "udp": "User Datagram Protocol",
        **dict.fromkeys(PROTOCOLS_BY_PORT, "Identified by port"),
        **dict.fromkeys(PROTOCOLS_BY_NUMBER, "Identified by protocol number"),
    },
)
def add_match(session: ConfigSession, args: Args) -> None:
    """Add the criterion of a `match` line to the class-map, or remove it."""
    change_match(session, args, _criterion(session, args))


def change_match(session: ConfigSession, args: Args, criterion: Criterion) -> None:
    """Add a criterion to the class-map, or remove it."""
    present = session.class_map
    if args.unset:
        criteria = tuple(each for each in present.criteria if each != criterion)
    elif criterion in present.criteria:
        return
    else:
        criteria = (*present.criteria, criterion)
    _replace(session, replace(present, criteria=criteria))


def _criterion(session: ConfigSession, args: Args) -> Criterion:
    """Return the criterion of a `match` line."""
    negate = "not" in args
    keywords = [word for word in args.keywords if word not in ("match", "not", "ip")]
    what = keywords[0] if keywords else "ip"
    if what == "rtp":
        first = args.value("lower", int)
        last = first + args.value("range", int)
        if last > LAST_PORT:
            raise args.invalid_argument("range")
        return Criterion("rtp_ports", negate, ranges=((first, last),))
    if what == "access-group":
        number = args.optional("list", int)
        name = args.value("access-list", str) if number is None else str(number)
        return Criterion("access_group", negate, name=name)
    if what == "dscp":
        return Criterion("dscp", negate, values=_distinct_values(args, "dscp", 8), ip_only="ip" in args)
    if what == "precedence":
        return Criterion("precedence", negate, values=_distinct_values(args, "precedence", 4), ip_only="ip" in args)
    if what == "cos":
        return Criterion("cos", negate, values=_distinct_values(args, "cos", 4))
    if what == "vlan":
        return Criterion("vlan", negate, ranges=tuple(dict.fromkeys(args.values("vlans", tuple))))
    if what == "protocol":
        return Criterion("protocol", negate, name=" ".join(keywords[1:]) or "ip")
    if what == "packet":
        low, high = args.optional("minimum", int), args.optional("maximum", int)
        if low is not None and high is not None and low > high:
            raise args.invalid_argument("maximum")
        return Criterion("packet_length", negate, minimum=low, maximum=high)
    if what == "input-interface":
        interface = args.value("interface", str)
        if interface not in session.device.interfaces:
            raise args.invalid_argument("interface")
        if "." in interface:
            raise RejectedError(NO_INPUT_SUBINTERFACE)
        return Criterion("input_interface", negate, name=interface)
    if what == "qos-group":
        return Criterion("qos_group", negate, values=(args.value("group", int),))
    if what == "discard-class":
        return Criterion("discard_class", negate, values=(args.value("discard", int),))
    if what == "class-map":
        return Criterion("class_map", negate, name=_nested_class_map(session, args))
    return Criterion("any", negate)


def _distinct_values(args: Args, name: str, limit: int) -> tuple[int, ...]:
    """Return the distinct values of a list; IOS accepts `limit` of them in a line."""
    values = args.values(name, int)
    if len(values) > limit:
        raise args.invalid_repeat(name, limit)
    return tuple(dict.fromkeys(values))


def _nested_class_map(session: ConfigSession, args: Args) -> str:
    name = args.value("class", str)
    maps = session.device.class_maps
    if args.unset:
        return name
    if name not in maps:
        raise RejectedError(f"% class map {name} not configured")
    reached = [name]
    for each in reached:
        reached += [c.name for c in maps[each].criteria if c.type == "class_map" and c.name and c.name not in reached]
    if session.class_map.name in reached:
        raise RejectedError(LOOP.format(name=session.class_map.name))
    return name


def _replace(session: ConfigSession, changed: ClassMap) -> None:
    session.device.class_maps[changed.name] = changed


@BLOCKS.register_family(70)
def _config_blocks(device: Device) -> Iterator[list[str]]:
    yield from (class_map_block(device.class_maps[name]) for name in class_order(device))


def class_order(device: Device) -> list[str]:
    """Return the names of the class-maps in the order of the running configuration."""
    return order_by_reference(
        {
            name: [c.name for c in each.criteria if c.type == "class_map" and c.name is not None]
            for name, each in device.class_maps.items()
        }
    )


def class_map_block(class_map: ClassMap) -> list[str]:
    """Return the lines of one class-map."""
    lines = [f"class-map match-{class_map.match} {class_map.name}"]
    if class_map.description is not None:
        lines.append(f"  description {class_map.description}")
    return lines + [f" {match_line(criterion)}" for criterion in class_map.criteria]


def match_line(criterion: Criterion) -> str:
    """Return the `match` line of a criterion."""
    ip = "ip " if criterion.ip_only else ""
    match criterion.type:
        case "access_group":
            text = f"access-group {_group(criterion.name or '')}"
        case "dscp":
            text = f"{ip}dscp {join_with_blanks(map(dscp_text, criterion.values))}"
        case "precedence" | "cos" | "qos_group" | "discard_class":
            text = f"{ip}{criterion.type.replace('_', '-')} {join_with_blanks(criterion.values)}"
        case "vlan":
            text = f"vlan {join_with_blanks(map(vlans_text, criterion.ranges))}"
        case "packet_length":
            text = f"packet length{_criterion_limits(criterion)}"
        case "input_interface" if criterion.interfaces:
            text = f"input-interface {join_with_blanks(_format_range(*each) for each in criterion.interfaces)}"
        case "protocol" | "input_interface" | "class_map":
            text = f"{criterion.type.replace('_', '-')} {criterion.name}"
        case "rtp_ports" | "unseen":
            text = criterion.list_name.removeprefix(MATCH_LIST)
        case "any":
            text = "any"
    return f"match {'not ' if criterion.negate else ''}{text}"


def _group(name: str) -> str:
    return name if name.isdigit() else f"name {name}"


def _format_range(first: str, last: str) -> str:
    return first if first == last else f"{first} - {last}"


def port_range(first: str, last: str) -> list[str]:
    """Return the ports of a module from the first to the last; empty if they are not in order."""
    module, _, start = first.rpartition("/")
    other, _, end = last.rpartition("/")
    return [f"{module}/{number}" for number in range(int(start), int(end) + 1)] if module == other else []


def _criterion_limits(criterion: Criterion) -> str:
    low = "" if criterion.minimum is None else f" min {criterion.minimum}"
    return low if criterion.maximum is None else f"{low} max {criterion.maximum}"


def order_by_reference(needs: dict[str, list[str]]) -> list[str]:
    """Return the names sorted, but each after the names that it refers to."""
    sorter = TopologicalSorter(needs)
    sorter.prepare()
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order


@ENGINE.register_family(40)
def _engine_config(device: Device) -> program_formats.DataPlaneConfigPart:
    return {"class_maps": {name: _engine_class_map(each) for name, each in device.class_maps.items()}}


def _engine_class_map(class_map: ClassMap) -> program_formats.ClassMap:
    return {"match": class_map.match, "criteria": [_engine_criterion(each) for each in class_map.criteria]}


def _engine_criterion(criterion: Criterion) -> program_formats.Criterion:
    negate, values, name = criterion.negate, list(criterion.values), criterion.name or ""
    match criterion.type:
        case "dscp" | "precedence" as field:
            return {"type": field, "negate": negate, "values": values, "ip_only": criterion.ip_only}
        case "cos":
            return {"type": "cos", "negate": negate, "values": values}
        case "vlan":
            return {"type": "vlan", "negate": negate, "ranges": [list(each) for each in criterion.ranges]}
        case "qos_group":
            return {"type": "qos_group", "negate": negate, "value": values[0]}
        case "discard_class":
            return {"type": "discard_class", "negate": negate, "value": values[0]}
        case "packet_length":
            return {"type": "packet_length", "negate": negate, "min": criterion.minimum, "max": criterion.maximum}
        case "rtp_ports" | "unseen":
            return {"type": "access_group", "negate": negate, "name": criterion.list_name}
        case "protocol" if criterion.list_name:
            return {"type": "access_group", "negate": negate, "name": criterion.list_name}
        case "protocol":
            return {"type": "protocol", "negate": negate, "name": cast("program_formats.ProtocolName", name)}
        case "input_interface" if criterion.interfaces:
            ports = [name for each in criterion.interfaces for name in port_range(*each)]
            return {"type": "input_interfaces", "names": ports}
        case "access_group" | "input_interface" | "class_map" as named:
            return {"type": named, "negate": negate, "name": name}
        case "any":
            return {"type": "any", "negate": negate}
