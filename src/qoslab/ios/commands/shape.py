"""`shape` in a class of a policy-map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands import account
from qoslab.ios.commands.amounts import burst_text, percent_text, rate_config, rate_text
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.model.policy import Amount, PolicyClass, Shape
from qoslab.ios.registry import CLASS_LINES, ENGINE_CLASS, INPUT_RULES, SHOW_POLICY_MAP_CLASS, Layout
from qoslab.system import program_formats

SHAPE_OUTPUT_ONLY = "GTS : Can be enabled as an output feature only"

MIN_EXCESS_BURST = 256
"""Minimum excess burst in bits, other than 0."""


_SHAPE_HELP = {
    "shape": "Traffic Shaping",
    "average": "configure token bucket: CIR (bps) [Bc (bits) [Be (bits)]], send out Bc only per interval",
    "peak": "configure token bucket: CIR (bps) [Bc (bits) [Be (bits)]], send out Bc+Be per interval",
    "rate": "Target Bit Rate (bits per second)",
    "bc": "bits per interval, sustained",
    "be": "bits per interval, excess",
    "percent": "% of interface bandwidth for Committed information rate",
    "share": "Percentage",
    "bc-ms": "Sustained burst in milliseconds",
    "be-ms": "Excess burst in milliseconds",
    "ms": "milliseconds",
}


_SUFFIXED_HELP = {
    **_SHAPE_HELP,
    **account.HELP,
    "rate": "Target Bit Rate (bits per second), (postfix k, m, g optional)",
}


def _shape_syntax(top: str) -> str:
    return (
        f"shape (average|peak) (<rate:8000-{top}> [<bc:256-154400000> [<be:0-154400000>]]"
        "|percent <share:1-100> [<bc-ms:10-2000> ms [<be-ms:10-2000> ms]])"
    )


# The highest rates are from memory of the command line of each generation, not confirmed by a document; that of
# IOS-XE is from its YANG model.
@CONFIG.add("policy-class", _shape_syntax("154400000"), no=True, requires={"plain-rates"}, help=_SHAPE_HELP)
# Suffixes are documented for later images; the first such release is unknown [I].
@CONFIG.add(
    "policy-class",
    f"{_shape_syntax('1000000000kmg')} {account.SYNTAX}",
    no=True,
    requires={"shape-suffixes"},
    help=_SUFFIXED_HELP,
)
@CONFIG.add(
    "policy-class",
    f"{_shape_syntax('100000000000kmg')} {account.WIDE_SYNTAX}",
    no=True,
    requires={"shape-wide"},
    help=_SUFFIXED_HELP,
)
def _configure_shape(session: ConfigSession, args: Args) -> None:
    present = session.policy_class
    if args.unset:
        change_class(session, replace(present, shape=None))
        return
    rate, share = args.optional("rate", int), args.optional("share", int)
    amounts = [Amount(number, "bits") for name in ("bc", "be") for number in args.values(name, int)]
    amounts += [Amount(number, "ms") for name in ("bc-ms", "be-ms") for number in args.values(name, int)]
    if any(0 < number < MIN_EXCESS_BURST for number in args.values("be", int)):
        raise args.invalid_argument("be")
    shape = Shape(
        mode="average" if "average" in args else "peak",
        rate=Amount(rate, "bps") if rate is not None else Amount(share or 0, "percent"),
        bc=amounts[0] if amounts else None,
        be=amounts[1] if len(amounts) > 1 else None,
        account=account.parse_account(args),
    )
    change_class(session, replace(present, shape=shape))


# Later software has no such queue: queue-limit has taken its place there.
@CONFIG.add(
    "policy-class",
    "shape max-buffers <packets:1-4096>",
    no="shape max-buffers [<packets:1-4096>]",
    undo=Undo(key="shape max-buffers"),
    requires={"shape-buffers"},
    help={"shape": "Traffic Shaping", "max-buffers": "Set Maximum Buffer Limit", "packets": "Number of buffers"},
)
def _configure_max_buffers(session: ConfigSession, args: Args) -> None:
    packets = None if args.unset else args.value("packets", int)
    change_class(session, replace(session.policy_class, shape_buffers=packets))


@CLASS_LINES.register_family(40, family="router")
def _config_lines(each: PolicyClass, layout: Layout) -> Iterator[str]:
    if each.shape is not None:
        amounts = "".join(f" {burst_text(amount)}" for amount in (each.shape.bc, each.shape.be) if amount is not None)
        end = account.account_text(each.shape.account)
        yield f"{layout.queueing}shape {each.shape.mode} {rate_text(each.shape.rate)}{amounts}{end}"
    if each.shape_buffers is not None:
        yield f"{layout.queueing}shape max-buffers {each.shape_buffers}"


@ENGINE_CLASS.register_family(30)
def _engine_config(each: PolicyClass) -> program_formats.PolicyClassPart:
    shape = each.shape
    if shape is None:
        return {"shape": None, "shape_buffers": None}
    return {
        "shape_buffers": each.shape_buffers,
        "shape": {
            "mode": shape.mode,
            "rate": rate_config(shape.rate),
            "bc": _engine_burst(shape.bc),
            "be": _engine_burst(shape.be),
        },
    }


def _engine_burst(burst: Amount | None) -> program_formats.ShapeBurst | None:
    if burst is None:
        return None
    return {"ms": burst.number} if burst.unit == "ms" else {"bits": burst.number}


@INPUT_RULES.register_family(10)
def _refuse_input_shaper(each: PolicyClass) -> None:
    if each.shape is not None:
        raise RejectedError(SHAPE_OUTPUT_ONLY)


@SHOW_POLICY_MAP_CLASS.register_family(30)
def _show_policy_map_lines(
    config: program_formats.RouterConfig, typed: program_formats.PolicyClass, entry: program_formats.ResolvedClass
) -> Iterator[str]:
    if (shape := typed.get("shape")) is not None:
        yield from _listed_shape(shape)
        if (buffers := typed.get("shape_buffers")) is not None:
            # The wording is that of older outputs, in which the line above has these words [I].
            yield f"      Max. Buffers Limit {buffers} (Packets)"


def _listed_shape(shape: program_formats.ShapeConfig) -> Iterator[str]:
    yield f"      {shape['mode'].capitalize()} Rate Traffic Shaping"
    rate, bc, be = shape["rate"], shape.get("bc"), shape.get("be")
    text = f"cir {percent_text(rate['percent'])}%" if "percent" in rate else f"cir {rate['bps']} (bps)"
    for word, burst in (("bc", bc), ("be", be)):
        if burst is not None:
            text += f" {word} {burst['bits']} (bits)" if "bits" in burst else f" {word} {burst['ms']} (msec)"
    yield f"      {text}"
