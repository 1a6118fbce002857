"""Maximum packet sizes of an interface."""

from __future__ import annotations

from qoslab.ios.model.device import Device, Interface

DEFAULT_MTU = 1500
"""Largest packet of Ethernet and of a serial line, bytes."""
MIN_IPV6_MTU = 1280
"""Minimum MTU of IPv6 in bytes (RFC 8200, section 5)."""


def line_mtu(interface: Interface) -> int:
    """Return the largest packet of a port's line in bytes."""
    return DEFAULT_MTU if interface.mtu is None else interface.mtu


def packet_mtu(device: Device, interface: Interface) -> int:
    """Return the largest packet of the line of an interface, or of a subinterface's port, in bytes."""
    return line_mtu(device.interfaces[interface.parent or interface.name])


def ip_mtu(device: Device, interface: Interface) -> int:
    """Return the length of the longest IPv4 packet in bytes."""
    line = packet_mtu(device, interface)
    return line if interface.ip_mtu is None else min(interface.ip_mtu, line)


def ipv6_mtu(device: Device, interface: Interface) -> int:
    """Return the length of the longest IPv6 packet in bytes."""
    line = max(packet_mtu(device, interface), MIN_IPV6_MTU)
    return line if interface.ipv6_mtu is None else min(interface.ipv6_mtu, line)
