"""Data of a cell for its worker: plain values that can be sent to another machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from qoslab import __version__
from qoslab.lab_kinds import lab_kind
from qoslab.model.experiment import Arm, Experiment, TcpProfile
from qoslab.model.instants import MeasurementDemand, traffic_time
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.units import Duration
from qoslab.plan import Cell as PlannedCell
from qoslab.platforms import PLATFORMS, host_names
from qoslab.run import identity
from qoslab.schema import CellIdentity, configuration_text, probe_configuration
from qoslab.traffic import TOOLS


@dataclass(frozen=True)
class CellTask:
    """One attempt at a cell."""

    identity: CellIdentity
    experiment: Experiment
    """Experiment with the cell's arm only, all values resolved."""
    configurations: Mapping[str, str] = field(hash=False)
    """Rendered configuration of each router with a configuration."""
    key: str
    """See `cell_key`."""
    attempt: int = 1
    lab: str = DEFAULT_LAB
    """Kind of lab for the cell."""
    demand: MeasurementDemand = field(default_factory=MeasurementDemand)
    """Requirements of its expected values on the measurement."""

    @property
    def arm(self) -> Arm:
        """Return its only arm."""
        return self.experiment.arms[0]

    @property
    def name(self) -> str:
        """Return its name in the plan."""
        return self.identity.folder


def make_task(planned: PlannedCell, tools: Mapping[str, str], attempt: int = 1) -> CellTask:
    """Return the task of a planned cell; `tools` are versions of the measuring tools (`LabMachinery`)."""
    return CellTask(
        planned.identity,
        planned.experiment,
        _cell_configurations(planned),
        cell_key(planned, tools),
        attempt,
        planned.lab,
        planned.sweep.demand(planned.arm),
    )


HostTcp = tuple[TcpProfile, bool]
"""TCP settings of a host, and whether its closed ports answer."""


@dataclass(frozen=True)
class Demands:
    """Requirements of a run's cells on the lab."""

    routers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Distinct configurations of the cells, by router."""
    hosts: Mapping[str, Sequence[HostTcp]] = field(default_factory=dict)
    """Distinct requirements on hosts, by host."""
    longest: Duration = field(default_factory=lambda: Duration(0))
    """The traffic time of the longest cell."""


def cell_demands(cells: Iterable[PlannedCell]) -> Demands:
    """Return the combined requirements of all cells, made one by one since a sweep may have very many."""
    routers: dict[str, dict[str, None]] = {}
    hosts: dict[str, dict[HostTcp, None]] = {}
    longest = Duration(0)
    for cell in cells:
        for router, text in _cell_configurations(cell).items():
            routers.setdefault(router, {})[text] = None
        for host, wanted in host_tcp_settings(cell.experiment).items():
            hosts.setdefault(host, {})[wanted] = None
        longest = max(longest, traffic_time(cell.experiment, cell.experiment.arms[0]), key=lambda each: each.ns)
    return Demands(
        {router: tuple(texts) for router, texts in routers.items()},
        {host: tuple(each) for host, each in hosts.items()},
        longest,
    )


def host_tcp_settings(experiment: Experiment) -> dict[str, HostTcp]:
    """Return the TCP settings of each host in a cell."""
    arm = experiment.arms[0]
    # Messages about closed ports would cross the line with the measured delay.
    silent = {flow.destination for flow in experiment.arm_flows(arm) if "port" in flow.random}
    return {host: (experiment.arm_tcp_profile(arm), host not in silent) for host in host_names(experiment.topology)}


def _cell_configurations(planned: PlannedCell) -> dict[str, str]:
    experiment = planned.experiment
    texts = configuration_text(planned.sweep.file, experiment, experiment.arms[0])
    for router, lines in probe_configuration(experiment).items():
        texts[router] = texts.get(router, "") + lines
    return texts


def cell_key(planned: PlannedCell, tools: Mapping[str, str]) -> str:
    """Return the key that shows if an existing result belongs to this cell: SHA-256, in hex.

    It covers the identity of the cell (arm, parameters, repetition); all parts of the experiment on which the cell
    depends, with values substituted and defaults filled in (topology, duration, seed, TCP settings, traffic, captures,
    observations, further measurements); the requirements of the expected values on the measurement; the rendered
    configurations; the version of qoslab and the hash of its sources; the kind of lab; the hashes of qoslab's own
    programs for the cell; the versions of the traffic tools; the parts of other packages in use. It does not cover the
    kernel and the machine, which the record of each cell names: a sweep may use several.
    """
    kind = lab_kind(planned.lab)
    used = kind.used_tools(planned.experiment)
    words = [
        planned.sweep.digest(planned.identity),
        f"demand: {planned.sweep.demand(planned.arm)}",
        __version__,
        f"sources: {identity.hash_sources()}",
        f"lab: {planned.lab}",
        *(f"{tool}: {tools.get(tool, '')}" for tool in used),
        *_used_plugins(planned.experiment),
        *(f"{name}, program: {identity.hash_program(name)}" for name in kind.programs),
    ]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _used_plugins(experiment: Experiment) -> Iterator[str]:
    """Return the parts of other packages that the cell uses."""
    tools = {flow.tool for flow in experiment.arm_flows(experiment.arms[0])}
    platforms = {node.platform for node in experiment.topology.nodes.values()}
    found = (*map(TOOLS.fingerprint, sorted(tools)), *map(PLATFORMS.fingerprint, sorted(platforms)))
    yield from filter(None, found)
