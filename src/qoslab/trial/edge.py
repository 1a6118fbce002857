"""The interface with the tried policy: found in a pasted configuration, or assumed for a single policy-map."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface

from qoslab.errors import UserError
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.cli.session import Position
from qoslab.ios.commands.account import MAX_ACCOUNTED_BYTES, with_account_offset
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import NO_ACCESS_GROUPS, Device, Interface
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.ios_names import interface_kind, interface_name
from qoslab.ios.model.policy import CLASS_DEFAULT, NO_PACKET_CRITERION, Criterion, PolicyMap
from qoslab.ios.rules import descendants
from qoslab.ios.undecided import IOS_XE
from qoslab.model.framing import COUNTED_HEADER, Framing
from qoslab.policy.line_rates import CARRIED, base_rate, carrier_line, line_rate
from qoslab.policy.pasted_configuration import Attachment, Configuration, outermost_policies
from qoslab.policy.rate import Rate, bps_text, format_list
from qoslab.policy.tunnels import OUTER_FIELDS, find_encapsulation
from qoslab.trial.change import Scope

ASSUMED_INTERFACE = "GigabitEthernet0/0/0"
"""Interface of a single policy-map, or substitute for an interface without a physical line."""
LAN = "TenGigabitEthernet0/9/9"
"""Interface to the senders if the configuration has none with an input policy."""
LAN_ADDRESS = IPv4Interface("198.18.0.1/30")
WAN_ADDRESS = IPv4Interface("198.18.0.5/30")
"""Addresses of the tried router (RFC 2544, appendix C.2.2: network for benchmarks)."""
LAN_RATES_BPS = (1_000_000_000, 10_000_000_000, 100_000_000_000)
"""Rates of the line from the senders; the first one above the rate of the tried interface is used."""
MAX_UNREAD_LINES = 3
"""Maximum number of unread lines in the notes."""


@dataclass(frozen=True)
class TrialEdge:
    """A device with the policy on an interface, ready for traffic."""

    device: Device
    wan: str
    """Interface by which the traffic leaves."""
    lan: str
    """Interface by which the traffic arrives."""
    direction: str
    """Direction of the tried policy."""
    policy: str
    line_bps: int
    lan_bps: int
    framing: Framing
    lan_framing: Framing
    notes: tuple[str, ...]
    subinterface: str | None = None
    """Subinterface of `wan` by which the traffic leaves, with its VLAN tag."""
    two_way: bool = False
    """True if there is also traffic in the other direction."""
    tunnel_bytes: int = 0
    """Bytes that shapers and shares of the tried policy count for a packet in addition to the line's frame."""
    outer_headers: bool = False
    """True if classes of the tried policy see only the outer headers of a tunnel."""

    @property
    def tried_interface(self) -> str:
        """The interface with the tried policy."""
        return (self.subinterface or self.wan) if self.direction == "output" else self.lan

    @property
    def needs_far_router(self) -> bool:
        """True if a second router is needed, as a host supports neither a serial line nor a VLAN tag."""
        return self.framing != "ethernet" or self.subinterface is not None

    @property
    def tried_bps(self) -> int:
        """Line rate of the interface with the tried policy."""
        return self.line_bps if self.direction == "output" else self.lan_bps

    @property
    def scope(self) -> Scope:
        """The parts of the configuration that have an effect."""
        policies: list[str] = []
        lan, wan = self.device.interfaces[self.lan], self.device.interfaces[self.subinterface or self.wan]
        names = [self.policy, lan.service_policy_input]
        if self.two_way:
            names += [wan.service_policy_output, wan.service_policy_input, lan.service_policy_output]
        for name in names:
            if name in self.device.policy_maps:
                policies += [each.name for each in descendants(self.device, self.device.policy_maps[name])]
        interfaces = (self.tried_interface, self.wan, *((self.lan,) if self.two_way else ()))
        return Scope(tuple(dict.fromkeys(interfaces)), tuple(dict.fromkeys(policies)))


