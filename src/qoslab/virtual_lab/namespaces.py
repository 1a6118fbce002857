"""Netlink messages that configure the namespaces of a virtual lab: addresses, routes, neighbours, offloads."""

from __future__ import annotations

from collections.abc import Mapping

from qoslab.errors import MachineError
from qoslab.virtual_lab import netlink
from qoslab.virtual_lab.wiring import Wiring


def disable_offloads(spaces: Mapping[str, netlink.NetlinkNamespace], wiring: Wiring) -> dict[str, list[str]]:
    """Disable the offloads of all interfaces; return those left on. Raise `MachineError` if there are any."""
    offloads: netlink.Offloads | None = None
    on: dict[str, list[str]] = {}
    for interface in wiring.interfaces():
        control = spaces[interface.namespace].socket
        if offloads is None:
            offloads = netlink.Offloads(control, interface.name)
        stubborn = offloads.disable(control, interface.name)
        if stubborn:
            raise MachineError(
                f"{interface.namespace} {interface.name}: the kernel keeps these offloads on: "
                f"{', '.join(sorted(stubborn))}"
            )
        on[f"{interface.namespace} {interface.name}"] = sorted(stubborn)
    return on


def settings_messages(wiring: Wiring, namespace: str, metrics: list[tuple[str, int | str]]) -> list[tuple[bytes, str]]:
    """Return the messages that configure one namespace after its interfaces exist."""
    messages = []
    own = [interface for interface in wiring.interfaces() if interface.namespace == namespace]
    for interface in own:
        if not interface.arp:
            messages.append(netlink.no_arp_message(interface))
        else:
            messages.append(netlink.neighbour_timeout_message(interface, 4))
            if interface.ipv6:
                messages.append(netlink.neighbour_timeout_message(interface, 6))
        if interface.shaper is not None:
            messages.append(netlink.token_bucket_message(interface, interface.shaper))
        messages += [netlink.address_message(interface, each) for each in interface.addresses]
        if interface.up:
            messages.append(netlink.link_up(interface))
    messages += neighbour_messages(wiring, namespace, booted=False)
    if metrics:
        messages += host_route_messages(wiring, namespace, metrics)
    else:
        messages += [
            netlink.route_message(route.prefix, via=str(route.via))
            for route in wiring.routes
            if route.namespace == namespace
        ]
    return messages


def neighbour_messages(wiring: Wiring, namespace: str, *, booted: bool) -> list[tuple[bytes, str]]:
    """Return the messages for the permanent neighbours of a namespace, before or after its kernel has booted."""
    mine = (entry for entry in wiring.neighbours if entry.namespace == namespace and entry.booted == booted)
    return [netlink.neighbour_message(entry) for entry in mine]


def host_route_messages(wiring: Wiring, host: str, metrics: list[tuple[str, int | str]]) -> list[tuple[bytes, str]]:
    """Return the messages for all routes of a host, with these attributes; they replace existing routes."""
    connected = [
        netlink.route_message(address.network, connected=(interface, address), metrics=metrics)
        for interface in wiring.interfaces()
        if interface.namespace == host
        for address in interface.addresses
    ]
    return connected + [
        netlink.route_message(route.prefix, via=str(route.via), metrics=metrics)
        for route in wiring.routes
        if route.namespace == host
    ]
