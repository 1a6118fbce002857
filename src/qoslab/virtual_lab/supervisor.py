"""Supervisor of a lab: process 1 of its PID namespace, owner of every network namespace.

Runs by itself under `python -I -S` and imports the standard library only, so that a lab is up within milliseconds. Its
arguments: NAME REQUEST_FD OUTER_UID OWNER_PID|0 USER_NAMESPACE(0|1).

Two processes run this file. The launcher enters new user, mount and PID namespaces, forks, and waits: it ends the lab
when the owner (the process of a run) ends, however that happens. It watches the owner through a pidfd and not through
PR_SET_PDEATHSIG, which fires when the *thread* that started the lab ends. Its child is the supervisor proper, which
dies with the launcher, and with which the kernel kills every process of the lab and drops the namespaces.

Requests are JSON objects, one per packet (SOCK_SEQPACKET), on REQUEST_FD and on /run/qoslab/supervisor.sock:

| op | keys | reply |
|---|---|---|
| `create` | `namespaces`: [{name, sysctls}] | `handles`: {name: descriptor number in the supervisor} |
| `sockets` | `namespaces`: [name], at most 100 | descriptors, per name: the namespace, a NETLINK_ROUTE socket in it |
| `sysctl` | `namespace`, `write`: {key: value}, `read`: [key] | `values`: {key: value; null: unknown to the kernel} |
| `spawn` | `name`, `argv`, `capabilities`: [name], `environment`, `log` | `pid` in the lab |
| `ready` | | the lab then outlives the connection on REQUEST_FD, with which it ends while it comes up |
| `status` | | `daemons`: {name: {pid, argv, log, exit}}; exit is null while it runs, negative for a signal |

A reply has `"ok": true`, or `"ok": false` with `error` and `errno`.
"""

# pathlib takes as long to import as the rest of the supervisor takes to start.
# ruff: noqa: PTH102, PTH103, PTH115, PTH120, PTH123

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Never

PROCESS_NAME = b"qoslab-lab"
"""/proc/PID/comm of the supervisor, by which labs are found."""
RUNTIME = "/run/qoslab"
PACKET_LIMIT = 1 << 18
MAX_FOREIGN_NAMES = 4096
"""Number of places for a name that other users may hold."""
MAX_NAME_OFFSET = 16
"""Number of places, after its own, in which a lab searches for another lab of its user."""
BACKLOG = 4096

Reply = tuple[dict[str, Any], Sequence[int | socket.socket]]
"""Reply message, and the descriptors sent with it."""

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x8, 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_NAME, PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 15, 23, 24, 38
CAPABILITIES = {
    "dac_override": 1,  # Root of the machine reads files of all owners.
    "net_bind_service": 10,
    "net_admin": 12,  # Addresses, routes, offloads.
    "net_raw": 13,  # Packet sockets of the data planes, ping.
    "sys_ptrace": 19,  # Descriptors of process 1, which name namespaces.
    "sys_admin": 21,  # Namespaces of the routers' IP stacks.
}
"""Capabilities that programs of the lab can have, only over the lab: names and numbers (capabilities(7)).

`qoslab.virtual_lab.rights` defines the capabilities of each program.
"""
END_CHECK_INTERVAL_S = 0.05
"""Seconds between checks of obstacles to the end of a lab, which usually takes a few milliseconds."""
RUN_BYTES = 256 * 2**20
"""Size of a lab's /run in memory, in bytes: sockets, configurations, logs of daemons."""
SIOCSIFFLAGS, IFF_UP, IFF_LOOPBACK, IFF_RUNNING = 0x8914, 0x1, 0x8, 0x40

libc = ctypes.CDLL(None, use_errno=True)


class StageError(OSError):
    """Failed step of creating the lab's own namespaces; `stage` is its name."""

    def __init__(self, stage: str, number: int) -> None:
        super().__init__(number, f"{stage}: {os.strerror(number)}")
        self.stage = stage


def check(stage: str, result: int) -> None:
    """Raise an exception if the result of a C call is -1."""
    if result == -1:
        raise StageError(stage, ctypes.get_errno())


