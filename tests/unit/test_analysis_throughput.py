"""Goodput against policer and path, metrics of RFC 6349, and counters of the hosts' kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from analysis_tables import columns
from sample_run import EXPERIMENT, RECORDED, cells_of, make_run, reseal

from qoslab.analysis import analyse
from qoslab.analysis.class_lines import Line
from qoslab.analysis.host_metrics import host_values
from qoslab.analysis.missing import Missing
from qoslab.analysis.paths import Path as Way
from qoslab.analysis.paths import find_path, first_arm_paths
from qoslab.analysis.queues import interface_values, select_objects
from qoslab.analysis.throughput import throughput_values
from qoslab.errors import UserError
from qoslab.lab_kinds.host_counters import host_row, read_counters
from qoslab.model.experiment import Experiment
from qoslab.results import tables

WAY = Way(9.75e6, 50.0, frozenset({("R1", "Fa0/0"), ("server", "eth0")}), frozenset({("client", "eth0")}))


def flows(payload: int, *, mss: int | None = 1448, retransmits: int = 10) -> pd.DataFrame:
    row: dict[str, object] = {
        "traffic": "transfer",
        "protocol": "tcp",
        "stream": 1,
        "seconds": 10.0,
        "bytes": payload,
        "goodput_bps": payload * 0.8,
        "retransmits": retransmits,
        "mss_bytes": mss,
        "rtt_mean_ms": 55.0,
    }
    return tables.frame("flows", [row])


def policer(cir: float, interface: str = "Fa0/0", name: str = "class-default") -> pd.DataFrame:
    row: dict[str, object] = {
        "device": "R1",
        "interface": interface,
        "direction": "input",
        "policy": "P",
        "class": name,
        "time_s": 1.0,
        "police_cir_bps": cir,
    }
    return tables.frame("classes", [row])


class TestThroughput:
    def test_full_segments_fill_the_ip_bytes_of_a_policer(self) -> None:
        # 1000 full frames of 1514 counted bytes in ten seconds are exactly the CIR.
        found = dict(throughput_values(columns(flows(1_448_000)), columns(policer(1514 * 800)), {"transfer": WAY}, {}))
        assert found["goodput.of_pir"] == pytest.approx(1448 / 1500)
        assert found["goodput.of_pir.ip"] == pytest.approx(1)
        assert found["goodput.of_bottleneck"] == found["goodput.of_pir"]
        assert found["tcp.transfer_time_ratio"] == pytest.approx(1)
        assert found["tcp.efficiency"] == pytest.approx(1000 / 1010)
        assert found["tcp.buffer_delay"] == pytest.approx(0.1)

    def test_link_below_the_policer_is_the_bottleneck(self) -> None:
        found = dict(throughput_values(columns(flows(6_000_000)), columns(policer(50e6)), {"transfer": WAY}, {}))
        assert found["goodput.of_pir"] == pytest.approx(4.8 / 50 * 1514 / 1500)
        assert found["goodput.of_bottleneck"] == pytest.approx(4.8 / 9.75)

    def test_policer_off_the_path_or_of_some_packets_is_not_a_bound(self) -> None:
        for other in (policer(1e6, "Fa0/1"), policer(1e6, name="VOICE")):
            found = dict(throughput_values(columns(flows(1_000_000)), columns(other), {"transfer": WAY}, {}))
            assert found["goodput.of_bottleneck"] == pytest.approx(0.8 / 9.75)

    def test_header_size_is_that_of_the_line(self) -> None:
        lines = {("R1", "Fa0/0"): Line(2e6, 3, 4)}
        found = dict(throughput_values(columns(flows(1_448_000)), columns(policer(1504 * 800)), {}, lines))
        assert found["goodput.of_pir.ip"] == pytest.approx(1)

    def test_values_that_a_tool_does_not_report_are_omitted(self) -> None:
        found = dict(
            throughput_values(columns(flows(1_000_000, mss=None)), columns(policer(1e6)), {"transfer": WAY}, {})
        )
        assert set(found) == {"goodput.of_pir", "goodput.of_bottleneck"}


class TestPaths:
    def test_base_delay_is_line_time_and_propagation_in_both_directions(self) -> None:
        topology = {**EXPERIMENT["topology"]}
        lan, wan = topology["links"]
        topology["links"] = [lan, {**wan, "rate": "10 Mb/s", "delay": "5 ms"}]
        experiment = Experiment.model_validate_json(json.dumps(EXPERIMENT | {"topology": topology}))
        found = first_arm_paths(experiment)["transfer"]
        assert found.rate_bps == pytest.approx(10e6 * 1500 / 1538)
        assert found.idle_rtt_ms == pytest.approx(10 + (1538 + 90) * 8 / 1e4 + (1538 + 90) * 8 / 1e5)
        assert ("R1", "FastEthernet0/0") in found.inputs and ("R1", "FastEthernet0/1") in found.outputs
        assert find_path(experiment.topology, "client", "nowhere") is None

    def test_path_is_unknown_if_two_are_possible(self) -> None:
        ends = [("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")]
        topology = {
            "nodes": {name: {"platform": "host"} for name in "ABCD"},
            "links": [
                {
                    "name": f"l{number}",
                    "rate": "1 Mb/s",
                    "ends": [
                        {"node": node, "interface": f"eth{number}", "address": f"10.0.{number}.{place}/24"}
                        for place, node in enumerate(pair, 1)
                    ],
                }
                for number, pair in enumerate(ends)
            ],
        }
        experiment = Experiment.model_validate_json(json.dumps(EXPERIMENT | {"topology": topology}))
        assert find_path(experiment.topology, "A", "D") is None
        assert find_path(experiment.topology, "A", "B") is not None


class TestHosts:
    TEXT = (RECORDED / "hosts" / "linux-6.txt").read_text()

    def test_counters_give_the_difference_of_two_readings(self) -> None:
        before = read_counters(self.TEXT, "before")
        after = before | {"Tcp.RetransSegs": before["Tcp.RetransSegs"] + 7}
        row = host_row("client", before, after, sends=True)
        assert row["retransmitted_segments"] == 7 and row["timeouts"] == 0
        found = dict(host_values(columns(tables.frame("hosts", [row])), 1448.0))
        assert found == {"tcp.retransmits": 7, "tcp.retransmitted": 7 * 1448, "tcp.timeouts": 0}

    def test_damaged_file_is_reported(self) -> None:
        with pytest.raises(UserError, match=r"client.after.txt: found no TcpExt.TCPTimeouts"):
            read_counters("\n".join(self.TEXT.splitlines()[:8]), "client.after.txt")
        with pytest.raises(UserError, match="found 1 after Tcp:"):
            read_counters("Tcp: a b\n1 2 3\n", "x")

    def test_kernel_counters_are_read_from_the_cell(self, tmp_path: Path) -> None:
        run = make_run(tmp_path)
        for cell in cells_of(run):
            for number, file in enumerate(cell.host_counters("client")):
                text = self.TEXT.replace("\nTcp: 1 200 120000 -1 ", f"\nTcp: 1 200 120000 {number} ")
                cell.write(file, text)
        reseal(run.path)
        analyse(run)
        assert set(tables.read_table(run, "hosts")["host"]) == {"client"}
        found = tables.read_table(run, "metrics").set_index(["arm", "metric"])["value"]
        assert found["policed", "tcp.timeouts"] == found["policed", "tcp.timeouts(client)"] == 0


def test_queueing_delay_is_the_maximum_of_the_last_readings() -> None:
    rows: list[dict[str, object]] = [
        {
            "device": "R1",
            "interface": interface,
            "time_s": time,
            "output_drops": 0,
            **{f"queueing_delay_{name}_ns": delay * time for name in ("mean", "p50", "p99", "max")},
        }
        for interface, delay in (("Fa0/0", 1e6), ("Fa0/1", 3e6))
        for time in (1.0, 2.0)
    ]
    rows += [{"device": "R1", "interface": "Fa0/2", "time_s": 2.0, "output_drops": 0}]
    table = tables.frame("interfaces", rows)
    assert dict(interface_values(select_objects(columns(table), None)))["interface.delay.p99"] == 6
    assert dict(interface_values(select_objects(columns(table), "Fa0/0")))["interface.delay.mean"] == 2
    assert "interface.delay.p99" not in dict(interface_values(select_objects(columns(table), "Fa0/2")))


def test_delay_without_show_command_is_missing_with_the_reason() -> None:
    row: dict[str, object] = {"device": "R1", "interface": "Fa0/0", "output_drops": 0, "time_error_s": 0.1}
    table = tables.frame("interfaces", [row | {"time_s": time} for time in (1.0, 2.0)])
    found = dict(interface_values(select_objects(columns(table), None)))
    assert found["interface.drops"] == 0
    for name in ("mean", "p50", "p99", "max"):
        delay = found[f"interface.delay.{name}"]
        assert isinstance(delay, Missing) and "no show command reports the queueing delay" in delay
