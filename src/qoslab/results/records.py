"""Records `run.json`, `manifest.json` and `cell.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from qoslab.model.comparison import PublishedValue
from qoslab.model.experiment import Experiment, Order
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.matrix import Parameters, Scalar, as_values
from qoslab.model.units import Duration
from qoslab.results.sealed_files import FORMAT, FileSeal
from qoslab.schema import CellIdentity

YEARS = (1970, 2200)
"""Valid years of a machine's clock: nanoseconds since 1970 have 63 bits."""


class Record(BaseModel):
    """A part of a file in the run folder."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


def _path(text: str) -> str:
    if "\0" in text:
        raise ValueError("found a null character, expected a path")
    return text


class RunOptions(Record):
    """`run.json`: options of a run, which `--resume` repeats."""

    format: int = FORMAT
    file: Annotated[str, Field(min_length=1), AfterValidator(_path)]
    """Path of the experiment file."""
    sets: tuple[str, ...] = ()
    """`--set` as typed; arms and `--only` are also as typed."""
    arms: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    duration: Duration | None = None
    repetitions: Annotated[int, Field(ge=1)] | None = None
    order: Order | None = None
    lab: str = DEFAULT_LAB
    """Name of a kind of lab, or the location of a lab."""
    strict: bool = False
    """True if values that a shortened run did not reach are failures."""


class Step(Record):
    """One step of a cell: `configure the routers`, `traffic`, …"""

    name: str
    """Key of the planned step; see `qoslab.model.steps`."""
    started: datetime
    ended: datetime | None = None
    """End of the step; None if the run was interrupted in it."""


BEHIND_SHARE = 0.01
"""Maximum share of the traffic time during which a data plane may be behind. Window-limited hosts do not send in the
meantime, so the share bounds the error of their goodput; the narrowest tolerance of the experiments is 1.3 %.
"""


UNSENT_MOST = 0
"""Maximum number of frames that the engine counted as sent and the kernel did not accept or deliver: such a frame is in
the router's counters only, so that no value shows where it was lost.
"""
MALFORMED_MOST = 0
"""Maximum number of frames that a router would have forwarded and the data plane could not: too long, from offloaded
segments, or without a checksum. A single one shows that the machine's settings are not the lab's.
"""
LATE_ARRIVAL_SHARE = 0.001
"""Maximum share of received frames that may come back from the kernel after the decision on a later frame. Each is
decided as if it were as old as that frame: one decision in a thousand is less than any tolerance of the experiments.
"""
SERIES_LATE_NS = 1_000_000
"""Maximum lateness of a departure towards a router with time-dependent policies. That router uses the actual departure
time of a frame, so that delayed frames arrive as a burst. A millisecond is less than the time of a full packet at 10
Mb/s, and a thirtieth of a policer's default burst (CIR/32).
"""
SERIES_SHARE = 0.001
"""Maximum share of a link's departures that may be later than that (Health has the quantile): frames in a burst may be
dropped wrongly, and a lossless policy may not seem to lose more than one packet in a thousand.
"""
Feeds = Mapping[str, Collection[str]]
"""Routers with time-dependent policies that receive the frames of a router's port, by port."""
SENDER_LATE_MS = 1.0
"""Maximum lateness of a paced sender's datagrams: as SERIES_LATE_NS, since a stalled sender sends bursts, too."""
SENDER_LATE_SHARE = 0.01
"""Maximum share of its datagrams that may be later than that, as BEHIND_SHARE; the tool reports the 99th percentile."""
SENDER_FILLS = 0.05
"""Share of dropped datagrams from which a sender's queue counts as full all the time: a late datagram then finds others
waiting and changes no delay. Losses due to lateness itself are fewer: at most SENDER_LATE_SHARE of the datagrams are in
bursts.
"""
SENDER_SHORT = 0.01
"""Maximum share of its requested traffic that a paced sender may omit, as BEHIND_SHARE: the offered load is lower by
this share.
"""
CLOCK_STEP_NS = 1_000_000
"""Maximum step of the wall clock, or time of suspension, within a cell. Tools and captures use the wall clock; a
millisecond is less than the shortest delay that an experiment reports, and more than the difference of the readings.
"""


