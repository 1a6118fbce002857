"""Paths of the programs built from `crates/`, start of Python modules as processes, and text about ended processes."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import Literal

from qoslab.errors import MachineError
from qoslab.system.shipped import find_checkout, packed_path

SIMULATOR = "qos-sim"

OWN_PROGRAMS = {
    "qos-router": "the routers' data plane",
    SIMULATOR: "the simulator",
    "flood": "the traffic generator",
    "sla": "IP SLA on hosts",
    "qos-pcap": "the reader of captures",
}
"""Programs of qoslab, each with its description."""


_ELF, _ELF_ORDER, _ELF_MACHINE, _ELF_HEAD = b"\x7fELF", 5, 18, 20
"""Magic number of a Linux program, and the positions of byte order and processor in its header."""
_MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243, "ppc64le": 21, "s390x": 22, "armv7l": 40, "i686": 3}
"""Processor number in the header by the architecture in `uname -m`
(https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html).
"""


def describe_exit(status: int) -> str:
    """Describe the end of a process in words to follow its name; the status is negative for a signal."""
    if status >= 0:
        return f"ended with status {status}"
    known = {each.value: each.name for each in signal.Signals}
    return f"was killed by {known.get(-status, f'signal {-status}')}"


def python_module_command(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this Python as a program.

    With `-P`, which child processes do not inherit: the current folder may be untrusted, and must not be imported from.
    """
    return [sys.executable, "-P", "-m", name, *arguments]


def program_variable(name: str) -> str:
    """Return the environment variable that overrides the path of a program."""
    return "QOSLAB_" + name.upper().replace("-", "_")


def find_own_program(name: str) -> Path:
    """Return the path of a program: from $QOSLAB_QOS_ROUTER (or _QOS_SIM, …), the repository's release build or the
    wheel, or from PATH.

    Raise `MachineError` if there is none, if it cannot be read, or if it was built for another type of machine.
    """
    variable = program_variable(name)
    named = os.environ.get(variable)
    if named is not None:
        if not Path(named).is_file() or not os.access(named, os.X_OK):
            raise MachineError(f"{variable} names {named}, not an executable file")
        return _check_executable(name, Path(named).absolute())
    top = find_checkout()
    ours = packed_path("bin") / name if top is None else top / "target/release" / name
    if os.access(ours, os.X_OK):
        return _check_executable(name, ours)
    installed = shutil.which(name)
    if installed is None:
        raise MachineError(
            f"{name}, {OWN_PROGRAMS[name]}, is neither at {ours} nor in PATH",
            hint=f"Build it in a working copy (cargo build --release), and put it into PATH or name it in {variable}.",
        )
    return _check_executable(name, Path(installed).absolute())


def _check_executable(name: str, program: Path) -> Path:
    """Return the program. Raise `MachineError` if it cannot be read, or if its header has another type of processor
    than the kernel.
    """
    try:
        head = _read_head(program, program.stat().st_mtime_ns)
    except OSError as error:
        raise MachineError(
            f"{program} cannot be read: {error.strerror}; expected {name} to be readable, since runs record its hash",
            hint=f"As its owner or root: chmod a+r {shlex.quote(str(program))}",
        ) from error
    here = os.uname().machine
    if not head.startswith(_ELF) or len(head) < _ELF_HEAD or here not in _MACHINES:
        return program
    order: Literal["little", "big"] = "little" if head[_ELF_ORDER] == 1 else "big"
    number = int.from_bytes(head[_ELF_MACHINE:_ELF_HEAD], order)
    if number == _MACHINES[here]:
        return program
    built = next((machine for machine, each in _MACHINES.items() if each == number), f"machine {number} of ELF")
    raise MachineError(
        f"{program} is built for {built}, expected {name} for {here}, the architecture of this machine",
        hint=f"Install the wheel for {here}, or build it in a working copy (cargo build --release) "
        f"and name it in {program_variable(name)}.",
    )


@functools.lru_cache(maxsize=32)
def _read_head(program: Path, changed_ns: int) -> bytes:
    """Return the start of a program; a file that was written again is read again."""
    with program.open("rb") as file:
        return file.read(_ELF_HEAD)


def kill_with_thread_prefix() -> list[str]:
    """Return the prefix of a command that the kernel kills when the thread that started it ends.

    The thread must wait for the command. Without util-linux the prefix is empty: the command then ends by itself.
    """
    setpriv = shutil.which("setpriv")
    return [] if setpriv is None else [setpriv, "--pdeathsig", "KILL", "--"]
