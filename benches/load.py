"""Measure how a busy machine changes values that a run calls valid; print a section for performance.md.

    python benches/load.py [--repetitions 4] [--duration 27s] [--busy 4] [--only ring=1] [--write]

The longest round trip of the constant flood of `tx-ring-limit` follows from arithmetic: a full ring before the probe,
and the rest of a packet on the line. Quiet cells also differ by up to half a packet, because it depends on the dozen
operations of a cell. So each cell is measured equally often on an idle machine and next to busy processes, without
retries. Two stamps of whole milliseconds may differ by one without a cause, so a maximum may lie 1 ms beyond those of
quiet cells. Maxima of random sizes depend on chance and are left out. The exit status is 1 if a maximum of a valid cell
lies further away, or if fewer than three of four cells are valid.

It takes half an hour. It needs the programs of `crates/` (`cargo build --locked --release`) and an otherwise idle
machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import page

from qoslab.analysis import analyse
from qoslab.results import RunFolder, find_run, tables

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENT = ROOT / "experiments" / "tx-ring-limit.yml"
HEADING = "## Load during a run"
METRIC = "rtt.max"
MAX_DIFFERENCE_MS = 1.0
"""Greatest distance of a maximum from those of quiet cells: IP SLA stamps whole milliseconds."""
MIN_VALID = 15 / 20
QUIET_ATTEMPTS = "3"
"""Attempts at each reference cell; next to busy processes no cell is retried."""
LINES, RINGS = "matrix.line", "matrix.ring"


@dataclass(frozen=True)
class Maxima:
    """The longest round trips of a run, in milliseconds, by line rate and ring."""

    valid: dict[tuple[float, float], list[float]]
    invalid: dict[tuple[float, float], list[float]]
    """Values of invalid cells, nan if nothing was measured."""
    reasons: tuple[str, ...]
    """Reasons of the invalid cells, with their names."""


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run a number of CPU-bound processes."""
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def run(folder: Path, options: Sequence[str]) -> Maxima:
    """Run the experiment cell by cell and return its maxima."""
    command = [str(Path(sys.executable).with_name("qoslab")), "run", str(EXPERIMENT), "--arm", "cbr", "--jobs", "1"]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    return maxima(find_run(folder / "runs", EXPERIMENT.stem))


def maxima(made: RunFolder) -> Maxima:
    """Return the maxima of all cells of a run."""
    outcome = analyse(made)
    found = tables.read_table(made, "metrics")
    kept: tuple[dict[tuple[float, float], list[float]], ...] = ({}, {})
    for row in found[found["metric"] == METRIC].to_dict("records"):
        kept[row["cell"] in outcome.invalid].setdefault((row[LINES], row[RINGS]), []).append(row["value"])
    return Maxima(*kept, outcome.reasons)


def rows(quiet: Maxima, loaded: Maxima) -> tuple[list[str], int, int, float]:
    """Return the table, the number of cells next to busy processes, the number of valid ones, and the differences of a
    maximum."""
    lines = ["| line, ring | quiet, ms | valid next to busy processes, ms | invalid, ms |", "|---|---|---|---|"]
    counted, trusted, moved = 0, 0, 0.0
    for place in sorted({*loaded.valid, *loaded.invalid}):
        alone, good, bad = (each.get(place, []) for each in (quiet.valid, loaded.valid, loaded.invalid))
        counted, trusted = counted + len(good) + len(bad), trusted + len(good)
        moved = max([moved, *(max(min(alone) - each, each - max(alone)) for each in good)])
        shown = (", ".join(f"{each:g}" for each in values) or "none" for values in (alone, good, bad))
        lines.append(f"| {place[0] / 1e3:g} kb/s, {place[1]:g} | {' | '.join(shown)} |")
    return lines, counted, trusted, moved


def measure(arguments: argparse.Namespace) -> tuple[list[str], bool]:
    """Return the body of the section, and whether all values are within the limit."""
    chosen = [word for each in arguments.only for word in ("--only", each)]
    options = [*(["--duration", arguments.duration] if arguments.duration else []), *chosen]
    with tempfile.TemporaryDirectory(prefix="qoslab-load-") as place:
        options += ["--repetitions", str(arguments.repetitions)]
        quiet = run(Path(place), [*options, "--attempts", QUIET_ATTEMPTS])
        if quiet.invalid:
            sys.exit("\n".join(["the machine is not idle; invalid without other processes:", *quiet.reasons]))
        with busy_processes(arguments.busy):
            loaded = run(Path(place), [*options, "--attempts", "1"])
    table, counted, trusted, moved = rows(quiet, loaded)
    stays = moved <= MAX_DIFFERENCE_MS and trusted >= MIN_VALID * counted
    text = (
        f"Next to {arguments.busy} busy processes {trusted} of {counted} cells were valid, and the longest round trip "
        f"of a valid cell was at most {moved:g} ms out of the range of undisturbed cells. Both limits are "
        f"{'met' if stays else '**not met**'}: {MAX_DIFFERENCE_MS:g} ms (time stamps are whole milliseconds), and "
        "three valid cells in four."
    )
    return [*table, "", *textwrap.wrap(text, page.WIDTH)], stays


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=4, help="runs of each cell on either machine")
    parser.add_argument("--duration", help="traffic time of each cell, such as 27s [default: that of the experiment]")
    parser.add_argument("--busy", type=int, default=4, help="processes that are never idle")
    parser.add_argument("--only", action="append", default=[], metavar="KEY=VALUE", help="only these cells")
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    arguments = parser.parse_args()
    head = page.head("Source: `benches/load.py`; its docstring describes the measurement.")
    body, stays = measure(arguments)
    section = "\n".join([HEADING, "", head, "", *body, ""])
    page.print_summary(section, write_it=arguments.write)
    sys.exit(0 if stays else 1)


if __name__ == "__main__":
    main()
