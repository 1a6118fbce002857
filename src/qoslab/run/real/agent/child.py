"""A program that the agent starts at an instant: forked as soon as it is asked for, it waits there by itself."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from qoslab.run.real.agent.settings import libc

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
PR_SET_PDEATHSIG = 1
NOT_STARTED = 126
"""The status of a program that is there and could not be started, as a shell has it."""


def steady_ns() -> int:
    """CLOCK_MONOTONIC, which is never set."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Child:
    """A program, from its fork on. It reads nothing, leads a session of its own and ends with the agent."""

    def __init__(self, number: int, argv: list[str], path: str, stdout: bool, at_ns: int, folder: str) -> None:
        """`path` is the program itself, which begins at `at_ns` of CLOCK_MONOTONIC, in `folder`."""
        self.number = number
        self.name = argv[0]
        self.pipes: dict[int, str] = {}
        """Descriptors, to be polled, of what it prints and of what it says of its begin, and their names."""
        self.output = b""
        """Start report: the time, and in a second line the reason of a failed start."""
        self._status: int | None = None
        ends = {name: os.pipe() for name in ("begin", "stderr", *(["stdout"] if stdout else []))}
        # The agent's handlers are not for the child.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        self.pid = os.fork()
        if not self.pid:
            writing = {name: end[1] for name, end in ends.items()}
            become(argv, path, writing["begin"], writing["stderr"], writing.get("stdout"), at_ns, folder)
        for name, (reading, writing_end) in ends.items():
            os.close(writing_end)
            os.set_blocking(reading, False)
            self.pipes[reading] = name
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)

    def poll(self) -> int | None:
        """Return its status, negative for a signal; None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = decoded(status)
        return self._status

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._status is None:
            self._status = decoded(os.waitpid(self.pid, 0)[1])

    def signal(self, number: int) -> None:
        """Send a signal to the program and its children."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                # Just forked it may not lead a session yet.
                os.killpg(self.pid, number) if os.getpgid(self.pid) == self.pid else os.kill(self.pid, number)

    def began_ns(self) -> int | None:
        """Return when it began, once all is said of that; None if it was ended before. `OSError` with why it did
        not.
        """
        stamp, _, failure = self.output.partition(b"\n")
        if failure:
            raise OSError(failure.decode(errors="replace"))
        return int(stamp) if stamp else None


def decoded(status: int) -> int:
    """A status of `os.waitpid` as `subprocess` has it."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def become(argv: list[str], path: str, begin: int, stderr: int, stdout: int | None, at_ns: int, folder: str) -> None:
    """Wait in a child for the start time, and execute the program. Descriptors above 2 are closed by that, as Python's
    are.
    """
    try:
        os.setsid()
        for number in (*ENDING, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for to, source in enumerate((nothing, nothing if stdout is None else stdout, stderr)):
            os.dup2(source, to)
        os.chdir(folder)
        while steady_ns() < at_ns:
            time.sleep((at_ns - steady_ns()) / 1e9)
        os.write(begin, b"%d" % steady_ns())
        os.execv(path, argv)
    except BaseException as error:
        os.write(begin, b"\n" + str(error).encode(errors="replace"))
    finally:
        os._exit(NOT_STARTED)
