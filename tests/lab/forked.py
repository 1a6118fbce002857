"""`qoslab` forked from a process that has imported it already: a start without the imports."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

PROGRAM = Path(__file__).with_name("fork_server.py")
BUFFER_BYTES = 100_000
"""Bytes for a command line, and for an environment; the kernel limits one string to 131072."""
INHERITED = ("PATH", "HOME", "LANG", "LC_", "PYTHON")
"""Prefixes of variables that change Python itself."""
START_S = 120.0
"""Longer than the imports take on a busy machine."""


class ForkedProcess:
    """Forked command, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, message: socket.socket, stdout: TextIO, stderr: TextIO, arguments: tuple[str, ...]) -> None:
        self.stdout, self.stderr = stdout, stderr
        self.returncode: int | None = None
        self._channel, self._arguments = message, arguments
        self.pid = int(self._hear(START_S)["pid"])

    def poll(self) -> int | None:
        """Return the exit status; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status."""
        if self.returncode is None:
            self.returncode = self._hear(timeout)["status"]
            self._channel.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal; ignore it if the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Return the output until the end of the process."""
        deadline = time.monotonic() + timeout
        read: dict[TextIO, str] = {}

        def drain(stream: TextIO) -> None:
            read[stream] = stream.read()

        readers = [threading.Thread(target=drain, args=(each,), daemon=True) for each in (self.stdout, self.stderr)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(max(0.0, deadline - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self._arguments, timeout)
        self.wait(max(0.0, deadline - time.monotonic()))
        self.stdout.close()
        self.stderr.close()
        return read[self.stdout], read[self.stderr]

    def _hear(self, timeout: float | None) -> dict[str, int]:
        if timeout is not None and not select.select([self._channel], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self._arguments, timeout)
        packet = self._channel.recv(1024)
        assert packet, "the process from which commands are forked has ended"
        document: dict[str, int] = json.loads(packet)
        return document


class ForkServer:
    """Process from which commands are forked."""

    def __init__(self, program: str) -> None:
        """Start the process; `program` is the installed `qoslab`."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Without variables set by a test, so that it does not count as a process started by a test.
        inherited = {name: value for name, value in os.environ.items() if name.startswith(INHERITED)}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(PROGRAM), str(theirs.fileno()), program, "-" * BUFFER_BYTES],
                pass_fds=[theirs.fileno()],
                env={**inherited, "PADDING": "-" * BUFFER_BYTES},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )

    def start(self, folder: Path, arguments: tuple[str, ...]) -> ForkedProcess:
        """Start a command in a folder, with this process's environment."""
        request = {"arguments": arguments, "folder": str(folder), "environment": dict(os.environ)}
        reported, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, error = os.pipe(), os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        given = [nothing, output[1], error[1]]
        with theirs:
            socket.send_fds(self._control, [json.dumps(request).encode()], [*given, theirs.fileno()])
        for descriptor in given:
            os.close(descriptor)
        return ForkedProcess(reported, os.fdopen(output[0]), os.fdopen(error[0]), arguments)

    def close(self) -> None:
        """End the process."""
        self._control.close()
        self._process.wait()


@functools.cache
def fork_server(program: str) -> ForkServer:
    """Return the fork server of this process, which ends with it."""
    server = ForkServer(program)
    atexit.register(server.close)
    return server
