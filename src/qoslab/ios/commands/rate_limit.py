"""`rate-limit`: committed access rate of an interface, and `access-list rate-limit`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.ios_names import dscp_text
from qoslab.ios.model.rate_limit import LimitAction, LimitMatch, RateLimit, RateLimitList
from qoslab.ios.registry import BLOCKS, ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.system import program_formats

MAX_LINES = 100
"""Maximum lines of an interface in one direction, from Cisco's configuration guide [I]."""
MIN_BURST_DIVISOR = 2000
"""Divisor from the rate in b/s to the minimum normal burst in bytes, from the command reference."""

_ACTIONS: dict[str, LimitAction] = {
    "transmit": LimitAction("transmit"),
    "drop": LimitAction("drop"),
    "continue": LimitAction("continue"),
    "set-dscp-transmit": LimitAction("transmit", "dscp"),
    "set-dscp-continue": LimitAction("continue", "dscp"),
    "set-prec-transmit": LimitAction("transmit", "prec"),
    "set-prec-continue": LimitAction("continue", "prec"),
    "set-qos-transmit": LimitAction("transmit", "qos"),
    "set-qos-continue": LimitAction("continue", "qos"),
}

# Our own wording: the command reference gives the limits, but no output of the refusal is known.
BURST_TOO_SMALL = "% Normal burst must be at least {least} bytes at {rate} bps"
TOO_MANY_LINES = "% At most {limit} rate-limit lines in one direction"

_ACTION = (
    "(transmit|drop|continue|set-dscp-transmit <{0}:dscp>|set-dscp-continue <{0}:dscp>"
    "|set-prec-transmit <{0}:0-7>|set-prec-continue <{0}:0-7>|set-qos-transmit <{0}:0-99>|set-qos-continue <{0}:0-99>)"
)
_SYNTAX = (
    "rate-limit (input|output) [access-group (<list:1-2699>|rate-limit <rate-list:0-99>)|dscp <code:dscp>"
    "|qos-group <group:0-99>] <rate:8000-2000000000> <normal:1000-512000000> <extended:2000-1024000000>"
    f" conform-action {_ACTION.format('conform')} exceed-action {_ACTION.format('exceed')}"
)
_HELP = {
    "rate-limit": "Rate Limit",
    "input": "Rate limit on input",
    "output": "Rate limit on output",
    "access-group": "Match access list",
    "list": "IP access list index",
    "rate-list": "Rate-limit access list index",
    "dscp": "Match dscp value",
    "code": "dscp",
    "qos-group": "Match qos-group ID",
    "group": "Qos-group ID",
    "rate": "Bits per second",
    "normal": "Normal burst bytes",
    "extended": "Maximum burst bytes",
    "conform-action": "action when rate is less than the limit",
    "exceed-action": "action when rate exceeds the limit",
    "transmit": "transmit packet",
    "drop": "drop packet",
    "continue": "scan other rate limits",
    "set-dscp-transmit": "set dscp and transmit it",
    "set-dscp-continue": "set dscp, scan other rate limits",
    "set-prec-transmit": "rewrite packet precedence and transmit it",
    "set-prec-continue": "rewrite packet precedence, scan other rate limits",
    "set-qos-transmit": "set qos-group and transmit it",
    "set-qos-continue": "set qos-group, scan other rate limits",
    "conform": "new value",
    "exceed": "new value",
}


@router_command("interface", _SYNTAX, no=_SYNTAX, undo=Undo(_SYNTAX, ordered=lambda args: True), help=_HELP)
def _configure_rate_limit(session: ConfigSession, args: Args) -> None:
    interface, line = session.interface, _parse_line(args)
    if args.unset:
        interface.rate_limits = tuple(each for each in interface.rate_limits if each != line)
        return
    least = line.rate_bps // MIN_BURST_DIVISOR
    if line.normal_burst < least:
        raise RejectedError(BURST_TOO_SMALL.format(least=least, rate=line.rate_bps))
    if line in interface.rate_limits:
        return
    if sum(each.direction == line.direction for each in interface.rate_limits) >= MAX_LINES:
        raise RejectedError(TOO_MANY_LINES.format(limit=MAX_LINES))
    # In the order of the output: input first.
    lines = (*interface.rate_limits, line)
    interface.rate_limits = tuple(sorted(lines, key=lambda each: each.direction))


def _parse_line(args: Args) -> RateLimit:
    match, number = _match(args)
    return RateLimit(
        "input" if "input" in args else "output",
        match,
        number,
        args.value("rate", int),
        args.value("normal", int),
        args.value("extended", int),
        _parse_action(args, "conform"),
        _parse_action(args, "exceed"),
    )