def find_edge(
    configuration: Configuration, interface: str | None, rate_bps: int | None, *, two_way: bool = False
) -> TrialEdge:
    """Return the interface to try: the named one, or the only possible one. Raise UserError if there is none.

    With traffic in two directions, the policies of the interface on the other side are included.
    """
    if configuration.device.switch is not None:
        raise UserError("found a Catalyst switch configuration, expected a router configuration")
    if (line := _catalyst_9000_note(configuration.device)) is not None:
        raise UserError(
            f"found a Catalyst 9000 configuration (`{line}`), expected a router configuration",
            hint="the queues and buffers of its ports are not modelled; `qoslab policy` lists its policies",
        )
    at = _tried_attachment(configuration, interface)
    choice = () if at is None or interface is not None else _choice_note(configuration, at)
    if at is None:
        at = _unattached_policy(configuration)
    if at.refused:
        reason = " ".join(at.refused.split())
        raise UserError(
            f"{at.interface} refuses `service-policy {at.direction} {at.policy}` (line {at.line}): {reason}",
            hint="correct the policy; `qoslab policy` lists all findings",
        )
    policies = configuration.device.policy_maps
    parts = list(descendants(configuration.device, policies[at.policy])) if at.policy in policies else []
    below = [each for part in parts for each in part.classes]
    missing = [name for name in (at.policy, *(each.service_policy for each in below)) if name and name not in policies]
    if missing:
        place = at.interface or f"policy-map {at.policy}"
        raise UserError(
            f"{place}: found no policy-map {missing[0]}, expected its lines in the configuration",
            hint=f"add them, or remove the line that names {missing[0]}",
        )
    edge = _prepare_edge(configuration, at, rate_bps, two_way=two_way)
    edge = _add_tunnel_bytes(configuration, edge, at)
    names = {f"policy-map {each.name}" for each in parts} | {f"class-map {each.name}" for each in below}
    return replace(edge, notes=(*choice, *edge.notes, *_unread_line_notes(configuration, names)))


def _add_tunnel_bytes(configuration: Configuration, edge: TrialEdge, at: Attachment) -> TrialEdge:
    """Add the bytes of the tunnels whose packets the policy handles."""
    found = find_encapsulation(configuration, at)
    if found is None:
        return edge
    names = format_list([each.name for each in found.tunnels])
    if found.has_other_packets:
        note = (
            f"{at.interface} also carries packets outside {names} (ip nat outside): the traffic is simulated outside."
        )
        return replace(edge, notes=(*edge.notes, note))
    # The policy of a tunnel counts no layer 2 header, but the line of the trial has one.
    offset = found.mean_bytes - (0 if found.is_below_tunnels else COUNTED_HEADER[edge.framing])
    notes = [
        f"All packets are in {names}: shapers, policers and shares count {found.mean_bytes} bytes of encapsulation "
        "with each, the mean of all lengths. Priority policers and the line do not."
    ]
    capabilities = GENERATIONS[configuration.device.generation].capabilities
    if offset > MAX_ACCOUNTED_BYTES and IOS_XE not in capabilities:
        notes.append(f"The simulated release counts at most {MAX_ACCOUNTED_BYTES} of them.")
        offset = MAX_ACCOUNTED_BYTES
    if found.is_below_tunnels:
        hidden = "" if found.hides_fields else " (qos pre-classify)"
        notes.append(f"Classes see the {'outer' if found.hides_fields else 'inner'} headers of the tunnel{hidden}.")
    return replace(edge, notes=(*edge.notes, *notes), tunnel_bytes=offset, outer_headers=found.hides_fields)


def _catalyst_9000_note(device: Device) -> str | None:
    """Return a line about the buffers of a Catalyst 9000's ports, or None."""
    inert = [line for policy in device.policy_maps.values() for each in policy.classes for line in each.inert]
    words = ("queue-buffers ", "qos queue-softmax-multiplier", "qos queue-stats-frame-count")
    return next((line.text for line in (*inert, *device.inert) if line.text.startswith(words)), None)


