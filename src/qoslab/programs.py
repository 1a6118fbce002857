"""Where the programs are that `crates/` build."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from qoslab.errors import MachineError
from qoslab.shipped import checkout

SIMULATOR = "qos-sim"

OWN_PROGRAMS = {
    "qos-router": "the routers' data plane",
    SIMULATOR: "the simulator",
    "flood": "the UDP traffic generator",
    "sla": "IP SLA on hosts",
}
"""Names and what they are."""


def variable_of(name: str) -> str:
    """The variable of the environment that may name a program in place of ours."""
    return "QOSLAB_" + name.upper().replace("-", "_")


def own_program(name: str) -> Path:
    """The program: that of $QOSLAB_QOS_ROUTER (or _QOS_SIM, …), the repository's release build, or the one in PATH.

    `MachineError` where there is none.
    """
    variable = variable_of(name)
    named = os.environ.get(variable)
    if named is not None:
        if not os.access(named, os.X_OK):
            raise MachineError(f"{variable} names {named}, which is no program")
        return Path(named).absolute()
    top = checkout()
    built = top / "target/release" / name if top is not None else None
    if built is not None and os.access(built, os.X_OK):
        return built
    installed = shutil.which(name)
    if installed is None:
        looked = f"neither at {built} nor in PATH" if built is not None else "not in PATH"
        raise MachineError(
            f"{name}, {OWN_PROGRAMS[name]}, is {looked}",
            hint=f"Build it in a working copy (cargo build --release), and put it into PATH or name it in {variable}.",
        )
    return Path(installed).absolute()
