"""What `manifest.json` and `cell.json` say."""

from __future__ import annotations

from datetime import datetime
from ipaddress import IPv4Address
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from qoslab.model.experiment import Experiment, Moment, PublishedFigure

FORMAT = 1
"""Version of the run folder's layout and records. A reader refuses every other version."""


class Record(BaseModel):
    """A part of a file in the run folder."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Step(Record):
    """One step of a cell: `apply`, `traffic`, …"""

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
    repetition: int = Field(ge=1)
    valid: bool
    reasons: tuple[str, ...] = ()
    """Why the cell is invalid."""
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


class CellSummary(Record):
    """A cell in the manifest."""

    arm: str
    repetition: int
    valid: bool
    reasons: tuple[str, ...] = ()


class Manifest(Record):
    """`manifest.json`: what was run, with what, and whether it can be trusted."""

    format: int = FORMAT
    experiment: Experiment
    """As it was run: overrides applied."""
    published: tuple[PublishedFigure, ...] = ()
    """The figures of the publication, as they were when the run was made."""
    overrides: tuple[str, ...] = ()
    """`--set` and `--duration`, as typed."""
    lab: str = "virtual"
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

    @property
    def valid(self) -> bool:
        """Whether there are cells and all of them are valid."""
        return bool(self.cells) and all(cell.valid for cell in self.cells)