def _unread_line_notes(configuration: Configuration, names: Collection[str]) -> tuple[str, ...]:
    """Return notes on refused or unread lines of the given policy-maps and class-maps."""
    own = [each for each in configuration.reading.unread if each.place and each.place[0] in names]
    notes = [f"line {each.number}: `{each.text}` is not read: simulated without it." for each in own[:MAX_UNREAD_LINES]]
    if len(own) > MAX_UNREAD_LINES:
        notes.append(f"{len(own) - MAX_UNREAD_LINES} more lines are not read; `qoslab policy` lists them.")
    return tuple(notes)


def _tried_attachment(configuration: Configuration, wanted: str | None) -> Attachment | None:
    """Return the attached policy to try; None if none is attached."""
    found = configuration.attachments
    if wanted is not None:
        name = interface_name(wanted) or wanted
        own = [each for each in found if name in (each.interface, each.name)]
        if not own:
            known = format_list([each.name for each in found], 8) or "none"
            raise UserError(f"--interface: found no policy on {name}, expected an interface with one: {known}")
        return min(own, key=lambda each: each.direction != "output")
    for direction in ("output", "input"):
        here = [each for each in found if each.direction == direction]
        if here:
            return min(here, key=lambda each: (bool(each.refused), _outgoing_bps(configuration, each)))
    return None


def _outgoing_bps(configuration: Configuration, at: Attachment) -> float:
    """Return the rate of the line or of the shaper of all traffic, whichever is lower; infinity if neither is known."""
    device = configuration.device
    policy = device.policy_maps.get(at.policy)
    default = None if policy is None else policy.find(CLASS_DEFAULT)
    shaped = default is not None and default.shape is not None and default.shape.rate.unit == "bps"
    rates = [float(default.shape.rate.number)] if shaped and default and default.shape else []
    interface = device.interfaces.get(at.interface)
    if interface is not None:
        speed = configuration.speed_mbps(at.interface.partition(".")[0])
        lines = [line_rate(device, interface, None, speed) or base_rate(interface, at, None, speed)]
    else:
        lines = [carrier_line(configuration, at)] if interface_kind(at.interface) in CARRIED else []
    rates += [rate.bps for rate, _ in lines if rate.is_absolute]
    return min(rates, default=math.inf)


def _choice_note(configuration: Configuration, at: Attachment) -> tuple[str, ...]:
    """Return a note if other interfaces have other policies in the direction of the chosen one."""
    others = [each for each in configuration.attachments if each.direction == at.direction and each != at]
    if all(each.policy == at.policy for each in others):
        return ()
    names = format_list([f"{each.name} ({each.policy})" for each in others], 8)
    return (
        f"Tried {at.name} ({at.policy}), the slowest interface with an {at.direction} policy; choose another with "
        f"--interface: {names}.",
    )


def _unattached_policy(configuration: Configuration) -> Attachment:
    """Return the outermost policy-map of a configuration without a service-policy, on an assumed interface."""
    device = configuration.device
    outer = outermost_policies(device)
    if not outer:
        raise UserError(
            "found no policy-map that can be simulated, expected one", hint="paste a policy-map with its classes"
        )
    if len(outer) != 1:
        raise UserError(
            f"found {len(outer)} policy-maps without an interface: {format_list(outer, 8)}; expected one",
            hint="add the lines `interface GigabitEthernet0/0` and `service-policy output NAME`",
        )
    return Attachment("", "output", outer[0], configuration.line_number(outer[0]))


def _has_rate_shaper(policy: PolicyMap) -> bool:
    """Return whether a policy limits all traffic by a shaper in b/s, so that the line rate matters little."""
    default = policy.find(CLASS_DEFAULT)
    return default is not None and default.shape is not None and default.shape.rate.unit == "bps"


