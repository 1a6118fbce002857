"""Round-trip times over an emulated link: `python benches/round_trips.py [--pings N]`.

Two hosts, two Linux routers with a 10 Mb/s link between them that has half the round trip as its delay. Prints how far
the median, the 90th percentile and the longest are above what is configured plus the line times, and how late the
routers were (for docs/performance.md). A round trip ends with the kernel's stamp of the reply, as ping(8) has it; what
is above is system calls, and what the delay cannot hide of the time that the kernel takes to wake up the routers.
Meaningful on a quiet machine only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

from qoslab.lab import Lab
from qoslab.model.experiment import Topology
from qoslab.run.cell.sampling import read_health
from qoslab.run.labs.virtual.lab import VirtualLab

PING = Path(__file__).parent.parent / "tests" / "lab" / "ping.py"
LAN_BPS, WAN_BPS = 100_000_000, 10_000_000
FRAME = 84 + 38
"""Bytes on the wire of an echo request with 56 bytes."""


def topology(round_trip_ms: int) -> Topology:
    """Client, R1, R2, server."""
    nodes: dict[str, Any] = {
        "client": {"platform": "host"},
        "R1": {"platform": "linux", "routes": [{"prefix": "10.3.0.0/24", "via": "10.2.0.2"}]},
        "R2": {"platform": "linux", "routes": [{"prefix": "10.1.0.0/24", "via": "10.2.0.1"}]},
        "server": {"platform": "host"},
    }
    path = [("client", "eth0", "R1", "FastEthernet0/0"), ("R1", "FastEthernet0/1", "R2", "FastEthernet0/0")]
    path.append(("R2", "FastEthernet0/1", "server", "eth0"))
    links = []
    for number, (near, interface, far, far_interface) in enumerate(path, 1):
        ends = [
            {"node": near, "interface": interface, "address": f"10.{number}.0.1/24"},
            {"node": far, "interface": far_interface, "address": f"10.{number}.0.2/24"},
        ]
        wan = number == 2
        delay = f"{round_trip_ms * 500} us" if wan else "0 s"
        rate = f"{WAN_BPS if wan else LAN_BPS} b/s"
        links.append({"name": f"l{number}", "rate": rate, "delay": delay, "ends": ends})
    return Topology.model_validate_json(json.dumps({"nodes": nodes, "links": links}))


def measure(round_trip_ms: int, pings: int) -> None:
    """Prints one line."""
    with Lab.up(topology(round_trip_ms), name=f"round-trips-{os.getpid()}") as lab:
        said = lab.run("client", ["python3", str(PING), "10.3.0.2", str(pings), "0.01"], check=True).stdout.split()
        watched = VirtualLab(lab)
        health = read_health(watched, [*watched.data_planes, *watched.lines])
    line_ms = 2 * FRAME * 8 * (2 / LAN_BPS + 1 / WAN_BPS) * 1000
    above = sorted(float(each) * 1000 - round_trip_ms - line_ms for each in said[1:])
    late = ", ".join(f"{name} {each.lateness_ns.p50 / 1e6:.3f}" for name, each in health.items())
    print(
        f"{round_trip_ms} ms: {said[0]} of {pings} answered; above it by {above[0]:.3f} at least, "
        f"{statistics.median(above):.3f} median, {above[len(above) * 9 // 10]:.3f} p90, {above[-1]:.3f} ms at most; "
        f"lateness p50: {late} ms"
    )


def main() -> None:
    """Measure the article's three round-trip times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pings", type=int, default=200)
    pings = parser.parse_args().pings
    for round_trip_ms in (10, 50, 100):
        measure(round_trip_ms, pings)


if __name__ == "__main__":
    main()
