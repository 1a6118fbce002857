"""Sets of packets that class-maps and access lists match, to find classes that cannot match any packet.

A set is a union of boxes; a box has a range of values for some fields of a packet. Fields without a model here (TCP
flags, ICMP types, fragments) make a set too large, never too small: a set reported as empty is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from ipaddress import IPv4Address, IPv6Address
from itertools import combinations

from qoslab.ios.commands.access_list import criterion_entries, expand_entry
from qoslab.ios.commands.class_map import match_line, port_range
from qoslab.ios.model.device import AccessEntry, Device
from qoslab.ios.model.matches import AddressMatch, PortMatch
from qoslab.ios.model.nbar import IPV6_ONLY_PROTOCOLS
from qoslab.ios.model.policy import CLASS_DEFAULT, ClassMap, Criterion

PORTS = 1 << 16
PORT_BITS = (1 << PORTS) - 1
FULL_PORT_RANGE = {
    "network": 0b111,
    "dscp": (1 << 64) - 1,
    "protocol": (1 << 256) - 1,
    # The bit above the ports is that of a packet without any.
    "source_port": (1 << (PORTS + 1)) - 1,
    "destination_port": (1 << (PORTS + 1)) - 1,
    "cos": (1 << 8) - 1,
    "vlan": (1 << 4096) - 1,
    "length": (1 << (1 << 16)) - 1,
    "qos_group": (1 << 100) - 1,
    "discard_class": (1 << 8) - 1,
    # The lowest bit is that of packets that the device sends itself.
    "input": (1 << 1024) - 1,
}
"""Fields with few values: the mask with a bit for each value."""
IPV4, IPV6 = 0b001, 0b010
ADDRESSES = ("source", "destination")
"""Address fields, represented by bits and mask."""
WELL_KNOWN = {"bgp": 179, "http": 80, "secure-http": 443, "smtp": 25}
"""TCP ports of protocols that the data plane recognises itself."""
NUMBERS = {"icmp": 1, "tcp": 6, "udp": 17, "eigrp": 88, "ospf": 89}
RIP_PORT = 520
MAX_BOXES = 2000
"""Number of boxes above which a set counts as all packets."""

Box = dict[str, tuple[int, int]]
"""Allowed bits of the values by field, and 0; for an address its bits and mask.

