"""Kernel plan of a pasted configuration, for a Linux computer in place of the router."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from qoslab.errors import UserError
from qoslab.ios.compile import compile_device, engine_config
from qoslab.model.framing import MEDIUM, Framing
from qoslab.policy.line_rates import base_rate, line_rate
from qoslab.policy.pasted_configuration import Attachment, Configuration
from qoslab.tc.engine_values import has_queueing_policy
from qoslab.tc.fidelity import Note
from qoslab.tc.objects import Origin
from qoslab.tc.port_plan import ETHERNET_HEADER, PlannedPort
from qoslab.tc.router_plan import RouterPlan, plan

if TYPE_CHECKING:
    from qoslab.ios.model.device import Interface

DEVICE = re.compile(r"[^\s/]{1,15}")
"""Name of a network device: no blanks, no slashes, at most 15 bytes (IFNAMSIZ)."""
NOT_ATTACHED = "line"
"""Interface of a policy-map that the input does not attach."""


def plan_pasted(configuration: Configuration, rate_bps: int | None, devices: Mapping[str, str]) -> RouterPlan:
    """Return the plan of the attached policy-maps; if there are none, of the outermost policy-maps, each on a separate
    line.

    `devices` are kernel names by IOS interface; other interfaces become eth0, eth1 and so on, or ppp0 for serial lines.
    Raise UserError if a device has no interface, or if the rate of a line is unknown.
    """
    device = configuration.device
    config: dict[str, Any] = dict(engine_config(compile_device(device)))
    attached = [each for each in configuration.attachments if each.policy in device.policy_maps and not each.refused]
    if device.switch is None and not attached:
        return _plan_unattached(config, rate_bps, devices)
    names = [
        name
        for name in device.interfaces
        if any(_attachment_port(device.interfaces, each) == name for each in attached)
    ]
    _check_devices(devices, names)
    ports = []
    numbers = {"eth": 0, "ppp": 0}
    for name in names:
        interface = device.interfaces[name]
        at = next(each for each in attached if _attachment_port(device.interfaces, each) == name)
        framing = _interface_framing(config["interfaces"][name], interface)
        header = ETHERNET_HEADER if MEDIUM[framing] == "ethernet" else 0
        kind = "eth" if header else "ppp"
        speed = configuration.speed_mbps(name)
        base, _ = base_rate(interface, at, rate_bps, speed)
        line = (line_rate(device, interface, rate_bps, speed) or (base, ""))[0]
        output = config["interfaces"][name].get("service_policy_output")
        queues = output is not None and has_queueing_policy(config, output)
        ports.append(
            PlannedPort(
                name,
                devices.get(name, f"{kind}{numbers[kind]}"),
                int(base.bps),
                int(line.bps) if queues else None,
                framing,
                interface.mtu or 1500,
                header,
            )
        )
        numbers[kind] += 1
    found = plan(config, ports)
    others = tuple(
        _unsupported_location_note(each) for each in attached if _attachment_port(device.interfaces, each) is None
    )
    return RouterPlan(found.router, found.interfaces, (*found.notes, *others))


def _attachment_port(interfaces: Mapping[str, Interface], at: Attachment) -> str | None:
    """Return the physical port of an attachment, for a subinterface its parent; None if its kind is not modelled."""
    interface = interfaces.get(at.interface)
    return None if interface is None else interface.parent or interface.name


def _unsupported_location_note(at: Attachment) -> Note:
    origin = Origin(at.interface, at.direction, at.policy)
    return Note("refused", origin, "service-policy", "this kind of interface is not supported in plans")


def _interface_framing(config: Mapping[str, Any], interface: Interface) -> Framing:
    given: Framing | None = config.get("encapsulation")
    if given is not None:
        return given
    return "aal5snap" if interface.is_atm else "hdlc" if interface.is_serial else "ethernet"


def _check_devices(devices: Mapping[str, str], names: list[str]) -> None:
    for interface, name in devices.items():
        if interface not in names:
            known = ", ".join(names) or "no interface"
            raise UserError(f'--device: found interface "{interface}", expected one with a policy: {known}')
        if not DEVICE.fullmatch(name):
            raise UserError(f'--device: found "{name}", expected the name of a network device, such as eth0')


def _plan_unattached(config: dict[str, Any], rate_bps: int | None, devices: Mapping[str, str]) -> RouterPlan:
    """Return the plan of the outermost policy-maps, each on an Ethernet line with the rate `rate_bps`."""
    if rate_bps is None:
        raise UserError(
            "found no policy-map on an interface, expected the rate of the line for --kernel",
            hint="add the rate, such as --rate 50m, or an interface with service-policy",
        )
    outer = list(_outermost_policies(config))
    names = [NOT_ATTACHED if len(outer) == 1 else f"{NOT_ATTACHED} {policy}" for policy in outer]
    _check_devices(devices, names)
    config["interfaces"] = {}
    ports = []
    for number, (name, policy) in enumerate(zip(names, outer, strict=True)):
        queues = has_queueing_policy(config, policy)
        direction = "service_policy_output" if queues else "service_policy_input"
        config["interfaces"][name] = {"enabled": True, "bandwidth_kbps": rate_bps // 1000, direction: policy}
        ports.append(PlannedPort(name, devices.get(name, f"eth{number}"), rate_bps, rate_bps if queues else None))
    return plan(config, ports)


def _outermost_policies(config: Mapping[str, Any]) -> Iterator[str]:
    children = {each.get("service_policy") for one in config["policy_maps"].values() for each in one["classes"]}
    return (name for name in config["policy_maps"] if name not in children)
