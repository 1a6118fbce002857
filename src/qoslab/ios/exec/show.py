"""Exec commands `show …` that read the live router."""

from __future__ import annotations

from ipaddress import IPv4Address

from qoslab.ios.cli.grammar import Args
from qoslab.ios.login import ANY_MODE, EXEC, ExecSession
from qoslab.ios.show.access_lists import show_access_lists, show_object_groups
from qoslab.ios.show.atm import show_atm_pvc
from qoslab.ios.show.interfaces import InterfaceView, show_ip_interface_brief, unwired_counters
from qoslab.ios.show.ip import show_arp, show_ip_route
from qoslab.ios.show.ip_interface import show_ip_interface, show_ipv6_interface
from qoslab.ios.show.ipv6 import show_ipv6_interface_brief, show_ipv6_route
from qoslab.ios.show.queue_lists import show_queueing_custom, show_queueing_priority
from qoslab.ios.show.queueing import (
    show_controllers_serial,
    show_queue,
    show_queueing,
    show_queueing_fair,
    show_queueing_interface,
    show_queueing_random_detect,
)
from qoslab.ios.show.rate_limit import show_rate_limit
from qoslab.ios.show.subinterfaces import cleared_text, show_subinterface, show_vlans
from qoslab.ios.show.system import show_clock, show_processes_cpu, show_version
from qoslab.ios.show.traffic_shape import show_traffic_shape, show_traffic_shape_queue, show_traffic_shape_statistics
from qoslab.system import program_formats


@EXEC.add(ANY_MODE, "show version", help={"version": "System hardware and software status"})
async def _show_version(session: ExecSession, args: Args) -> str:
    router = session.environment
    return show_version(
        router.device,
        router.chassis,
        router.software,
        now=router.current_time(),
        booted=router.boot_time,
        reloaded=router.was_reloaded,
    )


@EXEC.add(
    ANY_MODE,
    "show clock [detail]",
    help={"clock": "Display the system clock", "detail": "Display detailed information"},
)
async def _show_clock(session: ExecSession, args: Args) -> str:
    return show_clock(session.environment.current_time()) + ("No time source\n" if "detail" in args else "")


@EXEC.add(
    ANY_MODE,
    "show processes cpu [sorted [1min|5min|5sec]]",
    help={
        "processes": "Active process statistics",
        "cpu": "Show CPU use per process",
        "sorted": "Show sorted output based on percentage of usage",
        "1min": "Sort based on 1 minute utilization",
        "5min": "Sort based on 5 minutes utilization",
        "5sec": "Sort based on 5 seconds utilization",
    },
)
async def _show_processes_cpu(session: ExecSession, args: Args) -> str:
    return show_processes_cpu(await session.environment.cpu())


@EXEC.add(ANY_MODE, "show interfaces [<name:interface>]", help={"interfaces": "Interface status and configuration"})
async def _show_interfaces(session: ExecSession, args: Args) -> str:
    router, device = session.environment, session.device
    wanted = session.known_interface(args)
    counters = (await router.counters())["interfaces"]
    ports, activity = await router.ports(), await router.activity()
    kbit = "Kbit" if device.hardware.version.startswith("12.") else "Kbit/sec"
    return "".join(
        show_subinterface(
            device,
            interface,
            router.chassis,
            ports.get(interface.parent),
            cleared_text(router.current_time(), router.counters_cleared_at(name)),
            kbit,
        )
        if interface.parent is not None
        else InterfaceView(
            interface=interface,
            chassis=router.chassis,
            port=ports.get(name),
            counters=counters[name] if name in ports else unwired_counters(interface, router.chassis),
            now=router.current_time(),
            cleared=router.counters_cleared_at(name),
            activity=activity[name],
            qos=device.hardware.qos,
            kbit=kbit,
            circuit=device.with_circuit(name).circuit is not None,
        ).render()
        for name, interface in device.interfaces.items()
        if wanted in (None, name)
    )


@EXEC.add(
    ANY_MODE,
    "show interfaces [<name:interface>] rate-limit",
    requires={"router"},
    help={"interfaces": "Interface status and configuration", "rate-limit": "Show interface rate-limit info"},
)
async def _show_rate_limit(session: ExecSession, args: Args) -> str:
    counters = (await session.environment.counters())["interfaces"]
    return show_rate_limit(session.device, counters, interface=session.known_interface(args))


