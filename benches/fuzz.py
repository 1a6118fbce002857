"""Lets the fuzzer try each target for a while; with `--write` fuzz/tried.md records how often and at which commit.

    python benches/fuzz.py [--seconds S] [--write] [--anew] [TARGET ...]

An input that a target does not bear is kept in fuzz/artifacts and ends the program with status 1; what it found out
belongs in fuzz/corpus, which `cargo test` replays. Executions add up: the table has all since the page was begun, of
today's targets. With `--anew` what it has of other commits than the one that is checked out is left out.

Needs `cargo install cargo-fuzz --version 0.13.2` and a C++ compiler, for the targets in Python Atheris
(requirements/fuzz.txt); `tox -e fuzz` has them. No sanitizer is used, so that the stable compiler does; the crates' own
code has no `unsafe` but at the borders that docs/internals/architecture.md names.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUZZ = ROOT / "fuzz"
PAGE = ROOT / "fuzz" / "tried.md"
TARGET = ROOT / "target" / "fuzz"
IN_PYTHON = ROOT / "tests" / "fuzz"
REACHED = ROOT / "target" / "fuzz-reached"
"""Inputs by which the fuzzer came somewhere new; the next run goes on with them."""
EXECUTED = re.compile(r"^stat::number_of_executed_units: *(\d+)", re.MULTILINE)
COVERED = re.compile(r"cov: (\d+)")
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| ([\d ]+) \| (\d+) \| `(\w+)` \| (\S+) \|$", re.MULTILINE)
MARK = "<!-- written by benches/fuzz.py -->"
MEGABYTES = 2048
LENGTHS = {
    # Headers of a frame, and some bytes behind the longest of them.
    "forwarding": 128,
    "frame": 192,
    "transit": 192,
    # A dozen frames, or numbered datagrams.
    "bridge": 256,
    "flood": 256,
    # A capture with its header and some packets.
    "capture": 512,
    "pcap": 512,
    # Lines of JSON, and documents with each of their parts once.
    "config": 2560,
    "control": 256,
    "ports": 512,
    "scenario": 2048,
    # Steps of what has a state. What more of them find they find late: an input costs as much as it has steps.
    "program": 256,
    "sla": 192,
    "tcp": 128,
    # Lines that are typed, and files.
    "experiment": 2048,
    "run": 1024,
    "shell": 512,
}
"""Bytes of an input, by target: short ones are tried a thousand times as often as long ones."""
OPTIONS = {"program": ("-entropic=0",)}
"""Of libFuzzer, where a target wants others: what chooses by rare features takes longer there than all programs."""
PATIENCE_S = 25
"""A single input that takes longer is a finding."""


class NotBorneError(Exception):
    """An input at which a target failed."""


@dataclass(frozen=True)
class Tried:
    """What became of a target: inputs in all, edges of the program that they reached."""

    what: str
    executions: int
    edges: int
    commit: str
    day: str

    def row(self, target: str) -> str:
        """Its line of the table."""
        count = f"{self.executions:,}".replace(",", " ")
        return f"| `{target}` | {self.what} | {count} | {self.edges} | `{self.commit}` | {self.day} |"


@dataclass(frozen=True)
class Target:
    """What is tried, as a program with libFuzzer's command line."""

    what: str
    program: tuple[str, ...]
    """Of a crate it is built first."""
    corpus: Path
    longest: int
    """Bytes of an input."""
    of_a_crate: bool = False


def targets() -> dict[str, Target]:
    """The targets by their names, each with what it is about: the first sentence of its text."""
    found = {}
    for file in sorted((FUZZ / "fuzz_targets").glob("*.rs")):
        said = (ROOT / "crates" / "fuzz-targets" / "src" / file.name).read_text(encoding="utf-8")
        lines = [line.removeprefix("//!").strip() for line in said.splitlines() if line.startswith("//!")]
        what = " ".join(lines).split(":")[0]
        corpus = FUZZ / "corpus" / file.stem
        found[file.stem] = Target(what, (file.stem,), corpus, LENGTHS[file.stem], of_a_crate=True)
    for each in ast.parse((IN_PYTHON / "targets.py").read_text(encoding="utf-8")).body:
        corpus = IN_PYTHON / "corpus" / getattr(each, "name", "")
        if isinstance(each, ast.FunctionDef) and corpus.is_dir():
            what = (ast.get_docstring(each) or "").split(":")[0]
            program = (sys.executable, str(IN_PYTHON / "runner.py"), each.name)
            found[each.name] = Target(what, program, corpus, LENGTHS[each.name])
    return found


