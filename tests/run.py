"""Runner of the checks in tox.ini: it checks their requirements first, and leaves nothing behind.

    ./qoslab test [--all] [TOX ARGUMENTS]

Without `--all`: the short level, `env_list` of tox.ini. With it: the label `all`. A missing tool, an unreachable
registry or a missing permission is reported before anything is tested, with exit status 2. However the run ends, its
processes and its temporary files are removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

TOP = Path(__file__).resolve().parents[1]
TOX = [sys.executable, "-m", "tox", "run"]
VARIABLE = "QOSLAB_TEST_RUN"
"""Variable in the environment of each process of this run, also used in the names of its temporary folders."""
NOT_RUN = 2
ENDING_S = 60.0
"""Time for an interrupted run to end: tests stop their labs."""
LAB = ["unshare", "--user", "--map-root-user", "--net", "--mount", "true"]
LAB_HINT = (
    "this user may not create user namespaces, which the virtual lab needs; see `qoslab doctor`"
    " (on Ubuntu: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0)"
)


def main(arguments: Sequence[str]) -> int:
    """Return the exit status: that of tox, 2 if nothing was tested, 128 plus the signal if interrupted."""
    words = list(arguments)
    own = words[: words.index("--")] if "--" in words else words
    if "--all" in own:
        words[words.index("--all") : words.index("--all") + 1] = ["-m", "all"]
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    token = secrets.token_hex(3)
    with _kill_remaining(token) as environment:
        if problem := _environment_problem(words, environment):
            print(f"qoslab: nothing was tested: {problem}", file=sys.stderr)
            return NOT_RUN
        return _run_tox([*TOX, *words], environment)


def _interrupted(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _environment_problem(words: Sequence[str], environment: dict[str, str]) -> str:
    """Return why the checks cannot run, or an empty text."""
    if os.geteuid() and subprocess.run(LAB, capture_output=True, check=False).returncode:
        return LAB_HINT
    # Also the packages that only tests need, in addition to the programs' own crates.
    if _run_tox(["cargo", "fetch", "--locked", "--quiet"], environment):
        return "the crates of Cargo.lock cannot be fetched (above)"
    chosen = words[: words.index("--")] if "--" in words else words
    if _run_tox([*TOX, *chosen, "--notest", "-q"], environment):
        return "the Python environments of the checks cannot be created (above)"
    return ""


def _run_tox(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command to its end. If this process is interrupted, interrupt it too, unless the terminal does."""
    with subprocess.Popen(command, cwd=TOP, env=environment) as process:
        try:
            return process.wait()
        except SystemExit as ending:
            by_terminal = sys.stdin.isatty() and os.tcgetpgrp(0) == os.getpgrp()
            if ending.code != 128 + signal.SIGINT or not by_terminal:
                process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDING_S)
            process.kill()
            raise


@contextlib.contextmanager
def _kill_remaining(token: str) -> Iterator[dict[str, str]]:
    """Yield the environment of a run; afterwards end its processes and remove its temporary folders."""
    folder = Path(f"/tmp/t{token}")
    # Other users may enter: a test runs a program of this folder as another user.
    folder.mkdir(mode=0o711)
    names = {VARIABLE: token, "TMPDIR": str(folder), "PYTEST_DEBUG_TEMPROOT": str(folder)}
    try:
        yield os.environ | names
    finally:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        for number, seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            deadline = time.monotonic() + seconds
            for pid in processes(token):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            while processes(token) and time.monotonic() < deadline:
                time.sleep(0.05)
        for left in Path("/tmp").glob(f"t{token}*"):
            shutil.rmtree(left, ignore_errors=True)


def processes(token: str) -> list[int]:
    """Return the other processes of a run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            pid = int(entry.parent.name)
            if f"{VARIABLE}={token}".encode() in entry.read_bytes().split(b"\0") and pid != os.getpid():
                found.append(pid)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
