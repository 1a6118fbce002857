"""The longest packets of an interface."""

from __future__ import annotations

from qoslab.ios.model.device import Device, Interface

DEFAULT_MTU = 1500
"""Bytes of packet of an Ethernet, and of a serial line."""
LEAST_IPV6_MTU = 1280
"""RFC 8200, section 5."""


def line_mtu(interface: Interface) -> int:
    """Bytes of packet that a port's line takes."""
    return DEFAULT_MTU if interface.mtu is None else interface.mtu


def packet_mtu(device: Device, interface: Interface) -> int:
    """Bytes of packet that the line of an interface, or of a subinterface's port, takes."""
    return line_mtu(device.interfaces[interface.parent or interface.name])


def ip_mtu(device: Device, interface: Interface) -> int:
    """Bytes of the longest IPv4 packet."""
    line = packet_mtu(device, interface)
    return line if interface.ip_mtu is None else min(interface.ip_mtu, line)


def ipv6_mtu(device: Device, interface: Interface) -> int:
    """Bytes of the longest IPv6 packet."""
    line = max(packet_mtu(device, interface), LEAST_IPV6_MTU)
    return line if interface.ipv6_mtu is None else min(interface.ipv6_mtu, line)