@EXEC.add(
    ANY_MODE,
    "show vlans [<vlan:1-4094>]",
    requires={"router"},
    help={"vlans": "Virtual LANs Information", "vlan": "Vlan ID"},
)
async def _show_vlans(session: ExecSession, args: Args) -> str:
    counters = (await session.environment.counters())["interfaces"]
    return show_vlans(session.device, counters, args.optional("vlan", int))


_QUEUEING = {"queueing": "Show queueing configuration"}


@EXEC.add(
    ANY_MODE,
    "show queueing [custom|fair|priority|random-detect]",
    requires={"router"},
    help={
        **_QUEUEING,
        "custom": "Custom queueing list configuration",
        "fair": "Fair queueing configuration",
        "priority": "Priority queueing list configuration",
        "random-detect": "Random early detection configuration",
    },
)
async def _show_queueing(session: ExecSession, args: Args) -> str:
    if "custom" in args:
        return show_queueing_custom(session.device)
    if "priority" in args:
        return show_queueing_priority(session.device)
    counters = (await session.environment.counters())["interfaces"]
    if "random-detect" in args:
        return show_queueing_random_detect(counters)
    show = show_queueing_fair if "fair" in args else show_queueing
    return show(session.device, counters)


@EXEC.add(ANY_MODE, "show queue <name:interface>", requires={"router"}, help={"queue": "Show queue contents"})
async def _show_queue(session: ExecSession, args: Args) -> str:
    name = session.known_interface(args) or ""
    return show_queue(
        session.device.interfaces[name], await _interface_counters(session, name), session.device.hardware.qos
    )


@EXEC.add(
    ANY_MODE,
    "show traffic-shape [queue|statistics] [<name:interface>]",
    requires={"router"},
    help={
        "traffic-shape": "traffic rate shaping configuration",
        "queue": "queue contents",
        "statistics": "traffic shaping statistics",
    },
)
async def _show_traffic_shape(session: ExecSession, args: Args) -> str:
    counters = (await session.environment.counters())["interfaces"]
    show = show_traffic_shape
    if "queue" in args:
        show = show_traffic_shape_queue
    elif "statistics" in args:
        show = show_traffic_shape_statistics
    return show(session.device, counters, interface=session.known_interface(args))


@EXEC.add(
    ANY_MODE,
    "show queueing interface <name:interface>",
    requires={"router"},
    help={**_QUEUEING, "interface": "Show interface queueing"},
)
async def _show_queueing_interface(session: ExecSession, args: Args) -> str:
    name = session.known_interface(args) or ""
    if "." in name:
        # Packets are queued at the port only.
        raise args.invalid_argument("name")
    return show_queueing_interface(
        session.device.interfaces[name], await _interface_counters(session, name), session.device.hardware.qos
    )


@EXEC.add(
    ANY_MODE,
    "show controllers <name:interface>",
    requires={"router"},
    help={"controllers": "Interface controller status"},
)
async def _show_controllers(session: ExecSession, args: Args) -> str:
    name = session.known_interface(args) or ""
    interface = session.device.interfaces[name]
    if not interface.is_serial or interface.parent is not None:
        # The controller data of an Ethernet port is not known.
        raise args.invalid_argument("name")
    return show_controllers_serial(interface, await _interface_counters(session, name), session.environment.chassis)


@EXEC.add(
    ANY_MODE,
    "show atm pvc <circuit:circuit>",
    requires={"router"},
    help={"atm": "ATM information", "pvc": "ATM PVC information", "circuit": "VPI/VCI value(slash required)"},
)
async def _show_atm_pvc(session: ExecSession, args: Args) -> str:
    name, router = args.value("circuit", str), session.environment
    wired = (await router.counters())["interfaces"]
    port = next((port for port, each in session.device.circuits().items() if each.circuit_name == name), "")
    return show_atm_pvc(session.device, name, wired.get(port))


async def _interface_counters(session: ExecSession, name: str) -> program_formats.InterfaceCounters:
    """Return the counters of an interface, with or without a cable."""
    router = session.environment
    counters = (await router.counters())["interfaces"]
    return (
        counters[name]
        if name in await router.ports()
        else unwired_counters(session.device.interfaces[name], router.chassis)
    )


