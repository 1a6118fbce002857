"""Temporary folders of a run, which hold passwords of routers and are removed with their process.

A killed process cannot clean up. A small shell next to it waits for the end of a pipe and then removes the folder. If
the shell was killed too or the machine stopped, the next run removes it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from qoslab.errors import MachineError

PREFIX = "qoslab-"
OWNER_FILE = ".owner"
"""File in such a folder that names its owner."""

MAX_PARENT_PATH = 107 - 64
"""Greatest path length of the parent folder, in bytes: socket paths have 107 (unix(7)), of which up to 64 are ours."""

# `cat` succeeds when the process ends, and fails if it is killed. Child processes may continue to write for a short
# time, on a busy machine for seconds: a program that is just starting creates its folder again.
_REMOVE = 'until cat >/dev/null; do :; done; for pause in 0.2 1 2 3 0; do rm -rf -- "$0"; sleep $pause; done'


class Scratch:
    """Temporary folder accessible only to its owner; a context manager that removes it."""

    def __init__(self, name: str) -> None:
        """`name` is a part of the folder's name, for people."""
        remove_leftovers()
        self.path = own_temporary_folder(name)
        # In its own session: neither Ctrl-C nor the end of a terminal must reach it.
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _REMOVE, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder and its content."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._guard.kill()
        self._guard.wait()
        assert self._guard.stdin is not None
        self._guard.stdin.close()


def own_temporary_folder(name: str) -> Path:
    """Create a temporary folder of this process, with room for socket paths; `name` is a part of its name."""
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{name}-", dir=temporary_folder()))
    write_owner(folder)
    return folder


def temporary_folder() -> Path:
    """Return the temporary folder (`TMPDIR`); if its path is too long for sockets, the runtime folder or `/tmp`."""
    for candidate in (tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp", "/run"):
        if 0 < len(os.fsencode(candidate)) <= MAX_PARENT_PATH and os.access(candidate, os.W_OK | os.X_OK):
            return Path(candidate)
    raise MachineError(
        f"the temporary folder {tempfile.gettempdir()} has a path of more than {MAX_PARENT_PATH} bytes, "
        "too long for a socket, and neither XDG_RUNTIME_DIR nor /tmp is writable",
        hint="Set TMPDIR to a folder with a shorter path.",
    )


def write_owner(folder: Path) -> None:
    """Mark a temporary folder as owned by this process, so that it is removed after this process has ended."""
    (folder / OWNER_FILE).write_text(json.dumps(_process_identity(os.getpid())), encoding="utf-8")


def _process_identity(pid: int) -> dict[str, str | int]:
    """Return a unique identity of a process, also after a reboot; `OSError` if the process is gone."""
    # The name, in parentheses, may contain blanks: the 22nd field is counted after it.
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return {"pid": pid, "started": int(after_name[22 - 3]), "boot": boot, "pids": _pid_namespace()}


def _pid_namespace() -> str:
    """Return the PID namespace of this process."""
    return str(Path("/proc/self/ns/pid").readlink())


@functools.cache
def remove_leftovers() -> None:
    """Remove this user's folders without a living owner; once in a process."""
    for folder in itertools.chain.from_iterable(
        each.glob(f"{PREFIX}*") for each in {Path(tempfile.gettempdir()), temporary_folder()}
    ):
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            owner = json.loads((folder / OWNER_FILE).read_text(encoding="utf-8"))
            if not _is_owner_alive(owner):
                shutil.rmtree(folder, ignore_errors=True)


def _is_owner_alive(owner: dict[str, str | int]) -> bool:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    if owner["boot"] == boot and owner.get("pids", _pid_namespace()) != _pid_namespace():
        return True  # unknown here: its number means another process here, or none
    try:
        return _process_identity(int(owner["pid"])) == owner
    except OSError:
        return False
