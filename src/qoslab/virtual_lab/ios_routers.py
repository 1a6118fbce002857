"""Start-up data of a lab's virtual IOS routers: startup configurations, logins, the specification for `iosd`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qoslab.errors import UserError
from qoslab.ios.device_config.running_config_parser import read_running, unread_as_inert_lines
from qoslab.ios.running_config import add_inert_lines
from qoslab.model.experiment import Topology
from qoslab.platforms.startup import router_hardware
from qoslab.virtual_lab.wiring import DATA_PLANE_SUFFIX

USER = "lab"
PASSWORD_BYTES = 12
"""Random bytes per password, which give 16 characters."""
LISTEN = "127.0.0.1"
SPEC_FORMAT = 1


@dataclass(frozen=True)
class RouterLogins:
    """Logins of virtual IOS routers, and their inert configuration lines."""

    old_ssh: bool = False
    """True for SSH with SHA-1 and CBC only, as on routers of the articles' age."""
    telnet: bool = False
    """True if telnet is enabled as well."""
    clutter: str = ""
    """Running configuration with lines that the routers lack, which are added to theirs without effect."""


MODERN_SSH = RouterLogins()


def lab_credentials() -> dict[str, str]:
    """Return user, password and enable secret of a lab."""
    return {
        "user": USER,
        "password": secrets.token_urlsafe(PASSWORD_BYTES),
        "enable": secrets.token_urlsafe(PASSWORD_BYTES),
    }


def startup_with_inert_lines(config: str, topology: Topology, router: str, ways: RouterLogins) -> str:
    """Return a router's startup configuration with its inert lines. Raise `UserError` if there are none."""
    if not ways.clutter:
        return config
    unknown = unread_as_inert_lines(read_running(ways.clutter, router_hardware(topology, router)))
    if not unknown:
        raise UserError(f"found only lines that {router} implements, expected inert lines of other features")
    return add_inert_lines(config, unknown)


def iosd_specification(
    topology: Topology,
    routers: Iterable[str],
    handles: Mapping[str, int],
    login: Mapping[str, str],
    runtime: Path,
    ports: Mapping[str, int] | None = None,
    ways: RouterLogins = MODERN_SSH,
) -> dict[str, Any]:
    """Return the specification for `qoslab.virtual_lab.iosd`; `runtime` is the lab's folder as seen from inside it.

    `ports` are the SSH ports of routers, any free port if absent; `ways` has the allowed logins.
    """
    return {
        "format": SPEC_FORMAT,
        "listen": LISTEN,
        "host_key": str(runtime / "iosd/host_key"),
        "ready": str(runtime / "iosd/ready.json"),
        "routers": {
            router: {
                "model": topology.nodes[router].model,
                "generation": topology.nodes[router].generation,
                # The supervisor is process 1 of the lab and holds the namespaces.
                "netns": f"/proc/1/fd/{handles[router]}",
                "plane_netns": f"/proc/1/fd/{handles[router + DATA_PLANE_SUFFIX]}",
                "control": str(runtime / router / "control.sock"),
                "startup_config": str(runtime / router / "startup-config"),
                "ssh_port": (ports or {}).get(router, 0),
                "ssh": "old" if ways.old_ssh else "modern",
                "telnet_port": 0 if ways.telnet else None,
                "clutter": bool(ways.clutter),
                "users": [{"name": login["user"], "password": login["password"], "privilege": 1}],
                "enable_secret": login["enable"],
            }
            for router in routers
        },
    }
