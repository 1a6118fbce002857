"""What was kept of the traffic and the hosts of a cell, by the kind of lab that it was run in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from qoslab.analysis.hosts import host_row, read_counters
from qoslab.model.experiment import Flow
from qoslab.model.labs import SIMULATED, VIRTUAL
from qoslab.results import Cell
from qoslab.simulation.result import read_flow, read_host
from qoslab.traffic import FlowResult, tool
from qoslab.units import Duration


class Outputs(Protocol):
    """Reads the outputs of one kind of lab."""

    def flow(self, cell: Cell, flow: Flow, duration: Duration) -> FlowResult | None:
        """The figures of a flow; None where it left nothing. `TrafficError` where they cannot be used."""

    def hosts(self, cell: Cell, senders: set[str]) -> Iterator[dict[str, object]]:
        """Rows of `hosts`; `senders` are those that send TCP. `QoslabError` where they cannot be read."""


class _Tools:
    """Of real programs and kernels."""

    def flow(self, cell: Cell, flow: Flow, duration: Duration) -> FlowResult | None:
        generator = tool(flow.tool)
        if not cell.traffic(flow.name, "server", generator.suffix).exists():
            return None
        client, server = (cell.read_output(flow.name, generator.suffix, side) for side in ("client", "server"))
        return generator.parse(flow, duration, client, server)

    def hosts(self, cell: Cell, senders: set[str]) -> Iterator[dict[str, object]]:
        for host in cell.hosts_with_counters():
            before, after = (read_counters(cell.text(file), file.name) for file in cell.host_counters(host))
            yield host_row(host, before, after, sends=host in senders)


class _Simulation:
    """Of `qos-sim`."""

    def flow(self, cell: Cell, flow: Flow, duration: Duration) -> FlowResult | None:
        file = cell.simulated_traffic(flow.name)
        return read_flow(flow, cell.text(file)) if file.exists() else None

    def hosts(self, cell: Cell, senders: set[str]) -> Iterator[dict[str, object]]:
        for host in cell.simulated_hosts():
            file = cell.simulated_host(host)
            yield {"host": host, "sends": host in senders, **read_host(cell.text(file), file.name)}


OUTPUTS: dict[str, Outputs] = {VIRTUAL: _Tools(), SIMULATED: _Simulation()}
"""By kind of lab."""
