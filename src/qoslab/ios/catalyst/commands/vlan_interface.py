"""`interface Vlan`: the interface of a VLAN, with a policy for packets from VLAN-based ports.

The possible contents of the two levels of such a policy, and that an attached policy keeps its lower level, are in the
configuration guide of the 3750 ("Configuring QoS", policing on SVIs).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import HOST_INTERFACE, ConfigSession, switch_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.host_interface import enter_host_interface, host_interface_block
from qoslab.ios.commands.policy_map import change_class, unknown_policy_error
from qoslab.ios.model.device import Device, HostInterface, Interface
from qoslab.ios.model.policy import PolicyClass, PolicyMap
from qoslab.ios.registry import ATTACH_RULES, BLOCKS, POLICY_RULES

VLAN = "Vlan"

# The wording of the following refusals is modelled on the switch's (`Command rejected:`), not taken from a printout;
# the refused cases are in the guide, except for NO_ACTION, which is from memory.
ONE_CHILD = "Command rejected: policy-map {name} has a child, but a hierarchical policy-map has only two levels"
OWN_CHILD = "Command rejected: policy-map {name} can not be its own child"
VLAN_ONLY = "Command rejected: hierarchical policy-map {name} can be attached to a VLAN interface only"
ONE_OF_BOTH = "Command rejected: policy-map {name} is attached to a {other} and can not be attached to a {this} too"
VLAN_POLICER = "Command rejected: class {name} has a policer, which is not supported at the VLAN level"
VLAN_PORTS = "Command rejected: class {name} matches an input-interface, which is supported at the interface level only"
NO_ACTION = "Command rejected: class {name} has a child policy-map and neither set nor trust"
PORT_ACTION = "Command rejected: class {name} can not use an aggregate policer at the interface level"
PORT_MATCH = "Command rejected: class {name} has to match input-interface only, at the interface level"
ATTACHED = "Command rejected: policy-map {name} is part of an attached hierarchical policy-map, detach that first"
PORT_VLAN_BASED = "Command rejected: {name} is VLAN-based and uses the policy of the VLAN interface"


switch_command(
    "config",
    "interface <name:vlan-interface>",
    no="interface <name:vlan-interface>",
    undo=Undo(rewrite=True),
    help={"interface": "Select an interface to configure", "name": "Interface type and number"},
)(enter_host_interface)


service_policy_input = partial(
    switch_command,
    text="service-policy input <policy:word>",
    no="service-policy input [<policy:word>]",
    undo=Undo(line="service-policy input <policy:word>", attaches=True),
    help={
        "service-policy": "Configure QoS Service Policy",
        "input": "Assign policy-map to the input of an interface",
        "policy": "policy-map name",
    },
)
"""Decorator of the command that attaches a policy-map, in a mode."""


@service_policy_input(HOST_INTERFACE)
def _configure_service_policy(session: ConfigSession, args: Args) -> None:
    device, present = session.device, session.host_interface
    if not present.name.startswith(VLAN):
        raise args.invalid_argument("input")
    name = args.optional("policy", str)
    if args.unset:
        if name not in (None, present.service_policy_input):
            raise unknown_policy_error(name)
        device.host_interfaces[present.name] = replace(present, service_policy_input=None)
        return
    policy = device.policy_maps.get(args.value("policy", str))
    if policy is None:
        raise unknown_policy_error(name)
    if any(each.service_policy_input == name for each in device.interfaces.values()):
        raise RejectedError(ONE_OF_BOTH.format(name=name, other="port", this="VLAN interface"))
    check_vlan_level(device, policy)
    device.host_interfaces[present.name] = replace(present, service_policy_input=name)


@switch_command(
    "policy-class",
    "service-policy <policy:word>",
    no=True,
    help={"service-policy": "Configure QoS Service Policy", "policy": "policy-map name"},
)
def _configure_child(session: ConfigSession, args: Args) -> None:
    if args.unset:
        change_class(session, replace(session.policy_class, service_policy=None))
        return
    name, own = args.value("policy", str), session.policy_map.name
    child = session.device.policy_maps.get(name)
    if child is None:
        raise unknown_policy_error(name)
    if name == own:
        raise RejectedError(OWN_CHILD.format(name=name))
    if is_hierarchical(child):
        raise RejectedError(ONE_CHILD.format(name=name))
    if _parent_policies(session.device, own):
        raise RejectedError(ONE_CHILD.format(name=_parent_policies(session.device, own)[0].name))
    change_class(session, replace(session.policy_class, service_policy=name))


def is_hierarchical(policy: PolicyMap) -> bool:
    """Return whether a policy-map has a child policy."""
    return any(each.service_policy is not None for each in policy.classes)


def _parent_policies(device: Device, name: str) -> list[PolicyMap]:
    return [each for each in device.policy_maps.values() if any(c.service_policy == name for c in each.classes)]


def _is_attached_to_vlan(device: Device, name: str) -> bool:
    return any(each.service_policy_input == name for each in device.host_interfaces.values())


def check_vlan_level(device: Device, policy: PolicyMap) -> None:
    """Refuse a policy-map that cannot be attached to a VLAN interface."""
    for each in policy.classes:
        if each.police is not None or each.aggregate is not None:
            raise RejectedError(VLAN_POLICER.format(name=each.name))
        if any(_matches_input_port(device, each)):
            raise RejectedError(VLAN_PORTS.format(name=each.name))
        if each.service_policy is None:
            continue
        if each.trust is None and not each.marks:
            raise RejectedError(NO_ACTION.format(name=each.name))
        for below in device.policy_maps[each.service_policy].classes:
            if below.trust is not None or below.marks or below.aggregate is not None:
                raise RejectedError(PORT_ACTION.format(name=below.name))
            if not all(_matches_input_port(device, below)):
                raise RejectedError(PORT_MATCH.format(name=below.name))


def check_vlan_levels(device: Device) -> None:
    """Refuse a change that makes an attached policy-map invalid for its VLAN interface."""
    for each in device.host_interfaces.values():
        policy = device.policy_maps.get(each.service_policy_input or "")
        if policy is not None:
            check_vlan_level(device, policy)


def _matches_input_port(device: Device, each: PolicyClass) -> Iterator[bool]:
    """Yield, for each criterion of a class, whether it matches the input port of a packet."""
    class_map = device.class_maps.get(each.name)
    yield from () if class_map is None else (criterion.type == "input_interface" for criterion in class_map.criteria)


@POLICY_RULES.register_family(70, family="switch")
def _policy_rules(device: Device, policy: PolicyMap) -> None:
    """Refuse a change of an attached hierarchical policy-map: it keeps its classes and its lower level."""
    present = device.policy_maps.get(policy.name)
    if any(_is_attached_to_vlan(device, parent.name) for parent in _parent_policies(device, policy.name)):
        raise RejectedError(ATTACHED.format(name=policy.name))
    if is_hierarchical(policy) and any(each.service_policy_input == policy.name for each in device.interfaces.values()):
        raise RejectedError(VLAN_ONLY.format(name=policy.name))
    if not _is_attached_to_vlan(device, policy.name):
        return
    if (
        present is not None
        and (is_hierarchical(present) or is_hierarchical(policy))
        and _fixed_part(present) != _fixed_part(policy)
    ):
        raise RejectedError(ATTACHED.format(name=policy.name))
    check_vlan_level(device, policy)


def _fixed_part(policy: PolicyMap) -> list[tuple[str, str | None]]:
    """Return the fixed part of an attached hierarchical policy-map: its classes with their children."""
    return [(each.name, each.service_policy) for each in policy.classes]


@ATTACH_RULES.register_family(70, family="switch")
def _attach_rules(device: Device, interface: Interface, direction: str) -> None:
    if interface.port is not None and interface.port.vlan_based:
        raise RejectedError(PORT_VLAN_BASED.format(name=interface.name))


def check_port_level(device: Device, policy: PolicyMap) -> None:
    """Refuse a policy-map that cannot be attached to a port."""
    if is_hierarchical(policy):
        raise RejectedError(VLAN_ONLY.format(name=policy.name))
    if _is_attached_to_vlan(device, policy.name):
        raise RejectedError(ONE_OF_BOTH.format(name=policy.name, other="VLAN interface", this="port"))


@BLOCKS.register_family(91, family="switch")
def _config_blocks(device: Device) -> Iterator[list[str]]:
    for _, interface in vlan_interfaces(device):
        yield host_interface_block(interface)


def vlan_interfaces(device: Device) -> list[tuple[int, HostInterface]]:
    """Return the VLAN interfaces by VLAN number."""
    named = [(name, each) for name, each in device.host_interfaces.items() if name.startswith(VLAN)]
    return sorted((int(name.removeprefix(VLAN)), each) for name, each in named)
