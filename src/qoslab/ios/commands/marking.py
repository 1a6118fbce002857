"""`set` in a class of a policy-map: marking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.device import Device
from qoslab.ios.model.ios_names import dscp_text
from qoslab.ios.model.policy import Mark, MarkFromField, PolicyClass, SetField
from qoslab.ios.registry import (
    CLASS_LINES,
    CLASS_RULES,
    ENGINE_CLASS,
    SHOW_INTERFACE_CLASS,
    SHOW_POLICY_MAP_CLASS,
    InterfacePolicyClass,
    Layout,
)
from qoslab.system import program_formats

DSCP_AND_PRECEDENCE = "set dscp and set precedence can not be configured in the same class"

SET_FIELDS: tuple[SetField, ...] = (
    "dscp",
    "ip_dscp",
    "precedence",
    "ip_precedence",
    "cos",
    "qos_group",
    "discard_class",
)
FIELD_WORDS = "[ip] dscp|[ip] precedence|cos|qos-group|discard-class"
"""Syntax of the field that is set."""


@router_command(
    "policy-class",
    "set ([ip] dscp <value:dscp>|[ip] precedence <value:precedence>|cos <value:0-7>|qos-group <value:0-99>"
    "|discard-class <value:0-7>)",
    no="set ([ip] dscp [<value:dscp>]|[ip] precedence [<value:precedence>]|cos [<value:0-7>]|qos-group [<value:0-99>]"
    "|discard-class [<value:0-7>])",
    undo=Undo(key=f"set ({FIELD_WORDS})"),
    help={
        "set": "Set QoS values",
        "ip": "Set IP specific values",
        "dscp": "Set DSCP in IP(v4) and IPv6 packets",
        "precedence": "Set precedence in IP(v4) and IPv6 packets",
        "cos": "Set IEEE 802.1Q/ISL class of service/user priority",
        "qos-group": "Set QoS Group",
        "discard-class": "Discard behavior identifier",
        "value": "New value",
    },
)
def change_marks(session: ConfigSession, args: Args) -> None:
    """Execute a `set` line of a class."""
    word = args.keywords[-1].replace("-", "_")
    name = f"ip_{word}" if "ip" in args else word
    field = next(each for each in SET_FIELDS if each == name)
    present = session.policy_class
    # `set dscp` and `set ip dscp` write the same bits: the later line replaces the earlier.
    others = [mark for mark in present.marks if mark.field.removeprefix("ip_") != word]
    if args.unset:
        gone = args.optional("value", int)
        marks = [mark for mark in present.marks if mark.field != field or gone not in (None, mark.value)]
    else:
        marks = [*others, Mark(field, args.value("value", int))]
    marks.sort(key=lambda mark: SET_FIELDS.index(mark.field))
    taken = (
        present.marks_from
        if args.unset and args.optional("value", int) is not None
        else field_marking_lines(present, word)
    )
    change_class(session, replace(present, marks=tuple(marks), marks_from=taken))


def field_marking_lines(present: PolicyClass, word: str) -> tuple[MarkFromField, ...]:
    """Return the `set` lines of a class that take their value from a field, except those that set the field `word`."""
    return tuple(each for each in present.marks_from if each.field.removeprefix("ip_") != word)


def _mark(mark: Mark) -> str:
    name = mark.field.replace("ip_", "ip ").replace("_", "-")
    return f"{name} {dscp_text(mark.value) if mark.field in ('dscp', 'ip_dscp') else mark.value}"


def set_text(field: str, value: int) -> str:
    """Return the text of a `set` action, such as `dscp ef`, `ip precedence 1` or `qos-group 20`."""
    words = field.replace("ip_", "ip ").replace("qos_group", "qos-group")
    return f"{words} {dscp_text(value) if field.endswith('dscp') else value}"


@CLASS_LINES.register_family(100)
def _config_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    yield from (f"  set {_mark(mark)}" for mark in each.marks)


@ENGINE_CLASS.register_family(10)
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    return {"set": [{"field": mark.field, "value": mark.value} for mark in each.marks]}


@CLASS_RULES.register_family(40)
def _check(device: Device, each: PolicyClass) -> None:
    fields = {mark.field.removeprefix("ip_") for mark in each.marks}
    if {"dscp", "precedence"} <= fields:
        raise RejectedError(DSCP_AND_PRECEDENCE)


@SHOW_POLICY_MAP_CLASS.register_family(70)
def _show_policy_map_lines(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    for action in typed.get("set") or []:
        yield f"      set {set_text(action['field'], action['value'])}"


@SHOW_INTERFACE_CLASS.register_family(20)
def _show_interface_lines(shown: InterfacePolicyClass) -> Iterator[str]:
    if shown.counters["set"]:
        yield "QoS Set"
        for marked in shown.counters["set"]:
            yield f"  {set_text(marked['field'], marked['value'])}"
            yield f"    Packets marked {marked['packets']}"
