"""A tried interface and its traffic as the scenario that `qos-sim run` reads (docs/internals/simulator.md).

One router between two hosts: traffic in the direction of the tried policy goes from `sender` to `receiver`.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Interface

from qoslab.errors import UserError
from qoslab.ios.compile import compile_device, engine_config
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.parse import parse_config
from qoslab.system import program_formats
from qoslab.trial.demand import TrafficDemand
from qoslab.trial.edge import LAN_ADDRESS, WAN_ADDRESS, TrialEdge, drop_other_inputs, with_tunnel
from qoslab.trial.hosts import add_hosts, host_name

FORMAT = 1
ROUTER, FAR_ROUTER, SENDER, RECEIVER = "router", "far-router", "sender", "receiver"
FAR_ADDRESS = IPv4Interface("198.18.0.9/30")
"""Address of the second router towards the receiver."""
FAR_PORT, FAR_LAN = "TenGigabitEthernet0/0", "TenGigabitEthernet0/1"
LAN_SIDE_ADDRESS, WAN_SIDE_ADDRESS = IPv4Interface("198.18.0.13/30"), IPv4Interface("198.18.0.17/30")
"""Addresses of the routers in front of hosts with additional addresses."""
FAR_BPS = 100_000_000_000
SECOND_NS = 10**9
SEED = 1
CONNECTION_GRACE_NS = SECOND_NS
"""Time after the end of the traffic at which an unfinished connection is closed."""
SLOT_NS = 2 * SECOND_NS
"""Duration of each kind of traffic in the lookup of its class."""
LOOK_UP_BYTES = 100


def traffic_scenario(
    edge: TrialEdge, device: Device, demands: Sequence[TrafficDemand], *, seconds: float, rtt_s: float
) -> program_formats.Scenario:
    """Return the scenario in which all sources send for `seconds`."""
    duration_ns = round(seconds * SECOND_NS)
    made = _scenario_network(edge, device, rtt_s, demands)
    made["flows"] = [_flow_entry(each, _trial_hosts(each, edge), duration_ns) for each in demands]
    made["sample_ns"] = max(duration_ns, SECOND_NS)
    made["sample_at_ns"] = [duration_ns]
    return made


def look_up_scenario(edge: TrialEdge, device: Device, demands: Sequence[TrafficDemand]) -> program_formats.Scenario:
    """Return the scenario in which each kind of traffic sends alone, so that the counters of its slot show its class.

    Sample 2 n is before the slot of demand n, sample 2 n + 1 after it, following the first sample.
    """
    made = _scenario_network(edge, device, 0.001, demands)
    made["host_jitter_ns"] = made["start_jitter_ns"] = 0
    made["flows"] = [_look_up_flow(number, each, _trial_hosts(each, edge)) for number, each in enumerate(demands)]
    made["sample_ns"] = 10**6 * SECOND_NS
    made["sample_at_ns"] = [
        at for number in range(len(demands)) for at in (number * SLOT_NS + 1, (number + 1) * SLOT_NS - 1)
    ]
    return made


def _scenario_network(
    edge: TrialEdge, device: Device, rtt_s: float, demands: Sequence[TrafficDemand]
) -> program_formats.Scenario:
    sender, peer = LAN_ADDRESS.network[2], IPv4Interface((WAN_ADDRESS.network[2], WAN_ADDRESS.network.prefixlen))
    router: program_formats.NodeConfig = {
        "kind": "router",
        "configuration": _data_plane_config(with_tunnel(device, edge), (edge.wan, edge.lan)),
    }
    lan: program_formats.Link = {
        "name": "lan",
        "rate_bps": edge.lan_bps,
        "framing": edge.lan_framing,
        "ends": [
            {"node": SENDER, "interface": "eth0", "address": f"{sender}/{LAN_ADDRESS.network.prefixlen}"},
            {"node": ROUTER, "interface": edge.lan, "address": str(LAN_ADDRESS)},
        ],
    }
    wan: program_formats.Link = {
        "name": "wan",
        "rate_bps": edge.line_bps,
        "framing": edge.framing,
        "delay_ns": round(rtt_s / 2 * SECOND_NS),
        "ends": [
            {"node": ROUTER, "interface": edge.wan, "address": str(WAN_ADDRESS)},
            {"node": RECEIVER, "interface": "eth0", "address": str(peer)},
        ],
    }
    made: program_formats.Scenario = {
        "format": FORMAT,
        "seed": SEED,
        "nodes": {SENDER: _host_entry(LAN_ADDRESS), RECEIVER: _host_entry(WAN_ADDRESS), ROUTER: router},
        "links": [lan, wan],
        "flows": [],
    }
    if edge.needs_far_router:
        _add_far_router(made, edge, device, peer)
    ends = [(each.source, each.destination)[:: -1 if each.is_reverse(edge.direction) else 1] for each in demands]
    sources, destinations = (list(dict.fromkeys(filter(None, each))) for each in zip(*ends, strict=True))
    if shared := set(sources) & set(destinations):
        raise UserError(f"--traffic: found address {min(shared)} on both sides of the router, expected one side")
    if sources:
        add_hosts(made, lan, SENDER, LAN_SIDE_ADDRESS, sources, [(ROUTER, str(sender))])
    if destinations:
        chain = [(ROUTER, str(peer.ip))]
        if edge.needs_far_router:
            chain.append((FAR_ROUTER, str(FAR_ADDRESS.network[2])))
        add_hosts(
            made, made["links"][2] if edge.needs_far_router else wan, RECEIVER, WAN_SIDE_ADDRESS, destinations, chain
        )
    return made


def _host_entry(gateway: IPv4Interface) -> program_formats.NodeConfig:
    return {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "via": str(gateway.ip)}]}


def _data_plane_config(device: Device, wired: Sequence[str]) -> program_formats.RouterConfig:
    """Return the configuration of a router's data plane, with the interfaces that have a link."""
    engine = engine_config(compile_device(drop_other_inputs(device, wired)))
    engine["interfaces"] = {name: port for name, port in engine["interfaces"].items() if name in wired}
    return engine