A missing field may have any value.
"""


@dataclass(frozen=True)
class PacketSet:
    """A union of boxes; `exact` is False if it may have additional packets."""

    boxes: tuple[Box, ...]
    exact: bool = True

    @property
    def empty(self) -> bool:
        """True if the set has no packets."""
        return not self.boxes

    def __and__(self, other: PacketSet) -> PacketSet:
        found = list[Box]()
        for one in self.boxes:
            found += (box for two in other.boxes if (box := intersect_boxes(one, two)) is not None)
            if len(found) > MAX_BOXES:
                return UNKNOWN_PACKETS
        return PacketSet(tuple(found), self.exact and other.exact)

    def __or__(self, other: PacketSet) -> PacketSet:
        return PacketSet((*self.boxes, *other.boxes), self.exact and other.exact)

    def __invert__(self) -> PacketSet:
        if not self.exact:
            return UNKNOWN_PACKETS
        found = ALL_PACKETS
        for box in self.boxes:
            found &= PacketSet(tuple(subtract_box({}, box)))
            if not found.exact:
                break
        return found


ALL_PACKETS = PacketSet(({},))
NO_PACKETS = PacketSet(())
UNKNOWN_PACKETS = PacketSet(({},), exact=False)
"""An unknown set of packets."""


def intersect_boxes(one: Box, two: Box) -> Box | None:
    """Return the packets of both boxes; None if there are none."""
    found = dict(one)
    for field, (bits, care) in two.items():
        own = found.get(field)
        if own is None:
            found[field] = (bits, care)
        elif field in ADDRESSES:
            if (own[0] ^ bits) & own[1] & care:
                return None
            found[field] = ((own[0] & own[1]) | (bits & care), own[1] | care)
        elif own[0] & bits:
            found[field] = (own[0] & bits, 0)
        else:
            return None
    return found


def subtract_box(box: Box, other: Box) -> Iterator[Box]:
    """Yield boxes with the packets of a box that are not in another one; no two of them have common packets."""
    rest = box
    for field, (bits, care) in other.items():
        parts = ((bits & bit, bit) for bit in _bit_positions(care)) if field in ADDRESSES else ((bits, care),)
        for inside, bit in parts:
            outside = (inside ^ bit, bit) if field in ADDRESSES else (FULL_PORT_RANGE[field] ^ inside, 0)
            found = intersect_boxes(rest, {field: outside}) if any(outside) else None
            if found is not None:
                yield found
            common = intersect_boxes(rest, {field: (inside, bit)})
            if common is None:
                return
            rest = common


def _bit_positions(care: int) -> Iterator[int]:
    while care:
        bit = 1 << (care.bit_length() - 1)
        yield bit
        care ^= bit


def _make_box(**fields: int) -> PacketSet:
    return PacketSet(({name: (bits, 0) for name, bits in fields.items()},)) if all(fields.values()) else NO_PACKETS


def class_packets(device: Device, name: str) -> PacketSet:
    """Return the packets that a class-map matches; unknown for a class that is not configured."""
    if name == CLASS_DEFAULT:
        return ALL_PACKETS
    class_map = device.class_maps.get(name)
    if class_map is None:
        return UNKNOWN_PACKETS
    parts = [criterion_packets(device, each) for each in class_map.criteria]
    if not parts:
        return NO_PACKETS
    return reduce(lambda one, two: one & two if class_map.match == "all" else one | two, parts)


def criterion_packets(device: Device, criterion: Criterion) -> PacketSet:
    """Return the packets that a `match` line matches."""
    found = _requested_values(device, criterion)
    return ~found if criterion.negate else found


def _requested_values(device: Device, criterion: Criterion) -> PacketSet:
    network = IPV4 if criterion.ip_only else IPV4 | IPV6
    match criterion.type:
        case "dscp":
            return _make_box(network=network, dscp=_value_bits(criterion.values))
        case "precedence":
            return _make_box(network=network, dscp=sum(0xFF << (8 * value) for value in criterion.values))
        case "cos" | "qos_group" | "discard_class":
            return _make_box(**{criterion.type: _value_bits(criterion.values)})
        case "vlan":
            return _make_box(
                vlan=_value_bits(vlan for first, last in criterion.ranges for vlan in range(first, last + 1))
            )
        case "packet_length":
            lengths = range(criterion.minimum or 0, (0xFFFF if criterion.maximum is None else criterion.maximum) + 1)
            return _make_box(network=network, length=_value_bits(lengths))
        case "input_interface":
            return _make_box(input=_input_interfaces(device, criterion))
        case "class_map":
            return class_packets(device, criterion.name or "")
        case "access_group":
            return _access_list_packets(device, criterion.name or "")
        case "protocol" if not criterion.list_name:
            return _protocol_packets(criterion.name or "")
        case "protocol" | "rtp_ports" | "unseen":
            return UNKNOWN_PACKETS if criterion.is_undecided else _dedicated_access_list(criterion)
        case "any":
            return ALL_PACKETS


def _value_bits(values: Iterable[int]) -> int:
    return reduce(lambda found, value: found | 1 << value, values, 0)


def _input_interfaces(device: Device, criterion: Criterion) -> int:
    names = [criterion.name] if criterion.name is not None else []
    names += [name for each in criterion.interfaces for name in port_range(*each)]
    known = list(device.interfaces)
    return _value_bits(known.index(name) + 1 for name in names if name in known)


def _dedicated_access_list(criterion: Criterion) -> PacketSet:
    network = IPV6 if criterion.name in IPV6_ONLY_PROTOCOLS else IPV4
    return _entry_boxes(criterion_entries(criterion), network)


def _protocol_packets(name: str) -> PacketSet:
    if name in ("ip", "ipv6"):
        return _make_box(network=IPV4 if name == "ip" else IPV6)
    if name in NUMBERS:
        return _make_box(network=IPV4 | IPV6, protocol=1 << NUMBERS[name])
    number, port = (NUMBERS["udp"], RIP_PORT) if name == "rip" else (NUMBERS["tcp"], WELL_KNOWN.get(name))
    if port is None:
        return UNKNOWN_PACKETS
    either = [{"protocol": 1 << number, f"{side}_port": 1 << port} for side in ADDRESSES]
    return _make_box(network=IPV4 | IPV6, **either[0]) | _make_box(network=IPV4 | IPV6, **either[1])


def _access_list_packets(device: Device, name: str) -> PacketSet:
    """Return the packets that an access list permits; none for an undefined one."""
    found = device.access_lists.get(name)
    if found is None:
        return NO_PACKETS
    entries = [each for entry in found.entries for each in expand_entry(device, entry)]
    return _entry_boxes(entries, IPV6 if found.kind == "ipv6" else IPV4)


def _entry_boxes(entries: Iterable[AccessEntry], network: int) -> PacketSet:
    found, left = NO_PACKETS, ALL_PACKETS
    for entry in entries:
        matched = _entry_box(entry, network)
        if entry.action == "permit":
            found |= left & matched
        else:
            left &= ~matched
        if len(found.boxes) > MAX_BOXES:
            return UNKNOWN_PACKETS
    return found


def _entry_box(entry: AccessEntry, network: int) -> PacketSet:
    fields: Box = {"network": (network, 0)}
    dscp = FULL_PORT_RANGE["dscp"]
    if entry.protocol is not None:
        fields["protocol"] = (1 << entry.protocol, 0)
    if entry.dscp is not None:
        dscp &= 1 << entry.dscp
    if entry.precedence is not None:
        dscp &= 0xFF << (8 * entry.precedence)
    if dscp != FULL_PORT_RANGE["dscp"]:
        fields["dscp"] = (dscp, 0)
    for field, address in zip(ADDRESSES, (entry.source, entry.destination), strict=True):
        if care := _significant_bits(address):
            fields[field] = (int(address.address) & care, care)
    for field, ports in (("source_port", entry.source_port), ("destination_port", entry.destination_port)):
        if ports is not None:
            fields[field] = (_port_boxes(ports), 0)
    if not all(bits or care or name in ADDRESSES for name, (bits, care) in fields.items()):
        return NO_PACKETS
    opaque = entry.established or entry.fragments or entry.icmp_type is not None
    return PacketSet((fields,), exact=not opaque)


def _significant_bits(match: AddressMatch) -> int:
    """Return the significant bits of an address."""
    everything = int(IPv4Address("255.255.255.255") if match.address.version == 4 else IPv6Address((1 << 128) - 1))
    return everything ^ int(match.wildcard)


def _port_boxes(match: PortMatch) -> int:
    ports = match.ports
    match match.op:
        case "eq":
            return _value_bits(ports)
        case "neq":
            return PORT_BITS ^ _value_bits(ports)
        case "gt":
            return PORT_BITS ^ ((1 << (ports[0] + 1)) - 1)
        case "lt":
            return (1 << ports[0]) - 1
        case "range":
            return ((1 << (ports[1] + 1)) - 1) ^ ((1 << ports[0]) - 1)


def no_match_reason(device: Device, class_map: ClassMap) -> str:
    """Return the reason that a class-map cannot match any packet; empty if it can."""
    if not class_map.criteria:
        return "it has no match statement"
    if not class_packets(device, class_map.name).empty:
        return ""
    parts = [(criterion_packets(device, each), each) for each in class_map.criteria]
    dead = [each for packets, each in parts if packets.empty]
    if dead and (class_map.match == "all" or len(dead) == len(parts)):
        return _never_matches(device, dead[0])
    for (one, first), (two, second) in combinations(parts, 2):
        if (one & two).empty:
            return f'no packet matches both "{match_line(first)}" and "{match_line(second)}"'
    return "no packet matches all of its match statements"


def _never_matches(device: Device, criterion: Criterion) -> str:
    line, name = match_line(criterion), criterion.name or ""
    if criterion.type == "access_group" and not criterion.negate:
        lists = device.access_lists
        about = f"access list {name} permits no packet" if name in lists else f"there is no access list {name}"
        return f'"{line}": {about}'
    if criterion.type == "class_map" and not criterion.negate:
        return f'"{line}": {no_match_reason(device, device.class_maps[name])}'
    return f'no packet matches "{line}"'
