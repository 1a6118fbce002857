"""`police` in all its forms, on one line or with the actions in a separate mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, Protocol

from qoslab.ios import unsupported
from qoslab.ios.cli import grammar
from qoslab.ios.cli.grammar import NOT_SUPPORTED, Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession, UnsupportedError
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.account import account_config, account_text
from qoslab.ios.commands.amounts import burst_text, percent_text, rate_config, rate_text
from qoslab.ios.commands.drop import represents_drop
from qoslab.ios.commands.inert_lines import full_line_text
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.generations import GENERATIONS, QosGeneration
from qoslab.ios.model.inert_lines import InertLine
from qoslab.ios.model.ios_names import dscp_text
from qoslab.ios.model.policy import COLOURS, ActionName, Amount, Colour, Police, PoliceAction, PolicyClass
from qoslab.ios.model.printed_rates import format_policy_rate
from qoslab.ios.registry import (
    CLASS_LINES,
    ENGINE_CLASS,
    ORDER_WORDS,
    SHOW_INTERFACE_CLASS,
    SHOW_POLICY_MAP_CLASS,
    InterfacePolicyClass,
    Layout,
)
from qoslab.ios.undecided import NO_DROP_BIT, NO_LABELS, NO_SECOND_TAG, NO_TUNNELS
from qoslab.system import program_formats

_RATE = "8000-64000000000"
_WIDE_RATE = "8000-100000000000kmg"
"""Committed rates of IOS-XE (its YANG model); peak rates end where those of earlier releases do."""
_BURST = "1000-512000000"
_WIDE_BURST = "100-512000000"
"""Bursts of `police RATE BURST` on IOS-XE (its YANG model); with `bc` or `burst`, they begin at 1000."""
_MIN_BURST = 1000
# The range of percent-form bursts is that of the shaper (from memory, not confirmed by a document).
_BURST_MS = "1-2000"
# An excess burst of 0 is in recordings of later images, but not of earlier ones.
_EXCESS = {"plain-rates": (_BURST, _BURST_MS), "rate-suffixes": ("0-512000000", "0-2000")}
_ACTION = (
    "(transmit|drop|set-dscp-transmit <dscp:dscp>|set-prec-transmit <precedence:precedence>"
    "|(set-dscp-transmit|set-cos-transmit|set-prec-transmit) (dscp|cos|precedence) table <table:word>"
    "|set-qos-transmit <group:0-99>|set-cos-transmit <cos:0-7>"
    "|set-discard-class-transmit <discard:0-7>|set-clp-transmit|set-frde-transmit"
    "|set-mpls-exp-imposition-transmit <label:0-7>|set-mpls-exp-topmost-transmit <label:0-7>"
    "|set-mpls-experimental-imposition-transmit <label:0-7>|set-mpls-experimental-topmost-transmit <label:0-7>"
    "|set-mpls-exp-transmit <label:0-7>|set-cos-inner-transmit <cos:0-7>"
    "|set-dscp-tunnel-transmit <dscp:dscp>|set-prec-tunnel-transmit <precedence:precedence>)"
)
UNDECIDED: dict[ActionName, str] = {
    "set-clp-transmit": NO_DROP_BIT,
    "set-frde-transmit": NO_DROP_BIT,
    "set-mpls-exp-imposition-transmit": NO_LABELS,
    "set-mpls-exp-topmost-transmit": NO_LABELS,
    "set-mpls-experimental-imposition-transmit": NO_LABELS,
    "set-mpls-experimental-topmost-transmit": NO_LABELS,
    "set-mpls-exp-transmit": NO_LABELS,
    "set-cos-inner-transmit": NO_SECOND_TAG,
    "set-dscp-tunnel-transmit": NO_TUNNELS,
    "set-prec-tunnel-transmit": NO_TUNNELS,
}
"""Actions that set a field that no packet of a lab has: the packet passes."""
_ACTIONS = f"[conform-action {_ACTION} [exceed-action {_ACTION} [violate-action {_ACTION}]]]"
_HELP: dict[str, str] = {
    "police": "Police",
    "cir": "Committed information rate",
    "rate": "Specify police rate, PCR for hierarchical policies or SCR for single-level ATM 4.0 policer policies",
    "bps": "Bits per second",
    "percent": "% of interface bandwidth for Committed information rate",
    "share": "Percentage",
    "bc": "Conform burst",
    "be": "Excess burst",
    "pir": "Peak Information Rate",
    "burst": "Conform burst in bytes",
    "peak-rate": "Specify peak rate or PCR for single-level ATM 4.0 policer policies",
    "peak-burst": "Specify 'peak-burst' parameter for 'peak-rate'",
    "ms": "milliseconds",
    "committed": "Bits per second",
    "committed-share": "Percentage",
    "committed-burst": "Burst bytes",
    "excess-burst": "Burst bytes",
    "peak": "Bits per second",
    "peak-share": "Percentage",
    "conform-action": "action when rate is less than conform burst",
    "exceed-action": "action when rate is within conform and conform + exceed burst",
    "violate-action": "action when rate is greater than conform + exceed burst",
    "transmit": "transmit packet",
    "drop": "drop packet",
    "set-dscp-transmit": "set dscp and send it",
    "set-prec-transmit": "rewrite packet precedence and send it",
    "set-qos-transmit": "set qos-group and send it",
    "set-cos-transmit": "set cos and send it",
    "dscp": "new dscp value",
    "precedence": "new precedence",
    "group": "new qos-group",
    "set-discard-class-transmit": "set discard-class and send it",
    "discard": "new discard-class",
    "cos": "new cos value",
    "bytes": "Treat the burst as bytes",
    "label": "new value",
    "table": f"{NOT_SUPPORTED}{unsupported.TABLES}",
    **{action: f"{grammar.UNDECIDED}{reason}; the packet passes" for action, reason in UNDECIDED.items()},
}

# The wording is modelled on IOS, not taken from a printout.
ONE_BUCKET = "% A policer with a dynamic bucket has no other bucket: leave out bc, pir, be and violate-action"
PEAK_BELOW_COMMITTED = "PIR must not be less than CIR"
ORDER_WORDS["police.pir"] = PEAK_BELOW_COMMITTED

_ACTION_NAMES: tuple[ActionName, ...] = (
    "transmit",
    "drop",
    "set-dscp-transmit",
    "set-prec-transmit",
    "set-qos-transmit",
    "set-cos-transmit",
    "set-discard-class-transmit",
    *UNDECIDED,
)
WITHOUT_VALUE: tuple[ActionName, ...] = ("transmit", "drop", "set-clp-transmit", "set-frde-transmit")


# If it is entered again with the same values, a policer keeps the actions of its sub-mode.
_UNDO = Undo(key="police", needs_removal=True)


def _police(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if args.unset:
        change_class(session, replace(present, police=None))
        return
    police = _policer_parameters(args)
    typed = _inline_actions(args)
    old = present.police
    if typed:
        for colour, actions in typed.items():
            police = police.with_actions(colour, actions)
    elif (
        old is not None and replace(old, conform=None, exceed=None, violate=None, account=None, dynamic=None) == police
    ):
        # Re-entering the same policer keeps the lines of its sub-mode.
        police = old
    if old is not None:
        police = replace(police, account=old.account, dynamic=old.dynamic)
    change_class(session, replace(present, police=check_one_bucket(police)))
    _remark_without_effect(session, args)
    if not typed:
        session.enter("police", "police")


def _police_forms(rate: str, peak: str, excess: str, excess_ms: str) -> tuple[str, ...]:
    return (
        f"cir <committed:{rate}> [bc <committed-burst:{_BURST}>] [be <excess-burst:{excess}>]"
        f" [pir <peak:{peak}> [be <excess-burst:{excess}>]]",
        f"rate <committed:{rate}> [bps] [burst <committed-burst:{_BURST}> [bytes]]"
        f" [peak-rate <peak:{peak}> [bps] [peak-burst <excess-burst:{excess}> [bytes]]]",
        f"cir percent <committed-share:1-100> [bc <committed-burst:{_BURST_MS}> ms] [be <excess-burst:{excess_ms}> ms]"
        f" [pir percent <peak-share:1-100> [be <excess-burst:{excess_ms}> ms]]",
        f"rate percent <committed-share:1-100> [burst <committed-burst:{_BURST_MS}> ms]"
        f" [peak-rate percent <peak-share:1-100> [peak-burst <excess-burst:{excess_ms}> ms]]",
    )


_SUFFIXED = "Bits per second (postfix k, m, g optional; decimal point allowed)"
_SUFFIXED_HELP = {**_HELP, "committed": _SUFFIXED, "peak": _SUFFIXED}

# Suffixes of rates are documented for later images; the first such release is unknown [I].
for _requires, _rates, _help in (
    ("plain-rates", (_RATE, _RATE), _HELP),
    ("rate-suffixes", (_WIDE_RATE, f"{_RATE}kmg"), _SUFFIXED_HELP),
):
    for _form in _police_forms(*_rates, *_EXCESS[_requires]):
        CONFIG.add("policy-class", f"police {_form} {_ACTIONS}", no=True, undo=_UNDO, requires={_requires}, help=_help)(
            _police
        )

for _requires, _rate, _bursts, _help in (
    ("plain-rates", _RATE, (_BURST, _BURST), _HELP),
    ("narrow-ranges", _WIDE_RATE, (_BURST, _EXCESS["rate-suffixes"][0]), _SUFFIXED_HELP),
    ("wide-ranges", _WIDE_RATE, (_WIDE_BURST, _EXCESS["rate-suffixes"][0]), _SUFFIXED_HELP),
):
    _form = f"<committed:{_rate}> [<committed-burst:{_bursts[0]}> [<excess-burst:{_bursts[1]}>]]"
    CONFIG.add("policy-class", f"police {_form} {_ACTIONS}", no=True, undo=_UNDO, requires={_requires}, help=_help)(
        _police
    )


def check_one_bucket(police: Police) -> Police:
    """Return the policer. Raise RejectedError if it has an adaptive bucket and further parameters or buckets."""
    if police.dynamic is not None and (police.bc, police.pir, police.be, police.violate) != (None, None, None, None):
        raise RejectedError(ONE_BUCKET)
    return police


def _policer_parameters(args: Args) -> Police:
    """Return the policer of a line, without its actions."""
    committed, share = args.optional("committed", int), args.optional("committed-share", int)
    peak, peak_share = args.optional("peak", int), args.optional("peak-share", int)
    bc, be = args.optional("committed-burst", int), args.optional("excess-burst", int)
    if len(args.values("excess-burst", int)) > 1:
        raise args.invalid_repeat("excess-burst", 1)
    unit: Literal["bytes", "ms"] = "bytes" if share is None else "ms"
    least = _MIN_BURST if unit == "bytes" else 1
    if be is not None and be < least and (be, peak, peak_share) != (0, None, None):
        raise args.invalid_argument("excess-burst")
    return Police(
        form="cir" if "cir" in args else "rate" if "rate" in args else "bps",
        cir=Amount(committed, "bps") if committed is not None else Amount(share or 0, "percent"),
        bc=None if bc is None else Amount(bc, unit),
        pir=Amount(peak, "bps") if peak is not None else None if peak_share is None else Amount(peak_share, "percent"),
        be=None if be is None else Amount(be, unit),
    )


def _inline_actions(args: Args) -> dict[Colour, tuple[PoliceAction, ...]]:
    """Return the actions on the line, by colour. Raise UnsupportedError for an action that is not modelled."""
    if "table" in args:
        raise UnsupportedError(unsupported.TABLES)
    found: dict[Colour, tuple[PoliceAction, ...]] = {}
    colour: Colour | None = None
    items = args.typed_order()
    for index, item in enumerate(items):
        for each in COLOURS:
            if item.name == f"{each}-action":
                colour = each
        name = next((each for each in _ACTION_NAMES if item.value == each), None)
        if colour is not None and name is not None:
            value = items[index + 1].value if name not in WITHOUT_VALUE else None
            found[colour] = (PoliceAction(name, value if isinstance(value, int) else None),)
    return found


def _action(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if present.police is None:
        # Another session removed it in the meantime.
        raise args.invalid_argument(args.keywords[0])
    [(colour, (action,))] = _inline_actions(args).items()
    have = present.police.actions(colour) or ()
    actions = tuple(each for each in have if each != action) or None if args.unset else _add_action(have, action)
    change_class(session, replace(present, police=check_one_bucket(present.police.with_actions(colour, actions))))
    _remark_without_effect(session, args)


def _remark_without_effect(session: ConfigSession, args: Args) -> None:
    """Report the actions of a line that set a field that no packet of a lab has."""
    for action, reason in UNDECIDED.items():
        if action in args and not args.unset:
            session.remarks.append(InertLine(action, full_line_text(args), f"{reason}: {action} is transmit", 0, True))


for _colour in COLOURS:
    _line = f"{_colour}-action {_ACTION}"
    CONFIG.add("police", _line, no=_line, help=_HELP)(_action)


def _add_action(have: tuple[PoliceAction, ...], action: PoliceAction) -> tuple[PoliceAction, ...]:
    """Return the actions with an added one: markings can be combined, `transmit` and `drop` cannot."""
    if action.action in ("transmit", "drop"):
        return (action,)
    others = (each for each in have if each.action not in ("transmit", "drop", action.action))
    return tuple(sorted((*others, action), key=lambda each: _ACTION_NAMES.index(each.action)))


class PolicerPart(Protocol):
    """Part of a policer that is configured by a separate line of its class."""

    def lines(self, police: Police) -> Iterable[str]:
        """Return the lines of the running configuration."""

    def engine(self, police: Police) -> program_formats.PoliceConfigPart:
        """Return the part of the data plane's configuration."""

    def show_policy_map_lines(self, resolved: program_formats.ResolvedPolice) -> Iterable[str]:
        """Return the lines in `show policy-map`."""

    def show_interface_lines(self, police: program_formats.PoliceCounters) -> Iterable[str]:
        """Return the lines of the feature in `show policy-map interface`."""


