"""The router of a packet trace: from a pasted configuration, an experiment, or a cell of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network

from qoslab.errors import UserError
from qoslab.explain.lines import ConfigurationLine, ConfigurationLines
from qoslab.explain.packet import IpAddress, Packet
from qoslab.ios.compile import compile_device, engine_config
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.ios_names import interface_name
from qoslab.ios.model.routes import installable_routes
from qoslab.model.framing import Framing
from qoslab.platforms.startup import CIRCUIT_ENCAPSULATIONS, EVERYWHERE
from qoslab.policy.ignored import ignored_lines
from qoslab.policy.line_rates import base_rate, line_rate
from qoslab.policy.pasted_configuration import (
    Attachment,
    Configuration,
    outermost_policies,
    policies_below_shaped_ports,
)
from qoslab.simulation.scenario import FORMAT
from qoslab.system import program_formats

IpNetwork = IPv4Network | IPv6Network
ROUTER = "R1"
"""Name of the pasted router in its scenario."""
ASSUMED_INTERFACE = "GigabitEthernet0/0"
"""Interface for a policy-map that the configuration does not attach."""
GIGABIT_BPS = 10**9
LONG_NS = 10**14
"""Time limit for a packet that waits at an idle router; more than a day."""


@dataclass(frozen=True)
class Route:
    """An entry of the router's table."""

    prefix: IpNetwork
    interface: str | None
    """Full name of the output interface; None drops the packet."""
    next_hop: IpAddress | None = None
    line: ConfigurationLine | None = None
    connected: bool = False
    chosen: str = ""
    """Reason for an output interface that is not from a route."""


@dataclass
class Subject:
    """One router and the network around it."""

    name: str
    title: str
    """Description of the source of the configuration."""
    device: Device
    lines: ConfigurationLines
    scenario: program_formats.Scenario
    ports: tuple[str, ...]
    """Ports with a link."""
    notes: list[str] = field(default_factory=list)
    partial: bool = False
    """True if routes may be missing, such as those of a routing protocol."""
    label: str = ""
    """Display name, if it differs from the name in the scenario."""

    def routes(self) -> list[Route]:
        """Return the routing table: connected networks, followed by static routes, nearest first."""
        return [*self._connected_routes(), *self._static_routes()]

    def _connected_routes(self) -> Iterator[Route]:
        for interface in self.device.interfaces.values():
            if self.device.is_shut_down(interface) or (interface.parent or interface.name) not in self.ports:
                continue
            for address in (interface.address, *interface.secondary_addresses, *interface.ipv6_addresses):
                if address is not None:
                    version = "ip" if address.version == 4 else "ipv6"
                    line = self.lines.interface_line(interface.name, f"{version} address")
                    yield Route(address.network, interface.name, line=line, connected=True)

    def _static_routes(self) -> Iterator[Route]:
        connected = list(self._connected_routes())
        found = sorted(installable_routes(self.device), key=lambda each: each[3])
        for prefix, next_hop, interface, _ in found:
            if next_hop is not None and interface is None:
                interface = next((each.interface for each in connected if next_hop in each.prefix), None)
            elif interface is not None and interface not in self.device.interfaces:
                interface = None
            yield Route(prefix, interface, next_hop, self._route_line(prefix))

    def _route_line(self, prefix: IpNetwork) -> ConfigurationLine | None:
        version = "ip" if prefix.version == 4 else "ipv6"
        start = f"{prefix.network_address} {prefix.netmask}" if prefix.version == 4 else str(prefix)
        lines = self.lines.global_lines(f"{version} route")
        wanted = f"{version} route {start}".lower()
        return next((line for line in lines if line.text.lower().startswith(wanted)), None)

    def addresses(self) -> Iterator[IpAddress]:
        """Yield the router's own addresses."""
        for interface in self.device.interfaces.values():
            if not self.device.is_shut_down(interface):
                for address in (interface.address, *interface.secondary_addresses, *interface.ipv6_addresses):
                    if address is not None:
                        yield address.ip
        yield from (each.address.ip for each in self.device.host_interfaces.values() if each.address is not None)

    def interface(self, given: str, option: str) -> Interface:
        """Return the interface in an option. Raise UserError if there is none."""
        name = interface_name(given) or given
        found = self.device.interfaces.get(name)
        if found is None or (found.parent or found.name) not in self.ports:
            known = ", ".join(each for each in self.device.interfaces if each.partition(".")[0] in self.ports)
            raise UserError(f'{option}: found "{given}", expected one of {known}')
        return found

    def simulator_place(self, name: str) -> program_formats.Place:
        """Return an interface in the simulator's form: a port, and the VLAN of a tag."""
        interface = self.device.interfaces[name]
        vlan = None if interface.native else interface.vlan
        return {"interface": interface.parent or interface.name, "vlan": vlan}


