"""Count the instructions per packet in the engine; print a Markdown section for internals/performance.md.

    python benches/instructions.py [--write] [--compare PRINTED --before COMMIT] [--printed PRINTED] [--of COMMIT]

The load is that of benches/rust/benches/instructions.rs: 20 000 packets after a warm-up, counted by Callgrind. The
values do not depend on the load of the machine. `--compare` takes the output of `cargo bench -p benches --bench
instructions` at another commit, which `--before` names, and prints the change of each row; with `--write` that becomes
a section too. `--printed` takes the output at this commit instead of running the benchmark, and `--of` names that
commit if it is not the one that is checked out.

Needs valgrind from the distribution, and `cargo install gungraun-runner --version 0.18.2`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import page

ROOT = Path(__file__).resolve().parents[1]
HEADING = "### Instructions per packet"
AGAINST = "### Against the engine before its rules were corrected"
COMMAND = ("cargo", "bench", "--locked", "-q", "-p", "benches", "--bench", "instructions")
PACKETS = 20_000
"""Number of packets of a benchmark, and of frames of `parse`."""
WIDTH = 120
MAX_PERCENT = 1.0
"""Greatest increase of a row over the compared commit."""

CLASSES_WAIT = (
    "Classes with waiting packets, class by class in turn; the flows are divided among the classes, at least one for",
    "each:",
)

ROW = re.compile(r"::engine::(\w+) (\w+?)(?:_(\d+))?:.*\n\s*Instructions:\s*(\d+)")
FLOWS = ("1", "1 000", "100 000")
CLASSES = ("1", "10", "100", "1 000")
PORTS = {
    "fifo": "FIFO",
    "policer": "policer (two buckets; drops two thirds)",
    "classic_shaper": "classic shaper (weighted fair, 256 conversations)",
    "hqf_shaper": "later shaper (FIFO)",
    "fair_queue": "fair-queue, 4096 flow queues",
    "weighted_fair": "weighted fair, 4096 conversations",
}
SCHEDULERS = {"hqf": "later generation", "classic": "classic"}
SWITCH = {"srr": "SRR", "short_memory": "SRR, short memory"}
CHANGE_LIMIT = {
    **PORTS,
    "hqf": "classes, later generation",
    "classic": "classes, classic",
    "hqf_access_lists": "classes by access list",
    **SWITCH,
    "short": "parsing a frame",
}

Counts = dict[tuple[str, str, int], float]
"""Instructions per packet, by group, benchmark and the number of its arguments."""


def count_instructions(printed: str) -> Counts:
    """Parse the output of the benchmark."""
    return {
        (group, name, int(number or 0)): int(count) / PACKETS for group, name, number, count in ROW.findall(printed)
    }


def table(columns: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]]) -> Iterator[str]:
    """Yield the lines of a table; each row begins with its name."""
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for name, values in rows:
        yield "| " + " | ".join([name, *(f"{round(value):,}".replace(",", " ") for value in values)]) + " |"


def tables(counts: Counts) -> Iterator[str]:
    """Yield the lines of all tables."""

    def costs(group: str, name: str, first: int, step: int, many: int) -> list[float]:
        return [counts[group, name, first + step * each] for each in range(many)]

    yield from table(
        ("port", *(f"{flows} flow{'s' if flows != '1' else ''}" for flows in FLOWS)),
        [(title, costs("port", name, 0, 1, len(FLOWS))) for name, title in PORTS.items()],
    )
    yield from ("", *CLASSES_WAIT, "")
    by_classes = [
        (f"{title} | {flows}", costs("scheduler", name, number, len(FLOWS), len(CLASSES)))
        for name, title in SCHEDULERS.items()
        for number, flows in enumerate(FLOWS)
    ]
    lists = costs("scheduler", "hqf_access_lists", 0, 1, len(CLASSES))
    by_classes.append(("later generation, each class matches an access list | 1", lists))
    yield from table(("", "flows", "1 class", *CLASSES[1:]), by_classes)
    yield from ("", "Frames through a switch's ports:", "")
    ports = [(title, costs("switch", name, 0, 1, 4)) for name, title in SWITCH.items()]
    yield from table(("", "1 port", "8", "24", "48"), ports)
    parse = round(counts["parse", "short", 0])
    yield from ("", f"Parsing a frame (`frame::parse`) takes {parse}, regardless of its length.")


def section(counts: Counts, of: str) -> str:
    """Return the section; `of` names the measured commit."""
    shown = ["git", "log", "-1", "--format=%h of %cs"]
    commit = of or subprocess.run(shown, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    compiler = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    head = f"Commit {commit}, Rust {compiler}. Source: `benches/instructions.py`; its docstring describes the method."
    return "\n".join([HEADING, "", *textwrap.wrap(head, WIDTH), "", *tables(counts), ""])


def compare_with(counts: Counts, before: Counts, of: str) -> str:
    """Return the section on the change of each row since another commit, `of`."""
    per_cents: dict[str, list[float]] = {name: [] for name in CHANGE_LIMIT}
    for row, now in counts.items():
        per_cents[row[1]].append(100 * (now / before[row] - 1))
    head = f"Change of the instructions per packet since commit {of}, in percent, over all rows of a kind:"
    lines = [f"| {CHANGE_LIMIT[name]} | {min(moved):+.1f} | {max(moved):+.1f} |" for name, moved in per_cents.items()]
    return "\n".join([AGAINST, "", head, "", "|  | least | greatest |", "|---|---|---|", *lines, ""])


def changed_rows(counts: Counts, before: Counts) -> bool:
    """Print the change of each row; return whether one exceeds its limit."""
    beyond = False
    for row, now in counts.items():
        per_cent = 100 * (now / before[row] - 1)
        beyond |= per_cent > MAX_PERCENT
        print(f"{' '.join(map(str, row)):40} {before[row]:8.1f} {now:8.1f} {per_cent:+6.2f} %")
    return beyond


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the section into docs/internals/performance.md")
    parser.add_argument("--compare", type=Path, help="output of the benchmark of another commit")
    parser.add_argument("--before", default="", help="that commit")
    parser.add_argument("--printed", type=Path, help="output of the benchmark of this commit")
    parser.add_argument("--of", default="", help="commit and date [default: those of the checkout]")
    arguments = parser.parse_args()
    if (arguments.compare is None) != (not arguments.before):
        parser.error("--compare and --before go together: what was printed, and of which commit")
    if arguments.printed is None:
        printed = subprocess.run(COMMAND, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    else:
        printed = arguments.printed.read_text(encoding="utf-8")
    counts = count_instructions(printed)
    text = section(counts, arguments.of)
    page.print_summary(text, write_it=arguments.write)
    if arguments.compare is None:
        return 0
    before = count_instructions(arguments.compare.read_text(encoding="utf-8"))
    if arguments.write:
        page.write(compare_with(counts, before, arguments.before))
    return int(changed_rows(counts, before))


if __name__ == "__main__":
    sys.exit(main())
