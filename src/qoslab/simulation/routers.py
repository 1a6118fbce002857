"""Routers of a simulation, with the device model and compiler of the virtual routers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network

from qoslab.ios.compile import engine_config
from qoslab.ios.environment import RouteEntry
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.model.ios_names import ipv6_text
from qoslab.ios.model.routes import NULL, InstallableRoute, installable_routes
from qoslab.ios.parse import parse_config
from qoslab.model.experiment import Topology
from qoslab.platforms.startup import accepts_tc_commands, data_plane_config, router_hardware, startup_config
from qoslab.system import program_formats
from qoslab.tc.commands.router_template import apply_template

LOGIN = {"user": "lab", "password": "unused", "enable": "unused"}
"""Placeholder for the login of a simulated router, which is never used."""


@dataclass(frozen=True)
class SimulatedRouter:
    """A router with the experiment's configuration added to its boot configuration."""

    name: str
    device: Device
    config: program_formats.DataPlaneConfig
    """Configuration of the data plane; see docs/internals/control-protocol.md."""
    connected: tuple[tuple[str, IPv4Network | IPv6Network], ...]
    """Interfaces that are cabled and up, with their networks."""
    static: tuple[InstallableRoute, ...]
    """Prefix, next hop on a connected network or None, outgoing interface or None, and distance of each
    static route.
    """

    @property
    def engine_config(self) -> program_formats.RouterConfig:
        """Engine's part of `config`."""
        return engine_config(self.config)

    @property
    def routes(self) -> list[RouteEntry]:
        """Return the router's routing table."""
        found = [RouteEntry(network, "connected", None, port) for port, network in self.connected]
        return found + [
            RouteEntry(prefix, "static", hop, port, distance) for prefix, hop, port, distance in self.static
        ]

    @property
    def problems(self) -> Iterator[str]:
        """Yield the parts of its configuration that a simulation does not support."""
        if any(route.interface == NULL for route in self.device.routes):
            yield "a route to Null0"
        for interface in self.device.interfaces.values():
            if interface.secondary_addresses:
                yield f"a secondary address on {interface.name}"
            if not interface.mtu == interface.ip_mtu == interface.ipv6_mtu is None:
                yield f"a separate MTU on {interface.name}"
            if interface.port is not None and interface.port.switched and interface.name in self.config["interfaces"]:
                yield f"{interface.name}, not a routed port"
            if len(interface.ipv6_addresses) > 1:
                yield f"a second IPv6 address on {interface.name}"
            if interface.ipv6_addresses and not self.device.ipv6_unicast_routing:
                yield f"an IPv6 address on {interface.name} without `ipv6 unicast-routing`"
        for route in self.device.routes:
            if isinstance(route.next_hop, IPv6Address) and route.next_hop.is_link_local:
                yield f"a route via the link-local address {ipv6_text(route.next_hop)}"


def configured_router(topology: Topology, name: str, text: str) -> SimulatedRouter:
    """Return the configured router; `text` is the rendered IOS configuration. Raise `IosError` if the router rejects a
    line.
    """
    base = startup_config(topology, name, LOGIN)
    device = _cached_device(
        base, text, router_hardware(topology, name), (name, accepts_tc_commands(topology, name))
    ).copy()
    ports = {near.interface for _, near, _ in topology.node_links(name)}
    connected = tuple(
        (interface.name, address.network)
        for interface in device.interfaces.values()
        if (interface.parent or interface.name) in ports and not device.is_shut_down(interface)
        for address in (interface.address, *interface.ipv6_addresses)
        if address is not None
    )
    nearest: dict[IPv4Network | IPv6Network, InstallableRoute] = {}
    for route in sorted(installable_routes(device), key=lambda each: each[3]):
        nearest.setdefault(route[0], route)
    return SimulatedRouter(name, device, data_plane_config(topology, name, device), connected, tuple(nearest.values()))


@lru_cache(maxsize=256)
def _cached_device(base: str, text: str, chassis: Hardware, router: tuple[str, bool]) -> Device:
    """Return a device, cached, since cells of a sweep share many configurations. `router` has its name, and whether it
    takes tc commands.
    """
    name, tc = router
    device = parse_config(base, chassis, source=f"{name}: base")
    apply_template(device, text, source=f"{name}.ios", tc=tc)
    return device
