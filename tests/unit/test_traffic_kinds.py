"""Kinds of traffic in experiment files: the keys that each replaces, and the labs that send them."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import time
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, get_args

import pytest

from qoslab.errors import ExperimentError
from qoslab.lab_kinds import LABS
from qoslab.model.experiment import Flow
from qoslab.model.traffic_kinds import CATALOGUE, IMIX_PACKETS, KINDS, KindName
from qoslab.model.units import Duration
from qoslab.plan import Options, make_plan
from qoslab.run.task import make_task
from qoslab.schema import load_sweep
from qoslab.schema.json_schema import experiment_schema
from qoslab.schema.kinds import expand_kinds
from qoslab.simulation.result import read_flow, read_result
from qoslab.simulation.scenario import build_scenario, configured_routers
from qoslab.system.programs import SIMULATOR, find_own_program
from qoslab.traffic.base import Endpoints, FlowOutput, is_listening
from qoslab.traffic.endpoints import flow_seed
from qoslab.traffic.flood import Flood

EXPERIMENT = """\
name: kinds
title: Kinds
topology:
  nodes:
    office: {{platform: host}}
    R1: {{platform: ios, model: "3725"}}
    server: {{platform: host}}
  links:
    - name: lan
      rate: 100 Mb/s
      ends:
        - {{node: office, interface: eth0, address: 192.168.1.2/24}}
        - {{node: R1, interface: FastEthernet0/0, address: 192.168.1.1/24}}
    - name: uplink
      rate: 10 Mb/s
      delay: 30 ms
      ends:
        - {{node: R1, interface: FastEthernet0/1, address: 192.168.2.1/24}}
        - {{node: server, interface: eth0, address: 192.168.2.2/24}}
duration: 4 s
traffic:
{traffic}
arms:
  - {{name: only}}
