"""Forked commands behave like started ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import ForkedProcess, ForkServer

from process_alive import is_alive
from waiting import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.long]

SAYS = """\
import gc, json, locale, os, signal, sys, tempfile, threading, time
from pathlib import Path
own = Path("/proc/self")
status = dict(line.split(":\\t", 1) for line in (own / "status").read_text().splitlines() if ":\\t" in line)
said = {
    "command line": [os.fsdecode(each) for each in (own / "cmdline").read_bytes().rstrip(b"\\0").split(b"\\0")],
    "environment": sorted(os.fsdecode(each) for each in (own / "environ").read_bytes().split(b"\\0") if each),
    "as Python has it": sorted(f"{name}={value}" for name, value in os.environ.items()),
    "name": (own / "comm").read_text(),
    "arguments": sys.argv,
    "path": sys.path,
    "flags": list(sys.flags),
    "main": [__name__, __file__, sys.modules["__main__"].__dict__ is globals()],
    "folder": os.getcwd(),
    "mask": os.umask(0o77),
    "leads": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()],
    # Except for the two that the C library keeps for its threads.
    "signals": {name: int(status[name], 16) & ~(3 << 31) for name in ("SigBlk", "SigIgn", "SigCgt", "ShdPnd")},
    "handler": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "threads": threading.active_count(),
    "priority": [os.nice(0), sorted(os.sched_getaffinity(0))],
    "descriptors": sorted(int(each) for each in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{each}")),
    "streams": [
        [each.encoding, each.errors, each.newlines, each.line_buffering, each.write_through]
        + [each.isatty(), each.fileno(), each.mode, each.name, type(each.buffer).__name__]
        for each in (sys.stdin, sys.stdout, sys.stderr)
    ],
    "garbage": [gc.isenabled(), gc.get_threshold()],
    "temporary": tempfile.gettempdir(),
    "zone": time.tzname,
}
print(json.dumps(said))
print(sys.stdin.read() + "to the other stream", file=sys.stderr)
match sys.argv[1]:
    case "end":
        sys.exit(7)
    case "fail":
        raise LookupError("failed")
    case "wait":
        sys.stdout.flush()
        time.sleep(1000)
"""


@pytest.fixture(scope="module")
def print_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that prints its properties."""
    file = tmp_path_factory.mktemp("says") / "says"
    file.write_text(f"#!{sys.executable}\n{SAYS}")
    file.chmod(0o755)
    return file


@pytest.fixture(scope="module")
def server(print_program: Path) -> Iterator[ForkServer]:
    """Provide the fork server."""
    server = ForkServer(str(print_program))
    yield server
    server.close()


def start_command(program: Path, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the command as an ordinary process."""
    return subprocess.Popen(
        [str(program), *arguments],
        cwd=folder,
        # Without the variables that readline sets in this process for its children.
        env=dict(os.environ),
        text=True,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("how", ["end", "fail"])
def test_forked_command_has_all_properties_of_a_started_one(
    how: str, print_program: Path, server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("PYDANTIC_DISABLE_PLUGINS", "__all__")
    before = len(list(Path("/proc/self/fd").iterdir()))
    ends: list[tuple[dict[str, Any], str, int | None]] = []
    for process in (start_command(print_program, tmp_path, how, "ä b", ""), server.start(tmp_path, (how, "ä b", ""))):
        output, errors = process.communicate(timeout=60)
        ends.append((json.loads(output), errors, process.returncode))
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
    (text, errors, status), (forked, forked_errors, forked_status) = ends
    for name, value in text.items():
        assert forked[name] == value, name
    assert forked.keys() == text.keys()
    assert forked_status == status == (7 if how == "end" else 1)
    # The traceback shows how Python started the program.
    assert forked_errors.splitlines()[0] == errors.splitlines()[0] == "to the other stream"
    assert forked_errors.splitlines()[-1] == errors.splitlines()[-1]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def start_waiting_command(server: ForkServer, folder: Path) -> ForkedProcess:
    """Return a command that waits."""
    process = server.start(folder, ("wait",))
    assert process.stdout.readline().startswith("{")
    assert process.poll() is None and is_alive(process.pid)
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_signal_ends_a_forked_command(number: signal.Signals, server: ForkServer, tmp_path: Path) -> None:
    others = [start_waiting_command(server, tmp_path) for _ in range(2)]
    process = start_waiting_command(server, tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    process.send_signal(number)
    assert process.wait(10) == -number
    assert process.poll() == -number
    process.kill()
    assert [each.poll() for each in others] == [None, None]
    for each in others:
        each.kill()
        each.communicate(60)
        assert each.returncode == -signal.SIGKILL


def test_forked_command_outlives_its_parent(print_program: Path, tmp_path: Path) -> None:
    server = ForkServer(str(print_program))
    process = start_waiting_command(server, tmp_path)
    server.close()
    assert is_alive(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(process.pid), "the process has ended")
