"""Where the programs are that `crates/` build."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from qoslab.errors import MachineError

SIMULATOR = "qos-sim"

OWN_PROGRAMS = {
    "qos-router": "the routers' data plane",
    SIMULATOR: "the simulator",
    "flood": "the UDP traffic generator",
    "sla": "IP SLA on hosts",
}
"""Names and what they are."""


def own_program(name: str) -> Path:
    """The program: that of $QOSLAB_QOS_ROUTER (or _QOS_SIM, …), the repository's release build, or the one in PATH.

    `MachineError` where there is none.
    """
    variable = "QOSLAB_" + name.upper().replace("-", "_")
    named = os.environ.get(variable)
    if named is not None:
        if not os.access(named, os.X_OK):
            raise MachineError(f"{variable} names {named}, which is no program")
        return Path(named).absolute()
    built = Path(__file__).parents[2] / "target/release" / name
    if os.access(built, os.X_OK):
        return built
    installed = shutil.which(name)
    if installed is None:
        raise MachineError(
            f"{name}, {OWN_PROGRAMS[name]}, is neither at {built} nor in PATH",
            hint="Build it: cargo build --release",
        )
    return Path(installed).absolute()
