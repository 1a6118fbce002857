"""A router's interface as a network device of the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.ios.model import engine_defaults
from qoslab.model.framing import COUNTED_HEADER, Framing

MTU = 1500
ETHERNET_HEADER = 14
"""Bytes of the Ethernet header, which the kernel counts on output only."""


@dataclass(frozen=True, slots=True)
class PlannedPort:
    """An interface and its device."""

    interface: str
    """IOS name."""
    device: str
    """Name in the kernel."""
    bandwidth_bps: int
    """`bandwidth` of the interface, the base of percentages."""
    line_bps: int | None = None
    """Line rate, including framing bytes; None if the device itself limits the rate."""
    framing: Framing = "ethernet"
    """Layer 2 framing; the router counts its header."""
    mtu_bytes: int = MTU
    device_header_bytes: int = ETHERNET_HEADER
    """Bytes of layer 2 that the kernel counts on output: 0 for devices without a header, such as ppp0."""
    hold_queue: int | None = None
    """Queue limit without a policy, in packets; None for the default."""
    max_reserved_percent: int = engine_defaults.CLASSIC_RESERVABLE_PERCENT

    @property
    def counted_offset(self) -> int:
        """Bytes of a packet that the router counts in addition to the kernel's count on output."""
        return COUNTED_HEADER[self.framing] - self.device_header_bytes

    @property
    def frame_bytes(self) -> int:
        """Bytes of the longest packet as counted by the router."""
        return self.mtu_bytes + COUNTED_HEADER[self.framing]
