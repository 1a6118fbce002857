"""The Linux kernel's traffic control as a peer: user-mode Linux in virtual time (`virtual_clock.c`).

Time stands still while the guest works and jumps to the next timer when it is idle: results do not depend on the
machine's load.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
from peer_programs import compile_program, package_version, require_programs

from qoslab.tc.user_mode_linux import MODULES, UserModeKernel

PACKET = np.dtype([("time", "<u8"), ("bytes", "<u4"), ("class", "<u4")])
TIMES = np.dtype([("sent", "<u8"), ("arrived", "<u8")])
TIME_LIMIT_S = 900
"""Longest time of a guest, on the clock of the machine."""
WITHOUT_IPV6 = ("kernel/net/sched/", "kernel/drivers/net/veth.ko")
"""Modules of the peers' guests without IPv6: neighbour discovery would add packets to the stream."""
JOB = "/run/job"
"""Folder of a kernel, in its guest."""
LINKS = """link add out0 mtu {mtu} type veth peer name in0 mtu {mtu}
link set out0 up
link set in0 up
"""


def version() -> str:
    """Return the version of the package with the kernel."""
    require_programs("tc", "ip", "gcc", "setpriv")
    return package_version("user-mode-linux")


def program() -> Path:
    """Build the program of the guest."""
    return compile_program("guest.c", "gcc", ["-O2"])


def virtual_clock() -> Path:
    """Build the library that gives a user-mode kernel its clock."""
    return compile_program("virtual_clock.c", "gcc", ["-O2", "-shared", "-fPIC"])


@contextmanager
def virtual_kernel(modules: Sequence[str] = MODULES, memory: str = "384M") -> Iterator[UserModeKernel]:
    """Yield a user-mode kernel in virtual time."""
    clock = os.memfd_create("clock")
    try:
        os.write(clock, b"0")
        shared = f"/proc/{os.getpid()}/fd/{clock}"
        ends_with_parent = ("setpriv", "--pdeathsig", "KILL")
        prefix = (*ends_with_parent, "env", f"QOSLAB_VIRTUAL_CLOCK={shared}", f"LD_PRELOAD={virtual_clock()}")
        with UserModeKernel(modules=modules, memory=memory, prefix=prefix) as kernel:
            os.pwrite(clock, b"1", 0)
            yield kernel
    finally:
        os.close(clock)


Job = tuple[Sequence[str], npt.NDArray[np.void], int]
"""Lines of `tc`, packets, and the end of the stream (ns)."""


def send_frames(jobs: Sequence[Job], *, mtu: int = 2000) -> list[npt.NDArray[np.void]]:
    """Send packets through queueing disciplines of `out0`, set up by lines of `tc`, and return their times (ns).

    `out0` and `in0` are the two ends of a virtual Ethernet (veth), new for each job; one kernel does all jobs, one
    after the other. The times count from the start of the guest's program; arrivals at `in0` are 0 if a packet never
    arrived.
    """
    version()
    found = []
    with virtual_kernel(WITHOUT_IPV6) as kernel:
        for number, (commands, packets, end_ns) in enumerate(jobs):
            # New names: the guest may have the pages of an earlier file in its memory.
            names = f"packets-{number}", f"times-{number}"
            given, written = (kernel.folder / name for name in names)
            packets.astype(PACKET).tofile(given)
            kernel.run(["ip", "-batch", "-"], input=LINKS.format(mtu=mtu)).check()
            kernel.run(["tc", "-batch", "-"], input="".join(f"{line}\n" for line in commands)).check()
            sends = [str(program()), *(f"{JOB}/{name}" for name in names), "out0", "in0", str(end_ns)]
            # The limit of the guest is in virtual time.
            kernel.run(sends, timeout_s=TIME_LIMIT_S + end_ns / 1e9).check()
            kernel.run(["ip", "link", "delete", "out0"]).check()
            found.append(np.fromfile(written, TIMES))
            given.unlink(), written.unlink()
    return found
