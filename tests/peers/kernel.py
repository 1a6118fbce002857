"""The Linux kernel's traffic control as a peer: user-mode Linux in virtual time (`virtual_clock.c`).

A guest has two interfaces, `out0` and `in0`, which are the two ends of a virtual Ethernet (veth). Time stands still
while the guest works and jumps to the next timer when it is idle: results do not depend on the machine's load.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
from peer_programs import compiled, package_version, require_programs

MODULES = Path("/usr/lib/uml/modules")
PACKET = np.dtype([("time", "<u8"), ("bytes", "<u4"), ("class", "<u4")])
TIMES = np.dtype([("sent", "<u8"), ("arrived", "<u8")])
LONGEST_S = 900
"""Time of the machine for a guest."""

NEEDED = (
    "veth",
    "sch_ingress",
    "cls_u32",
    "act_police",
    "act_gact",
    "sch_htb",
    "sch_tbf",
    "sch_drr",
    "sch_prio",
    "sch_sfq",
)

INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t hostfs none {folder} -o {folder}
cd {folder}
exec >output 2>&1
{commands} &&
echo complete
sync
echo o >/proc/sysrq-trigger
sleep 100
"""
SEND = """{guest} load {modules} &&
ip link add out0 mtu 2000 type veth peer name in0 mtu 2000 &&
ip link set out0 up && ip link set in0 up &&
{virtual_time} &&
tc -batch tc &&
{guest} send packets times out0 in0 {end}"""
VIRTUAL_TIME = "printf 1 1<>clock"
"""Begins virtual time. The file is mapped into the kernel's memory: it may not be cut before it is written."""


def version() -> str:
    """Return the version of the package with the kernel."""
    require_programs("tc", "ip", "gcc")
    return package_version("user-mode-linux")


def program() -> Path:
    """Build the program of the guest."""
    return compiled("guest.c", "gcc", ["-O2"])


def module_files(names: Iterable[str]) -> list[str]:
    """Return the files of kernel modules, each behind those that it needs."""
    found = sorted(MODULES.glob("*/modules.dep"))
    if not found:
        raise RuntimeError(f"{MODULES} has no modules.dep")
    folder = found[-1].parent
    needed = dict(line.split(":", 1) for line in found[-1].read_text(encoding="ascii").splitlines())
    paths = {Path(path).name.removesuffix(".ko"): path for path in needed}
    ordered: dict[str, None] = {}
    for name in names:
        # modules.dep lists first what has to be loaded last.
        for path in [*reversed(needed[paths[name]].split()), paths[name]]:
            ordered[str(folder / path)] = None
    return list(ordered)


def send(commands: Sequence[str], packets: npt.NDArray[np.void], end_ns: int) -> npt.NDArray[np.void]:
    """Send packets through queueing disciplines of `out0`, set up by lines of `tc`, and return their times (ns).

    The times count from the start of the guest's program; arrivals at `in0` are 0 if a packet never arrived.
    """
    version()
    with tempfile.TemporaryDirectory(prefix="qoslab-uml-") as name:
        folder = Path(name)
        packets.astype(PACKET).tofile(folder / "packets")
        (folder / "tc").write_text("".join(f"{line}\n" for line in commands), encoding="ascii")
        words = {"modules": " ".join(module_files(NEEDED)), "virtual_time": VIRTUAL_TIME, "end": end_ns}
        run_guest(folder, SEND.format(guest=program(), **words))
        return np.fromfile(folder / "times", TIMES)


def run_guest(folder: Path, commands: str) -> None:
    """Start user-mode Linux, run commands of the shell in a folder that it shares with this machine, and end it."""
    library = compiled("virtual_clock.c", "gcc", ["-O2", "-shared", "-fPIC"])
    (folder / "clock").write_text("0", encoding="ascii")
    init = folder / "init"
    init.write_text(INIT.format(folder=folder, commands=commands), encoding="ascii")
    init.chmod(0o755)
    _boot(init, library, folder)
    output = (folder / "output").read_text(encoding="utf-8", errors="replace")
    if not output.endswith("complete\n"):
        raise RuntimeError(f"user-mode Linux did not come to its end:\n{output}")


def _boot(init: Path, library: Path, folder: Path) -> None:
    command = [
        "linux.uml",
        "rootfstype=hostfs",
        "rootflags=/",
        f"init={init}",
        "mem=1024M",
        "con=null",
        "con0=fd:0,fd:1",
    ]
    environment = os.environ | {"QOSLAB_VIRTUAL_CLOCK": str(folder / "clock"), "LD_PRELOAD": str(library)}
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(
            [*command, f"umid={folder.name}"],
            env=environment | {"TMPDIR": str(folder), "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(LONGEST_S)
        finally:
            # Its processes, of which only the first is a child of this one.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if status or not (folder / "output").exists():
        text = (folder / "console").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"user-mode Linux ended with {status}:\n{text[-2000:]}")
