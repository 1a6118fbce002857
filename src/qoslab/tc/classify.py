"""Sets of packets as matches of tc classifiers: flower if it has the fields, else basic with byte comparisons.

Flower dissects headers, so IP options and IPv6 extension headers do not hide ports. Byte comparisons are needed for the
packet length, the mark and address masks with gaps; they assume headers without options.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from qoslab.tc.decision_lists import (
    GREATEST_PORT,
    ICMP,
    ICMPV6,
    TCP,
    UDP,
    Bits,
    NotExpressibleError,
    PacketFields,
    Range,
)
from qoslab.tc.objects import Protocol

QOS_GROUP_MASK = 0xFF
"""Bits of the mark that hold the QoS group, 0 to 99."""
IPV4_LENGTH, IPV6_LENGTH = 2, 4
"""Offsets of the total length and of the payload length."""
IPV6_HEADER = 40
NAMES = {ICMP: "icmp", ICMPV6: "icmpv6", TCP: "tcp", UDP: "udp"}


def match_words(packets: PacketFields, devices: Mapping[str, str]) -> tuple[Protocol, str]:
    """Return the protocol and the classifier with its words that match a set of packets.

    `devices` are the kernel's names of interfaces by IOS name. Raise NotExpressibleError, naming the criterion, if no
    classifier can match it.
    """
    protocol: Protocol = packets.network or "all"
    if packets.matches_all or packets == PacketFields(network=packets.network):
        return protocol, "matchall"
    if _needs_byte_match(packets):
        if packets.input_interface is not None:
            raise NotExpressibleError("match input-interface together with packet length, qos-group or address gaps")
        return protocol, f"basic match '{' and '.join(_basic_comparisons(packets))}'"
    return protocol, " ".join(["flower", *_flower_keys(packets, devices)])


def _needs_byte_match(packets: PacketFields) -> bool:
    gaps = any(
        _prefix_length(bits, packets) is None for bits in (packets.source, packets.destination) if bits is not None
    )
    return gaps or packets.length is not None or packets.qos_group is not None


def _prefix_length(bits: Bits, packets: PacketFields) -> int | None:
    """Return the prefix length of an address mask; None if it has gaps."""
    width = 128 if packets.network == "ipv6" else 32
    ones = bits[1].bit_count()
    return ones if bits[1] == ((1 << ones) - 1) << (width - ones) else None


def _flower_keys(packets: PacketFields, devices: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys of flower."""
    if packets.input_interface is not None:
        if packets.input_interface not in devices:
            raise NotExpressibleError(f"match input-interface {packets.input_interface}: the kernel has no such port")
        yield f"indev {devices[packets.input_interface]}"
    if packets.dsfield is not None:
        yield "ip_tos 0x{:x}/0x{:x}".format(*packets.dsfield)
    if packets.protocol is not None:
        yield f"ip_proto {NAMES.get(packets.protocol, packets.protocol)}"
    for word, bits in (("src_ip", packets.source), ("dst_ip", packets.destination)):
        if bits is not None:
            address: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.IPv4Address(0)
            address = ipaddress.IPv6Address(bits[0]) if packets.network == "ipv6" else ipaddress.IPv4Address(bits[0])
            yield f"{word} {address}/{_prefix_length(bits, packets)}"
    for word, ports in (("src_port", packets.source_port), ("dst_port", packets.destination_port)):
        if ports is not None:
            yield f"{word} {ports[0]}" if ports[0] == ports[1] else f"{word} {ports[0]}-{ports[1]}"
    if packets.flags is not None:
        yield "tcp_flags 0x{:x}/0x{:x}".format(*packets.flags)
    if packets.icmp_type is not None:
        yield f"type {packets.icmp_type}"
    if packets.icmp_code is not None:
        yield f"code {packets.icmp_code}"
    if packets.later_fragment:
        yield "ip_flags frag/nofirstfrag"


def _basic_comparisons(packets: PacketFields) -> Iterator[str]:
    """Yield the comparisons of basic."""
    if packets.qos_group is not None:
        yield f"meta(nf_mark mask 0x{QOS_GROUP_MASK:x} eq {packets.qos_group})"
    if packets.network == "ip":
        yield from _ipv4_comparisons(packets)
    elif packets.network == "ipv6":
        yield from _ipv6_comparisons(packets)


def _compare(align: str, offset: int, value: int, mask: int | None = None) -> str:
    masked = "" if mask is None else f" mask 0x{mask:x}"
    return f"cmp({align} at {offset} layer network{masked} eq 0x{value:x})"


def _range_comparisons(offset: int, span: Range) -> Iterator[str]:
    """Yield the comparisons of 16 bits with a range."""
    if span[0] == span[1]:
        yield _compare("u16", offset, span[0])
        return
    if span[0] > 0:
        yield f"cmp(u16 at {offset} layer network gt {span[0] - 1})"
    if span[1] < GREATEST_PORT:
        yield f"cmp(u16 at {offset} layer network lt {span[1] + 1})"


def _ipv4_comparisons(packets: PacketFields) -> Iterator[str]:
    if packets.length is not None:
        yield from _range_comparisons(IPV4_LENGTH, packets.length)
    if packets.dsfield is not None:
        yield _compare("u8", 1, *packets.dsfield)
    if packets.protocol is not None:
        yield _compare("u8", 9, packets.protocol)
    for offset, bits in ((12, packets.source), (16, packets.destination)):
        if bits is not None:
            yield _compare("u32", offset, *bits)
    if packets.later_fragment:
        yield "cmp(u16 at 6 layer network mask 0x1fff gt 0)"
    if packets.ports:
        yield _compare("u8", 0, 5, 0x0F)
        yield _compare("u16", 6, 0, 0x1FFF)
        yield from _transport_comparisons(packets, 20)


def _ipv6_comparisons(packets: PacketFields) -> Iterator[str]:
    if packets.length is not None:
        payload = (max(packets.length[0] - IPV6_HEADER, 0), packets.length[1] - IPV6_HEADER)
        if payload[1] < 0:
            yield "cmp(u8 at 0 layer network eq 0)"
            return
        yield from _range_comparisons(IPV6_LENGTH, payload)
    if packets.dsfield is not None:
        value, mask = packets.dsfield
        yield _compare("u16", 0, value << 4, mask << 4)
    if packets.protocol is not None:
        yield _compare("u8", 6, packets.protocol)
    for offset, bits in ((8, packets.source), (24, packets.destination)):
        for word in range(4 if bits is not None else 0):
            value, mask = (each >> (96 - 32 * word) & 0xFFFFFFFF for each in bits or (0, 0))
            if mask:
                yield _compare("u32", offset + 4 * word, value, mask)
    if packets.later_fragment:
        raise NotExpressibleError("fragments of IPv6 together with packet length, qos-group or address gaps")
    if packets.ports:
        yield from _transport_comparisons(packets, IPV6_HEADER)


def _transport_comparisons(packets: PacketFields, offset: int) -> Iterator[str]:
    for place, ports in ((offset, packets.source_port), (offset + 2, packets.destination_port)):
        if ports is not None:
            yield from _range_comparisons(place, ports)
    if packets.flags is not None:
        yield _compare("u8", offset + 13, *packets.flags)
    if packets.icmp_type is not None:
        yield _compare("u8", offset, packets.icmp_type)
    if packets.icmp_code is not None:
        yield _compare("u8", offset + 1, packets.icmp_code)