class Lateness(Record):
    """Lateness of departures relative to a punctual router, in ns; see internals/control-protocol.md."""

    max: float
    p50: float
    p99: float
    p999: float
    count: int


class Forwarding(Record):
    """Forwarding of a router's transit packets; see docs/internals/control-protocol.md."""

    forwarded: int
    handed_to_kernel: int
    through_kernel: str | None
    """Reason for the kernel path of all packets; None if the data plane forwards."""
    dumps: int
    overruns: int


class Health(Record):
    """Health of a virtual router's data plane at the end of a cell; see internals/control-protocol.md."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    received: int
    transmitted: int
    lost_input: int
    malformed: int
    unsent: int
    late_arrivals: int | None = None
    """Frames that the kernel delivered, back from it or from a link, after the decision on a later frame of the same
    port. None in older records without this value: they are not judged by it.
    """
    lateness_ns: Lateness
    lateness_by_port: dict[str, Lateness] = {}
    """Lateness of the departures onto each port's link; empty in older records."""
    late_over_budget: int
    behind_ns: int
    """Time during which departures later than the budget were overdue."""
    budget_ns: int
    forwarding: Forwarding | None = None
    """Forwarding of transit packets; None in older records."""

    def reasons(self, device: str) -> tuple[str, ...]:
        """Return the reasons against the values of a cell with this router, on any machine; empty if they are valid."""
        found = []
        if self.unsent > UNSENT_MOST:
            found.append(f"{device}: the kernel did not deliver {self.unsent} frames that the data plane had sent")
        if self.malformed > MALFORMED_MOST:
            found.append(f"{device}: {self.malformed} frames could not be passed (too short or long, or offloaded)")
        return tuple(found)

    def lateness(
        self, device: str, traffic_s: float, feeds: Feeds = MappingProxyType({}), *, one_decides: bool = False
    ) -> tuple[str, ...]:
        """Return the reasons that are due to the router's lack of CPU time: on a less busy machine the cell may be
        valid.

        A late departure changes no decision of the router, only the round-trip time between the hosts. So single stalls
        of the machine are a warning, and time counts rather than packets, since a waiting host sends none. Lateness
        does change decisions of the next router, link by link.

        `one_decides`: an expected value depends on a single packet, so that not a single one may be out of turn.
        """
        found = []
        if self.lost_input:
            found.append(f"{device}: the kernel dropped {self.lost_input} frames before the data plane saw them")
        if self._too_many_late_arrivals(one_decides):
            most = f"at most {LATE_ARRIVAL_SHARE:.1%} is acceptable"
            found.append(
                f"{device}: {self.late_arrivals} of {self.received} frames arrived from the kernel too late for "
                f"their turn, {'none is acceptable because a maximum is expected' if one_decides else most}"
            )
        if self._share(traffic_s) > BEHIND_SHARE:
            found.append(f"{device}: {self._behind_text(traffic_s)}, at most {BEHIND_SHARE:.0%} is acceptable")
        for port, late in self._ports_with_bunched_frames(feeds, one_decides):
            many, latest = (
                ("a packet", f"{late.max / 1e6:.3g} ms, although a maximum is expected")
                if one_decides
                else (f"more than {SERIES_SHARE:.1%} of its packets", f"99.9 %: {late.p999 / 1e6:.3g} ms")
            )
            found.append(
                f"{device} {port}: {many} left over {SERIES_LATE_NS / 1e6:g} ms late ({latest}), and "
                f"{', '.join(feeds[port])} received them in bursts"
            )
        return tuple(found)

    def _too_many_late_arrivals(self, one_decides: bool) -> bool:
        most = 0.0 if one_decides else LATE_ARRIVAL_SHARE * self.received
        return self.late_arrivals is not None and self.late_arrivals > most

    def _ports_with_bunched_frames(self, feeds: Feeds, one_decides: bool) -> Iterator[tuple[str, Lateness]]:
        """Yield the ports with late frames towards routers with decisions that depend on time."""
        for port, fed in feeds.items():
            late = self.lateness_by_port.get(port)
            if fed and late is not None and (late.max if one_decides else late.p999) > SERIES_LATE_NS:
                yield port, late

    def warnings(self, device: str, traffic_s: float) -> tuple[str, ...]:
        """Return warnings for the reader about valid values."""
        found = []
        if 0 < self._share(traffic_s) <= BEHIND_SHARE:
            found.append(f"{device}: {self._behind_text(traffic_s)}")
        if self.forwarding is not None and self.forwarding.through_kernel is not None:
            found.append(f"{device}: packets in transit were forwarded by the kernel: {self.forwarding.through_kernel}")
        return tuple(found)

    def _share(self, traffic_s: float) -> float:
        return self.behind_ns / 1e9 / traffic_s

    def _behind_text(self, traffic_s: float) -> str:
        return (
            f"the router process got no CPU time for {self._share(traffic_s):.2%} of the traffic time: "
            f"{self.late_over_budget} packets of {self.lateness_ns.count} left more than {self.budget_ns / 1e6:g} ms "
            f"late, at most {self.lateness_ns.max / 1e6:.3g} ms"
        )


