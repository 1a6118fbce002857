"""Class-maps and policy-maps of a Catalyst 3750: classification, marking and policing of input, without queueing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.catalyst.commands.mls_qos import POLICE_BURST, POLICE_RATE
from qoslab.ios.catalyst.commands.vlan_interface import check_vlan_levels
from qoslab.ios.catalyst.compile import compile_class
from qoslab.ios.catalyst.running_config import policing_lines
from qoslab.ios.cli.grammar import Args, InvalidInputError, RejectedError
from qoslab.ios.cli.session import ConfigSession, switch_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.class_map import add_match, change_match, port_range
from qoslab.ios.commands.marking import change_marks
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.catalyst import TrustState
from qoslab.ios.model.policy import Amount, Criterion, Police, PoliceAction, PolicyClass
from qoslab.ios.registry import CLASS_LINES, ENGINE_CLASS, Layout
from qoslab.system import program_formats

# The wording of the following refusals is modelled on the switch's (`Command rejected:`), not taken from a printout.
ONE_ACCESS_LIST = "Command rejected: class-map {name} already has an access-group, only one is supported"
AGGREGATE_UNKNOWN = "Command rejected: aggregate policer {name} is not configured"
AGGREGATE_ELSEWHERE = "Command rejected: aggregate policer {name} is used by policy-map {policy}"
TRUST_AND_SET = "Command rejected: trust and set can not be configured in the same class"

MAX_RANGES = 6
"""Maximum ports and port ranges in one `match input-interface` (from memory, not confirmed by a document)."""

_MATCH = (
    "match (access-group (<list:1-2699>|name <access-list:word>)"
    "|ip dscp <dscp:dscp>+"
    "|ip precedence <precedence:precedence>+"
    "|input-interface (<port:interface> [- <port:interface>])+)"
)


@switch_command(
    "class-map",
    _MATCH,
    no=_MATCH,
    undo=Undo(ordered=lambda args: True),
    help={
        "match": "classification criteria",
        "access-group": "Access group",
        "list": "Access list index",
        "name": "Named Access List",
        "access-list": "Access list name",
        "ip": "IP specific values",
        "dscp": "Match IP DSCP (DiffServ CodePoints)",
        "precedence": "Match IP precedence",
        "input-interface": "Select one or more input interfaces to match",
        "port": "Interface type and number",
        "-": "range of interfaces: the last one",
    },
)
def _match(session: ConfigSession, args: Args) -> None:
    present = session.class_map
    if "input-interface" in args:
        change_match(session, args, Criterion("input_interface", interfaces=_port_ranges(session, args)))
    else:
        add_match(session, args)
    try:
        check_vlan_levels(session.device)
    except RejectedError:
        session.device.class_maps[present.name] = present
        raise
    if sum(each.type == "access_group" for each in session.class_map.criteria) > 1:
        session.device.class_maps[present.name] = present
        raise RejectedError(ONE_ACCESS_LIST.format(name=present.name))


def _port_ranges(session: ConfigSession, args: Args) -> tuple[tuple[str, str], ...]:
    """Return the first and last port of each range of a `match input-interface`; for a single port, both are equal."""
    ranges: list[tuple[str, str]] = []
    following = False
    for each in args.typed_order():
        if each.name == "-":
            following = True
        elif each.name == "port":
            name = str(each.value)
            if name not in session.device.interfaces or (following and not port_range(ranges[-1][0], name)):
                raise InvalidInputError(each.column)
            ranges[-1:] = [(ranges[-1][0], name)] if following else [*ranges[-1:], (name, name)]
            following = False
    if len(ranges) > MAX_RANGES:
        raise args.invalid_repeat("port", MAX_RANGES)
    return tuple(ranges)


@switch_command(
    "policy-class",
    "set ([ip] dscp <value:dscp>|ip precedence <value:precedence>)",
    no="set ([ip] dscp [<value:dscp>]|ip precedence [<value:precedence>])",
    undo=Undo(key="set ([ip] dscp|ip precedence)"),
    help={
        "set": "Set QoS values",
        "ip": "Set IP specific values",
        "dscp": "Set IP DSCP (DiffServ CodePoint)",
        "precedence": "Set IP precedence",
        "value": "New value",
    },
)
def _configure_set(session: ConfigSession, args: Args) -> None:
    if not args.unset and session.policy_class.trust is not None:
        raise RejectedError(TRUST_AND_SET)
    change_marks(session, args)


@switch_command(
    "policy-class",
    "trust [(cos|dscp|ip-precedence)]",
    no=True,
    help={
        "trust": "Set trust value for the class",
        "cos": "trust value from cos of the incoming packet",
        "dscp": "trust value from dscp of the incoming packet",
        "ip-precedence": "trust value from ip precedence of the incoming packet",
    },
)
def _configure_trust(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    states: tuple[TrustState, ...] = ("cos", "dscp", "ip-precedence")
    typed = [state for state in states if state in args]
    if not args.unset and present.marks:
        raise RejectedError(TRUST_AND_SET)
    change_class(session, replace(present, trust=None if args.unset else typed[0] if typed else "dscp"))


@switch_command(
    "policy-class",
    f"police <rate:{POLICE_RATE}> <burst:{POLICE_BURST}> [exceed-action (drop|policed-dscp-transmit)]",
    no=True,
    undo=Undo(needs_removal=True),
    help={
        "police": "Police",
        "rate": "Bits per second",
        "burst": "Normal burst bytes",
        "exceed-action": "action when rate is exceeded",
        "drop": "drop packet",
        "policed-dscp-transmit": "change dscp per policed-dscp map and send it",
    },
)
def _configure_police(session: ConfigSession, args: Args) -> None:
    police = None
    if not args.unset:
        exceed: tuple[PoliceAction, ...] | None = None
        if "exceed-action" in args:
            exceed = (PoliceAction("drop" if "drop" in args else "policed-dscp-transmit"),)
        rate, burst = Amount(args.value("rate", int), "bps"), Amount(args.value("burst", int), "bytes")
        police = Police("bps", rate, burst, exceed=exceed)
    change_class(session, replace(session.policy_class, police=police, aggregate=None))


@switch_command(
    "policy-class",
    "police aggregate <name:word>",
    no=True,
    undo=Undo(key="police", needs_removal=True),
    help={
        "police": "Police",
        "aggregate": "Choose aggregate policer for current class",
        "name": "aggregate policer name",
    },
)
def _configure_police_aggregate(session: ConfigSession, args: Args) -> None:
    if args.unset:
        change_class(session, replace(session.policy_class, police=None, aggregate=None))
        return
    name = args.value("name", str)
    if name not in dict(session.device.mls_qos.aggregate_policers):
        raise RejectedError(AGGREGATE_UNKNOWN.format(name=name))
    for policy in session.device.policy_maps.values():
        if policy.name != session.policy_map.name and any(each.aggregate == name for each in policy.classes):
            raise RejectedError(AGGREGATE_ELSEWHERE.format(name=name, policy=policy.name))
    change_class(session, replace(session.policy_class, police=None, aggregate=name))


@CLASS_LINES.register_family(10, family="switch")
def _config_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    yield from (f"  {line}" for line in policing_lines(each))


@ENGINE_CLASS.register_family(70, family="switch")
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    return compile_class(each)
