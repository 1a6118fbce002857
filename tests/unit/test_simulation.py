"""Experiments as scenarios of the simulator, and unsupported ones; without running it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_sweep import GRID

from experiment_files import experiment_file, simulated_experiments
from levels import every_nth
from qoslab.cli import main
from qoslab.cli.options import CellChoice
from qoslab.cli.plan import summary_lines
from qoslab.errors import ExitStatus, ExperimentError, UserError
from qoslab.lab_kinds import lab_kind
from qoslab.lab_kinds.base import REPORT_CELL_S, REPORT_S
from qoslab.lab_kinds.simulated import PROCESS_OVERHEAD_S, WORKERS_UP_S, SimulatedKind
from qoslab.lab_kinds.virtual import VirtualKind
from qoslab.model.experiment import Flow
from qoslab.model.expressions import show_value
from qoslab.model.steps import SIMULATION
from qoslab.plan import Options, Plan, make_plan
from qoslab.results import CellRecord, CellSummary, Manifest, RunFolder, RunOptions, Step
from qoslab.run.costs import simulation_costs
from qoslab.run.task import CellTask, make_task
from qoslab.schema import Sweep, load_sweep
from qoslab.simulation.history import SampleHistory
from qoslab.simulation.result import SimulationError, read_flow, read_result
from qoslab.simulation.routers import configured_router
from qoslab.simulation.scenario import EPOCH_NS, build_scenario, configured_routers, scenario_seed
from qoslab.simulation.show_answers import answer_show, empty_history
from qoslab.system import program_formats
from qoslab.traffic import TrafficError

TOP = Path(__file__).parents[2]
EXPERIMENTS = TOP / "experiments"
GOLDENS = TOP / "tests" / "goldens" / "simulation"
VERSIONS = {"qos-sim": "qos-sim 0.1.0"}


def sweep(name: str, sets: dict[str, str] | None = None) -> Sweep:
    return shipped_sweep(name) if sets is None else _load(name, sets)


@cache
def shipped_sweep(name: str) -> Sweep:
    return _load(name, None)


def _load(name: str, sets: dict[str, str] | None) -> Sweep:
    return load_sweep(EXPERIMENTS / f"{name}.yml", sets, lab_kind(SimulatedKind.name).check)


def tasks(name: str, sets: dict[str, str] | None = None, **options: Any) -> list[CellTask]:
    plan = make_plan(sweep(name, sets), Options(lab=SimulatedKind.name, **options))
    return [make_task(cell, VERSIONS) for cell in plan.cells]


def scenario(task: CellTask) -> program_formats.Scenario:
    routers = configured_routers(task.experiment, task.configurations)
    return build_scenario(task.experiment, routers, task.identity.repetition, task.demand)


def findings(name: str, sets: dict[str, str]) -> list[tuple[str, str]]:
    with pytest.raises(ExperimentError) as caught:
        sweep(name, sets)
    assert all(each.hint == "it is not simulated; use --lab virtual" for each in caught.value.findings)
    return [(each.path, each.message) for each in caught.value.findings]


# Scenarios


def test_shaped_arm_becomes_a_scenario(golden: Callable[[Path, str], None]) -> None:
    (task,) = tasks("policing-vs-shaping", arms=("shaped",))
    golden(GOLDENS / "policing-vs-shaping.shaped.json", json.dumps(scenario(task), indent=1) + "\n")


def test_cell_of_the_friendly_policer_becomes_a_scenario(golden: Callable[[Path, str], None]) -> None:
    only = (("arm", "grid"), ("link", "10 Mb/s"), ("rtt", "50 ms"), ("pir", "1 Mb/s"), ("connections", "5"))
    (task,) = tasks("tcp-friendly-policer", only=only)
    golden(GOLDENS / "tcp-friendly-policer.grid.json", json.dumps(scenario(task), indent=1) + "\n")


def test_static_routes_and_a_serial_line_are_simulated() -> None:
    made = scenario(tasks("wfq-precedence")[0])
    assert made["nodes"]["a1"]["routes"] == [{"prefix": "10.0.20.0/24", "via": "10.0.1.2", "interface": None}]
    (line,) = [link for link in made["links"] if link["framing"] != "ethernet"]
    ports = [made["nodes"][end["node"]]["configuration"]["interfaces"][end["interface"]] for end in line["ends"]]
    assert {port["clock_rate_bps"] for port in ports} == {line["rate_bps"]}


def test_flow_of_ipv6_has_its_addresses_and_routes() -> None:
    (task,) = tasks("ipv6-policing", only=(("family", "6"), ("payload", "1400 B")))
    made = scenario(task)
    (flow,) = made["flows"]
    assert (flow["source_address"], flow["destination_address"]) == ("2001:db8:10::2", "2001:db8:20::2")
    assert made["nodes"]["client"]["routes"] == [
        {"prefix": "0.0.0.0/0", "via": "192.168.10.1"},
        {"prefix": "::/0", "via": "2001:db8:10::1"},
    ]
    assert made["links"][1]["ends"][0] == {
        "node": "R1",
        "interface": "FastEthernet0/1",
        "address": "192.168.20.1/24",
        "ipv6_address": "2001:db8:20::1/64",
    }


def test_unsimulated_parts_of_ipv6_are_reported() -> None:
    for lines, problem in (
        ("no ipv6 unicast-routing", "an IPv6 address on FastEthernet0/0 without `ipv6 unicast-routing`"),
        ("interface fa0/0\nipv6 address 2001:db8:99::1/64", "a second IPv6 address on FastEthernet0/0"),
        ("ipv6 route 2001:db8:9::/48 fa0/0 fe80::9", "a route via the link-local address FE80::9"),
    ):
        router = configured_router(tasks("ipv6-policing")[0].experiment.topology, "R1", lines)
        assert problem in list(router.problems)


def test_simulated_flood_equals_that_of_the_program() -> None:
    sets = {
        "arms.policed.traffic": "[{name: a, tool: flood, protocol: udp, from: client, to: server, size: 570 B, "
        "rate: 1 Mb/s}, {name: b, tool: flood, protocol: udp, from: client, to: server, delay: 2 ms, "
        "random: [size, port]}, {name: c, tool: iperf, protocol: udp, from: client, to: server, rate: 1 Mb/s}]"
    }
    (task,) = tasks("policing-vs-shaping", sets, arms=("policed",))
    fixed, drawn, iperf = scenario(task)["flows"]
    assert (fixed["payload_bytes"], fixed["rate_bps"], fixed["rate_layer"]) == (542, 1_000_000, "ip")
    assert (drawn["payload_bytes"], drawn["gap_ns"], drawn["port"]) == (None, 2_000_000, None)
    assert fixed["take_turns"] and "take_turns" not in iperf
    assert (iperf["payload_bytes"], iperf["rate_bps"], iperf.get("rate_layer")) == (1470, 1_000_000, None)


def test_repetitions_and_flows_have_different_seeds() -> None:
    made = [scenario(task) for task in tasks("policing-vs-shaping", repetitions=3, arms=("policed", "shaped"))]
    assert len({each["seed"] for each in made}) == 3, "the same in all arms, another in each repetition"
    again = [scenario(task) for task in tasks("policing-vs-shaping", repetitions=3, arms=("policed", "shaped"))]
    assert made == again


@given(st.integers(), st.integers(min_value=1))
def test_seed_fits_a_json_number(seed: int, repetition: int) -> None:
    assert 0 <= scenario_seed(seed, repetition) < 2**48


def test_switch_of_an_arm_is_simulated(golden: Callable[[Path, str], None]) -> None:
    (task,) = tasks("srr-3750", arms=("srr",))
    golden(GOLDENS / "srr-3750.srr.json", json.dumps(scenario(task), indent=1) + "\n")


def test_router_probe_is_simulated(golden: Callable[[Path, str], None]) -> None:
    (task,) = tasks("tx-ring-limit", arms=("cbr",), only=(("line", "512 kb/s"), ("ring", "2")))
    golden(GOLDENS / "tx-ring-limit.cbr.json", json.dumps(scenario(task), indent=1) + "\n")


def test_host_probe_and_responder_are_simulated() -> None:
    probe = (
        "[{name: p, type: udp-jitter, from: client, to: server, port: 5000, frequency: 2 s, timeout: 1 s, "
        "interval: 30 ms, packets: 4, size: 64 B, tos: 184, threshold: 100 ms, start_after: 1500 ms}]"
    )
    (task,) = tasks("policing-vs-shaping", {"probes": probe}, arms=("policed",))
    made = scenario(task)
    assert made["nodes"]["client"]["ip_sla"] == {
        "operations": {
            "1": {
                "type": "udp-jitter",
                "target": "192.168.20.2",
                "target_port": 5000,
                "packets": 4,
                "interval_ms": 30,
                "frequency_s": 2,
                "timeout_ms": 1000,
                "threshold_ms": 100,
                "request_data_size": 64,
                "tos": 184,
            }
        }
    }
    assert made["nodes"]["server"]["ip_sla"] == {"responder": True, "responder_ports": [5000]}
    assert made["probes"] == [
        {"name": "p", "node": "client", "operation": 1, "start_ns": 1_500_000_000, "end_ns": 29_500_000_000}
    ]


# Refusals


def test_switched_port_is_reported() -> None:
    topology = tasks("srr-3750")[0].experiment.topology
    reported = list(configured_router(topology, "SW", "interface GigabitEthernet1/0/1\n switchport\n").problems)
    assert reported == ["GigabitEthernet1/0/1, not a routed port"]
    assert not list(configured_router(topology, "SW", "").problems)


def test_every_experiment_file_without_a_kernel_can_be_simulated() -> None:
    for file in list(simulated_experiments())[:: every_nth(4)]:
        assert sweep(file.stem).experiment.arms, file


def test_kernel_is_refused_with_the_alternative_named() -> None:
    with pytest.raises(ExperimentError, match="use --lab virtual for the kernel's queueing, or platform: engine"):
        sweep("ios-and-kernel")


@pytest.mark.parametrize(
    ("path", "value", "where", "found"),
    [
        ("tcp", "{congestion_control: bbr}", "tcp.congestion_control", '"bbr"'),
        ("arms.policed.tcp", "{early_retrans: 2}", "arms.policed.tcp.early_retrans", "2"),
        ("traffic.transfer.congestion_control", "vegas", "traffic.transfer.congestion_control", '"vegas"'),
        ("captures.server.filter", "port 5", "captures.server.filter", 'the filter "port 5"'),
        (
            "arms.policed.traffic",
            "[{name: a, tool: iperf, protocol: udp, from: client, to: server, rate: 1 Mb/s, window: 8 kB}]",
            "arms.policed.traffic.a.window",
            "8 kB on a UDP flow",
        ),
        ("arms.policed.traffic", "[]", "arms.policed.traffic", "no traffic in arm policed"),
        ("observe", "[{node: R1, command: show policy-map}]", "observe[0].command", '"show policy-map"'),
    ],
)
def test_unmodelled_features_are_refused(path: str, value: str, where: str, found: str) -> None:
    listed = dict(findings("policing-vs-shaping", {path: value}))
    assert listed[where].startswith(f"found {found}")
    load_sweep(EXPERIMENTS / "policing-vs-shaping.yml", {path: value})  # the virtual lab does


def test_commands_refuse_unsimulated_features(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["validate"], ["plan"], ["run", "--dry-run"]):
        command = [words[0], str(EXPERIMENTS / "wfq-precedence.yml"), "--lab", "simulated", *words[1:]]
        assert main([*command, "--set", "tcp={congestion_control: bbr}"]) == ExitStatus.USER_MISTAKE
        assert 'found "bbr"' in capsys.readouterr().err
    assert main(["validate", str(EXPERIMENTS / "srr-3750.yml"), "--lab", "simulated"]) == ExitStatus.WITHIN


# Keys, options, estimates


def test_results_of_two_labs_and_of_two_simulators_are_never_mixed(tmp_path: Path) -> None:
    made = load_sweep(experiment_file(tmp_path, "grid.yml", GRID))
    tools = {"iperf3": "iperf 3.12", **VERSIONS}
    keys = {
        lab: make_task(make_plan(made, Options(lab=lab)).cells[0], tools).key
        for lab in (VirtualKind.name, SimulatedKind.name)
    }
    assert keys[VirtualKind.name] != keys[SimulatedKind.name]
    cell = make_plan(made, Options(lab=SimulatedKind.name)).cells[0]
    assert make_task(cell, {**tools, "iperf3": "another"}).key == keys[SimulatedKind.name], "no iperf runs"
    assert make_task(cell, {**tools, "qos-sim": "another"}).key != keys[SimulatedKind.name]


def test_resumed_run_stays_in_its_lab() -> None:
    file = TOP / "experiments/policing-vs-shaping.yml"
    recorded = CellChoice(lab=SimulatedKind.name).to_record(file, ["a=b"])
    assert CellChoice().merge_record(recorded).lab == SimulatedKind.name
    assert CellChoice().to_record(file, ()).lab == VirtualKind.name
    assert CellChoice().merge_record(RunOptions(file="a")).lab == VirtualKind.name, "runs had no kind of lab once"
    with pytest.raises(UserError, match="found --lab virtual for a run with --lab simulated"):
        CellChoice(lab=VirtualKind.name).merge_record(recorded)


def planned(file: Path, costs: dict[str, float]) -> Plan:
    return make_plan(load_sweep(file), Options(lab=SimulatedKind.name, costs=costs))


def test_duration_of_simulated_cells_is_learnt(tmp_path: Path) -> None:
    file = experiment_file(tmp_path, "grid.yml", GRID)
    plan = planned(file, {})
    assert plan.seconds is None
    assert list(summary_lines(plan, 2))[-1] == "time: not known before the first simulated cell of each arm"

    folder = RunFolder.create(tmp_path / "runs", "grid")
    summaries = []
    for number, cell in enumerate(plan.cells):
        task = make_task(cell, VERSIONS)
        place = folder.cell_folder(task.identity)
        started = f"2026-11-21T11:00:00.{100 * number:06d}Z"
        step = Step.model_validate({"name": SIMULATION, "started": started, "ended": "2026-11-21T11:00:02Z"})
        place.write_record(
            CellRecord(
                arm=cell.arm,
                repetition=1,
                key=task.key,
                lab=SimulatedKind.name,
                virtual_s=4.0,
                valid=True,
                steps=(step,),
            )
        )
        where = str(place.path.relative_to(folder.path))
        values = {name: show_value(value) for name, value in cell.identity.parameters}
        summaries.append(CellSummary(arm=cell.arm, parameters=values, repetition=1, folder=where, valid=True))
    folder.write_manifest(
        Manifest(experiment=plan.experiment, lab=SimulatedKind.name, started=step.started, cells=tuple(summaries))
    )
    costs = simulation_costs(tmp_path / "runs", "grid")
    assert costs == {plan.cells[0].arm: pytest.approx(0.5, rel=0.01)}
    again = planned(file, costs)
    each = again.experiment.duration.seconds / 2 + 2 * PROCESS_OVERHEAD_S
    assert again.cells[0].seconds == pytest.approx(each, rel=0.01)
    around = WORKERS_UP_S + REPORT_S + REPORT_CELL_S * len(again.cells)
    assert again.seconds == pytest.approx(len(again.cells) * each + around, rel=0.01)
    assert "one process" in list(summary_lines(again, 2))[-2]


@pytest.mark.long
def test_scenario_imports_no_lab_module() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests/unit'); from test_simulation import scenario, tasks; "
        "from qoslab.run import runner; from qoslab.run.cluster import remote_worker; "
        "from qoslab.run.workers import simulated; "
        "scenario(tasks('policing-vs-shaping')[0]); "
        "heavy = {'ansible', 'ansible_runner', 'genie', 'unicon', 'pyats', 'pyroute2', 'asyncssh', "
        "'qoslab.virtual_lab', 'qoslab.run.devices.ansible.playbooks', 'qoslab.run.devices.collector'}; "
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TOP, env={"PYTHONPATH": "tests"}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr


# Results


def test_simulated_show_commands_equal_those_of_a_router() -> None:
    (task,) = tasks("policing-vs-shaping", arms=("policed",))
    node = task.experiment.topology.nodes["R1"]
    router = configured_router(task.experiment.topology, "R1", task.configurations["R1"])
    blank = empty_history(node, router)
    (sample,) = blank.samples
    later = json.loads(json.dumps(sample)) | {"time_ns": EPOCH_NS + 5 * 10**9}
    later["interfaces"]["FastEthernet0/0"]["input"]["packets"] = 7
    shown = answer_show(node, router, "show interfaces FastEthernet0/0", SampleHistory([sample, later]))
    assert "Last input 00:00:00, output never" in shown and "     7 packets input, 0 bytes\n" in shown
    assert "is directly connected, FastEthernet0/1" in answer_show(node, router, "show ip route", blank)
    assert "police cir 1000000" in answer_show(node, router, "show running-config", blank)
    assert "Invalid input detected" in answer_show(node, router, "show nonsense", blank)


def test_processor_share_is_that_at_process_level() -> None:
    (task,) = tasks("tx-ring-limit", arms=("cbr",), only=(("line", "512 kb/s"), ("ring", "2")))
    node = task.experiment.topology.nodes["a1"]
    router = configured_router(task.experiment.topology, "a1", task.configurations["a1"])
    (sample,) = empty_history(node, router).samples
    samples = [sample | {"time_ns": EPOCH_NS + second * 10**9} for second in range(9)]
    # Half of the time up to second 4, then none, then all of second 8.
    busy = [min(second, 4) * 500_000_000 + (second == 8) * 10**9 for second in range(9)]
    history = SampleHistory(samples, process_busy_ns=busy)
    shown = answer_show(node, router, "show processes cpu", history)
    assert "five seconds: 30%/0%; one minute: 38%; five minutes: 38%" in shown
    assert "five seconds: 50%/0%" in answer_show(node, router, "show processes cpu", history.history_until(4 * 10**9))
    assert "five seconds: 0%/0%" in answer_show(node, router, "show processes cpu", history.history_until(0))


STREAM = {
    "stream": 1,
    "local_port": 32768,
    "connected": True,
    "complete": True,
    "seconds": 2.0,
    "bytes": 250_000,
    "sender_bytes": 260_000,
    "retransmits": 3,
    "mss_bytes": 1448,
    "rtt_mean_ms": 50.5,
    "datagrams": None,
    "lost": None,
    "jitter_ms": None,
    "delay": None,
    "writes": None,
}


def flow_text(**stream: Any) -> str:
    content = {
        "version": "0.1.0",
        "streams": [STREAM | stream],
        "intervals": [{"stream": 1, "start_s": 0.0, "end_s": 1.0, "bytes": 125_000}],
    }
    return json.dumps(content)


FLOW = Flow.model_validate({"name": "transfer", "tool": "iperf", "from": "client", "to": "server"})


def test_values_of_a_flow_are_read() -> None:
    found = read_flow(FLOW, flow_text())
    (stream,), (interval,) = found.streams, found.intervals
    assert (stream.goodput_bps, stream.sender_bps, stream.retransmits) == (1e6, 1.04e6, 3)
    assert (interval.bps, found.tool, found.failure) == (1e6, "qos-sim", "")


def test_flow_without_arrivals_is_reported() -> None:
    text = flow_text(connected=False, bytes=0)
    with pytest.raises(TrafficError, match="0 of 1 connections were established"):
        read_flow(FLOW, text)
    found = read_flow(FLOW.model_copy(update={"may_fail": True}), text)
    assert found.failure == "0 of 1 connections were established" and found.streams[0].bytes == 0
    with pytest.raises(TrafficError, match="stream 1 was not finished"):
        read_flow(FLOW, flow_text(complete=False))


@pytest.mark.parametrize("change", [{"bytes": -1}, {"bytes": 1.5}, {"seconds": None}, {"seconds": 0}, {"stream": True}])
def test_malformed_values_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(TrafficError, match="is malformed"):
        read_flow(FLOW, flow_text(**change))


@given(st.text() | st.binary().map(repr) | st.sampled_from(["{}", "[]", '{"program": "qos-sim", "format": 2}']))
def test_invalid_result_is_reported(text: str) -> None:
    with pytest.raises(SimulationError, match="its output is not a result"):
        read_result(text)