def _prepare_edge(configuration: Configuration, at: Attachment, rate_bps: int | None, *, two_way: bool) -> TrialEdge:
    device = configuration.device.copy()
    notes: list[str] = []
    own = device.interfaces.get(at.interface)
    if own is not None and own.vlan is not None and own.parent is not None and at.direction == "output":
        return _subinterface_edge(configuration, device, own, at, rate_bps, two_way=two_way)
    modelled = at.interface in device.interfaces
    interface, base_kbps = _tried_interface(configuration, device, at, rate_bps, notes)
    speed = configuration.speed_mbps(at.interface.partition(".")[0])
    # `bandwidth` of a tunnel or dialer is no line: below a shaper it would be a second queue.
    own_line = modelled or rate_bps is not None or _has_rate_shaper(device.policy_maps[at.policy])
    line = line_rate(device, interface, rate_bps, speed) if own_line else None
    if rate_bps is None and (carrier := _carrier_bps(configuration, at)) is not None:
        line = Rate(carrier), "port below"
    rate = line[0].bps if line is not None else base_kbps * 1000
    line_bps = max(int(rate), 1)
    if speed is not None and interface.bandwidth_kbps is None:
        interface.bandwidth_kbps = speed * 1000
    other, other_bps = _other_interface(configuration, device, interface, at, line_bps, notes, two_way=two_way)
    for each, address in ((interface, WAN_ADDRESS), (other, LAN_ADDRESS)):
        _connect(device, each, address)
    return _build_edge(device, at, (interface, line_bps), (other, other_bps), notes, two_way=two_way)


def _build_edge(
    device: Device,
    at: Attachment,
    tried: tuple[Interface, int],
    other: tuple[Interface, int],
    notes: Sequence[str],
    subinterface: str | None = None,
    *,
    two_way: bool,
) -> TrialEdge:
    """Return the edge of two interfaces with their line rates; the traffic passes the policy in its direction."""
    (wan, line_bps), (lan, lan_bps) = (tried, other) if at.direction == "output" else (other, tried)
    return TrialEdge(
        device=device,
        wan=wan.name,
        lan=lan.name,
        direction=at.direction,
        policy=at.policy,
        line_bps=line_bps,
        lan_bps=lan_bps,
        framing=_interface_framing(wan),
        lan_framing=_interface_framing(lan),
        notes=tuple(notes),
        subinterface=subinterface,
        two_way=two_way,
    )


def _subinterface_edge(
    configuration: Configuration, device: Device, own: Interface, at: Attachment, rate_bps: int | None, *, two_way: bool
) -> TrialEdge:
    """Return the edge of an output policy on a subinterface with a VLAN."""
    notes: list[str] = []
    port = device.interfaces[own.parent or own.name]
    speed = configuration.speed_mbps(port.name)
    base, _ = base_rate(port, at, rate_bps, speed)
    line = line_rate(device, own, rate_bps, speed)
    line_bps = max(int(base.bps if line is None else line[0].bps), 1)
    if speed is not None and port.bandwidth_kbps is None:
        port.bandwidth_kbps = speed * 1000
    other, other_bps = _other_interface(configuration, device, port, at, line_bps, notes, two_way=two_way)
    for each, address in ((own, WAN_ADDRESS), (other, LAN_ADDRESS)):
        _connect(device, each, address)
    port.address, port.shutdown = None, False
    if own.service_policy_output is None:
        notes.append(f"{port.name}: its shaper {port.service_policy_output} above this policy is not simulated.")
        port.service_policy_output, own.service_policy_output = None, at.policy
    return _build_edge(device, at, (port, line_bps), (other, other_bps), notes, own.name, two_way=two_way)


def _carrier_bps(configuration: Configuration, at: Attachment) -> float | None:
    """Return the rate of the port by which the packets of a tunnel or dialer leave, or of a circuit of ATM; None if it
    is unknown.
    """
    circuit = configuration.device.interfaces.get(at.interface)
    if circuit is not None and circuit.is_atm:
        return base_rate(circuit, at, None, None)[0].bps
    if interface_kind(at.interface) not in CARRIED:
        return None
    rate, _ = carrier_line(configuration, at)
    return rate.bps if rate.is_absolute else None


