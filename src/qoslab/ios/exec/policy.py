"""Exec commands `show …` about policies."""

from __future__ import annotations

from qoslab.ios.cli.grammar import Args
from qoslab.ios.login import ANY_MODE, EXEC, ExecSession
from qoslab.ios.show.policy_interface import Direction, show_policy_map_interface
from qoslab.ios.show.policy_map import show_class_map, show_policy_map

_POLICY_MAP = {"policy-map": "Show QoS Policy Map"}


@EXEC.add(
    ANY_MODE, "show policy-map [<policy:word>]", requires={"router"}, help={**_POLICY_MAP, "policy": "Policy Map name"}
)
async def _show_policy_map(session: ExecSession, args: Args) -> str:
    policy = args.optional("policy", str)
    config = session.environment.data_plane_config()
    if policy is not None and policy not in config["policy_maps"]:
        # IOS answers with a message and no error mark.
        return f"% policy map {policy} not configured\n"
    return show_policy_map(config, await session.environment.resolve(), name=policy)


@EXEC.add(
    ANY_MODE,
    "show policy-map interface [<name:interface>] [(input|output)]",
    requires={"router"},
    help={**_POLICY_MAP, "interface": "Show Qos Policy Interface", "input": "Input policy", "output": "Output policy"},
)
async def _show_policy_map_interface(session: ExecSession, args: Args) -> str:
    interface = session.known_interface(args)
    direction: Direction | None = "input" if "input" in args else "output" if "output" in args else None
    return show_policy_map_interface(
        session.environment.data_plane_config(),
        await session.environment.counters(),
        interface=interface,
        direction=direction,
        circuits=session.device.circuits(),
    )


@EXEC.add(
    ANY_MODE, "show class-map [<class:word>]", help={"class-map": "Show QoS Class Map", "class": "Class Map name"}
)
async def _show_class_map(session: ExecSession, args: Args) -> str:
    config = session.environment.data_plane_config()
    return show_class_map(config, name=args.optional("class", str))
