"""`random-detect` in a class of a policy-map: weighted random early detection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args, IncompleteError, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.commands.queue_limit import MIXED_LIMIT_UNITS
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.ios_names import dscp_text
from qoslab.ios.model.policy import LIMIT_UNITS, LimitUnit, PolicyClass, RandomDetect, RedBasis, RedThresholds
from qoslab.ios.registry import CLASS_LINES, COMBINATION_WORDS, ENGINE_CLASS, SHOW_POLICY_MAP_CLASS, Layout
from qoslab.system import program_formats

RED_NEEDS_QUEUE = "random-detect needs bandwidth or shape in the class"


# Our own wording.
NOT_WITH_FLOWS = "random-detect in bytes or ms can not be configured in a class with fair-queue"
OTHER_BASIS = "random-detect {one} can not be configured in a class with random-detect {other}"
BASED_ON: dict[RedBasis, str] = {
    "dscp": "dscp-based",
    "precedence": "prec-based",
    "cos": "cos-based",
    "discard_class": "discard-class-based",
}
_VALUES: dict[RedBasis, str] = {
    "dscp": "code-point",
    "precedence": "level",
    "cos": "priority",
    "discard_class": "discard",
}
"""Name of the argument for the value, by field."""
_FIELDS = (
    "precedence <level:precedence>",
    "dscp <code-point:dscp>",
    "cos <priority:0-7>",
    "discard-class <discard:0-7>",
)


DETAIL = f"random-detect [ecn|exponential-weighting-constant|{'|'.join(_FIELDS)}]"
_BASIS_WORDS = "dscp-based|prec-based|precedence-based|cos-based|discard-class-based"
NO = DETAIL.replace("[ecn", f"[({_BASIS_WORDS}) [aggregate]|ecn")
_GROUPED = "minimum-thresh <minimum:1-4096> maximum-thresh <maximum:1-4096> [mark-prob <denominator:1-65535>]"
"""Syntax of thresholds for several values."""


def random_detect_syntax(thresholds: str) -> str:
    """Return the syntax of `random-detect`, given the syntax of the thresholds of a value."""
    fields = "|".join(f"{field} {thresholds}" for field in _FIELDS)
    several = "|".join(f"{name} values {value}+ {_GROUPED}" for name, value in (each.split(" ", 1) for each in _FIELDS))
    return (
        f"random-detect [({_BASIS_WORDS}) [aggregate [{_GROUPED}]]|ecn"
        f"|exponential-weighting-constant <weight:1-16>|{fields}|{several}]"
    )


def amounts_syntax(amount: str) -> str:
    """Return the syntax of the thresholds of a value, given the type of an amount after its `:`."""
    return f"<minimum:{amount} <maximum:{amount} [<denominator:1-65535>]"


def _xe_amounts_syntax() -> str:
    """Return the syntax of IOS-XE: thresholds in any unit, and in percent of the queue limit."""
    number = "1-64000000> [packets|bytes|ms|us]"
    amounts = f"<minimum:{number} <maximum:{number}|percent <least-share:1-100> <greatest-share:1-100>"
    return f"({amounts}) [<denominator:1-65535>]"


HELP = {
    "random-detect": "Enable Random Early Detection as drop policy",
    "dscp-based": "Enable dscp-based WRED as drop policy",
    "prec-based": "Enable precedence-based WRED as drop policy",
    "precedence-based": "Enable precedence-based WRED as drop policy",
    "ecn": "explicit congestion notification",
    "exponential-weighting-constant": "weight for mean queue depth calculation",
    "weight": "integer in 1..16 used in weighted average to mean 2^number",
    "precedence": "parameters for each precedence value",
    "level": "IP precedence",
    "dscp": "parameters for each dscp value",
    "code-point": "Differentiated services codepoint value",
    "minimum": "minimum threshold",
    "maximum": "maximum threshold",
    "denominator": "mark probability denominator",
    "packets": "packets",
    "bytes": "bytes",
    "ms": "milliseconds",
    "us": "microseconds",
    "percent": "percent of the queue limit",
    "least-share": "minimum threshold",
    "greatest-share": "maximum threshold",
    "cos-based": "Enable cos-based WRED as drop policy",
    "cos": "parameters for each cos value",
    "priority": "COS value",
    "discard-class-based": "Enable discard-class-based WRED as drop policy",
    "discard-class": "parameters for each discard-class value",
    "discard": "Discard Class value",
    "values": "parameters for several values",
    "aggregate": "parameters for all values that have none",
    "minimum-thresh": "minimum threshold, packets",
    "maximum-thresh": "maximum threshold, packets",
    "mark-prob": "mark probability denominator",
}

_BASES: dict[str, RedBasis] = {"precedence-based": "precedence", **{word: basis for basis, word in BASED_ON.items()}}


@CONFIG.add(
    "policy-class",
    random_detect_syntax(amounts_syntax("1-4096>")),
    no=NO,
    undo=Undo(key=DETAIL, parts=True, needs_removal=True),
    requires={"random-detect-packets"},
    help=HELP,
)
@CONFIG.add(
    "policy-class",
    # `precedence-based`, `cos-based` and `aggregate` belong to later releases; their use in all generations is inferred
    # [I].
    random_detect_syntax(amounts_syntax("1-64000000> [packets|bytes|ms]")),
    no=NO,
    undo=Undo(key=DETAIL, parts=True, needs_removal=True),
    requires={"random-detect-units"},
    help=HELP,
)
@CONFIG.add(
    "policy-class",
    random_detect_syntax(_xe_amounts_syntax()),
    no=NO,
    undo=Undo(key=DETAIL, parts=True, needs_removal=True),
    requires={"random-detect-percent"},
    help=HELP,
)
def _configure_random_detect(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    changed = apply_line(session, present.random_detect, args)
    if changed != present.random_detect or not args.unset:
        change_class(session, replace(present, random_detect=changed))


def apply_line(session: ConfigSession, present: RandomDetect | None, args: Args) -> RandomDetect | None:
    """Return early detection with the values of a line; None if it is removed."""
    if args.unset and present is None:
        return None
    words = args.keywords[1:]
    if args.unset and (not words or words[0] in _BASES):
        off = not words or (present is not None and _BASES[words[0]] == present.basis)
        return None if off else present
    # [I] The first line determines the field; later ones must use the same.
    field = next((each for each in _VALUES if each.replace("_", "-") in args), None)
    red = present or RandomDetect(field or "precedence")
    if "ecn" in args:
        red = replace(red, ecn=not args.unset)
    elif "exponential-weighting-constant" in args:
        red = replace(red, exponential_weight=None if args.unset else args.value("weight", int))
    elif field is not None:
        red = _red_thresholds(session, red, field, args)
    else:
        basis = _BASES[words[0]] if words else "precedence"
        if basis != red.basis:
            red = replace(red, basis=basis, thresholds=(), unit=None)
        red = replace(red, aggregate=_several_thresholds(args) if "minimum-thresh" in args else None)
    return red


def _several_thresholds(args: Args) -> RedThresholds:
    """Return the thresholds of a line for several values."""
    minimum, maximum = (args.value(name, int) for name in ("minimum", "maximum"))
    if minimum > maximum:
        raise args.invalid_argument("maximum")
    return RedThresholds(minimum, maximum, args.optional("denominator", int))


def _red_thresholds(session: ConfigSession, red: RandomDetect, field: RedBasis, args: Args) -> RandomDetect:
    if field != red.basis:
        raise RejectedError(OTHER_BASIS.format(one=field.replace("_", "-"), other=BASED_ON[red.basis]))
    values = args.values(_VALUES[field], int)
    table = dict(red.thresholds)
    if args.unset:
        table = {value: each for value, each in table.items() if value not in values}
    else:
        percent = "percent" in args
        unit: LimitUnit | None = "percent" if percent else _common_unit(session, args)
        if table and unit != red.unit:
            raise RejectedError(MIXED_LIMIT_UNITS)
        red = replace(red, unit=unit)
        names = ("least-share", "greatest-share") if percent else ("minimum", "maximum")
        minimum, maximum = (args.value(name, int) for name in names)
        if minimum > maximum:
            raise args.invalid_argument(names[1])
        table |= dict.fromkeys(values, RedThresholds(minimum, maximum, args.optional("denominator", int)))
    return replace(red, thresholds=tuple(sorted(table.items())), unit=red.unit if table else None)


def _common_unit(session: ConfigSession, args: Args) -> LimitUnit | None:
    """Return the unit of both thresholds, None for packets."""
    units: list[LimitUnit] = [unit for word in args.keywords for unit in LIMIT_UNITS if unit == word]
    if len(units) == 1:
        raise IncompleteError
    if len(set(units)) > 1:
        raise args.invalid_argument("maximum")
    unit = units[0] if units else "packets"
    most = session.device.hardware.qos.greatest_queue_limit if unit == "packets" else LIMIT_UNITS[unit]
    for name in ("minimum", "maximum"):
        if args.value(name, int) > most:
            raise args.invalid_argument(name)
    return None if unit == "packets" else unit


def red_lines(red: RandomDetect) -> list[str]:
    """Return the lines of early detection."""
    lines = ["random-detect" if red.basis == "precedence" else f"random-detect {BASED_ON[red.basis]}"]
    if red.aggregate is not None:
        lines = [f"random-detect {BASED_ON[red.basis]} aggregate{_group_thresholds(red.aggregate)}"]
    if red.exponential_weight is not None:
        lines.append(f"random-detect exponential-weighting-constant {red.exponential_weight}")
    if red.ecn:
        lines.append("random-detect ecn")
    for value, limits in red.thresholds:
        name = dscp_text(value) if red.basis == "dscp" else str(value)
        probability = "" if limits.denominator is None else f" {limits.denominator}"
        amounts = f"{limits.minimum} {limits.maximum}"
        if red.unit == "percent":
            amounts = f"percent {amounts}"
        elif red.unit is not None:
            amounts = f"{limits.minimum} {red.unit} {limits.maximum} {red.unit}"
        lines.append(f"random-detect {red.basis.replace('_', '-')} {name} {amounts}{probability}")
    return lines


def _group_thresholds(limits: RedThresholds) -> str:
    probability = "" if limits.denominator is None else f" mark-prob {limits.denominator}"
    return f" minimum-thresh {limits.minimum} maximum-thresh {limits.maximum}{probability}"


@CLASS_LINES.register_family(80, family="router")
def _config_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    if each.random_detect is not None:
        # Later software indents it by one blank more.
        indent = layout.queueing + layout.qos.random_detect_indent
        yield from (indent + line for line in red_lines(each.random_detect))


@ENGINE_CLASS.register_family(50)
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    return {"random_detect": None if each.random_detect is None else red_config(each.random_detect)}


def red_config(red: RandomDetect) -> program_formats.RandomDetectConfig:
    """Return the data plane's configuration of early detection."""
    thresholds: list[program_formats.RandomDetectThreshold] = [
        {"value": value, "min": each.minimum, "max": each.maximum, "denominator": each.denominator}
        for value, each in thresholds_by_value(red)
    ]
    return {
        "basis": red.basis,
        "exponential_weight": red.exponential_weight,
        "ecn": red.ecn,
        "unit": red.unit or ("packets" if red.thresholds or red.aggregate else None),
        "thresholds": thresholds,
    }


