"""Exec commands `show ip sla …`."""

from __future__ import annotations

from qoslab.ios.cli.grammar import Args
from qoslab.ios.login import ANY_MODE, EXEC, ExecSession
from qoslab.ios.show.ip_sla import (
    output_format,
    show_aggregated,
    show_configuration,
    show_responder,
    show_statistics,
    show_summary,
)

_HELP = {
    "sla": "IP Service Level Agreement (SLA)",
    "statistics": "IP SLAs Latest Statistics",
    "aggregated": "IP SLAs Statistics Aggregated",
    "number": "Entry number",
    "details": "Detailed output",
    "summary": "IP SLAs Statistics Summary",
    "configuration": "IP SLAs Configuration",
    "responder": "IP SLAs Responder Information",
}


@EXEC.add(ANY_MODE, "show ip sla statistics [<number:1-2147483647>] [details]", help=_HELP)
async def _show_statistics(session: ExecSession, args: Args) -> str:
    device = session.device
    reports = (await session.environment.ip_sla())["operations"]
    number = args.optional("number", int)
    return show_statistics(
        device.ip_sla, reports, output_format(device.hardware.version), number=number, details="details" in args
    )


@EXEC.add(ANY_MODE, "show ip sla statistics aggregated [<number:1-2147483647>]", help=_HELP)
async def _show_aggregated(session: ExecSession, args: Args) -> str:
    device = session.device
    reports = (await session.environment.ip_sla())["operations"]
    return show_aggregated(
        device.ip_sla, reports, output_format(device.hardware.version), number=args.optional("number", int)
    )


@EXEC.add(ANY_MODE, "show ip sla summary", help=_HELP)
async def _show_summary(session: ExecSession, args: Args) -> str:
    router = session.environment
    return show_summary(session.device.ip_sla, (await router.ip_sla())["operations"], router.current_time())


@EXEC.add(ANY_MODE, "show ip sla configuration [<number:1-2147483647>]", help=_HELP)
async def _show_configuration(session: ExecSession, args: Args) -> str:
    return show_configuration(session.device.ip_sla, number=args.optional("number", int))


@EXEC.add(ANY_MODE, "show ip sla responder", help=_HELP)
async def _show_responder(session: ExecSession, args: Args) -> str:
    return show_responder((await session.environment.ip_sla())["responder"])
