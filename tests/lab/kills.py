"""Runs in a real lab that are killed, or cut off from hosts or routers, at a time drawn from a seed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from commands import Command, run, wait_until_no_process_remains
from test_external import CLEAN_S, agents_folders, programs, settings
from test_iosd import session
from test_run import EXPERIMENT

from qoslab.run.devices.ansible_inventory import read_lab
from qoslab.run.real.access.rollback_methods import COPY
from qoslab.run.real.channel import AgentChannel
from qoslab.schema import load_sweep
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from verdicts import newest_run, status_of
from waiting import wait_until

MODEL = {"R1.model": "2811"}
"""Router model with flash for the copy of an applet."""
ARGUMENTS = ("--duration", "4s", "--arm", "policed", "--attempts", "1", "--set", "R1.model=2811")
SUSPENDED_S = 6.0
"""Time of a suspend, longer than the agents' timeout."""
MAX_TRIES = 3
"""Attempts to hit a run before its end."""
HOSTS = ("client", "server")
GUARDS: tuple[tuple[str, int], ...] = (("archive", 2), ("eem", 1), ("none", 1))
"""Rollback methods of the router, each with its relative frequency."""
PATIENT = 0.3
"""Share of the runs with a rollback timer that are left alone until it expires."""
COUNTS_S = 60.0
"""Rollback timer of the router: a minute is the minimum."""
LATE_S = 60.0
"""Allowed delay on a busy machine."""
WAITING = ("show archive config rollback timer", "show event manager policy registered")
"""Commands that show active timers."""


@dataclass(frozen=True)
class RealLab:
    """Lab as seen from outside, with its original state before the first run."""

    lab: Lab
    inventory: Path
    hosts: dict[str, str]
    router: list[str]
    waiting: str
    """Output of the router without an active timer."""
    lasts_s: float
    """Duration of an undisturbed run."""

    def shown(self, *hosts: str) -> dict[str, str]:
        """Return the settings that a run may change on these hosts, or on all."""
        return {host: settings(self.lab, host) for host in hosts or HOSTS}

    def left(self, *hosts: str) -> list[str]:
        """Return the remains of agents on these hosts, or on all; each other host may have one folder."""
        folders = agents_folders(self.lab)
        return folders if len(folders) > len(HOSTS) - len(hosts or HOSTS) else []

    def running(self, *hosts: str) -> list[str]:
        """Return the processes on these hosts, or on all, also those without a known parent."""
        others = {f"net:[{self._namespace(host)}]" for host in set(HOSTS) - set(hosts or HOSTS)}
        return [words for pid, words in programs(self.lab).items() if not others & set(_namespaces(pid))]

    def _namespace(self, host: str) -> int:
        return Path(f"/proc/{self.lab.pid}/fd/{self.lab.handle(host)}").stat().st_ino

    def configured(self) -> list[str]:
        """Return the configuration that a run may change on the router, without free flash and active timers."""
        commands = ("show running-config", "show startup-config", "dir", "show reload")
        lines = session(self.lab, "terminal length 0", *commands).splitlines()
        files = [re.sub(r"^ +\d+  -rw-.* ", "file ", line) for line in lines]
        return [line for line in files if "bytes free" not in line and line != "No files in directory"]

    def counting(self) -> str:
        """Return the active timers of the router."""
        return session(self.lab, *WAITING)

    def guarded(self, guard: str) -> RealLab:
        """Return the same lab with an inventory in which the router has this rollback method, with a timer of a
        minute.
        """
        inventory = self.inventory.with_stem(guard)
        text, found = re.subn(
            r"^( +)qoslab_rollback: none$",
            rf"\1qoslab_rollback: {guard}\n\1qoslab_rollback_margin: 10 s",
            self.inventory.read_text(),
            flags=re.MULTILINE,
        )
        assert found == 1
        inventory.write_text(text)
        return replace(self, inventory=inventory)

    def wait_until_clean(self, since: float, *hosts: str) -> float:
        """Wait until these hosts, or all, are restored, and return the time; fail if it takes too long."""
        wanted = {host: self.hosts[host] for host in hosts or HOSTS}
        wait_until(
            lambda: not self.running(*hosts) and not self.left(*hosts) and self.shown(*hosts) == wanted,
            "hosts are as they were",
            CLEAN_S,
            lambda: str((self.running(*hosts), self.left(*hosts), self.shown(*hosts), wanted)),
        )
        return time.monotonic() - since

    def held(self) -> dict[str, str]:
        """Return the locked interfaces of hosts."""
        found = {}
        for host in HOSTS:
            channel = AgentChannel(host, read_lab(self.inventory).hosts[host], "a test")
            try:
                found |= {f"{host} {name}": who for name, who in channel.ask("held", devices=["eth0"])["held"].items()}
            finally:
                channel.close()
        return found


