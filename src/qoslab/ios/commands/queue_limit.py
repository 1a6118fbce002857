"""`queue-limit` in a class of a policy-map: total queue limit, and limits by a field of the packet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.device import Device
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.ios_names import dscp_text
from qoslab.ios.model.policy import (
    LIMIT_UNITS,
    LimitUnit,
    PolicyClass,
    PolicyMap,
    QueueLimit,
    QueueThreshold,
    ThresholdField,
)
from qoslab.ios.registry import (
    CLASS_LINES,
    COMBINATION_WORDS,
    ENGINE_CLASS,
    POLICY_RULES,
    SHOW_POLICY_MAP_CLASS,
    Layout,
)
from qoslab.system import program_formats

# The wording of the following refusals is our own: no output of them is known.
MIXED_LIMIT_UNITS = "queue-limit and random-detect in different units can not be configured in the same policy-map"
MIXED_FIELDS = "queue-limit by {one} and by {other} can not be configured in the same class"
PACKETS_ONLY = "queue-limit in bytes or ms, or by a field, can not be configured in a class with {other}"

# Refusal of IOS-XE: the text of its YANG model.
LIMIT_ALONE = "queue-limit not allowed without bandwidth shape or priority command"

_FIELDS: dict[ThresholdField, str] = {
    "dscp": "code-point",
    "precedence": "level",
    "cos": "priority",
    "discard_class": "discard",
    "qos_group": "group",
}
"""Name of the argument for the value, by field."""
_VALUES = {
    "dscp": "<code-point:dscp>",
    "precedence": "<level:precedence>",
    "cos": "<priority:0-7>",
    "discard-class": "<discard:0-7>",
    "qos-group": "<group:0-99>",
}
"""Syntax of the values of a field."""

_AMOUNT = "<number:1-64000000> [packets|bytes|ms]"
_WIDE_AMOUNT = "<number:1-64000000> [packets|bytes|ms|us]"
_NO = f"queue-limit [{_AMOUNT}|{'|'.join(f'{field} {value} [{_AMOUNT}]' for field, value in _VALUES.items())}]"
_DETAIL = f"queue-limit [{'|'.join(f'{field} {value}' for field, value in _VALUES.items())}]"
_WIDE_DETAIL = f"queue-limit [{'|'.join(f'{field} ({value}|values {value}+)' for field, value in _VALUES.items())}]"


def _xe_fields_syntax(*, optional: bool = False) -> str:
    """Return the syntax of IOS-XE for limits by a field, which may be percentages of the class's limit."""
    amount = f"({_WIDE_AMOUNT}|percent <share:1-100>)"
    amount = f"[{amount}]" if optional else amount
    return "|".join(f"{field} ({value}|values {value}+) {amount}" for field, value in _VALUES.items())


_HELP = {
    "values": "several values",
    "percent": "percent of the queue limit",
    "share": "Percentage",
    "queue-limit": "Queue Max Threshold for Tail Drop",
    "packets": "Packets",
    "number": "Queue limit",
    "bytes": "Bytes",
    "ms": "Milliseconds",
    "us": "Microseconds",
    "dscp": "threshold of a dscp value",
    "code-point": "Differentiated services codepoint value",
    "precedence": "threshold of a precedence value",
    "level": "IP precedence",
    "cos": "threshold of a cos value",
    "priority": "COS value",
    "discard-class": "threshold of a discard-class value",
    "discard": "Discard Class value",
    "qos-group": "threshold of a qos-group value",
    "group": "Qos Group value",
}


