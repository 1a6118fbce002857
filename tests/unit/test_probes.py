"""Probes of an experiment: configuration of routers, requests to hosts, parsed values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.parse import apply_config
from qoslab.model.experiment import Experiment, Node, probe_target
from qoslab.plan import make_plan
from qoslab.platforms import PLATFORMS, node_platform
from qoslab.platforms.base import TC_COMMANDS
from qoslab.results import Cell
from qoslab.run.cell.probes import PROBERS, Setting, reserved_ports
from qoslab.run.cell.probes.host_program import probe_arguments, respond_arguments
from qoslab.run.cell.probes.ios_router import IosProber
from qoslab.run.cell.probes.results import values_from_output, values_from_report, values_from_runs
from qoslab.schema import CellIdentity, probe_configuration
from qoslab.traffic.endpoints import flow_ports
from qoslab.virtual_lab import Lab

ADDRESSES = {
    "lan": ("client", "10.0.1.1/24", "R1", "10.0.1.2/24"),
    "wan": ("R1", "10.0.2.1/24", "server", "10.0.2.2/24"),
}


def experiment(*probes: dict[str, Any], families: tuple[int, ...] = (4,)) -> Experiment:
    """Return a router between two hosts, with addresses of these versions of IP."""
    nodes = {"client": {"platform": "host"}, "R1": {"platform": "engine"}, "server": {"platform": "host"}}
    links = []
    for name, (left, near, right, far) in ADDRESSES.items():
        ends = [
            {"node": node, "interface": "eth0" if node != "R1" else f"FastEthernet0/{len(links)}", "address": address}
            for node, address in ((left, near), (right, far))
        ]
        for end in ends:
            if 6 in families:
                end["ipv6_address"] = "2001:db8:{}::{}/64".format(*re.findall(r"\d+", end["address"])[2:4])
            if 4 not in families:
                del end["address"]
        links.append({"name": name, "rate": "10 Mb/s", "ends": ends})
    flows = [{"name": each, "tool": "iperf3", "from": "client", "to": "server"} for each in ("a", "b")]
    text = {
        "name": "x",
        "title": "x",
        "topology": {"nodes": nodes, "links": links},
        "duration": "20 s",
        "traffic": flows,
        "arms": [{"name": "a"}],
        "probes": list(probes),
    }
    return Experiment.model_validate_json(json.dumps(text))


def probe(kind: str, source: str, destination: str, **keys: Any) -> dict[str, Any]:
    """Return a probe named by its ends."""
    return {"name": f"{kind}-{source}-{destination}", "type": kind, "from": source, "to": destination, **keys}


class Router:
    """IOS router whose echo operation returns the given round trips, one per reading."""

    def __init__(self, folder: Path, *latest: str, successes: int) -> None:
        made = experiment(probe("icmp-echo", "R1", "client", frequency="1 s", timeout="500 ms"))
        cell = Cell(folder, CellIdentity("a", (), 1))
        self._latest = iter(enumerate(latest))
        self._successes = successes
        lab = cast(Lab, SimpleNamespace(data_planes=()))
        setting = Setting(lab, made, cell, observe=self._show, enter=lambda *_: "")
        self.prober = IosProber(setting, made.probes[0])

    def _show(self, device: str, command: str) -> str:
        assert (device, command) == ("R1", "show ip sla statistics 1")
        number, rtt = next(self._latest)
        return (
            f"IPSLA operation id: 1\n        Latest RTT: {rtt}\n"
            f"Latest operation start time: 13:54:{number:02} UTC Tue Nov 14 2017\n"
            f"Latest operation return code: {'OK' if 'milli' in rtt else 'Timeout'}\n"
            f"Number of successes: {self._successes}\nNumber of failures: 1\n"
        )


def test_every_run_of_an_echo_operation_is_read(tmp_path: Path) -> None:
    texts = ("5 milliseconds", "NoConnection/Busy/Timeout", "20 milliseconds", "9 milliseconds")
    router = Router(tmp_path, *texts, successes=4)
    assert router.prober.poll_interval_s == 1
    for _ in texts[1:]:
        router.prober.poll()
    values = router.prober.read()
    assert (values["rtt_count"], values["rtt_ms"]) == (3, {"min": 5, "avg": 11, "max": 20})
    assert router.prober.warnings == [
        "1 of 4 answered runs ended before they were read and are missing from its results"
    ]
    assert (tmp_path / "probes" / f"{router.prober.probe.name}.txt").read_text().count("operation id") == 4


def test_plan_shows_probes() -> None:
    made = experiment(
        probe("icmp-jitter", "R1", "client", start_after="3 s"), probe("udp-echo", "client", "R1", port=5000)
    )
    steps = make_plan(made).cells[0].steps
    planned = [(step.nodes, step.after_s) for step in steps if step.kind == "probe"]
    assert planned == [(("R1", "client"), 3.0), (("client", "R1"), 0.0)]
    assert [step.detail for step in steps if step.kind == "apply"] == [
        "IP SLA operations and responder by role engine_router"
    ]


def test_every_platform_with_probes_has_a_prober() -> None:
    """Probes of a router with tc commands are refused (`test_tc_templates`)."""
    assert set(PROBERS) == {platform.access for platform in PLATFORMS.values()} - {TC_COMMANDS}
    assert node_platform(Node(platform="host")).access in PROBERS


def test_each_operation_has_its_own_lines() -> None:
    same = {"frequency": "2 s", "timeout": "1 s", "threshold": "500 ms", "tos": 184}
    made = experiment(
        probe("icmp-jitter", "R1", "client", **same),
        probe("udp-jitter", "R1", "server", port=5000, packets=20, interval="30 ms", size="64 B", **same),
        probe("icmp-echo", "R1", "server", number=9, frequency="120 s", timeout="90 s"),
        probe("udp-echo", "client", "R1", port=7000),
        probe("udp-echo", "server", "R1", port=7001),
    )
    assert list(probe_configuration(made)) == ["R1"]
    lines = probe_configuration(made)["R1"]
    assert lines.count("ip sla responder\n") == 1
    device = Device(Hardware("2811", ("FastEthernet0/0",)))
    apply_config(device, lines, source="probes")
    operations = device.ip_sla.operations
    assert sorted(operations) == [1, 2, 9]
    for number in (1, 2):
        each = operations[number]
        assert (each.frequency_s, each.timeout_ms, each.threshold_ms, each.tos) == (2, 1000, 500, 184)
    assert (operations[2].target_port, operations[2].packets, operations[2].request_data_size) == (5000, 20, 64)
    assert (operations[9].frequency_s, operations[9].timeout_ms) == (120, 90_000)
    assert device.ip_sla.responder and not device.ip_sla.schedules


def test_host_prober_gets_the_values_of_the_file() -> None:
    bare, full = experiment(
        probe("icmp-echo", "client", "R1"),
        probe(
            "udp-jitter",
            "client",
            "server",
            port=5000,
            packets=20,
            interval="30 ms",
            size="64 B",
            tos=0,
            frequency="2 s",
            timeout="0 ms",
            threshold="500 ms",
        ),
    ).probes
    assert probe_arguments(bare, "10.0.1.2") == ["probe", "icmp-echo", "10.0.1.2"]
    assert " ".join(probe_arguments(full, "10.0.2.2")) == (
        "probe udp-jitter 10.0.2.2 --port 5000 --packets 20 --interval 30 --frequency 2 --timeout 0 --threshold 500 "
        "--size 64 --tos 0"
    )


def test_probe_ip_version_is_given_or_the_first_in_common() -> None:
    asked, unasked = probe("icmp-echo", "R1", "server", family=6, tos=184), probe("icmp-echo", "R1", "server")
    made = experiment(asked, unasked, families=(4, 6))
    assert [str(probe_target(made, each)) for each in made.probes] == ["2001:db8:2::2", "10.0.2.2"]
    words = probe_configuration(made)["R1"].splitlines()
    assert words[1:] == [
        "ip sla 1",
        " icmp-echo 2001:db8:2::2",
        " traffic-class 184",
        "ip sla 2",
        " icmp-echo 10.0.2.2",
    ]
    device = Device(Hardware("2811", ("FastEthernet0/0",), generation="hqf"))
    apply_config(device, "\n".join(words), source="probes")
    assert [each.is_ipv6 for each in device.ip_sla.operations.values()] == [True, False]
    only = experiment(unasked, families=(6,))
    assert str(probe_target(only, only.probes[0])) == "2001:db8:2::2"
    assert probe_target(experiment(asked), experiment(asked).probes[0]) is None


def test_host_answers_the_lab_in_both_versions_of_ip() -> None:
    words = respond_arguments(experiment(families=(4, 6)))
    assert words[2::2] == ["10.0.1.0/24", "10.0.2.0/24", "2001:db8:1::/64", "2001:db8:2::/64"]


def test_host_answers_only_addresses_of_the_lab() -> None:
    subnets = sorted(
        {
            str(end.address.network)
            for link in experiment().topology.links
            for end in link.ends
            if end.address is not None
        }
    )
    assert len(subnets) > 1
    words = respond_arguments(experiment())
    assert (words[0], set(words[1::2]), words[2::2]) == ("respond", {"--allow"}, subnets)


def test_traffic_avoids_the_ports_of_the_responder() -> None:
    made = experiment(probe("udp-jitter", "client", "server", port=5201), probe("udp-echo", "client", "R1", port=5202))
    assert reserved_ports(made) == {1967, 5201}
    assert flow_ports(made.traffic, reserved_ports(made)) == {"a": 5202, "b": 5203}
    assert reserved_ports(experiment(probe("icmp-echo", "client", "R1"))) == set()


SUMMARY = {"count": 3, "sum": 10, "sum2": 40, "min": 1, "max": 6}
NONE = dict.fromkeys(SUMMARY, 0)
STATISTICS = {
    "rtt": SUMMARY,
    "jitter_sd": {"pairs": 4, "positive": SUMMARY, "negative": NONE},
    "jitter_ds": {"pairs": 4, "positive": NONE, "negative": NONE},
}


def test_probe_values_are_computed() -> None:
    trips = [{"sent_ns": 0, "arrived_ns": 1_000_000 * ms} for ms in (1, 9, 4)]
    report = {"hours": [{"statistics": STATISTICS}], "samples": trips}
    found = values_from_report(report, jitter=True)
    assert found is not None
    assert found["rtt_p50_ms"] == 4.0
    assert found["rtt_ms"] == found["jitter_sd_ms"] == {"min": 1, "avg": 3, "max": 6}
    assert (found["rtt_count"], found["jitter_samples"]) == (3, 3)
    echo = values_from_report(report, jitter=False)
    assert echo is not None
    assert echo["rtt_ms"] == found["rtt_ms"] and echo["jitter_sd_ms"] is None
    assert values_from_runs([1, 6, 3]) == {name: each for name, each in echo.items() if name != "rtt_p50_ms"}


@pytest.mark.parametrize("statistics", [[], [{"statistics": STATISTICS | {"rtt": NONE}}]])
def test_unanswered_probe_has_no_value(statistics: list[Any]) -> None:
    assert values_from_report({"hours": statistics}, jitter=True) is None
    assert values_from_runs([]) is None
    assert values_from_output("", 1) is None
