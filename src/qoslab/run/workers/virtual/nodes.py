"""Nodes of the virtual lab for a run: its hosts are namespaces of this machine."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from qoslab import virtual_lab as virtual
from qoslab.errors import RunInvalid
from qoslab.model.experiment import TcpProfile
from qoslab.model.units import Duration
from qoslab.platforms import has_engine
from qoslab.run.protocols import Load, Tap
from qoslab.run.workers.virtual.cpu import CpuMeter
from qoslab.system.programs import OWN_PROGRAMS, find_own_program
from qoslab.virtual_lab.control import ControlClient
from qoslab.virtual_lab.lab_processes import LabProcess

LOG_LINES = 5
"""Number of a dead daemon's last lines that are reported."""
KILL_TIMEOUT_S = 2.0
"""Seconds for a killed process to end."""
READ_S = 10.0
"""Seconds for reading files of a namespace, which takes milliseconds."""


class VirtualProcess:
    """See `run.protocols.RemoteProcess`."""

    def __init__(self, process: LabProcess, began_ns: int) -> None:
        self._process = process
        self._began_ns = began_ns

    def poll(self) -> int | None:
        """See `run.protocols.RemoteProcess`."""
        return self._process.poll()

    def began_ns(self) -> int:
        """See `run.protocols.RemoteProcess`."""
        return self._began_ns

    def signal(self, number: signal.Signals) -> None:
        """See `run.protocols.RemoteProcess`."""
        self._process.send_signal(number)

    def wait(self, timeout_s: float | None = None) -> int:
        """See `run.protocols.RemoteProcess`."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(str(error)) from error

    def end(self, grace_s: float = 0.0) -> None:
        """See `run.protocols.RemoteProcess`."""
        if grace_s and self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        if self._process.poll() is None:
            self._process.kill()
            # Processes that the kernel holds for longer end with the lab.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_TIMEOUT_S)


class VirtualHost:
    """See `run.protocols.LabHost`. A namespace: that of a host, or the one in which the links of a router end."""

    def __init__(self, lab: virtual.Lab, namespace: str) -> None:
        self._lab = lab
        self._namespace = namespace

    def start(
        self, argv: Sequence[str], *, stdout: Path | None, stderr: Path, at_ns: int | None = None
    ) -> VirtualProcess:
        """See `run.protocols.LabHost`; this returns when the program has begun."""
        program = str(find_own_program(argv[0])) if argv[0] in OWN_PROGRAMS else argv[0]
        with Path("/dev/null").open("wb") if stdout is None else stdout.open("xb") as out, stderr.open("xb") as err:
            command = [program, *argv[1:]]
            if at_ns is not None:
                time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)
            began_ns = time.monotonic_ns()
            process = self._lab.popen(self._namespace, command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        return VirtualProcess(process, began_ns)

    def read(self, *paths: str) -> str:
        """See `run.protocols.LabHost`."""
        try:
            shown = self._lab.run(self._namespace, ["cat", *paths], timeout=READ_S)
        except subprocess.TimeoutExpired as error:
            raise RunInvalid(f"{self._namespace}: reading {', '.join(paths)} took longer than {READ_S:g} s") from error
        if shown.returncode:
            raise RunInvalid(f"{self._namespace}: {shown.stderr.strip()}")
        return shown.stdout

    def device(self, interface: str) -> str:
        """See `run.protocols.LabHost`."""
        return self._lab.interface(self._namespace, interface)[1]

    def scratch_path(self, to: Path) -> str:
        """See `run.protocols.LabHost`; the host has the files of this machine."""
        return str(to)

    def fetch(self, to: Path) -> None:
        """See `run.protocols.LabHost`; the file is already there."""

    def read_clock(self) -> None:
        """See `run.protocols.LabHost`: this machine's."""

    def read_stalls(self) -> None:
        """See `run.protocols.LabHost`: the data planes report the lateness of this machine."""

    def apply_tcp(self, profile: TcpProfile, *, answers: bool = True) -> None:
        """See `run.protocols.LabHost`."""
        self._lab.apply_tcp_profile(self._namespace, profile, answers=answers)


class VirtualLab:
    """See `run.protocols.RunningLab`."""

    def __init__(self, lab: virtual.Lab) -> None:
        self._lab = lab

    def host(self, name: str) -> VirtualHost:
        """See `run.protocols.RunningLab`."""
        return VirtualHost(self._lab, name)

    def capture_point(self, node: str, interface: str) -> Tap:
        """See `run.protocols.RunningLab`."""
        namespace, name = self._lab.interface(node, interface)
        return Tap(VirtualHost(self._lab, namespace), name)

    @property
    def data_planes(self) -> Collection[str]:
        """See `run.protocols.RunningLab`: all routers with the engine as data plane."""
        return [name for name, node in self._lab.topology.nodes.items() if has_engine(node)]

    @property
    def show_every(self) -> Mapping[str, Duration | None]:
        """See `run.protocols.RunningLab`: none, since their data planes are read."""
        return {}

    @property
    def notice_s(self) -> float:
        """See `run.protocols.RunningLab`: 0, since its hosts are this machine."""
        return 0.0

    @property
    def lines(self) -> Collection[str]:
        """See `run.protocols.RunningLab`."""
        return self._lab.lines

    def control(self, data_plane: str) -> ControlClient:
        """See `run.protocols.RunningLab`."""
        return self._lab.control(data_plane)

    def describe_death(self) -> str:
        """See `run.protocols.RunningLab`."""
        try:
            failures = self._lab.failures()
        except virtual.LabError as error:
            return error.message
        return "; ".join(failure.describe(LOG_LINES) for failure in failures)

    def load(self) -> AbstractContextManager[Load]:
        """See `run.protocols.RunningLab`."""
        return CpuMeter(self._lab.pid)