class SenderRecord(Record):
    """Precision of a paced sender: of a traffic tool, or of a probe."""

    shortfall: float
    """Share of the requested traffic that it omitted; 0 if it sent all, or more."""
    late_p99_ms: float | None = None
    """Lateness of its datagrams (99th percentile); None if the tool does not report it."""
    late_max_ms: float | None = None
    lost: float | None = None
    """Share of its datagrams that the receiver missed; None if unknown."""

    def lateness(self, what: str, *, one_decides: bool = False) -> tuple[str, ...]:
        """Return the reasons against the values of a cell with this sender of `what`; empty if they are valid.

        The reasons are due to the sender's lack of CPU time.

        `one_decides`: an expected value depends on a single packet, so that not a single one may be late, unless the
        sender keeps its queue full (`SENDER_FILLS`).
        """
        found = []
        if self.shortfall > SENDER_SHORT:
            found.append(
                f"{what}: its sender skipped {self.shortfall:.2%} of its packets, "
                f"at most {SENDER_SHORT:.0%} is acceptable"
            )
        if self.late_p99_ms is not None and self.late_p99_ms > SENDER_LATE_MS:
            found.append(
                f"{what}: more than {SENDER_LATE_SHARE:.0%} of its datagrams left over "
                f"{SENDER_LATE_MS:g} ms late (99 %: {self.late_p99_ms:.3g} ms), so they left in bursts"
            )
        elif (
            one_decides and not self._keeps_rate and self.late_max_ms is not None and self.late_max_ms > SENDER_LATE_MS
        ):
            found.append(
                f"{what}: a datagram left {self.late_max_ms:.3g} ms late, at most {SENDER_LATE_MS:g} ms is "
                f"acceptable because a maximum is expected"
            )
        return tuple(found)

    @property
    def _keeps_rate(self) -> bool:
        return self.lost is not None and self.lost >= SENDER_FILLS


class ClockRecord(Record):
    """Changes of the machine's clocks within a cell, in nanoseconds."""

    stepped_ns: int
    """Step of the wall clock (CLOCK_REALTIME against CLOCK_MONOTONIC)."""
    asleep_ns: int
    """Time of suspension (CLOCK_BOOTTIME against CLOCK_MONOTONIC)."""

    def reasons(self) -> tuple[str, ...]:
        """Return the reasons against the values of the cell; empty if they are valid."""
        found = []
        if abs(self.stepped_ns) > CLOCK_STEP_NS:
            found.append(f"the machine's clock was stepped by {self.stepped_ns / 1e6:+.3g} ms during the cell")
        if abs(self.asleep_ns) > CLOCK_STEP_NS:
            found.append(f"the machine was suspended for {self.asleep_ns / 1e9:.3g} s during the cell")
        return tuple(found)


CLOCK_ERROR_NS = 5_000_000
"""Maximum error of a host's clock without a warning: a twentieth of a bin of the graphs."""


