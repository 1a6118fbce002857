"""Exec commands of a Catalyst 3750."""

from __future__ import annotations

from qoslab.ios.cli.grammar import Args
from qoslab.ios.login import ANY_MODE, EXEC, PRIVILEGED, ExecSession
from qoslab.ios.show.catalyst import counters as switch_counters
from qoslab.ios.show.catalyst import mls_qos
from qoslab.ios.show.catalyst import policy as switch_policy
from qoslab.ios.show.interfaces import unwired_counters
from qoslab.system import program_formats

_QOS = {"mls": "Show MultiLayer Switching information", "qos": "QoS information"}
_OF_INTERFACE = {**_QOS, "interface": "interface keyword"}


@EXEC.add(ANY_MODE, "show mls qos", requires={"switch"}, help=_QOS)
async def _show_mls_qos(session: ExecSession, args: Args) -> str:
    return mls_qos.show_mls_qos(session.device.mls_qos)


@EXEC.add(
    ANY_MODE,
    "show mls qos interface [<name:interface>] [(queueing|buffers|statistics)]",
    requires={"switch"},
    help={
        **_OF_INTERFACE,
        "queueing": "Show the queueing strategy (WRR, priority queueing, ...)",
        "buffers": "Show interface buffer allocation",
        "statistics": "Show per port QoS statistics",
    },
)
async def _show_mls_qos_interface(session: ExecSession, args: Args) -> str:
    device, name = session.device, session.known_interface(args)
    if "queueing" in args:
        return mls_qos.show_queueing(device, name)
    if "buffers" in args:
        return mls_qos.show_buffers(device, name)
    if "statistics" in args:
        counted = await session.environment.qos_statistics()
        return "".join(
            switch_counters.show_statistics(each, counted.get(each) or switch_counters.idle_counters())
            for each in device.interfaces
            if name in (None, each)
        )
    return mls_qos.show_interface(device, name)


@EXEC.add(
    ANY_MODE, "show mls qos vlan <vlan:1-4094>", requires={"switch"}, help={**_QOS, "vlan": "vlan interface keyword"}
)
async def _show_vlan(session: ExecSession, args: Args) -> str:
    return mls_qos.show_vlan(session.device, args.value("vlan", int))


@EXEC.add(
    ANY_MODE,
    "show mls qos queue-set [<set:1-2>]",
    requires={"switch"},
    help={**_QOS, "queue-set": "QoS egress queue set", "set": "enter queue-set id"},
)
async def _show_queue_set(session: ExecSession, args: Args) -> str:
    return mls_qos.show_queue_set(session.device.mls_qos, args.optional("set", int))


@EXEC.add(
    ANY_MODE,
    "show mls qos input-queue",
    requires={"switch"},
    help={**_QOS, "input-queue": "QoS ingress queue settings"},
)
async def _show_input_queue(session: ExecSession, args: Args) -> str:
    return mls_qos.show_input_queue(session.device.mls_qos.input)


@EXEC.add(
    ANY_MODE,
    f"show mls qos maps [({'|'.join(name for name in mls_qos.MAPS if name != 'dscp-mutation')}"
    "|dscp-mutation [<map:word>])]",
    requires={"switch"},
    help={
        **_QOS,
        "maps": "Show QoS mapping information",
        "policed-dscp": "policed-dscp map",
        "dscp-cos": "dscp-cos map",
        "cos-dscp": "cos-dscp map",
        "ip-prec-dscp": "ip-precedence-dscp map",
        "dscp-output-q": "dscp-output queue map",
        "dscp-input-q": "dscp-input queue map",
        "cos-output-q": "cos-output queue map",
        "cos-input-q": "cos-input queue map",
        "dscp-mutation": "dscp-mutation map",
        "map": "DSCP to DSCP mutation map name",
    },
)
async def _show_maps(session: ExecSession, args: Args) -> str:
    words = args.keywords
    name = words[-1] if words[-1] != "maps" else None
    return mls_qos.show_maps(session.device.mls_qos, name, args.optional("map", str))


@EXEC.add(
    ANY_MODE,
    "show mls qos aggregate-policer [<policer:word>]",
    requires={"switch"},
    help={**_QOS, "aggregate-policer": "Show aggregate policer information", "policer": "aggregate policer name"},
)
async def _show_aggregate_policer(session: ExecSession, args: Args) -> str:
    return mls_qos.show_aggregate_policers(session.device, session.device.mls_qos, args.optional("policer", str))


@EXEC.add(
    PRIVILEGED,
    "clear mls qos interface [<name:interface>] statistics",
    requires={"switch"},
    help={
        **_OF_INTERFACE,
        "clear": "Reset functions",
        "mls": "Clear MultiLayer Switching information",
        "statistics": "Clear statistics",
    },
)
async def _clear_statistics(session: ExecSession, args: Args) -> None:
    await session.environment.clear_qos_statistics(session.known_interface(args))


@EXEC.add(
    PRIVILEGED,
    "show platform port-asic stats drop [<name:interface>]",
    requires={"switch"},
    help={
        "platform": "Show platform specific information",
        "port-asic": "Show port-asic information",
        "stats": "Show port-asic statistics",
        "drop": "Show drop statistics",
    },
)
async def _show_port_asic_drops(session: ExecSession, args: Args) -> str:
    wanted, counted = session.known_interface(args), await _port_counters(session)
    return "".join(
        switch_counters.show_port_asic_drops(name, each.get("switch") or switch_counters.idle_counters())
        for name, each in counted.items()
        if wanted in (None, name)
    )


async def _port_counters(session: ExecSession) -> dict[str, program_formats.InterfaceCounters]:
    """Return the counters of all ports in the order of the chassis; those of a port without a cable are zero."""
    counted = (await session.environment.counters())["interfaces"]
    chassis = session.environment.chassis
    return {
        name: counted[name] if name in counted else unwired_counters(interface, chassis)
        for name, interface in session.device.interfaces.items()
    }


@EXEC.add(
    ANY_MODE,
    "show interfaces [<name:interface>] counters [errors]",
    requires={"switch"},
    help={
        "interfaces": "Interface status and configuration",
        "counters": "Show interface counters",
        "errors": "Show interface error counters",
    },
)
async def _show_counters(session: ExecSession, args: Args) -> str:
    wanted = session.known_interface(args)
    counted = {name: each for name, each in (await _port_counters(session)).items() if wanted in (None, name)}
    if "errors" in args:
        return switch_counters.show_error_counters(counted)
    return switch_counters.show_counters(counted)


@EXEC.add(
    ANY_MODE,
    "show policy-map [<policy:word>]",
    requires={"switch"},
    help={"policy-map": "Show QoS Policy Map", "policy": "Policy Map name"},
)
async def _show_policy_map(session: ExecSession, args: Args) -> str:
    return switch_policy.show_policy_map(session.device, args.optional("policy", str))


@EXEC.add(
    ANY_MODE,
    "show policy-map interface [<name:interface>] [input]",
    requires={"switch"},
    help={"policy-map": "Show QoS Policy Map", "interface": "Show Qos Policy Interface", "input": "Input policy"},
)
async def _show_policy_map_interface(session: ExecSession, args: Args) -> str:
    config = session.environment.data_plane_config()
    name = args.optional("name", str)
    if name not in session.device.host_interfaces:
        session.known_interface(args)
    return switch_policy.show_policy_map_interface(session.device, config, name)