def _tried_interface(
    configuration: Configuration, device: Device, at: Attachment, rate_bps: int | None, notes: list[str]
) -> tuple[Interface, float]:
    """Return the interface with the policy, and its bandwidth in kb/s; create one if the input has none."""
    found = device.interfaces.get(at.interface)
    if found is not None and found.parent is None and not found.is_atm:
        base, _ = base_rate(found, at, rate_bps, configuration.speed_mbps(found.name))
        return found, base.bps / 1000
    base, _ = base_rate(found, at, rate_bps, None)
    if found is not None and found.is_atm:
        notes.append(f"{at.interface}: the cells of ATM are not counted.")
        found.service_policy_input = found.service_policy_output = None
        found = None
    kbps = base.bps / 1000
    circuit = None if base.is_absolute else configuration.circuit_rates(at.policy)
    carrier = None if rate_bps is not None else _carrier_bps(configuration, at)
    if carrier is not None:
        kbps = kbps if base.is_absolute else carrier / 1000
    elif circuit is not None:
        kbps = circuit.cir_bps / 1000
        if circuit.min_cir_bps != circuit.cir_bps:
            cir, least = bps_text(circuit.cir_bps), bps_text(circuit.min_cir_bps)
            source = circuit.min_cir_source
            notes.append(f"Percentages refer to the CIR of {cir} here, but to {least} on the device ({source}).")
    elif not base.is_absolute:
        policy = device.policy_maps[at.policy]
        if not _has_rate_shaper(policy):
            raise UserError(
                f"policy-map {at.policy}: found no line rate, expected --rate",
                hint="give a rate such as --rate 20m, or the line `bandwidth`",
            )
        kbps = 1_000_000.0
        notes.append(f"Line rate not in the configuration: {bps_text(kbps * 1000)} assumed; set it with --rate.")
    port = None if found is None else device.interfaces[found.parent or found.name]
    if port is None:
        port = _add_interface(device, ASSUMED_INTERFACE)
        place = f"on {at.interface}" if at.interface else "attached to no interface"
        line_bps: float = kbps * 1000 if rate_bps is None else rate_bps
        if carrier is not None:
            line_bps = carrier
        elif rate_bps is None and _has_rate_shaper(device.policy_maps[at.policy]):
            line = line_rate(device, port, None, configuration.speed_mbps(port.name))
            line_bps = line_bps if line is None else line[0].bps
        notes.append(f"policy-map {at.policy} {place}: simulated on an Ethernet line of {bps_text(line_bps)}.")
    else:
        notes.append(f"{at.interface}: the policy is simulated on {port.name}, without its VLAN tag.")
        for each in device.subinterfaces(port.name):
            del device.interfaces[each.name]
    if port.bandwidth_kbps is None:
        port.bandwidth_kbps = max(round(kbps), 1)
    _attach(device, port, at)
    return port, kbps


def _add_interface(device: Device, name: str) -> Interface:
    """Add an interface to a device."""
    device.hardware = replace(device.hardware, interfaces=tuple(dict.fromkeys((*device.hardware.interfaces, name))))
    return device.interfaces.setdefault(name, Interface(name))


def _attach(device: Device, port: Interface, at: Attachment) -> None:
    """Enter `service-policy` at an interface. Raise UserError if the device refuses it."""
    port.service_policy_input = port.service_policy_output = None
    session = ConfigSession(device)
    session.position = Position("interface", (port.name,))
    try:
        session.execute(f"service-policy {at.direction} {at.policy}")
    except CliError as error:
        message = "; ".join(each.strip() for each in error.render() if each.strip(" ^"))
        raise UserError(
            f"{port.name} refuses `service-policy {at.direction} {at.policy}`: {message}",
            hint="correct the policy; `qoslab policy` lists all findings",
        ) from None


def _other_interface(
    configuration: Configuration,
    device: Device,
    tried: Interface,
    at: Attachment,
    line_bps: int,
    notes: list[str],
    *,
    two_way: bool,
) -> tuple[Interface, int]:
    """Return the interface on the other side, and its rate; preferably one with an input policy.

    With traffic in two directions it is the interface with the most policies, at its line rate.
    """
    rate = next((each for each in LAN_RATES_BPS if each > line_bps), LAN_RATES_BPS[-1])
    matched = _matched_interface(device, tried.name)
    if matched is not None and matched.kind.endswith(("Ethernet", "GigE")):
        notes.append(f"{matched.name}: input interface of the traffic, because a class-map matches it.")
        return matched, rate
    if two_way and (names := _interfaces_with_policy(configuration, device, tried.name)):
        found = device.interfaces[max(names, key=names.count)]
        notes.append(f"{found.name}: interface on the other side, because it has a policy.")
        line = line_rate(device, found, None, configuration.speed_mbps(found.name))
        return found, rate if line is None else max(int(line[0].bps), 1)
    if at.direction == "output":
        marking = [
            device.interfaces[each.interface]
            for each in configuration.attachments
            if each.direction == "input" and not each.refused and each.interface != tried.name
            if each.interface in device.interfaces and device.interfaces[each.interface].parent is None
        ]
        if marking and marking[0].kind.endswith(("Ethernet", "GigE")):
            notes.append(f"{marking[0].name}: input interface of the traffic, because it has an input policy.")
            return marking[0], rate
    return _add_interface(device, LAN), rate