def _match(args: Args) -> tuple[LimitMatch, int]:
    names: tuple[tuple[str, LimitMatch], ...] = (
        ("list", "access-group"),
        ("rate-list", "rate-limit"),
        ("code", "dscp"),
        ("group", "qos-group"),
    )
    for name, match in names:
        number = args.optional(name, int)
        if number is not None:
            return match, number
    return "all", 0


def _parse_action(args: Args, colour: Literal["conform", "exceed"]) -> LimitAction:
    word = args.keywords[args.keywords.index(f"{colour}-action") + 1]
    return replace(_ACTIONS[word], value=args.optional(colour, int) or 0)


def action_text(action: LimitAction) -> str:
    """Return an action as printed by IOS, such as `set-prec-continue 5`."""
    if action.field is None:
        return action.then
    value = dscp_text(action.value) if action.field == "dscp" else str(action.value)
    return f"set-{action.field}-{action.then} {value}"


def match_text(line: RateLimit) -> str:
    """Return the match of a line as in the configuration; empty if it meters all packets."""
    match line.match:
        case "all":
            return ""
        case "rate-limit":
            return f"access-group rate-limit {line.number}"
        case "dscp":
            return f"dscp {dscp_text(line.number)}"
        case _:
            return f"{line.match} {line.number}"


def _rate_limit_text(line: RateLimit) -> str:
    words = ("rate-limit", line.direction, match_text(line), str(line.rate_bps), str(line.normal_burst))
    actions = f"conform-action {action_text(line.conform)} exceed-action {action_text(line.exceed)}"
    return " ".join(filter(None, (*words, str(line.extended_burst), actions)))


@INTERFACE_LINES.register_family(25, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    yield from (_rate_limit_text(line) for line in interface.rate_limits)


@ENGINE_INTERFACE.register_family(52, family="router")
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    part: program_formats.InterfaceConfigPart = {}
    lines = {
        direction: [_engine_line(device, each) for each in interface.rate_limits if each.direction == direction]
        for direction in ("input", "output")
    }
    if lines["input"]:
        part["rate_limit_input"] = lines["input"]
    if lines["output"]:
        part["rate_limit_output"] = lines["output"]
    return part


def _engine_line(device: Device, line: RateLimit) -> program_formats.RateLimitConfig:
    return {
        "match": _engine_match(device, line),
        "rate_bps": line.rate_bps,
        "normal_burst_bytes": line.normal_burst,
        "extended_burst_bytes": line.extended_burst,
        "conform": _engine_action(line.conform),
        "exceed": _engine_action(line.exceed),
    }


def _engine_match(device: Device, line: RateLimit) -> program_formats.Criterion | None:
    match line.match:
        case "all":
            return None
        case "access-group":
            return {"type": "access_group", "name": str(line.number)}
        case "dscp":
            return {"type": "dscp", "values": [line.number]}
        case "qos-group":
            return {"type": "qos_group", "value": line.number}
        case "rate-limit":
            found = device.rate_limit_lists.get(line.number)
            precedences = () if found is None else found.precedences
            # As with an access list that is not configured: no match.
            return (
                {"type": "precedence", "values": list(precedences)} if precedences else {"type": "any", "negate": True}
            )


def _engine_action(action: LimitAction) -> program_formats.RateLimitAction:
    fields: dict[str, program_formats.SetField] = {"dscp": "dscp", "prec": "precedence", "qos": "qos_group"}
    if action.field is None:
        return {"then": action.then}
    return {"then": action.then, "set": {"field": fields[action.field], "value": action.value}}


# The lists of precedences.


@router_command(
    "config",
    "access-list rate-limit <number:0-99> (<precedence:0-7>|mask <bits:hexadecimal-octet>)",
    no="access-list rate-limit <number:0-99> [<precedence:0-7>|mask <bits:hexadecimal-octet>]",
    undo=Undo(referred=4),
    help={
        "access-list": "Add an access list entry",
        "rate-limit": "Simple rate-limit specific access list",
        "number": "Precedence ACL index",
        "precedence": "Precedence",
        "mask": "Use precedence bitmask",
        "bits": "Precedence bit mask",
    },
)
def _configure_rate_limit_list(session: ConfigSession, args: Args) -> None:
    number = args.value("number", int)
    lists = session.device.rate_limit_lists
    if args.unset:
        lists.pop(number, None)
    else:
        lists[number] = RateLimitList(number, args.optional("precedence", int), args.optional("bits", int))


@BLOCKS.register_family(112, family="router")
def _config_blocks(device: Device) -> Iterator[list[str]]:
    lists = sorted(device.rate_limit_lists.values(), key=lambda each: each.number)
    if lists:
        yield [f"access-list rate-limit {each.number} {_list_text(each)}" for each in lists]


def _list_text(each: RateLimitList) -> str:
    return str(each.precedence) if each.mask is None else f"mask {each.mask:02X}"