@CONFIG.add(
    "policy-class", "queue-limit <number:1-4096> [packets]", no=True, requires={"queue-limit-packets"}, help=_HELP
)
@CONFIG.add(
    "policy-class",
    f"queue-limit ({_WIDE_AMOUNT}|{_xe_fields_syntax()})",
    no=f"queue-limit [{_WIDE_AMOUNT}|{_xe_fields_syntax(optional=True)}]",
    undo=Undo(key=_WIDE_DETAIL),
    requires={"limit-microseconds"},
    help=_HELP,
)
@CONFIG.add(
    "policy-class",
    f"queue-limit ({_AMOUNT}|{'|'.join(f'{field} {value} {_AMOUNT}' for field, value in _VALUES.items())})",
    no=_NO,
    undo=Undo(key=_DETAIL),
    requires={"queue-limit-units"},
    help=_HELP,
)
def _configure_queue_limit(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    field = next((field for field in _FIELDS if field.replace("_", "-") in args), None)
    if field is None:
        limit = None if args.unset else _amount(session, args)
        change_class(session, replace(present, queue_limit=limit))
        return
    values = args.values(_FIELDS[field], int)
    table = {each.value: each for each in present.queue_thresholds}
    if args.unset:
        if any(each.field == field for each in present.queue_thresholds):
            table = {value: each for value, each in table.items() if value not in values}
    else:
        for other in present.queue_thresholds:
            if other.field != field:
                raise RejectedError(MIXED_FIELDS.format(one=_field_word(other.field), other=_field_word(field)))
        table |= {value: QueueThreshold(field, value, _amount(session, args)) for value in values}
    change_class(session, replace(present, queue_thresholds=tuple(table[value] for value in sorted(table))))


def _amount(session: ConfigSession, args: Args) -> QueueLimit:
    if "percent" in args:
        return QueueLimit(args.value("share", int), "percent")
    unit: LimitUnit = next((unit for unit in LIMIT_UNITS if unit in args), "packets")
    number = args.value("number", int)
    most = session.device.hardware.qos.greatest_queue_limit if unit == "packets" else LIMIT_UNITS[unit]
    if number > most:
        raise args.invalid_argument("number")
    return QueueLimit(number, unit)


def _field_word(field: str) -> str:
    return field.replace("_", "-")


def _threshold_line(each: QueueThreshold) -> str:
    value = dscp_text(each.value) if each.field == "dscp" else str(each.value)
    return f"queue-limit {_field_word(each.field)} {value} {limit_text(_engine_limit(each.limit))}"


@CLASS_LINES.register_family(60, family="router")
def _config_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    if (limit := each.queue_limit) is not None:
        yield f"{layout.queueing}queue-limit {limit.number}{f' {limit.unit}' if layout.qos.shows_limit_units else ''}"
    yield from (layout.queueing + _threshold_line(threshold) for threshold in each.queue_thresholds)


@ENGINE_CLASS.register_family(35)
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    thresholds: list[program_formats.QueueThreshold] = [
        {"field": threshold.field, "value": threshold.value, "limit": _engine_limit(threshold.limit)}
        for threshold in each.queue_thresholds
    ]
    return {
        "queue_limit": None if each.queue_limit is None else _engine_limit(each.queue_limit),
        "queue_thresholds": thresholds,
    }


def _engine_limit(limit: QueueLimit) -> program_formats.QueueLimit:
    return cast("program_formats.QueueLimit", {limit.unit: limit.number})


COMBINATION_WORDS.update(
    {
        ("queue_thresholds", "priority"): PACKETS_ONLY.format(other="priority"),
        ("queue_thresholds", "fair_queue"): PACKETS_ONLY.format(other="fair-queue"),
        ("queue_limit_unit", "fair_queue"): PACKETS_ONLY.format(other="fair-queue"),
        ("queue_limit", "class_default"): LIMIT_ALONE,
    }
)


def _limit_units(each: PolicyClass) -> Iterator[LimitUnit]:
    if each.queue_limit is not None:
        yield each.queue_limit.unit
    yield from (one.limit.unit for one in each.queue_thresholds if one.limit.unit != "percent")
    red = each.random_detect
    if red is not None and (red.thresholds or red.aggregate is not None) and red.unit != "percent":
        yield red.unit or "packets"


@POLICY_RULES.register_family(20)
def _check_units(device: Device, policy: PolicyMap) -> None:
    # [R] One unit in a policy-map, which early detection shares. Recordings of IOS-XE have one in each class.
    by_class = [set(_limit_units(each)) for each in policy.classes]
    groups = by_class if device.hardware.qos.minimum_and_excess else [set[LimitUnit]().union(*by_class)]
    if any(len(units) > 1 for units in groups):
        raise RejectedError(MIXED_LIMIT_UNITS)


@SHOW_POLICY_MAP_CLASS.register_family(40)
def _show_policy_map_lines(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    limit = typed.get("queue_limit")
    if limit is not None and (GENERATIONS[config["generation"]].separate_queues or typed.get("bandwidth") is None):
        yield f"      queue-limit {limit_text(limit)}"
    for each in typed.get("queue_thresholds", []):
        value = dscp_text(each["value"]) if each["field"] == "dscp" else str(each["value"])
        yield f"      queue-limit {_field_word(each['field'])} {value} {limit_text(each['limit'])}"


def limit_text(limit: program_formats.QueueLimit) -> str:
    """Return a configured limit as typed, such as `64 packets`."""
    ((unit, number),) = limit.items()
    return f"percent {number}" if unit == "percent" else f"{number} {unit}"
