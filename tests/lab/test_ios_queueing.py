"""Queueing on a virtual router's serial line: typed over SSH, applied to packets, printed, and parsed again."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from labs import ping
from test_iosd import session

from qoslab.genie.show_parser import parse
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Generation
from qoslab.ios.parse import parse_config
from qoslab.model.experiment import Flow, Topology
from qoslab.model.units import Duration
from qoslab.platforms import MODELS
from qoslab.results import Cell
from qoslab.run.cell.flows import FlowLocation, RunningFlow, run_flows
from qoslab.run.cell.sampling import read_engine_configuration, reset_counters
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.schema import CellIdentity
from qoslab.virtual_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("ios_queueing")]

LINE = "Serial0/1/0"
TEXT = """\
ip access-list extended Big
 permit ip any host 10.2.0.99
class-map match-all Echo
 match protocol icmp
class-map match-all Big
 match access-group name Big
policy-map WAN
 class Echo
  priority 64
 class Big
  bandwidth percent 20
  {more}
 class class-default
  fair-queue
interface Serial0/1/0
 bandwidth 2000
 clock rate 2000000
 tx-ring-limit 3
 load-interval 30
 service-policy output WAN
"""
MORE = {"classic": "queue-limit 20", "hqf": "random-detect"}


def topology(generation: Generation) -> Topology:
    there, back = ([{"prefix": f"10.{lan}.0.0/24", "via": f"10.2.0.{far}"}] for lan, far in ((3, 2), (1, 1)))
    nodes = {
        "client": {"platform": "host"},
        "R1": {"platform": "ios", "model": "2811", "generation": generation, "routes": there},
        "R2": {"platform": "engine", "model": "2811", "generation": generation, "routes": back},
        "server": {"platform": "host"},
    }
    ends = (
        (("client", "eth0", "10.1.0.2/24"), ("R1", "FastEthernet0/0", "10.1.0.1/24")),
        (("R1", LINE, "10.2.0.1/24"), ("R2", LINE, "10.2.0.2/24")),
        (("R2", "FastEthernet0/0", "10.3.0.1/24"), ("server", "eth0", "10.3.0.2/24")),
    )
    links = [
        {
            "name": f"l{number}",
            "rate": "2 Mb/s" if number == 1 else "100 Mb/s",
            "framing": "ppp" if number == 1 else "ethernet",
            "ends": [dict(zip(("node", "interface", "address"), end, strict=True)) for end in pair],
        }
        for number, pair in enumerate(ends)
    ]
    return Topology.model_validate_json(json.dumps({"nodes": nodes, "links": links}))


@pytest.fixture(scope="module", params=["classic", "hqf"])
def generation(request: pytest.FixtureRequest) -> Generation:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def lab(generation: Generation) -> Iterator[Lab]:
    with Lab.up(topology(generation), name=f"test-queueing-{generation}-{os.getpid()}") as lab:
        assert "%" not in session(lab, "configure terminal", *policy(generation), "end")
        yield lab


def policy(generation: Generation) -> list[str]:
    """Return the lines of a policy with queues."""
    return TEXT.format(more=MORE[generation]).splitlines()


def test_queueing_policy_works_from_typed_line_to_parsed_output(lab: Lab, generation: Generation) -> None:
    typed = session(lab, "configure terminal", *policy(generation), "end")
    assert "%" not in typed, typed
    assert ping(lab, "client", "10.2.0.2") == 63
    # A point-to-point line needs no address resolution.
    assert lab.run("R1", ["ip", "neigh", "show", "dev", "Se0-1-0"], check=True).stdout == ""

    async def in_force() -> dict[str, object]:
        async with lab.control("R1") as client:
            return await client.config()

    running = session(lab, "show running-config").split("Current configuration", 1)[1].split("\n", 1)[1]
    compiled = compile_device(parse_config(running.rpartition("R1#")[0], MODELS["2811"].hardware(generation)))
    engine = asyncio.run(in_force())
    for part in ("class_maps", "policy_maps", "access_lists"):
        assert engine[part] == compiled[part]

    def shown(command: str) -> str:
        return session(lab, command).split(command + "\n", 1)[1].rpartition("R1#")[0]

    found = parse("ios", "show policy-map interface", shown("show policy-map interface")).parsed
    assert found is not None and "unrecognised" not in str(found)
    classes = found[LINE]["service_policy"]["output"]["policy_name"]["WAN"]["class_map"]
    assert list(classes) == ["Echo", "Big", "class-default"]
    # Echo requests have 36 bytes of IP here, and the PPP header counts as four.
    assert classes["Echo"]["packets"] >= 1
    assert classes["Echo"]["bytes"] == 40 * classes["Echo"]["packets"]
    assert (classes["Echo"]["priority"]["kbps"], classes["Echo"]["priority"]["burst_bytes"]) == (64, 1600)
    assert (classes["Big"]["bandwidth_percent"], classes["Big"]["bandwidth_kbps"]) == (20, 400)
    if generation == "hqf":
        assert classes["Big"]["random_detect"]["exp_weight_constant"] == "9 (1/512)"
        assert [row["minimum_thresh"] for row in classes["Big"]["random_detect"]["class"].values()] == [
            str(20 + 2 * precedence) for precedence in range(8)
        ]
        assert classes["class-default"]["fair_queue_limit_per_flow"] == 16
    else:
        assert classes["Echo"]["output_queue"] == "Conversation 264"
        assert classes["class-default"]["maximum_hashed_queues"] == 256

    configured = parse("ios", "show policy-map", shown("show policy-map")).parsed
    assert configured is not None and configured["policy_map"]["WAN"]["class"]["Big"]["bandwidth_percent"] == 20
    controllers = parse("ios", f"show controllers {LINE}", shown(f"show controllers {LINE}")).parsed
    assert controllers is not None and controllers[LINE]["tx_ring_limit"] == 3
    queueing = parse("ios", f"show queueing interface {LINE}", shown(f"show queueing interface {LINE}")).parsed
    assert queueing is not None and queueing[LINE]["strategy"] == "Class-based queueing"
    assert ("conversations" in queueing[LINE]) == (generation == "classic")
    if generation == "classic":
        # 75 % of 2000 kb/s, less 64 and 400.
        assert queueing[LINE]["available_bandwidth_kbps"] == 1036
        assert queueing[LINE]["conversations"]["max_total"] == 256


def test_next_cell_starts_with_empty_queues_after_a_flood(lab: Lab, tmp_path: Path) -> None:
    session(lab, "configure terminal", f"interface {LINE}", "clock rate 32000", "end")
    ends = {"from": "client", "to": "server", "protocol": "udp", "rate": "400 kb/s", "size": "500 B"}
    load = Flow.model_validate_json(json.dumps({"name": "load", "tool": "flood", **ends}))
    cell = Cell(tmp_path, CellIdentity("flooded", (), 1))
    half = Duration(500_000_000)
    flow = RunningFlow(VirtualLab(lab), load, half, "cubic", FlowLocation(lab.topology, port=5201, seed=1, cell=cell))
    # The queue holds at least 16 packets, which take 2 s.
    flow.commands = replace(flow.commands, deadline_s=1.0)
    result = run_flows([flow], lambda: None, lambda: None)["load"]
    assert result.warnings[-1] == "still arriving 0.5 s after its end: the rest counts as lost"
    (stream,) = result.streams
    # A delayed sender skips the packets that it cannot send in time.
    assert stream.datagrams in (49, 50) and stream.lost is not None and 30 < stream.lost < 49

    async def waiting() -> int:
        async with lab.control("R1") as client:
            return (await client.counters(LINE))["interfaces"][LINE]["queue"]["depth"]

    assert asyncio.run(waiting()) > 3
    before = read_engine_configuration(VirtualLab(lab), "R1")
    reset_counters(VirtualLab(lab), ["R1", "R2"])
    assert asyncio.run(waiting()) == 0
    assert read_engine_configuration(VirtualLab(lab), "R1") == before
    session(lab, "configure terminal", f"interface {LINE}", "clock rate 2000000", "end")


def test_excessive_bandwidth_is_refused_without_effect(lab: Lab, generation: Generation) -> None:
    before = session(lab, "show running-config")
    output = session(lab, "configure terminal", "policy-map WAN", "class Big", "bandwidth percent 98", "end")
    words = "Sum total of class bandwidths exceeds 99 percent\n"
    if generation == "classic":
        words = "I/f Serial0/1/0 policy-map WAN requested bandwidth 2024 (kbps), available only 1500 (kbps)\n"
    assert words in output
    assert session(lab, "show running-config") == before
