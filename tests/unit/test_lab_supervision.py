"""Messages to a user if the kernel forbids a lab."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qoslab.errors import MachineError, UserError
from qoslab.virtual_lab import DaemonFailure, supervision
from qoslab.virtual_lab.supervision import APPARMOR_PROFILE, LabError, _start_error
from qoslab.virtual_lab.supervisor import StageError, claim_name


def failed_start(stage: str, number: int) -> Exception:
    return _start_error("x", {"stage": stage, "errno": number, "error": f"{stage}: {os.strerror(number)}"})


@pytest.fixture(autouse=True)
def pretend_no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend to run outside a container, although these tests may run in one."""
    monkeypatch.setattr(supervision, "CONTAINER_MARKS", ())
    monkeypatch.delenv("container", raising=False)


@pytest.mark.parametrize(
    ("stage", "number", "user", "words"),
    [
        ("user namespace", errno.EPERM, 1000, "kernel.unprivileged_userns_clone=1"),
        ("user namespace", errno.ENOSPC, 1000, "user.max_user_namespaces=10000"),
        ("mount /", errno.EACCES, 1000, "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("mount /proc", errno.EPERM, 1000, "systempaths=unconfined"),
        ("mount and PID namespaces", errno.EPERM, 0, "seccomp=unconfined"),
    ],
)
def test_forbidden_system_calls_are_reported(
    monkeypatch: pytest.MonkeyPatch, stage: str, number: int, user: int, words: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    error = failed_start(stage, number)
    assert isinstance(error, MachineError)
    assert error.message.endswith(f"{stage}: {os.strerror(number)}")
    assert words in error.hint


@pytest.mark.parametrize("mark", ["file", "variable"])
def test_user_in_a_container_gets_a_hint_on_its_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mark: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    if mark == "file":
        monkeypatch.setattr(supervision, "CONTAINER_MARKS", (tmp_path / "none", tmp_path))
    else:
        monkeypatch.setenv("container", "oci")
    refused, too_many = failed_start("user namespace", errno.EPERM), failed_start("user namespace", errno.ENOSPC)
    assert isinstance(refused, MachineError) and isinstance(too_many, MachineError)
    assert refused.hint.startswith(supervision.CONTAINER_HINT) and "outside, sysctl" in refused.hint
    assert "user.max_user_namespaces=10000" in too_many.hint and "seccomp" not in too_many.hint


def test_reason_for_unmappable_ids_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(supervision, "CONTAINER_MARKS", (tmp_path,))

    def forbid(path: Path, text: str) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))

    monkeypatch.setattr(Path, "write_text", forbid)
    with pytest.raises(MachineError, match="map a user namespace") as reported:
        supervision._map_ids(os.getpid())
    assert "seccomp=unconfined" in reported.value.hint


def test_hint_on_ubuntu_offers_a_profile_before_the_global_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check only the text: this machine has no AppArmor to load the profile."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    hint = failed_start("user namespace", errno.EACCES)
    assert isinstance(hint, MachineError)
    assert hint.hint.index(str(APPARMOR_PROFILE)) < hint.hint.index("kernel.apparmor_restrict_unprivileged_userns=0")
    lines = [line for line in APPARMOR_PROFILE.read_text().splitlines() if line and not line.startswith("#")]
    opening = next(index for index, line in enumerate(lines) if line.endswith("{"))
    assert lines[:opening] == ["abi <abi/4.0>,", "include <tunables/global>"]
    words = re.fullmatch(r"profile qoslab /usr/bin/python3\.\{([\d,]+)\} flags=\(unconfined\) \{", lines[opening])
    assert words is not None and {"11", "12", "13"} <= set(words[1].split(",")), "the interpreters that ./qoslab takes"
    assert lines[opening + 1] == "  userns," and lines[-1] == "}"
    assert all(line.endswith(",") for line in lines[opening + 1 : -1] if not line.lstrip().startswith("include"))


def test_used_lab_name_and_unexpected_errors_are_reported() -> None:
    taken = failed_start("name", errno.EADDRINUSE)
    assert isinstance(taken, UserError) and "qoslab lab down x" in taken.hint
    assert isinstance(failed_start("prctl", errno.EIO), LabError)


@pytest.mark.parametrize(
    ("number", "killed"),
    [(signal.SIGKILL, True), (signal.SIGTERM, True), (signal.SIGSEGV, False), (signal.SIGABRT, False)],
)
def test_out_of_memory_kill_is_reported(number: signal.Signals, killed: bool) -> None:
    assert DaemonFailure("R1", -number, "").was_killed == killed


def test_process_that_ends_is_not_reported_as_killed() -> None:
    assert not DaemonFailure("R1", 1, "").was_killed


SQUATTER = """
import os, socket, sys
if os.geteuid() == 0:
    os.setuid(65534)
held = []
for place in sys.argv[2:]:
    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    held[-1].bind("\\0" + sys.argv[1] + place)
    if place != "/2":
        held[-1].listen()
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user as well")
def test_another_user_cannot_occupy_the_name_of_a_lab(tmp_path: Path) -> None:
    name = f"qoslab-test/{tmp_path}"[-60:]
    command = [sys.executable, "-I", "-c", SQUATTER, name, "", "/1", "/2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        with claim_name(f"\0{name}") as lock:
            assert lock.getsockname() == f"\0{name}/3".encode()
            with pytest.raises(StageError):
                claim_name(f"\0{name}")
            process.communicate()
            # The first place is free again, but the lab has not ended.
            with pytest.raises(StageError):
                claim_name(f"\0{name}")