def give_up_rights(allowed: Iterable[str]) -> None:
    """Restrict the programs that this thread starts to these capabilities, with no way to regain others."""
    kept = {CAPABILITIES[name] for name in allowed}
    capability = 0
    while (held := libc.prctl(PR_CAPBSET_READ, capability, 0, 0, 0)) >= 0:
        if held and capability not in kept:
            check("capabilities", libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
        capability += 1
    check("no new privileges", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Call mount(2)."""
    encoded = [None if text is None else text.encode() for text in (source, target, kind, data)]
    check(f"mount {target}", libc.mount(*encoded[:3], ctypes.c_ulong(flags), encoded[3]))


def send(channel: socket.socket, message: Mapping[str, Any], descriptors: Iterable[int] = ()) -> None:
    """Send one packet, with descriptors."""
    rights = array.array("i", descriptors)
    channel.sendmsg([json.dumps(message).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if rights else [])


def call_in_namespace(descriptor: int | None, work: Callable[[], Any]) -> Any:
    """Call `work` with this network namespace as the current one.

    This uses a separate thread, because the supervisor has to return to the machine's network namespace, which a
    process of an unprivileged user namespace cannot enter.
    """
    outcome: dict[str, Any] = {}

    def body() -> None:
        try:
            if descriptor is not None:
                check("setns", libc.setns(descriptor, CLONE_NEWNET))
            outcome["result"] = work()
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome.get("result")


def sysctl_path(key: str) -> str:
    """Return the file of a setting, such as net.ipv4.conf.all.rp_filter.

    As in sysctl(8), a `/` stands for a dot in the name of an interface.
    """
    return "/proc/sys/" + key.translate(str.maketrans("./", "/."))


def write_sysctls(values: Mapping[str, str | int]) -> None:
    """Write settings of the current network namespace."""
    for key, value in values.items():
        try:
            descriptor = os.open(sysctl_path(key), os.O_WRONLY)
            try:
                os.write(descriptor, str(value).encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise OSError(error.errno, f"sysctl {key}={value}: {error.strerror}") from error


def read_sysctl(key: str) -> str | None:
    """Return a setting of the current network namespace, blanks normalised; None if the kernel lacks it."""
    try:
        with open(sysctl_path(key), encoding="utf-8") as file:
            return " ".join(file.read().split())
    except FileNotFoundError:
        return None


class Supervisor:
    """Server in process 1 of the lab."""

    def __init__(self, channel: socket.socket) -> None:
        self.namespaces: dict[str, int] = {}
        self.daemons: dict[str, dict[str, Any]] = {}
        self.poll = select.poll()
        self.clients: dict[int, socket.socket] = {}
        self.starter: socket.socket | None = channel
        self.add_client(channel)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(RUNTIME + "/supervisor.sock")
        self.listener.listen(16)
        self.poll.register(self.listener, select.POLLIN)
        self.wakeup, write_end = socket.socketpair()
        self.wakeup.setblocking(False)
        write_end.setblocking(False)
        self.wakeup_end = write_end  # Keeps the descriptor open.
        signal.set_wakeup_fd(write_end.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        self.poll.register(self.wakeup, select.POLLIN)

    def add_client(self, channel: socket.socket) -> None:
        """Accept requests from one more connection."""
        self.clients[channel.fileno()] = channel
        self.poll.register(channel, select.POLLIN)

    def serve(self) -> Never:
        """Answer requests and collect dead processes, until killed or abandoned before the lab was complete."""
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor == self.wakeup.fileno():
                    self.wakeup.recv(4096)
                    self.reap()
                elif descriptor == self.listener.fileno():
                    self.add_client(self.listener.accept()[0])
                else:
                    self.answer(self.clients[descriptor])

    def reap(self) -> None:
        """Collect every dead process, including orphans that process 1 inherits."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for daemon in self.daemons.values():
                if daemon["pid"] == pid:
                    daemon["exit"] = os.waitstatus_to_exitcode(status)

    def answer(self, channel: socket.socket) -> None:
        """Read one request and answer it; remove a connection that has ended."""
        try:
            packet = channel.recv(PACKET_LIMIT)
            if not packet:
                raise ConnectionResetError
            reply: dict[str, Any]
            descriptors: Sequence[int | socket.socket]
            try:
                request = json.loads(packet)
                reply, descriptors = getattr(self, "op_" + request.pop("op"))(**request)
                reply["ok"] = True
            except Exception as error:
                number = error.errno if isinstance(error, OSError) else None
                text = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
                reply, descriptors = {"ok": False, "error": text, "errno": number}, []
            send(channel, reply, (item if isinstance(item, int) else item.fileno() for item in descriptors))
        except OSError:
            if channel is self.starter:
                os._exit(0)
            self.poll.unregister(channel)
            del self.clients[channel.fileno()]
            channel.close()

    def op_create(self, namespaces: list[dict[str, Any]]) -> Reply:
        """Create network namespaces with these settings, and with their loopback up."""

        def work() -> None:
            for item in namespaces:
                name = item["name"]
                if name in self.namespaces:
                    raise OSError(errno.EEXIST, f"the network namespace {name} already exists")
                check("new network namespace", libc.unshare(CLONE_NEWNET))
                self.namespaces[name] = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                    flags = struct.pack("16sH14x", b"lo", IFF_UP | IFF_LOOPBACK | IFF_RUNNING)
                    fcntl.ioctl(control, SIOCSIFFLAGS, flags)
                write_sysctls(item["sysctls"])

        call_in_namespace(None, work)
        return {"handles": self.namespaces}, []

    def op_sockets(self, namespaces: list[str]) -> Reply:
        """Return descriptors of the namespaces and of a netlink socket in each."""

        descriptors: list[int | socket.socket] = []

        def work() -> None:
            for name in namespaces:
                check("setns", libc.setns(self.namespaces[name], CLONE_NEWNET))
                route = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
                descriptors.extend((self.namespaces[name], route))

        call_in_namespace(None, work)
        return {}, descriptors

    def op_sysctl(self, namespace: str, write: dict[str, str | int], read: list[str]) -> Reply:
        """Write, then read settings of a namespace."""

        def work() -> dict[str, str | None]:
            write_sysctls(write)
            return {key: read_sysctl(key) for key in read}

        return {"values": call_in_namespace(self.namespaces[namespace], work)}, []

    def op_spawn(
        self, name: str, argv: list[str], capabilities: list[str], environment: dict[str, str], log: str
    ) -> Reply:
        """Start a daemon limited to these capabilities; its output goes to a log file."""
        if name in self.daemons and self.daemons[name]["exit"] is None:
            raise OSError(errno.EEXIST, f"{name} is already running")
        os.makedirs(os.path.dirname(log), exist_ok=True)
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]

        def work() -> int:
            # A child inherits the bounding set of the thread that starts it.
            give_up_rights(capabilities)
            return os.posix_spawnp(
                argv[0],
                argv,
                environment,
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD],
            )

        pid = call_in_namespace(None, work)
        self.daemons[name] = {"pid": pid, "argv": argv, "log": log, "exit": None}
        return {"pid": pid}, []

    def op_end(self, name: str, within_s: float) -> Reply:
        """Ask a daemon to end and wait for it, at most `within_s`."""
        if self.daemons[name]["exit"] is None:
            # Not collected yet, so the process id is still valid.
            descriptor = os.pidfd_open(self.daemons[name]["pid"])
            try:
                signal.pidfd_send_signal(descriptor, signal.SIGTERM)
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                poll.poll(within_s * 1000)
            finally:
                os.close(descriptor)
        return {}, []

    def op_ready(self) -> Reply:
        """Outlive the starter's connection: the lab is complete and can be found."""
        self.starter = None
        return {}, []

    def op_status(self) -> Reply:
        """Return the state of the daemons."""
        self.reap()
        return {"daemons": self.daemons}, []


