"""`table-map`, and `set` lines of a class that take their value from another field of the packet.

Source: Cisco, "Enhanced Packet Marking".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.marking import FIELD_WORDS, SET_FIELDS, field_marking_lines
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import MarkFromField, PolicyClass, ThresholdField
from qoslab.ios.model.table_maps import TableMap
from qoslab.ios.registry import (
    BLOCKS,
    CLASS_LINES,
    SHOW_INTERFACE_CLASS,
    SHOW_POLICY_MAP_CLASS,
    InterfacePolicyClass,
    Layout,
)
from qoslab.system import program_formats

_SOURCES: tuple[ThresholdField, ...] = ("cos", "dscp", "precedence", "qos_group", "discard_class")
_SOURCE_WORDS = "|".join(each.replace("_", "-") for each in _SOURCES)
_HELP = {
    "table-map": "Configure Table Map",
    "name": "table-map name",
    "map": "Map from value to value",
    "from": "From value",
    "to": "To value",
    "old": "Value of the packet",
    "new": "New value",
    "default": "Default behaviour of values that are not mapped",
    "copy": "Copy the value",
    "ignore": "Do not mark",
    "value": "New value",
    "set": "Set QoS values",
    "ip": "Set IP specific values",
    "dscp": "DSCP",
    "precedence": "Precedence",
    "cos": "Class of service",
    "qos-group": "QoS group",
    "discard-class": "Discard class",
    "table": "Map the value by a table-map",
}


@router_command("config", "table-map <name:word>", no="table-map <name:word>", undo=Undo(referred=1), help=_HELP)
def _configure_table_map(session: ConfigSession, args: Args) -> None:
    name = args.value("name", str)
    if args.unset:
        session.device.table_maps.pop(name, None)
        return
    session.device.table_maps.setdefault(name, TableMap(name))
    session.enter("table-map", name)


def _current_table_map(session: ConfigSession) -> TableMap:
    found = session.device.table_maps.get(session.position.names[0])
    if found is None:
        raise RejectedError("% The object being configured has been removed")
    return found


@router_command(
    "table-map",
    "map [from] <old:0-99> to <new:0-99>",
    no="map [from] <old:0-99> [to <new:0-99>]",
    undo=Undo(key="map from <old:0-99>"),
    help=_HELP,
)
def _configure_map(session: ConfigSession, args: Args) -> None:
    table = _current_table_map(session)
    rows = dict(table.rows)
    if args.unset:
        rows.pop(args.value("old", int), None)
    else:
        rows[args.value("old", int)] = args.value("new", int)
    session.device.table_maps[table.name] = replace(table, rows=tuple(sorted(rows.items())))


@router_command("table-map", "default (copy|ignore|<value:0-99>)", no=True, help=_HELP)
def _configure_default(session: ConfigSession, args: Args) -> None:
    table = _current_table_map(session)
    default: int | Literal["copy", "ignore"] | None = args.optional("value", int)
    if "copy" in args:
        default = "copy"
    elif "ignore" in args:
        default = "ignore"
    if args.unset:
        default = None
    session.device.table_maps[table.name] = replace(table, default=default)


@BLOCKS.register_family(65)
def _config_blocks(device: Device) -> Iterator[list[str]]:
    for name in sorted(device.table_maps):
        table = device.table_maps[name]
        default = [] if table.default is None else [f" default {table.default}"]
        yield [f"table-map {name}", *(f" map from {old} to {new}" for old, new in table.rows), *default]


@router_command(
    "policy-class",
    f"set ({FIELD_WORDS}) ({_SOURCE_WORDS}) [table <table:word>]",
    no=f"set ({FIELD_WORDS}) ({_SOURCE_WORDS}) [table [<table:word>]]",
    undo=Undo(key=f"set ({FIELD_WORDS})"),
    help=_HELP,
)
def _configure_set_from(session: ConfigSession, args: Args) -> None:
    field_word, source_word = (word.replace("-", "_") for word in args.keywords if word not in ("set", "ip", "table"))
    name = f"ip_{field_word}" if "ip" in args else field_word
    field = next(each for each in SET_FIELDS if each == name)
    source = next(each for each in _SOURCES if each == source_word)
    present = session.policy_class
    if args.unset:
        left = tuple(each for each in present.marks_from if (each.field, each.source) != (field, source))
        change_class(session, replace(present, marks_from=left))
        return
    marks = tuple(each for each in present.marks if each.field.removeprefix("ip_") != field_word)
    from_field = (*field_marking_lines(present, field_word), MarkFromField(field, source, args.optional("table", str)))
    from_field = tuple(sorted(from_field, key=lambda each: SET_FIELDS.index(each.field)))
    change_class(session, replace(present, marks=marks, marks_from=from_field))


def _set_from_text(field: str, source: str, table: str | None) -> str:
    words = f"{field.replace('ip_', 'ip ')} {source}".replace("_", "-")
    return words if table is None else f"{words} table {table}"


@CLASS_LINES.register_family(101, family="router")
def _config_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    yield from (f"  set {_set_from_text(mark.field, mark.source, mark.table)}" for mark in each.marks_from)


@SHOW_POLICY_MAP_CLASS.register_family(71)
def _show_policy_map_lines(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    for action in typed.get("map") or []:
        yield f"      set {_set_from_text(action['field'], action['source'], action.get('table'))}"


@SHOW_INTERFACE_CLASS.register_family(21)
def _show_interface_lines(shown: InterfacePolicyClass) -> Iterator[str]:
    if shown.counters["map"]:
        if not shown.counters["set"]:
            yield "QoS Set"
        for action, marked in zip(shown.config.get("map") or [], shown.counters["map"], strict=True):
            yield f"  {_set_from_text(marked['field'], marked['source'], action.get('table'))}"
            yield f"    Packets marked {marked['packets']}"