def longest_prefix_route(routes: Sequence[Route], address: IpAddress) -> int | None:
    """Return the index of the route with the longest prefix that contains an address; the first of equal ones."""
    fitting = [index for index, each in enumerate(routes) if address in each.prefix]
    return max(fitting, key=lambda index: (routes[index].prefix.prefixlen, -index), default=None)


def pasted_subject(configuration: Configuration, source: str, rate_bps: int | None) -> Subject:
    """Return the router of a pasted configuration, with each port on a separate link."""
    if configuration.device.switch is not None:
        raise UserError(
            f"{source}: found a switch configuration, expected a router configuration",
            hint="qoslab policy shows the values of a switch's ports",
        )
    notes = [
        f"line {at.line}: the shaper of the port of {at.interface} is not modelled with policies below it"
        for at in policies_below_shaped_ports(configuration)
    ]
    configuration = replace(
        configuration, reading=replace(configuration.reading, device=_without_missing_policies(configuration))
    )
    device = configuration.device
    _attach_to_assumed_interface(configuration, device, rate_bps, notes)
    config = compile_device(device)
    engine = engine_config(config)
    ports = tuple(config["interfaces"])
    nodes: dict[str, program_formats.NodeConfig] = {ROUTER: {"kind": "router", "configuration": engine}}
    nodes |= {_peer_address(number): {"kind": "router"} for number in range(len(ports))}
    scenario: program_formats.Scenario = {
        "format": FORMAT,
        "seed": 1,
        "drain_ns": LONG_NS,
        "sample_ns": LONG_NS,
        "nodes": nodes,
        "links": [_scenario_link(configuration, number, port, rate_bps) for number, port in enumerate(ports)],
        "flows": [],
    }
    release = f", release {configuration.release}" if configuration.release else ""
    title = f"{source}, {GENERATIONS[device.generation].title}{release}"
    notes += _omission_notes(configuration, source)
    lines = ConfigurationLines(device, [("", configuration.reading)])
    partial = _may_have_other_routes(configuration, device)
    return Subject(ROUTER, title, device, lines, scenario, ports, notes, partial, device.hostname)


def _may_have_other_routes(configuration: Configuration, device: Device) -> bool:
    """Return whether the router may have routes that are not in the configuration."""
    # A route over a tunnel or a dialer is not read, or not in the table.
    unread = any(each.text.startswith(("router ", "ip route ", "ipv6 route ")) for each in configuration.reading.unread)
    return unread or not device.routes or len(installable_routes(device)) < len(device.routes)


def _omission_notes(configuration: Configuration, source: str) -> Iterator[str]:
    """Yield the omitted parts of a configuration."""
    for each in configuration.attachments:
        if each.refused:
            reason = each.refused.removeprefix("% ")
            yield f"line {each.line}: the release refuses policy-map {each.policy} on {each.interface}: {reason}"
    ignored = ignored_lines(configuration)
    if ignored:
        first = f"line {ignored[0].line}: {ignored[0].text}"
        more = f" and {len(ignored) - 1} more" if len(ignored) > 1 else ""
        listed = f"; `qoslab policy {source}` lists them" if configuration.device.policy_maps else ""
        yield f"unread or undecided QoS lines: {first}{more}{listed}"


