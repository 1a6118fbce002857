"""Scenario of a cell for `qos-sim run` (docs/internals/simulator.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

from qoslab.errors import ExperimentError
from qoslab.ios.model.ios_names import interface_kind
from qoslab.model.experiment import (
    SECOND_NS,
    CapturePoint,
    Experiment,
    Flow,
    Link,
    LinkEnd,
    Probe,
    TcpProfile,
    probe_number,
    probe_target,
)
from qoslab.model.instants import MeasurementDemand, counter_reading_times, observation_time, traffic_time
from qoslab.model.traffic_kinds import KINDS, TrafficKind
from qoslab.platforms import router_names
from qoslab.platforms.emulation import jitter_config, loss_config
from qoslab.platforms.startup import static_routes
from qoslab.simulation.routers import SimulatedRouter, configured_router
from qoslab.system import program_formats
from qoslab.traffic import find_tool, flood_pages, iperf2
from qoslab.traffic.endpoints import flow_addresses, flow_ports, flow_seed, with_family

FORMAT = 1
SAMPLE_NS = 10**9
"""Sampling interval of counters: one second, as in the virtual lab; triggers of the traffic add samples."""
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Date of virtual time 0: constant, so that the same cell gives the same files."""
EPOCH_NS = int(EPOCH.timestamp()) * 10**9


def configured_routers(experiment: Experiment, configurations: Mapping[str, str]) -> dict[str, SimulatedRouter]:
    """Return the routers of a cell; `configurations` are the rendered IOS configurations of the configured ones."""
    topology = experiment.topology
    return {name: configured_router(topology, name, configurations.get(name, "")) for name in router_names(topology)}


def build_scenario(
    experiment: Experiment, routers: Mapping[str, SimulatedRouter], repetition: int, demand: MeasurementDemand
) -> program_formats.Scenario:
    """Build the scenario of a cell: `experiment` has a single arm, and all parameter values filled in.

    Paths of captures are relative to the cell's folder.
    """
    arm = experiment.arms[0]
    profile = experiment.arm_tcp_profile(arm)
    flows = experiment.arm_flows(arm)
    ports = flow_ports(flows)
    return {
        "format": FORMAT,
        "seed": scenario_seed(experiment.seed, repetition),
        "nodes": {
            name: _router_entry(routers[name]) if name in routers else _host_entry(experiment, name, profile)
            for name in experiment.topology.nodes
        },
        "links": [_link(link, routers) for link in experiment.topology.links],
        "flows": [
            _flow_entry(experiment, flow, port=ports[flow.name], seed=flow_seed(experiment.seed, repetition, flow.name))
            for flow in flows
        ],
        "probes": [_probe(experiment, probe) for probe in experiment.probes],
        "captures": [_capture(point) for point in experiment.captures],
        "sample_ns": SAMPLE_NS,
        "sample_at_ns": [each.ns for each in counter_reading_times(experiment, demand)],
        "epoch_ns": EPOCH_NS,
    }


def observation_time_ns(experiment: Experiment) -> int:
    """Return the virtual time of `during`."""
    return observation_time(traffic_time(experiment, experiment.arms[0])).ns


def scenario_seed(seed: int, repetition: int) -> int:
    """Return the seed of a cell: the same in all arms, a different one for each repetition, and at most 48 bits."""
    return int.from_bytes(hashlib.sha256(f"{seed} {repetition}".encode()).digest()[:6], "big")


def _host_entry(experiment: Experiment, name: str, profile: TcpProfile) -> program_formats.NodeConfig:
    routes = static_routes(experiment.topology, name)
    made: program_formats.NodeConfig = {
        "kind": "host",
        "routes": [{"prefix": str(route.prefix), "via": str(route.via)} for route in routes],
        "tcp": {
            "congestion_control": cast("program_formats.CongestionControl", profile.congestion_control),
            "sack": profile.sack,
            "timestamps": profile.timestamps,
            "ecn": profile.ecn,
            "recovery": profile.recovery,
            "early_retrans": profile.early_retrans,
            "frto": profile.frto,
            "initcwnd": profile.initcwnd,
            "rto_min_ns": profile.rto_min.ns,
        },
    }
    sla = _host_ip_sla(experiment, name)
    return made | {"ip_sla": sla} if sla else made


