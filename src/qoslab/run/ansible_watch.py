"""Ends what a session of Ansible leaves behind.

Run as `python -m qoslab.run.ansible_watch FOLDER` it waits for the end of its standard input, which is a pipe from the
session's owner: if that process is killed, the session would wait for orders for ever.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

GRACE_S = 1.0
"""For connections to say goodbye to their routers."""


def processes(scratch: Path) -> list[int]:
    """The processes of the session whose own folder is `scratch`.

    All of them have that folder in their environment: ansible-playbook, its workers in the middle of a task, the
    processes that hold connections to routers. The latter two are process groups of their own.
    """
    mark = os.fsencode(scratch)
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            # gone meanwhile, or somebody else's
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes():
                    found.append(int(process.name))
    return found


def end(scratch: Path) -> None:
    """End the session's processes and remove its folder."""
    deadline = time.monotonic() + GRACE_S
    signalled = set[int]()
    while remaining := processes(scratch):
        late = time.monotonic() > deadline
        for process in remaining:
            if late or process not in signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL if late else signal.SIGTERM)
                signalled.add(process)
        time.sleep(0.01)
    shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end(Path(sys.argv[1]))
