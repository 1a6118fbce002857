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

from qoslab.ios.commands.access_list import expanded, of_criterion
from qoslab.ios.commands.class_map import match_line, ports_between
from qoslab.ios.model.device import AccessEntry, Device
from qoslab.ios.model.matches import AddressMatch, PortMatch
from qoslab.ios.model.nbar import IPV6_ONLY
from qoslab.ios.model.policy import CLASS_DEFAULT, ClassMap, Criterion

PORTS = 1 << 16
PORT_BITS = (1 << PORTS) - 1
FULL = {
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
MOST_BOXES = 2000
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
            found += (box for two in other.boxes if (box := common_box(one, two)) is not None)
            if len(found) > MOST_BOXES:
                return EVERYTHING_LIKE
        return PacketSet(tuple(found), self.exact and other.exact)

    def __or__(self, other: PacketSet) -> PacketSet:
        return PacketSet((*self.boxes, *other.boxes), self.exact and other.exact)

    def __invert__(self) -> PacketSet:
        if not self.exact:
            return EVERYTHING_LIKE
        found = EVERYTHING
        for box in self.boxes:
            found &= PacketSet(tuple(remainders({}, box)))
            if not found.exact:
                break
        return found


EVERYTHING = PacketSet(({},))
NOTHING = PacketSet(())
EVERYTHING_LIKE = PacketSet(({},), exact=False)
"""An unknown set of packets."""


def common_box(one: Box, two: Box) -> Box | None:
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


def remainders(box: Box, other: Box) -> Iterator[Box]:
    """Yield boxes with the packets of a box that are not in another one; no two of them have common packets."""
    rest = box
    for field, (bits, care) in other.items():
        parts = ((bits & bit, bit) for bit in _single_bits(care)) if field in ADDRESSES else ((bits, care),)
        for inside, bit in parts:
            outside = (inside ^ bit, bit) if field in ADDRESSES else (FULL[field] ^ inside, 0)
            found = common_box(rest, {field: outside}) if any(outside) else None
            if found is not None:
                yield found
            common = common_box(rest, {field: (inside, bit)})
            if common is None:
                return
            rest = common


def _single_bits(care: int) -> Iterator[int]:
    while care:
        bit = 1 << (care.bit_length() - 1)
        yield bit
        care ^= bit


def _box(**fields: int) -> PacketSet:
    return PacketSet(({name: (bits, 0) for name, bits in fields.items()},)) if all(fields.values()) else NOTHING


def class_packets(device: Device, name: str) -> PacketSet:
    """Return the packets that a class-map matches; unknown for a class that is not configured."""
    if name == CLASS_DEFAULT:
        return EVERYTHING
    class_map = device.class_maps.get(name)
    if class_map is None:
        return EVERYTHING_LIKE
    parts = [criterion_packets(device, each) for each in class_map.criteria]
    if not parts:
        return NOTHING
    return reduce(lambda one, two: one & two if class_map.match == "all" else one | two, parts)


def criterion_packets(device: Device, criterion: Criterion) -> PacketSet:
    """Return the packets that a `match` line matches."""
    found = _asked(device, criterion)
    return ~found if criterion.negate else found


def _asked(device: Device, criterion: Criterion) -> PacketSet:
    network = IPV4 if criterion.ip_only else IPV4 | IPV6
    match criterion.type:
        case "dscp":
            return _box(network=network, dscp=_bits(criterion.values))
        case "precedence":
            return _box(network=network, dscp=sum(0xFF << (8 * value) for value in criterion.values))
        case "cos" | "qos_group" | "discard_class":
            return _box(**{criterion.type: _bits(criterion.values)})
        case "vlan":
            return _box(vlan=_bits(vlan for first, last in criterion.ranges for vlan in range(first, last + 1)))
        case "packet_length":
            lengths = range(criterion.minimum or 0, (0xFFFF if criterion.maximum is None else criterion.maximum) + 1)
            return _box(network=network, length=_bits(lengths))
        case "input_interface":
            return _box(input=_inputs(device, criterion))
        case "class_map":
            return class_packets(device, criterion.name or "")
        case "access_group":
            return _listed(device, criterion.name or "")
        case "protocol" if not criterion.list_name:
            return _protocol(criterion.name or "")
        case "protocol" | "rtp_ports" | "unseen":
            return EVERYTHING_LIKE if criterion.undecided else _own_list(criterion)
        case "any":
            return EVERYTHING


def _bits(values: Iterable[int]) -> int:
    return reduce(lambda found, value: found | 1 << value, values, 0)


def _inputs(device: Device, criterion: Criterion) -> int:
    names = [criterion.name] if criterion.name is not None else []
    names += [name for each in criterion.interfaces for name in ports_between(*each)]
    known = list(device.interfaces)
    return _bits(known.index(name) + 1 for name in names if name in known)


def _own_list(criterion: Criterion) -> PacketSet:
    network = IPV6 if criterion.name in IPV6_ONLY else IPV4
    return _entries(of_criterion(criterion), network)


def _protocol(name: str) -> PacketSet:
    if name in ("ip", "ipv6"):
        return _box(network=IPV4 if name == "ip" else IPV6)
    if name in NUMBERS:
        return _box(network=IPV4 | IPV6, protocol=1 << NUMBERS[name])
    number, port = (NUMBERS["udp"], RIP_PORT) if name == "rip" else (NUMBERS["tcp"], WELL_KNOWN.get(name))
    if port is None:
        return EVERYTHING_LIKE
    either = [{"protocol": 1 << number, f"{side}_port": 1 << port} for side in ADDRESSES]
    return _box(network=IPV4 | IPV6, **either[0]) | _box(network=IPV4 | IPV6, **either[1])


def _listed(device: Device, name: str) -> PacketSet:
    """Return the packets that an access list permits; none for an undefined one."""
    found = device.access_lists.get(name)
    if found is None:
        return NOTHING
    entries = [each for entry in found.entries for each in expanded(device, entry)]
    return _entries(entries, IPV6 if found.kind == "ipv6" else IPV4)


def _entries(entries: Iterable[AccessEntry], network: int) -> PacketSet:
    found, left = NOTHING, EVERYTHING
    for entry in entries:
        matched = _entry(entry, network)
        if entry.action == "permit":
            found |= left & matched
        else:
            left &= ~matched
        if len(found.boxes) > MOST_BOXES:
            return EVERYTHING_LIKE
    return found


def _entry(entry: AccessEntry, network: int) -> PacketSet:
    fields: Box = {"network": (network, 0)}
    dscp = FULL["dscp"]
    if entry.protocol is not None:
        fields["protocol"] = (1 << entry.protocol, 0)
    if entry.dscp is not None:
        dscp &= 1 << entry.dscp
    if entry.precedence is not None:
        dscp &= 0xFF << (8 * entry.precedence)
    if dscp != FULL["dscp"]:
        fields["dscp"] = (dscp, 0)
    for field, address in zip(ADDRESSES, (entry.source, entry.destination), strict=True):
        if care := _care(address):
            fields[field] = (int(address.address) & care, care)
    for field, ports in (("source_port", entry.source_port), ("destination_port", entry.destination_port)):
        if ports is not None:
            fields[field] = (_ports(ports), 0)
    if not all(bits or care or name in ADDRESSES for name, (bits, care) in fields.items()):
        return NOTHING
    opaque = entry.established or entry.fragments or entry.icmp_type is not None
    return PacketSet((fields,), exact=not opaque)


def _care(match: AddressMatch) -> int:
    """Return the significant bits of an address."""
    everything = int(IPv4Address("255.255.255.255") if match.address.version == 4 else IPv6Address((1 << 128) - 1))
    return everything ^ int(match.wildcard)


def _ports(match: PortMatch) -> int:
    ports = match.ports
    match match.op:
        case "eq":
            return _bits(ports)
        case "neq":
            return PORT_BITS ^ _bits(ports)
        case "gt":
            return PORT_BITS ^ ((1 << (ports[0] + 1)) - 1)
        case "lt":
            return (1 << ports[0]) - 1
        case "range":
            return ((1 << (ports[1] + 1)) - 1) ^ ((1 << ports[0]) - 1)


def never_matches(device: Device, class_map: ClassMap) -> str:
    """Return the reason that a class-map cannot match any packet; empty if it can."""
    if not class_map.criteria:
        return "it has no match statement"
    if not class_packets(device, class_map.name).empty:
        return ""
    parts = [(criterion_packets(device, each), each) for each in class_map.criteria]
    dead = [each for packets, each in parts if packets.empty]
    if dead and (class_map.match == "all" or len(dead) == len(parts)):
        return _dead(device, dead[0])
    for (one, first), (two, second) in combinations(parts, 2):
        if (one & two).empty:
            return f'no packet matches both "{match_line(first)}" and "{match_line(second)}"'
    return "no packet matches all of its match statements"


def _dead(device: Device, criterion: Criterion) -> str:
    line, name = match_line(criterion), criterion.name or ""
    if criterion.type == "access_group" and not criterion.negate:
        lists = device.access_lists
        about = f"access list {name} permits no packet" if name in lists else f"there is no access list {name}"
        return f'"{line}": {about}'
    if criterion.type == "class_map" and not criterion.negate:
        return f'"{line}": {never_matches(device, device.class_maps[name])}'
    return f'no packet matches "{line}"'
