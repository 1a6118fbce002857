"""Interface of a lab for a run, implemented for each kind with hosts and routers in `run.workers`.

The code for a cell (`run.cell`) uses labs through these protocols only.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from qoslab.model.experiment import TcpProfile
from qoslab.model.units import Duration
from qoslab.system import program_formats

if TYPE_CHECKING:
    from qoslab.capture import CaptureCounts
    from qoslab.capture.filters import Instruction
    from qoslab.results import StallRecord


class RemoteProcess(Protocol):
    """Program on a host; it ends with the lab.

    While it runs, its output is in the files given at its start.
    """

    def poll(self) -> int | None:
        """Return its status, negative for a signal; None while it runs or waits for its start."""

    def began_ns(self) -> int | None:
        """Return its start time by CLOCK_MONOTONIC of this machine; None before the start."""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program itself; nothing if it has ended."""

    def wait(self, timeout_s: float | None = None) -> int:
        """Return its status. Raise `TimeoutError` if it still runs after `timeout_s`."""

    def end(self, grace_s: float = 0.0) -> None:
        """Send SIGTERM, and SIGKILL if it still runs after `grace_s`; without a time, SIGKILL at once."""


@dataclass(frozen=True)
class ClockReading:
    """Offset of a host's clock from this machine's, and of its clocks from one another; in nanoseconds."""

    at_ns: int
    """Time by this machine's clock, since 1970."""
    offset_ns: int
    """Offset of the host's clock, positive if ahead."""
    error_ns: int
    """Greatest error."""
    wall_offset_ns: int
    """Offset of its wall clock from its CLOCK_MONOTONIC (it neither steps nor counts sleep)."""
    boot_offset_ns: int


class LabHost(Protocol):
    """Machine that sends, receives or captures. Its methods may be called from any thread."""

    def start(
        self, argv: Sequence[str], *, stdout: Path | None, stderr: Path, at_ns: int | None = None
    ) -> RemoteProcess:
        """Start a program without input; the output files are new.

        Its first word is looked up on that host: one of qoslab's own programs, or a program in the path of the host. It
        starts at `at_ns` of this machine's CLOCK_MONOTONIC, or at once if that is past or not given.
        """

    def read(self, *paths: str) -> str:
        """Return the text of files of the host, concatenated, such as files of /proc/net.

        Raise `RunInvalid` if one is missing.
        """

    def device(self, interface: str) -> str:
        """Return the host's own name for an interface of the experiment."""

    def scratch_path(self, to: Path) -> str:
        """Return the host's path for a program to write the content of `to`; `fetch` then copies it."""

    def fetch(self, to: Path) -> None:
        """Copy the complete file from the scratch path of `to` to `to`."""

    def read_clock(self) -> ClockReading | None:
        """Read its clock; None if it has this machine's."""

    def read_stalls(self) -> StallRecord | None:
        """Return the lateness of the host since the last call; None if it is measured by other means."""

    def apply_tcp(self, profile: TcpProfile, *, answers: bool = True) -> None:
        """Apply these settings to new connections; without `answers`, report no closed ports.

        Raise `MachineError` if the kernel has other values afterwards.
        """


@dataclass(frozen=True)
class Tap:
    """Place where the packets of an interface are visible."""

    host: LabHost
    interface: str
    """Interface name on the host."""


class DataPlaneClient(Protocol):
    """`qos-router`, reached over its control socket. A router with only a command line has none.

    All methods except `close` raise `QoslabError` if it does not answer or refuses.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def close(self) -> None:
        """Close the connection."""

    async def config(self) -> program_formats.DataPlaneConfig | None:
        """Return the active configuration; None before the first."""

    async def configure(self, config: program_formats.DataPlaneConfig) -> None:
        """Activate a complete configuration, or none of it."""

    async def counters(self) -> program_formats.Counters:
        """Return all counters."""

    async def clear(self) -> None:
        """Reset all counters, including lateness and losses."""

    async def ip_sla(self, operation: int, *, samples: bool) -> program_formats.IpSlaReport:
        """Return the results of an operation; with `samples`, also the time stamps of each packet."""

    async def health(self) -> program_formats.Health:
        """Return lateness and lost input."""

    async def capture(
        self, interface: str, file: Path, *, snaplen: int, filter: Sequence[Instruction] = (), comment: str
    ) -> None:
        """Start to capture the packets of an interface into a pcapng file, with event time as time stamps."""

    async def end_capture(self, file: Path) -> CaptureCounts:
        """End the capture into this file, which is then complete."""


class Load(Protocol):
    """Load of the lab's processes on a machine."""

    @property
    def seconds(self) -> float:
        """Return the processor time while the block ran."""


class RunningLab(Protocol):
    """Hosts, routers and links of one topology, held by one run."""

    def host(self, name: str) -> LabHost:
        """Return a host of the topology."""

    def capture_point(self, node: str, interface: str) -> Tap:
        """Return the place to capture packets of an interface."""

    @property
    def data_planes(self) -> Collection[str]:
        """Routers with a data plane that answers requests."""

    @property
    def show_every(self) -> Mapping[str, Duration | None]:
        """Routers whose counters are read by show commands during traffic, and the requested interval, if any.

        0: only before and after the traffic.
        """

    @property
    def notice_s(self) -> float:
        """Return how long before its instant a host must be asked to start a program, with a margin."""

    @property
    def lines(self) -> Collection[str]:
        """Data planes that are not routers: they add delay, jitter and loss to a link between two hosts."""

    def control(self, data_plane: str) -> DataPlaneClient:
        """Return a data plane, by the name of its router or line."""

    def describe_death(self) -> str:
        """Return the dead part of the lab, its end, and its last output; empty while all of it runs."""

    def load(self) -> AbstractContextManager[Load]:
        """Measure the load of the lab on this machine while the block runs."""
