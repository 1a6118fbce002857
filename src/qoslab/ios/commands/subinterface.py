"""Subinterfaces of Ethernet ports: `encapsulation dot1Q`, and the requirements on their policies.

Commands that ports have too (addresses, policies) are registered for both modes by their modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.access_group import engine_filters
from qoslab.ios.commands.adjust_mss import engine_adjust_mss
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.engine_rules import ON_SUBINTERFACE, PORT_OR_SUBINTERFACE
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.policy import CLASS_DEFAULT, PolicyMap
from qoslab.ios.registry import ATTACH_RULES, ENGINE_INTERFACE, INTERFACE_LINES, OUTPUT_RULES
from qoslab.ios.rules import HIERARCHY_NEEDS_SHAPER, class_facts, find_combination, interface_bandwidth_kbps
from qoslab.system import program_formats

# Text quoted by engineers for Frame Relay and Ethernet subinterfaces [R].
NOT_ON_SUBINTERFACES = "CBWFQ : Not supported on subinterfaces"
# [R] The wording is from memory; that an ISR accepts a policy either on the port or on its subinterfaces is [C].
NOT_ON_BOTH = "Attaching service policy to main and sub-interface concurrently is not allowed"
SHAPED_PORT = "limit-microseconds"
"""Capability of IOS-XE."""
SAME_VLAN = (
    "%Configuration of multiple subinterfaces of the same main\n"
    "interface with the same VID ({vlan}) is not permitted.\n"
    "This VID is already configured on {name}."
)
# Our own wording.
NOT_BELOW_SHAPER = "% Not supported: a shaper on a port whose subinterfaces have policies"
NATIVE_TAKEN = "% The native VLAN is already configured on {name}"


@router_command(
    "subinterface",
    "encapsulation dot1Q <vlan:1-4094> [native]",
    no="encapsulation dot1Q [<vlan:1-4094>] [native]",
    undo=Undo(key="encapsulation dot1Q", rewrite=True),
    help={
        "encapsulation": "Set encapsulation type for an interface",
        "dot1Q": "IEEE 802.1Q Virtual LAN",
        "vlan": "IEEE 802.1Q VLAN ID required",
        "native": "Make this as native vlan",
    },
)
def _configure_encapsulation(session: ConfigSession, args: Args) -> None:
    interface = session.interface
    if interface.is_atm:
        raise args.invalid_argument("encapsulation")
    if args.unset:
        # Without a VLAN it has no IP either.
        interface.vlan, interface.native = None, False
        interface.address, interface.secondary_addresses = None, ()
        return
    vlan, native = args.value("vlan", int), "native" in args
    for other in session.device.subinterfaces(interface.parent or ""):
        if other is interface:
            continue
        if other.vlan == vlan:
            raise RejectedError(SAME_VLAN.format(vlan=vlan, name=other.name))
        if native and other.native:
            raise RejectedError(NATIVE_TAKEN.format(name=other.name))
    interface.vlan, interface.native = vlan, native


@INTERFACE_LINES.register_family(20, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.vlan is not None:
        yield f"encapsulation dot1Q {interface.vlan}{' native' if interface.native else ''}"


@ENGINE_INTERFACE.register_family(70, family="router")
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    parts = {
        each.name: _subinterface_part(device, each, each.vlan, interface)
        for each in device.subinterfaces(interface.name)
        if each.vlan is not None
    }
    return {"subinterfaces": parts} if parts else {}


def _subinterface_part(
    device: Device, interface: Interface, vlan: int, port: Interface
) -> program_formats.SubinterfaceConfig:
    own = interface.bandwidth_kbps
    part: program_formats.SubinterfaceConfig = {
        "enabled": not interface.shutdown,
        "vlan": vlan,
        "native": interface.native,
        "bandwidth_kbps": interface_bandwidth_kbps(port) if own is None else own,
        "service_policy_input": interface.service_policy_input,
        "service_policy_output": interface.service_policy_output,
    }
    more = {**engine_filters(device, interface), **engine_adjust_mss(interface)}
    return cast("program_formats.SubinterfaceConfig", part | more)


@OUTPUT_RULES.register_family(5, family="router")
def _check_shaper_above_queues(device: Device, policy: PolicyMap, interface: Interface) -> None:
    """Refuse a queueing policy without a shaper above its queues: a subinterface has no separate line."""
    if interface.parent is None or interface.is_atm:
        return
    for each in policy.classes:
        found = find_combination(ON_SUBINTERFACE, device, class_facts(device, each))
        if found is not None:
            raise RejectedError(HIERARCHY_NEEDS_SHAPER if found.of == "queueing_child" else NOT_ON_SUBINTERFACES)


@ATTACH_RULES.register_family(10, family="router")
def _check_port_and_subinterface(device: Device, interface: Interface, direction: str) -> None:
    """Refuse policies on both a port and one of its subinterfaces.

    IOS-XE accepts a shaper of the port above them [C], which is not modelled.
    """
    key = f"service_policy_{direction}"
    if interface.is_atm or key not in PORT_OR_SUBINTERFACE:
        return
    others = device.subinterfaces(interface.name)
    if interface.parent is not None:
        others = [device.interfaces[interface.parent]]
    for other in others:
        name = getattr(other, key)
        if name is not None:
            policy = device.policy_maps.get(name)
            above = interface.parent is not None and direction == "output" and _has_only_shaper(device, policy)
            accepted = above and SHAPED_PORT in GENERATIONS[device.generation].capabilities
            raise RejectedError(NOT_BELOW_SHAPER if accepted else NOT_ON_BOTH)


def _has_only_shaper(device: Device, policy: PolicyMap | None) -> bool:
    """Return whether a policy-map has only class-default with a shaper."""
    names = [] if policy is None else [each.name for each in policy.classes]
    if policy is None or names != [CLASS_DEFAULT]:
        return False
    [each] = policy.classes
    queues = find_combination(ON_SUBINTERFACE, device, class_facts(device, each)) is not None
    return each.shape is not None and each.service_policy is None and not queues