@EXEC.add(
    ANY_MODE,
    "show ip interface brief",
    help={
        "interface": "IP interface status and configuration",
        "brief": "Brief summary of IP status and configuration",
    },
)
async def _show_ip_interface_brief(session: ExecSession, args: Args) -> str:
    return show_ip_interface_brief(session.device, await session.environment.ports(), _startup_addressed(session))


def _startup_addressed(session: ExecSession) -> frozenset[str]:
    """Return the interfaces that still have their address from the router's start."""
    device, boot = session.device, session.environment.boot_device
    return frozenset(
        name
        for name, interface in device.interfaces.items()
        if name in boot.interfaces and boot.interfaces[name].address == interface.address
    )


@EXEC.add(
    ANY_MODE,
    "show ip interface [<name:interface>|<own:host-interface>]",
    help={"interface": "IP interface status and configuration", "own": "Interface type and number"},
)
async def _show_ip_interface(session: ExecSession, args: Args) -> str:
    own = args.optional("own", str)
    if own is not None and own not in session.device.host_interfaces:
        raise args.invalid_argument("own")
    name = session.known_interface(args) or own
    return show_ip_interface(session.device, await session.environment.ports(), _startup_addressed(session), name)


@EXEC.add(
    ANY_MODE,
    "show ip route [connected|static]",
    help={"route": "IP routing table", "connected": "Connected", "static": "Static routes"},
)
async def _show_ip_route(session: ExecSession, args: Args) -> str:
    source = "connected" if "connected" in args else "static" if "static" in args else None
    return show_ip_route(await session.environment.routes(), source)


@EXEC.add(
    ANY_MODE,
    "show [ip] arp [<name:interface>|<address:address>]",
    help={"arp": "ARP table", "address": "IP address or hostname of ARP entry"},
)
async def _show_arp(session: ExecSession, args: Args) -> str:
    router, address = session.environment, args.optional("address", IPv4Address)
    wanted = session.known_interface(args) if address is None else str(address)
    return show_arp(session.device, await router.ports(), await router.neighbours(), wanted)


@EXEC.add(
    ANY_MODE,
    "show [ip] access-lists [<list:word>]",
    help={"access-lists": "List access lists", "list": "ACL name or number"},
)
async def _show_access_lists(session: ExecSession, args: Args) -> str:
    return show_access_lists(
        session.device,
        await session.environment.counters(),
        name=args.optional("list", str),
        version=4 if "ip" in args else None,
    )


@EXEC.add(
    ANY_MODE,
    "show object-group [<group:word>]",
    requires={"object-groups"},
    help={"object-group": "List object groups", "group": "Object group name"},
)
async def _show_object_group(session: ExecSession, args: Args) -> str:
    return show_object_groups(session.device, args.optional("group", str))


_IPV6 = {"ipv6": "IPv6 information"}


@EXEC.add(
    ANY_MODE,
    "show ipv6 access-list [<list:word>]",
    requires={"router"},
    help={**_IPV6, "access-list": "Summary of access lists", "list": "User selected string identifying an access list"},
)
async def _show_ipv6_access_list(session: ExecSession, args: Args) -> str:
    counters = await session.environment.counters()
    return show_access_lists(session.device, counters, name=args.optional("list", str), version=6)


@EXEC.add(
    ANY_MODE,
    "show ipv6 interface brief",
    requires={"router"},
    help={
        **_IPV6,
        "interface": "IPv6 interface status and configuration",
        "brief": "Brief summary of IPv6 status and configuration",
    },
)
async def _show_ipv6_interface_brief(session: ExecSession, args: Args) -> str:
    return show_ipv6_interface_brief(session.device, await session.environment.ports())


@EXEC.add(
    ANY_MODE,
    "show ipv6 interface [<name:interface>]",
    requires={"router"},
    help={**_IPV6, "interface": "IPv6 interface status and configuration"},
)
async def _show_ipv6_interface(session: ExecSession, args: Args) -> str:
    name = session.known_interface(args)
    return show_ipv6_interface(session.device, await session.environment.ports(), name)


@EXEC.add(ANY_MODE, "show ipv6 route", requires={"router"}, help={**_IPV6, "route": "Show IPv6 route table entries"})
async def _show_ipv6_route(session: ExecSession, args: Args) -> str:
    return show_ipv6_route(session.device, await session.environment.routes())