def _interfaces_with_policy(configuration: Configuration, device: Device, tried: str) -> list[str]:
    """Return the other Ethernet interfaces with attached policies, once for each policy."""
    names = [each.interface for each in configuration.attachments if not each.refused and each.interface != tried]
    ports = (device.interfaces[name] for name in names if name in device.interfaces)
    return [each.name for each in ports if each.parent is None and each.kind.endswith(("Ethernet", "GigE"))]


def _matched_interface(device: Device, tried: str) -> Interface | None:
    """Return the first other interface of a `match input-interface`."""
    names = [each.name for one in device.class_maps.values() for each in one.criteria if each.type == "input_interface"]
    found = (device.interfaces[name] for name in names if name in device.interfaces and name != tried)
    return next((each for each in found if each.parent is None), None)


def drop_other_inputs(device: Device, wired: Sequence[str]) -> Device:
    """Return the device without `match input-interface` for interfaces that are not part of the trial."""
    made = device.copy()
    for name, class_map in device.class_maps.items():
        criteria = tuple(
            replace(each, type="unseen", name=NO_PACKET_CRITERION)
            if each.type == "input_interface" and each.name not in wired
            else each
            for each in class_map.criteria
        )
        made.class_maps[name] = replace(class_map, criteria=criteria)
    return made


def with_tunnel(device: Device, edge: TrialEdge) -> Device:
    """Return the device with a tried policy that counts the bytes of a tunnel, and sees its headers."""
    if not edge.tunnel_bytes and not edge.outer_headers:
        return device
    interface = device.interfaces[edge.tried_interface]
    name = interface.service_policy_output if edge.direction == "output" else interface.service_policy_input
    made = with_account_offset(device, name or edge.policy, edge.tunnel_bytes)
    policies = list(descendants(made, made.policy_maps[name or edge.policy]))
    if edge.outer_headers:
        for each in dict.fromkeys(each.name for policy in policies for each in policy.classes):
            if each in made.class_maps:
                criteria = tuple(map(_outer_header_criterion, made.class_maps[each].criteria))
                made.class_maps[each] = replace(made.class_maps[each], criteria=criteria)
    return made


def _outer_header_criterion(criterion: Criterion) -> Criterion:
    """Return a criterion that matches no packet if encapsulation hides its field."""
    return replace(criterion, type="unseen", name=NO_PACKET_CRITERION) if criterion.type in OUTER_FIELDS else criterion


def _connect(device: Device, interface: Interface, address: IPv4Interface) -> None:
    """Connect an interface to the network of the trial: up, with an address, without filters."""
    for each in (*device.interfaces.values(),):
        if each.name != interface.name and each.address is not None and each.address.network.overlaps(address.network):
            each.address = None
    interface.address = address
    interface.secondary_addresses = interface.ipv6_addresses = ()
    interface.filters = interface.ipv6_filters = NO_ACCESS_GROUPS
    interface.mtu = interface.ip_mtu = interface.ipv6_mtu = None
    interface.shutdown = False


def _interface_framing(interface: Interface) -> Framing:
    if interface.is_atm:
        raise UserError(
            f"{interface.name}: found an ATM interface, expected an Ethernet or serial one",
            hint="paste the policy-map alone, with --rate",
        )
    if interface.is_serial:
        return "ppp" if interface.encapsulation == "ppp" else "hdlc"
    return "ethernet"