class HostClockRecord(Record):
    """Offset of a host's clock from that of the machine that ran the cell, before and after its traffic.

    In nanoseconds. Tables are shifted by it (`analysis.packets.shift_clock`), captures are not.
    """

    looked_ns: tuple[int, int]
    """Times of the readings by this machine's clock, since 1970."""
    ahead_ns: tuple[int, int]
    """Offset of the host's clock, positive if ahead."""
    error_ns: tuple[int, int]
    """Greatest error: half of the round trip of the query."""
    own: ClockRecord
    """Changes of the host's clocks between the readings."""

    def reasons(self, host: str) -> tuple[str, ...]:
        """Return the reasons against the values of the cell; empty if they are valid."""
        return tuple(reason.replace("the machine", host, 1) for reason in self.own.reasons())

    def warnings(self, host: str) -> tuple[str, ...]:
        """Return warnings for the reader about valid values."""
        if max(self.error_ns) <= CLOCK_ERROR_NS:
            return ()
        return (
            f"{host}: its clock is known to ±{max(self.error_ns) / 1e6:.3g} ms: graphs of its captures may be "
            "shifted by that much",
        )


WAITED_SHARE = 0.05
"""Maximum share of the traffic time that a program may wait for a processor without a warning."""


class StallRecord(Record):
    """Lateness of programs on a host during the traffic, in nanoseconds: many wake-ups, each due at some instant."""

    watched_ns: int
    wakes: int
    late: int
    """Wake-ups over the budget of 5 ms."""
    behind_ns: int
    """Total lateness of these wake-ups."""
    latest_ns: int
    waited_ns: dict[str, int] = {}
    """Time that each program was ready without a processor, by its kernel's count."""

    @property
    def is_late(self) -> bool:
        """True if the host lacked CPU time for its programs: on a less busy host the cell may be valid."""
        return self.behind_ns > BEHIND_SHARE * self.watched_ns

    def lateness(self, host: str) -> tuple[str, ...]:
        """Return the reasons against the values of a cell with this host; empty if they are valid."""
        return (f"{self._behind_text(host)}, at most {BEHIND_SHARE:.0%} is acceptable",) if self.is_late else ()

    def warnings(self, host: str) -> tuple[str, ...]:
        """Return warnings for the reader about valid values."""
        found = [self._behind_text(host)] if self.behind_ns and not self.is_late else []
        for program, waited in self.waited_ns.items():
            share = waited / max(self.watched_ns, 1)
            if share > WAITED_SHARE:
                found.append(f"{host}: {program} waited for a processor during {share:.0%} of the traffic time")
        return tuple(found)

    def _behind_text(self, host: str) -> str:
        return (
            f"{host}: its programs got no CPU time for {self.behind_ns / max(self.watched_ns, 1):.2%} of "
            f"the traffic time: {self.late} of {self.wakes} wake-ups were more than 5 ms late, at most "
            f"{self.latest_ns / 1e6:.3g} ms"
        )


class CaptureRecord(Record):
    """End of a capture."""

    received: int
    dropped: int

    def reasons(self, point: str) -> tuple[str, ...]:
        """Return notes for readers of the capture's graphs; empty if the capture is complete."""
        return (
            (f"capture {point}: {self.dropped} packets were dropped, so its graphs are too low",)
            if self.dropped
            else ()
        )


class PollingRecord(Record):
    """Cost of reading a router's counters with show commands during the traffic."""

    every_s: float
    """Longest interval between readings; 0 if there are readings before and after the traffic only."""
    commands: tuple[str, ...]
    """Commands of one reading that the router answers."""
    readings: int
    took_mean_s: float
    """Mean duration of a reading, from its first command to its last answer."""
    took_max_s: float
    busy_max_percent: int | None = None
    """Maximum of the router's five-second CPU load; None if the router does not report it."""


def _check_time_range(moment: datetime) -> datetime:
    """Check that a time can be expressed in nanoseconds with 64 bits, after any further addition."""
    if not YEARS[0] <= moment.year <= YEARS[1]:
        raise ValueError(f"found a time in the year {moment.year}, expected a year from {YEARS[0]} to {YEARS[1]}")
    return moment


class FlowRecord(Record):
    """Place and time of a flow."""

    traffic: str
    """The flow's name in the experiment."""
    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    port: int
    started: Annotated[datetime, AfterValidator(_check_time_range)]
    """Start time of its client."""
    start_after_s: Annotated[float, Field(ge=0, le=366 * 86400)] = 0.0
    """Delay of its start after the traffic's."""
    began: Annotated[datetime, AfterValidator(_check_time_range)] | None = None
    """Time when its connections were first seen; None without connections or observation."""


