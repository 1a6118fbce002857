"""Server that runs one `qoslab` command at a time in a forked child with limits, and reports how it ended.

    python sandbox.py

A request is a line of JSON on standard input: `words`, `folder`, `temporary`, `home`. The answer is a line of JSON on
standard output with the fields of `harness.Ended`. The caller starts the server in network and mount namespaces in
which `/etc/resolv.conf` names 127.0.0.1: the server receives each DNS query and counts it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

MODULES = (
    "qoslab.cli.run",
    "qoslab.analysis",
    "qoslab.report",
    "qoslab.exchange.file_import",
    "qoslab.run.runner",
    "pyarrow.parquet",
)
"""Modules that are imported once, before the first fork."""
DEADLINE_S = 90.0
"""Wall-clock limit of a command, much longer than its limit of processor time: the machine may be busy."""
PROCESSOR_S = 60
ADDRESS_SPACE = 4 * 2**30
SIZE = 2**30
"""Limit of the size of a file."""


def name_queries() -> socket.socket:
    """Return the socket that receives DNS queries."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    server.setblocking(False)
    return server


def queries(server: socket.socket) -> int:
    """Return the number of queries since the last call."""
    number = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            server.recv(4096)
            number += 1
    return number


def become_sandboxed(request: dict[str, Any]) -> None:
    """Turn this forked child into the command of a request."""
    os.setsid()
    folder = Path(request["temporary"]).parent
    for number, name in ((0, os.devnull), (1, str(folder / "stdout")), (2, str(folder / "stderr"))):
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ["TMPDIR"] = request["temporary"]
    os.environ["HOME"] = request["home"]
    os.environ["COLUMNS"] = "400"
    tempfile.tempdir = None
    for kind, limit in (
        (resource.RLIMIT_CPU, PROCESSOR_S),
        (resource.RLIMIT_AS, ADDRESS_SPACE),
        (resource.RLIMIT_FSIZE, SIZE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    sys.argv = ["qoslab", *request["words"]]


def end_sandbox(pid: int, request: dict[str, Any]) -> dict[str, Any]:
    """Wait for the child, end it after the deadline, and return what happened."""
    began = time.monotonic()
    process = os.pidfd_open(pid)
    in_time = bool(select.select([process], [], [], DEADLINE_S)[0])
    os.close(process)
    if not in_time:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    took = time.monotonic() - began
    return {
        "status": os.waitstatus_to_exitcode(status) if in_time else None,
        "processor_s": usage.ru_utime + usage.ru_stime,
        "took_s": took,
        "peak_mib": usage.ru_maxrss / 1024,
        "left": session_processes(pid),
    }


def session_processes(pid: int) -> list[str]:
    """Return the processes of a session that still run, after ending them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == pid and fields[0] != "Z":
                found.append((entry / "cmdline").read_text().replace("\0", " "))
                os.kill(int(entry.name), signal.SIGKILL)
    return found


def main() -> None:
    """Import the modules, then fork for each request."""
    # The command must not read the sockets of pytest's workers.
    sys.path = [each for each in sys.path if each != str(Path(__file__).parent)]
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    server = name_queries()
    answers = os.fdopen(os.dup(1), "w")
    os.set_inheritable(answers.fileno(), False)
    for line in sys.stdin:
        request = json.loads(line)
        queries(server)
        with warnings.catch_warnings(action="ignore"):
            pid = os.fork()
        if not pid:
            server.close()
            become_sandboxed(request)
            from qoslab.__main__ import main as qoslab

            sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(n, "w"), "utf-8") for n in (1, 2))
            sys.exit(qoslab())
        answer = end_sandbox(pid, request) | {"queries": queries(server)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
