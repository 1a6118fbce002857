"""Measure the start time and the imports of commands; print a section for internals/performance.md.

    python benches/imports.py [--runs 5] [--write]

The processor time of each command includes all processes that it starts, and is the minimum of the runs; import time is
that of `python -X importtime`, with the slowest third-party packages. Byte code is cached.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import page

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENT = str(ROOT / "experiments" / "policing-vs-shaping.yml")
COMMANDS: dict[str, tuple[str, ...]] = {
    "`qoslab --version`": ("--version",),
    "`qoslab --help`": ("--help",),
    "`validate`": ("validate", EXPERIMENT),
    "`plan --lab simulated`": ("plan", EXPERIMENT, "--lab", "simulated"),
    "`run --lab simulated`, one arm": ("run", EXPERIMENT, "--lab", "simulated", "--arm", "shaped"),
    "`run --lab simulated`": ("run", EXPERIMENT, "--lab", "simulated"),
}
LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \| +(\S+)$")
SHOWN = 4
"""Number of third-party packages to list."""


def run(folder: Path, arguments: tuple[str, ...], *options: str) -> str:
    """Run the command once and return its standard error."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *options, "-m", "qoslab", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return done.stderr


def processor_s(folder: Path, arguments: tuple[str, ...]) -> float:
    """Return the processor time of the command and its child processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(folder, arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports_s(folder: Path, arguments: tuple[str, ...]) -> dict[str, float]:
    """Return the import time of every package in seconds."""
    found: dict[str, float] = defaultdict(float)
    for line in run(folder, arguments, "-X", "importtime").splitlines():
        if match := LINE.match(line):
            found[match[2].partition(".")[0]] += int(match[1]) / 1e6
    return found


def row(name: str, arguments: tuple[str, ...], runs: int, folder: Path) -> str:
    """Return the row of the command."""
    run(folder, arguments)  # writes byte code
    used = min(processor_s(folder, arguments) for _ in range(runs))
    each = min((imports_s(folder, arguments) for _ in range(runs)), key=lambda found: sum(found.values()))
    others = sorted((seconds, package) for package, seconds in each.items() if package != "qoslab")[-SHOWN:]
    named = ", ".join(f"{package} {seconds:.2f}" for seconds, package in reversed(others))
    return f"| {name} | {used:.2f} | {sum(each.values()):.2f} | {each['qoslab']:.2f} | {named} |"


def main() -> None:
    """Print the section; write it if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    chosen = parser.parse_args()
    about = page.machine()
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(name, arguments, chosen.runs, Path(folder)) for name, arguments in COMMANDS.items()]
    text = "\n".join(
        [
            "## Start",
            "",
            f"{about}. Python {sys.version.split()[0]}.",
            "",
            "Processor time of a command with its child processes, and wall time of the imports in its own process,",
            f"least of {chosen.runs}",
            "runs of `policing-vs-shaping`; a busy machine therefore shows in the imports. To measure again:",
            "",
            "    python benches/imports.py --write",
            "",
            "| command | processor s | imports, s | of these qoslab | slowest of the others |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )
    print(text)
    if chosen.write:
        page.write(text + "\n")


if __name__ == "__main__":
    main()
