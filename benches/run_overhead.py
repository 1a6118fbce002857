"""Measures what a run costs beside its traffic; prints a Markdown section for docs/performance.md.

    python benches/run_overhead.py [--seconds 10] [--runs 3] [--write]

The three arms of the first experiment, one lab, one after another: wall time of the whole command minus traffic time.
Where the time goes is told from the steps that the run kept of itself. Then the same arms side by side, as a run has
them by default, and all arms in virtual time: wall time of the whole command. Processor time is of the command and of
all that it waits for. Each distribution has a section of its own, since it decides which Python, and so which
ansible-core, a run has.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import page

from qoslab.run.devices.ansible.helper import choose

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENT = ROOT / "experiments" / "policing-vs-shaping.yml"
ARMS = ("unrestricted", "policed", "shaped")
CONFIGURE = "configure the routers"
CARRIED_OUT = re.compile(r"^(?:ok|changed): \[", re.MULTILINE)


@dataclass(frozen=True)
class Took:
    """What a command took, in seconds."""

    wall: float
    processor: float


def qoslab(folder: Path, *arguments: str) -> Took:
    """Run the first experiment; byte code is cached, as in an installation."""
    command = [str(Path(sys.executable).with_name("qoslab")), "run", str(EXPERIMENT), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@dataclass(frozen=True)
class Alone:
    """What three arms in one lab took."""

    took: Took
    """Beside the traffic."""
    steps: dict[str, float]
    """The time of each kind of step, in seconds."""
    tasks: int
    """That Ansible carried out on the router while it was configured."""


def one_by_one(folder: Path, seconds: int) -> Alone:
    """Run once in one lab."""
    took = qoslab(folder, "--duration", f"{seconds}s", *(f"--arm={arm}" for arm in ARMS), "--jobs", "1")
    run = (folder / "runs/policing-vs-shaping/latest").resolve()
    steps: dict[str, float] = defaultdict(float)
    for record in run.glob("cells/*/*/cell.json"):
        for step in json.loads(record.read_text())["steps"]:
            length = datetime.fromisoformat(step["ended"]) - datetime.fromisoformat(step["started"])
            steps[step["name"]] += length.total_seconds()
    steps["traffic"] -= seconds * len(ARMS)
    beside = took.wall - seconds * len(ARMS)
    steps["start, lab, restore, analysis, report"] = beside - sum(steps.values())
    tasks = sum(len(CARRIED_OUT.findall(file.read_text())) for file in run.glob("cells/*/*/ansible/*/stdout"))
    return Alone(Took(beside, took.processor), steps, tasks)


def side_by_side(folder: Path, seconds: int) -> tuple[Took, int]:
    """Run once as by default; what it took, and the attempts that were late and made again."""
    took = qoslab(folder, "--duration", f"{seconds}s", *(f"--arm={arm}" for arm in ARMS))
    manifest = json.loads((folder / "runs/policing-vs-shaping/latest/manifest.json").read_text())
    return took, sum(len(cell["earlier"]) for cell in manifest["cells"])


def in_words(took: Sequence[Took]) -> str:
    """Median, range and processor time."""
    walls = [each.wall for each in took]
    return (
        f"median {statistics.median(walls):.1f} s of {len(took)} ({min(walls):.1f} to {max(walls):.1f} s), "
        f"processor time {statistics.median(each.processor for each in took):.1f} s"
    )


def wrapped(text: str) -> str:
    """As lines of a document; those of an item of a list are indented."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, page.WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def section(folder: Path, seconds: int, runs: int) -> str:
    """The section of this distribution."""
    about, helper = page.machine(), choose().note or "the fast connection helper is on"
    alone = [one_by_one(folder, seconds) for _ in range(runs)]
    beside = [side_by_side(folder, seconds) for _ in range(runs)]
    virtual = [qoslab(folder, "--lab", "simulated") for _ in range(runs)]
    again = sum(attempts for _, attempts in beside)
    steps = {name: statistics.median(each.steps[name] for each in alone) for name in alone[0].steps}
    each_task = steps[CONFIGURE] / statistics.median(each.tasks for each in alone)
    said = [
        f"- Three arms one by one (`--jobs 1`), without their traffic: {in_words([each.took for each in alone])}.",
        f"- The same side by side, with {seconds} s of traffic in each: {in_words([took for took, _ in beside])}; "
        f"{again} attempts of {runs * len(ARMS) + again} were late and made again.",
        f"- All arms with `--lab simulated`: {in_words(virtual)}.",
        f"- Configuring is {alone[0].tasks} tasks of Ansible, {each_task:.2f} s each.",
    ]
    lines = [
        f"### {platform.freedesktop_os_release()['PRETTY_NAME']}",
        "",
        wrapped(f"{about}. Python {platform.python_version()}, ansible-core {version('ansible-core')}: {helper}."),
        "",
        *map(wrapped, said),
        "",
        "| part, all arms together, one by one | median s |",
        "|---|---|",
        *(f"| {name} | {median:.2f} |" for name, median in steps.items()),
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
        text = section(Path(folder), chosen.seconds, chosen.runs)
    page.tell(text, write_it=chosen.write)


if __name__ == "__main__":
    main()
