"""Tries changes by one program that has them all, of which one is switched on at a time; see `switched`."""

from __future__ import annotations

import json
import os
import queue
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import outcomes
import switched
from passes import COMMON, CPU_TIMES, FULL, PACKAGE, QUICK, UNSTABLE, Pass, environment, limits
from switched import Change, Switched
from tree import NotTriedError, Tree, failing

from written import ROOT

CRATE = Path("crates") / PACKAGE
ROOT_MODULE = str(CRATE / "src" / "lib.rs")
DECLARED = f"\n#[allow(missing_docs)]\npub mod {switched.MODULE};\n".encode()
ROUNDS = 40
"""Of taking out what does not compile."""
EVERY_S = 60
ASKED_FIRST = 12
"""Tests at most that are asked before all others."""
FAILED = re.compile(r"^test (\S+) \.\.\. FAILED", re.MULTILINE)
# Compiled once, run thousands of times.
BUILD = replace(FULL, environment={**FULL.environment, "CARGO_PROFILE_MUTANTS_OPT_LEVEL": "3"})


@dataclass(frozen=True)
class Program:
    """Tests, and for how long of the processor's time they may run."""

    path: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    cpu_s: int = 3600

    def run(self, folder: Path, number: int, only: Sequence[str] = ()) -> tuple[int, str]:
        """How it ends with this change switched on, and what it printed; of tests with these names alone, if any."""
        words = [*limits(self.cpu_s), str(self.path), *self.arguments, "--test-threads=1"]
        words += [*only, "--exact"] if only else []
        unstable = dict(each.split("=") for each in UNSTABLE)
        variables = {**os.environ, **COMMON, **unstable, **self.environment, switched.VARIABLE: str(number)}
        done = subprocess.run(
            words, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return done.returncode, done.stdout.decode(errors="replace")


class Noticing:
    """Which tests have noticed changes of a file, the last one first: they are asked before all others, since what
    notices one change of a file notices most of the others."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, Path, tuple[str, ...]], list[str]] = {}
        self._lock = threading.Lock()

    def of(self, file: str, program: Program) -> list[str]:
        """Names of tests of the program."""
        with self._lock:
            return list(self._names.get((file, program.path, program.arguments), ()))

    def keep(self, file: str, program: Program, said: str) -> None:
        """The test that failed, by what the program printed."""
        if failed := FAILED.search(said):
            with self._lock:
                names = self._names.setdefault((file, program.path, program.arguments), [])
                names[:] = [failed[1], *(name for name in names if name != failed[1])][:ASKED_FIRST]


class Board:
    """A tree with all changes of some files."""

    def __init__(self, path: Path, changes: Mapping[str, Sequence[Change]], kept: Mapping[str, Path]) -> None:
        """`changes` and the folders where outcomes are `kept`, by the files' names."""
        self._tree = Tree(path)
        self._changes = changes
        self._kept = kept
        self._programs: list[Program] = []
        self._found: dict[str, dict[str, str]] = {name: {} for name in changes}
        self._lock = threading.Lock()
        self._noticing = Noticing()

    def compile(self) -> None:
        """Have the program, without the changes that do not compile. `NotTriedError` where nothing helps."""
        self._tree.prepare()
        self._tree.put(CRATE / "src" / f"{switched.MODULE}.rs", switched.MODULE_TEXT.encode())
        left = frozenset(change.number for changes in self._changes.values() for change in changes)
        wrong: frozenset[int] = frozenset()
        for _ in range(ROUNDS):
            files = self._write(left)
            left -= frozenset(number for file in files.values() for number in file.without)
            messages = list(self._built())
            if not (errors := [each for each in messages if each.get("level") == "error"]):
                break
            refused = switched.refused(errors, files, left)
            if not refused.in_itself | refused.here:
                said = "\n".join(str(each.get("rendered", "")) for each in errors[:3])
                raise NotTriedError(f"the crate does not compile, and no change is to blame:\n{said}")
            left, wrong = left - refused.in_itself - refused.here, wrong | refused.in_itself
            print(f"{len(refused.in_itself)} do not compile, {len(refused.here)} not here", flush=True)
        else:
            raise NotTriedError(f"the crate does not compile after {ROUNDS} times taking out what does not")
        self._left = left
        for name, changes in self._changes.items():
            outcomes.keep(self._kept[name], {each.name: "unviable" for each in changes if each.number in wrong})

    def _write(self, left: frozenset[int]) -> dict[str, Switched]:
        files = {}
        for name, changes in self._changes.items():
            source = (ROOT / name).read_bytes()
            files[name] = switched.switched(source, [each for each in changes if each.number in left])
            self._tree.put(name, files[name].text)
        module = files[ROOT_MODULE].text if ROOT_MODULE in files else (ROOT / ROOT_MODULE).read_bytes()
        self._tree.put(ROOT_MODULE, module + DECLARED)
        return files

    def _built(self) -> Iterator[Mapping[str, Any]]:
        """What the compiler says; the programs, where it has made them."""
        base = ["--locked", "--message-format=json", "-p", PACKAGE, "--profile", "mutants"]
        for command in (["check", *base, "--lib"], ["test", "--no-run", *base, *BUILD.targets]):
            done = subprocess.run(
                ["cargo", *command], cwd=self._tree.path, env=environment(BUILD), capture_output=True, check=False
            )
            said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
            yield from (each["message"] for each in said if each["reason"] == "compiler-message")
            if done.returncode:
                if not any(each["reason"] == "compiler-message" for each in said):
                    raise NotTriedError(f"cargo: {done.stderr.decode(errors='replace')[-2000:]}")
                return
        made = [each for each in said if each["reason"] == "compiler-artifact" and each.get("executable")]
        paths = {each["target"]["name"]: Path(each["executable"]) for each in made}
        tests = paths["it"]
        library = next(path for name, path in paths.items() if name != "it")
        self._programs = [self._program(tests, QUICK), self._program(library, FULL), self._program(tests, FULL)]

    @staticmethod
    def _program(path: Path, how: Pass) -> Program:
        return Program(path, how.tests, how.environment)

    def measure(self) -> None:
        """How long the tests take without a change. `NotTriedError` where they fail."""
        measured = []
        for program in self._programs:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            status, said = program.run(self._folder, 0)
            if status:
                raise NotTriedError(failing(said))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"{program.path.name}: {took:.1f} s without a change", flush=True)
            cpu_s = round(CPU_TIMES * took) + 1
            measured.append(Program(program.path, program.arguments, program.environment, cpu_s))
        self._programs = measured

    @property
    def _folder(self) -> Path:
        return self._tree.path / CRATE

    def try_all(self, jobs: int, until: float) -> None:
        """Try the changes that are in the program, until the time is over; what was found is kept."""
        waiting: queue.Queue[tuple[str, Change]] = queue.Queue()
        for name, changes in self._changes.items():
            for change in changes:
                if change.number in self._left:
                    waiting.put((name, change))
        print(f"{waiting.qsize()} changes in one program", flush=True)
        workers = [threading.Thread(target=self._work, args=(waiting, until)) for _ in range(jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(EVERY_S)
                self.keep()
                print(f"{waiting.qsize()} changes to go", file=sys.stderr, flush=True)
        self.keep()

    def keep(self) -> None:
        """Keep what was found."""
        for name, found in self._found.items():
            with self._lock:
                copy = dict(found)
            if copy:
                outcomes.keep(self._kept[name], copy)

    def _work(self, waiting: queue.Queue[tuple[str, Change]], until: float) -> None:
        while time.monotonic() < until:
            try:
                name, change = waiting.get_nowait()
            except queue.Empty:
                return
            outcome = self._outcome(name, change)
            with self._lock:
                self._found[name][change.name] = outcome

    def _outcome(self, name: str, change: Change) -> str:
        """What becomes of a change: the first program that fails has noticed it."""
        for program in self._programs:
            first = self._noticing.of(name, program)
            for only in (first, []) if first else ([],):
                status, said = program.run(self._folder, change.number, only)
                if status:
                    self._noticing.keep(name, program, said)
                    # The system ends what takes too long by a signal.
                    return "timeout" if status in (-24, -9) else "caught"
        return "missed"
