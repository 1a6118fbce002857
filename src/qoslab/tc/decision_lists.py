"""Class-maps and access lists as decision lists: ordered rows; the first matching row decides.

A decision list is independent of the classifier that implements it. `any`, `all`, `not` and nested class-maps are
combined row by row, so that deny entries of access lists keep their meaning.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

MAX_ROWS = 1024
"""Greatest number of rows of a class-map."""
GREATEST_PORT = 65_535
ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
PROTOCOL_NUMBERS = {"icmp": ICMP, "tcp": TCP, "udp": UDP, "ospf": 89, "eigrp": 88}
PROTOCOL_PORTS = {"bgp": (TCP, 179), "http": (TCP, 80), "secure-http": (TCP, 443), "smtp": (TCP, 25), "rip": (UDP, 520)}
"""Protocols that are recognised by a port at either end, as in `crates/qos-core/src/classify/matcher.rs`."""
ACK, RST = 0x10, 0x04

Network = Literal["ip", "ipv6"]
NETWORKS: tuple[Network, ...] = ("ip", "ipv6")
Bits = tuple[int, int]
"""Value and mask."""
Range = tuple[int, int]
"""First and last."""


class NotExpressibleError(Exception):
    """A match without an equivalent in the kernel; the message is the reason."""


@dataclass(frozen=True, slots=True)
class PacketFields:
    """A set of packets: those with all of these fields. None means any value."""

    network: Network | None = None
    dsfield: Bits | None = None
    """Bits of the differentiated services field."""
    protocol: int | None = None
    source: Bits | None = None
    destination: Bits | None = None
    source_port: Range | None = None
    destination_port: Range | None = None
    flags: Bits | None = None
    """TCP flags."""
    icmp_type: int | None = None
    icmp_code: int | None = None
    later_fragment: bool = False
    """Only fragments other than the first."""
    length: Range | None = None
    """Bytes of the IP packet."""
    input_interface: str | None = None
    """IOS name."""
    qos_group: int | None = None

    @property
    def matches_all(self) -> bool:
        """True if no field is compared."""
        return self == PacketFields()

    @property
    def ports(self) -> bool:
        """True if a field of the transport layer is compared, which later fragments lack."""
        transport = (self.source_port, self.destination_port, self.flags, self.icmp_type)
        return any(each is not None for each in transport)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a decision list."""

    packets: PacketFields
    member: bool
    """True if these packets are in the class."""


@dataclass(frozen=True, slots=True)
class DecisionList:
    """A decision list."""

    rows: tuple[Row, ...]
    default: bool
    """Verdict for packets that no row matches."""

    def negate(self) -> DecisionList:
        """Return the decision list of all other packets."""
        return DecisionList(tuple(replace(row, member=not row.member) for row in self.rows), not self.default)

    def combine(self, other: DecisionList, *, every: bool) -> DecisionList:
        """Return the packets in both lists (`every`), or in at least one of them.

        Raise NotExpressibleError if the result has more than `MAX_ROWS` rows.
        """
        blocks: list[Row] = []
        for row in (*self.rows, Row(PacketFields(), self.default)):
            last = row.packets.matches_all
            if row.member != every:
                blocks.append(row)
                if last:
                    return _list(blocks[:-1], default=row.member)
                continue
            for inner in (*other.rows, Row(PacketFields(), other.default)):
                both = intersect_packets(row.packets, inner.packets)
                if both is not None:
                    blocks.append(Row(both, inner.member))
            if len(blocks) > 4 * MAX_ROWS:
                raise NotExpressibleError(f"one class-map needs more than {MAX_ROWS} filters")
            if last:
                break
        return _list(blocks[:-1], default=other.default)


def _list(rows: Sequence[Row], *, default: bool) -> DecisionList:
    """Return a decision list without redundant rows. Raise NotExpressibleError if it has more than `MAX_ROWS`."""
    kept: dict[PacketFields, bool] = {}
    for row in rows:
        kept.setdefault(row.packets, row.member)
    found = [Row(packets, member) for packets, member in kept.items()]
    while found and found[-1].member == default:
        found.pop()
    if len(found) > MAX_ROWS:
        raise NotExpressibleError(f"one class-map needs more than {MAX_ROWS} filters")
    return DecisionList(tuple(found), default)


def intersect_packets(one: PacketFields, other: PacketFields) -> PacketFields | None:
    """Return the packets in both sets; None if there are none."""
    values: dict[str, Any] = {"later_fragment": one.later_fragment or other.later_fragment}
    for name in ("network", "protocol", "icmp_type", "icmp_code", "input_interface", "qos_group"):
        first, second = getattr(one, name), getattr(other, name)
        if first is not None and second is not None and first != second:
            return None
        values[name] = second if first is None else first
    for name in ("dsfield", "source", "destination", "flags"):
        found = _intersect_bits(getattr(one, name), getattr(other, name))
        if found is False:
            return None
        values[name] = found
    for name in ("source_port", "destination_port", "length"):
        first, second = getattr(one, name), getattr(other, name)
        both = second if first is None else first
        if first is not None and second is not None:
            both = (max(first[0], second[0]), min(first[1], second[1]))
            if both[0] > both[1]:
                return None
        values[name] = both
    return PacketFields(**values)


def _intersect_bits(one: Bits | None, other: Bits | None) -> Bits | Literal[False] | None:
    if one is None or other is None:
        return other if one is None else one
    if (one[0] ^ other[0]) & one[1] & other[1]:
        return False
    return one[0] & one[1] | other[0] & other[1], one[1] | other[1]


