"""Measure the time and memory of virtual labs; print a Markdown section for docs/internals/performance.md.

    python benches/lab_up_down.py [--runs 9] [--write]

Four labs: three and ninety hosts in a ring, with as many links as nodes; and two and a hundred hosts on one router,
whose data plane is started and ended too. "Up" is the time until every node can be used, "down" the time until every
process of the lab has ended. Memory is the sum of the resident memory (RSS) of all processes while the lab is up,
including receive rings.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import page

from qoslab.model.experiment import Topology
from qoslab.virtual_lab import Lab

HEADING = "## Virtual lab"
ABOUT = """\
Seconds to bring a lab up (until every node can be used) and down (until every process of it has ended), without the
start of Python; medians, and the least and greatest sum. A virtual IOS router adds the start of its SSH server, about
half a second of processor time to import. Memory is the resident memory of all processes of the lab.
"""
MININET = """\
Mininet 2.3 on a similar machine reportedly takes 0.11 s for 3 nodes and 2.8 s for 90, up and down; this was not
measured here.
"""


def hosts(count: int) -> Topology:
    """Return a ring of hosts: as many links as nodes, so two interfaces per node."""
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


def hosts_on_router(count: int) -> Topology:
    """Return hosts on one router, each with a separate link."""
    hosts = [f"h{number}" for number in range(count)]
    links = [
        {
            "name": f"l{number}",
            "rate": "100 Mb/s",
            "ends": [
                {"node": "R1", "interface": f"FastEthernet0/{number}", "address": f"10.0.{number}.1/24"},
                {"node": host, "interface": "eth0", "address": f"10.0.{number}.2/24"},
            ],
        }
        for number, host in enumerate(hosts)
    ]
    nodes = {"R1": {"platform": "engine"}, **{host: {"platform": "host"} for host in hosts}}
    return Topology.model_validate_json(json.dumps({"nodes": nodes, "links": links}))


def resident_mib(lab: Lab) -> int:
    """Return the resident memory of all processes of a lab, MiB."""
    pages, space = 0, Path(f"/proc/{lab.pid}/ns/pid_for_children").readlink()
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (process / "ns/pid").readlink() == space:
                pages += int((process / "statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


@dataclass(frozen=True)
class LabTimes:
    """Measurements of one lab, brought up and down several times."""

    up_s: list[float]
    down_s: list[float]
    memory_mib: int


def measure_lab(topology: Topology, runs: int) -> LabTimes:
    """Bring a lab up and down so many times; return the measurements."""
    up, down, memory = [], [], []
    for run in range(runs):
        started = time.perf_counter()
        lab = Lab.up(topology, name=f"bench-{run}")
        ready = time.perf_counter()
        memory.append(resident_mib(lab))
        downwards = time.perf_counter()
        lab.down()
        up.append(ready - started)
        down.append(time.perf_counter() - downwards)
    return LabTimes(up, down, max(memory))


def verdict_text(what: str, measured: float, goal: float, unit: str) -> str:
    """Return a sentence that compares a measurement with its goal."""
    met = "met" if measured <= goal else "missed"
    return f"{what}: {measured:.3g} {unit}, goal {goal:g} {unit}: {met}."


def results_table(runs: int) -> list[str]:
    """Return the table, followed by the comparison with the goals."""
    lines = ["| lab | up | down | up and down | memory, MiB |", "|---|---|---|---|---|"]
    small, large = "2 hosts, 1 router with its data plane", "100 hosts on 1 router with its data plane"
    labs = {
        "3 hosts, 3 links": hosts(3),
        "90 hosts, 90 links": hosts(90),
        small: hosts_on_router(2),
        large: hosts_on_router(100),
    }
    measured = {}
    for name, topology in labs.items():
        measure_lab(topology, 1)  # the first one also imports
        found = measured[name] = measure_lab(topology, runs)
        both = sorted(a + b for a, b in zip(found.up_s, found.down_s, strict=True))
        middle = [f"{statistics.median(each):.3f}" for each in (found.up_s, found.down_s, both)]
        lines.append(f"| {name} | {' | '.join(middle)} ({both[0]:.3f} to {both[-1]:.3f}) | {found.memory_mib} |")
    both_s = statistics.median(map(sum, zip(measured[small].up_s, measured[small].down_s, strict=True)))
    goals = [
        verdict_text(f"{small}, up and down", both_s, 0.06, "s"),
        verdict_text(f"{large}, up", statistics.median(measured[large].up_s), 1.5, "s"),
        verdict_text("Its memory", measured[large].memory_mib, 200, "MiB"),
    ]
    return [*lines, "", *(f"- {goal}" for goal in goals)]


def main() -> None:
    """Measure, print, and write if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    arguments = parser.parse_args()
    head = page.head(f"Source: `benches/lab_up_down.py`: {arguments.runs} runs.")
    section = "\n".join([HEADING, "", head, "", ABOUT, *results_table(arguments.runs), "", MININET])
    page.print_summary(section, write_it=arguments.write)


if __name__ == "__main__":
    main()
