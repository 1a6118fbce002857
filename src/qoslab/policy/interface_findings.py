"""Findings about interfaces: policies and queues that have no effect there, and values that other lines change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qoslab.ios.model.ios_names import interface_kind
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.ios.rules import descendants
from qoslab.ios.undecided import IOS_XE
from qoslab.policy.composed_rates import primary_port
from qoslab.policy.effective import has_percentage
from qoslab.policy.line_rates import ppp_circuit
from qoslab.policy.pasted_configuration import policies_below_shaped_ports
from qoslab.policy.policy_finding import (
    CONGESTION,
    ETHERCHANNEL,
    MQC,
    POLICING,
    SWITCH,
    SYSTEM,
    PolicyFinding,
    Severity,
    Subject,
    class_place,
    policy_place,
)
from qoslab.policy.rate import format_list
from qoslab.policy.tunnels import find_tunnels

VIRTUAL = ("Tunnel", "Dialer", "Virtual-Template", "Loopback", "Vlan", "BVI")
"""Interfaces without a transmit queue, where nothing indicates congestion."""
POSSIBLE_EFFECT = ("Dialer", "Virtual-Template")
"""Interfaces with a possible ATM queue."""

_AGGREGATE = re.compile(r"platform qos port-channel-aggregate (\d+)")
_BY_VLAN = re.compile(r"(?:port-channel )?load-balancing vlan")
"""Distribution of the VLANs of a port-channel to its ports, globally or for one port-channel."""


def find_queueing_on_input(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about policies with shapers or queues on the input of an interface."""
    device = subject.configuration.device
    for at in subject.configuration.attachments:
        policy = device.policy_maps.get(at.policy)
        if at.direction != "input" or policy is None:
            continue
        names = dict.fromkeys(
            f"{each.name} of {part.name}"
            for part in descendants(device, policy)
            for each in part.classes
            if each.queueing
        )
        if names:
            message = f"{at.interface} input: shaping and queueing work on output only (class {', '.join(names)})"
            yield PolicyFinding("error", "queueing-on-input", message, CONGESTION, at.line)


