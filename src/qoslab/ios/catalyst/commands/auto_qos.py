"""`auto qos voip` of a Catalyst 3750: a macro that writes configuration, in the form of 12.2(2x)SE to 12.2(5x)SE.

It changes only settings that still have their defaults, so that it removes no setting of the user. The values are those
of printed configurations; the map from CoS to DSCP and the names of the classes are from memory [R].
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import ConfigSession, switch_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.catalyst import (
    DEFAULT_PORT,
    DEFAULT_QOS,
    IDENTITY,
    AutoQos,
    QueuePlace,
    QueueSet,
    QueueThresholds,
    SwitchPort,
    SwitchQos,
    TrustState,
)
from qoslab.ios.model.policy import Amount, ClassMap, Criterion, Mark, Police, PoliceAction, PolicyClass, PolicyMap
from qoslab.ios.rules import check_attachable


def _queue_places(*groups: tuple[QueuePlace, range]) -> tuple[QueuePlace, ...]:
    """Return the map by code point for groups of code points, each with queue and threshold."""
    found = {code: place for place, codes in groups for code in codes}
    return tuple(found[code] for code in sorted(found))


_QOS = SwitchQos(
    enabled=True,
    cos_dscp=(0, 8, 16, 24, 32, 46, 48, 56),
    cos_output=((4, 3), (4, 2), (3, 3), (2, 3), (3, 3), (1, 3), (2, 3), (2, 3)),
    dscp_output=_queue_places(
        ((4, 3), range(8)),
        ((4, 1), range(8, 9)),
        ((4, 2), range(9, 16)),
        ((3, 3), range(16, 24)),
        ((2, 3), range(24, 32)),
        ((3, 3), range(32, 40)),
        ((1, 3), range(40, 48)),
        ((2, 3), range(48, 64)),
    ),
    queue_sets=(
        QueueSet(
            (10, 10, 26, 54),
            (
                QueueThresholds(138, 138, 92, 138),
                QueueThresholds(138, 138, 92, 400),
                QueueThresholds(36, 77, 100, 318),
                QueueThresholds(20, 50, 67, 400),
            ),
        ),
        QueueSet(
            (16, 6, 17, 61),
            (
                QueueThresholds(149, 149, 100, 149),
                QueueThresholds(118, 118, 100, 235),
                QueueThresholds(41, 68, 100, 272),
                QueueThresholds(42, 72, 100, 242),
            ),
        ),
    ),
)
_PORT = SwitchPort(share=(10, 10, 60, 20), queue_set=2, priority_queue=True)
_POLICED_CODE_POINTS = (24, 26, 46)
"""Code points that a phone's policer marks down to 0 [R]."""

_POLICIES: dict[AutoQos, str] = {
    "cisco-phone": "AutoQoS-Police-CiscoPhone",
    "cisco-softphone": "AutoQoS-Police-SoftPhone",
}
_VOICE, _CONTROL = "AutoQoS-VoIP-RTP-Trust", "AutoQoS-VoIP-Control-Trust"
_RATES = {_VOICE: 320_000, _CONTROL: 32_000}
"""Rates of the policers by class in bit/s."""
_MATCHED_CODE_POINTS = {_VOICE: (46,), _CONTROL: (24, 26)}
_MARKED_CODE_POINTS = {_VOICE: 46, _CONTROL: 24}
_BURST_BYTES = 8000


@switch_command(
    "interface",
    "auto qos voip (cisco-phone|cisco-softphone|trust)",
    no="auto qos voip [(cisco-phone|cisco-softphone|trust)]",
    undo=Undo(followed="no service-policy input"),
    help={
        "auto": "Configure Automation",
        "qos": "Configure AutoQoS",
        "voip": "Configure AutoQoS for VoIP",
        "cisco-phone": "Trust the QoS marking of Cisco IP Phone",
        "cisco-softphone": "Trust the QoS marking of Cisco IP SoftPhone",
        "trust": "Trust the DSCP/CoS marking",
    },
)
def _configure_auto_qos(session: ConfigSession, args: Args) -> None:
    interface = session.interface
    port = interface.port
    assert port is not None  # the command exists on switches only
    if args.unset:
        _remove_macro_lines(session, port)
        return
    kinds: tuple[AutoQos, ...] = ("cisco-phone", "cisco-softphone", "trust")
    kind = next(each for each in kinds if each in args)
    if port.auto_qos == kind:
        return
    if kind in _POLICIES and not session.restoring and not port.vlan_based:
        check_attachable(session.device, interface, "input")
    port = replace(port, auto_qos=kind)
    interface.port = port
    if session.restoring:
        # A running configuration includes the lines of the macro.
        return
    session.device.switch = _fill_defaults(session.device.mls_qos, DEFAULT_QOS, _QOS)
    port = _fill_defaults(port, DEFAULT_PORT, _PORT)
    if kind == "trust":
        # A routed port has no CoS to trust.
        trust: TrustState = "cos" if port.switched else "dscp"
        port = port if port.trust is not None else replace(port, trust=trust)
        interface.service_policy_input = None
    else:
        qos = session.device.mls_qos
        marked_down = tuple(0 if dscp in _POLICED_CODE_POINTS else dscp for dscp in range(64))
        if qos.policed_dscp == IDENTITY:
            session.device.switch = replace(qos, policed_dscp=marked_down)
        port = replace(port, trust=None, trust_device=kind == "cisco-phone")
        policy = _create_policy(session, _POLICIES[kind])
        # The policy of a VLAN-based port is that of its VLAN, whichever line came first.
        interface.service_policy_input = None if port.vlan_based else policy
    interface.port = port


def _remove_macro_lines(session: ConfigSession, port: SwitchPort) -> None:
    """Remove the lines of the macro on the port; its lines for the whole switch stay."""
    if port.auto_qos is None:
        return
    if session.interface.service_policy_input == _POLICIES.get(port.auto_qos):
        session.interface.service_policy_input = None
    changes = {name: getattr(DEFAULT_PORT, name) for name in _SET if getattr(port, name) == getattr(_PORT, name)}
    session.interface.port = replace(port, **changes, auto_qos=None, trust=None, trust_device=False)


_SET = ("share", "queue_set", "priority_queue")


Values = TypeVar("Values", SwitchQos, SwitchPort)


def _fill_defaults(present: Values, default: Values, wanted: Values) -> Values:
    """Return `present` with settings taken from `wanted` if they are at their default and differ in `wanted`."""
    changes = {
        each.name: getattr(wanted, each.name)
        for each in fields(wanted)
        if getattr(wanted, each.name) != getattr(default, each.name)
        and getattr(present, each.name) == getattr(default, each.name)
    }
    return replace(present, **changes)


def _create_policy(session: ConfigSession, name: str) -> str:
    """Create the policy that polices a phone, and its classes, if missing; return the policy's name."""
    device = session.device
    classes = []
    for each, rate in _RATES.items():
        criterion = Criterion("dscp", values=_MATCHED_CODE_POINTS[each], ip_only=True)
        device.class_maps.setdefault(each, ClassMap(each, criteria=(criterion,)))
        police = Police(
            "bps", Amount(rate, "bps"), Amount(_BURST_BYTES, "bytes"), exceed=(PoliceAction("policed-dscp-transmit"),)
        )
        classes.append(PolicyClass(each, marks=(Mark("dscp", _MARKED_CODE_POINTS[each]),), police=police))
    device.policy_maps.setdefault(name, PolicyMap(name, tuple(classes)))
    return name