PARTS: list[PolicerPart] = []
"""Policer parts, registered by their modules."""


# The running configuration.


def _config_lines(each: PolicyClass, layout: Layout) -> list[str]:
    return [] if each.police is None else police_lines(each.police, layout.queueing)


def _has_separate_actions(each: PolicyClass) -> bool:
    """Return whether the policer's actions are on separate lines.

    It is then printed first in the classic layout and last in the later one, so that clients that parse a configuration
    by indentation do not take a neighbouring line for a child of another.
    """
    police = each.police
    return police is not None and (police.account is not None or any(map(police.actions, COLOURS)))


@CLASS_LINES.register_family(10, family="router")
def _first_line(each: PolicyClass, layout: Layout) -> list[str]:
    return _config_lines(each, layout) if _has_separate_actions(each) and not layout.qos.police_last else []


@CLASS_LINES.register_family(50, family="router")
def _middle_lines(each: PolicyClass, layout: Layout) -> list[str]:
    return [] if _has_separate_actions(each) else _config_lines(each, layout)


@CLASS_LINES.register_family(90, family="router")
def _last_lines(each: PolicyClass, layout: Layout) -> list[str]:
    return _config_lines(each, layout) if _has_separate_actions(each) and layout.qos.police_last else []


def police_lines(police: Police, indent: str) -> list[str]:
    """Return the lines of a policer; with actions, each on a separate line, it is indented by three blanks."""
    text = {
        "bps": lambda: f"police {police.cir.number}{_bounded_amount('', police.bc)}{_bounded_amount('', police.be)}",
        "cir": lambda: (
            f"police cir {rate_text(police.cir)}{_bounded_amount(' bc', police.bc)}"
            f"{_bounded_amount(' pir', police.pir)}{_bounded_amount(' be', police.be)}"
        ),
        "rate": lambda: (
            f"police rate {rate_text(police.cir)}{_bounded_amount(' burst', police.bc)}"
            f"{_bounded_amount(' peak-rate', police.pir)}{_bounded_amount(' peak-burst', police.be)}"
        ),
    }[police.form]()
    actions = [
        f"     {colour}-action {_action_text(action)}" for colour in COLOURS for action in police.actions(colour) or ()
    ]
    if police.account is not None:
        actions.append(f"    {account_text(police.account)}")
    indent = "   " if actions else indent
    lines = [indent + text, *actions]
    return [*lines, *(indent + line for part in PARTS for line in part.lines(police))]


