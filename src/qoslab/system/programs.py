"""Paths of the programs that `crates/` build, the start of another Python of ours, and the end of any program."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import Literal

from qoslab.errors import MachineError
from qoslab.system.shipped import checkout, packed

SIMULATOR = "qos-sim"

OWN_PROGRAMS = {
    "qos-router": "the routers' data plane",
    SIMULATOR: "the simulator",
    "flood": "the UDP traffic generator",
    "sla": "IP SLA on hosts",
    "qos-pcap": "the reader of captures",
}
"""Names and what they are."""


_ELF, _ELF_ORDER, _ELF_MACHINE, _ELF_HEAD = b"\x7fELF", 5, 18, 20
"""Beginning of a Linux program, and the positions of byte order and processor in its header."""
_MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243, "ppc64le": 21, "s390x": 22, "armv7l": 40, "i686": 3}
"""Architecture in `uname -m`, and in that header (https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html)."""


def how_ended(status: int) -> str:
    """Describe the end of a process in words that follow its name; the status is negative for a signal."""
    if status >= 0:
        return f"ended with status {status}"
    known = {each.value: each.name for each in signal.Signals}
    return f"was killed by {known.get(-status, f'signal {-status}')}"


def python_module(name: str, *arguments: str) -> list[str]:
    """The command that runs a module of this Python's as a program.

    `-P`, which no child inherits: the current folder may be anybody's, and is no place to import from.
    """
    return [sys.executable, "-P", "-m", name, *arguments]


def variable_of(name: str) -> str:
    """The variable of the environment that may name a program in place of ours."""
    return "QOSLAB_" + name.upper().replace("-", "_")


def own_program(name: str) -> Path:
    """The program: that of $QOSLAB_QOS_ROUTER (or _QOS_SIM, …), the repository's release build or the wheel's, or the
    one in PATH.

    `MachineError` if there is none, it cannot be read, or it was built for another machine than this one.
    """
    variable = variable_of(name)
    named = os.environ.get(variable)
    if named is not None:
        if not Path(named).is_file() or not os.access(named, os.X_OK):
            raise MachineError(f"{variable} names {named}, not an executable file")
        return _for_this_machine(name, Path(named).absolute())
    top = checkout()
    ours = packed("bin") / name if top is None else top / "target/release" / name
    if os.access(ours, os.X_OK):
        return _for_this_machine(name, ours)
    installed = shutil.which(name)
    if installed is None:
        raise MachineError(
            f"{name}, {OWN_PROGRAMS[name]}, is neither at {ours} nor in PATH",
            hint=f"Build it in a working copy (cargo build --release), and put it into PATH or name it in {variable}.",
        )
    return _for_this_machine(name, Path(installed).absolute())


def _for_this_machine(name: str, program: Path) -> Path:
    """The same program; `MachineError` if it cannot be read, or its header names another kind of processor than the
    kernel does."""
    try:
        with program.open("rb") as file:
            head = file.read(_ELF_HEAD)
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
        f"and name it in {variable_of(name)}.",
    )


def ended_with_thread() -> list[str]:
    """Return the prefix of a command that the kernel kills when the thread that started it ends.

    The thread has to wait for it. Without util-linux nothing: then the command ends by itself.
    """
    setpriv = shutil.which("setpriv")
    return [] if setpriv is None else [setpriv, "--pdeathsig", "KILL", "--"]
