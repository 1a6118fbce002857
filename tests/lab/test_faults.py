"""Dead processes during a run, and a dead run: each is named correctly, and nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clocks import Clocks
from commands import RUN_S, Command, wait_until_no_process_remains
from labs import LabTraces, command_line, run_inside
from test_run import EXPERIMENT, latest
from test_simulated import simulators, wait_for_simulator

from process_alive import is_alive
from qoslab.virtual_lab import Lab
from verdicts import newest_run, status_of
from waiting import wait_until

pytestmark = pytest.mark.lab


def program(lab: Lab, word: str) -> int:
    """Return the process of a lab with these words in its command line."""
    for pid in run_inside(lab):
        if word in command_line(pid).replace(b"\0", b" ").decode():
            return pid
    raise AssertionError(f"no {word} in the lab")


VICTIMS: dict[str, tuple[Callable[[Lab], int], str]] = {
    "policed": (lambda lab: program(lab, "qos-router --lab"), "R1: its daemon was killed by SIGKILL"),
    "shaped": (lambda lab: program(lab, "qoslab.virtual_lab.iosd"), "iosd: its daemon was killed by SIGKILL"),
    "policed-cubic": (lambda lab: lab.pid, "its supervisor (process {}) was killed by SIGKILL"),
}
"""The killed process of each arm, and its message."""


@pytest.mark.long
def test_lab_that_dies_during_a_push_is_reported_as_dead(clean: Path) -> None:
    """Kill another process of the lab in each arm of a run; the next arm has a new lab."""
    arms = [f"--arm={arm}" for arm in VICTIMS]
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "2s", "--jobs", "1", *arms)
    killed = {}
    for arm, (victim, _) in VICTIMS.items():
        command.wait_for(f"{arm}/1: configure the routers")
        (lab,) = command.labs()
        killed[arm] = victim(lab)
        os.kill(killed[arm], signal.SIGKILL)
        lab.close()
    status, output, errors = command.end()
    assert status == 3, errors + output
    for arm, (_, text) in VICTIMS.items():
        cell = record(clean, f"{arm}/1")
        assert cell["fault"] and not cell["valid"]
        (reason,) = cell["reasons"]
        assert reason.startswith("the lab stopped:  " + text.format(killed[arm])), reason
        assert reason.endswith("(in the step: configure the routers)")
        assert reason in output
    assert "refused" not in errors and "Traceback" not in errors


def _find_client_in_lab(lab: Lab) -> int | None:
    words = {pid: command_line(pid).split(b"\0") for pid in run_inside(lab)}
    return next((pid for pid, each in words.items() if each[0] == b"iperf3" and b"--client" in each), None)


def find_client(command: Command) -> int:
    """Return the sending iperf3 of a run whose traffic has started."""
    command.wait_for(": traffic (")
    (lab,) = command.labs()
    try:
        return wait_until(lambda: _find_client_in_lab(lab), "the client's iperf3 runs")
    finally:
        lab.close()


@pytest.mark.long
def test_briefly_stopped_client_ends_in_time(clean: Path) -> None:
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "3s", "--arm", "unrestricted")
    client = find_client(command)
    os.kill(client, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(client, signal.SIGCONT)
    status, output, errors = command.end()
    assert status == status_of(newest_run(clean)), errors + output
    assert "Traceback" not in errors


@pytest.mark.long
def test_permanently_stopped_client_invalidates_its_cell_at_the_deadline(clean: Path) -> None:
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "2s", "--arm", "unrestricted", "--attempts", "1")
    os.kill(find_client(command), signal.SIGSTOP)
    status, output, errors = command.end()
    assert status == 3, errors + output
    # It was stopped before it connected, so its reason is another one than "not done".
    reasons = record(clean, "unrestricted/1")["reasons"]
    late = re.compile('iperf3 client, traffic "transfer": .* s after its start')
    assert any(late.fullmatch(each) for each in reasons), reasons


@pytest.mark.long
def test_ctrl_c_ends_a_run_with_a_stopped_client(clean: Path) -> None:
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "60s", "--arm", "unrestricted")
    client = find_client(command)
    (lab,) = command.labs()
    traces = LabTraces(lab)
    lab.close()
    os.kill(client, signal.SIGSTOP)
    os.kill(command.process.pid, signal.SIGINT)
    status, output, errors = command.end()
    assert status == 130, errors + output
    assert "Traceback" not in errors
    traces.wait_until_gone()


def helper(command: Command, word: str) -> int:
    """Return a process that a run has started outside its lab."""
    mark = f"QOSLAB_TEST_FOLDER={command.folder}".encode()
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != command.process.pid:
            try:
                if mark in (process / "environ").read_bytes() and word in (process / "cmdline").read_bytes().decode():
                    return int(process.name)
            except OSError:
                continue
    raise AssertionError(f"no {word}")


def test_dead_ansible_costs_one_attempt_and_dead_collector_none(clean: Path) -> None:
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "2s", "--arm", "policed", "--attempts", "2")
    command.wait_for("configure the routers")
    os.kill(helper(command, "session.yml"), signal.SIGKILL)
    # Only the traffic of the second attempt.
    command.wait_for(": traffic (")
    os.kill(helper(command, "collector_process"), signal.SIGKILL)
    status, output, errors = command.end()
    assert status == status_of(newest_run(clean)), errors + output
    first, second = (record(clean, f"policed/{each}") for each in ("1", "1.2"))
    assert first["fault"] and "ansible-playbook ended unexpectedly" in first["reasons"][0]
    assert "re-running it" in errors
    assert not second["fault"], second["reasons"]
    # Another collector read the router's output after the traffic.
    assert {each["moment"] for each in second["observed"]} >= {"before", "after"}


def record(folder: Path, cell: str) -> dict[str, Any]:
    """Return the record of a cell, or of one attempt."""
    text = (latest(folder) / f"cells/{cell}/cell.json").read_text()
    return dict(json.loads(text))


@pytest.mark.long
@pytest.mark.parametrize(
    ("moment", "number"),
    [("lab up", signal.SIGHUP), ("traffic", signal.SIGHUP)],
)
def test_signal_ends_a_run_like_ctrl_c(clean: Path, moment: str, number: signal.Signals) -> None:
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "4s", "--arm", "policed")
    command.wait_for(moment)
    os.kill(command.process.pid, number)
    status, output, errors = command.end()
    assert status == 130, errors + output
    assert "Traceback" not in errors
    assert "interrupted: restoring the routers" in errors


MOVED: dict[str, tuple[dict[str, float], str]] = {
    "policed": ({"asleep_s": 10.0}, "the machine was suspended for 10 s during the cell"),
    "shaped": ({"asleep_s": 10.0, "set_s": -3600.0}, "the machine's clock was stepped by -3.6e+06 ms during the cell"),
}
"""Change of the machine's clocks since the start of the run, by arm, and its message."""


