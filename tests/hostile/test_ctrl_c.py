"""One Ctrl-C ends any wait within five seconds, and leaves no process and no temporary file."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import threading
import time
import unittest.mock
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import corpus_runs
import pytest
from commands import Command, temporary_folder, wait_until_no_process_remains

from processor import processor_slowness
from qoslab.results.progress import PROGRESS
from qoslab.results.sealed_files import add_seal

EXPERIMENT = Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml"
ENDS_S = 5.0
INTERRUPTED = 130
RUN = ("run", str(EXPERIMENT), "--duration", "60s", "--arm", "policed", "--lab")
SIMULATED = ("run", str(EXPERIMENT), "--arm", "policed", "--lab", "simulated", "--duration")
INVENTORY = """\
all:
  vars: {{qoslab_known_hosts: keys, ansible_user: lab}}
  children:
    ios:
      hosts:
        R1: {{ansible_host: 127.0.0.1, ansible_port: {port}, qoslab_reach: telnet, ansible_password: secretsecret}}
    host:
      vars: {{qoslab_isolate: namespace}}
      hosts:
        client: {{ansible_host: 127.0.0.2, ansible_port: {port}, qoslab_interfaces: {{eth0: enp3s0f1}}}}
        server: {{ansible_host: 127.0.0.3, ansible_port: {port}, qoslab_interfaces: {{eth0: enp3s0f2}}}}
"""


@contextlib.contextmanager
def silent_devices_inventory(folder: Path) -> Iterator[None]:
    """Write an inventory of devices that take connections and never answer."""
    with socket.create_server(("", 0)) as server:
        taken = []

        def take() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(server.accept()[0])

        threading.Thread(target=take, daemon=True).start()
        (folder / "inventory.yml").write_text(INVENTORY.format(port=server.getsockname()[1]))
        (folder / "keys").write_text("")
        yield
        server.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def copy_unfinished_run(folder: Path) -> Iterator[None]:
    """Copy a run that is not in progress."""
    shutil.copytree(corpus_runs.whole_run(), folder / "run")
    (folder / "run/run.json").write_bytes(add_seal(corpus_runs.requested_run().encode()))
    (folder / "run" / PROGRESS).write_text("")
    yield


@contextlib.contextmanager
def table(folder: Path) -> Iterator[None]:
    """Write a table that takes seconds to import."""
    rows = b"".join(b"%d,1,2,3,4,5,6,7,8\n" % number for number in range(1, 60_000))
    (folder / "a.csv").write_bytes(b"time_s," + b",".join(b"c%d_kbps" % number for number in range(8)) + b"\n" + rows)
    yield


@contextlib.contextmanager
def add_silent_tool(folder: Path) -> Iterator[None]:
    """Put a tool in the path that never prints its version."""
    (folder / "bin").mkdir()
    (folder / "bin/tshark").write_text("#!/bin/sh\nexec sleep 600\n")
    (folder / "bin/tshark").chmod(0o755)
    with unittest.mock.patch.dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}"):
        yield


@contextlib.contextmanager
def prepare_empty_folder(folder: Path) -> Iterator[None]:
    """Prepare an empty folder."""
    yield


@dataclass(frozen=True)
class WaitCase:
    """A command that waits or works for longer than the test."""

    words: tuple[str, ...]
    prepare: Callable[[Path], contextlib.AbstractContextManager[None]] = prepare_empty_folder
    output: str = ""
    """Regular expression of a line on standard error that comes before the wait."""
    after_s: float = 1.0
    """Seconds from that line, or from the start, to Ctrl-C."""
    then: str = ""
    """Text of a line after Ctrl-C that announces further work; then Ctrl-C is pressed again."""


WAITS: dict[str, WaitCase] = {
    "start": WaitCase(("list",), after_s=0.05),
    "devices that never answer": WaitCase(
        ("lab", "check", "inventory.yml", str(EXPERIMENT)), silent_devices_inventory, after_s=10.0
    ),
    "run on devices that never answer": WaitCase((*RUN, "inventory.yml"), silent_devices_inventory, after_s=10.0),
    "tool that prints no version": WaitCase((*RUN, "virtual"), add_silent_tool, after_s=6.0),
    "unfinished run": WaitCase(("watch", "run"), copy_unfinished_run, after_s=2.0),
    "large table": WaitCase(("import", "a.csv", "--to", "made"), table, after_s=1.5),
    "simulated run": WaitCase((*SIMULATED, "36000s"), after_s=3.0),
    "simulated run with results": WaitCase(
        (*SIMULATED, "60s", "--repetitions", "99"),
        output="of 99 cells",
        then="writing the report of the measured cells",
    ),
    "lab that starts": WaitCase((*RUN, "virtual"), output="lab up", after_s=0.0),
    "push to a virtual router": WaitCase((*RUN, "virtual"), output="configure the routers", after_s=0.0),
    "traffic in the virtual lab": WaitCase((*RUN, "virtual"), output="traffic", after_s=3.0),
}


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    temporary = temporary_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield tmp_path
    shutil.rmtree(temporary, ignore_errors=True)


def crowded_machine() -> float:
    """Return the factor by which a command is slower than on an idle machine: others use the same cores."""
    # With one other process for each core, each process gets half of a core.
    return max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1)) * processor_slowness()


@pytest.mark.lab
@pytest.mark.long
@pytest.mark.parametrize("name", WAITS)
def test_single_ctrl_c_ends_any_wait(clean: Path, name: str) -> None:
    wait = WAITS[name]
    with wait.prepare(clean):
        command = Command(clean, *wait.words, started=True)
        try:
            if wait.output:
                command.wait_for(wait.output)
            time.sleep(wait.after_s)
            assert command.process.poll() is None or name == "start", command.end()
            began = time.monotonic()
            os.kill(command.process.pid, signal.SIGINT)
            if wait.then:
                command.wait_for(wait.then)
                assert time.monotonic() - began < ENDS_S * crowded_machine(), command.stderr
                began = time.monotonic()
                os.kill(command.process.pid, signal.SIGINT)
            status, output, errors = command.end()
            took = time.monotonic() - began
        finally:
            command.process.kill()
        assert status in (INTERRUPTED, -signal.SIGINT) or (name == "start" and status == 0), errors + output
        assert not re.search("Traceback|defect of qoslab", errors), errors
        assert took < ENDS_S * crowded_machine(), f"{took:.1f} s: {errors}"
        wait_until_no_process_remains(clean)