def earlier(known: Collection[str], at: str | None) -> dict[str, Tried]:
    """What the page has of the targets that are known; at this commit alone, where one is given."""
    text = PAGE.read_text(encoding="utf-8")
    found = {}
    for name, what, count, edges, *rest in (match.groups() for match in ROW.finditer(text)):
        tried = Tried(what, int(count.replace(" ", "")), int(edges), *rest)
        if name in known and at in (None, tried.commit):
            found[name] = tried
    return found


def build() -> None:
    """All targets, optimised and with overflow checks."""
    command = ["cargo", "fuzz", "build", "--sanitizer", "none", "--target-dir", str(TARGET)]
    subprocess.run(command, cwd=FUZZ, check=True)


def tried(name: str, target: Target, seconds: int) -> tuple[int, int]:
    """Lets the fuzzer try; returns executions and edges. `NotBorneError` with what it found."""
    program = target.program
    if target.of_a_crate:
        program = tuple(str(path) for path in TARGET.glob(f"*/release/{name}") if path.is_file())[:1]
    options = [f"-max_total_time={seconds}", f"-max_len={target.longest}", f"-rss_limit_mb={MEGABYTES}"]
    options += [f"-timeout={PATIENCE_S}", "-print_final_stats=1", f"-artifact_prefix={FUZZ}/artifacts/{name}-"]
    options += OPTIONS.get(name, ())
    reached = REACHED / name
    for folder in (FUZZ / "artifacts", reached):
        folder.mkdir(parents=True, exist_ok=True)
    command = [*program, *options, str(reached), str(target.corpus)]
    done = subprocess.run(command, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, check=False)
    if done.returncode or not EXECUTED.search(done.stderr):
        tail = "\n".join(done.stderr.splitlines()[-40:])
        raise NotBorneError(f"{name} does not bear an input (fuzz/artifacts):\n{tail}")
    return int(EXECUTED.findall(done.stderr)[-1]), max(map(int, COVERED.findall(done.stderr)), default=0)


def commit() -> str:
    """The commit that is checked out, marked where files differ from it, but for the page, which is written here."""
    own = ["--", ".", f":(exclude){PAGE.relative_to(ROOT)}"]
    commands = (["rev-parse", "--short=8", "HEAD"], ["status", "--porcelain", "--untracked-files=no", *own])
    said = [
        subprocess.run(["git", *command], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
        for command in commands
    ]
    return said[0] + "x" * bool(said[1])


def write(found: dict[str, Tried]) -> None:
    """The page's table anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, _ = text.partition(MARK)
    total = sum(tried.executions for tried in found.values())
    head = ["| target | | executions | edges | commit | date |", "|---|---|--:|--:|---|---|"]
    rows = [found[target].row(target) for target in sorted(found)]
    closing = f"In all {total:,}".replace(",", " ") + " executions."
    PAGE.write_text("\n".join([before + MARK, "", *head, *rows, "", closing, ""]), encoding="utf-8")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="which; all where none is given")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--write", action="store_true", help="write fuzz/tried.md")
    parser.add_argument("--anew", action="store_true", help="without what the page has of other commits")
    options = parser.parse_args()
    known = targets()
    if unknown := [name for name in options.targets if name not in known]:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = {name: known[name] for name in options.targets or known}
    if any(target.of_a_crate for target in chosen.values()):
        build()
    at, failed = commit(), False
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    for name, target in chosen.items():
        try:
            count, edges = tried(name, target, options.seconds)
        except NotBorneError as error:
            print(error, flush=True)
            failed = True
            continue
        print(f"{name}: {count} executions, {edges} edges", flush=True)
        if options.write:
            # Another process may have written it meanwhile: there are two for two processors.
            found = earlier(known, at if options.anew else None)
            before = found[name].executions if name in found else 0
            write(found | {name: Tried(target.what, before + count, edges, at, day)})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
