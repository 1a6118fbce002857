"""Lets the fuzzer try each target for a while; with `--write` docs/fuzzing.md tells how often and at which commit.

    python benches/fuzz.py [--seconds S] [--write] [TARGET ...]

An input that a target does not bear is kept in fuzz/artifacts and ends the program with status 1; what it found out
belongs in fuzz/corpus, which `cargo test` replays. Executions add up: the table has all since the page was begun.

Needs `cargo install cargo-fuzz --version 0.13.2` and a C++ compiler, for the targets in Python Atheris
(requirements/fuzz.txt); `tox -e fuzz` has them. No sanitizer is used, so that the stable compiler does; the crates' own
code has no `unsafe` but at the borders that docs/architecture.md names.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUZZ = ROOT / "fuzz"
PAGE = ROOT / "docs" / "fuzzing.md"
TARGET = ROOT / "target" / "fuzz"
IN_PYTHON = ROOT / "tests" / "fuzz"
REACHED = ROOT / "target" / "fuzz-reached"
"""Inputs by which the fuzzer came somewhere new; the next run goes on with them."""
EXECUTED = re.compile(r"^stat::number_of_executed_units: *(\d+)", re.MULTILINE)
COVERED = re.compile(r"cov: (\d+)")
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| ([\d ]+) \| (\d+) \| `(\w+)` \| (\S+) \|$", re.MULTILINE)
MARK = "<!-- written by benches/fuzz.py -->"
MEGABYTES = 2048
LONGEST = 4096
"""Bytes of an input."""
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
    of_a_crate: bool = False


def targets() -> dict[str, Target]:
    """The targets by their names, each with what it is about: the first sentence of its text."""
    found = {}
    for file in sorted((FUZZ / "fuzz_targets").glob("*.rs")):
        said = (ROOT / "crates" / "fuzz-targets" / "src" / file.name).read_text(encoding="utf-8")
        lines = [line.removeprefix("//!").strip() for line in said.splitlines() if line.startswith("//!")]
        what = " ".join(lines).split(":")[0]
        found[file.stem] = Target(what, (file.stem,), FUZZ / "corpus" / file.stem, of_a_crate=True)
    for each in ast.parse((IN_PYTHON / "targets.py").read_text(encoding="utf-8")).body:
        corpus = IN_PYTHON / "corpus" / getattr(each, "name", "")
        if isinstance(each, ast.FunctionDef) and corpus.is_dir():
            what = (ast.get_docstring(each) or "").split(":")[0]
            found[each.name] = Target(what, (sys.executable, str(IN_PYTHON / "runner.py"), each.name), corpus)
    return found


def earlier() -> dict[str, Tried]:
    """What the page has."""
    text = PAGE.read_text(encoding="utf-8")
    found = {}
    for name, what, count, edges, *rest in (match.groups() for match in ROW.finditer(text)):
        found[name] = Tried(what, int(count.replace(" ", "")), int(edges), *rest)
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
    options = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-rss_limit_mb={MEGABYTES}"]
    options += [f"-timeout={PATIENCE_S}", "-print_final_stats=1", f"-artifact_prefix={FUZZ}/artifacts/{name}-"]
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
    """The commit that is checked out, with a mark where files differ from it."""
    command = ["git", "describe", "--always", "--dirty=x", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


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
    parser.add_argument("--write", action="store_true", help="write docs/fuzzing.md")
    options = parser.parse_args()
    known = targets()
    if unknown := [name for name in options.targets if name not in known]:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = {name: known[name] for name in options.targets or known}
    if any(target.of_a_crate for target in chosen.values()):
        build()
    # Before the page is written, which is a change of the working copy.
    found, at, failed = earlier(), commit(), False
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    for name, target in chosen.items():
        try:
            count, edges = tried(name, target, options.seconds)
        except NotBorneError as error:
            print(error, flush=True)
            failed = True
            continue
        print(f"{name}: {count} executions, {edges} edges", flush=True)
        before = found.get(name)
        found[name] = Tried(target.what, count + (before.executions if before else 0), edges, at, day)
        if options.write:
            write(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
