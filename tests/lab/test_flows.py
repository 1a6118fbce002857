"""Traffic in a lab: what is kept of when it ran."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from labs import TWO_HOSTS

from misbehaving import Misbehaving
from qoslab.lab import Lab
from qoslab.lab.expose import expose
from qoslab.model.experiment import Flow
from qoslab.model.inventory import HostSettings
from qoslab.results import Cell
from qoslab.run.cell.flows import FlowPlace, RunningFlow, run_flows
from qoslab.run.devices.inventory import read_lab
from qoslab.run.labs.external.channel import Channel
from qoslab.run.labs.external.lab import ExternalHost, ExternalLab, Place
from qoslab.run.labs.virtual.lab import VirtualLab
from qoslab.schema import CellIdentity
from qoslab.units import Duration

pytestmark = pytest.mark.lab

LATE_S = 1.0
"""A SYN that was lost is sent again after that (RFC 6298, 2.1)."""
LONGER_S = 0.9
"""What a busy machine may add until a program has started and its connections are seen; a second lost SYN adds 2 s."""
TOLERANCE_S = 0.005
"""Between the plan and a start: from there on a host's wake-ups count as late (`agent/watch.py`). The error of the
clock is in it, as far as the way back takes another time than the way there."""
SHELL_S = 0.02
"""Until a shell that was started says what time it is."""
WAY_S = 0.15
"""To a host, and as much back."""
STAMPED = """echo $EPOCHREALTIME >"$0"; exec "$@\""""


@pytest.mark.parametrize("tool", ["iperf3", "iperf"])
def test_a_flow_begins_when_its_connections_are_there(lab: Lab, tmp_path: Path, tool: str) -> None:
    keys = {"from": "client", "to": "server", "streams": 2}
    flows = []
    for number, name in enumerate(("early", "late")):
        flow = Flow.model_validate({"name": name, "tool": tool, **keys})
        place = FlowPlace(TWO_HOSTS, 5201 + number, 1, Cell(tmp_path / name, CellIdentity(name, (), 1)))
        flows.append(RunningFlow(VirtualLab(lab), flow, Duration(10**9), "cubic", place))
    commands = flows[1].commands
    flows[1].commands = replace(commands, client=("sh", "-c", f'sleep {LATE_S}; exec "$@"', "sh", *commands.client))
    run_flows(flows, lambda: None, lambda: None)
    delays = []
    for each in flows:
        record = each.record()
        assert record is not None and record.began is not None
        delays.append((record.began - record.started).total_seconds())
    assert 0 <= delays[0] < LONGER_S and LATE_S <= delays[1] < LATE_S + LONGER_S


@pytest.fixture
def far(lab: Lab, tmp_path: Path) -> Iterator[ExternalLab]:
    """The lab behind SSH, and a network that takes 300 ms to the client and back."""
    file = tmp_path / "here.yml"
    expose(lab, file)
    ways = dict(read_lab(file).hosts)
    with ExitStack() as leaving:
        port = ways["client"].port
        assert port is not None
        relay = leaving.enter_context(Misbehaving(port, asked_s=WAY_S, delay_s=WAY_S))
        known = file.with_suffix(".known_hosts")
        known.write_text(known.read_text().replace(f":{port} ", f":{relay.port} "))
        ways["client"] = replace(ways["client"], port=relay.port)
        settings = {name: HostSettings(isolate="in place") for name in ways}
        hosts = {
            name: ExternalHost(Channel(name, way, "a test"), Place(TWO_HOSTS, name, settings[name]))
            for name, way in ways.items()
        }
        far = ExternalLab(hosts, settings, {})
        leaving.callback(far.close)
        yield far


@pytest.mark.quiet
def test_flows_of_a_host_that_is_far_away_start_as_planned(far: ExternalLab, tmp_path: Path) -> None:
    assert 2 * WAY_S < far.host("client").clock().error_ns * 2 / 1e9 < 2 * WAY_S + 0.02
    flows = []
    for number, after in enumerate(("0 s", "500 ms", "500 ms", "1300 ms")):
        name = f"flow{number}"
        flow = Flow.model_validate(
            {"name": name, "tool": "iperf3", "from": "client", "to": "server", "start_after": after}
        )
        place = FlowPlace(TWO_HOSTS, 5201 + number, 1, Cell(tmp_path / name, CellIdentity(name, (), 1)))
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
        told, true = record.started.timestamp(), float((tmp_path / f"{each.flow.name}.began").read_text())
        assert abs(told - planned - after) < TOLERANCE_S, (each.flow.name, told - planned)
        # What was started says it, too.
        assert 0 < true - told < SHELL_S, (each.flow.name, true - told)
