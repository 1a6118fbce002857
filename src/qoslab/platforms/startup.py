"""Initial state of a router before an experiment: chassis and startup configuration."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING

from qoslab.errors import ExperimentError
from qoslab.ios.compile import compile_device
from qoslab.ios.model.circuit import AtmEncapsulation
from qoslab.ios.model.device import Device, Hardware, Interface
from qoslab.ios.rules import GREATEST_BANDWIDTH_KBPS, XE_GREATEST_BANDWIDTH_KBPS, interface_bandwidth_kbps
from qoslab.model.framing import MEDIUM, Framing
from qoslab.platforms import is_switch, node_platform
from qoslab.system import program_formats

if TYPE_CHECKING:
    from qoslab.model.experiment import Family, Route, Topology

FORCED_SPEEDS = {10_000_000: 10, 100_000_000: 100}
"""Port speed of a gigabit switch in Mb/s, by the rate of the link."""


CIRCUIT = "0/33"
"""VPI/VCI of the circuit of a link with ATM framing, unless its ends have no address."""
CIRCUIT_ENCAPSULATIONS: dict[Framing, AtmEncapsulation] = {
    "aal5snap": "aal5snap",
    "aal5mux": "aal5mux ip",
    "pppoa-snap": "aal5snap",
    "pppoa-mux": "aal5mux ppp dialer",
    "pppoeoa-snap": "aal5snap",
}
"""IOS names of ATM encapsulations. LLC/SNAP itself distinguishes IP, PPP and Ethernet."""

EVERYWHERE: dict[Family, IPv4Network | IPv6Network] = {4: IPv4Network("0.0.0.0/0"), 6: IPv6Network("::/0")}
"""The prefix of a default route."""


def router_hardware(topology: Topology, router: str) -> Hardware:
    """Return the chassis of a router for the IOS model."""
    node = topology.nodes[router]
    return node_platform(node).hardware(node, tuple(near.interface for _, near, _ in topology.node_links(router)))


def accepts_tc_commands(topology: Topology, router: str) -> bool:
    """Return whether a router's templates may be tc commands: its data plane is configured directly."""
    return not node_platform(topology.nodes[router]).has_startup_config


CLOCK_RATES_BPS = range(300, 8_000_001)
"""Rates that `clock rate` accepts. Faster lines such as T3 and HSSI have their own clock."""


def startup_config(topology: Topology, router: str, login: Mapping[str, str]) -> str:
    """Return the startup configuration of a router in IOS order; for an engine router, the base configuration."""
    node = topology.nodes[router]
    switch = is_switch(node)
    wide = "wide-ranges" in router_hardware(topology, router).qos.capabilities
    greatest = XE_GREATEST_BANDWIDTH_KBPS if wide else GREATEST_BANDWIDTH_KBPS
    lines = [
        f"hostname {router}",
        f"enable secret 0 {login['enable']}",
        f"username {login['user']} privilege 1 secret 0 {login['password']}",
        *(["ipv6 unicast-routing"] if _forwards_ipv6(topology, router) else []),
    ]
    for link, near, _ in sorted(topology.node_links(router), key=lambda each: each[1].interface):
        problem = node_platform(node).interface_problem(node, near.interface, link.framing)
        if problem is not None:
            raise ExperimentError(
                f"link {link.name} ends at {near.interface} of {router}: found {near.interface}, expected {problem}"
            )
        lines += ["!", f"interface {near.interface}"]
        if switch and near.address is not None:
            lines.append(" no switchport")
        if switch and link.rate.bps in FORCED_SPEEDS:
            # The other end is hard-coded, or the cable carries no more.
            lines += [f" speed {FORCED_SPEEDS[link.rate.bps]}", " duplex full"]
        elif link.rate.bps // 1000 != interface_bandwidth_kbps(Interface(near.interface)):
            lines.append(f" bandwidth {min(max(link.rate.bps // 1000, 1), greatest)}")
        if near.address is not None:
            lines.append(f" ip address {near.address.ip} {near.address.netmask}")
        if near.ipv6_address is not None:
            lines.append(f" ipv6 address {near.ipv6_address}")
        medium = MEDIUM[link.framing]
        if medium == "serial":
            lines.append(f" encapsulation {link.framing}")
            if link.rate.bps in CLOCK_RATES_BPS:
                lines.append(f" clock rate {link.rate.bps}")
        lines.append(" no shutdown")
        if medium == "atm" and near.addresses:
            # Without an address the experiment's configuration defines the circuit.
            lines += [f" pvc {CIRCUIT}", f"  encapsulation {CIRCUIT_ENCAPSULATIONS[link.framing]}"]
    if node.routes:
        lines += ["!", *map(_route_line, node.routes)]
    return "\n".join([*lines, "!", "end", ""])


def _forwards_ipv6(topology: Topology, router: str) -> bool:
    """Return whether the router forwards IPv6: an end of one of its links has an IPv6 address."""
    return any(near.ipv6_address is not None for _, near, _ in topology.node_links(router))


def _route_line(route: Route) -> str:
    if isinstance(route.prefix, IPv6Network):
        return f"ipv6 route {route.prefix} {route.via}"
    return f"ip route {route.prefix.network_address} {route.prefix.netmask} {route.via}"


def data_plane_config(topology: Topology, router: str, device: Device) -> program_formats.DataPlaneConfig:
    """Return the data plane configuration of a router: that of the device model, with connected ports only."""
    config = compile_device(device)
    wired = {near.interface for _, near, _ in topology.node_links(router)}
    config["interfaces"] = {name: port for name, port in config["interfaces"].items() if name in wired}
    return config


def static_routes(topology: Topology, name: str) -> tuple[Route, ...]:
    """Return the static routes of a node: the configured ones, or default routes of a host on one link to a router."""
    from qoslab.model.experiment import Route  # slow to import, and a router's command line needs none of it

    node = topology.nodes[name]
    links = topology.node_links(name)
    if not node_platform(node).is_router and not node.routes and len(links) == 1:
        near, far = links[0][1:]
        if node_platform(topology.nodes[far.node]).is_router:
            # An address of one family cannot use a gateway of the other.
            families = [family for family in EVERYWHERE if near.family_address(family) is not None]
            gateways = ((family, far.family_address(family)) for family in families)
            return tuple(Route(prefix=EVERYWHERE[family], via=via.ip) for family, via in gateways if via is not None)
    return node.routes
