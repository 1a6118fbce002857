"""Packet as typed by the user: `udp 10.0.0.1:4000 > 10.0.0.2:5004 dscp ef 200 B`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address

from qoslab.errors import UserError
from qoslab.model.units import DSCP_NUMBERS
from qoslab.system import program_formats

IpAddress = IPv4Address | IPv6Address
EXAMPLE = "udp 10.0.0.1:4000 > 10.0.0.2:5004 dscp ef 200 B"
ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
PROTOCOLS = {"icmp": ICMP, "igmp": 2, "tcp": TCP, "udp": UDP, "gre": 47, "esp": 50, "ah": 51, "eigrp": 88, "ospf": 89}
"""Numbers by name (IANA, Assigned Internet Protocol Numbers). `icmp` between IPv6 addresses is ICMPv6."""
WITH_PORTS = (TCP, UDP)
HEADERS = {4: 20, 6: 40}
"""Bytes of an IP header without options, by version."""
TRANSPORT = {ICMP: 8, TCP: 20, UDP: 8, ICMPV6: 8}
"""Bytes of the transport header, by protocol."""
ECHO = {ICMP: 8, ICMPV6: 128}
"""Type of an echo request."""
MAX_PACKET_BYTES = 65_535
_MAX_TEXT_LENGTH = 10
"""Number of digits from which a word is not accepted as a number."""
_ENDPOINT = re.compile(r"\[(?P<v6>[^\]]+)\](?::(?P<port6>\S+))?|(?P<v4>[^:]+)(?::(?P<port4>[^:]+))?|(?P<bare>\S+)")
_SIZE = re.compile(r"(\d{1,9}) *(?:b|bytes?)?", re.IGNORECASE | re.ASCII)
_OPTIONS = "dscp, precedence, tos, ecn, cos, type, code, syn or a size such as 200 B"


class PacketError(UserError):
    """A packet that cannot be parsed."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f'packet: found "{found}", expected {expected}', hint=f"for example: {EXAMPLE}")


@dataclass(frozen=True)
class Packet:
    """Headers of one IP packet at its arrival at the router."""

    protocol: int
    source: IpAddress
    destination: IpAddress
    source_port: int | None = None
    destination_port: int | None = None
    icmp_type: int | None = None
    icmp_code: int | None = None
    established: bool = False
    """TCP: the segment has ACK or RST, as all segments of a connection except the first."""
    dscp: int = 0
    ecn: int = 0
    cos: int = 0
    """Class of service in its VLAN tag."""
    length: int = 0
    """Bytes of the IP packet."""

    def to_question(self) -> program_formats.QuestionPacket:
        """Return the packet in the simulator's form."""
        return {
            "protocol": self.protocol,
            "source": str(self.source),
            "destination": str(self.destination),
            "source_port": self.source_port,
            "destination_port": self.destination_port,
            "icmp_type": self.icmp_type,
            "icmp_code": self.icmp_code,
            "established": self.established,
            "dscp": self.dscp,
            "ecn": self.ecn,
            "cos": self.cos,
            "length": self.length,
        }

    def __str__(self) -> str:
        words = [protocol_text(self.protocol), _endpoint_text(self.source, self.source_port), ">"]
        words.append(_endpoint_text(self.destination, self.destination_port))
        if self.icmp_type is not None:
            words.append(f"type {self.icmp_type}")
        words.append(f"dscp {dscp_name(self.dscp)}")
        if self.ecn:
            words.append(f"ecn {self.ecn}")
        if self.cos:
            words.append(f"cos {self.cos}")
        if self.protocol == TCP and not self.established:
            words.append("syn")
        return " ".join([*words, f"{self.length} B"])


def protocol_text(number: int) -> str:
    """Return the name of a protocol, or its number."""
    if number == ICMPV6:
        return "icmp"
    return next((name for name, each in PROTOCOLS.items() if each == number), f"protocol {number}")


def dscp_name(value: int) -> str:
    """Return the name of a code point, or its number."""
    return next((name for name, each in DSCP_NUMBERS.items() if each == value), str(value))


def _endpoint_text(address: IpAddress, port: int | None) -> str:
    if port is None:
        return str(address)
    return f"{address}:{port}" if address.version == 4 else f"[{address}]:{port}"


def parse_packet(text: str) -> Packet:
    """Read a packet as typed. Raise PacketError with the word that does not fit.

    `PROTOCOL SOURCE[:PORT] > DESTINATION[:PORT] [OPTION ...] [SIZE]`; an IPv6 address with a port is in brackets. The
    size is that of the IP packet; without it the headers and 0 bytes of payload.
    """
    words = text.replace("->", ">").replace(">", " > ").split()
    if not words:
        raise PacketError(text, "a protocol, two addresses and a size")
    protocol = _parse_protocol(words.pop(0))
    if not words:
        raise PacketError("the end", "the source address")
    source, source_port = _parse_endpoint(words.pop(0), "source")
    if not words or words.pop(0) != ">":
        raise PacketError(text, 'a ">" between source and destination')
    if not words:
        raise PacketError("the end", "the destination address")
    destination, destination_port = _parse_endpoint(words.pop(0), "destination")
    if source.version != destination.version:
        raise PacketError(str(destination), f"an IPv{source.version} address, like the source")
    if source.version == 6 and protocol == ICMP:
        protocol = ICMPV6
    packet = Packet(protocol, source, destination, established=protocol == TCP)
    packet = _add_ports(packet, source_port, destination_port)
    if protocol in ECHO:
        packet = replace(packet, icmp_type=ECHO[protocol], icmp_code=0)
    return _add_options(packet, words)


