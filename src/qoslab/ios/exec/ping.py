"""Exec command `ping`: ICMP echo from the router."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv6Address

from qoslab.ios.cli.grammar import Args
from qoslab.ios.environment import PingOptions, PingOutcome
from qoslab.ios.login import ANY_MODE, EXEC, ExecSession
from qoslab.ios.model.ios_names import ipv6_text

_LINE = 70
"""Reply marks per line of output."""
_HELP = {
    "ping": "Send echo messages",
    "address": "Ping destination address",
    "repeat": "specify repeat count",
    "count": "Repeat count",
    "size": "specify datagram size",
    "timeout": "specify timeout interval",
    "source": "specify source address or name",
}


@EXEC.add(
    ANY_MODE,
    "ping [ip] <address:address>"
    " [repeat <count:1-2147483647>] [size <size:36-18024>] [timeout <timeout:0-3600>] [source <source:address>]"
    " [df-bit] [tos <tos:0-255>]",
    help={
        **_HELP,
        "ip": "IP echo",
        "df-bit": "enable do not fragment bit in IP header",
        "tos": "specify type of service value",
    },
)
async def _execute_ping(session: ExecSession, args: Args) -> None:
    await _run(session, _ping_options(args, IPv4Address))


@EXEC.add(
    ANY_MODE,
    "ping [ipv6] <address:ipv6-address>"
    " [repeat <count:1-2147483647>] [size <size:48-18024>] [timeout <timeout:0-3600>] [source <source:ipv6-address>]",
    requires={"router"},
    help={**_HELP, "ipv6": "IPv6 echo"},
)
async def _execute_ping_ipv6(session: ExecSession, args: Args) -> None:
    await _run(session, _ping_options(args, IPv6Address))


def _ping_options(args: Args, family: type[IPv4Address] | type[IPv6Address]) -> PingOptions:
    """Return the typed options; options that the address family lacks cannot be typed."""
    return PingOptions(
        address=args.value("address", family),
        count=_given_value(args, "count", 5),
        size=_given_value(args, "size", 100),
        timeout_s=float(_given_value(args, "timeout", 2)),
        source=args.optional("source", family),
        dont_fragment="df-bit" in args,
        tos=_given_value(args, "tos", 0),
    )


async def _run(session: ExecSession, options: PingOptions) -> None:
    """Send all requests unless the terminal interrupts, and print a summary."""
    terminal = session.terminal
    terminal.write("\nType escape sequence to abort.\n")
    terminal.write(
        f"Sending {options.count}, {options.size}-byte ICMP Echos to {ipv6_text(options.address)},"
        f" timeout is {options.timeout_s:g} seconds:\n"
    )
    if options.source is not None:
        # IPv6 has a line end and no blank.
        blank = " " if options.source.version == 4 else ""
        terminal.write(f"Packet sent with a source address of {ipv6_text(options.source)}{blank}\n")
    if options.dont_fragment:
        terminal.write("Packet sent with the DF bit set\n")
    outcomes: list[PingOutcome] = []
    work = asyncio.ensure_future(_send(session, options, outcomes))
    interrupt = asyncio.ensure_future(terminal.wait_for_interrupt())
    try:
        await asyncio.wait({work, interrupt}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        interrupt.cancel()
        work.cancel()
        await asyncio.gather(work, interrupt, return_exceptions=True)
    if work.cancelled():
        terminal.take_interrupt()
    elif (error := work.exception()) is not None:
        raise error
    terminal.write(("\n" if len(outcomes) % _LINE else "") + _ping_summary(outcomes) + "\n")


async def _send(session: ExecSession, options: PingOptions, outcomes: list[PingOutcome]) -> None:
    async for outcome in session.environment.ping(options):
        outcomes.append(outcome)
        session.terminal.write({"timeout": ".", "unreachable": "U"}.get(str(outcome), "!"))
        if len(outcomes) % _LINE == 0:
            session.terminal.write("\n")


def _ping_summary(outcomes: list[PingOutcome]) -> str:
    times = [outcome for outcome in outcomes if isinstance(outcome, float)]
    sent = len(outcomes)
    percent = 100 * len(times) // sent if sent else 0
    text = f"Success rate is {percent} percent ({len(times)}/{sent})"
    if not times:
        return text
    # IOS counts whole milliseconds and prints 1 for less.
    low, mean, high = (max(1, round(1000 * t)) for t in (min(times), sum(times) / len(times), max(times)))
    return f"{text}, round-trip min/avg/max = {low}/{mean}/{high} ms"


def _given_value(args: Args, name: str, default: int) -> int:
    value = args.optional(name, int)
    return default if value is None else value
