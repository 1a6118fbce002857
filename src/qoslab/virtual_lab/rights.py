"""Capabilities of each program of a lab, which apply only to the lab, and their removal from a thread.

A program of a lab runs as its root, so it has the capabilities in its bounding set (capabilities(7)).
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Collection
from pathlib import Path

from qoslab.traffic import THIRD_PARTY_PROGRAMS
from qoslab.virtual_lab.supervisor import CAPABILITIES, libc

OTHER_PROGRAM_RIGHTS = ("dac_override", "net_bind_service", "net_admin", "net_raw")
"""Capabilities of other programs: a shell on a host, `ip`, arguments of `lab exec`."""
PROGRAMS: dict[str, tuple[str, ...]] = {
    # For congestion controls that the machine keeps from its users.
    **dict.fromkeys(THIRD_PARTY_PROGRAMS, ("net_bind_service", "net_admin")),
    "cat": (),
    # For root of the machine, which writes captures into folders of all owners; dumpcap keeps the others or complains.
    "dumpcap": ("dac_override", "net_admin", "net_raw"),
    # For buffers beyond the machine's limit, and for all ports at once.
    "flood": ("net_bind_service", "net_admin", "net_raw"),
    "ping": ("net_raw",),
    "sla": ("net_bind_service", "net_raw"),
}
"""Capabilities of qoslab's programs, by name."""
NAMESPACE_RIGHTS = ("net_admin", "net_raw", "sys_ptrace", "sys_admin")
"""Capabilities for work in namespaces, named by descriptors of process 1.

One thread of the routers' command lines has them.
"""
LOGIN_RIGHTS = ("dac_override",)
"""Capabilities of the other threads for logins: Python modules may be files of any owner."""
DAEMONS = {
    "data plane": (*OTHER_PROGRAM_RIGHTS, "sys_ptrace", "sys_admin"),
    "command lines": (*LOGIN_RIGHTS, *NAMESPACE_RIGHTS),
    # It enters namespaces and creates new ones for trials; a user-mode kernel traces its own processes.
    "kernel": (*OTHER_PROGRAM_RIGHTS, "sys_ptrace", "sys_admin"),
    # They act as machines for users that log in.
    "hosts": (*OTHER_PROGRAM_RIGHTS, "sys_ptrace", "sys_admin"),
}
"""Capabilities of the daemons of a lab at their start.

A data plane gives up sys_ptrace as soon as it has its namespaces.
"""

_VERSION = 0x20080522
"""Version of the interface of capset(2): three sets of 64 capabilities, lower halves first."""


def bounding_prefix(argv0: str) -> list[str]:
    """Return the command prefix that limits a program and its children to its capabilities."""
    allowed = PROGRAMS.get(Path(argv0).name, OTHER_PROGRAM_RIGHTS)
    return ["setpriv", "--bounding-set=" + ",".join(["-all", *(f"+{name}" for name in allowed)]), "--no-new-privs"]


def keep(allowed: Collection[str]) -> None:
    """Restrict this thread, and all threads that it starts from now on, to these capabilities."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", _VERSION, 0))
    data = ctypes.create_string_buffer(24)
    _check(libc.capget(header, data))
    effective, permitted, _, *upper = struct.unpack("=6I", data.raw)
    wanted = sum(1 << CAPABILITIES[name] for name in allowed)
    low, high = wanted & 0xFFFFFFFF, wanted >> 32
    lower_sets, upper_sets = (effective & low, permitted & low, 0), (upper[0] & high, upper[1] & high, 0)
    _check(libc.capset(header, struct.pack("=6I", *lower_sets, *upper_sets)))


def _check(result: int) -> None:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot give up capabilities: {os.strerror(number)}")