@pytest.mark.long
def test_stepped_clock_invalidates_the_cell(
    clean: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks.made(tmp_path_factory.mktemp("clocks"))
    for name, value in clocks.environment.items():
        monkeypatch.setenv(name, value)
    arms = [f"--arm={arm}" for arm in MOVED]
    # A forked process already has the library's functions.
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "2s", "--jobs", "1", *arms, started=True)
    for arm, (moved, _) in MOVED.items():
        command.wait_for(f"{arm}/1: traffic (")
        clocks.move(**moved)
    status, output, errors = command.end()
    assert status == 3, errors + output
    assert "Traceback" not in errors
    for arm, (_, text) in MOVED.items():
        cell = record(clean, f"{arm}/1")
        reported = [each for each in cell["reasons"] if "within the cell" in each]
        assert not cell["valid"] and reported == [text], cell["reasons"]
        assert text in output


@pytest.mark.long
def test_cells_measured_before_a_fault_are_reported(clean: Path) -> None:
    arms = ("--arm", "unrestricted", "--arm", "policed")
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "2s", "--jobs", "1", *arms)
    command.wait_for("policed/1: configure the routers")
    os.kill(command.process.pid, signal.SIGTERM)
    status, output, errors = command.end()
    assert status == 130, errors + output
    assert "Traceback" not in errors
    assert "interrupted: restoring the routers" in errors
    cells = json.loads((newest_run(clean) / "manifest.json").read_text())["cells"]
    assert [bool(cell["folder"]) for cell in cells] == [True, False]
    assert "<html" in (newest_run(clean) / "report.html").read_text()[:500]


@pytest.mark.long
def test_closed_terminal_ends_a_run(clean: Path) -> None:
    ours, theirs = os.openpty()
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "20s", "--arm", "policed", terminal=theirs)
    os.close(theirs)
    shown = b""
    while b"traffic" not in shown:
        shown += os.read(ours, 4096)
    # The kernel sends SIGHUP, and any further output fails.
    os.close(ours)
    assert command.process.wait(RUN_S) == 130
    assert (newest_run(clean) / "manifest.json").exists()


@pytest.mark.long
@pytest.mark.parametrize("moment", ["configure the routers", "lab up", "traffic"])
def test_killed_run_leaves_no_password(clean: Path, moment: str) -> None:
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "20s", "--arm", "policed")
    command.wait_for(moment)
    command.process.kill()
    command.end()
    wait_until_no_process_remains(clean)


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("--scheduler", "local"), marks=pytest.mark.long)], ids=["threads", "processes"]
)
def test_killed_simulated_run_leaves_only_its_folder(clean: Path, workers: tuple[str, ...]) -> None:
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "60s", "--lab", "simulated", *workers)
    wait_for_simulator(command)
    command.process.kill()
    command.end()
    wait_until_no_process_remains(clean)


def test_simulator_ends_with_its_worker(clean: Path) -> None:
    command = Command(
        clean, "run", str(EXPERIMENT), "--duration", "3000s", "--lab", "simulated", "--scheduler", "local"
    )
    try:
        worker = wait_for_simulator(command)
        own = [pid for pid, parent in simulators(command.process.pid).items() if parent == worker]
        os.kill(worker, signal.SIGKILL)
        assert own
        wait_until(lambda: not any(map(is_alive, own)), "the simulators of a killed worker have ended")
    finally:
        command.process.send_signal(signal.SIGINT)
        command.end()
