"""What a user is told when the kernel forbids a lab."""

from __future__ import annotations

import errno
import os

import pytest

from qoslab.errors import MachineError, UserError
from qoslab.lab.supervision import LabError, _start_failed


def failed(stage: str, number: int) -> Exception:
    return _start_failed("x", {"stage": stage, "errno": number, "error": f"{stage}: {os.strerror(number)}"})


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
def test_what_the_kernel_forbids(
    monkeypatch: pytest.MonkeyPatch, stage: str, number: int, user: int, words: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    error = failed(stage, number)
    assert isinstance(error, MachineError)
    assert error.message.endswith(f"{stage}: {os.strerror(number)}")
    assert words in error.hint


def test_a_name_in_use_and_the_unexpected() -> None:
    taken = failed("name", errno.EADDRINUSE)
    assert isinstance(taken, UserError) and "qoslab lab down x" in taken.hint
    assert isinstance(failed("prctl", errno.EIO), LabError)
