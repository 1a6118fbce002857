"""Framings of links: the bytes that a router counts for a packet, and the bytes that it takes on the line.

The values are the same as in `crates/qos-core/src/wire/framing.rs`, which has their sources.
"""

from __future__ import annotations

from typing import Literal

Framing = Literal["ethernet", "ppp", "hdlc", "pppoe", "aal5snap", "aal5mux", "pppoa-snap", "pppoa-mux", "pppoeoa-snap"]
"""Layer 2 on a link."""

Medium = Literal["ethernet", "serial", "atm"]
"""Hardware of an interface."""

MEDIUM: dict[Framing, Medium] = {
    "ethernet": "ethernet",
    "pppoe": "ethernet",
    "ppp": "serial",
    "hdlc": "serial",
    "aal5snap": "atm",
    "aal5mux": "atm",
    "pppoa-snap": "atm",
    "pppoa-mux": "atm",
    "pppoeoa-snap": "atm",
}

ATM_CORE_HEADER = 4
"""Bytes that a router counts for each packet on ATM in addition to its encapsulation."""

COUNTED_HEADER: dict[Framing, int] = {
    "ethernet": 14,
    "pppoe": 22,
    "ppp": 4,
    "hdlc": 4,
    "aal5snap": 8 + ATM_CORE_HEADER,
    "aal5mux": ATM_CORE_HEADER,
    "pppoa-snap": 6 + ATM_CORE_HEADER,
    "pppoa-mux": 2 + ATM_CORE_HEADER,
    "pppoeoa-snap": 32 + ATM_CORE_HEADER,
}
"""Bytes of layer 2 that a router counts with an IP packet."""

ETHERNET_EXTRA = 24
"""Bytes of line time before and after a frame: FCS 4, preamble 8, gap 12."""
MIN_ETHERNET_FRAME = 60
"""Bytes of the shortest frame, without FCS."""
SERIAL_EXTRA = 3
"""Bytes of line time in addition to a frame: FCS 2, and a flag that two frames share."""
AAL5_TRAILER = 8
CELL, CELL_PAYLOAD = 53, 48
"""Bytes of an ATM cell and of its payload."""


def extra_bytes(framing: Framing) -> int | None:
    """Return the bytes of a packet on the line in addition to those that a router counts; None if they depend on its
    length.
    """
    medium = MEDIUM[framing]
    return {"ethernet": ETHERNET_EXTRA, "serial": SERIAL_EXTRA, "atm": None}[medium]


def line_bytes(framing: Framing, ip_bytes: int) -> int:
    """Return the bytes on the line of an IP packet of `ip_bytes` bytes."""
    counted = ip_bytes + COUNTED_HEADER[framing]
    match MEDIUM[framing]:
        case "ethernet":
            return max(counted, MIN_ETHERNET_FRAME) + ETHERNET_EXTRA
        case "serial":
            return counted + SERIAL_EXTRA
        case "atm":
            return -(-(counted - ATM_CORE_HEADER + AAL5_TRAILER) // CELL_PAYLOAD) * CELL
