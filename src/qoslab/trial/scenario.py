"""A tried interface and its traffic as the scenario that `qos-sim run` reads (docs/internals/simulator.md).

One router between two hosts: the traffic goes from `sender` to `receiver`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Device
from qoslab.trial.demand import Demand
from qoslab.trial.edge import LAN_ADDRESS, WAN_ADDRESS, Edge

if TYPE_CHECKING:
    from qoslab import formats

FORMAT = 1
ROUTER, SENDER, RECEIVER = "router", "sender", "receiver"
SECOND_NS = 10**9
SEED = 1
CUT_OFF_NS = SECOND_NS
"""Time after the end of the traffic at which a connection is closed that is not done."""
SPREAD_SHARE = 0.95
"""Part of the time of the traffic in which sources with a long period start."""
SLOT_NS = 2 * SECOND_NS
"""Time of each kind of traffic when its class is looked up."""
LOOK_UP_BYTES = 100


def traffic_scenario(
    edge: Edge, device: Device, demands: Sequence[Demand], *, seconds: float, rtt_s: float
) -> formats.Scenario:
    """Return the scenario in which all sources send for some seconds."""
    duration_ns = round(seconds * SECOND_NS)
    made = _network(edge, device, rtt_s)
    made["flows"] = [_flow(each, duration_ns) for each in demands]
    made["sample_ns"] = max(duration_ns, SECOND_NS)
    made["sample_at_ns"] = [duration_ns]
    return made


def look_up_scenario(edge: Edge, device: Device, demands: Sequence[Demand]) -> formats.Scenario:
    """Return the scenario in which each kind of traffic sends alone: the counters of its slot show its class.

    Sample 2 n is before the slot of demand n, sample 2 n + 1 after it, behind the first sample.
    """
    made = _network(edge, device, 0.001)
    made["host_jitter_ns"] = made["start_jitter_ns"] = 0
    made["flows"] = [_look_up_flow(number, each) for number, each in enumerate(demands)]
    made["sample_ns"] = 10**6 * SECOND_NS
    made["sample_at_ns"] = [
        at for number in range(len(demands)) for at in (number * SLOT_NS + 1, (number + 1) * SLOT_NS - 1)
    ]
    return made


def _network(edge: Edge, device: Device, rtt_s: float) -> formats.Scenario:
    config = compile_device(device)
    ports = {name: port for name, port in config["interfaces"].items() if name in (edge.wan, edge.lan)}
    engine = {key: value for key, value in config.items() if key not in ("process_ns", "ip_sla", "interfaces")}
    sender, receiver = LAN_ADDRESS.network[2], WAN_ADDRESS.network[2]
    return {
        "format": FORMAT,
        "seed": SEED,
        "nodes": {
            SENDER: {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "via": str(LAN_ADDRESS.ip)}]},
            RECEIVER: {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "via": str(WAN_ADDRESS.ip)}]},
            ROUTER: {
                "kind": "router",
                "configuration": cast("formats.RouterConfig", engine | {"interfaces": ports, "router": ROUTER}),
            },
        },
        "links": [
            {
                "name": "lan",
                "rate_bps": edge.lan_bps,
                "framing": edge.lan_framing,
                "ends": [
                    {"node": SENDER, "interface": "eth0", "address": f"{sender}/{LAN_ADDRESS.network.prefixlen}"},
                    {"node": ROUTER, "interface": edge.lan, "address": str(LAN_ADDRESS)},
                ],
            },
            {
                "name": "wan",
                "rate_bps": edge.line_bps,
                "framing": edge.framing,
                "delay_ns": round(rtt_s / 2 * SECOND_NS),
                "ends": [
                    {"node": ROUTER, "interface": edge.wan, "address": str(WAN_ADDRESS)},
                    {"node": RECEIVER, "interface": "eth0", "address": f"{receiver}/{WAN_ADDRESS.network.prefixlen}"},
                ],
            },
        ],
        "flows": [],
    }


def _flow(demand: Demand, duration_ns: int) -> formats.Flow:
    kind = demand.kind
    flow: formats.Flow = {
        "name": demand.name,
        "protocol": kind.protocol,
        "source": SENDER,
        "destination": RECEIVER,
        "port": demand.port,
        "streams": demand.count,
        "duration_ns": duration_ns,
        "cut_off_ns": CUT_OFF_NS,
        "dscp": demand.dscp,
    }
    rate_bps = demand.rate_bps or kind.rate_bps
    if rate_bps is None:
        # Connections of one kind do not all begin at once.
        flow["spread_ns"] = min(SECOND_NS, duration_ns // 4)
        return flow
    if not kind.sizes:
        flow["rate_bps"] = round(rate_bps)
        return flow
    interval_ns = round(sum(kind.sizes) * 8 / len(kind.sizes) / rate_bps * SECOND_NS)
    flow["spread_ns"] = min(len(kind.sizes) * interval_ns, round(SPREAD_SHARE * duration_ns))
    if kind.protocol == "tcp":
        flow["rate_bps"] = round(rate_bps)
        flow["payload_bytes"] = kind.sizes[0]
        return flow
    flow["gap_ns"] = interval_ns
    flow["payload_bytes"] = kind.largest
    flow["frames"] = list(kind.sizes)
    return flow


def _look_up_flow(number: int, demand: Demand) -> formats.Flow:
    flow: formats.Flow = {
        "name": demand.name,
        "protocol": demand.kind.protocol,
        "source": SENDER,
        "destination": RECEIVER,
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
