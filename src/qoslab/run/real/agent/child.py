"""Program that the agent starts at a given time: it is forked at the request and waits for the time by itself."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from qoslab.run.real.agent.settings import libc

END_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
PR_SET_PDEATHSIG = 1
EXIT_NOT_STARTED = 126
"""Exit status of a program that exists and could not be started, as in a shell."""


def monotonic_ns() -> int:
    """Return CLOCK_MONOTONIC, which is never set, in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Child:
    """Program from its fork on. It reads no input, leads its own session and ends with the agent."""

    def __init__(self, number: int, argv: list[str], path: str, stdout: bool, at_ns: int, folder: str) -> None:
        """`path` is the program, which starts at `at_ns` of CLOCK_MONOTONIC, in `folder`."""
        self.number = number
        self.name = argv[0]
        self.pipes: dict[int, str] = {}
        """Names of its pipes, by descriptors to poll: its output and its start report."""
        self.output = b""
        """Start report: the time, and in a second line the reason for a failed start."""
        self._status: int | None = None
        ends = {name: os.pipe() for name in ("begin", "stderr", *(["stdout"] if stdout else []))}
        # The child must not have the handlers of the agent.
        signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
        self.pid = os.fork()
        if not self.pid:
            writing = {name: end[1] for name, end in ends.items()}
            execute_at(argv, path, writing["begin"], writing["stderr"], writing.get("stdout"), at_ns, folder)
        for name, (reading, writing_end) in ends.items():
            os.close(writing_end)
            os.set_blocking(reading, False)
            self.pipes[reading] = name
        signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)

    def poll(self) -> int | None:
        """Return its status, negative for a signal; None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = decode_status(status)
        return self._status

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._status is None:
            self._status = decode_status(os.waitpid(self.pid, 0)[1])

    def signal(self, number: int) -> None:
        """Send a signal to the program and its children."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                # Just after the fork, it may not lead a session yet.
                os.killpg(self.pid, number) if os.getpgid(self.pid) == self.pid else os.kill(self.pid, number)

    def began_ns(self) -> int | None:
        """Return its start time, after the start report is complete; None if it was ended before the start.

        Raise `OSError` with the reason for a failed start.
        """
        stamp, _, failure = self.output.partition(b"\n")
        if failure:
            raise OSError(failure.decode(errors="replace"))
        return int(stamp) if stamp else None


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def decode_status(status: int) -> int:
    """Convert a status of `os.waitpid` to that of `subprocess`."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def execute_at(
    argv: list[str], path: str, begin: int, stderr: int, stdout: int | None, at_ns: int, folder: str
) -> None:
    """Wait in a child for the start time, and execute the program.

    That closes descriptors above 2, which Python opens as non-inheritable.
    """
    try:
        os.setsid()
        for number in (*END_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
        end_with_parent()
        nothing = os.open(os.devnull, os.O_RDWR)
        for to, source in enumerate((nothing, nothing if stdout is None else stdout, stderr)):
            os.dup2(source, to)
        os.chdir(folder)
        while monotonic_ns() < at_ns:
            time.sleep((at_ns - monotonic_ns()) / 1e9)
        os.write(begin, b"%d" % monotonic_ns())
        os.execv(path, argv)
    except BaseException as error:
        os.write(begin, b"\n" + str(error).encode(errors="replace"))
    finally:
        os._exit(EXIT_NOT_STARTED)
