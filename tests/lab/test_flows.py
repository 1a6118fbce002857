"""Traffic in a lab: what is kept of when it ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from labs import TWO_HOSTS

from qoslab.lab import Lab
from qoslab.model.experiment import Flow
from qoslab.results import Cell
from qoslab.run.cell.flows import FlowPlace, RunningFlow, run_flows
from qoslab.run.labs.virtual.lab import VirtualLab
from qoslab.schema import CellIdentity
from qoslab.units import Duration

pytestmark = pytest.mark.lab

LATE_S = 1.0
"""A SYN that was lost is sent again after that (RFC 6298, 2.1)."""
LONGER_S = 0.9
"""What a busy machine may add until a program has started and its connections are seen; a second lost SYN adds 2 s."""


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
