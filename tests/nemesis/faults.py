"""Faults of a nemesis: one of them, at a time and in a process of the run drawn from a seed."""

from __future__ import annotations

import math
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clocks import Clocks
from commands import QOSLAB, Command

ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that request the end of a process."""
STOPPED_S = 3.0
"""Longest stop among other faults."""
STOP_S = (0.1, 10.0)
"""Shortest and longest stop of `STOPS`."""


@dataclass(frozen=True)
class InjectedFault:
    """The applied fault."""

    fault: str
    victim: str
    main: bool
    """True if the victim is the run itself."""
    after_s: float

    def __str__(self) -> str:
        return f"{self.fault} of {'the run' if self.main else self.victim} after {self.after_s:.2f} s"

    @property
    def kind(self) -> str:
        """Return the kind of the fault, without time and victim."""
        return f"{self.fault.replace('_', ' ')}, {'the run itself' if self.main else 'another of its processes'}"


def run_processes(command: Command) -> dict[int, str]:
    """Return the processes of a run with their command lines: those with its environment, and their descendants in
    other root folders.

    A process in a separate PID namespace also has that environment and is visible here under a number of this
    namespace.
    """
    mark = f"QOSLAB_TEST_FOLDER={command.folder}".encode()
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if line:
                    found[int(process.name)] = line
        except OSError:
            continue
    return found


def kill_process(pid: int, draw: random.Random) -> None:
    """Kill the process with SIGKILL, like the kernel if memory is short."""
    os.kill(pid, signal.SIGKILL)


def stop_process(pid: int, draw: random.Random) -> None:
    """Stop the process for a while, like on a suspended or overloaded machine."""
    _stop_and_continue(pid, draw.uniform(0.05, STOPPED_S))


def stop_process_for_long(pid: int, draw: random.Random) -> None:
    """Stop the process for up to ten seconds; short stops are as frequent as long ones."""
    _stop_and_continue(pid, math.exp(draw.uniform(*map(math.log, STOP_S))))


def _stop_and_continue(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


def fill_disk(pid: int, draw: random.Random) -> None:
    """Limit files to some kilobytes, like on a full disk."""
    most = draw.choice((0, 4096, 65_536))
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def exhaust_descriptors(pid: int, draw: random.Random) -> None:
    """Leave the process no free descriptor."""
    opened = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (opened, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))


def request_end(pid: int, draw: random.Random) -> None:
    """Send the process the signal of a user, a terminal or a service manager."""
    os.kill(pid, draw.choice(ASKED))


def set_clock(pid: int, draw: random.Random) -> None:
    """Change the clocks of all processes of the run, as far as `clocks` can set them: to a wrong time, or like after a
    sleep.
    """
    far = draw.choice((0.005, 1.5, 60.0, 3600.0))
    Clocks.of_the_environment().move(**draw.choice(({"set_s": far}, {"set_s": -far}, {"asleep_s": far})))


Choice = tuple[Callable[[int, random.Random], None], int]
"""Fault with its relative frequency."""
FAULTS: tuple[Choice, ...] = (
    (kill_process, 5),
    (stop_process, 2),
    (fill_disk, 2),
    (exhaust_descriptors, 2),
    (request_end, 1),
    (set_clock, 1),
)
STOPS: tuple[Choice, ...] = ((stop_process_for_long, 1),)
OF_THE_RUN = (request_end, set_clock)
"""Faults of the whole run instead of one process."""


def inject_fault(
    command: Command, draw: random.Random, lasts_s: float, faults: tuple[Choice, ...] = FAULTS
) -> InjectedFault | None:
    """Wait for the time and apply the fault; return None if the run was over before, or the victim gone."""
    moment = draw.uniform(0.0, lasts_s)
    fault = draw.choices([each for each, _ in faults], [often for _, often in faults])[0]
    began = time.monotonic()
    while time.monotonic() < began + moment:
        if command.process.poll() is not None:
            return None
        time.sleep(0.01)
    processes = run_processes(command)
    if command.process.pid not in processes:
        return None
    victim = command.process.pid
    if fault not in OF_THE_RUN:
        # By name and not by number, so that a seed always means the same.
        victim = draw.choice(sorted(processes, key=lambda pid: (processes[pid].replace(str(command.folder), ""), pid)))
    try:
        fault(victim, draw)
    except ProcessLookupError:
        return None
    main = victim == command.process.pid
    words = processes[victim].removeprefix(" ".join(QOSLAB)).split()
    return InjectedFault(fault.__name__, " ".join(words[:6]), main, time.monotonic() - began)