def class_decision(config: Mapping[str, Any], name: str) -> DecisionList:
    """Return the decision list of a class-map of an engine configuration.

    Raise NotExpressibleError, naming the criterion, if the kernel has no equivalent.
    """
    class_map = config["class_maps"][name]
    criteria = [_criterion_decision(config, each) for each in class_map["criteria"]]
    if not criteria:
        return DecisionList((), default=False)
    found = criteria[0]
    for each in criteria[1:]:
        found = found.combine(each, every=class_map["match"] == "all")
    return found


def _criterion_decision(config: Mapping[str, Any], criterion: Mapping[str, Any]) -> DecisionList:
    kind = criterion["type"]
    if kind == "any":
        found = DecisionList((), default=True)
    elif kind == "class_map":
        found = class_decision(config, criterion["name"])
    elif kind == "access_group":
        found = access_list_decision(config["access_lists"].get(criterion["name"], ()))
    else:
        found = DecisionList(tuple(Row(each, member=True) for each in _criterion_packets(criterion)), default=False)
    return found.negate() if criterion.get("negate") else found


def _criterion_packets(criterion: Mapping[str, Any]) -> Iterator[PacketFields]:
    """Yield the sets of packets whose union matches a criterion without access lists."""
    match criterion["type"]:
        case "dscp" | "precedence" as field:
            shift, mask = (2, 0xFC) if field == "dscp" else (5, 0xE0)
            networks = NETWORKS[:1] if criterion.get("ip_only") else NETWORKS
            for value in criterion["values"]:
                for network in networks:
                    yield PacketFields(network=network, dsfield=(value << shift, mask))
        case "protocol":
            yield from _protocol_packets(criterion["name"])
        case "packet_length":
            least, most = criterion.get("min") or 0, criterion.get("max") or GREATEST_PORT
            for network in NETWORKS:
                yield PacketFields(network=network, length=(least, most))
        case "input_interface":
            yield PacketFields(input_interface=criterion["name"])
        case "qos_group":
            yield PacketFields(qos_group=criterion["value"])
        case "cos" | "vlan" as field:
            raise NotExpressibleError(f"match {field}: plans do not support VLAN tags")
        case other:
            raise NotExpressibleError(f"match {other.replace('_', '-')} is not supported in plans")


def _protocol_packets(name: str) -> Iterator[PacketFields]:
    for network in NETWORKS:
        if name in NETWORKS:
            if name == network:
                yield PacketFields(network=network)
        elif name in PROTOCOL_NUMBERS:
            yield PacketFields(network=network, protocol=PROTOCOL_NUMBERS[name])
        else:
            number, port = PROTOCOL_PORTS[name]
            yield PacketFields(network=network, protocol=number, source_port=(port, port))
            yield PacketFields(network=network, protocol=number, destination_port=(port, port))


def access_list_decision(entries: Sequence[Mapping[str, Any]]) -> DecisionList:
    """Return the decision list of an access list: permitted packets are members."""
    rows = [Row(packets, entry["action"] == "permit") for entry in entries for packets in _entry_packets(entry)]
    return _list(rows, default=False)


def _entry_packets(entry: Mapping[str, Any]) -> Iterator[PacketFields]:
    """Yield the sets of packets whose union matches an entry."""
    source, destination = entry["source"], entry["destination"]
    version = ipaddress.ip_address(source["address"]).version
    dscp, precedence = entry.get("dscp"), entry.get("precedence")
    dsfield: Bits | None = None if dscp is None else (dscp << 2, 0xFC)
    if precedence is not None:
        both = _intersect_bits(dsfield, (precedence << 5, 0xE0))
        if both is False:
            return
        dsfield = both
    found = PacketFields(
        network="ip" if version == 4 else "ipv6",
        dsfield=dsfield,
        protocol=entry.get("protocol"),
        source=_address_match(source),
        destination=_address_match(destination),
        icmp_type=entry.get("icmp_type"),
        icmp_code=entry.get("icmp_code"),
        later_fragment=bool(entry.get("fragments")),
    )
    flags: tuple[Bits | None, ...] = ((ACK, ACK), (RST, RST)) if entry.get("established") else (None,)
    for from_port in _port_matches(entry.get("source_port")):
        for to_port in _port_matches(entry.get("destination_port")):
            for each in flags:
                yield replace(found, source_port=from_port, destination_port=to_port, flags=each)


def _address_match(match: Mapping[str, str]) -> Bits | None:
    address, wildcard = ipaddress.ip_address(match["address"]), ipaddress.ip_address(match["wildcard"])
    mask = (1 << address.max_prefixlen) - 1 ^ int(wildcard)
    return (int(address) & mask, mask) if mask else None


def _port_matches(match: Mapping[str, Any] | None) -> Iterable[Range | None]:
    if match is None:
        return (None,)
    ports: list[int] = match["ports"]
    match match["op"]:
        case "eq":
            return tuple((port, port) for port in ports)
        case "gt":
            return ((ports[0] + 1, GREATEST_PORT),) if ports[0] < GREATEST_PORT else ()
        case "lt":
            return ((0, ports[0] - 1),) if ports[0] else ()
        case "range":
            return ((min(ports), max(ports)),)
    edges = [-1, *sorted(set(ports)), GREATEST_PORT + 1]
    gaps = ((below + 1, above - 1) for below, above in itertools.pairwise(edges))
    return tuple(gap for gap in gaps if gap[0] <= gap[1])
