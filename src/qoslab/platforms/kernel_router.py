"""Configuration of a router with a kernel data plane, from its template: tc commands or IOS lines.

A template with a tc command consists of commands; any other is IOS, with `interface eth1` for the interface
eth1 of the node, which is Ethernet1 to IOS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from qoslab.ios.compile import compile_device, engine_config
from qoslab.ios.device_config.running_config_parser import ConfigurationReading, read_typed_lines
from qoslab.ios.model.device import Device
from qoslab.ios.model.ios_names import interface_name
from qoslab.ios.parse import ConfigRemark, apply_config, parse_config
from qoslab.ios.rules import interface_bandwidth_kbps
from qoslab.platforms import node_platform
from qoslab.platforms.startup import router_hardware
from qoslab.tc.commands import is_tc
from qoslab.tc.commands.kernel_commands import KernelCommand, parse_commands
from qoslab.tc.engine_values import has_queueing_policy
from qoslab.tc.fidelity import Note
from qoslab.tc.objects import Filter, Origin
from qoslab.tc.plan_lines import LineFinder, line_finder, unknown_line
from qoslab.tc.port_plan import PlannedPort
from qoslab.tc.router_plan import InterfacePlan, RouterPlan, plan

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware, Interface
    from qoslab.model.experiment import Topology
    from qoslab.platforms.base import CounterSource

CONFIG_FORMAT = 1
"""Format version of `as_config`, the input of `qoslab.tc.daemon`."""
FORWARDING_SETTINGS = "the kernel's forwarding is configured by the topology of the experiment"
PLANNED_SETTINGS = frozenset(
    {
        *("name", "description", "bandwidth_kbps", "load_interval_s", "inert", "keepalive", "tree", "port"),
        *("service_policy_input", "service_policy_output", "hold_queue_out", "max_reserved_bandwidth"),
        # Refused by the plan, with the reason.
        *("fair_queue", "random_detect", "tx_ring_limit", "rate_limits", "shapers", "priority_group"),
        *("custom_queue_list", "filters", "ipv6_filters", "tcp_adjust_mss", "circuit"),
    }
)
"""Interface settings that are part of the plan, that the plan refuses, or that affect no packet."""
PLAN_COMMANDS = {
    "address": "ip address",
    "secondary_addresses": "ip address",
    "ipv6_addresses": "ipv6 address",
    "ipv6_link_local": "ipv6 address",
    "ipv6_enable": "ipv6 enable",
    "ip_mtu": "ip mtu",
    "ipv6_mtu": "ipv6 mtu",
    "hold_queue_in": "hold-queue",
    "clock_rate_bps": "clock rate",
}
"""Commands of the settings that are named differently."""
DEVICE_COMMANDS = {
    "routes": "ip route",
    "ip_sla": "ip sla",
    "host_interfaces": "interface Loopback",
    "ipv6_unicast_routing": "ipv6 unicast-routing",
    "switch": "mls qos",
}
"""Settings of the whole device that are not applied to the kernel."""


@dataclass(frozen=True)
class LineNote:
    """The fidelity of an action, and its line of the template; 0 if that is not known."""

    line: int
    note: Note


@dataclass(frozen=True)
class KernelConfig:
    """A template as tc commands."""

    router: str
    commands: tuple[KernelCommand, ...]
    """tc commands; `number` is the line in the template, 0 if there is none (such as for the line rate)."""
    classes: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    """Classes of an IOS policy by interface, with the kernel objects that count them; empty for tc commands."""
    notes: tuple[LineNote, ...] = ()
    """Fidelity of each action of an IOS policy."""
    shapes_lines: bool = False
    """True if the commands already include the line rates of a lab's interfaces."""
    remarks: tuple[ConfigRemark, ...] = ()
    """Lines of an IOS template without effect."""
    counters: CounterSource | None = None
    """Reader of the counters."""

    @property
    def refused_actions(self) -> tuple[LineNote, ...]:
        """The actions that the kernel cannot carry out."""
        return tuple(each for each in self.notes if each.note.degree == "refused")

    def as_config(self) -> dict[str, Any]:
        """Return the configuration for `qoslab.tc.daemon` as plain values."""
        return {
            "format": CONFIG_FORMAT,
            "router": self.router,
            "commands": [{"line": each.number, "words": list(each.words)} for each in self.commands],
            "classes": None if self.classes is None else {name: list(some) for name, some in self.classes.items()},
            "notes": [
                {"line": each.line, "degree": each.note.degree, "action": each.note.action, "text": each.note.text}
                | asdict(each.note.origin)
                for each in self.notes
            ],
            "shapes_lines": self.shapes_lines,
            "counters": self.counters,
        }


def ios_interface(interface: str) -> str:
    """Return the IOS name of a network interface, such as Ethernet1 for eth1; the same name if IOS has none."""
    return interface_name(interface) or interface


