"""Checks of interface addresses: forms that IOS accepts, and overlaps with existing addresses."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface

from qoslab.ios.cli.grammar import RejectedError
from qoslab.ios.model.device import Device, HostInterface, Interface


def parse_interface_address(address: IPv4Address, mask: IPv4Address) -> IPv4Interface:
    """Return the interface address. Refuse a non-contiguous mask, and a network, broadcast or multicast address."""
    bits = int(mask)
    length = bits.bit_count()
    if bits != (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF or length == 0:
        raise RejectedError(f"Bad mask 0x{bits:X} for address {address}")
    interface = IPv4Interface((address, length))
    network = interface.network
    ends = {network.network_address, network.broadcast_address} if length < 31 else set()
    if address in ends or address.is_multicast or address.is_unspecified:
        raise RejectedError(f"Bad mask /{length} for address {address}")
    return interface


def check_overlap(device: Device, here: str, address: IPv4Interface) -> None:
    """Refuse an address whose subnet overlaps with that of an interface other than `here`."""
    others: list[Interface | HostInterface] = [*device.interfaces.values(), *device.host_interfaces.values()]
    for other in others:
        present = [*([other.address] if other.address else []), *other.secondary_addresses]
        if other.name != here and any(each.network.overlaps(address.network) for each in present):
            raise RejectedError(f"% {address.network.network_address} overlaps with {other.name}")
