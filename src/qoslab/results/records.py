"""What `manifest.json` and `cell.json` say."""

from __future__ import annotations

from datetime import datetime
from ipaddress import IPv4Address
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from qoslab.model.comparison import PublishedFigure
from qoslab.model.experiment import Experiment, Moment
from qoslab.model.labs import VIRTUAL
from qoslab.model.matrix import Parameters, Scalar, as_values
from qoslab.schema import CellIdentity

FORMAT = 2
"""Version of the run folder's layout and records. A reader refuses every other version."""


class Record(BaseModel):
    """A part of a file in the run folder."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


TRAFFIC = "traffic"
"""The step in which a cell's traffic runs."""
SIMULATION = "simulate"
"""The step in which a cell is computed in virtual time."""


class Step(Record):
    """One step of a cell: `configure the routers`, `traffic`, …"""

    name: str
    started: datetime
    ended: datetime | None = None
    """None where the run broke off in it."""


BEHIND_SHARE = 0.01
"""Share of the traffic time that a data plane may be behind. What window-limited hosts do not send meanwhile is missing
from their goodput, so this is what it may be wrong by; the narrowest tolerance of the experiments is 1.3 %."""


class Lateness(Record):
    """How much later than a punctual router's the departures were, in nanoseconds; see docs/control-protocol.md."""

    max: float
    p50: float
    p99: float
    p999: float
    count: int


class Health(Record):
    """What a virtual router's data plane says of itself at the end of a cell; see docs/control-protocol.md."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    received: int
    transmitted: int
    lost_input: int
    malformed: int = 0
    unsent: int = 0
    lateness_ns: Lateness
    late_over_budget: int
    behind_ns: int
    """Time during which a departure was overdue that left later than the budget."""
    budget_ns: int

    def reasons(self, device: str, traffic_s: float) -> tuple[str, ...]:
        """Why the figures of a cell with this router must not be trusted; empty where they may be.

        A late departure changes no decision of the router, only the round-trip time that the hosts feel. So single
        stalls of the machine are a warning, and time counts, not packets: a host that waits sends none.
        """
        found = []
        if self.lost_input:
            found.append(f"{device}: the kernel dropped {self.lost_input} frames before the data plane saw them")
        if self._share(traffic_s) > BEHIND_SHARE:
            found.append(f"{device}: {self._behind(traffic_s)}, at most {BEHIND_SHARE:.0%} can be trusted")
        return tuple(found)

    def late(self, traffic_s: float) -> bool:
        """Whether the machine had no time for the router: with less beside it the same cell may be valid."""
        return bool(self.lost_input) or self._share(traffic_s) > BEHIND_SHARE

    def warnings(self, device: str, traffic_s: float) -> tuple[str, ...]:
        """What a reader should know though the figures hold."""
        if 0 < self._share(traffic_s) <= BEHIND_SHARE:
            return (f"{device}: {self._behind(traffic_s)}",)
        return ()

    def _share(self, traffic_s: float) -> float:
        return self.behind_ns / 1e9 / traffic_s

    def _behind(self, traffic_s: float) -> str:
        return (
            f"the machine kept its data plane from working for {self._share(traffic_s):.2%} of the traffic time: "
            f"{self.late_over_budget} packets of {self.lateness_ns.count} left more than {self.budget_ns / 1e6:g} ms "
            f"late, at most {self.lateness_ns.max / 1e6:.3g} ms"
        )


class CaptureRecord(Record):
    """How a capture ended."""

    received: int
    dropped: int

    def reasons(self, point: str) -> tuple[str, ...]:
        """What a reader of its graphs must know; empty where the capture is whole."""
        return (
            (f"capture {point}: {self.dropped} packets were dropped, its graphs are too low",) if self.dropped else ()
        )


class FlowRecord(Record):
    """Where and when a flow ran."""

    traffic: str
    """The flow's name in the experiment."""
    source: IPv4Address
    destination: IPv4Address
    port: int
    started: datetime
    """When its client was started."""


class ObservedCommand(Record):
    """A show command that was taken, and the files that it is in (without ending)."""

    device: str
    moment: Moment
    command: str
    file: str


