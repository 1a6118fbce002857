"""First process of a user-mode Linux kernel: loads modules, names network devices, runs commands.

It runs inside the guest with the standard library only. Its argument is a folder of the machine, which it mounts at
/run/job, with guest.json: the guest's name, devices and modules. Requests and answers are files there. A byte on the
first serial line announces a request, and the end of the line ends the guest; the line carries no data, since user-mode
Linux loses its interrupts under load.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import traceback
import tty
from pathlib import Path
from typing import Any

JOB = Path("/run/job")
SERIAL = "/dev/ttyS0"
FINIT_MODULE = 313
"""Number of finit_module(2) on x86_64."""
POWER_OFF = 0x4321FEDC
"""LINUX_REBOOT_CMD_POWER_OFF of reboot(2)."""
ALREADY_LOADED = (17,)
"""EEXIST: the module is part of the kernel or loaded."""
END = "!"
"""The character on the serial line that ends the guest."""
POLL_INTERVAL_S = 0.02
"""Polling interval for requests, in seconds."""
OFFLOADS_OFF = ("gro", "off", "gso", "off", "tso", "off", "tx", "off", "sg", "off")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, data: str = "", flags: int = 0) -> None:
    """Mount a file system. `OSError` if the kernel refuses."""
    if libc.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount {kind} on {target}: {os.strerror(number)}")


def load_modules(paths: list[str]) -> dict[str, str]:
    """Load kernel modules in this order; return the error of each that the kernel refused."""
    refused = {}
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if libc.syscall(FINIT_MODULE, descriptor, b"", 0) != 0:
                number = ctypes.get_errno()
                if number not in ALREADY_LOADED:
                    refused[path] = os.strerror(number)
        finally:
            os.close(descriptor)
    return refused


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run one command and return its exit status and output."""
    try:
        process = subprocess.Popen(
            request["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=request.get("cwd") or "/",
            start_new_session=True,
        )
    except OSError as error:
        return {"status": 127, "stdout": "", "stderr": f"{request['argv'][0]}: {error.strerror}\n"}
    try:
        stdout, stderr = process.communicate(request.get("input", ""), request["timeout_s"])
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        return {"status": None, "stdout": stdout, "stderr": stderr}
    return {"status": process.returncode, "stdout": stdout, "stderr": stderr}


def prepare(settings: dict[str, Any]) -> dict[str, Any]:
    """Make the guest ready and return its state."""
    refused = load_modules(settings["modules"])
    socket.sethostname(settings["name"])
    ip = ["ip"]
    subprocess.run([*ip, "link", "set", "lo", "up"], check=True)
    for number, device in enumerate(settings["devices"]):
        link = [*ip, "link", "set", "dev"]
        subprocess.run([*link, f"vec{number}", "address", device["mac"]], check=True)
        subprocess.run([*link, f"vec{number}", "name", device["name"]], check=True)
        # Packets pass one by one, as they are on the line.
        subprocess.run(["ethtool", "-K", device["name"], *OFFLOADS_OFF], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*link, device["name"], "up"], check=True)
    return {"release": os.uname().release, "refused": refused}


def main(folder: str) -> None:
    """Serve requests until the other end closes the serial line or asks to stop."""
    mount("none", "/proc", "proc")
    mount("none", "/sys", "sysfs")
    if not Path(SERIAL).exists():
        # The kernel mounts it before it starts the first process, except on an initial RAM disk.
        mount("none", "/dev", "devtmpfs")
    mount("none", "/run", "tmpfs")
    JOB.mkdir()
    Path("/run/tmp").mkdir()
    os.environ.clear()
    os.environ.update(PATH=PATH, LC_ALL="C.UTF-8", HOME="/run/tmp", TMPDIR="/run/tmp", PYTHONDONTWRITEBYTECODE="1")
    mount("none", "/run/job", "hostfs", folder)
    settings = json.loads((JOB / "guest.json").read_text(encoding="utf-8"))
    line = os.open(SERIAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    tty.setraw(line, termios.TCSANOW)
    try:
        write_answer(0, prepare(settings))
    except (OSError, subprocess.CalledProcessError) as error:
        write_answer(0, {"error": str(error)})
    number = 1
    while True:
        if select.select([line], [], [], POLL_INTERVAL_S)[0] and END.encode() in (os.read(line, 4096) or END.encode()):
            return
        # A listing always comes from the host; a failed lookup by name would be cached.
        while f"request-{number}.json" in {each.name for each in JOB.iterdir()}:
            write_answer(number, run(json.loads((JOB / f"request-{number}.json").read_text(encoding="utf-8"))))
            number += 1


def write_answer(number: int, value: dict[str, Any]) -> None:
    """Write an answer file atomically."""
    partial = JOB / f"partial-{number}"
    partial.write_text(json.dumps(value), encoding="utf-8")
    # hostfs delays writes: the files written by the command must be complete too.
    libc.sync()
    partial.rename(JOB / f"answer-{number}.json")


def report() -> None:
    """Write the current exception to the kernel's log, which the host reads as the console."""
    with Path("/dev/kmsg").open("w", encoding="utf-8") as log:
        log.writelines(f"<3>{line}\n" for line in traceback.format_exc().splitlines())


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Exception:
        report()
    finally:
        libc.sync()
        libc.reboot(ctypes.c_int(POWER_OFF))