def thresholds_by_value(red: RandomDetect) -> list[tuple[int, RedThresholds]]:
    """Return the thresholds by value: explicit ones, and for all other values those of `aggregate`."""
    rows: dict[int, RedThresholds] = {}
    if red.aggregate is not None:
        rows = dict.fromkeys(range(64 if red.basis == "dscp" else 8), red.aggregate)
    return sorted((rows | dict(red.thresholds)).items())


COMBINATION_WORDS.update(
    {
        ("random_detect", "class_default"): RED_NEEDS_QUEUE,
        ("random_detect", "priority"): RED_NEEDS_QUEUE,
        ("random_detect_unit", "fair_queue"): NOT_WITH_FLOWS,
    }
)


@SHOW_POLICY_MAP_CLASS.register_family(60)
def _show_policy_map_lines(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    if (red := typed.get("random_detect")) is not None:
        yield from _threshold_table(red, classic=not GENERATIONS[config["generation"]].separate_queues)


def _threshold_table(red: program_formats.RandomDetectConfig, *, classic: bool) -> Iterator[str]:
    # [I] The table is from memory, not from an output. Default values are dashes.
    weight = red.get("exponential_weight")
    weight = engine_defaults.RANDOM_DETECT_WEIGHT if weight is None else weight
    yield (
        f"           exponential weight {weight}"
        if classic
        else f"      packet-based wred, exponential weight {weight}"
    )
    if red.get("ecn"):
        yield "      explicit congestion notification"
    yield ""
    by_code = red["basis"] == "dscp"
    yield f"      {'dscp ' if by_code else 'class'}    min-threshold    max-threshold    mark-probability"
    yield "      ----------------------------------------------------------"
    typed = {each["value"]: each for each in red["thresholds"]}
    # [I] How units are printed here.
    unit = f" {red.get('unit')}" if red.get("unit") in ("bytes", "ms", "us", "percent") else ""
    for value in sorted(typed) if by_code else range(8):
        each = typed.get(value)
        least, greatest = ("-", "-") if each is None else (f"{each['min']}{unit}", f"{each['max']}{unit}")
        denominator = None if each is None else each.get("denominator")
        denominator = engine_defaults.RANDOM_DETECT_DENOMINATOR if denominator is None else denominator
        name = dscp_text(value) if by_code else str(value)
        yield f"      {name:<8}{least:<17}{greatest:<17}1/{denominator}"
    yield ""