"""


def experiment_file_with(folder: Path, *flows: str) -> Path:
    lines = [f"  - {{name: f{number}, from: office, to: server, {flow}}}" for number, flow in enumerate(flows)]
    file = folder / "kinds.yml"
    file.write_text(EXPERIMENT.format(traffic="\n".join(lines)), encoding="utf-8")
    return file


def flows_of(folder: Path, *flows: str, lab: str = "simulated") -> tuple[Flow, ...]:
    return load_sweep(experiment_file_with(folder, *flows), None, LABS[lab].check).experiment.traffic


def plan_findings(folder: Path, *flows: str, lab: str) -> list[str]:
    with pytest.raises(ExperimentError) as error:
        flows_of(folder, *flows, lab=lab)
    return [each.message for each in error.value.findings]


def test_kind_names_equal_the_catalogue() -> None:
    assert get_args(KindName) == tuple(each.name for each in CATALOGUE)


def test_kind_sets_the_keys_of_a_flow(tmp_path: Path) -> None:
    voice, backup, business = flows_of(tmp_path, "kind: voice, streams: 20", "kind: backup", "kind: transactions")
    assert (voice.tool, voice.protocol, voice.streams, voice.dscp, voice.port) == ("flood", "udp", 20, 46, 16384)
    assert voice.delay is not None
    assert voice.size is not None
    assert (voice.delay.ns, voice.size.bytes) == (20_000_000, 200)
    assert (backup.tool, backup.protocol, backup.rate, backup.dscp) == ("iperf3", "tcp", None, 10)
    assert business.delay is not None and business.size is not None
    assert (business.tool, business.delay.ns, business.size.bytes) == ("flood", 2_000_000_000, 20_000)


def test_kind_has_the_same_payload_with_ipv6() -> None:
    """Count bytes of a call: 160 of G.711 and 12 of RTP give 200 with IPv4, 220 with IPv6; full packets stay below
    1500.
    """
    flows = [{"name": name, "kind": name, "family": 6} for name in ("voice", "imix")]
    voice, imix = expand_kinds({"traffic": flows})["traffic"]
    assert (voice["size"], imix["size"]) == ("220 B", "1500 B")


def test_keys_of_the_flow_replace_those_of_its_kind(tmp_path: Path) -> None:
    (voice,) = flows_of(tmp_path, "kind: voice, dscp: cs5, port: 4000, rate: 40 kb/s")
    assert (voice.dscp, voice.port, voice.delay) == (40, 4000, None)


@pytest.mark.parametrize("lab", ["virtual", "external", "simulated"])
def test_all_labs_send_all_kinds(lab: str, tmp_path: Path) -> None:
    flows = flows_of(tmp_path, *(f"kind: {each.name}" for each in CATALOGUE), lab=lab)
    assert {each.kind for each in flows if each.tool == "iperf3"} == {"backup", "bulk", "scavenger"}


def test_flood_sends_pages_of_web_users_from_random_start_times(tmp_path: Path) -> None:
    (web,) = flows_of(tmp_path, "kind: web, streams: 3, size: 200 kB, delay: 250 ms, duration: 1 s", lab="virtual")
    address = IPv4Address("127.0.0.1")
    commands = Flood().commands(web, Duration(10**9), Endpoints(address, address, 5002), "cubic")
    assert dict(itertools.pairwise(commands.client))["--spread"] == "0.25"
    with subprocess.Popen(
        [find_own_program("flood"), *commands.server[1:]], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        for _ in range(100):
            if is_listening([Path("/proc/net/tcp").read_text(encoding="utf-8")], commands.listener):
                break
            time.sleep(0.1)
        client = [find_own_program("flood"), *commands.client[1:]]
        sent = subprocess.run(client, capture_output=True, text=True, check=True).stdout
        received = server.stdout.read()
    result = Flood().parse(web, Duration(10**9), FlowOutput(sent), FlowOutput(received))
    assert len(result.streams) == 3
    for stream in result.streams:
        assert stream.pages is not None and stream.page_max_ms is not None and stream.page_mean_ms is not None
        assert stream.bytes == stream.sender_bytes == stream.pages * 200_000
        assert 0 < stream.page_mean_ms <= stream.page_max_ms
    # The seed determines the starts, which differ.
    starts = [each["start_s"] for each in json.loads(sent)["streams"]]
    assert starts[0] != pytest.approx(starts[1], abs=0.001)
    assert sum(each.bytes for each in result.intervals) == sum(each.bytes for each in result.streams)


def test_flood_sends_the_frames_of_a_kind_in_bursts(tmp_path: Path) -> None:
    video, imix = flows_of(tmp_path, "kind: video, streams: 4, rate: 750 kb/s", "kind: imix", lab="virtual")
    address = IPv4Address("127.0.0.1")
    client = Flood().commands(video, Duration(10**9), Endpoints(address, address, 5000), "cubic").client
    options = dict(itertools.pairwise(client))
    assert (options["--delay"], options["--size"], options["--streams"]) == ("66.662756", "1228", "4")
    assert options["--frames"].split(",") == [str(each) for each in KINDS["video"].sizes]
    commands = Flood().commands(imix, Duration(2 * 10**8), Endpoints(address, address, 5001), "cubic")
    with subprocess.Popen(
        [find_own_program("flood"), *commands.server[1:]], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        sent = subprocess.run(
            [find_own_program("flood"), *commands.client[1:]], capture_output=True, text=True, check=True
        ).stdout
        server.send_signal(signal.SIGINT)
        received = server.stdout.read()
    (stream,) = Flood().parse(imix, Duration(2 * 10**8), FlowOutput(sent), FlowOutput(received)).streams
    assert stream.lost == 0
    # 5 Mb/s of IP packets of 40, 576 and 1500 bytes, 7 to 4 to 1.
    packets = 5e6 * 0.2 / 8 / (sum(IMIX_PACKETS) / len(IMIX_PACKETS))
    # A machine without time for the sender skips some.
    report = json.loads(sent)
    assert report["packets"] + report["skipped"] == pytest.approx(packets, abs=2)
    assert stream.bytes == stream.sender_bytes


def test_misspelt_kind_gives_one_finding(tmp_path: Path) -> None:
    (found,) = plan_findings(tmp_path, "kind: vioce", lab="simulated")
    assert found.startswith('found "vioce", expected one of voice, g729')


def test_schema_for_editors_takes_a_kind_in_place_of_a_tool() -> None:
    import jsonschema

    schema = experiment_schema()
    flow = {"$ref": "#/$defs/Flow", "$defs": schema["$defs"]}
    good: dict[str, Any] = {"name": "a", "from": "office", "to": "server"}
    jsonschema.validate(good | {"kind": "voice", "streams": 3}, flow)
    jsonschema.validate(good | {"tool": "iperf3"}, flow)
    for bad in (good, good | {"kind": "vioce"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, flow)


def test_simulation_sends_pictures_in_bursts_and_scores_calls(tmp_path: Path) -> None:
    web_users = "kind: web, streams: 2, size: 300 kB"
    file = experiment_file_with(tmp_path, "kind: voice, streams: 3", "kind: streaming, rate: 2 Mb/s", web_users)
    plan = make_plan(load_sweep(file, None, LABS["simulated"].check), Options(lab="simulated"))
    task = make_task(plan.cells[0], {"qos-sim": "qos-sim 0.1.0"})
    routers = configured_routers(task.experiment, task.configurations)
    scenario = build_scenario(task.experiment, routers, 1, task.demand)
    flows = {each["name"]: each for each in scenario["flows"]}
    assert flows["f1"]["frames"] == list(KINDS["streaming"].sizes)
    assert flows["f1"]["gap_ns"] == pytest.approx(80_000_000, rel=0.001)
    assert flows["f2"]["spread_ns"] == 3_800_000_000
    done = subprocess.run(
        [find_own_program(SIMULATOR), "run"], input=json.dumps(scenario), capture_output=True, text=True, check=True
    )
    result = read_result(done.stdout)
    voice, streaming, web = (read_flow(each, result.flow_text(each.name)) for each in task.experiment.traffic)
    for call in voice.streams:
        assert call.delay_p50_ms is not None
        assert call.voice_r is not None
        # 30 ms on the line, and the pictures in front at 10 Mb/s.
        assert 30 < call.delay_p50_ms < 60
        assert 80 < call.voice_r < 92
    assert streaming.streams[0].voice_r is None
    assert streaming.streams[0].goodput_bps == pytest.approx(2_000_000, rel=0.15)
    # A user loads a page of 0.3 s less than once during the flow.
    assert [each.pages is not None and each.pages <= 1 for each in web.streams] == [True, True]


def test_simulation_and_hosts_start_users_by_the_same_draw(tmp_path: Path) -> None:
    file = experiment_file_with(tmp_path, "kind: web, streams: 3, delay: 1 s", "kind: transactions, streams: 40")
    plan = make_plan(load_sweep(file, None, LABS["simulated"].check), Options(lab="simulated"))
    task = make_task(plan.cells[0], {"qos-sim": "qos-sim 0.1.0"})
    experiment = task.experiment
    scenario = build_scenario(experiment, configured_routers(experiment, task.configurations), 1, task.demand)
    address = IPv4Address("127.0.0.1")
    for flow, simulated in zip(experiment.traffic, scenario["flows"], strict=True):
        ends = Endpoints(address, address, 5002, seed=flow_seed(experiment.seed, 1, flow.name))
        commands = Flood().commands(flow, experiment.flow_duration(experiment.arms[0], flow), ends, "cubic")
        options = dict(itertools.pairwise(commands.client))
        assert int(options["--seed"]) == simulated["seed"]
        assert round(float(options["--spread"]) * 10**9) == simulated["spread_ns"] > 0
