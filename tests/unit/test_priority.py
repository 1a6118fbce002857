"""Lower priority of processes started during a measurement, with the session that they lead."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qoslab.system.priority import BACKGROUND_NICE, IDLE_NICE, shell_lower_priority

GROUPS = Path("/proc/self/autogroup").exists()
PYTHON = (
    "import os, pathlib, time, qoslab.system.priority as p; p.lower_priority(); end = time.monotonic() + 5\n"
    "group = pathlib.Path('/proc/self/autogroup')\n"
    "while os.getsid(0) == os.getpid() and group.exists() and time.monotonic() < end:\n"
    "    if f'nice {p.BACKGROUND_NICE} ' in group.read_text().strip() + ' ': break\n"
    "    time.sleep(0.05)\n"
    "print(os.getpriority(os.PRIO_PROCESS, 0), group.read_text() if group.exists() else '')"
)
OWN = os.getpriority(os.PRIO_PROCESS, 0)
"""Priority of the test suite, which may run under `nice`."""
BEHIND = {"python": max(OWN, BACKGROUND_NICE), "sh": min(OWN + BACKGROUND_NICE, IDLE_NICE)}
SHELL = shell_lower_priority() + f"exec nice -n {BACKGROUND_NICE} sh -c 'nice; cat /proc/$$/autogroup 2>/dev/null'"
COMMANDS = {"python": [sys.executable, "-c", PYTHON], "sh": ["sh", "-c", SHELL]}


@pytest.mark.parametrize("language", list(BEHIND))
def test_priority_of_a_leader_applies_to_its_session(language: str) -> None:
    output = subprocess.run(COMMANDS[language], capture_output=True, text=True, start_new_session=True, check=True)
    assert output.stderr == ""
    own, *group = output.stdout.split()
    assert own == str(BEHIND[language])
    assert group[1:] == (["nice", str(BACKGROUND_NICE)] if GROUPS else [])


@pytest.mark.parametrize("language", list(BEHIND))
def test_process_without_its_own_session_changes_no_priority(language: str) -> None:
    """Start a process in a shared session: the change would also lower the senders and the user's terminal, and only
    root can undo that.
    """
    before = subprocess.run(["cat", "/proc/self/autogroup"], capture_output=True, text=True, check=False).stdout
    output = subprocess.run(COMMANDS[language], capture_output=True, text=True, check=True)
    own, *group = output.stdout.split()
    assert own == str(BEHIND[language]) and group == before.split()


def test_lower_priority_is_not_raised() -> None:
    """Run at a lower priority: an ordinary user's process under `nice` would be refused more."""
    command = ["nice", "-n", "19", sys.executable, "-c", PYTHON]
    output = subprocess.run(command, capture_output=True, text=True, start_new_session=True, check=False)
    assert (output.returncode, output.stdout.split()[:1]) == (0, ["19"]), output.stderr


def test_workers_of_ansible_lead_sessions_behind_traffic() -> None:
    """Start two workers, each leads a session of its own; the first request within a tenth of a second gets it."""
    worker = (
        "import os, pathlib, time, qoslab.run.devices.ansible.worker_priority\n"
        "time.sleep(0.2)\n"
        "reader, writer = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    group = pathlib.Path('/proc/self/autogroup')\n"
        "    said = (os.getpriority(os.PRIO_PROCESS, 0), group.read_text() if group.exists() else '')\n"
        "    os.write(writer, repr(said).encode())\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(os.read(reader, 1000).decode())"
    )
    for _ in range(5):
        output = subprocess.run([sys.executable, "-c", worker], capture_output=True, text=True, check=True).stdout
        own, group = ast.literal_eval(output)
        assert own == BEHIND["python"]
        if not GROUPS or group.endswith(f"nice {BACKGROUND_NICE}\n"):
            return
    pytest.fail(f"five times in a row {group!r}")