def _parse_protocol(word: str) -> int:
    number = PROTOCOLS.get(word.lower(), -1)
    if _is_number(word) and int(word) < 256:
        number = int(word)
    if number < 0:
        raise PacketError(word, f"a protocol: {', '.join(PROTOCOLS)}, or a number from 0 to 255")
    return number


def _parse_endpoint(word: str, side: str) -> tuple[IpAddress, int | None]:
    """Return an address and the port after it."""
    found = _ENDPOINT.fullmatch(word)
    if found is None:
        raise PacketError(word, f"the {side} address")
    text = found["v6"] or found["v4"] or found["bare"]
    port = found["port6"] or found["port4"]
    try:
        address = ip_address(text)
    except ValueError:
        expected = f"the {side}: an address such as 10.0.0.1:4000 or [2001:db8::1]:4000"
        raise PacketError(word, expected) from None
    return address, None if port is None else _parse_number(port, 65_535, f"the {side} port")


def _add_ports(packet: Packet, source: int | None, destination: int | None) -> Packet:
    if packet.protocol not in WITH_PORTS:
        if source is not None or destination is not None:
            raise PacketError(
                f"port {source if destination is None else destination}",
                f"no port with {protocol_text(packet.protocol)}",
            )
        return packet
    if source is None or destination is None:
        side = "source" if source is None else "destination"
        address = packet.source if source is None else packet.destination
        raise PacketError(str(address), f"a {side} port, such as {_endpoint_text(address, 5004)}")
    return replace(packet, source_port=source, destination_port=destination)


def _add_options(packet: Packet, words: list[str]) -> Packet:
    header = HEADERS[packet.source.version] + TRANSPORT.get(packet.protocol, 0)
    length: int | None = None
    while words:
        word = words.pop(0)
        if word.lower() in ("b", "byte", "bytes") and length is not None:
            continue
        if (size := _SIZE.fullmatch(word)) is not None:
            length = int(size[1])
            continue
        packet = _add_option(packet, word.lower(), words)
    if length is None:
        length = header
    if not header <= length <= MAX_PACKET_BYTES:
        raise PacketError(f"{length} B", f"the bytes of the IP packet, {header} to {MAX_PACKET_BYTES}")
    return replace(packet, length=length)


def _add_option(packet: Packet, word: str, words: list[str]) -> Packet:
    if word == "syn" and packet.protocol == TCP:
        return replace(packet, established=False)
    read = _VALUES.get(word)
    if read is None or (word in ("type", "code") and packet.protocol not in ECHO):
        raise PacketError(word, _OPTIONS)
    if not words:
        raise PacketError("the end", f"a value of {word}")
    return read(packet, words.pop(0))


def _parse_dscp(packet: Packet, word: str) -> Packet:
    name = "default" if word.lower() == "be" else word.lower()
    if name in DSCP_NUMBERS:
        return replace(packet, dscp=DSCP_NUMBERS[name])
    if not _is_number(word) or int(word) > 63:
        raise PacketError(word, f"a DSCP: 0 to 63, or one of {', '.join(DSCP_NUMBERS)}")
    return replace(packet, dscp=int(word))


def _parse_tos(packet: Packet, word: str) -> Packet:
    byte = _parse_number(word, 255, "a type of service byte")
    return replace(packet, dscp=byte >> 2, ecn=byte & 3)


_VALUES: dict[str, Callable[[Packet, str], Packet]] = {
    "dscp": _parse_dscp,
    "precedence": lambda packet, word: replace(packet, dscp=8 * _parse_number(word, 7, "a precedence")),
    "tos": _parse_tos,
    "ecn": lambda packet, word: replace(packet, ecn=_parse_number(word, 3, "an ECN value")),
    "cos": lambda packet, word: replace(packet, cos=_parse_number(word, 7, "a class of service")),
    "type": lambda packet, word: replace(packet, icmp_type=_parse_number(word, 255, "an ICMP type")),
    "code": lambda packet, word: replace(packet, icmp_code=_parse_number(word, 255, "an ICMP code")),
}


def _parse_number(word: str, most: int, name: str) -> int:
    if not _is_number(word) or int(word) > most:
        raise PacketError(word, f"{name}, 0 to {most}")
    return int(word)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < _MAX_TEXT_LENGTH
