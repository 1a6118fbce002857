"""What the virtual IOS routers of a lab start with: startup configurations, logins, the specification for `iosd`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from qoslab.errors import ExperimentError
from qoslab.ios.admission import interface_bandwidth_kbps
from qoslab.ios.device import Interface
from qoslab.model.experiment import Topology
from qoslab.platforms import MODELS, platform_of

USER = "lab"
PASSWORD_BYTES = 12
"""Random bytes of each password: 16 characters."""
LISTEN = "127.0.0.1"
SPEC_FORMAT = 1
FORCED_SPEEDS = {10_000_000: 10, 100_000_000: 100}
"""By the rate of a link: the speed that a port of a gigabit switch is set to, in Mb/s."""


def credentials() -> dict[str, str]:
    """A lab's user, password and enable secret."""
    return {
        "user": USER,
        "password": secrets.token_urlsafe(PASSWORD_BYTES),
        "enable": secrets.token_urlsafe(PASSWORD_BYTES),
    }


def startup_config(topology: Topology, router: str, login: Mapping[str, str]) -> str:
    """The configuration that a router boots with, in IOS order; a Linux router's base before the experiment's own."""
    node = topology.nodes[router]
    is_switch = node.model is not None and MODELS[node.model].family == "switch"
    lines = [
        f"hostname {router}",
        f"enable secret 0 {login['enable']}",
        f"username {login['user']} privilege 1 secret 0 {login['password']}",
    ]
    for link, near, _ in sorted(topology.links_of(router), key=lambda each: each[1].interface):
        problem = platform_of(node).interface_problem(node, near.interface, link.framing)
        if problem is not None:
            raise ExperimentError(
                f"link {link.name} ends at {near.interface} of {router}: found {near.interface}, expected {problem}"
            )
        lines += ["!", f"interface {near.interface}"]
        if is_switch and near.address is not None:
            lines.append(" no switchport")
        if is_switch and link.rate.bps in FORCED_SPEEDS:
            # The other end is hard-coded, or the cable carries no more.
            lines += [f" speed {FORCED_SPEEDS[link.rate.bps]}", " duplex full"]
        elif link.rate.bps // 1000 != interface_bandwidth_kbps(Interface(near.interface)):
            lines.append(f" bandwidth {max(link.rate.bps // 1000, 1)}")
        if near.address is not None:
            lines.append(f" ip address {near.address.ip} {near.address.netmask}")
        if link.framing != "ethernet":
            lines += [f" encapsulation {link.framing}", f" clock rate {link.rate.bps}"]
        lines.append(" no shutdown")
    if node.routes:
        lines += ["!", *(f"ip route {_prefix(route.prefix)} {route.via}" for route in node.routes)]
    return "\n".join([*lines, "!", "end", ""])


def _prefix(prefix: Any) -> str:
    return f"{prefix.network_address} {prefix.netmask}"


def specification(
    topology: Topology, routers: Iterable[str], handles: Mapping[str, int], login: Mapping[str, str], runtime: Path,
    ports: Mapping[str, int] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The specification file of `qoslab.lab.iosd`; `runtime` is the lab's folder as seen from inside it.

    `ports` are the SSH ports of routers, any free one where absent.
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
                "control": str(runtime / router / "control.sock"),
                "startup_config": str(runtime / router / "startup-config"),
                "ssh_port": (ports or {}).get(router, 0),
                "users": [{"name": login["user"], "password": login["password"], "privilege": 1}],
                "enable_secret": login["enable"],
            }
            for router in routers
        },
    }