def _host_ip_sla(experiment: Experiment, host: str) -> program_formats.Config:
    """Return the IP SLA operations and responder of a host in the format of the program `sla`; empty if
    it has neither.
    """
    operations = {
        str(probe_number(experiment, probe)): _operation_entry(experiment, probe)
        for probe in experiment.probes
        if probe.source == host
    }
    ports = {probe.port for probe in experiment.probes if probe.is_udp and probe.destination == host}
    made: program_formats.Config = {"operations": operations} if operations else {}
    if ports:
        made |= {"responder": True, "responder_ports": sorted(port for port in ports if port is not None)}
    return made


def _operation_entry(experiment: Experiment, probe: Probe) -> program_formats.OperationConfig:
    made: program_formats.OperationConfig = {"type": probe.type, "target": str(probe_target(experiment, probe))}
    milliseconds = 10**6
    given: program_formats.OperationConfigPart = {}
    if probe.port is not None:
        given["target_port"] = probe.port
    if probe.packets is not None:
        given["packets"] = probe.packets
    if probe.interval is not None:
        given["interval_ms"] = probe.interval.ns // milliseconds
    if probe.frequency is not None:
        given["frequency_s"] = probe.frequency.ns // SECOND_NS
    if probe.timeout is not None:
        given["timeout_ms"] = probe.timeout.ns // milliseconds
    if probe.threshold is not None:
        given["threshold_ms"] = probe.threshold.ns // milliseconds
    if probe.size is not None:
        given["request_data_size"] = probe.size.bytes
    if probe.tos is not None:
        given["tos"] = probe.tos
    return made | given


def _probe(experiment: Experiment, probe: Probe) -> program_formats.Probe:
    return {
        "name": probe.name,
        "node": probe.source,
        "operation": probe_number(experiment, probe),
        "start_ns": probe.start_after.ns,
        "end_ns": probe_end_ns(experiment, probe),
    }


def probe_end_ns(experiment: Experiment, probe: Probe) -> int:
    """Return the virtual time at which a probe is read."""
    return (probe.start_after + experiment.duration_of_probe(probe)).ns


def _router_entry(router: SimulatedRouter) -> program_formats.NodeConfig:
    routes: list[program_formats.Route] = [
        {"prefix": str(prefix), "via": None if next_hop is None else str(next_hop), "interface": _route_port(interface)}
        for prefix, next_hop, interface, _ in router.static
    ]
    made: program_formats.NodeConfig = {"kind": "router", "routes": routes, "configuration": router.engine_config}
    process_ns, sla = router.config.get("process_ns"), router.config.get("ip_sla")
    if process_ns is not None:
        made["process_ns"] = process_ns
    if sla is not None:
        made["ip_sla"] = sla
    return made


def _route_port(interface: str | None) -> str | None:
    """Return the link end that a route by an interface uses: for a circuit on a subinterface, that of the port."""
    if interface is not None and interface_kind(interface) == "ATM":
        return interface.partition(".")[0]
    return interface


def _link(link: Link, routers: Mapping[str, SimulatedRouter]) -> program_formats.Link:
    vlans = _common_vlans(link, routers)
    described: program_formats.Link = {
        "name": link.name,
        "rate_bps": link.rate.bps,
        "framing": link.framing,
        "delay_ns": link.delay.ns,
        "jitter": jitter_config(link),
        "loss": loss_config(link),
        "ends": [_end(end, routers.get(end.node), vlans=bool(vlans)) for end in link.ends],
    }
    if vlans:
        described["vlans"] = vlans
    return described


