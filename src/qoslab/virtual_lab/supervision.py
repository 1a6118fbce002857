"""Client side of a lab's supervisor: start and requests. The server side is `qoslab.virtual_lab.supervisor`."""

from __future__ import annotations

import array
import contextlib
import errno
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qoslab.errors import SHORTAGES, MachineError, QoslabError, UserError
from qoslab.system.programs import describe_exit
from qoslab.virtual_lab.netlink import NetlinkNamespace
from qoslab.virtual_lab.supervisor import PACKET_LIMIT

START = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import supervisor; supervisor.main()"
"""Command that starts the supervisor: as a compiled module, without this package's imports."""
TIMEOUT = 30.0
"""Time limit of one request, in seconds; the slowest, ninety namespaces on a busy machine, takes well under one."""
END_TIMEOUT_S = 5.0
"""Time limit for the launcher to end after its supervisor, in seconds."""
KILL_TIMEOUT_S = 30.0
"""Time limit for killed processes to disappear, in seconds; ninety namespaces on a busy machine take three."""
SOCKETS_PER_REQUEST = 100
"""Namespaces per `sockets` request: the kernel passes at most 253 descriptors in one message."""


class LabError(QoslabError):
    """Failure of the lab itself: its supervisor refused a request or is gone."""


class LabMachineError(LabError, MachineError):
    """Failure of the lab because of the machine: it killed a process, or is out of a resource."""


