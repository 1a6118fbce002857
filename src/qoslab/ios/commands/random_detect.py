"""`random-detect` in a class of a policy-map: weighted random early detection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from qoslab.ios.cli.grammar import Args, IncompleteError, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.commands.queue_limit import MIXED_LIMIT_UNITS
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import (
    Device,
)
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.ios_names import dscp_text
from qoslab.ios.model.policy import (
    CLASS_DEFAULT,
    LIMIT_UNITS,
    LimitUnit,
    PolicyClass,
    RandomDetect,
    RedThresholds,
)
from qoslab.ios.registry import (
    CLASS_LINES,
    CLASS_RULES,
    ENGINE_CLASS,
    LISTED_CLASS,
    Layout,
)

if TYPE_CHECKING:
    from qoslab.system import program_formats

RED_NEEDS_QUEUE = "random-detect needs bandwidth or shape in the class"


# Our own words.
OTHER_BASIS = "random-detect {one} can not be configured in a class with random-detect {other}"
BASED_ON = {"dscp": "dscp-based", "precedence": "prec-based"}


_RANDOM_DETECT_DETAIL = (
    "random-detect [ecn|exponential-weighting-constant|precedence <level:precedence>|dscp <code-point:dscp>]"
)
_RANDOM_DETECT_NO = _RANDOM_DETECT_DETAIL.replace("[ecn", "[dscp-based|prec-based|precedence-based|ecn")


def _syntax(amount: str, basis: str = "dscp-based|prec-based") -> str:
    thresholds = f"<minimum:{amount} <maximum:{amount} [<denominator:1-65535>]"
    return (
        f"random-detect [{basis}|ecn|exponential-weighting-constant <weight:1-16>"
        f"|precedence <level:precedence> {thresholds}|dscp <code-point:dscp> {thresholds}]"
    )


def _percent_syntax() -> str:
    """Return the grammar of IOS-XE: thresholds in any unit, and in percent of the queue limit."""
    number = "1-64000000> [packets|bytes|ms|us]"
    amounts = f"<minimum:{number} <maximum:{number}|percent <least-share:1-100> <greatest-share:1-100>"
    thresholds = f"({amounts}) [<denominator:1-65535>]"
    return (
        "random-detect [dscp-based|prec-based|precedence-based|ecn|exponential-weighting-constant <weight:1-16>"
        f"|precedence <level:precedence> {thresholds}|dscp <code-point:dscp> {thresholds}]"
    )


_HELP = {
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
}

_BASES = {"dscp-based": "dscp", "prec-based": "precedence", "precedence-based": "precedence"}


@CONFIG.add(
    "policy-class",
    _syntax("1-4096>"),
    no=_RANDOM_DETECT_NO,
    undo=Undo(key=_RANDOM_DETECT_DETAIL, parts=True, afresh=True),
    requires={"random-detect-packets"},
    help=_HELP,
)
@CONFIG.add(
    "policy-class",
    # The third word is that of IOS XE; that this generation has it too is inferred [I].
    _syntax("1-64000000> [packets|bytes|ms]", "dscp-based|prec-based|precedence-based"),
    no=_RANDOM_DETECT_NO,
    undo=Undo(key=_RANDOM_DETECT_DETAIL, parts=True, afresh=True),
    requires={"random-detect-units"},
    help=_HELP,
)
@CONFIG.add(
    "policy-class",
    _percent_syntax(),
    no=_RANDOM_DETECT_NO,
    undo=Undo(key=_RANDOM_DETECT_DETAIL, parts=True, afresh=True),
    requires={"random-detect-percent"},
    help=_HELP,
)
def _random_detect(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if args.unset and present.random_detect is None:
        return
    words = args.keywords[1:]
    if args.unset and (not words or words[0] in _BASES):
        if not words or (present.random_detect and _BASES[words[0]] == present.random_detect.basis):
            change_class(session, replace(present, random_detect=None))
        return
    # [I] The first line of a class says by which field; later ones have to be by the same.
    red = present.random_detect or RandomDetect("dscp" if "dscp" in args else "precedence")
    if "ecn" in args:
        red = replace(red, ecn=not args.unset)
    elif "exponential-weighting-constant" in args:
        red = replace(red, exponential_weight=None if args.unset else args.value("weight", int))
    elif "dscp" in args or "precedence" in args:
        red = _red_thresholds(session, red, args)
    elif "dscp-based" in args and red.basis != "dscp":
        red = replace(red, basis="dscp", thresholds=(), unit=None)
    elif "dscp-based" not in args and red.basis != "precedence":
        red = replace(red, basis="precedence", thresholds=(), unit=None)
    change_class(session, replace(present, random_detect=red))


def _red_thresholds(session: ConfigSession, red: RandomDetect, args: Args) -> RandomDetect:
    basis = "dscp" if "dscp" in args else "precedence"
    if basis != red.basis:
        raise RejectedError(OTHER_BASIS.format(one=basis, other=BASED_ON[red.basis]))
    value = args.value("code-point" if basis == "dscp" else "level", int)
    table = dict(red.thresholds)
    if args.unset:
        table.pop(value, None)
    else:
        percent = "percent" in args
        unit: LimitUnit | None = "percent" if percent else _unit(session, args)
        if table and unit != red.unit:
            raise RejectedError(MIXED_LIMIT_UNITS)
        red = replace(red, unit=unit)
        names = ("least-share", "greatest-share") if percent else ("minimum", "maximum")
        minimum, maximum = (args.value(name, int) for name in names)
        if minimum > maximum:
            raise args.invalid(names[1])
        table[value] = RedThresholds(minimum, maximum, args.optional("denominator", int))
    return replace(red, thresholds=tuple(sorted(table.items())), unit=red.unit if table else None)


def _unit(session: ConfigSession, args: Args) -> LimitUnit | None:
    """Return the unit of both thresholds, None for packets."""
    units: list[LimitUnit] = [unit for word in args.keywords for unit in LIMIT_UNITS if unit == word]
    if len(units) == 1:
        raise IncompleteError
    if len(set(units)) > 1:
        raise args.invalid("maximum")
    unit = units[0] if units else "packets"
    most = session.device.hardware.qos.greatest_queue_limit if unit == "packets" else LIMIT_UNITS[unit]
    for name in ("minimum", "maximum"):
        if args.value(name, int) > most:
            raise args.invalid(name)
    return None if unit == "packets" else unit


def _text(each: PolicyClass, indent: str) -> list[str]:
    red = each.random_detect
    assert red is not None
    lines = ["random-detect dscp-based" if red.basis == "dscp" else "random-detect"]
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
        lines.append(f"random-detect {red.basis} {name} {amounts}{probability}")
    return [indent + line for line in lines]


@CLASS_LINES.at(80, family="router")
def _lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    if each.random_detect is not None:
        # Later software indents it by one blank more.
        yield from _text(each, layout.queueing + layout.qos.random_detect_indent)


@ENGINE_CLASS.at(50)
def _engine(each: PolicyClass) -> program_formats.PolicyClassPart:
    red = each.random_detect
    if red is None:
        return {"random_detect": None}
    thresholds: list[program_formats.RandomDetectThreshold] = [
        {"value": value, "min": each.minimum, "max": each.maximum, "denominator": each.denominator}
        for value, each in red.thresholds
    ]
    return {
        "random_detect": {
            "basis": red.basis,
            "exponential_weight": red.exponential_weight,
            "ecn": red.ecn,
            "unit": red.unit or ("packets" if red.thresholds else None),
            "thresholds": thresholds,
        }
    }


@CLASS_RULES.at(30)
def _check(device: Device, each: PolicyClass) -> None:
    if each.random_detect is not None and each.name != CLASS_DEFAULT and each.bandwidth is None and each.shape is None:
        raise RejectedError(RED_NEEDS_QUEUE)


@LISTED_CLASS.at(60)
def _listed(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    if (red := typed.get("random_detect")) is not None:
        yield from _table(red, classic=not GENERATIONS[config["generation"]].separate_queues)


def _table(red: program_formats.RandomDetectConfig, *, classic: bool) -> Iterator[str]:
    # [I] The table is remembered, not read. What is left to the defaults is a dash.
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
