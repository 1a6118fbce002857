"""Owner of a TCP connection over the loopback interface."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

TABLE = Path("/proc/self/net/tcp")
"""The kernel's list of TCP sockets: world-readable, local address and remote address in its own byte order, owner."""
_LOCAL, _REMOTE, _OWNER = 1, 2, 7
"""Columns of the table (proc_pid_net(5))."""


def _written(address: tuple[Any, ...]) -> str:
    """An IPv4 address and port as the table has them."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"


def owner_of_peer(connection: Any) -> int | None:
    """The user id of who has the other end of a connection from this machine; None where nobody has it any more.

    `connection` has `getsockname` and `getpeername`, as sockets. The id is that of this process's user namespace: users
    that it does not know are all the same other one.
    """
    ours, theirs = _written(connection.getsockname()), _written(connection.getpeername())
    for line in TABLE.read_text(encoding="ascii").splitlines()[1:]:
        # A cheap look first: the table may be long.
        if theirs in line and ours in line:
            fields = line.split()
            if fields[_LOCAL] == theirs and fields[_REMOTE] == ours:
                return int(fields[_OWNER])
    return None


def is_own(connection: Any) -> bool:
    """Return whether the other end is this process's own user's."""
    try:
        return owner_of_peer(connection) == os.geteuid()
    except OSError as error:
        print(f"cannot determine the owner of a connection: {error}", file=sys.stderr, flush=True)
        return False
