"""`qoslab` as a process: start it, watch it, interrupt it, and check for remains."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from forked import ForkedProcess, fork_server

from qoslab.virtual_lab import Lab
from waiting import wait_until

QOSLAB = [str(Path(sys.executable).with_name("qoslab"))]
RUN_S = 600.0
"""Longer than any run here takes on a busy machine."""


class Command:
    """Running `qoslab` process."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        prefix: tuple[str, ...] = (),
        terminal: int | None = None,
        started: bool = False,
    ) -> None:
        """Start the command; `terminal` is the descriptor of its controlling terminal.

        It is forked from a process with preloaded modules, unless it has `prefix`, `terminal` or `started`.
        """
        self.folder = folder
        self.stderr = ""
        self.process: ForkedProcess | subprocess.Popen[str]
        if not (started or prefix or terminal is not None):
            self.process = fork_server(*QOSLAB).start(folder, arguments)
            return
        stdin, output = (subprocess.DEVNULL, subprocess.PIPE) if terminal is None else (terminal, terminal)
        # The first terminal that a session leader opens becomes its controlling terminal.
        own = () if terminal is None else ("sh", "-c", f': <>{os.ttyname(terminal)}; exec "$@"', "sh")
        self.process = subprocess.Popen(
            [*own, *prefix, *QOSLAB, *arguments],
            cwd=folder,
            text=True,
            start_new_session=True,
            stdin=stdin,
            stdout=output,
            stderr=output,
        )

    def wait_for(self, text: str) -> None:
        """Read standard error up to a line with `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line
            if text in line:
                return
        raise AssertionError(f"{text!r} was never said:\n{self.stderr}")

    def end(self) -> tuple[int, str, str]:
        """Return exit status, standard output and standard error."""
        try:
            output, errors = self.process.communicate(timeout=RUN_S)
        except subprocess.TimeoutExpired:
            # Nothing is left that could disturb other tests.
            self.process.kill()
            raise
        return self.process.returncode, output, self.stderr + errors

    def labs(self) -> list[Lab]:
        """Return the labs of this run."""
        return [lab for lab in Lab.running_labs() if f"-{self.process.pid}-" in lab.name]


def run(folder: Path, *arguments: str, started: bool = False) -> tuple[int, str, str]:
    """Run `qoslab` to its end; `started` as in `Command`."""
    return Command(folder, *arguments, started=started).end()


def temporary_folder(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Create the folder `tmp` in `folder` for temporary files of commands there; the environment names both from now
    on.

    Its path is short enough for sockets, so that no file goes elsewhere.
    """
    temporary = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
    patch.setenv("TMPDIR", str(temporary))
    patch.setenv("QOSLAB_TEST_FOLDER", str(folder))
    (folder / "tmp").symlink_to(temporary)
    return temporary


def processes(folder: Path) -> list[str]:
    """Return the processes with this test's environment, except the test itself."""
    mark = f"QOSLAB_TEST_FOLDER={folder}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (OSError, ValueError):
            continue
    return [command for command in found if command]


def wait_until_no_process_remains(folder: Path) -> None:
    """Wait until all processes of a killed run have ended and its temporary files are gone."""

    def left() -> list[str]:
        return [*processes(folder), *map(str, (folder / "tmp").rglob("*"))]

    wait_until(lambda: not left(), "nothing of the run is left", report=lambda: str(left()))
