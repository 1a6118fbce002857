"""Processes in the lab that are started from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from qoslab.virtual_lab.rights import bounding_prefix

CHILD_WAIT = 5.0
"""Seconds for nsenter to start its child, which takes about a millisecond."""
CHECK_INTERVAL_S = 0.1
"""Seconds between checks if nsenter must be continued, while waiting for its end."""


class LabProcess(subprocess.Popen[Any]):
    """`Popen` whose command runs inside the lab.

    The direct child is `nsenter`, which forks (only a new process can enter a PID namespace), waits, and ends with the
    status of its child. Signals go to the command itself and not to nsenter, which would die alone.

    nsenter stops itself when its child is stopped, and then does not notice the child's end. `poll` and `wait` continue
    it as soon as the child is no longer stopped.
    """

    def poll(self) -> int | None:
        """Return the exit status, None while the command runs."""
        status = super().poll()
        if status is None:
            self._continue_nsenter()
        return status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status; `subprocess.TimeoutExpired` after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = CHECK_INTERVAL_S if deadline is None else deadline - time.monotonic()
            try:
                return super().wait(max(0.0, min(CHECK_INTERVAL_S, left)))
            except subprocess.TimeoutExpired:
                if deadline is not None and left <= 0:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
                self._continue_nsenter()

    def send_signal(self, sig: int) -> None:
        """Send a signal to the command; do nothing if it has ended."""
        if self.poll() is not None:
            return
        command = self.command_pid()
        if command is not None:
            _send(command, sig, parent=self.pid)

    def terminate(self) -> None:
        """Send SIGTERM to the command, and SIGCONT, since a stopped process reacts to no other signal but SIGKILL."""
        self.send_signal(signal.SIGTERM)
        self.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL to the command and its descendants. nsenter ends by itself, after collecting the command."""
        if self.command_pid() is None:
            return
        with contextlib.ExitStack() as stack:
            # All are opened before the first is killed, since its children then get another parent.
            found = [_open_child(process, parent, stack) for parent, process in _descendant_pids(self.pid)]
            for each in found:
                if each is not None:
                    with contextlib.suppress(ProcessLookupError):
                        signal.pidfd_send_signal(each, signal.SIGKILL)

    def command_pid(self) -> int | None:
        """Process id of the command in the machine's numbering; None if it has ended."""
        deadline = time.monotonic() + CHILD_WAIT
        while self.poll() is None and time.monotonic() < deadline:
            if found := _child_pids(self.pid):
                return found[0]
            time.sleep(0.001)
        return None

    def _continue_nsenter(self) -> None:
        """Continue nsenter if it is stopped and its child is not."""
        with contextlib.suppress(ProcessLookupError):
            if _process_stat(self.pid)[0] == STOPPED_STATE and all(
                _process_stat(child)[0] != STOPPED_STATE for child in _child_pids(self.pid)
            ):
                os.kill(self.pid, signal.SIGCONT)  # Not collected yet, so the process id is still valid.


STOPPED_STATE = "T"
"""State of a process that a signal has stopped, in /proc/PID/stat (proc_pid_stat(5))."""


def _process_stat(pid: int) -> tuple[str, int]:
    """Return state and parent of a process. Raise `ProcessLookupError` if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError as error:
        raise ProcessLookupError(error.errno, error.strerror) from None
    # The name, in parentheses, may contain blanks and parentheses.
    state, parent, *_ = text.rpartition(")")[2].split()
    return state, int(parent)


def _child_pids(pid: int) -> list[int]:
    """Return the process ids of a process's children; empty if it has ended."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in text.split()]


def _descendant_pids(pid: int) -> Iterator[tuple[int, int]]:
    """Yield parent and process id of each descendant, parents first."""
    for child in _child_pids(pid):
        yield pid, child
        yield from _descendant_pids(child)


def _send(pid: int, sig: int, *, parent: int) -> None:
    """Send a signal to this child of `parent`; do nothing if it has ended."""
    with contextlib.ExitStack() as stack, contextlib.suppress(ProcessLookupError):
        if (opened := _open_child(pid, parent, stack)) is not None:
            signal.pidfd_send_signal(opened, sig)


def _open_child(pid: int, parent: int, stack: contextlib.ExitStack) -> int | None:
    """Return a descriptor of this child of `parent`, which the stack closes; None if it has ended."""
    with contextlib.suppress(ProcessLookupError):
        opened = os.pidfd_open(pid)
        stack.callback(os.close, opened)
        # Before it was opened, the process id may have been reused.
        if _process_stat(pid)[1] == parent:
            return opened
    return None


def enter_argv(
    supervisor: int, namespace: int | None, *, user_namespace: bool, directory: Path, argv: Sequence[str]
) -> list[str]:
    """Return the command line that runs `argv` inside the lab of this supervisor.

    `namespace` is the supervisor's descriptor of a network namespace; None keeps the machine's network.
    """
    command = ["nsenter", "--preserve-credentials"]
    if user_namespace:
        command.append(f"--user=/proc/{supervisor}/ns/user")
    command += [f"--mount=/proc/{supervisor}/ns/mnt", f"--pid=/proc/{supervisor}/ns/pid"]
    if namespace is not None:
        command.append(f"--net=/proc/{supervisor}/fd/{namespace}")
    # Entering a mount namespace moves a process to its root directory.
    # A process that enters a user namespace has all capabilities in it. Programs drop the capabilities that they do not
    # need, and gain none at their start through set-user-ID or file capabilities.
    return [*command, "--", "env", f"--chdir={directory}", "--", *bounding_prefix(argv[0]), "--", *argv]
