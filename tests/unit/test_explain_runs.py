"""`explain` at a router of an experiment: idle, and during a run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment_files import simulated_experiments, two_links
from levels import example_count
from qoslab.explain.capture_packet import find_arrival, read_captured_packet
from qoslab.explain.experiments import experiment_subject, run_subject
from qoslab.explain.packet import UDP, Packet, parse_packet
from qoslab.explain.router_steps import Trace, trace_packet
from qoslab.explain.simulator_query import ask_simulator
from qoslab.explain.subject import Subject
from qoslab.model.experiment import Experiment
from qoslab.model.instants import MeasurementDemand
from qoslab.plan import make_plan
from qoslab.platforms import router_names
from qoslab.results import Cell, CellFiles
from qoslab.schema import CellIdentity, load_sweep
from qoslab.simulation.scenario import build_scenario, configured_routers
from qoslab.system.programs import SIMULATOR, find_own_program
from qoslab.traffic.endpoints import flow_addresses

TOP = Path(__file__).parents[2]
BEHIND_SWITCHES = ("bucket-truth", "carrier-policer", "srr-3750")
"""Experiments whose hosts are connected to a switch."""
EXPERIMENTS = [file for file in simulated_experiments() if file.stem not in BEHIND_SWITCHES]

LOADED = (
    """\
name: loaded
title: A line that is too slow for its traffic
"""
    + two_links('ios, model: "2811", generation: hqf', wan="100 Mb/s", networks=("10.0.0", "10.0.20"), host=10)
    + """\
duration: 3 s
configure:
  R1: {template: loaded.ios.j2}
traffic:
  - {name: bulk, tool: flood, from: client, to: server, protocol: udp, port: 5001, rate: 2 Mb/s, size: 500 B}
  - {name: red, tool: flood, from: client, to: server, protocol: udp, port: 5002, rate: 2 Mb/s, size: 500 B}
  - {name: voice, tool: flood, from: client, to: server, protocol: udp, port: 5003, rate: 1 Mb/s, size: 200 B}
captures:
  - {name: client, node: client, interface: eth0, filter: udp}
arms:
  - {name: only}
"""
)
TEMPLATE = """\
ip access-list extended BULK
 permit udp any any eq 5001
ip access-list extended RED
 permit udp any any eq 5002
ip access-list extended VOICE
 permit udp any any eq 5003
class-map match-all BULK
 match access-group name BULK
class-map match-all RED
 match access-group name RED
class-map match-all VOICE
 match access-group name VOICE
policy-map CHILD
 class VOICE
  priority 100
 class BULK
  bandwidth 300
  queue-limit 9
 class RED
  bandwidth 300
  random-detect
policy-map PARENT
 class class-default
  shape average 1000000
  service-policy CHILD
interface FastEthernet0/1
 service-policy output PARENT
