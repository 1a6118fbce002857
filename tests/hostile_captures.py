"""Hostile captures and their error messages: none gives a value, none takes much time or memory."""

from __future__ import annotations

import struct

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
"""Kinds of blocks."""


def pcapng_block(kind: int, body: bytes, length: int | None = None, order: str = "<") -> bytes:
    """Return a block of pcapng, whose length field may be wrong."""
    body += bytes(-len(body) % 4)
    text = struct.pack(order + "I", 12 + len(body) if length is None else length)
    return struct.pack(order + "I", kind) + text + body + text


def section_header(order: str = "<") -> bytes:
    return pcapng_block(SECTION, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order=order)


def interface_block(linktype: int = 1, options: bytes = b"") -> bytes:
    return pcapng_block(INTERFACE, struct.pack("<HHI", linktype, 0, 0) + options)


def resolution_option(value: int, size: int = 1) -> bytes:
    return struct.pack("<HHB3x", 9, size, value)


def packet_block(number: int = 0, kept: int = 60, frame: bytes = bytes(60), ticks: int = 0) -> bytes:
    head = struct.pack("<IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, kept, len(frame))
    return pcapng_block(PACKET, head + frame)


BEGUN = section_header() + interface_block() + packet_block()

CAPTURES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "found 0 bytes, expected a pcap or pcapng file"),
    "half a header": (section_header()[:27], "the block at byte 0 is malformed or truncated"),
    "text": (b"#!/bin/sh\ntouch PWNED\n" * 9, 'found a file that begins with "#!/b", expected a pcap or pcapng file'),
    "the older format": (struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) * 9, "is malformed or truncated"),
    "a block without length": (BEGUN + pcapng_block(PACKET, bytes(20), 0) * 9, "is malformed or truncated"),
    "a block of odd length": (BEGUN + pcapng_block(PACKET, bytes(20), 33), "is malformed or truncated"),
    "a block without end": (BEGUN + pcapng_block(PACKET, bytes(20), 0xFFFFFFFC), "is malformed or truncated"),
    "a packet without a packet": (BEGUN + pcapng_block(PACKET, b""), "is broken"),
    "more than is there": (BEGUN + packet_block(kept=0xFFFFFFFF), "is longer than its block"),
    "an interface that is none": (BEGUN + packet_block(number=0xFFFFFFFF), "which the file does not describe"),
    "no interface": (section_header() + packet_block(), "which the file does not describe"),
    "an interface of the section before": (
        BEGUN + section_header() + packet_block(),
        "which the file does not describe",
    ),
    "another link": (
        section_header() + interface_block(linktype=147) + packet_block(),
        "found packets of link type 147",
    ),
    "half an interface": (
        section_header() + pcapng_block(INTERFACE, bytes(4)),
        "the interface at byte 28: it is malformed",
    ),
    "ticks beyond all": (
        section_header() + interface_block(options=resolution_option(0xFF)) + packet_block(),
        "found time stamps of",
    ),
    "digits of ticks": (
        section_header() + interface_block(options=resolution_option(0x7F)) + packet_block(),
        "found time stamps of",
    ),
    "an option without end": (
        BEGUN + interface_block(options=resolution_option(6, 0xFFFF)) + b"\0" * 8,
        "at the end do not form a block",
    ),
    "another order amid it": (BEGUN + section_header(">") + packet_block(), "is malformed or truncated"),
    "many interfaces": (
        section_header() + interface_block() * 50_000 + packet_block(50_000),
        "which the file does not describe",
    ),
    "many empty blocks": (BEGUN + pcapng_block(99, b"") * 100_000 + b"\0" * 4, "at the end do not form a block"),
    "the end of time": (
        section_header() + interface_block() + packet_block(ticks=2**64 - 1),
        "has an impossible timestamp",
    ),
    "seconds for ticks": (
        section_header() + interface_block(options=resolution_option(0x80)) + packet_block(ticks=2**63),
        "has an impossible timestamp",
    ),
}
"""Captures by subject, each with its message."""