class CellRecord(Record):
    """`cell.json`: how a cell went."""

    arm: str
    parameters: dict[str, Scalar] = {}
    """As `qoslab.model.matrix.as_texts` has them."""
    repetition: int = Field(ge=1)
    attempt: int = Field(default=1, ge=1)
    key: str = ""
    """SHA-256 of what defines the cell; see docs/architecture.md."""
    lab: str = VIRTUAL
    """The kind of lab that it was run in; see `qoslab.model.labs`."""
    virtual_s: float | None = None
    """Seconds of virtual time that were simulated."""
    valid: bool
    reasons: tuple[str, ...] = ()
    """Why the cell is invalid."""
    late: bool = False
    """Whether it is invalid because a router could not keep up: another attempt with less beside it may do."""
    fault: bool = False
    """Whether it is invalid because the lab failed: a router or a program died, hung, or could not be reached."""
    worker: str = ""
    """The machine that ran it, and its kernel."""
    cpu_s: float | None = None
    """Processor time of the lab's processes and its tools while the traffic ran."""
    warnings: tuple[str, ...] = ()
    """What a reader should know though the figures hold."""
    steps: tuple[Step, ...] = ()
    flows: tuple[FlowRecord, ...] = ()
    observed: tuple[ObservedCommand, ...] = ()
    captures: dict[str, CaptureRecord] = {}
    """By capture point."""
    health: dict[str, Health] = {}
    """By router; only where the data plane is ours."""

    @property
    def traffic_started(self) -> datetime | None:
        """The zero of every `time_s`; None where no traffic was started."""
        return min((flow.started for flow in self.flows), default=None)


class Attempt(Record):
    """An earlier try of a cell, which stays in its folder."""

    folder: str
    reasons: tuple[str, ...] = ()
    """Why it does not count."""


class CellSummary(Record):
    """A cell in the manifest."""

    arm: str
    parameters: dict[str, Scalar] = {}
    repetition: int
    key: str = ""
    """SHA-256 of what defines the cell."""
    folder: str = ""
    """Of the attempt that counts, within the run folder; empty where the cell was never run."""
    valid: bool
    reasons: tuple[str, ...] = ()
    spared: str = ""
    """Why it was not needed: the repetitions before it were enough. Then it is neither valid nor missing."""
    earlier: tuple[Attempt, ...] = ()
    """Attempts before the one that counts."""

    @property
    def values(self) -> Parameters:
        """The parameters as quantities and numbers."""
        return as_values(self.parameters)

    @property
    def identity(self) -> CellIdentity:
        """What tells it from the other cells."""
        return CellIdentity(self.arm, tuple(self.values.items()), self.repetition)

    @property
    def name(self) -> str:
        """ARM/REPETITION or ARM/PARAMETERS/REPETITION."""
        return self.identity.folder


class Session(Record):
    """One call of `qoslab run` that worked on the run: the first, and each that resumed it."""

    started: datetime
    ended: datetime | None = None
    overrides: tuple[str, ...] = ()
    """Options, as typed."""
    versions: dict[str, str] = {}
    """Packages and tools."""
    commit: str | None = None
    """Of qoslab's own work tree."""


class Manifest(Record):
    """`manifest.json`: what was run, with what, and whether it can be trusted."""

    format: int = FORMAT
    experiment: Experiment
    """As it was run: overrides applied. Where there is a matrix, with the values of each arm's first combination."""
    published: tuple[PublishedFigure, ...] = ()
    """The figures of the publication, as they were when the run was made."""
    overrides: tuple[str, ...] = ()
    """`--set` and `--duration`, as typed."""
    lab: str = VIRTUAL
    """The kind of lab of all cells; see `qoslab.model.labs`."""
    started: datetime
    ended: datetime | None = None
    versions: dict[str, str] = {}
    """Packages and tools."""
    commit: str | None = None
    """Of qoslab's own work tree."""
    machine: dict[str, Any] = {}
    sysctls: dict[str, dict[str, str]] = {}
    """By node, as read back."""
    offloads: dict[str, dict[str, bool]] = {}
    """By interface (`NODE:INTERFACE`), as read back."""
    seeds: dict[str, int] = {}
    configurations: dict[str, str] = {}
    """SHA-256 of each rendered configuration, by `ARM/DEVICE`."""
    cells: tuple[CellSummary, ...] = ()
    """Every cell that was planned, whether it came to be run or not."""
    sessions: tuple[Session, ...] = ()
    """Every call that worked on the run, the last one included."""

    @property
    def valid(self) -> bool:
        """Whether there are cells and all of them are valid."""
        return bool(self.cells) and all(cell.valid or cell.spared for cell in self.cells)