"""


def first_cell_configurations(file: Path) -> tuple[Experiment, dict[str, str]]:
    """Return the first cell of an experiment file and its configurations."""
    sweep = load_sweep(file)
    experiment = make_plan(sweep).cells[0].experiment
    return experiment, sweep.configuration_text(experiment, experiment.arms[0])


@pytest.fixture(scope="module")
def simulated_cell(tmp_path_factory: pytest.TempPathFactory) -> CellFiles:
    """A cell as a simulated run leaves it, with its capture."""
    folder = tmp_path_factory.mktemp("loaded")
    (folder / "loaded.yml").write_text(LOADED, encoding="utf-8")
    (folder / "loaded.ios.j2").write_text(TEMPLATE, encoding="utf-8")
    experiment, texts = first_cell_configurations(folder / "loaded.yml")
    cell = Cell(folder / "cell", CellIdentity("only", (), 1))
    cell.write_experiment(experiment)
    cell.write(cell.configuration("R1.ios"), texts["R1"])
    routers = configured_routers(experiment, texts)
    scenario = build_scenario(experiment, routers, 1, MeasurementDemand())
    cell.write(cell.configuration("scenario.json"), json.dumps(scenario))
    cell.capture("client")
    simulate(scenario, cell.path)
    return cell.files()


def simulate(scenario: Any, folder: Path | None = None) -> Any:
    done = subprocess.run(
        [str(find_own_program(SIMULATOR)), "run"],
        cwd=folder,
        input=json.dumps(scenario),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return json.loads(done.stdout)


def during(subject: Subject, port: int, at_ms: int, size: int = 528) -> Trace:
    packet = parse_packet(f"udp 10.0.0.10:4000 > 10.0.20.10:{port} {size} B")
    return trace_packet(ask_simulator(subject, packet, at_ns=at_ms * 10**6), "loaded")


def step(found: Trace, kind: str) -> dict[str, Any]:
    return next(each for each in found.as_dict()["steps"] if each["kind"] == kind)


def test_full_queue_drops_with_its_limit(simulated_cell: CellFiles) -> None:
    subject = run_subject(simulated_cell, "R1", "run")
    found = [during(subject, 5001, at_ms) for at_ms in range(2000, 2100, 10)]
    for each in found:
        depth = step(each, "queue")["depth_packets"]
        assert (each.result, each.reason) == (("dropped", "tail") if depth >= 9 else ("sent", ""))
        if each.result == "sent":
            assert step(each, "queue")["position"] == depth + 1
            assert (each.departure_ns or 0) > 1_000_000
    drops = [each for each in found if each.reason == "tail"]
    assert drops
    assert "queue-limit 9" in [line["text"] for line in step(drops[0], "verdict")["lines"]]


def test_wred_drops_with_its_line_and_depth(simulated_cell: CellFiles) -> None:
    subject = run_subject(simulated_cell, "R1", "run")
    found = [during(subject, 5002, at_ms) for at_ms in range(1500, 2500, 50)]
    drops = [each for each in found if each.reason in ("random", "random_tail")]
    assert drops
    assert step(drops[0], "random_detect")["mean_depth"] > 0
    assert [line["text"] for line in step(drops[0], "verdict")["lines"]] == ["random-detect"]


def test_priority_class_above_its_rate_is_dropped_under_congestion(simulated_cell: CellFiles) -> None:
    found = [during(run_subject(simulated_cell, "R1", "run"), 5003, at_ms, 228) for at_ms in range(2000, 2100, 10)]
    drops = [each for each in found if each.reason == "priority"]
    assert drops
    bucket = step(drops[0], "priority")
    assert bucket["bucket_before"]["committed_bytes"] < 242
    assert step(drops[0], "verdict")["lines"][0]["text"] == "priority 100"


def test_packet_of_a_capture_has_its_headers_and_its_time_at_the_router(simulated_cell: CellFiles) -> None:
    found = read_captured_packet("client:50", simulated_cell)
    packet = found.packet
    assert (packet.protocol, str(packet.source), str(packet.destination)) == (UDP, "10.0.0.10", "10.0.20.10")
    assert packet.destination_port in (5001, 5002, 5003)
    assert found.time_ns is not None and 0 < found.time_ns < 3 * 10**9
    of_file = read_captured_packet(f"{simulated_cell.capture('client')}:50", None)
    assert (of_file.packet, of_file.time_ns) == (packet, None)
    subject = run_subject(simulated_cell, "R1", "run")
    came = find_arrival(subject, found)
    assert came is not None and came.interface == "FastEthernet0/0"
    # The frame waits on the 100 Mb/s line for at most one full frame, and then for itself.
    assert 0 <= came.time_ns - found.time_ns <= 2 * 123_040
    traced = trace_packet(ask_simulator(subject, packet, at_ns=came.time_ns - 1), "loaded")
    assert traced.classes["output"][0] == "class-default"
    assert find_arrival(subject, replace(found, identity=1)) is None


def test_same_question_has_the_same_answer(simulated_cell: CellFiles) -> None:
    subject = run_subject(simulated_cell, "R1", "run")
    assert during(subject, 5001, 2345) == during(subject, 5001, 2345)


@cache
def shipped_experiment(file: Path) -> tuple[Experiment, Mapping[str, str], str, Subject]:
    """Return an experiment with the first router next to a sending host."""
    experiment, texts = first_cell_configurations(file)
    routers = set(router_names(experiment.topology))
    sources = {flow.source for flow in experiment.arm_flows(experiment.arms[0])}
    ends = [[end.node for end in link.ends] for link in experiment.topology.links]
    router = next(name for nodes in ends if sources & {*nodes} for name in nodes if name in routers)
    return experiment, texts, router, experiment_subject(experiment, texts, router, "test")


@pytest.mark.sample(3)
@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
@settings(max_examples=example_count(60))
@given(data=st.data())
def test_class_and_verdict_are_those_of_the_packet_sent_alone(file: Path, data: st.DataObject) -> None:
    experiment, texts, router, subject = shipped_experiment(file)
    flow = data.draw(st.sampled_from(experiment.arm_flows(experiment.arms[0])))
    source, destination = flow_addresses(experiment.topology, flow)
    overhead = 28 if ip_address(source).version == 4 else 48
    packet = Packet(
        UDP,
        ip_address(source),
        ip_address(destination),
        data.draw(st.sampled_from((4000, 5001, 5003))),
        data.draw(st.sampled_from((flow.port or 5001, 5001, 5002, 5003, 5060, 20_000))),
        dscp=data.draw(st.one_of(st.sampled_from((0, 8, 10, 40, 46)), st.integers(0, 63))),
        length=data.draw(st.integers(overhead + 16, 1500)),
    )
    found = trace_packet(ask_simulator(subject, packet), "idle")
    routers = configured_routers(experiment, texts)
    scenario = build_scenario(experiment, routers, 1, MeasurementDemand())
    alone: Any = {
        **subject.scenario,
        "nodes": {name: {**node, "ip_sla": None} for name, node in scenario["nodes"].items()},
        "host_jitter_ns": 0,
        "start_jitter_ns": 0,
        "drain_ns": 10**10,
        "sample_ns": 10**9,
        "flows": [
            {
                "name": "one",
                "protocol": "udp",
                "source": flow.source,
                "destination": flow.destination,
                "source_address": str(source),
                "destination_address": str(destination),
                "port": packet.destination_port,
                "client_port": packet.source_port,
                "duration_ns": 10**6,
                "gap_ns": 10**9,
                "dscp": packet.dscp,
                "payload_bytes": packet.length - overhead,
            }
        ],
    }
    report = simulate(alone)
    ports = report["routers"][router]["samples"][-1]["interfaces"]
    for direction in ("input", "output"):
        assert counted_classes(ports, direction) == found.classes.get(direction, [])
    drops = sum(port["output"]["drops"] + port["input"]["drops"] for port in ports.values())
    sent = sum(port["output"]["packets"] for port in ports.values())
    assert (found.result == "sent", found.result == "dropped") == (sent == 1, drops + (1 - sent) > 0)


def counted_classes(ports: Any, direction: str) -> list[str]:
    """Return the classes with a packet, outermost first."""
    parts = [each for port in ports.values() for each in (port, *port["subinterfaces"].values())]
    policy = next((each for part in parts if counted_packets(each := part[f"policy_{direction}"])), None)
    found = []
    while policy is not None:
        hit = next((each for each in policy["classes"] if each["packets"]), None)
        if hit is None:
            break
        found.append(hit["name"])
        policy = hit["child"]
    return found


def counted_packets(policy: Any) -> bool:
    return policy is not None and any(each["packets"] for each in policy["classes"])
