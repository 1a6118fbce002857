"""What the processes of a lab may do, and what they have open: no more than they need."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from labs import IOS_ROUTED

from qoslab.lab import Lab
from qoslab.lab.supervisor import CAPABILITIES

pytestmark = pytest.mark.lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab.up(IOS_ROUTED, name=f"test-rights-{os.getpid()}") as made:
        yield made


def status(pid: int) -> dict[str, str]:
    """What the kernel says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def open_files(pid: int) -> dict[int, str]:
    """Its descriptors."""
    found = {}
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found[int(each.name)] = str(each.readlink())
    return found


def below(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *below(int(child))]
    return found


def assert_bounded(said: dict[str, str]) -> None:
    """A process has no capability that is not among the lab's, and cannot get one."""
    allowed = sum(1 << number for number in CAPABILITIES.values())
    for kind in ("CapBnd", "CapPrm", "CapEff"):
        assert int(said[kind], 16) & ~allowed == 0, (said["Name"], kind, said[kind])
    assert said["CapInh"].strip("0") == ""


def test_nothing_of_a_lab_has_rights_or_files_that_it_does_not_need(lab: Lab) -> None:
    program = lab.popen("client", ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        # What it gives back says that it runs: setpriv and env came before it, and its loader has closed its files.
        assert program.stdin is not None and program.stdout is not None
        program.stdin.write(b"here\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"here\n"
        tool = program.command_pid()
        assert tool is not None and status(tool)["Name"] == "cat"
        assert status(tool)["NoNewPrivs"] == "1"
        assert os.getsid(tool) != os.getsid(0), "what is busy in the user's session would keep it waiting"
        assert set(open_files(tool)) == {0, 1, 2}
        assert_bounded(status(tool))
    finally:
        program.kill()
        program.communicate()
    daemons = below(lab.pid)
    names = {status(pid)["Name"] for pid in daemons}
    assert "qos-router" in names and len(names) == 2, "the data plane, and the command lines of routers"
    others = {name for pid in (lab.pid, os.getpid()) for name in open_files(pid).values() if name != "/dev/null"}
    for pid in daemons:
        said = status(pid)
        assert said["NoNewPrivs"] == "1"
        assert_bounded(said)
        shared = {name for name in open_files(pid).values() if name.startswith(("socket:", "pipe:"))} & others
        assert not shared, (said["Name"], shared)
