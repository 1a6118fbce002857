"""Process with the imports of `qoslab`, which forks a `qoslab` process for each command.

    python fork_server.py DESCRIPTOR QOSLAB PADDING

DESCRIPTOR is one end of a pair of SOCK_SEQPACKET sockets, QOSLAB the installed program. A request is a packet
`{"arguments": […], "folder": "…", "environment": {…}}` with four descriptors: standard input, output, error, and a
socket for the process's number and, in a second packet, its exit status in the form of `subprocess`. PADDING reserves
room for the command line of the forked process, as the variable PADDING does for its environment.

A forked process differs from a started `qoslab` only in properties that no test uses: its parent, the hashes of strings
and the loaded modules.
"""

from __future__ import annotations

import array
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import select
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

MODULES = (
    "qoslab.cli.run",
    "qoslab.analysis",
    "qoslab.report",
    "qoslab.cli.result_table",
    "qoslab.run.runner",
    "qoslab.run.devices.pushed_routers",
    "qoslab.run.workers.external.worker",
    "qoslab.run.workers.simulated",
    "qoslab.run.workers.virtual.worker",
    "qoslab.simulation.show_answers",
    "ansible_runner",
    "pyarrow.parquet",
)
"""Modules imported before the start of each command."""
PACKET_LIMIT = 1 << 18
STREAMS = 3


@dataclass(frozen=True)
class Job:
    """Command to run in a forked process."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]
    descriptors: list[int]
    """Descriptors of the standard streams."""
    channel: socket.socket
    """Socket for its number and its exit status."""


def serve(control: socket.socket) -> Job | None:
    """Fork for each request; return a job in the forked process, None in this process when the last client has gone."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    running: dict[int, tuple[int, socket.socket]] = {}
    """Number of each process and the socket for its end, by the descriptor of the process."""
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != control.fileno():
                poll.unregister(descriptor)
                pid, reported = running.pop(descriptor)
                os.close(descriptor)
                _send(reported, {"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])})
                reported.close()
                continue
            packet, received = _receive(control)
            if not packet:
                return None
            reported = socket.socket(fileno=received.pop())
            with warnings.catch_warnings(action="ignore"):
                pid = os.fork()
            if not pid:
                # The other process must contain nothing of this one.
                for each, (_, other) in running.items():
                    os.close(each)
                    other.close()
                control.close()
                return Job(**json.loads(packet), descriptors=received, channel=reported)
            for each in received:
                os.close(each)
            process = os.pidfd_open(pid)
            running[process] = pid, reported
            poll.register(process, select.POLLIN)


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    received = array.array("i")
    room = socket.CMSG_SPACE((STREAMS + 1) * received.itemsize)
    packet, ancillary, _, _ = control.recvmsg(PACKET_LIMIT, room, socket.MSG_CMSG_CLOEXEC)
    for _, _, data in ancillary:
        received.frombytes(data)
    return packet, received.tolist()


def _send(channel: socket.socket, message: Mapping[str, Any]) -> None:
    try:
        channel.send(json.dumps(message).encode())
    except OSError:
        # The requester has gone.
        return


def run_job(job: Job, program: str, added: Mapping[str, str]) -> None:
    """Take on the folder, streams, session, environment and names of a process that was started for the job.

    `added` are the variables that imports have set.
    """
    os.setsid()
    for stream, descriptor in enumerate(job.descriptors):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    os.chdir(job.folder)
    os.environ.clear()
    os.environ.update({**added, **job.environment})
    time.tzset()
    tempfile.tempdir = None
    sys.argv = [program, *job.arguments]
    line = [sys.executable, *sys.argv]
    # The kernel reads the command line and the environment from these addresses (first lines of `proc_pid_stat(5)`).
    places = [int(each) for each in Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:49]]
    _replace_process_state(places[0], places[1], line)
    _replace_process_state(places[2], places[3], [f"{name}={value}" for name, value in job.environment.items()])
    Path("/proc/self/comm").write_text(Path(program).name)
    for stream, name in enumerate(("stdin", "stdout", "stderr")):
        file = _copy_stream(stream, name, getattr(sys, name))
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)
    _send(job.channel, {"pid": os.getpid()})
    job.channel.close()


def _copy_stream(descriptor: int, name: str, before: io.TextIOWrapper) -> TextIO:
    """Return a standard stream like Python makes it at its start; `before` is the current one."""
    at_once = before.write_through
    kind, buffering = ("r", -1) if name == "stdin" else ("w", 0 if at_once else -1)
    raw = open(descriptor, f"{kind}b", buffering=buffering, closefd=False)  # noqa: SIM115 (as long as the process)
    (raw if buffering == 0 else raw.raw).name = f"<{name}>"  # type: ignore[union-attr]
    by_lines = not at_once and (raw.isatty() or name == "stderr")
    file = io.TextIOWrapper(raw, before.encoding, before.errors, "\n", by_lines, at_once)
    file.mode = kind  # type: ignore[misc]
    return file


def _replace_process_state(start: int, end: int, texts: list[str]) -> None:
    data = b"".join(os.fsencode(text) + b"\0" for text in texts)
    assert len(data) <= end - start, f"no room for {len(data)} bytes"
    ctypes.memmove(start, data.ljust(end - start, b"\0"), end - start)


def main() -> None:
    """Import, serve, and run the program in each forked process."""
    control, program = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    control.set_inheritable(False)
    sys.path[0] = str(Path(program).parent)
    before = dict(os.environ)
    for module in MODULES:
        importlib.import_module(module)
    # A command sets them too during its imports, and its child processes inherit them.
    added = {name: value for name, value in os.environ.items() if name not in before}
    assert threading.active_count() == 1, "a fork would have this thread alone"
    assert tempfile.tempdir is None, "this process's folder is not the commands'"
    gc.collect()
    gc.freeze()
    job = serve(control)
    if job is not None:
        run_job(job, program, added)
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