def _bounded_amount(word: str, amount: Amount | None) -> str:
    if amount is None:
        return ""
    return f"{word} {rate_text(amount)}" if amount.unit in ("bps", "percent") else f"{word} {burst_text(amount)}"


def _action_text(action: PoliceAction) -> str:
    if action.value is None:
        return action.action
    text = dscp_text(action.value) if "-dscp-" in action.action else str(action.value)
    return f"{action.action} {text}"


# The data plane's configuration.


@ENGINE_CLASS.register_family(20)
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    return {"police": None if each.police is None else _engine_police(each.police)}


DEFAULT_CONFORM = (PoliceAction("transmit"),)


DEFAULT_EXCEED = (PoliceAction("drop"),)


def _engine_police(police: Police) -> program_formats.PoliceConfig:
    config: program_formats.PoliceConfig = {
        "form": "rate" if police.form == "rate" else "cir",
        "cir": rate_config(police.cir),
        "bc": _engine_burst(police.bc),
        "pir": None if police.pir is None else rate_config(police.pir),
        "be": _engine_burst(police.be),
        "conform": _engine_actions(DEFAULT_CONFORM if police.conform is None else police.conform),
        "exceed": _engine_actions(DEFAULT_EXCEED if police.exceed is None else police.exceed),
        "violate": None if police.violate is None else _engine_actions(police.violate),
    }
    if police.account is not None:
        config["account"] = account_config(police.account)
    for part in PARTS:
        config |= part.engine(police)
    return config


