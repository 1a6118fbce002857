"""Measures how long virtual labs take up and down; prints a Markdown section for docs/internals/performance.md.

    python benches/lab_up_down.py [--runs 9] [--write]

Three labs: three hosts and ninety hosts, each in a ring, so with as many links as nodes; and two hosts with a Linux
router, whose data plane is started and ended too. Up is until every node can be used, down until every process of the
lab has ended.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import page

from qoslab.model.experiment import Topology
from qoslab.virtual_lab import Lab

HEADING = "## Virtual lab"
ABOUT = """\
Seconds to bring a lab up (until every node can be used) and down (until every process of it has ended), without the
start of Python; medians, and the least and greatest sum. A virtual IOS router adds the start of its SSH server, about
half a second of processor time to import.
"""
GOALS = """\
The goal of 0.06 s for the last is not reached: the namespaces, links and addresses of three nodes alone take that long,
as the first row shows, and the data plane's process is started and ended in addition.

Mininet 2.3 on a similar machine reportedly takes 0.11 s for 3 nodes and 2.8 s for 90, up and down; this was not
measured here.
"""


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


def measured(runs: int) -> list[str]:
    """The table."""
    lines = ["| lab | up | down | up and down |", "|---|---|---|---|"]
    labs = {
        "3 hosts, 3 links": hosts(3),
        "90 hosts, 90 links": hosts(90),
        "2 hosts, 1 Linux router with its data plane": routed(),
    }
    for name, topology in labs.items():
        measure(topology, 1)  # the first one also imports
        up, down = measure(topology, runs)
        both = sorted(a + b for a, b in zip(up, down, strict=True))
        middle = [f"{statistics.median(each):.3f}" for each in (up, down, both)]
        lines.append(f"| {name} | {' | '.join(middle)} ({both[0]:.3f} to {both[-1]:.3f}) |")
    return lines


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    arguments = parser.parse_args()
    head = page.head(f"Made by `benches/lab_up_down.py`: {arguments.runs} runs.")
    section = "\n".join([HEADING, "", head, "", ABOUT, *measured(arguments.runs), "", GOALS])
    page.tell(section, write_it=arguments.write)


if __name__ == "__main__":
    main()
