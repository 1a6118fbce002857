"""`service-policy`: child policy of a class, or policy of an interface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args, IncompleteError, RejectedError
from qoslab.ios.cli.session import CIRCUIT_MODES, ConfigSession, UnsupportedError, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.policy_map import change_class, unknown_policy_error
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.policy import PolicyClass
from qoslab.ios.registry import (
    CLASS_LINES,
    ENGINE_CLASS,
    ENGINE_INTERFACE,
    INTERFACE_LINES,
    SHOW_POLICY_MAP_CLASS,
    Layout,
)
from qoslab.ios.rules import check_attachable, check_attachment, descendants, hierarchy_depth
from qoslab.system import program_formats

LOOP = "% Policy-map {name} can not be its own child"


TOO_DEEP = "% Policy-map hierarchy exceeds {limit} levels"


# Our own wording.
BELOW_CIRCUIT = "on ATM a policy is attached to a circuit: enter it under `pvc`"


ALREADY_ATTACHED = "Policy map {policy} is already attached"


@router_command(
    "policy-class",
    "service-policy <policy:word>",
    no=True,
    help={"service-policy": "Configure QoS Service Policy", "policy": "policy-map name"},
)
def _configure_service_policy(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    device = session.device
    if args.unset:
        change_class(session, replace(present, service_policy=None))
        return
    name = args.value("policy", str)
    child = device.policy_maps.get(name)
    if child is None:
        raise unknown_policy_error(name)
    policy = session.policy_map
    if any(part.name == policy.name for part in descendants(device, child)):
        raise RejectedError(LOOP.format(name=policy.name))
    if _count_levels_above(device, policy.name) + 1 + hierarchy_depth(device, child) > engine_defaults.MAX_LEVELS:
        raise RejectedError(TOO_DEEP.format(limit=engine_defaults.MAX_LEVELS))
    change_class(session, replace(present, service_policy=name))


def _count_levels_above(device: Device, name: str) -> int:
    """Return the number of levels of policy-maps above the policy-map `name`."""
    parents = [p.name for p in device.policy_maps.values() if any(c.service_policy == name for c in p.classes)]
    return max((1 + _count_levels_above(device, parent) for parent in parents), default=0)


@router_command(
    ("interface", "subinterface", *CIRCUIT_MODES),
    "service-policy (input|output) <policy:word>",
    no=True,
    undo=Undo("service-policy (input|output)", "service-policy (input|output) <policy:word>", attaches=True),
    help={
        "service-policy": "Configure QoS Service Policy",
        "input": "Assign policy-map to the input of an interface",
        "output": "Assign policy-map to the output of an interface",
        "policy": "policy-map name",
    },
)
def attach_policy(session: ConfigSession, args: Args) -> None:
    """Attach the policy-map that a `service-policy` line names to the interface, or detach it."""
    interface = session.interface
    if interface.is_atm and session.position.mode not in CIRCUIT_MODES:
        raise UnsupportedError(BELOW_CIRCUIT)
    direction = "input" if "input" in args else "output"
    if args.unset and "input" not in args and "output" not in args:
        raise IncompleteError
    attached = interface.service_policy_input if direction == "input" else interface.service_policy_output
    name = args.optional("policy", str)
    if args.unset:
        if name is not None and attached != name:
            raise unknown_policy_error(name)
        _attach(interface, direction, None)
        return
    policy = session.device.policy_maps.get(args.value("policy", str))
    if policy is None:
        raise unknown_policy_error(name)
    if attached not in (None, name):
        raise RejectedError(ALREADY_ATTACHED.format(policy=attached))
    check_attachable(session.device, interface, direction)
    check_attachment(session.device, policy, interface, direction)
    _attach(interface, direction, policy.name)


def _attach(interface: Interface, direction: str, name: str | None) -> None:
    if direction == "input":
        interface.service_policy_input = name
    else:
        interface.service_policy_output = name


@CLASS_LINES.register_family(110)
def _config_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    if each.service_policy is not None:
        yield f"  service-policy {each.service_policy}"


@INTERFACE_LINES.register_family(150)
def _interface_lines(interface: Interface) -> Iterator[str]:
    if interface.is_atm:
        return
    if interface.service_policy_input is not None:
        yield f"service-policy input {interface.service_policy_input}"
    if interface.service_policy_output is not None:
        yield f"service-policy output {interface.service_policy_output}"


@ENGINE_CLASS.register_family(60)
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    return {"service_policy": each.service_policy}


@ENGINE_INTERFACE.register_family(60)
def _engine_interface(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    return {
        "service_policy_input": interface.service_policy_input,
        "service_policy_output": interface.service_policy_output,
    }


@SHOW_POLICY_MAP_CLASS.register_family(90)
def _show_policy_map_lines(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    if typed.get("service_policy") is not None:
        yield f"      service-policy {typed['service_policy']}"