def _common_vlans(link: Link, routers: Mapping[str, SimulatedRouter]) -> list[program_formats.LinkVlan]:
    """Return the VLANs in which both ends of a link have an address."""
    near, far = (
        []
        if (router := routers.get(end.node)) is None
        else [each for each in router.device.subinterfaces(end.interface) if not router.device.is_shut_down(each)]
        for end in link.ends
    )
    return [
        {
            "vlan": one.vlan,
            "native": one.native,
            "ends": [
                {"interface": one.name, "address": str(one.address)},
                {"interface": other.name, "address": str(other.address)},
            ],
        }
        for one in near
        for other in far
        if one.vlan is not None and one.vlan == other.vlan and one.address is not None and other.address is not None
    ]


def _end(end: LinkEnd, router: SimulatedRouter | None, *, vlans: bool) -> program_formats.LinkEnd:
    address, ipv6_address = end.address, end.ipv6_address
    if router is not None:
        # A router has the addresses of its final configuration.
        interface = router.device.with_circuit(end.interface)
        address, ipv6_address = interface.address, next(iter(interface.ipv6_addresses), None)
    if address is None and ipv6_address is None and not vlans:
        raise ExperimentError(f"{end.interface} of {end.node} has no address; a simulation requires one at every link")
    made: program_formats.LinkEnd = {"node": end.node, "interface": end.interface}
    if address is not None:
        made["address"] = str(address)
    if ipv6_address is not None:
        made["ipv6_address"] = str(ipv6_address)
    return made


def _flow_entry(experiment: Experiment, flow: Flow, *, port: int, seed: int) -> program_formats.Flow:
    source, destination = flow_addresses(experiment.topology, flow)
    config: program_formats.Flow = {
        "name": flow.name,
        "protocol": flow.protocol,
        "source": flow.source,
        "destination": flow.destination,
        "source_address": str(source),
        "destination_address": str(destination),
        "port": None if "port" in flow.random else port,
        "client_port": flow.client_port,
        "streams": flow.streams,
        "start_ns": flow.start_after.ns,
        "duration_ns": experiment.flow_duration(experiment.arms[0], flow).ns,
        "cut_off_ns": round(iperf2.STOP_DELAY_S * 10**9) if flow.may_fail else None,
        "dscp": flow.dscp or 0,
        "rate_bps": None if flow.rate is None else flow.rate.bps,
    }
    kind = None if flow.kind is None else KINDS[flow.kind]
    if spread_ns := flood_pages.start_spread_ns(flow, experiment.flow_duration(experiment.arms[0], flow).ns):
        config["spread_ns"] = spread_ns
        config["seed"] = seed
    if kind is not None and kind.sends_bursts and flow.protocol == "udp":
        config |= _frame_bursts(kind, flow)
        config["seed"] = seed
    elif flow.protocol == "udp":
        config |= find_tool(flow.tool).sending_pattern(with_family(experiment.topology, flow))
        config["seed"] = seed
    else:
        config |= _connection_count(flow)
    return config


def _frame_bursts(kind: TrafficKind, flow: Flow) -> program_formats.FlowPart:
    """Return the burst sizes and times of a source that sends frames, such as a video."""
    return {
        "rate_bps": None,
        "gap_ns": kind.interval_ns(None if flow.rate is None else flow.rate.bps),
        "payload_bytes": kind.largest,
        "frames": list(kind.sizes),
    }


def _connection_count(flow: Flow) -> program_formats.FlowPart:
    pages: program_formats.FlowPart = {} if flow.delay is None else {"gap_ns": flow.delay.ns}
    return pages | {
        "congestion_control": cast("program_formats.CongestionControl | None", flow.congestion_control),
        "window_bytes": None if flow.window is None else flow.window.bytes,
        "payload_bytes": None if flow.size is None else flow.size.bytes,
    }


def _capture(point: CapturePoint) -> program_formats.Capture:
    return {
        "name": point.name,
        "node": point.node,
        "interface": point.interface,
        "snaplen": point.snaplen.bytes,
        "filter": point.filter,
        "file": f"captures/{point.name}.pcapng",
    }