def find_port_shapers(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about subinterfaces whose port has a shaper, which limits their values together."""
    configuration = subject.configuration
    for at in policies_below_shaped_ports(configuration):
        port = at.interface.partition(".")[0]
        above = next((each for each in subject.policies if each.interface == port and each.direction == "output"), None)
        rate = next((each.shape.rate for each in above.classes if each.shape), None) if above is not None else None
        message = (
            f"{at.interface} output: the shaper of {port}{f' ({rate})' if rate else ''} is above this policy and not "
            f"part of its values; the subinterfaces share it by `bandwidth remaining ratio`, by default equally"
        )
        yield PolicyFinding("note", "shaper-of-port", message, CONGESTION, at.line)


def find_port_shapers_below_tunnels(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about tunnels whose packets also pass the shaper of the port below."""
    configuration = subject.configuration
    shaped = {
        policy.interface: each.shape.rate
        for policy, each in subject.classes()
        if policy.direction == "output" and each.shape is not None and each.path == (CLASS_DEFAULT,)
    }
    sources = {each.name: each.source for each in find_tunnels(configuration)}
    for at in configuration.attachments:
        port = sources.get(at.interface, "")
        if at.direction != "output" or at.refused or port not in shaped:
            continue
        message = (
            f"{at.name} output: the packets also pass the shaper of {port} ({shaped[port]}), which is not part of "
            "these values"
        )
        yield PolicyFinding("note", "shaper-of-port", message, CONGESTION, at.line)


def find_port_channels_without_aggregate(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about queueing policies of port-channels that IOS-XE accepts only for an aggregate."""
    configuration = subject.configuration
    if not configuration.device.hardware.qos.port_channel_needs_aggregate:
        return
    typed = [each.text for each in configuration.reading.input_lines()]
    aggregates = {found[1] for each in typed if (found := _AGGREGATE.fullmatch(each))}
    by_vlan = any(map(_BY_VLAN.match, typed))
    for policy in subject.policies:
        bundle, dot, _ = policy.interface.partition(".")
        number, below = re.sub(r"\D+", "", bundle), configuration.lines.below
        if interface_kind(bundle) != "Port-channel" or not policy.queues or number in aggregates:
            continue
        if dot and (by_vlan or primary_port(below.get(f"interface {policy.interface}", ()))):
            continue
        others = ", or `load-balancing vlan` for policies of its subinterfaces" if dot else ""
        message = (
            f"{policy.interface} output: IOS-XE accepts queues on a port-channel only after `platform qos "
            f"port-channel-aggregate {number}`, typed before the port-channel is created{others}; the input has no "
            "such line"
        )
        yield PolicyFinding("warning", "port-channel-without-aggregate", message, ETHERCHANNEL, policy.number)


def find_bandwidth_below_line(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about queues without a shaper on a port whose `bandwidth` is below the line rate."""
    for policy in subject.policies:
        slow = policy.line.is_absolute and policy.base.is_absolute and policy.base.bps < policy.line.bps
        virtual = interface_kind(policy.interface) in VIRTUAL
        if not policy.queues or not slow or virtual or policy.base_source != "bandwidth":
            continue
        if any(each.shape is None and each.queue for each in policy.classes if len(each.path) == 1):
            message = (
                f"{policy_place(policy)}: `bandwidth` is {policy.base}, but packets wait only if they "
                "exceed the line rate "
                f"of "
                f"{policy.line}; put the classes below a class-default with `shape average {policy.base.bps:.0f}`"
            )
            line = subject.configuration.interface_line(policy.interface, "bandwidth")
            yield PolicyFinding("warning", "bandwidth-below-line", message, CONGESTION, line)


def find_remaining_without_shaper(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about `bandwidth remaining` without a parent shaper and without a known line rate, and about
    queues on virtual interfaces.
    """
    for policy in subject.policies:
        if not policy.queues:
            continue
        virtual = interface_kind(policy.interface) in VIRTUAL
        top = [each for each in policy.classes if len(each.path) == 1]
        at = next((each for each in subject.configuration.attachments if each.line == policy.number), None)
        port = None if at is None else ppp_circuit(subject.configuration, at)
        if port is not None and IOS_XE not in subject.configuration.device.hardware.qos.capabilities:
            # A session of PPP over ATM waits in the queue of its circuit, which only a rate can congest.
            virtual = port.circuit is None or port.circuit.contract is None
        if virtual and any(each.queue is not None and each.shape is None and each.busy for each in top):
            without = f"the circuit of {port.name} has no rate such as `vbr-nrt`" if port else ""
            message = (
                f"{policy_place(policy)}: {without or 'the interface has no queue that can be congested'}; put the "
                "classes below a class-default with `shape`"
            )
            severity: Severity = "warning" if interface_kind(policy.interface) in POSSIBLE_EFFECT else "error"
            yield PolicyFinding(severity, "queues-without-shaper", message, CONGESTION, policy.number)
        for each in top:
            typed = subject.configured_class(each)
            bandwidth = None if typed is None or typed.shape is not None else typed.bandwidth
            if bandwidth is not None and bandwidth.unit.startswith("remaining") and not policy.base.is_absolute:
                message = (
                    f"{class_place(each)}: `bandwidth remaining` has no shaper above it, and the line rate is unknown "
                    "(give --rate)"
                )
                yield PolicyFinding(
                    "warning", "remaining-without-base", message, CONGESTION, subject.line_number(each, "bandwidth")
                )
                break


def find_percent_of_default_bandwidth(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about percentages of an interface's default bandwidth that differs from its line rate."""
    for policy in subject.policies:
        interface = subject.configuration.device.interfaces.get(policy.interface)
        tunnel = interface is None and policy.base_source == f"default bandwidth of {interface_kind(policy.interface)}"
        if not tunnel and (interface is None or interface.bandwidth_kbps is not None or interface.circuit is not None):
            continue
        uses = [
            each for each in policy.classes if len(each.path) == 1 and has_percentage(subject.configured_class(each))
        ]
        if not uses or (policy.base == policy.line and interface is not None and not interface.is_serial):
            continue
        line = "" if policy.base == policy.line else f", and the line is {policy.line} ({policy.line_source})"
        message = (
            f"{policy_place(policy)}: percentages refer to {policy.base}, the default bandwidth of "
            f"{interface_kind(policy.interface)}{line}; set `bandwidth` on the interface"
        )
        severity: Severity = "note" if policy.base == policy.line else "warning"
        yield PolicyFinding(severity, "percent-of-default-bandwidth", message, CONGESTION, policy.number)


# Switches.


def find_untrusted_ports(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about ports of a switch that reset marks on traffic that is matched by its marks."""
    device = subject.configuration.device
    if device.switch is None:
        return
    matching = [
        name
        for name, each in device.class_maps.items()
        if any(c.type in ("dscp", "precedence", "cos") for c in each.criteria)
    ]
    if not device.switch.enabled:
        if device.policy_maps or any(each.port and each.port.trust for each in device.interfaces.values()):
            message = "`mls qos` is not configured: trust, policy-maps and queues have no effect"
            yield PolicyFinding("error", "mls-qos-off", message, SWITCH)
        return
    for interface in device.interfaces.values():
        port, policy = interface.port, device.policy_maps.get(interface.service_policy_input or "")
        if port is None or port.trust or policy is None:
            continue
        for each in policy.classes:
            if each.name in matching and each.trust is None and not each.marks:
                message = (
                    f"{interface.name} input, class {each.name}: the class has neither `trust` nor `set`, "
                    "so marked packets leave with DSCP 0"
                )
                line = subject.configuration.line_number(policy.name, each.name)
                yield PolicyFinding("error", "untrusted-marks", message, SWITCH, line)
    bare = [
        each.name
        for each in device.interfaces.values()
        if each.port
        and not each.port.trust
        and each.service_policy_input is None
        and not each.shutdown
        and not each.port.vlan_based
    ]
    if bare and (matching or device.interfaces):
        message = f"`mls qos` without trust on {format_list(bare)}: packets from there are reset to DSCP 0"
        yield PolicyFinding("warning", "untrusted-port", message, SWITCH)


def find_unattached_policies(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about policy-maps that are not attached in a configuration that attaches others."""
    configuration = subject.configuration
    device = configuration.device
    if not configuration.attachments:
        return
    used = {
        part.name
        for at in configuration.attachments
        if at.policy in device.policy_maps
        for part in descendants(device, device.policy_maps[at.policy])
    }
    for name in device.policy_maps:
        if name not in used and not name.startswith(SYSTEM) and configuration.attached_elsewhere(name) is None:
            message = f"policy-map {name} is neither attached to an interface nor used in another policy-map"
            yield PolicyFinding("note", "policy-not-attached", message, MQC, configuration.line_number(name))


def find_other_limiters(subject: Subject) -> Iterator[PolicyFinding]:
    """Yield findings about limiters and queues of an interface outside policy-maps, which the values do not include."""
    configuration = subject.configuration
    for interface in configuration.device.interfaces.values():
        commands = {
            "rate-limit": interface.rate_limits,
            "traffic-shape": interface.shapers,
            "priority-group": interface.priority_group,
            "custom-queue-list": interface.custom_queue_list,
        }
        for command, given in commands.items():
            if given:
                message = f"{interface.name} also has `{command}`, which is not part of the values"
                line = configuration.interface_line(interface.name, command)
                yield PolicyFinding("note", "other-limits", message, POLICING, line)