def claim_name(name: str) -> socket.socket:
    """Return a socket that holds an abstract name, which disappears with its process.

    Any user of the machine can hold any abstract name. If another user holds the name, the first free one of `NAME/1`,
    `NAME/2` and so on is used instead. Raise `StageError` with `EADDRINUSE` if a lab of this user holds one.
    """
    for place in range(MAX_FOREIGN_NAMES):
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            lock.bind(_name_address(name, place))
        except OSError as error:
            lock.close()
            if error.errno != errno.EADDRINUSE or _is_mine(_name_address(name, place)):
                raise StageError("name", error.errno or 0) from error
            continue
        # The kernel reports the user of a listening socket.
        lock.listen(BACKLOG)
        if any(_is_mine(_name_address(name, later)) for later in range(place + 1, place + MAX_NAME_OFFSET)):
            raise StageError("name", errno.EADDRINUSE)
        return lock
    raise StageError("name", errno.EBUSY)


def _name_address(name: str, place: int) -> str:
    return f"{name}/{place}" if place else name


def _is_mine(address: str) -> bool:
    """Return whether a process of this user listens at an abstract address."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        # Do not wait for a full queue.
        caller.setblocking(False)
        try:
            caller.connect(address)
            credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return False
        return bool(struct.unpack("3i", credentials)[1] == os.geteuid())


def run_supervisor(name: str, channel: socket.socket, outer_uid: int, launcher_alive: int) -> Never:
    """Run as the supervisor."""
    check("prctl", libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if select.select([launcher_alive], [], [], 0)[0]:
        os._exit(1)  # The launcher died before the line above.
    libc.prctl(PR_SET_NAME, PROCESS_NAME, 0, 0, 0)
    outer_pid = int(os.readlink("/proc/self"))  # /proc is still that of the machine.
    lock = claim_name(f"\0qoslab/{outer_uid}/{name}")  # noqa: F841 (held as long as the process)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=0755,size={RUN_BYTES}")
    os.mkdir(RUNTIME, 0o700)
    give_up_rights(CAPABILITIES)
    supervisor = Supervisor(channel)
    send(channel, {"ok": True, "pid": outer_pid})
    supervisor.serve()


def launch(name: str, channel: socket.socket, outer_uid: int, owner: int, user_namespace: bool) -> None:
    """Enter the lab's namespaces, start the supervisor, and end it when the owner ends."""
    watched: dict[str, int] = {}
    if owner:
        watched["owner"] = os.pidfd_open(owner)
        if os.getppid() != owner:
            sys.exit("the owner process ended before its lab was up")
    if user_namespace:
        check("user namespace", libc.unshare(CLONE_NEWUSER))
        send(channel, {"ok": True, "stage": "map"})
        if not channel.recv(64):
            sys.exit(1)
    check("mount and PID namespaces", libc.unshare(CLONE_NEWNS | CLONE_NEWPID))
    alive_read, alive_write = os.pipe()
    # The kernel closes it before it waits for the other processes of the lab; the supervisor then counts as ended.
    lab_read, lab_write = os.pipe()
    # The supervisor mounts its own /proc over this one.
    machine = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if child == 0:
        for descriptor in (machine, alive_write, lab_read):
            os.close(descriptor)
        try:
            run_supervisor(name, channel, outer_uid, alive_read)
        except StageError as error:
            report(channel, error)
        os._exit(1)
    channel.close()
    os.close(lab_write)
    lab = os.pidfd_open(child)
    watched["lab"] = lab_read
    poll = select.poll()
    for descriptor in watched.values():
        poll.register(descriptor, select.POLLIN)
    poll.poll()
    # In either case, the lab must end before this process. The kernel lets process 1 of a PID
    # namespace be waited for only when all other processes of the namespace are dead.
    signal.pidfd_send_signal(lab, signal.SIGKILL)
    while not select.select([lab], [], [], END_CHECK_INTERVAL_S)[0]:
        continue_nsenter(machine)
    _, status = os.waitpid(child, 0)
    # Exit status for the starter of the lab, like that of a shell: 128 plus the number of a signal.
    ended = os.waitstatus_to_exitcode(status)
    sys.exit(ended if ended >= 0 else 128 - ended)


def continue_nsenter(machine: int) -> None:
    """Continue stopped `nsenter` processes of the lab, which do not collect their children and so block its end.

    `machine` is the machine's /proc. An `nsenter` is outside the lab's PID namespace and its children are inside.
    """
    own = os.stat("self/ns/pid_for_children", dir_fd=machine)
    for name in filter(str.isdigit, os.listdir(machine)):
        try:
            # Processes of other users, and processes that have just ended, cannot be examined.
            if int(name) != os.getpid() and os.stat(f"{name}/ns/pid_for_children", dir_fd=machine).st_ino == own.st_ino:
                os.kill(int(name), signal.SIGCONT)
        except OSError:
            continue


def report(channel: socket.socket, error: StageError) -> None:
    """Report the failed stage to the starter."""
    send(channel, {"ok": False, "stage": error.stage, "errno": error.errno, "error": str(error)})


def main() -> None:
    """Read the arguments and start."""
    name, request_fd, outer_uid, owner, user_namespace = sys.argv[1:]
    channel = socket.socket(fileno=int(request_fd))
    channel.set_inheritable(False)
    try:
        launch(name, channel, int(outer_uid), int(owner), user_namespace == "1")
    except StageError as error:
        report(channel, error)
        sys.exit(1)
