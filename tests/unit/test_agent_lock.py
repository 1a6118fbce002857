"""Lock of a host's interface: other users get a message until its holder ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qoslab.run.real.agent import lock

WHO = "the run of hqf-nested by alice on box, since 2026-03-02 10:20:30Z"
HOLDER = """
import os, sys, time
exec(sys.argv[1])
if os.geteuid() == 0:
    os.setuid(65534)
InterfaceLock(sys.argv[2], sys.argv[3])
print("held", flush=True)
time.sleep(600)
"""


def hold_lock(device: str, who: str) -> subprocess.Popen[str]:
    """Provide an interface locked by another process, of another user if possible."""
    text = Path(lock.__file__).read_text()
    argv = [sys.executable, "-I", "-S", "-c", HOLDER, text, device, who]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_lock_is_released_when_its_holder_is_killed() -> None:
    device = f"eth-{os.getpid()}"
    assert lock.lock_holder(device) == ""
    process = hold_lock(device, WHO)
    try:
        assert [lock.lock_holder(device) for _ in range(3)] == [WHO] * 3
        with pytest.raises(OSError, match="in use"):
            lock.InterfaceLock(device, "the run of bob")
        # Another lock is free.
        assert lock.lock_holder(f"{device}-2") == ""
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert lock.lock_holder(device) == ""
    lock.InterfaceLock(device, "the run of bob")
    assert lock.lock_holder(device) == "the run of bob"


def test_name_of_a_lock_holder_is_sanitized() -> None:
    device = f"eth-{os.getpid()}-rude"
    process = hold_lock(device, "\x1b[2J\r\nbob" + "x" * 1000)
    try:
        assert lock.lock_holder(device) == ("[2Jbob" + "x" * 1000)[: lock.NAME_BYTES - 3]
    finally:
        process.kill()
        process.wait()


def test_lock_without_a_name_belongs_to_another_run() -> None:
    device = f"eth-{os.getpid()}-mute"
    process = hold_lock(device, "")
    try:
        assert lock.lock_holder(device) == lock.UNKNOWN
    finally:
        process.kill()
        process.wait()
