"""Specification for `qoslab.tc.daemon`, the daemon of routers with a kernel as data plane. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from qoslab.model.experiment import Topology
from qoslab.platforms.startup import static_routes
from qoslab.tc.lab_line import Line
from qoslab.virtual_lab import data_planes
from qoslab.virtual_lab.wiring import ROUTER_SYSCTLS, TokenBucket, Wiring

SPEC = "tc.json"
"""Name of the file with the specification, in the router's folder."""
LOG = "tc.log"


def kernel_specification(
    topology: Topology, wiring: Wiring, router: str, handles: Mapping[str, int], runtime: Path
) -> dict[str, Any]:
    """Return the content of `SPEC`; `handles` are descriptors of namespaces, `runtime` is the folder in the lab.

    A guest gets addresses, routes and neighbours by commands; for other routers, the lab has already set them.
    """
    own = {interface.name: interface for interface in wiring.interfaces() if interface.namespace == router}
    interfaces = {}
    for link, near, _ in topology.node_links(router):
        bucket = TokenBucket.for_link(link.rate.bps)
        line = Line(bucket.rate_bps, bucket.overhead_bytes, bucket.minimum_bytes, bucket.burst_bytes)
        interfaces[near.interface] = {"mac": own[near.interface].mac, "line": asdict(line)}
    guest = router in wiring.guests
    return {
        "format": 1,
        "router": router,
        "control": str(runtime / router / data_planes.CONTROL),
        "netns": f"/proc/1/fd/{handles[router]}",
        "guest": guest,
        "interfaces": interfaces,
        "setup": _setup(topology, wiring, router) if guest else [],
    }


def _setup(topology: Topology, wiring: Wiring, router: str) -> list[list[str]]:
    """Return the commands that give a guest the settings that other routers get from the lab."""
    commands = [["sysctl", "-qw", *(f"{key}={value}" for key, value in ROUTER_SYSCTLS.items())]]
    for _, near, _ in topology.node_links(router):
        if near.ipv6_address is not None:
            commands.append(["sysctl", "-qw", f"net.ipv6.conf.{near.interface}.disable_ipv6=0"])
        for address in near.addresses:
            commands.append(["ip", "address", "add", str(address), "dev", near.interface])
    for each in wiring.guest_neighbours:
        if each.node == router:
            words = [str(each.address), "lladdr", each.mac, "dev", each.interface, "nud", "permanent"]
            commands.append(["ip", "neighbour", "replace", *words])
    for route in static_routes(topology, router):
        commands.append(["ip", "route", "add", str(route.prefix), "via", str(route.via)])
    return commands
