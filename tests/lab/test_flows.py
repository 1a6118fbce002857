"""Start and end times of traffic in a lab."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from labs import TWO_HOSTS

from misbehaving import MisbehavingRelay
from qoslab.model.experiment import Experiment, Flow
from qoslab.model.inventory import HostSettings
from qoslab.model.units import Duration
from qoslab.results import Cell
from qoslab.run.cell.flows import FlowLocation, RunningFlow, run_flows
from qoslab.run.devices.ansible_inventory import read_lab
from qoslab.run.real.channel import AgentChannel
from qoslab.run.real.external_lab import ExternalLab
from qoslab.run.real.nodes import ExternalHost, HostPlace
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.schema import CellIdentity
from qoslab.traffic.base import DRAIN_S, TrafficError
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab

pytestmark = pytest.mark.lab

LATE_S = 1.0
"""Retransmission time of a lost SYN (RFC 6298, 2.1)."""
TOLERANCE_S = 0.05
"""Greatest difference between the plan and a start: a third of the delay to the host, which must not count."""
SHELL_S = 0.5
"""Time until a started shell prints the time."""
WAY_S = 0.15
"""One-way delay to a host, the same in both directions."""
STAMPED = """echo $EPOCHREALTIME >"$0"; exec "$@\""""


@pytest.mark.parametrize("tool", ["iperf3", "iperf"])
def test_flow_starts_when_its_connections_are_established(lab: Lab, tmp_path: Path, tool: str) -> None:
    keys = {"from": "client", "to": "server", "streams": 2}
    flows = []
    for number, name in enumerate(("early", "late")):
        flow = Flow.model_validate({"name": name, "tool": tool, **keys})
        place = FlowLocation(TWO_HOSTS, 5201 + number, 1, Cell(tmp_path / name, CellIdentity(name, (), 1)))
        flows.append(RunningFlow(VirtualLab(lab), flow, Duration(10**9), "cubic", place))
    commands = flows[1].commands
    flows[1].commands = replace(commands, client=("sh", "-c", f'sleep {LATE_S}; exec "$@"', "sh", *commands.client))
    run_flows(flows, lambda: None, lambda: None)
    delays = []
    for each in flows:
        record = each.record()
        assert record is not None and record.began is not None
        delays.append((record.began - record.started).total_seconds())
    assert delays[0] >= 0 and delays[1] >= LATE_S


def test_each_page_of_a_user_is_received_and_timed(lab: Lab, tmp_path: Path) -> None:
    keys = {"tool": "flood", "protocol": "tcp", "size": "200 kB", "delay": "300 ms", "streams": 2, "dscp": "af21"}
    flow = Flow.model_validate({"name": "users", "from": "client", "to": "server", **keys})
    place = FlowLocation(TWO_HOSTS, 8080, 1, Cell(tmp_path, CellIdentity("a", (), 1)))
    running = RunningFlow(VirtualLab(lab), flow, Duration(10**9), "reno", place)
    result = run_flows([running], lambda: None, lambda: None)["users"]
    assert (result.tool, result.protocol, len(result.streams)) == ("flood", "tcp", 2)
    for stream in result.streams:
        assert stream.pages is not None and stream.page_max_ms is not None
        assert 1 <= stream.pages <= 4 and stream.bytes == stream.pages * 200_000
        assert 0 < stream.page_max_ms < 1000 * DRAIN_S
        assert stream.mss_bytes == 1448


def test_permanently_stopped_client_fails_at_its_deadline(lab: Lab, tmp_path: Path) -> None:
    described = {
        "name": "stopped",
        "title": "A client that is stopped",
        "topology": TWO_HOSTS.model_dump(mode="json", by_alias=True),
        "duration": "1 s",
        "traffic": [{"name": "transfer", "tool": "iperf3", "from": "client", "to": "server"}],
        "arms": [{"name": "a"}],
    }
    experiment = Experiment.model_validate_json(json.dumps(described))
    cell = Cell(tmp_path, CellIdentity("a", (), 1))
    cell.write_experiment(experiment)
    place = FlowLocation(TWO_HOSTS, 5201, 1, cell)
    running = RunningFlow(VirtualLab(lab), experiment.traffic[0], Duration(10**9), "cubic", place)
    assert running.commands.deadline_s == 1 + DRAIN_S
    running.commands = replace(running.commands, deadline_s=2.0, client=("sh", "-c", "kill -STOP $$"))
    late = 'iperf3 client, traffic "transfer": no connection from 10.1.0.1 to 10.1.0.2, 2 s after its start'
    with pytest.raises(TrafficError) as caught:
        run_flows([running], lambda: None, lambda: None)
    assert caught.value.message == late


@pytest.fixture
def far(lab: Lab, tmp_path: Path) -> Iterator[ExternalLab]:
    """Provide the lab behind SSH, with a round-trip time of 300 ms to the client."""
    file = tmp_path / "here.yml"
    expose_lab(lab, file)
    ways = dict(read_lab(file).hosts)
    with ExitStack() as leaving:
        port = ways["client"].port
        assert port is not None
        relay = leaving.enter_context(MisbehavingRelay(port, asked_s=WAY_S, delay_s=WAY_S))
        known = file.with_suffix(".known_hosts")
        known.write_text(known.read_text().replace(f":{port} ", f":{relay.port} "))
        ways["client"] = replace(ways["client"], port=relay.port)
        settings = {name: HostSettings(isolate="in place") for name in ways}
        hosts = {
            name: ExternalHost(AgentChannel(name, way, "a test"), HostPlace(TWO_HOSTS, name, settings[name]))
            for name, way in ways.items()
        }
        far = ExternalLab(hosts, settings, {})
        leaving.callback(far.close)
        yield far


@pytest.mark.quiet
def test_flows_of_a_distant_host_start_as_planned(far: ExternalLab, tmp_path: Path) -> None:
    assert 2 * WAY_S < far.host("client").read_clock().error_ns * 2 / 1e9 < 2 * WAY_S + TOLERANCE_S
    flows = []
    for number, after in enumerate(("0 s", "500 ms", "500 ms", "1300 ms")):
        name = f"flow{number}"
        flow = Flow.model_validate(
            {"name": name, "tool": "iperf3", "from": "client", "to": "server", "start_after": after}
        )
        place = FlowLocation(TWO_HOSTS, 5201 + number, 1, Cell(tmp_path / name, CellIdentity(name, (), 1)))
        flows.append(RunningFlow(far, flow, Duration(10**9), "cubic", place))
        client = ("bash", "-c", STAMPED, str(tmp_path / f"{name}.began"), *flows[-1].commands.client)
        flows[-1].commands = replace(flows[-1].commands, client=client)
    zero = []
    run_flows(flows, lambda: None, lambda: None, started=zero.append)
    planned = datetime.now(UTC).timestamp() - time.monotonic() + zero[0]
    for each in flows:
        record = each.record()
        assert record is not None
        after = each.flow.start_after.seconds
        output, true = record.started.timestamp(), float((tmp_path / f"{each.flow.name}.began").read_text())
        assert abs(output - planned - after) < TOLERANCE_S, (each.flow.name, output - planned)
        # The started program reports it too.
        assert 0 < true - output < SHELL_S, (each.flow.name, true - output)
