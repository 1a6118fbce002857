"""Requests to the process that is the data plane of all routers and lines of a lab. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from qoslab.system import program_formats
from qoslab.virtual_lab.wiring import DATA_PLANE_SUFFIX, Wiring

FOLDER = "qos-router"
"""Folder of the data plane under the runtime folder of the lab."""
CONTROL = "control.sock"
"""Control socket of a router, in the router's folder."""
FINAL_STATE_FILE = "control.ended"
"""File with the final state of a router, if its process continues for others (docs/internals/control-protocol.md)."""
MAX_NAMED_ROUTERS = 4
"""Greatest number of routers whose names are all in the process name."""


def lab_config(wiring: Wiring, handles: Mapping[str, int], runtime: Path) -> program_formats.LabConfig:
    """Return the content of the file for `qos-router --lab`; `runtime` is the lab's folder as seen from inside it.

    `handles` are the supervisor's descriptors of namespaces.
    """

    def namespace(name: str) -> str:
        # The supervisor is process 1 of the lab and holds the namespaces.
        return f"/proc/1/fd/{handles[name]}"

    routers: dict[str, program_formats.RouterPlace] = {}
    for name, ports in wiring.ports.items():
        line = name in wiring.lines
        routers[name] = {
            "wiring": {"ports": ports},
            "control": str(runtime / name / CONTROL),
            "netns": namespace(name if line else name + DATA_PLANE_SUFFIX),
            "kernel_netns": None if line else namespace(name),
        }
    return {"routers": routers, "links": list(wiring.memory)}


def process_name(names: Sequence[str]) -> str:
    """Return the process name for these routers: all names, or the first and the number of others if there are many."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > MAX_NAMED_ROUTERS else ", ".join(names)
