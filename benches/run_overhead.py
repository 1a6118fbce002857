"""Measure the time of a run in addition to its traffic; print a Markdown section for docs/internals/performance.md.

    python benches/run_overhead.py [--seconds 10] [--runs 3] [--inventory] [--write]

The three arms of the first experiment run in one lab, one after another: wall time of the whole command minus traffic
time, divided into the steps that the run recorded. Then the same arms run in parallel, as by default, and all arms in
virtual time: wall time of the whole command. Processor time includes all child processes. Each distribution has its own
section, since it determines the Python, and so the ansible-core, of a run.

With `--inventory` it measures the additional time of a run and of each cell if the same lab is reached only by SSH,
like real devices: of three arms and of one, so that the difference is two cells. One measurement is without a rollback
timer, like an exposed lab, whose routers end with it, and one with the timer that real routers have by default.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import page

from qoslab.run.devices.ansible.connection_choice import choose
from qoslab.schema import load_sweep
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENT = ROOT / "experiments" / "policing-vs-shaping.yml"
ARMS = ("unrestricted", "policed", "shaped")
HEADING = "## Through an inventory"
MAX_RUN_OVERHEAD_S, MAX_CELL_OVERHEAD_S = 5, 1
"""Greatest additional time through an inventory."""
NO_COUNTDOWN = "qoslab_dead_man: none"
CONFIGURE = "configure the routers"


@dataclass(frozen=True)
class TimeTaken:
    """Duration of a command, in seconds."""

    wall: float
    processor: float


def qoslab(folder: Path, *arguments: str) -> TimeTaken:
    """Run the first experiment; byte code is cached, as in an installation."""
    command = [str(Path(sys.executable).with_name("qoslab")), "run", str(EXPERIMENT), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["XDG_STATE_HOME"] = str(folder / "state")
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    return TimeTaken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@dataclass(frozen=True)
class SingleRun:
    """Durations of three arms in one lab."""

    took: TimeTaken
    """Time in addition to the traffic."""
    steps: dict[str, float]
    """The time of each kind of step, in seconds."""
    pushes: int
    """Pushes to the router during its configuration, each one Ansible task."""


def time_sequentially(folder: Path, seconds: int) -> SingleRun:
    """Run once in one lab."""
    took = qoslab(folder, "--duration", f"{seconds}s", *(f"--arm={arm}" for arm in ARMS), "--jobs", "1")
    run = (folder / "runs/policing-vs-shaping/latest").resolve()
    steps: dict[str, float] = defaultdict(float)
    for record in run.glob("cells/*/*/cell.json"):
        for step in json.loads(record.read_text())["steps"]:
            length = datetime.fromisoformat(step["ended"]) - datetime.fromisoformat(step["started"])
            steps[step["name"]] += length.total_seconds()
    steps["traffic"] -= seconds * len(ARMS)
    parallel = took.wall - seconds * len(ARMS)
    steps["start, lab, restore, analysis, report"] = parallel - sum(steps.values())
    return SingleRun(TimeTaken(parallel, took.processor), steps, len(list(run.glob("cells/*/*/ansible/*"))))


def time_in_parallel(folder: Path, seconds: int) -> tuple[TimeTaken, int]:
    """Run once with the default options; return the time and the number of repeated late attempts."""
    took = qoslab(folder, "--duration", f"{seconds}s", *(f"--arm={arm}" for arm in ARMS))
    manifest = json.loads((folder / "runs/policing-vs-shaping/latest/manifest.json").read_text())
    return took, sum(len(cell["earlier"]) for cell in manifest["cells"])


@dataclass(frozen=True)
class Costs:
    """Wall time in addition to the traffic, in seconds."""

    run: float
    """Time per run, independent of the number of cells."""
    cell: float


def costs(folder: Path, seconds: int, *where: str) -> Costs:
    """Run three arms and one, each arm once, in one lab."""
    parallel = []
    for arms in (ARMS, ARMS[1:2]):
        words = (*(f"--arm={arm}" for arm in arms), "--jobs", "1", "--attempts", "1", *where)
        parallel.append(qoslab(folder, "--duration", f"{seconds}s", *words).wall - seconds * len(arms))
    cell = (parallel[0] - parallel[1]) / (len(ARMS) - 1)
    return Costs(parallel[1] - cell, cell)


def without_phases(text: str, line: str) -> str:
    """Return an inventory without a line; `KeyError` if it has no such line."""
    lines = text.splitlines(keepends=True)
    left = [each for each in lines if each.strip() != line]
    if len(left) == len(lines):
        raise KeyError(line)
    return "".join(left)


def inventory_section(folder: Path, seconds: int, runs: int) -> str:
    """Measure the cost of reaching a lab by SSH only, alternating with the lab itself so that both see the same
    machine."""
    made = "`python benches/run_overhead.py --inventory --write`, one cell after the other"
    about = page.head(f"{made}, each with {seconds} s of traffic, which is not counted.")
    places = {"": folder / "here.yml", ", with countdowns": folder / "guarded.yml"}
    virtual: list[Costs] = []
    there: dict[str, list[Costs]] = {how: [] for how in places}
    with Lab.up(load_sweep(EXPERIMENT, {}).experiment.topology, name=f"overhead-{os.getpid()}") as lab:
        exposed, guarded = places.values()
        expose_lab(lab, exposed)
        guarded.write_text(without_phases(exposed.read_text(encoding="utf-8"), NO_COUNTDOWN), encoding="utf-8")
        for _ in range(runs):
            virtual.append(costs(folder, seconds))
            for how, file in places.items():
                there[how].append(costs(folder, seconds, "--lab", str(file)))

    def row(name: str, found: Sequence[float]) -> str:
        return f"| {name} | {statistics.median(found):.1f} | {min(found):.1f} to {max(found):.1f} |"

    def rows(part: str) -> Iterator[str]:
        here = [getattr(each, part) for each in virtual]
        yield row(f"a {part} in the virtual lab", here)
        for how, made in there.items():
            took = [getattr(each, part) for each in made]
            yield row(f"a {part} through the inventory{how}", took)
            yield row(f"**more a {part}{how}**", [more - less for more, less in zip(took, here, strict=True)])

    lines = [
        HEADING,
        "",
        about,
        "",
        wrap_text(
            "The table shows the additional time of a run if the same virtual lab is reached by SSH only; the goal is "
            f"at most {MAX_RUN_OVERHEAD_S} s per run and {MAX_CELL_OVERHEAD_S} s per cell."
        ),
        "",
        f"| | median of {runs}, s | least to most |",
        "|---|---|---|",
        *(line for part in ("run", "cell") for line in rows(part)),
    ]
    return "\n".join(lines) + "\n"


def duration_text(took: Sequence[TimeTaken]) -> str:
    """Median, range and processor time."""
    walls = [each.wall for each in took]
    return (
        f"median {statistics.median(walls):.1f} s of {len(took)} ({min(walls):.1f} to {max(walls):.1f} s), "
        f"processor time {statistics.median(each.processor for each in took):.1f} s"
    )


def wrap_text(text: str) -> str:
    """Return lines of a document; those of a list item are indented."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, page.WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def section(folder: Path, seconds: int, runs: int) -> str:
    """The section of this distribution."""
    about, helper = page.machine(), choose().note or "the fast connection helper is on"
    alone = [time_sequentially(folder, seconds) for _ in range(runs)]
    parallel = [time_in_parallel(folder, seconds) for _ in range(runs)]
    virtual = [qoslab(folder, "--lab", "simulated") for _ in range(runs)]
    again = sum(attempts for _, attempts in parallel)
    steps = {name: statistics.median(each.steps[name] for each in alone) for name in alone[0].steps}
    each_push = steps[CONFIGURE] / statistics.median(each.pushes for each in alone)
    items = [
        f"- Three arms one by one (`--jobs 1`), without their traffic: {duration_text([each.took for each in alone])}.",
        f"- The same in parallel, with {seconds} s of traffic in each: "
        f"{duration_text([took for took, _ in parallel])}; "
        f"{again} attempts of {runs * len(ARMS) + again} were late and re-run.",
        f"- All arms with `--lab simulated`: {duration_text(virtual)}.",
        f"- Configuring takes {alone[0].pushes} pushes of one Ansible task, {each_push:.2f} s each; the first ones "
        "include waiting for the start of Ansible.",
    ]
    lines = [
        f"### {platform.freedesktop_os_release()['PRETTY_NAME']}",
        "",
        wrap_text(f"{about}. Python {platform.python_version()}, ansible-core {version('ansible-core')}: {helper}."),
        "",
        *map(wrap_text, items),
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
    parser.add_argument(
        "--inventory", action="store_true", help="additional time of a run that reaches its lab only by SSH"
    )
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = inventory_section if chosen.inventory else section
        text = made(Path(folder), chosen.seconds, chosen.runs)
    page.print_summary(text, write_it=chosen.write)


if __name__ == "__main__":
    main()