@contextmanager
def start_real_lab(name: str, folder: Path) -> Iterator[RealLab]:
    """Return a lab with an inventory in `folder`, after one finished run; other tests have other labs."""
    inventory = folder / "rack.yml"
    with tempfile.TemporaryDirectory(prefix="k", dir="/tmp") as temporary:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", temporary)
            patch.delenv("QOSLAB_TEST_FOLDER", raising=False)
            lab = Lab.up(load_sweep(EXPERIMENT, MODEL).experiment.topology, name=name)
        with lab:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("TMPDIR", temporary)
                expose_lab(lab, inventory)
            session(lab, "configure terminal", "archive", " path flash:kept", "end")
            empty = RealLab(lab, inventory, {}, [], "", 0.0)
            made = replace(empty, hosts=empty.shown(), router=empty.configured(), waiting=empty.counting())
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("XDG_STATE_HOME", str(folder / "state"))
                began = time.monotonic()
                status, output, errors = run(folder, "run", str(EXPERIMENT), "--lab", str(inventory), *ARGUMENTS)
                took = time.monotonic() - began
            assert status == status_of(newest_run(folder)), errors + output
            made.wait_until_clean(time.monotonic())
            yield replace(made, lasts_s=took)


def run_processes(command: Command, words: tuple[str, ...]) -> list[int]:
    """Return the processes of a run that were started with these words."""
    mark = f"QOSLAB_TEST_FOLDER={command.folder}".encode()
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                line = (process / "cmdline").read_bytes().split(b"\0")
                if all(word.encode() in line for word in words):
                    found.append(int(process.name))
        except OSError:
            continue
    return sorted(found)


def _namespaces(pid: int) -> Iterator[str]:
    """Return the network namespaces of a process and of its ancestors."""
    with suppress(OSError):
        while pid > 1:
            yield str(Path(f"/proc/{pid}/ns/net").readlink())
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_the_run(command: Command, made: RealLab, draw: random.Random) -> float:
    """Kill the run with SIGKILL."""
    command.process.kill()
    return made.wait_until_clean(time.monotonic())