def kernel_config(topology: Topology, router: str, text: str, *, lab: bool = True) -> KernelConfig:
    """Return the configuration of a router for a rendered template.

    `lab` is true for a virtual lab, whose interfaces always need a line rate; on other machines they need one only for
    a queueing policy. Raise `TcError` or `RefusedLineError` for a refused line. Refused actions are notes.
    """
    rates = tuple((near.interface, int(link.rate.bps)) for link, near, _ in topology.node_links(router))
    platform = node_platform(topology.nodes[router])
    if platform.translation is not None:
        text = platform.translation(text, router)
    if is_tc(text) or not text.strip():
        made = KernelConfig(router, tuple(parse_commands(text, dict(rates), source=f"{router}.tc")))
    else:
        made = _compile_policy(
            router, _base_configuration(topology, router), router_hardware(topology, router), rates, text, lab
        )
    return replace(made, counters=platform.counters)


@lru_cache(maxsize=256)
def _compile_policy(
    router: str, base: str, chassis: Hardware, rates: tuple[tuple[str, int], ...], text: str, lab: bool
) -> KernelConfig:
    """Compile an IOS policy once for all checks and cells; `rates` are those of the links, by interface."""
    before = parse_config(base, chassis, source=f"{router}: base")
    device = before.copy()
    remarks = apply_config(device, text, source=f"{router}.ios")
    reading = ConfigurationReading(before.copy())
    read_typed_lines(reading, text)
    config: dict[str, Any] = dict(engine_config(compile_device(device)))
    ports = [_interface_port(device, config, interface, bps, lab=lab) for interface, bps in rates]
    made = plan(config, ports)
    made = RouterPlan(made.router, made.interfaces, (*_forwarding_refusals(before, device), *made.notes))
    return plan_config(router, made, line_finder(reading), remarks=tuple(remarks), lab=lab)


def _base_configuration(topology: Topology, router: str) -> str:
    """Return the base of the experiment's configuration: bandwidths and addresses of the interfaces."""
    lines = [f"hostname {router}"]
    for link, near, _ in topology.node_links(router):
        if interface_name(near.interface) is None:
            continue
        lines += [f"interface {near.interface}", f" bandwidth {max(link.rate.bps // 1000, 1)}"]
        if near.address is not None:
            lines.append(f" ip address {near.address.ip} {near.address.netmask}")
        lines.append(" no shutdown")
    return "\n".join([*lines, "end", ""])


def _forwarding_refusals(before: Device, after: Device) -> Iterator[Note]:
    """Yield a refusal for each setting of the template that a plan does not include."""
    for name, command in DEVICE_COMMANDS.items():
        if getattr(before, name) != getattr(after, name):
            yield Note("refused", Origin(after.hostname), command, FORWARDING_SETTINGS)
    for name, interface in after.interfaces.items():
        was: Interface | None = before.interfaces.get(name)
        if was is None:
            continue
        for each in fields(interface):
            if each.name not in PLANNED_SETTINGS and getattr(was, each.name) != getattr(interface, each.name):
                command = PLAN_COMMANDS.get(each.name, each.name.removesuffix("_s").replace("_", "-"))
                yield Note("refused", Origin(name), command, FORWARDING_SETTINGS)


def _interface_port(
    device: Device, config: Mapping[str, Any], interface: str, rate_bps: int, *, lab: bool
) -> PlannedPort:
    name = ios_interface(interface)
    own = device.interfaces.get(name)
    bandwidth = rate_bps if own is None else interface_bandwidth_kbps(own) * 1000
    output = None if own is None else own.service_policy_output
    queues = output is not None and has_queueing_policy(config, output)
    return PlannedPort(name, interface, int(bandwidth), rate_bps if lab or queues else None)


def plan_config(
    router: str,
    made: RouterPlan,
    line_of: LineFinder = unknown_line,
    *,
    remarks: tuple[ConfigRemark, ...] = (),
    lab: bool = False,
) -> KernelConfig:
    """Return the configuration that carries out a plan; without commands if an action is refused."""
    notes = tuple(LineNote(line_of(each.origin, each.action), each) for each in made.notes)
    commands: list[KernelCommand] = []
    if not made.refused_actions:
        for interface in made.interfaces:
            commands += _interface_commands(interface, line_of)
    classes = {each.port.device: [asdict(one) for one in each.classes] for each in made.interfaces if each.classes}
    return KernelConfig(router, tuple(commands), classes, notes, lab, remarks)


def _interface_commands(interface: InterfacePlan, line_of: Callable[[Origin, str], int]) -> Iterator[KernelCommand]:
    """Yield the commands of an interface in an order in which no packet reaches a chain without filters.

    Chain 0 is last.
    """
    objects = sorted(interface.objects, key=lambda each: isinstance(each, Filter) + (_chain_number(each) == 0))
    for each in objects:
        (command,) = parse_commands(f"tc {each.command()}", [interface.port.device])
        line = line_of(each.origin, "service-policy") if each.origin.policy else 0
        yield replace(command, number=line)


def _chain_number(each: object) -> int | None:
    return each.chain if isinstance(each, Filter) else None
