"""`police` in all its forms, on one line or with the actions in a mode of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.policy import COLOURS, ActionName, Amount, Colour, Police, PoliceAction

_RATE = "8000-64000000000"
_BURST = "1000-512000000"
# The range of percent-form bursts is that of the shaper's (remembered, not confirmed by a document).
_BURST_MS = "1-2000"
_ACTION = (
    "(transmit|drop|set-dscp-transmit <dscp:dscp>|set-prec-transmit <precedence:precedence>"
    "|set-qos-transmit <group:0-99>|set-cos-transmit <cos:0-7>)"
)
_ACTIONS = f"[conform-action {_ACTION} [exceed-action {_ACTION} [violate-action {_ACTION}]]]"
_HELP = {
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
    "cos": "new cos value",
}

# The wording is modelled on IOS, not taken from a printout.
ONE_BUCKET = "% A dynamic bucket is the only one of its policer: leave out bc, pir, be and violate-action"
PEAK_BELOW_COMMITTED = "PIR must not be less than CIR"

_ACTION_NAMES: tuple[ActionName, ...] = (
    "transmit",
    "drop",
    "set-dscp-transmit",
    "set-prec-transmit",
    "set-qos-transmit",
    "set-cos-transmit",
)


# Entered again with the same figures, a policer keeps the actions of its sub-mode.
_UNDO = Undo(key="police", afresh=True)


@CONFIG.add(
    "policy-class",
    f"police <committed:{_RATE}> [<committed-burst:{_BURST}> [<excess-burst:{_BURST}>]] {_ACTIONS}",
    no=True,
    undo=_UNDO,
    requires={"router"},
    help=_HELP,
)
@CONFIG.add(
    "policy-class",
    f"police cir <committed:{_RATE}> [bc <committed-burst:{_BURST}>]"
    f" [be <excess-burst:{_BURST}>] [pir <peak:{_RATE}> [be <excess-burst:{_BURST}>]] {_ACTIONS}",
    no=True,
    undo=_UNDO,
    requires={"router"},
    help=_HELP,
)
@CONFIG.add(
    "policy-class",
    f"police cir percent <committed-share:1-100> [bc <committed-burst:{_BURST_MS}> ms]"
    f" [be <excess-burst:{_BURST_MS}> ms] [pir percent <peak-share:1-100> [be <excess-burst:{_BURST_MS}> ms]]"
    f" {_ACTIONS}",
    no=True,
    undo=_UNDO,
    requires={"router"},
    help=_HELP,
)
@CONFIG.add(
    "policy-class",
    f"police rate <committed:{_RATE}> [bps] [burst <committed-burst:{_BURST}>]"
    f" [peak-rate <peak:{_RATE}> [bps] [peak-burst <excess-burst:{_BURST}>]] {_ACTIONS}",
    no=True,
    undo=_UNDO,
    requires={"router"},
    help=_HELP,
)
@CONFIG.add(
    "policy-class",
    f"police rate percent <committed-share:1-100> [burst <committed-burst:{_BURST_MS}> ms]"
    f" [peak-rate percent <peak-share:1-100> [peak-burst <excess-burst:{_BURST_MS}> ms]] {_ACTIONS}",
    no=True,
    undo=_UNDO,
    requires={"router"},
    help=_HELP,
)
def _police(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if args.unset:
        change_class(session, replace(present, police=None))
        return
    police = _parameters(args)
    typed = _inline_actions(args)
    old = present.police
    if typed:
        for colour, actions in typed.items():
            police = police.with_actions(colour, actions)
    elif old is not None and replace(old, conform=None, exceed=None, violate=None, dynamic=None) == police:
        # The same policer again: what its sub-mode holds stays.
        police = old
    if old is not None:
        police = replace(police, dynamic=old.dynamic)
    change_class(session, replace(present, police=with_one_bucket(police)))
    if not typed:
        session.enter("police", "police")


def with_one_bucket(police: Police) -> Police:
    """Return the policer. RejectedError where its bucket finds its own size and it has further figures or buckets."""
    if police.dynamic is not None and (police.bc, police.pir, police.be, police.violate) != (None, None, None, None):
        raise RejectedError(ONE_BUCKET)
    return police


def _parameters(args: Args) -> Police:
    """Return the policer that a line says, without its actions."""
    committed, share = args.optional("committed", int), args.optional("committed-share", int)
    peak, peak_share = args.optional("peak", int), args.optional("peak-share", int)
    bc, be = args.optional("committed-burst", int), args.optional("excess-burst", int)
    if len(args.values("excess-burst", int)) > 1:
        raise args.invalid_repeat("excess-burst", 1)
    unit: Literal["bytes", "ms"] = "bytes" if share is None else "ms"
    police = Police(
        form="cir" if "cir" in args else "rate" if "rate" in args else "bps",
        cir=Amount(committed, "bps") if committed is not None else Amount(share or 0, "percent"),
        bc=None if bc is None else Amount(bc, unit),
        pir=Amount(peak, "bps") if peak is not None else None if peak_share is None else Amount(peak_share, "percent"),
        be=None if be is None else Amount(be, unit),
    )
    if police.pir is not None and police.pir.number < police.cir.number:
        raise RejectedError(PEAK_BELOW_COMMITTED)
    return police


def _inline_actions(args: Args) -> dict[Colour, tuple[PoliceAction, ...]]:
    """Return the actions on the line, by colour."""
    found: dict[Colour, tuple[PoliceAction, ...]] = {}
    colour: Colour | None = None
    items = args.ordered()
    for index, item in enumerate(items):
        for each in COLOURS:
            if item.name == f"{each}-action":
                colour = each
        name = next((each for each in _ACTION_NAMES if item.value == each), None)
        if colour is not None and name is not None:
            value = items[index + 1].value if name not in ("transmit", "drop") else None
            found[colour] = (PoliceAction(name, value if isinstance(value, int) else None),)
    return found


def _one_action(colour: Colour) -> str:
    return f"{colour}-action {_ACTION}"


@CONFIG.add("police", _one_action("conform"), no=_one_action("conform"), help=_HELP)
@CONFIG.add("police", _one_action("exceed"), no=_one_action("exceed"), help=_HELP)
@CONFIG.add("police", _one_action("violate"), no=_one_action("violate"), help=_HELP)
def _action(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if present.police is None:
        # Another session removed it meanwhile.
        raise args.invalid(args.keywords[0])
    [(colour, (action,))] = _inline_actions(args).items()
    have = present.police.actions(colour) or ()
    actions = tuple(each for each in have if each != action) or None if args.unset else _with(have, action)
    change_class(session, replace(present, police=with_one_bucket(present.police.with_actions(colour, actions))))


def _with(have: tuple[PoliceAction, ...], action: PoliceAction) -> tuple[PoliceAction, ...]:
    """Return the actions with one more: several markings go together, `transmit` and `drop` stand alone."""
    if action.action in ("transmit", "drop"):
        return (action,)
    others = (each for each in have if each.action not in ("transmit", "drop", action.action))
    return tuple(sorted((*others, action), key=lambda each: _ACTION_NAMES.index(each.action)))