def suspend_the_run(command: Command, made: RealLab, draw: random.Random) -> float:
    """Suspend the run like a closed lid; the hosts receive nothing during that time."""
    running = [command.process.pid, *run_processes(command, ("ssh",))]
    for pid in running:
        _signal(pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        took = made.wait_until_clean(began)
        time.sleep(max(0.0, began + SUSPENDED_S - time.monotonic()))
    finally:
        for pid in running:
            _signal(pid, signal.SIGCONT)
    return took


def disconnect_host(command: Command, made: RealLab, draw: random.Random) -> float:
    """Cut the connection of one host. The other is left after the end of the run."""
    host = draw.choice(HOSTS)
    port = str(read_lab(made.inventory).hosts[host].port)
    for pid in run_processes(command, ("ssh", port)):
        _signal(pid, signal.SIGKILL)
    return made.wait_until_clean(time.monotonic(), host)


def disconnect_routers(command: Command, made: RealLab, draw: random.Random) -> float:
    """Return whether all logins have ended and none is new."""
    for pid in run_processes(command, ("qoslab.run.real.access.proxy_process",)):
        _signal(pid, signal.SIGKILL)
    return made.wait_until_clean(time.monotonic())


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


Disruption = Callable[[Command, RealLab, random.Random], float]
DISRUPTIONS: tuple[tuple[Disruption, int], ...] = (
    (kill_the_run, 4),
    (disconnect_host, 2),
    (disconnect_routers, 2),
    (suspend_the_run, 1),
)
"""Faults, each with its relative frequency. They return how long the hosts took until they were restored."""


def draw_cut(draw: random.Random) -> tuple[Disruption, str]:
    """Return the fault and the rollback method: the first ones drawn from a seed."""
    cut = draw.choices([each for each, _ in DISRUPTIONS], [often for _, often in DISRUPTIONS])[0]
    return cut, draw.choices([each for each, _ in GUARDS], [often for _, often in GUARDS])[0]


def run_trial(seed: int, made: RealLab, clean: Path, cut: Disruption | None = None, guard: str = "") -> str:
    """Run once with a fault, by default a drawn fault and rollback method; return a description.

    Fails if something is left or changed.
    """
    draw = random.Random(seed)
    drawn_cut, drawn_guard = draw_cut(draw)
    cut, guard = cut or drawn_cut, guard or drawn_guard
    patient = guard != "none" and draw.random() < PATIENT
    made = made.guarded(guard)
    made.wait_until_clean(time.monotonic())
    command, moment = wait_until_begun(made, clean, draw)
    try:
        took = cut(command, made, draw)
        status, output, errors = command.end()
    except AssertionError as error:
        command.process.kill()
        _, output, errors = command.end()
        raise AssertionError(f"{error}\n{output}\n{errors}") from error
    finally:
        # If this trial fails, its run must not disturb the next one.
        command.process.kill()
    printed = f"\n{output}\n{errors}"
    assert status in ((-signal.SIGKILL,) if cut is kill_the_run else (0, 1, 2, 3)), printed
    made.wait_until_clean(time.monotonic())
    assert "Traceback" not in printed, printed
    assert made.held() == {}
    alone = f", alone for {_wait_until_restored(made, printed):.0f} s" if patient else ""
    _run_rescue(made, clean, printed)
    return f"{cut.__name__} after {moment:.2f} s ({guard}), hosts clean {took:.2f} s later{alone}"


def wait_until_begun(made: RealLab, clean: Path, draw: random.Random) -> tuple[Command, float]:
    """Return a run, and interrupt it at a random time; if it was over before, retry with an earlier time."""
    moment = draw.uniform(0.0, made.lasts_s)
    for _ in range(MAX_TRIES):
        command = Command(clean, "run", str(EXPERIMENT), "--lab", str(made.inventory), *ARGUMENTS)
        try:
            command.process.wait(moment)
        except subprocess.TimeoutExpired:
            return command, moment
        status, output, errors = command.end()
        assert status == status_of(newest_run(clean)), errors + output
        moment /= 2
    raise AssertionError(f"no run was under way after {2 * moment:.2f} s, although one took {made.lasts_s:.2f} s")


def _wait_until_restored(made: RealLab, message: str) -> float:
    """Check that the router restores itself, except for the copy of an applet; return the time."""
    began = time.monotonic()
    wait_until(
        lambda: made.counting() == made.waiting,
        "the router has restored itself",
        COUNTS_S + LATE_S,
        lambda: f"{made.counting()}{message}",
        step_s=1.0,
    )
    took = time.monotonic() - began
    copied = f"file {COPY.removeprefix('flash:')}"
    left = made.configured()
    assert [line for line in left if line != copied] == [line for line in made.router if line != copied], message
    return took


def _run_rescue(made: RealLab, clean: Path, message: str) -> None:
    status, output, errors = run(clean, "lab", "rescue", str(made.inventory))
    assert status == 0, (errors + output, message)
    assert "another user changed" not in errors, (errors, message)
    assert (made.configured(), made.counting()) == (made.router, made.waiting), message
    assert (made.shown(), made.left()) == (made.hosts, [])
    assert [str(each) for each in (clean / "state").rglob("*") if each.is_file()] == []
    wait_until_no_process_remains(clean)
