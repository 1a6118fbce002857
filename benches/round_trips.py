"""Measure round trips over an emulated link and through many routers; print a section for internals/performance.md.

    python benches/round_trips.py [--pings 200] [--write]

Two hosts, two Linux routers with a 10 Mb/s link between them whose delay is half the round trip: the difference of
median, 90th percentile and maximum from the configured delay plus line times, and the lateness of the routers. A round
trip ends with the kernel's time stamp of the reply, like in ping(8); the excess is system calls, and the part of the
kernel's wake-up time of the routers that the delay cannot hide. Then chains of Linux routers with links of 100 Mb/s
between two hosts: round trips, and a TCP transfer from end to end with the processor time of the routers' process per
received frame.

Meaningful on a quiet machine only. Alternate the measurements before and after a change.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

import page

from qoslab.model.experiment import Topology
from qoslab.run.cell.sampling import read_health
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.virtual_lab import Lab

PING = Path(__file__).parent.parent / "tests" / "lab" / "ping.py"
LAN_BPS, WAN_BPS = 100_000_000, 10_000_000
FRAME = 84 + 38
"""Bytes on the wire of an echo request with 56 bytes."""
HEADING = "## Round trips"
ABOUT = """\
The first table shows two hosts and two Linux routers with an emulated link between them: the excess of round trips
over the configured delay and the line times, in ms. The goal is 0.2 ms at the median. The delay line itself is exact to
the engine's clock; the excess comes from system calls, and from an idle machine that has to wake up.
"""
CHAINS = """\
The second table shows round trips through chains of Linux routers with links of 100 Mb/s, line time included, in ms,
and a TCP transfer from end to end, with the processor time of the routers' process for each frame that a router
receives:
"""


def topology(round_trip_ms: int) -> Topology:
    """Client, R1, R2, server."""
    nodes: dict[str, Any] = {
        "client": {"platform": "host"},
        "R1": {"platform": "engine", "routes": [{"prefix": "10.3.0.0/24", "via": "10.2.0.2"}]},
        "R2": {"platform": "engine", "routes": [{"prefix": "10.1.0.0/24", "via": "10.2.0.1"}]},
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


def chain(routers: int) -> tuple[Topology, str]:
    """Client, R1 to Rn, server; and the server's address."""
    names = ["client", *(f"R{number}" for number in range(1, routers + 1)), "server"]
    nodes: dict[str, Any] = {"client": {"platform": "host"}, "server": {"platform": "host"}}
    last = f"10.{routers + 1}.0"
    for number in range(1, routers + 1):
        there = {"prefix": f"{last}.0/24", "via": f"10.{number + 1}.0.2"}
        back = {"prefix": "10.1.0.0/24", "via": f"10.{number}.0.1"}
        routes = ([there] if number < routers else []) + ([back] if number > 1 else [])
        nodes[f"R{number}"] = {"platform": "engine", "routes": routes}
    links = []
    for number, (near, far) in enumerate(itertools.pairwise(names), 1):
        ends = [
            {"node": near, "interface": "eth0" if near == "client" else "FastEthernet0/1"},
            {"node": far, "interface": "eth0" if far == "server" else "FastEthernet0/0"},
        ]
        addressed = [{**end, "address": f"10.{number}.0.{side}/24"} for side, end in enumerate(ends, 1)]
        links.append({"name": f"l{number}", "rate": f"{LAN_BPS} b/s", "ends": addressed})
    return Topology.model_validate_json(json.dumps({"nodes": nodes, "links": links})), f"{last}.2"


def processor_s(lab: Lab) -> float:
    """Return the processor time that the data planes of a lab have used so far."""
    ticks, space = 0, Path(f"/proc/{lab.pid}/ns/pid_for_children").readlink()
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (process / "ns/pid").readlink() == space:
                name, _, fields = (process / "stat").read_text().partition("(")[2].rpartition(")")
                ticks += sum(map(int, fields.split()[11:13])) if name == "qos-router" else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def measure_chain(routers: int, pings: int, seconds: int = 5) -> str:
    """Return a row of the table of chains."""
    described, server = chain(routers)
    with Lab.up(described, name=f"round-trips-{os.getpid()}") as lab:
        times_ms = echo_times(lab, server, pings)
        watched = VirtualLab(lab)

        def received() -> int:
            return sum(each.received for each in read_health(watched, watched.data_planes).values())

        listening = lab.popen("server", ["iperf3", "-s", "-1", "--forceflush"], stdout=subprocess.PIPE, text=True)
        assert listening.stdout is not None
        while "listening" not in listening.stdout.readline():
            pass
        frames, used = received(), processor_s(lab)
        argv = ["iperf3", "-c", server, "-t", str(seconds), "-C", "cubic", "-J"]
        report = json.loads(lab.run("client", argv, check=True).stdout)
        frames, used = received() - frames, processor_s(lab) - used
    line_ms = 2 * (routers + 1) * FRAME * 8 / LAN_BPS * 1000
    goodput_bps = report["end"]["sum_received"]["bits_per_second"]
    return (
        f"| {routers} | {line_ms:.3f} | {spread(times_ms, pings)} | {goodput_bps / 1e6:.1f} | "
        f"{used / frames * 1e6:.1f} |"
    )


def measure(round_trip_ms: int, pings: int) -> str:
    """Return a row of the table of round-trip times."""
    with Lab.up(topology(round_trip_ms), name=f"round-trips-{os.getpid()}") as lab:
        times_ms = echo_times(lab, "10.3.0.2", pings)
        watched = VirtualLab(lab)
        health = read_health(watched, [*watched.data_planes, *watched.lines])
    line_ms = 2 * FRAME * 8 * (2 / LAN_BPS + 1 / WAN_BPS) * 1000
    late = ", ".join(f"{each.lateness_ns.p50 / 1e6:.2f}" for each in health.values())
    return f"| {round_trip_ms} | {spread([each - round_trip_ms - line_ms for each in times_ms], pings)} | {late} |"


def echo_times(lab: Lab, server: str, pings: int) -> list[float]:
    """Return the round trips, in ms, of the answered echo requests."""
    output = lab.run("client", ["python3", str(PING), server, str(pings), "0.01", "1"], check=True).stdout.split()
    return [float(each) * 1000 for each in output[1:]]


def spread(times_ms: list[float], pings: int) -> str:
    """Return the number of answers, and their minimum, median, 90th percentile and maximum."""
    ordered = sorted(times_ms)
    values = ordered[0], statistics.median(ordered), ordered[len(ordered) * 9 // 10], ordered[-1]
    return f"{len(ordered)} of {pings} | {' | '.join(f'{each:.3f}' for each in values)}"


def main() -> None:
    """Measure the article's three round-trip times, and chains of three lengths; print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pings", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    arguments = parser.parse_args()
    lines = [HEADING, "", page.head("Source: `benches/round_trips.py`."), "", ABOUT]
    lines.append("| configured, ms | answered | least | median | 90 % | most | lateness of the two routers, median |")
    lines.append("|---|---|---|---|---|---|---|")
    lines += [measure(round_trip_ms, arguments.pings) for round_trip_ms in (10, 50, 100)]
    lines += ["", CHAINS, "| routers | line time | answered | least | median | 90 % | most | TCP, Mb/s | µs a frame |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    lines += [measure_chain(routers, arguments.pings) for routers in (1, 10, 30)]
    section = "\n".join(lines) + "\n"
    page.print_summary(section, write_it=arguments.write)


if __name__ == "__main__":
    main()
