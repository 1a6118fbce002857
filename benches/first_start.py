#!/usr/bin/env python3
"""Measure a new user's first start: one command in a fresh clone, on a machine without the tools.

    python benches/first_start.py --write \\
        --machine 'Debian 13, as a user' 'COMMAND THAT RUNS WHAT FOLLOWS IT IN A FRESH CLONE ON SUCH A MACHINE' \\
        --machine …

Such a command may be a container's (`podman run … git clone … && cd … &&`) or a script that makes a root directory: it
gets `bash -c SCRIPT` as further words, and what the script prints goes to its standard output. The clock runs from the
start of `./qoslab --yes run` to its end, downloads and compiling included; the time to make the machine and the clone
does not count.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass

from page import head, print_summary

AIMS_S = {"simulated": 180, "virtual": 300}
"""Greatest time from the command to the report."""
EXPERIMENT = "policing-vs-shaping"
SCRIPT = f"""
begin=$EPOCHREALTIME
./qoslab --yes run experiments/{EXPERIMENT}.yml --lab LAB 2>&1 | while IFS= read -r line; do
    printf '%s %s\\n' "$EPOCHREALTIME" "$line"
done
status=${{PIPESTATUS[0]}}
[ -s runs/{EXPERIMENT}/latest/report.html ] || status="$status, no report"
echo "first start: $begin $EPOCHREALTIME $status"
"""
STARTED = re.compile(r"^[\d.]+ (?:.*: lab up|\d+ cells? at a time)")
"""First output of `run` after the setup."""


@dataclass(frozen=True)
class FirstStart:
    """First start in one kind of lab; times in seconds."""

    machine: str
    lab: str
    set_up: float
    whole: float
    status: str

    def row(self) -> str:
        """Return the row of the table."""
        met = "met" if self.whole <= AIMS_S[self.lab] and self.status in ("0", "1") else "**not met**"
        values = {"0": "all within", "1": "some outside"}.get(self.status, f"status {self.status}")
        return (
            f"| {self.machine} | {self.lab} | {self.set_up:.0f} s | {self.whole - self.set_up:.0f} s "
            f"| {self.whole:.0f} s | {AIMS_S[self.lab]} s: {met} | {values} |"
        )


def first_start(machine: str, command: str, lab: str) -> FirstStart:
    """Measure a first start on a fresh machine. `SystemExit` if it reports no times."""
    words = [*shlex.split(command), "bash", "-c", SCRIPT.replace("LAB", lab)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    end = re.search(r"^first start: ([\d.]+) ([\d.]+) (.*)$", done.stdout, re.MULTILINE)
    if end is None:
        sys.exit(f"{machine}, {lab}: no first start; the end of what it said:\n{done.stdout[-2000:]}")
    begin = float(end[1])
    started = next((line for line in done.stdout.splitlines() if STARTED.match(line)), None)
    if started is None:
        print(done.stdout[-2000:], file=sys.stderr)
    set_up = float(started.split()[0]) - begin if started else float("nan")
    return FirstStart(machine, lab, set_up, float(end[2]) - begin, end[3])


def section(rows: list[FirstStart]) -> str:
    """Return the section for the page of performance."""
    made = (
        f"Source: `benches/first_start.py`, one after the other: `./qoslab --yes run experiments/{EXPERIMENT}.yml` in "
        "a fresh clone on a machine with nothing but git and sudo, downloads and compiling included. Virtual: its 5 "
        "cells of 30 s, two at a time."
    )
    return "\n".join(
        (
            "## First start: from a fresh clone to a report",
            "",
            head(made),
            "",
            "| machine | lab | set-up | run | whole | aim | figures |",
            "|---|---|---|---|---|---|---|",
            *(each.row() for each in rows),
        )
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machine", nargs=2, action="append", required=True, metavar=("NAME", "COMMAND"))
    parser.add_argument("--write", action="store_true", help="into docs/internals/performance.md")
    arguments = parser.parse_args()
    rows = []
    for name, command in arguments.machine:
        for lab in AIMS_S:
            rows.append(first_start(name, command, lab))
            print(rows[-1].row(), file=sys.stderr)
    print_summary(section(rows), write_it=arguments.write)


if __name__ == "__main__":
    main()
