"""Measures what sweeps cost beside their traffic; prints a Markdown section for docs/performance.md.

    python benches/sweep.py [--seconds 4] [--cells 16]

Counting cells needs no lab; the rest runs a grid with two round-trip times (so that labs change) on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QOSLAB = str(Path(sys.executable).with_name("qoslab"))

GRID = """\
name: bench
title: A grid
topology:
  nodes:
    client: {{platform: host}}
    R1: {{platform: {platform}, model: "3725"}}
    server: {{platform: host}}
  links:
    - name: lan
      rate: 100 Mb/s
      ends:
        - {{node: client, interface: eth0, address: 192.168.10.2/24}}
        - {{node: R1, interface: FastEthernet0/0, address: 192.168.10.1/24}}
    - name: wan
      rate: 100 Mb/s
      delay: $(rtt / 2)
      ends:
        - {{node: R1, interface: FastEthernet0/1, address: 192.168.20.1/24}}
        - {{node: server, interface: eth0, address: 192.168.20.2/24}}
duration: {seconds} s
matrix:
  rtt: [{rtts}]
  pir: [{pirs}]
  connections: [{connections}]
traffic:
  - {{name: transfer, tool: iperf3, from: client, to: server, streams: $(connections)}}
arms:
  - name: policed
    configure:
      R1:
        template: {templates}/police.ios.j2
        variables: {{interface: FastEthernet0/1, cir: $(pir in b/s)}}
"""


def grid(folder: Path, *, platform: str, seconds: int, rtts: int, pirs: int, connections: int) -> Path:
    """An experiment file with so many values of each parameter."""
    file = folder / f"bench-{platform}-{rtts * pirs * connections}.yml"
    file.write_text(
        GRID.format(
            platform=platform, seconds=seconds, templates=os.path.relpath(ROOT / "experiments/templates", folder),
            rtts=", ".join(f"{10 * number} ms" for number in range(1, rtts + 1)),
            pirs=", ".join(f"{number} Mb/s" for number in range(1, pirs + 1)),
            connections=", ".join(map(str, range(1, connections + 1))),
        )
    )  # fmt: skip
    return file


def counted(folder: Path, pirs: int) -> tuple[int, float]:
    """Cells, and seconds of a dry run."""
    file = grid(folder, platform="linux", seconds=20, rtts=20, pirs=pirs, connections=100)
    began = time.monotonic()
    done = subprocess.run(
        [QOSLAB, "run", str(file), "--dry-run", "--json"], capture_output=True, text=True, check=True, cwd=folder
    )
    return int(json.loads(done.stdout)["cells"]), time.monotonic() - began


def swept(folder: Path, platform: str, seconds: int, cells: int, jobs: int) -> dict[str, float]:
    """Run a grid; seconds beside the traffic."""
    file = grid(folder, platform=platform, seconds=seconds, rtts=2, pirs=max(cells // 2, 1), connections=1)
    command = [QOSLAB, "run", str(file), "--jobs", str(jobs), "--attempts", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    run = (folder / "runs/bench/latest").resolve()
    manifest = json.loads((run / "manifest.json").read_text())
    session = manifest["sessions"][-1]
    wall = (datetime.fromisoformat(session["ended"]) - datetime.fromisoformat(session["started"])).total_seconds()
    configure, between, ends = [], [], dict[str, datetime]()
    records = [json.loads(file.read_text()) for file in run.glob("cells/**/cell.json")]
    for record in sorted(records, key=lambda each: each["steps"][0]["started"]):
        for step in record["steps"]:
            if step["name"] == "configure the routers":
                length = datetime.fromisoformat(step["ended"]) - datetime.fromisoformat(step["started"])
                configure.append(length.total_seconds())
        began = datetime.fromisoformat(record["steps"][0]["started"])
        # The lab that was free longest took the cell.
        if len(ends) == jobs:
            lab = min(ends, key=lambda name: ends[name])
            between.append((began - ends.pop(lab)).total_seconds())
        ends[str(len(between))] = datetime.fromisoformat(record["steps"][-1]["ended"])
    count = len(manifest["cells"])
    return {
        "cells": count,
        "wall": wall,
        "beside": (wall - seconds * count / jobs) / count,
        "configure": statistics.median(configure),
        "between": statistics.median(between) if between else 0.0,
        "invalid": sum(not cell["valid"] for cell in manifest["cells"]),
    }


def main() -> None:
    """Print the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4, help="traffic time of each cell")
    parser.add_argument("--cells", type=int, default=16)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 4])
    chosen = parser.parse_args()
    print("## Sweeps\n")
    print("| cells counted by a dry run | s |\n|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for pirs in (5, 50):
            cells, seconds = counted(Path(folder), pirs)
            print(f"| {cells} | {seconds:.1f} |")
        print(f"\nA grid of {chosen.cells} cells of {chosen.seconds} s, two topologies ({os.cpu_count()} cores):\n")
        print(
            "| platform | labs | wall, s | beside the traffic, s a cell | configuring, median s | between two cells of "
            "a lab, median s | invalid |\n|---|---|---|---|---|---|---|"
        )
        for platform in ("linux", "ios"):
            for jobs in chosen.jobs:
                found = swept(Path(folder), platform, chosen.seconds, chosen.cells, jobs)
                print(
                    f"| {platform} | {jobs} | {found['wall']:.0f} | {found['beside']:.2f} | {found['configure']:.2f} | "
                    f"{found['between']:.2f} | {found['invalid']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
