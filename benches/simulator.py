"""Measure the cost of a packet in the simulator; print a Markdown section for docs/internals/performance.md.

    python benches/simulator.py [--runs 5] [--program target/release/qos-sim] [--write]

One router with a FIFO of 200 packets at 1 Gb/s and four CUBIC flows through it (the scenario is
`benches/rust/benches/fifo.scenario.json`); each data packet causes half an acknowledgement. The processor time is the
minimum of several runs and depends on the machine; the instructions are Callgrind's and do not. Both are of the traffic
alone: the values of a shorter run are subtracted.

Needs `cargo build --release -p qos-sim`, and valgrind from the distribution.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import page

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "benches" / "rust" / "benches" / "fifo.scenario.json"
HEADING = "## Simulator"
#: Seconds of traffic of the two runs, for time and for instructions, which are counted 50 times slower.
TIMED, COUNTED = (1, 11), (1, 2)


@dataclass(frozen=True)
class Run:
    """Values of a run."""

    packets: int
    """Data packets that reached the server."""
    events: int
    cost: float
    """Seconds of processor time, or instructions."""

    def __sub__(self, other: Run) -> Run:
        return Run(self.packets - other.packets, self.events - other.events, self.cost - other.cost)


def run_length(seconds: int) -> dict[str, Any]:
    """Return the scenario with so many seconds of traffic."""
    scenario: dict[str, Any] = json.loads(SCENARIO.read_text(encoding="utf-8"))
    for flow in scenario["flows"]:
        flow["duration_ns"] = seconds * 10**9
    return scenario


def run(program: Path, seconds: int, folder: Path, words: tuple[str, ...] = ()) -> tuple[Run, str]:
    """Run the simulator behind a command prefix; return its processor time and its standard error."""
    file = folder / "scenario.json"
    file.write_text(json.dumps(run_length(seconds)), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*words, program, "run", file], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(done.stdout)
    packets = report["hosts"]["server"]["packets_received"]
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(packets, report["events"], used), done.stderr


def time_run(program: Path, runs: int, folder: Path) -> Run:
    """Return the processor time of the traffic, the minimum of several runs of each length."""
    short, long = (
        min((run(program, seconds, folder)[0] for _ in range(runs)), key=lambda each: each.cost) for seconds in TIMED
    )
    return long - short


def count_instructions(program: Path, folder: Path) -> Run:
    """Return the instructions of the traffic."""

    def simulate_once(seconds: int) -> Run:
        words = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'out'}")
        values, text = run(program, seconds, folder, words)
        collected = re.search(r"Collected : (\d+)", text)
        assert collected is not None, text
        return Run(values.packets, values.events, int(collected[1]))

    short, long = (simulate_once(seconds) for seconds in COUNTED)
    return long - short


def section(time: Run, instructions: Run) -> str:
    """Return the section of the document."""
    rate = time.packets / time.cost
    lines = [
        HEADING,
        "",
        f"{page.machine()}. To measure again:",
        "",
        "    python benches/simulator.py --write",
        "",
        "One router with a FIFO, four CUBIC flows at 1 Gb/s, the least processor time of some runs:",
        "",
        "| data packets/s | events/s | µs a data packet | events a data packet | instructions a data packet |",
        "|---|---|---|---|---|",
        f"| {rate:,.0f} | {time.events / time.cost:,.0f} | {1e6 / rate:.2f} | {time.events / time.packets:.2f} "
        f"| {instructions.cost / instructions.packets:,.0f} |",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "qos-sim")
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = section(time_run(options.program, options.runs, folder), count_instructions(options.program, folder))
    page.print_summary(text, write_it=options.write)


if __name__ == "__main__":
    main()
