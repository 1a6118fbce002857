"""Interface of a lab for a run; each kind with hosts and routers implements it in `run.workers`.

What carries out a cell (`run.cell`) knows a lab by these protocols alone.
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

if TYPE_CHECKING:
    from qoslab.capture import Counts
    from qoslab.capture.filters import Instruction
    from qoslab.results import StallRecord
    from qoslab.system import program_formats


class Process(Protocol):
    """A program on a host. What it prints is in the files given at its start while it runs; it ends with the lab."""

    def poll(self) -> int | None:
        """Return its status, negative for a signal; None while it runs, or waits for its start."""

    def began_ns(self) -> int | None:
        """Return when it began, by CLOCK_MONOTONIC of this machine; None as long as it has not."""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program itself; nothing if it has ended."""

    def wait(self, timeout_s: float | None = None) -> int:
        """Return its status. `TimeoutError` if it still runs after that time. `TimeoutError` if it still runs after
        that time.
        """

    def end(self, grace_s: float = 0.0) -> None:
        """SIGTERM, and SIGKILL where it still runs after that time; at once if there is none."""


@dataclass(frozen=True)
class ClockReading:
    """Offset of a host's clock from this machine's, and of its clocks from one another; in nanoseconds."""

    at_ns: int
    """Time by this machine's clock, since 1970."""
    ahead_ns: int
    """Offset of the host's clock, positive if ahead."""
    error_ns: int
    """Greatest error."""
    wall_ahead_ns: int
    """Offset of its wall clock from its CLOCK_MONOTONIC (it neither steps nor counts sleep)."""
    boot_ahead_ns: int


class Host(Protocol):
    """A machine that sends, receives or captures. Its methods may be called from any thread."""

    def start(self, argv: Sequence[str], *, stdout: Path | None, stderr: Path, at_ns: int | None = None) -> Process:
        """Start a program that reads nothing; the files are new.

        Its first word is a name that is looked up on that host: one of qoslab's own programs, or one of its path. It
        begins at `at_ns` of this machine's CLOCK_MONOTONIC, and at once where that is over or not given.
        """

    def read(self, *paths: str) -> str:
        """Files of the host as text, one after the other, such as those of /proc/net; `RunInvalid` if one is not
        there.
        """

    def device(self, interface: str) -> str:
        """Return how it calls an interface of the experiment."""

    def scratch(self, to: Path) -> str:
        """Return where a program of the host writes what is to come to `to`, which `fetch` does."""

    def fetch(self, to: Path) -> None:
        """Bring what was written to the scratch of `to` there, whole."""

    def clock(self) -> ClockReading | None:
        """Examine its clock; None if it has this machine's."""

    def stalls(self) -> StallRecord | None:
        """Return the lateness of the host since the last call; None if it is measured by other means."""

    def apply_tcp(self, profile: TcpProfile, *, answers: bool = True) -> None:
        """Apply these settings to new connections; without `answers`, report no closed ports.

        `MachineError` if the kernel has others afterwards.
        """


@dataclass(frozen=True)
class Tap:
    """Place where the packets of an interface are visible."""

    host: Host
    interface: str
    """Interface name on the host."""


class DataPlane(Protocol):
    """A `qos-router`, asked over its control socket. A router that has only a command line has none.

    All but `close` raise `QoslabError` if it does not answer or refuses.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def close(self) -> None:
        """Hang up."""

    async def config(self) -> program_formats.DataPlaneConfig | None:
        """The configuration in force; None before the first."""

    async def configure(self, config: program_formats.DataPlaneConfig) -> None:
        """Put a complete configuration in force, or none of it."""

    async def counters(self) -> program_formats.Counters:
        """All counters."""

    async def clear(self) -> None:
        """Count again, lateness and losses too."""

    async def ip_sla(self, operation: int, *, samples: bool) -> program_formats.IpSlaReport:
        """Return the results of an operation; with `samples` also the stamps of each packet."""

    async def health(self) -> program_formats.Health:
        """Lateness and lost input."""

    async def capture(
        self,
        interface: str,
        file: Path,
        *,
        snaplen: int,
        filter: Sequence[Instruction] = (),
        comment: str,
    ) -> None:
        """Begin to capture what passes an interface into a pcapng file, with event time as its stamps."""

    async def end_capture(self, file: Path) -> Counts:
        """End the capture that writes this file, which is whole then."""


class Load(Protocol):
    """Load of the lab's processes on a machine."""

    @property
    def seconds(self) -> float:
        """Return the processor time while the block ran."""


class Lab(Protocol):
    """Hosts, routers and links of one topology, held by one run."""

    def host(self, name: str) -> Host:
        """A host of the topology."""

    def tap(self, node: str, interface: str) -> Tap:
        """Return where packets of an interface are captured."""

    @property
    def data_planes(self) -> Collection[str]:
        """Routers whose data plane can be asked."""

    @property
    def show_every(self) -> Mapping[str, Duration | None]:
        """Routers whose counters are read by show commands while traffic runs, and how often at least, if that is
        stated; 0 is before the traffic and after it only.
        """

    @property
    def notice_s(self) -> float:
        """Return how long before its instant a host has to be asked to start a program: what that takes, and some to
        spare.
        """

    @property
    def lines(self) -> Collection[str]:
        """Data planes that are no routers: they make delay, jitter and loss of a link between two hosts."""

    def control(self, data_plane: str) -> DataPlane:
        """A data plane, by the name of its router or line."""

    def death(self) -> str:
        """Return the dead part of the lab, its end, and its last output; empty while all of it lives."""

    def load(self) -> AbstractContextManager[Load]:
        """Measures what the lab takes of this machine while the block runs."""
