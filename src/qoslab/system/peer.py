"""Owner of a TCP connection over the loopback interface, and a listening socket for connections of one user."""

from __future__ import annotations

import errno
import functools
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

TABLE = Path("/proc/self/net/tcp")
"""The kernel's list of TCP sockets, world-readable: local and remote address in its byte order, and owner."""
_LOCAL, _REMOTE, _OWNER_COLUMN, _INODE = 1, 2, 7, 9
"""Columns of the table (proc_pid_net(5))."""
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, _NLMSG_ERROR = 4, 20, 1, 2
_REQUEST = struct.Struct("=IHHII BBBBI HH16s16sIII".replace(" ", ""))
"""`nlmsghdr` and `inet_diag_req_v2` (sock_diag(7)); the ports are in network byte order, here as byte strings."""
_ANSWER = struct.Struct("=BBBB 2s2s16s16sIII IIIII".replace(" ", ""))
"""`inet_diag_msg`."""
_HEADER = 16
_ANY_STATE = 0xFFFFFFFF
_UNKNOWN_COOKIE = 0xFFFFFFFF
MAX_FOREIGN_CONNECTIONS = 200
"""Maximum number of connections of other users that a listening socket refuses before it returns control to its
process.
"""
BACKLOG = 4096


def _table_address(address: tuple[Any, ...]) -> str:
    """Return an IPv4 address and port in the form of the table."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"


def _query_owner(local: tuple[Any, ...], remote: tuple[Any, ...]) -> int | None:
    """Return the owner of the TCP socket with these addresses; None if there is none, or no process has it open any
    more.

    Raise `OSError` if the kernel does not answer.
    """
    ports = [socket.htons(each[1]) for each in (local, remote)]
    addresses = [socket.inet_aton(each[0]) for each in (local, remote)]
    request = _REQUEST.pack(
        *(_REQUEST.size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0),
        *(
            socket.AF_INET,
            socket.IPPROTO_TCP,
            0,
            0,
            _ANY_STATE,
            *ports,
            *addresses,
            0,
            _UNKNOWN_COOKIE,
            _UNKNOWN_COOKIE,
        ),
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.sendto(request, (0, 0))
        answer = kernel.recv(4096)
    kind = struct.unpack_from("=H", answer, 4)[0]
    if kind == _NLMSG_ERROR:
        number = -struct.unpack_from("=i", answer, _HEADER)[0]
        if number == errno.ENOENT:
            return None
        raise OSError(number, os.strerror(number))
    found = _ANSWER.unpack_from(answer, _HEADER)
    port, owner, inode = found[5], found[-2], found[-1]
    # Without that connection the kernel finds the listening socket; inode 0 is a socket without a process.
    if port != struct.pack("!H", remote[1]) or not inode:
        return None
    return int(owner)


@functools.cache
def _supports_queries() -> bool:
    """Return whether the kernel supports queries for a single socket, which need a module (CONFIG_INET_TCP_DIAG)."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.create_connection(listener.getsockname()) as caller,
        ):
            return _query_owner(caller.getsockname(), caller.getpeername()) == os.geteuid()
    except OSError:
        return False


def _search_owner(local: tuple[Any, ...], remote: tuple[Any, ...]) -> int | None:
    """Return the owner from the list of all sockets, which takes longer than `_query_owner`."""
    here, there = _table_address(local), _table_address(remote)
    for line in TABLE.read_text(encoding="ascii").splitlines()[1:]:
        # A cheap check first: the table may be long.
        if here in line and there in line:
            fields = line.split()
            if fields[_LOCAL] == here and fields[_REMOTE] == there and fields[_INODE] != "0":
                return int(fields[_OWNER_COLUMN])
    return None


def owner_of_peer(connection: Any) -> int | None:
    """Return the user id of the other end of a connection from this machine; None if no process has it open any more.

    `connection` has `getsockname` and `getpeername`, as sockets do. The id is that of this process's user namespace, in
    which all unknown users have the same id.
    """
    try:
        ours, theirs = connection.getsockname(), connection.getpeername()
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            return None
        raise
    return (_query_owner if _supports_queries() else _search_owner)(theirs, ours)


def is_own_peer(connection: Any) -> bool:
    """Return whether the other end belongs to the user of this process."""
    try:
        return owner_of_peer(connection) == os.geteuid()
    except OSError as error:
        print(f"cannot determine the owner of a connection: {error}", file=sys.stderr, flush=True)
        return False


class OwnListener(socket.socket):
    """A listening socket that closes connections of other users at once and cheaply, so that they cannot delay this
    user's logins.
    """

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection of this user. Raise `BlockingIOError` if there is none now."""
        for _ in range(MAX_FOREIGN_CONNECTIONS):
            connection, address = super().accept()
            if is_own_peer(connection):
                return connection, address
            # A reset, so that the kernel keeps no state.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        raise BlockingIOError


def open_own_listener(address: str, port: int) -> OwnListener:
    """Return a socket that listens for this user; port 0 selects a free port."""
    listener = OwnListener(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