def _without_missing_policies(configuration: Configuration) -> Device:
    """Return the device without references to policy-maps that are missing in the configuration."""
    device = deepcopy(configuration.device)
    for at in policies_below_shaped_ports(configuration):
        device.interfaces[at.interface].service_policy_output = at.policy
        device.interfaces[at.interface.partition(".")[0]].service_policy_output = None
    for interface in device.interfaces.values():
        if interface.service_policy_input not in device.policy_maps:
            interface.service_policy_input = None
        if interface.service_policy_output not in device.policy_maps:
            interface.service_policy_output = None
    for name, policy in device.policy_maps.items():
        classes = (
            each if each.service_policy in device.policy_maps else replace(each, service_policy=None)
            for each in policy.classes
        )
        device.policy_maps[name] = replace(policy, classes=tuple(classes))
    return device


def _attach_to_assumed_interface(
    configuration: Configuration, device: Device, rate_bps: int | None, notes: list[str]
) -> None:
    """Attach the outermost policy-map of a configuration that attaches none, and add a note."""
    interfaces = device.interfaces.values()
    if any(each.service_policy_input or each.service_policy_output for each in interfaces) or device.policy_maps == {}:
        return
    outer = outermost_policies(device) or list(device.policy_maps)
    where = next((each for each in configuration.attachments if each.policy in device.policy_maps), None)
    policy = outer[0] if where is None else where.policy
    if where is None and len(outer) > 1:
        raise UserError(
            f"found {len(outer)} policy-maps and no service-policy on an interface: {', '.join(outer)}",
            hint="add the interface with its `service-policy output` line",
        )
    interface = device.interfaces.setdefault(ASSUMED_INTERFACE, Interface(ASSUMED_INTERFACE))
    if ASSUMED_INTERFACE not in device.hardware.interfaces:
        device.hardware = replace(device.hardware, interfaces=(*device.hardware.interfaces, ASSUMED_INTERFACE))
    known = None if where is None or rate_bps is not None else where.bandwidth_kbps
    interface.bandwidth_kbps = known or max((rate_bps or GIGABIT_BPS) // 1000, 1)
    if where is not None and where.direction == "input":
        interface.service_policy_input = policy
    else:
        interface.service_policy_output = policy
    reason = "no interface has it" if where is None else f"packets of {where.interface} are not modelled"
    notes.append(f"{reason}: policy-map {policy} is assumed to be on {ASSUMED_INTERFACE}")


def _peer_address(number: int) -> str:
    return f"peer {number}"


def _scenario_link(configuration: Configuration, number: int, port: str, rate_bps: int | None) -> program_formats.Link:
    """Return the link of a port, with addresses of no real network (RFC 2544), as only its routes matter."""
    device = configuration.device
    interface = device.with_circuit(port)
    framing: Framing = "ethernet"
    if interface.is_serial:
        framing = interface.encapsulation or "hdlc"
    elif interface.is_atm and interface.circuit is not None:
        typed = interface.circuit.encapsulation
        framing = next((each for each, name in CIRCUIT_ENCAPSULATIONS.items() if name == typed), "aal5snap")
    elif interface.is_atm:
        framing = "aal5snap"
    network = f"198.{18 + number // 16_384}.{number % 16_384 // 64}"
    first = number % 64 * 4 + 1
    ends = ((ROUTER, port, first), (_peer_address(number), "link", first + 1))
    return {
        "name": port,
        "rate_bps": _line_rate_bps(configuration, device.interfaces[port], rate_bps),
        "framing": framing,
        "ends": [{"node": node, "interface": name, "address": f"{network}.{last}/30"} for node, name, last in ends],
    }


def _line_rate_bps(configuration: Configuration, interface: Interface, rate_bps: int | None) -> int:
    """Return the line rate of a port, as in `qoslab policy`."""
    speed = configuration.speed_mbps(interface.name)
    at = Attachment(interface.name, "output", "", 0)
    base, _ = base_rate(interface, at, rate_bps, speed)
    line = line_rate(configuration.device, interface, rate_bps, speed)
    found = base if line is None else line[0]
    return max(round(found.bps), 1) if found.is_absolute else GIGABIT_BPS


def route_all_to(packet: Packet, interface: str, reason: str) -> list[Route]:
    """Return a table that routes all packets to one interface."""
    return [Route(EVERYWHERE[packet.source.version], interface, chosen=reason)]