def _add_far_router(made: program_formats.Scenario, edge: TrialEdge, device: Device, peer: IPv4Interface) -> None:
    """Add a router without policies between the tried line and the receiver."""
    wan = made["links"][1]
    near, far = wan["ends"][0], wan["ends"][1]
    port = edge.wan if edge.framing != "ethernet" else FAR_PORT
    lines = [f"interface {port}", "no shutdown"]
    if edge.framing == "ppp":
        lines.append("encapsulation ppp")
    if edge.subinterface is None:
        lines.append(f"ip address {peer.ip} {peer.netmask}")
    else:
        own = device.interfaces[edge.subinterface]
        sub = f"{port}.{edge.subinterface.partition('.')[2]}"
        native = " native" if own.native else ""
        lines += [f"interface {sub}", f"encapsulation dot1Q {own.vlan}{native}", f"ip address {peer.ip} {peer.netmask}"]
        wan["vlans"] = [
            {
                "vlan": own.vlan or 0,
                "native": own.native,
                "ends": [
                    {"interface": edge.subinterface, "address": str(WAN_ADDRESS)},
                    {"interface": sub, "address": str(peer)},
                ],
            }
        ]
        del near["address"], far["address"]
    lines += [f"interface {FAR_LAN}", f"ip address {FAR_ADDRESS.ip} {FAR_ADDRESS.netmask}", "no shutdown"]
    hardware = Hardware("", (port, FAR_LAN), generation=device.generation, version=device.hardware.version)
    far["node"], far["interface"] = FAR_ROUTER, port
    engine = _data_plane_config(parse_config("\n".join(lines), hardware), (port, FAR_LAN))
    made["nodes"][FAR_ROUTER] = {
        "kind": "router",
        "configuration": engine,
        "routes": [{"prefix": "0.0.0.0/0", "via": str(WAN_ADDRESS.ip)}],
    }
    made["nodes"][ROUTER]["routes"] = [{"prefix": str(FAR_ADDRESS.network), "via": str(peer.ip)}]
    made["nodes"][RECEIVER] = _host_entry(FAR_ADDRESS)
    made["links"].append(
        {
            "name": "far",
            "rate_bps": FAR_BPS,
            "framing": "ethernet",
            "ends": [
                {"node": FAR_ROUTER, "interface": FAR_LAN, "address": str(FAR_ADDRESS)},
                {
                    "node": RECEIVER,
                    "interface": "eth0",
                    "address": f"{FAR_ADDRESS.network[2]}/{FAR_ADDRESS.network.prefixlen}",
                },
            ],
        }
    )


def _trial_hosts(demand: TrafficDemand, edge: TrialEdge) -> tuple[str, str]:
    """Return the sending and the receiving host."""
    near, far = (RECEIVER, SENDER) if demand.is_reverse(edge.direction) else (SENDER, RECEIVER)
    return host_name(near, demand.source), host_name(far, demand.destination)


def _flow_entry(demand: TrafficDemand, hosts: tuple[str, str], duration_ns: int) -> program_formats.Flow:
    kind = demand.kind
    flow: program_formats.Flow = {
        "name": demand.name,
        "protocol": kind.protocol,
        "source": hosts[0],
        "destination": hosts[1],
        "port": demand.port,
        "streams": demand.count,
        "duration_ns": duration_ns,
        "cut_off_ns": CONNECTION_GRACE_NS,
        "dscp": demand.dscp,
    }
    if not kind.sizes:
        flow["spread_ns"] = kind.spread_ns(duration_ns)
        flow["rate_bps"] = demand.rate_bps
        return flow
    flow["spread_ns"] = kind.spread_ns(duration_ns, demand.rate_bps)
    if kind.protocol == "tcp":
        flow["rate_bps"] = round(demand.rate_bps or kind.rate_bps or 0)
        flow["payload_bytes"] = kind.sizes[0]
        return flow
    flow["gap_ns"] = kind.interval_ns(demand.rate_bps)
    flow["payload_bytes"] = kind.largest
    flow["frames"] = list(kind.sizes)
    return flow


def _look_up_flow(number: int, demand: TrafficDemand, hosts: tuple[str, str]) -> program_formats.Flow:
    flow: program_formats.Flow = {
        "name": demand.name,
        "protocol": demand.kind.protocol,
        "source": hosts[0],
        "destination": hosts[1],
        "port": demand.port,
        "start_ns": number * SLOT_NS + 2,
        "duration_ns": SLOT_NS // 20,
        "cut_off_ns": SLOT_NS // 4,
        "dscp": demand.dscp,
    }
    if demand.kind.protocol == "udp":
        flow["payload_bytes"] = min(demand.kind.sizes[0], demand.kind.largest)
        flow["gap_ns"] = SECOND_NS
    else:
        flow["rate_bps"] = LOOK_UP_BYTES * 8
        flow["payload_bytes"] = LOOK_UP_BYTES
    return flow
