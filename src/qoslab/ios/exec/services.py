"""Exec commands about services and tables, which inventory and monitoring tools send to every device."""

from __future__ import annotations

from ipaddress import IPv4Address

from qoslab.ios.cli.grammar import Args
from qoslab.ios.exec.automation_tools import flash_bytes, nvram_bytes
from qoslab.ios.login import ANY_MODE, EXEC, ExecSession
from qoslab.ios.show import services
from qoslab.ios.show.ip import show_ip_route_address, show_ip_route_summary


@EXEC.add(ANY_MODE, "show cdp", help={"cdp": "CDP information"})
async def _show_cdp(session: ExecSession, args: Args) -> str:
    return services.show_cdp(session.device)


@EXEC.add(ANY_MODE, "show lldp", help={"lldp": "LLDP information"})
async def _show_lldp(session: ExecSession, args: Args) -> str:
    return services.show_lldp(session.device)


@EXEC.add(ANY_MODE, "show hosts", help={"hosts": "IP domain-name, lookup style, nameservers, and host table"})
async def _show_hosts(session: ExecSession, args: Args) -> str:
    return services.show_hosts(session.device)


@EXEC.add(
    ANY_MODE,
    "show ntp (status|associations)",
    help={"ntp": "Network time protocol", "status": "NTP status", "associations": "NTP associations"},
)
async def _show_ntp(session: ExecSession, args: Args) -> str:
    return services.NO_NTP


@EXEC.add(ANY_MODE, "show snmp", help={"snmp": "snmp statistics"})
async def _show_snmp(session: ExecSession, args: Args) -> str:
    return services.NO_SNMP


@EXEC.add(ANY_MODE, "show ip ssh", help={"ssh": "Information on SSH"})
async def _show_ip_ssh(session: ExecSession, args: Args) -> str:
    return services.show_ip_ssh()


@EXEC.add(ANY_MODE, "show [ip] vrf", requires={"router"}, help={"vrf": "VPN Routing/Forwarding instance information"})
async def _show_vrf(session: ExecSession, args: Args) -> str:
    return services.show_vrf(ip="ip" in args)


@EXEC.add(ANY_MODE, "show protocols", help={"protocols": "Active network routing protocols"})
async def _show_protocols(session: ExecSession, args: Args) -> str:
    return services.show_protocols(session.device, await session.environment.ports())


@EXEC.add(ANY_MODE, "show ip protocols", help={"protocols": "IP routing protocol process parameters and statistics"})
async def _show_ip_protocols(session: ExecSession, args: Args) -> str:
    return "*** IP Routing is NSF aware ***\n\n"


@EXEC.add(ANY_MODE, "show file systems", help={"file": "Show filesystem information", "systems": "List filesystems"})
async def _show_file_systems(session: ExecSession, args: Args) -> str:
    return services.show_file_systems(flash_bytes(session), nvram_bytes(session))


@EXEC.add(
    ANY_MODE,
    "show ipv6 neighbors",
    requires={"router"},
    help={"ipv6": "IPv6 information", "neighbors": "Show IPv6 neighbor cache entries"},
)
async def _show_ipv6_neighbors(session: ExecSession, args: Args) -> str:
    return services.show_ipv6_neighbors(await session.environment.neighbours())


@EXEC.add(ANY_MODE, "show ip route summary", help={"route": "IP routing table", "summary": "Summary of all routes"})
async def _show_route_summary(session: ExecSession, args: Args) -> str:
    return show_ip_route_summary(await session.environment.routes())


@EXEC.add(
    ANY_MODE,
    "show ip route <address:address>",
    help={"route": "IP routing table", "address": "Network to display information about"},
)
async def _show_route_of(session: ExecSession, args: Args) -> str:
    return show_ip_route_address(await session.environment.routes(), args.value("address", IPv4Address))
