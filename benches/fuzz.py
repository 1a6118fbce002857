"""Run the fuzzer on each target for a given time.

    python benches/fuzz.py [--seconds S] [TARGET ...]

An input at which a target fails is saved in fuzz/artifacts, and the exit status is 1; it belongs in fuzz/corpus, which
`cargo test` replays, together with the fix.

Needs `cargo install cargo-fuzz --version 0.13.2`, a C++ compiler, and Atheris (requirements/fuzz.txt) for the targets
in Python; `tox -e fuzz` installs them. Without sanitizers, for the stable compiler: `unsafe` code of the crates is
limited to the modules that docs/internals/architecture.md names.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUZZ = ROOT / "fuzz"
TARGET = ROOT / "target" / "fuzz"
IN_PYTHON = ROOT / "tests" / "fuzz"
REACHED = ROOT / "target" / "fuzz-reached"
"""Inputs that reached new code; the next run starts with them."""
EXECUTED = re.compile(r"^stat::number_of_executed_units: *(\d+)", re.MULTILINE)
COVERED = re.compile(r"cov: (\d+)")
MEGABYTES = 2048
LENGTHS = {
    # Headers of a frame, and some bytes after the longest of them.
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
    # Steps of an object with state. Long inputs find little more, and their cost grows with the number of steps.
    "program": 256,
    "sla": 192,
    "tcp": 128,
    # Lines of input, and files.
    "experiment": 2048,
    "run": 1024,
    "shell": 512,
}
"""Maximum length of an input in bytes by target: short inputs run a thousand times as often as long ones."""
OPTIONS = {"program": ("-entropic=0",)}
"""Further options of libFuzzer by target; entropic scheduling takes longer than the programs themselves."""
PATIENCE_S = 25
"""Time limit of one input; a longer run is a failure."""


class TargetFailedError(Exception):
    """Failure of a target."""


@dataclass(frozen=True)
class Target:
    """A fuzz target: a program with libFuzzer's command line."""

    program: tuple[str, ...]
    corpus: Path
    longest: int
    """Maximum length of an input in bytes."""
    of_a_crate: bool = False
    """True if cargo builds the program first."""


def targets() -> dict[str, Target]:
    """Return the targets by name."""
    found = {}
    for file in sorted((FUZZ / "fuzz_targets").glob("*.rs")):
        corpus = FUZZ / "corpus" / file.stem
        found[file.stem] = Target((file.stem,), corpus, LENGTHS[file.stem], of_a_crate=True)
    for each in ast.parse((IN_PYTHON / "targets.py").read_text(encoding="utf-8")).body:
        corpus = IN_PYTHON / "corpus" / getattr(each, "name", "")
        if isinstance(each, ast.FunctionDef) and corpus.is_dir():
            program = (sys.executable, str(IN_PYTHON / "runner.py"), each.name)
            found[each.name] = Target(program, corpus, LENGTHS[each.name])
    return found


def build() -> None:
    """Build all targets of the crates, optimised and with overflow checks."""
    command = ["cargo", "fuzz", "build", "--sanitizer", "none", "--target-dir", str(TARGET)]
    subprocess.run(command, cwd=FUZZ, check=True)


def fuzz(name: str, target: Target, seconds: int) -> tuple[int, int]:
    """Run the fuzzer and return executions and edges; `TargetFailedError` with the fuzzer's last lines."""
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
        raise TargetFailedError(f"{name} fails at an input (fuzz/artifacts):\n{tail}")
    return int(EXECUTED.findall(done.stderr)[-1]), max(map(int, COVERED.findall(done.stderr)), default=0)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--seconds", type=int, default=60, help="time for each target (60)")
    options = parser.parse_args()
    known = targets()
    if unknown := [name for name in options.targets if name not in known]:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = {name: known[name] for name in options.targets or known}
    if any(target.of_a_crate for target in chosen.values()):
        build()
    failed = False
    for name, target in chosen.items():
        try:
            count, edges = fuzz(name, target, options.seconds)
        except TargetFailedError as error:
            print(error, flush=True)
            failed = True
            continue
        print(f"{name}: {count} executions, {edges} edges", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