def _check_cell_folder(folder: str) -> str:
    """Check that a folder is below `cells/`, without leading elsewhere."""
    parts = folder.split("/")
    if folder and (parts[0] != "cells" or not {"", ".", ".."}.isdisjoint(parts) or "\0" in folder):
        raise ValueError(f'found the folder "{folder}", expected a folder below cells/')
    return folder


def _part(name: str) -> str:
    """Check that an arm's name is a valid folder name, without leading elsewhere."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f'found the arm "{name}", expected a valid folder name')
    return name


class ObservedCommand(Record):
    """A show command with the files of its output (without suffix)."""

    device: str
    moment: str
    """`before`, `during`, `after`, or a trigger in words: `conformed_bytes 1992832 B`."""
    command: str
    file: Annotated[str, Field(pattern=r"^observations/[^/\x00]+/[^/\x00]+$")]
    before: datetime | None = None
    """Time of sending; None in virtual time and in older records."""
    after: datetime | None = None
    """Time of the answer."""


class CellRecord(Record):
    """`cell.json`: result of running a cell."""

    arm: str
    parameters: dict[str, Scalar] = {}
    """Parameters in the form of `qoslab.model.matrix.as_texts`."""
    repetition: int = Field(ge=1)
    attempt: int = Field(default=1, ge=1)
    key: str = ""
    """SHA-256 of the cell's definition; see docs/internals/architecture.md."""
    lab: str = DEFAULT_LAB
    """Kind of lab that ran the cell; see `qoslab.lab_kinds`."""
    virtual_s: float | None = None
    """Seconds of virtual time that were simulated."""
    valid: bool
    reasons: tuple[str, ...] = ()
    """Reasons of an invalid cell."""
    late: bool = False
    """True if the cell is invalid for lack of CPU time of a router, a sender or a host: an attempt with fewer parallel
    cells may succeed.
    """
    lateness: tuple[str, ...] = ()
    """Reasons due to lateness; empty in older records."""
    fault: bool = False
    """True if it is invalid because the lab failed: a router or a program died, hung, or could not be reached."""
    disagreeing: bool = False
    """True if it is invalid since counters of hosts and routers disagree: packets on a link may have been lost."""
    worker: str = ""
    """Machine that ran it, with its kernel."""
    cpu_s: float | None = None
    """Processor time of the lab's processes and its tools while the traffic ran."""
    warnings: tuple[str, ...] = ()
    """Warnings for the reader about valid values."""
    steps: tuple[Step, ...] = ()
    flows: tuple[FlowRecord, ...] = ()
    observed: tuple[ObservedCommand, ...] = ()
    captures: dict[str, CaptureRecord] = {}
    """Capture records by capture point."""
    health: dict[str, Health] = {}
    """Health by router; only of our data plane."""
    senders: dict[str, SenderRecord] = {}
    """Precision of paced senders, by traffic: TCP has none."""
    probe_senders: dict[str, SenderRecord] = {}
    """Precision of jitter operations of hosts without other traffic, by probe."""
    polling: dict[str, PollingRecord] = {}
    """Cost of reading by router, if counters were read with show commands."""
    host_clocks: dict[str, HostClockRecord] = {}
    """Clock offsets by host; only of hosts with another clock."""
    stalls: dict[str, StallRecord] = {}
    """Lateness of programs by watched host."""
    clock: ClockRecord | None = None
    """Changes of the machine's clocks; None in virtual time, and for an interrupted cell."""
    files: dict[str, FileSeal] = {}
    """Seals of all other files of the cell, by name within its folder."""

    @property
    def traffic_start(self) -> datetime | None:
        """Zero of every `time_s`; None if no traffic was started.

        The first flow determines it: a later one may have begun with less delay.
        """
        first = min(self.flows, key=lambda flow: (flow.start_after_s, flow.started), default=None)
        return None if first is None else first.started - timedelta(seconds=first.start_after_s)


class Attempt(Record):
    """An earlier attempt at a cell, which keeps its folder."""

    folder: Annotated[str, AfterValidator(_check_cell_folder)]
    reasons: tuple[str, ...] = ()
    """Reasons of an invalid attempt."""
    record: FileSeal | None = None
    """Seal of its `cell.json`; None if there is none."""


