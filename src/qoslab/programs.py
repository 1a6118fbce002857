"""Where the programs are that `crates/` build."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from qoslab.errors import MachineError
from qoslab.shipped import checkout, packed

SIMULATOR = "qos-sim"

OWN_PROGRAMS = {
    "qos-router": "the routers' data plane",
    SIMULATOR: "the simulator",
    "flood": "the UDP traffic generator",
    "sla": "IP SLA on hosts",
    "qos-pcap": "the reader of captures",
}
"""Names and what they are."""


def variable_of(name: str) -> str:
    """The variable of the environment that may name a program in place of ours."""
    return "QOSLAB_" + name.upper().replace("-", "_")


def own_program(name: str) -> Path:
    """The program: that of $QOSLAB_QOS_ROUTER (or _QOS_SIM, …), the repository's release build or the wheel's, or the
    one in PATH.

    `MachineError` where there is none.
    """
    variable = variable_of(name)
    named = os.environ.get(variable)
    if named is not None:
        if not os.access(named, os.X_OK):
            raise MachineError(f"{variable} names {named}, which is no program")
        return Path(named).absolute()
    top = checkout()
    ours = packed("bin") / name if top is None else top / "target/release" / name
    if os.access(ours, os.X_OK):
        return ours
    installed = shutil.which(name)
    if installed is None:
        raise MachineError(
            f"{name}, {OWN_PROGRAMS[name]}, is neither at {ours} nor in PATH",
            hint=f"Build it in a working copy (cargo build --release), and put it into PATH or name it in {variable}.",
        )
    return Path(installed).absolute()