class SupervisorClient:
    """Connection to a supervisor. Requests may come from any thread."""

    def __init__(self, channel: socket.socket, pid: int, *, launcher: subprocess.Popen[bytes] | None = None) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._launcher = launcher
        self.pid = pid
        """Process id in the machine's numbering."""
        self.pidfd = os.pidfd_open(pid)

    @classmethod
    def start(cls, name: str, *, owned: bool) -> SupervisorClient:
        """Start a lab's supervisor; with `owned` the lab ends with this process.

        Raise `MachineError` if the kernel forbids it, `UserError` if this user has a lab of that name.
        """
        try:
            return cls._start(name, owned=owned, user_namespace=True)
        except MachineError:
            if os.geteuid() != 0:
                raise
            # Root needs no user namespace; some kernels and containers forbid one.
            return cls._start(name, owned=owned, user_namespace=False)

    @classmethod
    def _start(cls, name: str, *, owned: bool, user_namespace: bool) -> SupervisorClient:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(TIMEOUT)
        with theirs:
            descriptor = theirs.fileno()
            arguments = [name, descriptor, os.geteuid(), os.getpid() if owned else 0, int(user_namespace)]
            launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", START, *map(str, arguments)],
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # Ctrl-C in the terminal reaches the run, which still needs the lab to restore devices.
                start_new_session=True,
                cwd="/",
            )
        try:
            reply = _first_reply(ours, launcher)
            if reply.get("stage") == "map" and reply["ok"]:
                _map_ids(launcher.pid)
                ours.send(b"mapped")
                reply = _first_reply(ours, launcher)
            if not reply["ok"]:
                raise _start_error(name, reply)
            return cls(ours, reply["pid"], launcher=launcher)
        except BaseException:
            ours.close()
            launcher.kill()
            launcher.communicate()
            raise

    @classmethod
    def connect(cls, pid: int) -> SupervisorClient:
        """Connect to a running supervisor."""
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        channel.settimeout(TIMEOUT)
        try:
            channel.connect(f"/proc/{pid}/root/run/qoslab/supervisor.sock")
            return cls(channel, pid)
        except OSError as error:
            channel.close()
            raise LabError(f"process {pid} is not a reachable lab: {error}") from error

    @property
    def runtime(self) -> Path:
        """The lab's /run/qoslab as a path for this process."""
        return Path(f"/proc/{self.pid}/root/run/qoslab")

    @property
    def user_namespace(self) -> bool:
        """True if the lab has its own user namespace."""
        return not Path(f"/proc/{self.pid}/ns/user").samefile("/proc/self/ns/user")

    def request(self, op: str, **keys: Any) -> dict[str, Any]:
        """Send one request. Raise `LabError` if it fails or the supervisor is gone."""
        return self._request(op, keys, 0)[0]

    def _request(self, op: str, keys: Mapping[str, Any], descriptors: int) -> tuple[dict[str, Any], list[int]]:
        room = socket.CMSG_SPACE(descriptors * array.array("i").itemsize) if descriptors else 0
        with self._lock:
            try:
                self._channel.send(json.dumps({"op": op, **keys}).encode())
                packet, ancillary, _, _ = self._channel.recvmsg(PACKET_LIMIT, room, socket.MSG_CMSG_CLOEXEC)
            except OSError as error:
                # A broken connection is the first sign of its end.
                raise self._supervisor_exit_error(
                    f"does not answer: {error}", wait=not isinstance(error, TimeoutError)
                ) from error
        if not packet:
            raise self._supervisor_exit_error("has ended", wait=True)
        received = array.array("i")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received.frombytes(data)
        reply = json.loads(packet)
        if not reply["ok"]:
            failure = LabMachineError if reply["errno"] in SHORTAGES else LabError
            hint = NAMESPACES_HINT if op == "create" and reply["errno"] == errno.ENOSPC else ""
            raise failure(f"the lab's supervisor refused {op}: {reply['error']}", hint=hint)
        return reply, list(received)

    def _supervisor_exit_error(self, seen: str, *, wait: bool) -> LabError:
        """Return the error for the end of a supervisor that this process started, if it has ended, else for `seen`."""
        kind: type[LabError] = LabError
        how = seen
        if self._launcher is not None and select.select([self.pidfd], [], [], END_TIMEOUT_S if wait else 0)[0]:
            how = "has ended"
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self._launcher.wait(END_TIMEOUT_S)
                status = 128 - status if status > 128 else status
                kind, how = LabMachineError if status < 0 else LabError, describe_exit(status)
        return kind(f"its supervisor (process {self.pid}) {how}")

    def namespaces(self, names: Sequence[str]) -> dict[str, NetlinkNamespace]:
        """Open namespaces for netlink requests; close each when done."""
        opened: dict[str, NetlinkNamespace] = {}
        for start in range(0, len(names), SOCKETS_PER_REQUEST):
            chunk = names[start : start + SOCKETS_PER_REQUEST]
            _, descriptors = self._request("sockets", {"namespaces": chunk}, 2 * len(chunk))
            if len(descriptors) != 2 * len(chunk):
                for descriptor in descriptors:
                    os.close(descriptor)
                raise MachineError(
                    f"this process may not open {2 * len(chunk)} more files (limit: ulimit -n)",
                    hint="Raise the limit: ulimit -n 4096",
                )
            for number, name in enumerate(chunk):
                route = socket.socket(fileno=descriptors[2 * number + 1])
                route.settimeout(TIMEOUT)
                opened[name] = NetlinkNamespace(name, descriptors[2 * number], route)
        return opened

    def stop(self) -> None:
        """Kill the lab and wait until all of its processes have ended.

        A process without its parent outside is collected by the first process of that machine. If that fails, as in a
        container without an init, the kernel keeps the rest of the lab until the container ends; the wait ends after
        `KILL_TIMEOUT_S`.
        """
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        if self._launcher is not None:
            try:
                self._launcher.communicate(timeout=KILL_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._launcher.kill()
                self._launcher.communicate()
        else:
            poll = select.poll()
            poll.register(self.pidfd, select.POLLIN)
            poll.poll(KILL_TIMEOUT_S * 1000)
        self.close()

    def close(self) -> None:
        """Close the connection; the lab continues."""
        self._channel.close()
        with contextlib.suppress(OSError):
            os.close(self.pidfd)


def _first_reply(channel: socket.socket, launcher: subprocess.Popen[bytes]) -> dict[str, Any]:
    packet = channel.recv(PACKET_LIMIT)
    if packet:
        reply: dict[str, Any] = json.loads(packet)
        return reply
    _, talk = launcher.communicate()
    raise LabError(f"the lab's supervisor ended while starting: {talk.decode(errors='replace').strip()}")


def _map_ids(pid: int) -> None:
    """Write the maps of the user namespace: root is mapped to all of root's ids, another user to the lab's root."""
    process = Path(f"/proc/{pid}")
    try:
        if os.geteuid() == 0:
            # Files of all owners stay accessible; the capabilities are still confined to the lab.
            for kind in ("uid_map", "gid_map"):
                ranges = [line.split() for line in Path(f"/proc/self/{kind}").read_text(encoding="utf-8").splitlines()]
                (process / kind).write_text("".join(f"{first} {first} {count}\n" for first, _, count in ranges))
        else:
            (process / "setgroups").write_text("deny")
            (process / "uid_map").write_text(f"0 {os.geteuid()} 1")
            (process / "gid_map").write_text(f"0 {os.getegid()} 1")
    except OSError as error:
        hint = _forbidden_hint("map", error.errno)
        raise MachineError(
            f"this machine does not allow its users to map a user namespace: {error}", hint=hint
        ) from error


APPARMOR_PROFILE = Path(__file__).with_name("apparmor-profile")
"""AppArmor profile for Ubuntu 23.10 and later, on which user namespaces require a profile of the program."""
HINT = (
    f"Allow user namespaces, as root. On Ubuntu 23.10 and later: cp {shlex.quote(str(APPARMOR_PROFILE))} "
    "/etc/apparmor.d/qoslab; apparmor_parser -r /etc/apparmor.d/qoslab (it lists the permissions that it grants), or "
    "for all programs "
    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0. Elsewhere: sysctl -w user.max_user_namespaces=10000; on "
    "Debian also sysctl -w kernel.unprivileged_userns_clone=1. Or run qoslab as root."
)
NAMESPACES_HINT = (
    "End labs that are not needed (`qoslab lab list`), or allow more network namespaces, as root: "
    "sysctl -w user.max_net_namespaces=10000"
)
CONTAINER_HINT = (
    "A container has to allow namespaces and must not mask /proc: with Docker add "
    "--security-opt systempaths=unconfined --security-opt seccomp=unconfined --security-opt apparmor=unconfined; "
    "with Podman --security-opt unmask=ALL."
)
CONTAINER_ROOT_HINT = (
    "If they are set, the host itself does not let its users create user namespaces: as root, outside, sysctl -w "
    "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, kernel.unprivileged_userns_clone=1 on Debian."
)
"""Hint for users other than root, in a container."""
CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman create in a container."""


def _forbidden_hint(stage: str, number: int | None) -> str:
    """Return the hint for a forbidden stage."""
    if os.geteuid() == 0 or stage.startswith("mount /proc"):
        return CONTAINER_HINT
    inside = "container" in os.environ or any(mark.exists() for mark in CONTAINER_MARKS)
    # The kernel limits their number inside and outside alike.
    return f"{CONTAINER_HINT} {CONTAINER_ROOT_HINT}" if inside and number not in (errno.ENOSPC, errno.EUSERS) else HINT


def _start_error(name: str, reply: Mapping[str, Any]) -> QoslabError:
    """Return the error for a failed stage."""
    if reply["stage"] == "name" and reply["errno"] == errno.EADDRINUSE:
        return UserError(
            f"you already have a lab called {name}",
            hint=f"Choose another --name, or end it with `qoslab lab down {name}`.",
        )
    if reply["stage"] == "name" and reply["errno"] == errno.EBUSY:
        return MachineError(f"another user of this machine has a lab called {name}", hint="Choose another --name.")
    if reply["errno"] in (errno.EPERM, errno.EACCES, errno.ENOSPC, errno.EINVAL, errno.EUSERS):
        hint = _forbidden_hint(reply["stage"], reply["errno"])
        return MachineError(f"this machine does not let this user start a lab: {reply['error']}", hint=hint)
    return LabError(f"the lab did not start: {reply['error']}")
