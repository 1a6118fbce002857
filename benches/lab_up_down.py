"""Time to bring virtual labs up and down: `python benches/lab_up_down.py [--runs N]`.

Three labs: three hosts and ninety hosts, each in a ring, so with as many links as nodes; and two hosts with a Linux
router, whose data plane is started and ended too. Up is until every node can be used, down until every process of the
lab has ended. Prints medians and the range of the sum, for docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

from qoslab.lab import Lab
from qoslab.model.experiment import Topology


def hosts(count: int) -> Topology:
    """A ring of hosts: as many links as nodes, so two interfaces a node."""
    links: list[dict[str, Any]] = []
    for number in range(count):
        following = (number + 1) % count
        links.append(
            {
                "name": f"l{number}",
                "rate": "100 Mb/s",
                "ends": [
                    {"node": f"h{number}", "interface": "eth0", "address": f"10.0.{number}.1/24"},
                    {"node": f"h{following}", "interface": "eth1", "address": f"10.0.{number}.2/24"},
                ],
            }
        )
    nodes = {f"h{number}": {"platform": "host"} for number in range(count)}
    return Topology.model_validate_json(json.dumps({"nodes": nodes, "links": links}))


def routed() -> Topology:
    """Client, Linux router, server."""
    links = [
        {
            "name": f"l{number}",
            "rate": "100 Mb/s",
            "ends": [
                {"node": "R1", "interface": f"FastEthernet0/{number}", "address": f"10.0.{number}.1/24"},
                {"node": host, "interface": "eth0", "address": f"10.0.{number}.2/24"},
            ],
        }
        for number, host in enumerate(("client", "server"))
    ]
    nodes = {"client": {"platform": "host"}, "R1": {"platform": "linux"}, "server": {"platform": "host"}}
    return Topology.model_validate_json(json.dumps({"nodes": nodes, "links": links}))


def measure(topology: Topology, runs: int) -> tuple[list[float], list[float]]:
    """Seconds up and seconds down, of each run."""
    up, down = [], []
    for run in range(runs):
        started = time.perf_counter()
        lab = Lab.up(topology, name=f"bench-{run}")
        ready = time.perf_counter()
        lab.down()
        up.append(ready - started)
        down.append(time.perf_counter() - ready)
    return up, down


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    print("| nodes | up, s | down, s | up and down, s (least to most) |\n|---|---|---|---|")
    for name, topology in (("3 hosts", hosts(3)), ("2 hosts, 1 router", routed()), ("90 hosts", hosts(90))):
        measure(topology, 1)  # the first one also imports
        up, down = measure(topology, runs)
        both = sorted(a + b for a, b in zip(up, down, strict=True))
        median = statistics.median
        print(
            f"| {name} | {median(up):.3f} | {median(down):.3f} | {median(both):.3f} ({both[0]:.3f} to {both[-1]:.3f}) |"
        )


if __name__ == "__main__":
    main()