def _engine_burst(burst: Amount | None) -> program_formats.PoliceBurst | None:
    if burst is None:
        return None
    return {"ms": burst.number} if burst.unit == "ms" else {"bytes": burst.number}


def _engine_actions(actions: tuple[PoliceAction, ...]) -> list[program_formats.PoliceAction]:
    return [_engine_action(each) for each in actions]


def _engine_action(action: PoliceAction) -> program_formats.PoliceAction:
    match action.action:
        case "transmit" | "drop" | "policed-dscp-transmit" as plain:
            return {"action": plain}
        case (
            "set-dscp-transmit"
            | "set-prec-transmit"
            | "set-qos-transmit"
            | "set-cos-transmit"
            | "set-discard-class-transmit" as marking
        ):
            assert action.value is not None  # the grammar requires it
            return {"action": marking, "value": action.value}
        case _:
            return {"action": "transmit"}


# Show output.


@SHOW_POLICY_MAP_CLASS.register_family(80)
def _show_policy_map_lines(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    if represents_drop(police := typed.get("police")):
        yield "      drop"
    elif police is not None and (resolved := entry["police"]) is not None:
        yield from _listed_police(police, resolved, GENERATIONS[config["generation"]])


@SHOW_INTERFACE_CLASS.register_family(30)
def _show_interface_lines(shown: InterfacePolicyClass) -> Iterator[str]:
    police = shown.config.get("police")
    if represents_drop(police):
        yield "drop"
    elif shown.counters["police"] is not None and police is not None:
        yield from _counted_police(police, shown.counters["police"], shown.qos)


def _listed_police(
    typed: program_formats.PoliceConfig, resolved: program_formats.ResolvedPolice, qos: QosGeneration
) -> Iterator[str]:
    rate_form = typed.get("form") == "rate"
    as_typed = rate_form and qos.lists_rate_as_typed
    cir, bc, pir, be = ("rate", "burst", "peak-rate", "peak-burst") if rate_form else ("cir", "bc", "pir", "be")
    words = ["police"]
    for rate_word, rate, burst_word, burst, burst_bytes in (
        (cir, typed["cir"], bc, typed.get("bc"), resolved["bc_bytes"]),
        (pir, typed.get("pir"), be, typed.get("be"), resolved["be_bytes"]),
    ):
        if rate is not None and "percent" in rate:
            words.append(f"{rate_word} percent {percent_text(rate['percent'])}")
        elif rate is not None:
            words.append(f"{rate_word} {rate['bps']}" + (" bps" if rate_form and not as_typed else ""))
        if burst is not None and "ms" in burst:
            words.append(f"{burst_word} {burst['ms']} ms")
        elif burst_bytes is not None and not (as_typed and burst is None):
            words.append(f"{burst_word} {burst_bytes}" + (" bytes" if rate_form else ""))
    yield "     " + " ".join(words)
    actions = police_actions(typed)
    for colour, of_colour in actions.items():
        if colour == "violate" and typed.get("violate") is None:
            continue
        yield from (f"       {colour}-action {police_action(action)} " for action in of_colour)
    if (account := typed.get("account")) is not None and "user_defined" in account:
        cells = " atm" if account["user_defined"].get("atm") else ""
        yield f"       account user-defined {account['user_defined']['offset']}{cells}"
    for part in PARTS:
        yield from (f"     {line}" for line in part.show_policy_map_lines(resolved))


def _counted_police(
    config: program_formats.PoliceConfig, police: program_formats.PoliceCounters, qos: QosGeneration
) -> Iterator[str]:
    yield "police:"
    yield from ("    " + line for line in _police_parameters(config, police))
    actions = police_actions(config)
    rates = [f"conformed {format_policy_rate(police['conformed']['rate_bps'], qos)} bps"]
    yield from _colour_lines(
        "conformed", police["conformed"]["packets"], police["conformed"]["bytes"], actions["conform"]
    )
    yield from _colour_lines("exceeded", police["exceeded"]["packets"], police["exceeded"]["bytes"], actions["exceed"])
    rates.append(f"{qos.exceeded} {format_policy_rate(police['exceeded']['rate_bps'], qos)} bps")
    violated = police["violated"]
    if violated is not None:
        yield from _colour_lines("violated", violated["packets"], violated["bytes"], actions["violate"])
        rates.append(f"{qos.violated} {format_policy_rate(violated['rate_bps'], qos)} bps")
    yield "  " + ", ".join(rates)
    for part in PARTS:
        yield from part.show_interface_lines(police)


def _police_parameters(config: program_formats.PoliceConfig, police: program_formats.PoliceCounters) -> Iterator[str]:
    # The words of the form `police rate`; the peak line of that form is [I].
    rate_form = police["form"] == "rate"
    cir, bc, pir, be = ("rate", "burst", "peak-rate", "peak-burst") if rate_form else ("cir", "bc", "pir", "be")
    if police["cir_percent"] is not None:
        yield f"{cir} {percent_text(police['cir_percent'])} %" + _milliseconds_text(bc, config.get("bc"))
    first = f"{cir} {police['cir_bps']} bps, {bc} {police['bc_bytes']} bytes"
    if police["pir_bps"] is None:
        yield first if police["be_bytes"] is None else f"{first}, {be} {police['be_bytes']} bytes"
        return
    yield first
    if police["pir_percent"] is not None:
        yield f"{pir} {percent_text(police['pir_percent'])} %" + _milliseconds_text(be, config.get("be"))
    yield f"{pir} {police['pir_bps']} bps, {be} {police['be_bytes']} bytes"


def _milliseconds_text(word: str, burst: program_formats.PoliceBurst | None) -> str:
    if burst is None or "ms" not in burst:
        return ""
    return f" {word} {burst['ms']} ms"


def _colour_lines(
    colour: str, packets: int, size: int, actions: Sequence[program_formats.PoliceAction]
) -> Iterator[str]:
    yield f"  {colour} {packets} packets, {size} bytes; actions:"
    yield from (f"    {police_action(action)} " for action in actions)


def police_action(action: program_formats.PoliceAction) -> str:
    """Return the text of a policer's action, such as `transmit` or `set-dscp-transmit af21`."""
    if "value" not in action:
        return action["action"]
    value = dscp_text(action["value"]) if action["action"] == "set-dscp-transmit" else action["value"]
    return f"{action['action']} {value}"


def police_actions(police: program_formats.PoliceConfig) -> dict[Colour, Sequence[program_formats.PoliceAction]]:
    """Return the effective actions for each colour; the default of violate is that of exceed."""
    conform = police.get("conform") or _engine_actions(DEFAULT_CONFORM)
    exceed = police.get("exceed") or _engine_actions(DEFAULT_EXCEED)
    violate = police.get("violate") or exceed
    return {"conform": conform, "exceed": exceed, "violate": violate}
