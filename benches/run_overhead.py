"""Measures what a run costs beside its traffic; prints a Markdown section for docs/performance.md.

    python benches/run_overhead.py [--seconds 10] [--runs 3] [--write]

The three arms of the first experiment, one lab, one after another: wall time of the whole command minus traffic time.
Where the time goes is told from the steps that the run kept of itself. Each distribution has a section of its own,
since it decides which Python, and so which ansible-core, a run has.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import page

from qoslab.run.devices.ansible.helper import choose

ROOT = Path(__file__).resolve().parents[1]
ARMS = ("unrestricted", "policed", "shaped")


def one(folder: Path, seconds: int) -> tuple[float, dict[str, float]]:
    """Run once; wall time beside the traffic, and the time of each kind of step, in seconds."""
    command = [str(Path(sys.executable).with_name("qoslab")), "run", str(ROOT / "experiments/policing-vs-shaping.yml")]
    command += ["--duration", f"{seconds}s", *(f"--arm={arm}" for arm in ARMS)]
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    wall = time.monotonic() - began
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    steps: dict[str, float] = defaultdict(float)
    for record in (folder / "runs/policing-vs-shaping/latest").resolve().glob("cells/*/*/cell.json"):
        for step in json.loads(record.read_text())["steps"]:
            length = datetime.fromisoformat(step["ended"]) - datetime.fromisoformat(step["started"])
            steps[step["name"]] += length.total_seconds()
    steps["traffic"] -= seconds * len(ARMS)
    beside = wall - seconds * len(ARMS)
    steps["start, lab, restore, analysis, report"] = beside - sum(steps.values())
    return beside, steps


def section(found: list[tuple[float, dict[str, float]]]) -> str:
    """The section of this distribution from its runs."""
    beside = [each[0] for each in found]
    helper = choose().note or "the fast connection helper is on"
    lines = [
        f"### {platform.freedesktop_os_release()['PRETTY_NAME']}",
        "",
        f"{page.machine()}. Python {platform.python_version()}, ansible-core {version('ansible-core')}: {helper}.",
        "",
        f"Wall time of `qoslab run` minus traffic time, three arms, one lab: median {statistics.median(beside):.1f} s "
        f"of {len(found)} runs ({min(beside):.1f} to {max(beside):.1f} s).",
        "",
        "| part, all arms together | median s |",
        "|---|---|",
        *(f"| {name} | {statistics.median(steps[name] for _, steps in found):.2f} |" for name in found[0][1]),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the section, and write it when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10, help="traffic time of each arm")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the section into docs/performance.md")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = section([one(Path(folder), chosen.seconds) for _ in range(chosen.runs)])
    print(text)
    if chosen.write:
        page.write(text)


if __name__ == "__main__":
    main()
