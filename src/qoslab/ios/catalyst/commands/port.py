"""Interface configuration of a Catalyst 3750: switched and routed ports, trust, egress queueing.

All settings are accepted, stored and shown even if QoS is off; they take effect with `mls qos`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from qoslab.ios.catalyst.commands.mls_qos import MLS
from qoslab.ios.catalyst.commands.vlan_interface import check_port_level, service_policy_input
from qoslab.ios.catalyst.compile import compile_port
from qoslab.ios.catalyst.running_config import queueing_lines, switching_lines
from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import ConfigSession, switch_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.service_policy import attach_policy
from qoslab.ios.model.catalyst import DEFAULT_PORT, FULL_LIMIT, SwitchPort, TrustState
from qoslab.ios.model.device import Device, Interface, Speed
from qoslab.ios.registry import ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.system import program_formats

# As IOS prints it when a port is put into a VLAN that does not exist yet [R].
CREATING_VLAN = "% Access VLAN does not exist. Creating vlan {number}"

_SWITCHPORT = {"switchport": "Set switching mode characteristics"}
_SRR = {"srr-queue": "Configure shaped round-robin transmit queues", "bandwidth": "Configure SRR bandwidth"}


def configured_port(session: ConfigSession) -> SwitchPort:
    """Return the switch settings of the interface being configured."""
    port = session.interface.port
    assert port is not None  # the commands exist on switches only
    return port


def _change(session: ConfigSession, **changes: Any) -> None:
    session.interface.port = replace(configured_port(session), **changes)


@switch_command("interface", "switchport", no=True, help=_SWITCHPORT)
def _configure_switchport(session: ConfigSession, args: Args) -> None:
    interface = session.interface
    if not args.is_negated:
        # A switched port has no address.
        interface.address, interface.secondary_addresses = None, ()
    _change(session, switched=not args.is_negated)


@switch_command(
    "interface",
    "switchport mode (access|trunk|dynamic auto)",
    no=True,
    help={
        **_SWITCHPORT,
        "mode": "Set trunking mode of the interface",
        "access": "Set trunking mode to ACCESS unconditionally",
        "trunk": "Set trunking mode to TRUNK unconditionally",
        "dynamic": "Set trunking mode to dynamically negotiate access or trunk mode",
        "auto": "Set trunking mode dynamic negotiation parameter to AUTO",
    },
)
def _configure_switchport_mode(session: ConfigSession, args: Args) -> None:
    mode = None if args.unset or "dynamic" in args else "trunk" if "trunk" in args else "access"
    _change(session, mode=mode)


@switch_command(
    "interface",
    "switchport access vlan <number:1-4094>",
    no="switchport access vlan [<number:1-4094>]",
    help={
        **_SWITCHPORT,
        "access": "Set access mode characteristics of the interface",
        "vlan": "Set VLAN when interface is in access mode",
        "number": "VLAN ID of the VLAN when this port is in access mode",
    },
)
def _configure_access_vlan(session: ConfigSession, args: Args) -> None:
    number = DEFAULT_PORT.access_vlan if args.unset else args.value("number", int)
    qos = session.device.mls_qos
    if number != DEFAULT_PORT.access_vlan and number not in dict(qos.vlans):
        session.notices.append(CREATING_VLAN.format(number=number))
        session.device.switch = qos.with_vlan(number, None)
    _change(session, access_vlan=number)


@switch_command(
    "interface",
    "switchport trunk (encapsulation dot1q|native vlan <number:1-4094>)",
    no="switchport trunk (encapsulation [dot1q]|native vlan [<number:1-4094>])",
    undo=Undo(key="switchport trunk (encapsulation dot1q|native vlan)"),
    help={
        **_SWITCHPORT,
        "trunk": "Set trunking characteristics of the interface",
        "encapsulation": "Set trunking encapsulation when interface is in trunking mode",
        "dot1q": "Interface uses only 802.1q trunking encapsulation when trunking",
        "native": "Set trunking native characteristics when interface is in trunking mode",
        "vlan": "Set native VLAN when interface is in trunking mode",
        "number": "VLAN ID of the native VLAN when this port is in trunking mode",
    },
)
def _configure_trunk(session: ConfigSession, args: Args) -> None:
    if "native" in args:
        _change(session, native_vlan=DEFAULT_PORT.native_vlan if args.unset else args.value("number", int))
    else:
        _change(session, dot1q=not args.unset)


@switch_command(
    "interface",
    "speed (auto|10|100|1000)",
    no=True,
    help={
        "speed": "Configure speed operation",
        "auto": "Enable AUTO speed configuration",
        "10": "Force 10 Mbps operation",
        "100": "Force 100 Mbps operation",
        "1000": "Force 1000 Mbps operation",
    },
)
def _configure_speed(session: ConfigSession, args: Args) -> None:
    speeds: tuple[Speed, ...] = ("10", "100", "1000")
    forced = [speed for speed in speeds if speed in args and not args.unset]
    session.interface.speed = forced[0] if forced else "auto"


# Trust.


@switch_command(
    "interface",
    "mls qos trust [(cos|dscp|ip-precedence)]",
    no=True,
    help={
        **MLS,
        "trust": "Configure trust state of interface",
        "cos": "Trust cos keyword",
        "dscp": "Trust dscp keyword",
        "ip-precedence": "Trust ip-precedence keyword",
    },
)
def _configure_trust(session: ConfigSession, args: Args) -> None:
    states: tuple[TrustState, ...] = ("cos", "dscp", "ip-precedence")
    typed = [state for state in states if state in args]
    _change(session, trust=None if args.unset else typed[0] if typed else "dscp")
    if not args.unset:
        # [R] A port trusts or has a policy: the one entered last counts.
        session.interface.service_policy_input = None


@switch_command(
    "interface",
    "mls qos trust device cisco-phone",
    no="mls qos trust device [cisco-phone]",
    undo=Undo(key="mls qos trust device cisco-phone"),
    help={
        **MLS,
        "trust": "Configure trust state of interface",
        "device": "trusted device class",
        "cisco-phone": "Cisco IP Phone",
    },
)
def _configure_trust_device(session: ConfigSession, args: Args) -> None:
    _change(session, trust_device=not args.unset)


@switch_command(
    "interface",
    "mls qos cos (<cos:0-7>|override)",
    no="mls qos cos [(<cos:0-7>|override)]",
    undo=Undo(key="mls qos cos [override]"),
    help={**MLS, "cos": "Configure interface COS parameters", "override": "override COS for all incoming packets"},
)
def _configure_cos(session: ConfigSession, args: Args) -> None:
    if "override" in args:
        _change(session, cos_override=not args.unset)
    else:
        _change(session, default_cos=DEFAULT_PORT.default_cos if args.unset else args.value("cos", int))


@switch_command(
    "interface",
    "mls qos dscp-mutation <name:word>",
    no="mls qos dscp-mutation [<name:word>]",
    help={**MLS, "dscp-mutation": "dscp-mutation keyword", "name": "dscp-mutation name"},
)
def _configure_dscp_mutation(session: ConfigSession, args: Args) -> None:
    _change(session, dscp_mutation=None if args.unset else args.value("name", str))


@switch_command("interface", "mls qos vlan-based", no=True, help={**MLS, "vlan-based": "apply vlan based policy"})
def _configure_vlan_based(session: ConfigSession, args: Args) -> None:
    _change(session, vlan_based=not args.unset)
    if not args.unset:
        session.interface.service_policy_input = None


@service_policy_input("interface")
def _configure_service_policy(session: ConfigSession, args: Args) -> None:
    policy = session.device.policy_maps.get(args.optional("policy", str) or "")
    if policy is not None and not args.unset:
        check_port_level(session.device, policy)
    attach_policy(session, args)
    if not args.unset:
        _change(session, trust=None)


# Egress queues.

_SHARE = "<first:1-255> <second:1-255> <third:1-255> <fourth:1-255>"
_SHAPE = "<first:0-65535> <second:0-65535> <third:0-65535> <fourth:0-65535>"
_WEIGHTS = {
    "first": "enter bandwidth weight for queue id 1",
    "second": "enter bandwidth weight for queue id 2",
    "third": "enter bandwidth weight for queue id 3",
    "fourth": "enter bandwidth weight for queue id 4",
}


def _queue_weights(args: Args) -> tuple[int, ...]:
    return tuple(args.value(name, int) for name in ("first", "second", "third", "fourth"))


@switch_command(
    "interface",
    f"srr-queue bandwidth share {_SHARE}",
    no=f"srr-queue bandwidth share [{_SHARE}]",
    help={**_SRR, **_WEIGHTS, "share": "Configure shared bandwidth"},
)
def _configure_share(session: ConfigSession, args: Args) -> None:
    _change(session, share=DEFAULT_PORT.share if args.unset else _queue_weights(args))


@switch_command(
    "interface",
    f"srr-queue bandwidth shape {_SHAPE}",
    no=f"srr-queue bandwidth shape [{_SHAPE}]",
    help={**_SRR, **_WEIGHTS, "shape": "Configure shaping on transmit queues"},
)
def _configure_shape(session: ConfigSession, args: Args) -> None:
    _change(session, shape=DEFAULT_PORT.shape if args.unset else _queue_weights(args))


@switch_command(
    "interface",
    "srr-queue bandwidth limit <percent:10-90>",
    no="srr-queue bandwidth limit [<percent:10-90>]",
    help={
        **_SRR,
        "limit": "Configure bandwidth-limit for this interface",
        "percent": "enter bandwidth limit for interface as percentage",
    },
)
def _configure_limit(session: ConfigSession, args: Args) -> None:
    _change(session, limit=FULL_LIMIT if args.unset else args.value("percent", int))


@switch_command(
    "interface",
    "priority-queue out",
    no=True,
    help={"priority-queue": "Priority Queue", "out": "egress priority queue"},
)
def _configure_priority_queue(session: ConfigSession, args: Args) -> None:
    _change(session, priority_queue=not args.unset)


@switch_command(
    "interface",
    "queue-set <set:1-2>",
    no="queue-set [<set:1-2>]",
    help={"queue-set": "Choose a queue set for this queue", "set": "the qset to which this port is mapped"},
)
def _configure_queue_set(session: ConfigSession, args: Args) -> None:
    _change(session, queue_set=DEFAULT_PORT.queue_set if args.unset else args.value("set", int))


@INTERFACE_LINES.register_family(20, family="switch")
def _switching_lines(interface: Interface) -> Iterator[str]:
    if interface.port is not None:
        yield from switching_lines(interface.port)


@INTERFACE_LINES.register_family(80, family="switch")
def _speed_lines(interface: Interface) -> Iterator[str]:
    # A switch prints forced settings only.
    if interface.speed != "auto":
        yield f"speed {interface.speed}"
    if interface.duplex != "auto":
        yield f"duplex {interface.duplex}"


@INTERFACE_LINES.register_family(140, family="switch")
def _queueing_lines(interface: Interface) -> Iterator[str]:
    if interface.port is not None:
        yield from queueing_lines(interface.port)


@ENGINE_INTERFACE.register_family(70, family="switch")
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    if interface.port is None:
        return {}
    return {"switch": compile_port(interface.port, device.mls_qos, interface.speed)}
