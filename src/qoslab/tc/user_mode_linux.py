"""User-mode Linux: features that this machine's kernel lacks, without a virtual machine.

The kernel is `linux.uml` of the Debian package user-mode-linux with its modules. It needs no installation: the package
unpacked by `dpkg -x` is enough. The guest sees this machine's files, read-only, and runs this machine's programs.
Time is real time, but the guest has one processor and may stall for some milliseconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from qoslab.errors import DeviceError, MachineError
from qoslab.system.waiting import wait_until
from qoslab.tc import guest
from qoslab.tc.kernel_kinds import KernelKinds, read_module_kinds

VARIABLE = "QOSLAB_UML"
"""Environment variable with the path of linux.uml, or of the folder of the unpacked package."""
PROGRAM = "linux.uml"
MODULE_FOLDERS = ("../lib/uml/modules", "/usr/lib/uml/modules")
"""Folders of modules by release, relative to the folder of linux.uml."""
HINT = (
    "Install the Debian package user-mode-linux, or unpack it (apt-get download user-mode-linux; "
    f"dpkg -x user-mode-linux_*.deb FOLDER) and set {VARIABLE}=FOLDER."
)
BOOT_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 5.0
MEMORY = "192M"
CONSOLE_TAIL = 2000
SHARED_MEMORY = "/dev/shm"

MODULES = (
    *("kernel/net/sched/", "kernel/net/netfilter/nf_tables.ko", "kernel/net/netfilter/nft_"),
    *("kernel/drivers/net/dummy.ko", "kernel/drivers/net/ifb.ko", "kernel/drivers/net/veth.ko"),
    *("kernel/net/8021q/", "kernel/net/ipv6/ipv6.ko", "kernel/net/ipv4/tcp_"),
)
"""Default modules to load: prefixes of paths in modules.dep; missing ones are ignored."""
WATCH = """
("$@" & echo $! > "$0/pid"; wait; kill -s KILL -- "-$!"; kill -s KILL 0) &
read -r line
kill -s KILL -- "-$(cat "$0/pid")"
rm -rf -- "$0"
kill -s KILL 0
"""
"""Script of sh between this process and the kernel: when the pipe of its standard input closes, because this process
has ended in any way, it kills the kernel with its processes and removes the folder. The kernel has its own process
group; when it ends, the script ends, too."""
UNLOADED_MODULES = (
    "kernel/net/netfilter/nft_tunnel.ko",
    "kernel/net/netfilter/nft_xfrm.ko",
    "kernel/net/sched/sch_teql.ko",
)
"""Modules that are not loaded: they are unused here and depend on many others."""


@dataclass(frozen=True)
class KernelImage:
    """A user-mode kernel and its modules."""

    program: Path
    modules: Path
    """Folder that contains modules.dep."""

    @property
    def release(self) -> str:
        """The kernel's release: the name of its modules folder."""
        return self.modules.name

    def kinds(self) -> KernelKinds:
        """Return the kinds of qdiscs, filters and actions of the kernel, without starting it."""
        return read_module_kinds(self.modules)


@dataclass(frozen=True)
class Device:
    """A network device of the guest, connected to an interface of this machine."""

    name: str
    """Name in the guest."""
    interface: str
    """Interface of this machine, in the network namespace in which the kernel is started."""
    mac: str
    """Hardware address in the guest."""
    transport: str = "raw"
    """`raw`: a packet socket on any interface (needs CAP_NET_RAW); `tap`: an existing tap device."""


@dataclass(frozen=True)
class GuestResult:
    """Result of a command that ran in the guest."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    def check(self) -> str:
        """Return the standard output. Raise `DeviceError` with the command's message if its status is not 0."""
        if self.status != 0:
            message = (self.stderr or self.stdout).strip()
            raise DeviceError(f"{' '.join(self.argv)} in user-mode Linux: exit status {self.status}: {message}")
        return self.stdout


def find(environment: Mapping[str, str] = os.environ) -> KernelImage | None:
    """Return the kernel found by `QOSLAB_UML` or PATH; None if there is none. Raise `MachineError` if incomplete."""
    named = environment.get(VARIABLE)
    if named is None:
        found = shutil.which(PROGRAM, path=environment.get("PATH"))
        if found is None:
            return None
        program = Path(found)
    else:
        program = Path(named)
        if program.is_dir():
            program = program / "usr/bin" / PROGRAM
        if not os.access(program, os.X_OK):
            raise MachineError(f"{VARIABLE} is {named}: found no program {program}", hint=HINT)
    program = program.resolve()
    for folder in MODULE_FOLDERS:
        modules = sorted((program.parent / folder).resolve().glob("*/modules.dep"))
        if modules:
            return KernelImage(program, modules[-1].parent)
    raise MachineError(f"{program} has no modules in {' or '.join(MODULE_FOLDERS)}", hint=HINT)


def required_image() -> KernelImage:
    """Return the kernel. Raise `MachineError` with installation instructions if there is none."""
    image = find()
    if image is None:
        raise MachineError(f"found no user-mode Linux kernel ({PROGRAM})", hint=HINT)
    return image


def load_order(modules: Path, wanted: Sequence[str] = MODULES) -> list[str]:
    """Return the paths of these modules and of their dependencies, each after its dependencies.

    `wanted` are prefixes of paths in modules.dep; a prefix without a match is built in or does not exist.
    """
    needs: dict[str, list[str]] = {}
    for line in (modules / "modules.dep").read_text(encoding="utf-8").splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
    order: dict[str, None] = {}

    def add(path: str) -> None:
        if path not in order:
            for needed in reversed(needs[path]):
                add(needed)
            order[path] = None

    for path in needs:
        if path.startswith(tuple(wanted)) and path not in UNLOADED_MODULES:
            add(path)
    return [str(modules / path) for path in order]


