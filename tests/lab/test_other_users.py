"""Listeners of a run that another user of the machine can reach: none."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Command
from test_simulated import FLOOD, wait_for_simulator
from test_sweep import manifest

from experiment_files import experiment_file
from process_alive import is_alive
from waiting import wait_until

pytestmark = pytest.mark.lab

LISTENING = "0A"
"""State of a TCP socket in /proc/net/tcp."""


def family(pid: int) -> Iterator[int]:
    """Return a process and all its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def sockets(pid: int) -> set[str]:
    """Return the inode numbers of a process's sockets."""
    found = set()
    for each in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            name = str(each.readlink())
        except OSError:
            continue
        if name.startswith("socket:["):
            found.add(name.removeprefix("socket:[").removesuffix("]"))
    return found


def open_sockets(pids: set[int]) -> list[str]:
    """Return the listening TCP sockets and named sockets of these processes that other users can connect to."""
    mine = {inode for pid in pids for inode in sockets(pid)}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in mine:
                found.append(f"{table} {fields[1]}")
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[6] in mine and len(fields) > 7 and reachable(fields[7]):
            found.append(f"unix {fields[7]}")
    return found


def reachable(name: str) -> bool:
    """Return whether other users can reach a socket of that name."""
    if name.startswith("@"):
        return True
    return all(stat.S_IMODE(folder.stat().st_mode) & stat.S_IXOTH for folder in Path(name).parents)


@pytest.mark.parametrize(
    "workers", [pytest.param((), marks=pytest.mark.long), ("--scheduler", "local")], ids=["threads", "processes"]
)
def test_simulated_run_opens_no_listening_socket(clean: Path, workers: tuple[str, ...]) -> None:
    file = experiment_file(clean, "grid.yml", FLOOD)
    command = Command(clean, "run", str(file), "--lab", "simulated", "--duration", "100s", "--jobs", "2", *workers)
    try:
        worker = wait_for_simulator(command)
        pids = set(family(command.process.pid))
        assert worker in pids and (worker != command.process.pid) == bool(workers)
        assert len(pids) >= 2 + bool(workers), "the run, a worker, a simulator"
        assert open_sockets(pids) == []
    finally:
        os.kill(command.process.pid, signal.SIGINT)
        status, _, errors = command.end()
    assert status == 130, errors
    assert manifest(clean)["cells"]
    # A worker ends after one request, and its parent then reaps its processes.
    wait_until(lambda: not any(map(is_alive, pids)), "all processes of the run have ended")