class CellSummary(Record):
    """A cell in the manifest."""

    arm: Annotated[str, AfterValidator(_part)]
    parameters: dict[str, Scalar] = {}
    repetition: int
    key: str = ""
    """SHA-256 of the cell's definition."""
    folder: Annotated[str, AfterValidator(_check_cell_folder)] = ""
    """Folder of the valid attempt, within the run folder; empty if the cell was never run."""
    record: FileSeal | None = None
    """Seal of its `cell.json`; None if there is none."""
    valid: bool
    reasons: tuple[str, ...] = ()
    spared: str = ""
    """Reason for skipping the cell, if earlier repetitions were enough; it is then neither valid nor missing."""
    earlier: tuple[Attempt, ...] = ()
    """Attempts before the one that counts."""

    @property
    def values(self) -> Parameters:
        """Parameters as quantities and numbers."""
        return as_values(self.parameters)

    @cached_property
    def identity(self) -> CellIdentity:
        """Key that identifies the cell."""
        return CellIdentity(self.arm, tuple(self.values.items()), self.repetition)

    @property
    def name(self) -> str:
        """ARM/REPETITION or ARM/PARAMETERS/REPETITION."""
        return self.identity.folder

    @property
    def place(self) -> str:
        """Folder of the attempt that counts, within the run folder; of an unfinished cell that of its first attempt."""
        return self.folder or f"cells/{self.name}"


class Session(Record):
    """One call of `qoslab run` that worked on the run: the first, and each that resumed it."""

    started: datetime
    ended: datetime | None = None
    overrides: tuple[str, ...] = ()
    """Options, as typed."""
    versions: dict[str, str] = {}
    """Packages and tools."""
    commit: str | None = None
    """Commit of qoslab's work tree."""


class Manifest(Record):
    """`manifest.json`: content of a run, its provenance, and its validity."""

    format: int = FORMAT
    experiment: Experiment
    """The experiment as run, with overrides applied. If there is a matrix, with the values of each arm's first
    combination.
    """
    published: tuple[PublishedValue, ...] = ()
    """Values of the publication at the time of the run."""
    overrides: tuple[str, ...] = ()
    """`--set` and `--duration`, as typed."""
    lab: str = DEFAULT_LAB
    """Kind of lab of all cells; see `qoslab.lab_kinds`."""
    started: datetime
    ended: datetime | None = None
    versions: dict[str, str] = {}
    """Packages and tools."""
    commit: str | None = None
    """Commit of qoslab's work tree."""
    machine: dict[str, Any] = {}
    sysctls: dict[str, dict[str, str]] = {}
    """Kernel settings by node, read back from the kernel."""
    offloads: dict[str, dict[str, bool]] = {}
    """Offloads by interface (`NODE:INTERFACE`), read back from the kernel."""
    seeds: dict[str, int] = {}
    configurations: dict[str, str] = {}
    """SHA-256 of each rendered configuration, by `ARM/DEVICE`."""
    files: dict[str, FileSeal] = {}
    """Seals of the saved experiment files."""
    cells: tuple[CellSummary, ...] = ()
    """Every planned cell, whether it was run or not."""
    sessions: tuple[Session, ...] = ()
    """Every call that worked on the run, including the last one."""

    @field_validator("cells")
    @classmethod
    def _check_unique_cells(cls, cells: tuple[CellSummary, ...]) -> tuple[CellSummary, ...]:
        """Check that each cell occurs once."""
        names = Counter(cell.name for cell in cells)
        if twice := next((name for name, count in names.items() if count > 1), ""):
            raise ValueError(f"found the cell {twice} more than once")
        return cells

    @property
    def took_s(self) -> float | None:
        """Working time on the run, without interruptions; None while it is running."""
        if self.ended is None:
            return None
        spans = [(each.started, each.ended) for each in self.sessions] or [(self.started, self.ended)]
        return sum((ended - started).total_seconds() for started, ended in spans if ended is not None)

    @property
    def valid(self) -> bool:
        """True if there are cells and all of them are valid."""
        return bool(self.cells) and all(cell.valid or cell.spared for cell in self.cells)
