"""Cleanup after a session of Ansible.

Run as `python -m qoslab.run.devices.ansible.leftovers FOLDER`, it waits for the end of its standard input, which is a
pipe from the owner of the session: if that process is killed, the session would wait for orders for ever.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

CONNECTIONS = "pc"
"""Folder in the session's folder, with a socket for each process that holds a connection to a router."""
CONNECTION_PROCESS = b"ansible_connection_cli_stub"
"""Pattern in the command line of such a process."""
GRACE_S = 1.0
"""Time for connections to log out of their routers."""


def session_processes(scratch: Path) -> list[int]:
    """Return the processes of the session with the folder `scratch`.

    All of them have that folder in their environment: ansible-playbook, its workers in the middle of a task, the
    processes that hold connections to routers. The latter two have their own process groups.
    """
    mark = os.fsencode(scratch)
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            # It has just ended, or belongs to another user.
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes():
                    found.append(int(process.name))
    return found


def end_connections(scratch: Path) -> None:
    """End the processes that hold connections to routers, and remove their sockets."""
    _end(lambda: [process for process in session_processes(scratch) if _is_connection_process(process)])
    for socket in (scratch / CONNECTIONS).glob("*"):
        with contextlib.suppress(OSError):
            socket.unlink()


def _is_connection_process(process: int) -> bool:
    try:
        return CONNECTION_PROCESS in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def end_processes(scratch: Path) -> None:
    """End all processes of the session."""
    _end(lambda: session_processes(scratch))


def end(scratch: Path) -> None:
    """End the session's processes and remove its folder."""
    end_processes(scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def _end(find: Callable[[], list[int]]) -> None:
    deadline = time.monotonic() + GRACE_S
    signalled = set[int]()
    while remaining := find():
        late = time.monotonic() > deadline
        for process in remaining:
            if late or process not in signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL if late else signal.SIGTERM)
                signalled.add(process)
        time.sleep(0.01)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end(Path(sys.argv[1]))
