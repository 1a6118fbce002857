"""Capabilities and open files of the processes of a lab: only the necessary ones."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from labs import IOS_ROUTED

from qoslab.system.programs import OWN_PROGRAMS, find_own_program
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.lab_processes import LabProcess
from qoslab.virtual_lab.rights import PROGRAMS
from qoslab.virtual_lab.supervisor import CAPABILITIES
from waiting import wait_until

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.up(IOS_ROUTED, name=f"test-rights-{os.getpid()}") as made:
        yield made


def status(pid: int, thread: str | None = None) -> dict[str, str]:
    """Return the status of a process in /proc, or of another of its threads."""
    lines = Path(f"/proc/{pid}/task/{thread or pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def open_files(pid: int) -> dict[int, str]:
    """Return the descriptors of a process."""
    found = {}
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed in the meantime
            found[int(each.name)] = str(each.readlink())
    return found


def child_processes(pid: int) -> list[int]:
    """Return the child processes of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *child_processes(int(child))]
    return found


def sets(message: dict[str, str]) -> tuple[frozenset[str], ...]:
    """Return a thread's bounding, permitted, effective and inheritable sets by name; an unexpected set as a number."""
    names = {number: name for name, number in CAPABILITIES.items()}
    return tuple(
        frozenset(names.get(number, str(number)) for number in range(64) if int(message[kind], 16) >> number & 1)
        for kind in ("CapBnd", "CapPrm", "CapEff", "CapInh")
    )


def program_status(process: LabProcess, name: str) -> dict[str, str]:
    """Return the status of the program of that name, after `env` and `setpriv` have executed it."""

    def text() -> dict[str, str] | None:
        pid = process.command_pid()
        return found if pid is not None and (found := status(pid))["Name"] == name else None

    return wait_until(text, f"{name} runs", report=lambda: f"status: {process.poll()}")


RUN = {
    "cat": [],
    "dumpcap": ["-i", "eth0"],
    "flood": ["receive", "--address", "127.0.0.1", "--any-port"],
    "iperf": ["-s"],
    "iperf3": ["-s"],
    "ping": ["127.0.0.1"],
    "sla": ["respond", "--allow", "127.0.0.0/8"],
    "sleep": ["60"],
}
"""Programs, each with arguments that keep it running until it is killed."""
MAY = {
    "cat": set(),
    "dumpcap": {"dac_override", "net_admin", "net_raw"},
    "flood": {"net_admin", "net_bind_service", "net_raw"},
    "iperf": {"net_admin", "net_bind_service"},
    "iperf3": {"net_admin", "net_bind_service"},
    "ping": {"net_raw"},
    "sla": {"net_bind_service", "net_raw"},
    "sleep": {"dac_override", "net_admin", "net_bind_service", "net_raw"},
}
GIVES_UP = {"dumpcap", "ping"}
"""Programs that drop their capabilities when they no longer need them."""


@pytest.mark.parametrize("name", RUN)
def test_program_has_exactly_the_necessary_capabilities(lab: Lab, name: str, tmp_path: Path) -> None:
    assert MAY.keys() == RUN.keys() and PROGRAMS.keys() == RUN.keys() - {"sleep"}
    program = str(find_own_program(name)) if name in OWN_PROGRAMS else name
    argv = [program, *RUN[name], *(["-w", str(tmp_path / "capture")] if name == "dumpcap" else [])]
    with lab.popen("client", argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            text = program_status(process, name)
            assert text["NoNewPrivs"] == "1"
            bounding, permitted, effective, inheritable = sets(text)
            assert bounding == MAY[name]
            # For an instant, processes started by dumpcap can inherit the two capabilities with which it captures.
            assert inheritable in (
                {frozenset(), frozenset({"net_admin", "net_raw"})} if name == "dumpcap" else {frozenset()}
            )
            if name in GIVES_UP:
                assert effective <= permitted <= bounding
            else:
                assert permitted == effective == bounding
        finally:
            process.kill()
            process.communicate()


def test_lab_processes_have_no_unnecessary_open_files(lab: Lab) -> None:
    program = lab.popen("client", ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        # Its output shows that it runs: env and setpriv have ended, and its loader has closed its files.
        assert program.stdin is not None and program.stdout is not None
        program.stdin.write(b"here\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"here\n"
        tool = program.command_pid()
        assert tool is not None and status(tool)["Name"] == "cat"
        assert os.getsid(tool) != os.getsid(0), "what is busy in the user's session would keep it waiting"
        assert set(open_files(tool)) == {0, 1, 2}
    finally:
        program.kill()
        program.communicate()
    others = {name for pid in (lab.pid, os.getpid()) for name in open_files(pid).values() if name != "/dev/null"}
    for pid in child_processes(lab.pid):
        shared = {name for name in open_files(pid).values() if name.startswith(("socket:", "pipe:"))} & others
        assert not shared, (status(pid)["Name"], shared)


def test_daemons_drop_the_capabilities_of_their_start(lab: Lab) -> None:
    starting = {"dac_override", "net_bind_service", "net_admin", "net_raw", "sys_ptrace", "sys_admin"}
    daemons = {status(pid)["Name"]: pid for pid in child_processes(lab.pid)}
    plane = daemons.pop("qos-router")
    (command_lines,) = daemons.values()
    assert {status(pid)["NoNewPrivs"] for pid in (plane, command_lines)} == {"1"}
    has = starting - {"sys_ptrace"}
    assert threads(plane).keys() == {(frozenset(starting), frozenset(has), frozenset(has))}
    entering, serving = {"net_admin", "net_raw", "sys_ptrace", "sys_admin"}, {"dac_override"}
    # A thread from before, which tries for some seconds to lower the priority of the session, then ends.
    bounding = frozenset(entering | serving)
    expected = {(bounding, frozenset(each), frozenset(each)) for each in (entering, serving)}
    wait_until(
        lambda: threads(command_lines).keys() == expected,
        "threads have the capabilities that they need, and no others",
        report=lambda: str(threads(command_lines)),
    )
    found = threads(command_lines)
    assert found[bounding, frozenset(entering), frozenset(entering)] == 1
    assert sets(status(command_lines))[1] == serving, "the thread that talks to who logs in"


def threads(pid: int) -> Counter[tuple[frozenset[str], ...]]:
    """Return the number of threads of a process by bounding, permitted and effective set."""
    found: Counter[tuple[frozenset[str], ...]] = Counter()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # ended in the meantime
            *three, inheritable = sets(status(pid, task.name))
            assert not inheritable
            found[tuple(three)] += 1
    return found
