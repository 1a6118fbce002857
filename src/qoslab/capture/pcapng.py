"""Reads pcapng files into arrays, a piece at a time (draft-ietf-opsawg-pcapng).

Reading every packet's few header fields is all that the analysis needs, and it has to be fast: three arms of half a
minute at 100 Mb/s are a million packets. Walking the blocks and gathering the fields of many packets at once took 0.5 s
for 388 000 packets where tshark took 9 s.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qoslab.capture.base import CaptureError

_SECTION, _INTERFACE, _ENHANCED = 0x0A0D0D0A, 1, 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_LINKTYPE_ETHERNET = 1
_OPTION_TSRESOL = 9
_PACKET_HEADER = 28
_ETHERTYPE_IPV4, _ETHERTYPE_IPV6, _ETHERTYPE_VLAN = 0x0800, 0x86DD, 0x8100
_IPV6_HEADER = 40
_OPTIONS, _FRAGMENT, _AUTHENTICATION = (0, 43, 60, 135, 139, 140), 44, 51
"""Extension headers of IPv6 (RFC 8200, 6275, 7401, 5533), told apart by how their length is written."""
_MOST_EXTENSIONS = 8
TCP, UDP = 6, 17

Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Packets:
    """A piece of a capture, one element a packet. Addresses, protocol and ports are -1 where a packet has none."""

    time_ns: Array
    """Since 1970, UTC."""
    bytes: Array
    """Length of the frame as it was on the wire, without FCS, however little of it was kept."""
    version: Array
    """Of IP: 4 or 6."""
    source: Array
    """Address as a number: of IPv6 the lower half, with the bits of an unsigned number."""
    source_high: Array
    """Of IPv6 the upper half, likewise; 0 of IPv4."""
    destination: Array
    destination_high: Array
    protocol: Array
    """IP protocol number; of IPv6 behind the extension headers."""
    source_port: Array
    """TCP and UDP, in the first fragment only."""
    destination_port: Array

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True)
class _Interface:
    ticks: int
    """A second; a power of ten or two."""


def read_packets(file: Path, *, piece: int = 250_000) -> Iterator[Packets]:
    """All packets of a capture in file order, at most `piece` at a time.

    A file that stops in the middle of a packet (its writer was killed, the disk was full) is read up to there and then
    raises, as does one that is no pcapng file: `CaptureError`.
    """
    try:
        size = file.stat().st_size
        if size < 28:
            raise CaptureError(f"{file}: found {size} bytes, expected a pcapng file")
        with file.open("rb") as handle:
            # Not closed by hand: arrays over the mapping may live on in the traceback of an error.
            content = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        yield from _packets(content, str(file), piece)
    except OSError as error:
        raise CaptureError(f"{file}: cannot be read: {error.strerror}") from error


def _packets(content: mmap.mmap, name: str, piece: int) -> Iterator[Packets]:
    end = len(content)
    offset = 0
    order = "<"
    interfaces: list[_Interface] = []
    starts: list[int] = []
    problem = ""
    header = struct.Struct("<II")
    if content[:4] != b"\n\r\r\n":
        raise CaptureError(f"{name}: found a file that begins with {content[:4]!r}, expected a pcapng file")
    while offset + 12 <= end:
        kind, length = header.unpack_from(content, offset)
        if kind == _SECTION:
            if starts:
                yield _gather(content, starts, order, interfaces, name)
                starts = []
            interfaces = []
            order = "<" if struct.unpack_from("<I", content, offset + 8)[0] == _BYTE_ORDER_MAGIC else ">"
            header = struct.Struct(order + "II")
            length = header.unpack_from(content, offset)[1]
        if length < 12 or length % 4 or offset + length > end:
            problem = f"the block at byte {offset} is broken or stops early"
            break
        if kind == _ENHANCED:
            if length < _PACKET_HEADER + 4:
                problem = f"the packet at byte {offset} is broken"
                break
            starts.append(offset)
            if len(starts) == piece:
                yield _gather(content, starts, order, interfaces, name)
                starts = []
        elif kind == _INTERFACE:
            interfaces.append(_interface(content, offset, length, order, name))
        offset += length
    if starts:
        yield _gather(content, starts, order, interfaces, name)
    if problem or offset != end:
        raise CaptureError(f"{name}: {problem or f'{end - offset} bytes at the end are no block'}")


def _interface(content: mmap.mmap, offset: int, length: int, order: str, name: str) -> _Interface:
    if length < 20:
        raise CaptureError(f"{name}: the interface description at byte {offset} is broken")
    (linktype,) = struct.unpack_from(order + "H", content, offset + 8)
    if linktype != _LINKTYPE_ETHERNET:
        raise CaptureError(f"{name}: found packets of link type {linktype}, expected {_LINKTYPE_ETHERNET} (Ethernet)")
    ticks = 10**6
    at, last = offset + 16, offset + length - 4
    while at + 4 <= last:
        code, size = struct.unpack_from(order + "HH", content, at)
        if code == 0:
            break
        if code == _OPTION_TSRESOL and size == 1:
            value = content[at + 4]
            ticks = 2 ** (value & 0x7F) if value & 0x80 else 10**value
        at += 4 + (size + 3 & ~3)
    if ticks > 10**9:
        raise CaptureError(f"{name}: found time stamps of {ticks} ticks a second, expected at most nanoseconds")
    return _Interface(ticks)


def _gather(content: mmap.mmap, starts: list[int], order: str, interfaces: list[_Interface], name: str) -> Packets:
    octets = np.frombuffer(content, dtype=np.uint8)
    return _fields(octets, np.array(starts, dtype=np.int64), order, interfaces, name)


@dataclass(frozen=True)
class _Frames:
    octets: npt.NDArray[np.uint8]
    """Of the whole file."""
    data: Array
    """Where each frame begins."""
    kept: Array
    """Its bytes."""

    def octet(self, position: Array | int, valid: npt.NDArray[np.bool_]) -> Array:
        """The octet at a position of each frame, 0 where the frame does not reach that far."""
        there = valid & (position < self.kept)
        where = np.where(there, self.data + position, 0)
        return np.where(there, self.octets[where].astype(np.int64), 0)

    def number(self, position: Array | int, size: int, valid: npt.NDArray[np.bool_]) -> Array:
        """The number of so many octets, the highest first; eight of them with the bits of an unsigned number."""
        value = np.zeros(len(self.data), dtype=np.int64)
        for step in range(size if valid.any() else 0):
            value = (value << 8) | self.octet(position + step, valid)
        return value


def _fields(
    octets: npt.NDArray[np.uint8], starts: Array, order: str, interfaces: list[_Interface], name: str
) -> Packets:
    words = (
        np.ascontiguousarray(octets[starts[:, None] + np.arange(_PACKET_HEADER)]).view(order + "u4").astype(np.int64)
    )
    length, interface, high, low, kept, original = (words[:, column] for column in range(1, 7))
    if bool((kept > length - _PACKET_HEADER - 4).any()):
        raise CaptureError(f"{name}: a packet is longer than its block")
    if interface.size and int(interface.max()) >= len(interfaces):
        raise CaptureError(f"{name}: a packet of interface {int(interface.max())}, which the file does not describe")
    ticks = np.array([each.ticks for each in interfaces], dtype=np.int64)[interface]
    stamp = (high << 32) | low
    time_ns = (stamp // ticks) * 10**9 + (stamp % ticks) * 10**9 // ticks

    frames = _Frames(octets, starts + _PACKET_HEADER, kept)
    everything = np.ones(len(starts), dtype=np.bool_)
    ethertype = frames.number(12, 2, everything)
    tagged = ethertype == _ETHERTYPE_VLAN
    layer3 = np.where(tagged, 18, 14).astype(np.int64)
    ethertype = np.where(tagged, frames.number(16, 2, tagged), ethertype)
    first = frames.octet(layer3, everything)
    ipv4 = (ethertype == _ETHERTYPE_IPV4) & (first >> 4 == 4) & (kept >= layer3 + 20)
    ipv6 = (ethertype == _ETHERTYPE_IPV6) & (first >> 4 == 6) & (kept >= layer3 + _IPV6_HEADER)
    is_ip = ipv4 | ipv6
    behind, layer4, later = _behind_extensions(frames, layer3, ipv6)
    protocol = np.where(ipv6, behind, frames.octet(layer3 + 9, ipv4))
    layer4 = np.where(ipv6, layer4, layer3 + (first & 15) * 4)
    later |= ipv4 & (frames.number(layer3 + 6, 2, ipv4) & 0x1FFF != 0)
    has_ports = is_ip & np.isin(protocol, (TCP, UDP)) & ~later & (kept >= layer4 + 4)

    def only(valid: npt.NDArray[np.bool_], value: Array) -> Array:
        return np.where(valid, value, -1)

    def address(at_ipv4: int, at_ipv6: int) -> Array:
        """The lower half of an address at these places behind the start of the header."""
        return only(
            is_ip,
            np.where(ipv6, frames.number(layer3 + at_ipv6 + 8, 8, ipv6), frames.number(layer3 + at_ipv4, 4, ipv4)),
        )

    return Packets(
        time_ns=time_ns,
        bytes=original,
        version=only(is_ip, np.where(ipv6, 6, 4)),
        source=address(12, 8),
        source_high=only(is_ip, frames.number(layer3 + 8, 8, ipv6)),
        destination=address(16, 24),
        destination_high=only(is_ip, frames.number(layer3 + 24, 8, ipv6)),
        protocol=only(is_ip, protocol),
        source_port=only(has_ports, frames.number(layer4, 2, has_ports)),
        destination_port=only(has_ports, frames.number(layer4 + 2, 2, has_ports)),
    )


def _behind_extensions(
    frames: _Frames, layer3: Array, ipv6: npt.NDArray[np.bool_]
) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Behind the extension headers of IPv6: protocol, where it begins, whether it is a later fragment's."""
    protocol = frames.octet(layer3 + 6, ipv6)
    at = layer3 + _IPV6_HEADER
    later = np.zeros(len(layer3), dtype=np.bool_)
    for _ in range(_MOST_EXTENSIONS):
        options, authentication = ipv6 & np.isin(protocol, _OPTIONS), ipv6 & (protocol == _AUTHENTICATION)
        fragment = ipv6 & (protocol == _FRAGMENT)
        extension = (options | authentication | fragment) & ~later
        if not extension.any():
            break
        units = frames.octet(at + 1, extension)
        length = np.where(options, (units + 1) * 8, np.where(authentication, (units + 2) * 4, 8))
        offset = frames.number(at + 2, 2, fragment) & 0xFFF8
        protocol = np.where(extension, frames.octet(at, extension), protocol)
        later |= extension & fragment & (offset != 0)
        at = np.where(extension, at + length, at)
    return protocol, at, later
