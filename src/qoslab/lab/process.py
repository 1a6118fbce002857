"""Processes of the lab that are started from outside it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qoslab.lab.rights import bounds

CHILD_WAIT = 5.0
"""Seconds for nsenter to start its child; it takes about a millisecond."""


class LabProcess(subprocess.Popen[Any]):
    """A `Popen` whose command runs inside the lab.

    The direct child is `nsenter`, which forks (a PID namespace can only be entered by a new process), waits and ends as
    its child ended. Signals go to the command itself and not to nsenter, which would die alone.
    """

    def send_signal(self, sig: int) -> None:
        """Send a signal to the command; nothing if it has ended."""
        if self.poll() is not None:
            return
        command = self.command_pid()
        if command is not None:
            try:
                os.kill(command, sig)
            except ProcessLookupError:
                return

    def terminate(self) -> None:
        """SIGTERM to the command."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the command."""
        self.send_signal(signal.SIGKILL)

    def command_pid(self) -> int | None:
        """The command's process id as the machine counts; None when it has ended."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        deadline = time.monotonic() + CHILD_WAIT
        while self.poll() is None and time.monotonic() < deadline:
            try:
                found = children.read_text(encoding="utf-8").split()
            except (FileNotFoundError, ProcessLookupError):
                return None
            if found:
                return int(found[0])
            time.sleep(0.001)
        return None


def enter_argv(
    supervisor: int, namespace: int | None, *, user_namespace: bool, directory: Path, argv: Sequence[str]
) -> list[str]:
    """The command line that runs `argv` inside the lab of this supervisor.

    `namespace` is the supervisor's descriptor of a network namespace; None keeps the machine's network.
    """
    command = ["nsenter", "--preserve-credentials"]
    if user_namespace:
        command.append(f"--user=/proc/{supervisor}/ns/user")
    command += [f"--mount=/proc/{supervisor}/ns/mnt", f"--pid=/proc/{supervisor}/ns/pid"]
    if namespace is not None:
        command.append(f"--net=/proc/{supervisor}/fd/{namespace}")
    # Entering a mount namespace moves a process to its root directory.
    # Who enters a user namespace has all capabilities in it. No program keeps those that it does not need, nor gets
    # more by being started, as one with set-user-ID or file capabilities would.
    return [*command, "--", "env", f"--chdir={directory}", "--", *bounds(argv[0]), "--", *argv]