class UserModeKernel:
    """A running user-mode kernel, as a context manager that stops it and removes its files on exit.

    `run` executes this machine's programs in it, as root. /run/job in the guest is `folder`, writable; /run is
    private (TMPDIR is there); everything else is read-only.
    """

    def __init__(
        self,
        devices: Sequence[Device] = (),
        *,
        image: KernelImage | None = None,
        modules: Sequence[str] = MODULES,
        memory: str = MEMORY,
        name: str = "uml",
        prefix: Sequence[str] = (),
        parent: Path | None = None,
    ) -> None:
        """Start the kernel and wait until it is ready. Raise `MachineError` if it does not start.

        `prefix` precedes its command line, such as `ip netns exec NAME`, and must pass on file descriptors. `parent` is
        the parent folder of its working folder and its memory; default: a folder in shared memory if possible.
        """
        self.image = required_image() if image is None else image
        self._folder = tempfile.TemporaryDirectory(prefix="qoslab-uml-", dir=parent or _memory_folder())
        self._number = 0
        self.folder = Path(self._folder.name)
        settings = {
            "name": name,
            "devices": [{"name": each.name, "mac": each.mac} for each in devices],
            "modules": load_order(self.image.modules, modules),
        }
        (self.folder / "guest.json").write_text(json.dumps(settings), encoding="utf-8")
        self._socket, far = socket.socketpair()
        argv = [*prefix, *self._command_line(devices, memory, far.fileno())]
        try:
            with (self.folder / "console").open("wb") as console:
                self._process = subprocess.Popen(
                    ["sh", "-c", WATCH, self._folder.name, *argv],
                    stdin=subprocess.PIPE,
                    stdout=console,
                    stderr=subprocess.STDOUT,
                    pass_fds=[far.fileno()],
                    # The guest's memory is an unnamed file in TMPDIR.
                    env={"PATH": guest.PATH, "TMPDIR": self._folder.name, "HOME": str(self.folder)},
                    start_new_session=True,
                )
        except OSError as error:
            self.close()
            raise MachineError(f"cannot start {argv[0]}: {error.strerror}") from error
        finally:
            far.close()
        try:
            state = self._receive(BOOT_TIMEOUT_S)
            if "error" in state:
                raise MachineError(f"user-mode Linux is not ready: {state['error']}\n{self.console()}")
        except BaseException:
            self.close()
            raise
        self.release: str = state["release"]
        self.refused_modules: dict[str, str] = state["refused"]

    def _command_line(self, devices: Sequence[Device], memory: str, serial: int) -> list[str]:
        vectors = [
            f"vec{number}:transport={each.transport},ifname={each.interface}" for number, each in enumerate(devices)
        ]
        return [
            str(self.image.program),
            f"mem={memory}",
            *("rootfstype=hostfs", "rootflags=/", "ro", "quiet", f"init={sys.executable}"),
            *(f"uml_dir={self.folder}", "con0=null,fd:1", "con=null", f"ssl0=fd:{serial}", "ssl=null"),
            *vectors,
            *("--", "-I", "-S", str(Path(guest.__file__).resolve()), str(self.folder)),
        ]

    def run(self, argv: Sequence[str], *, input: str = "", timeout_s: float = 60.0) -> GuestResult:
        """Run a command in the guest. Raise `MachineError` if the kernel ends, or if `timeout_s` expires."""
        request = {"argv": list(argv), "input": input, "timeout_s": timeout_s}
        self._number += 1
        partial = self.folder / "partial"
        partial.write_text(json.dumps(request), encoding="utf-8")
        partial.rename(self.folder / f"request-{self._number}.json")
        with contextlib.suppress(OSError):
            self._socket.sendall(b".")
        found = self._receive(timeout_s + STOP_TIMEOUT_S)
        if found["status"] is None:
            raise MachineError(
                f"{' '.join(argv)} in user-mode Linux: did not finish within {timeout_s:g} s\n{found['stderr']}"
            )
        return GuestResult(tuple(argv), found["status"], found["stdout"], found["stderr"])

    def run_script(self, text: str, *arguments: str, timeout_s: float = 60.0) -> GuestResult:
        """Run a Python script in the guest with the interpreter and the packages of this process.

        In the guest, `folder` is /run/job.
        """
        paths = [path for path in sys.path if path]
        head = f"import sys; sys.path[:] = {paths!r}\n"
        argv = [sys.executable, "-", *arguments]
        return self.run(argv, input=head + text, timeout_s=timeout_s)

    def console(self) -> str:
        """Return the end of the kernel's console output."""
        return (self.folder / "console").read_text(encoding="utf-8", errors="replace")[-CONSOLE_TAIL:]

    def _receive(self, timeout_s: float) -> dict[str, Any]:
        """Return the answer to the last request."""
        path = self.folder / f"answer-{self._number}.json"

        def check(late: bool) -> None:
            if self._process.poll() is not None:
                raise MachineError(f"user-mode Linux has ended\n{self.console()}")
            if late:
                raise MachineError(f"user-mode Linux does not answer after {timeout_s:g} s\n{self.console()}")

        wait_until(path.exists, timeout_s, check)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        (self.folder / f"request-{self._number}.json").unlink(missing_ok=True)
        return found

    def close(self) -> None:
        """Power off the guest, kill its remaining processes and remove its files."""
        process = getattr(self, "_process", None)
        with contextlib.suppress(OSError):
            self._socket.sendall(guest.END.encode())
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)
            process.stdin.close()
            process.wait()
        self._socket.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _memory_folder() -> str:
    """Return the folder for the guest's memory: shared memory if it is writable."""
    return SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else tempfile.gettempdir()
