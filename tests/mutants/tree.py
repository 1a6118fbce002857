"""A copy of the crates, in which changes are tried; what was compiled there stays for the next time."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

import outcomes
import record
from passes import FULL, PACKAGE, QUICK, Pass, environment

from written import ROOT

COPIED = ("Cargo.toml", "Cargo.lock", ".cargo", "crates", "docs/results.md")
"""What the crate's tests need."""
WHOLE_RUN_S = 3600
"""Of a pass over one change; the limit of the processor's time comes long before, unless a test sleeps for ever."""


class NotTriedError(Exception):
    """The tests fail without a change, or cargo-mutants could not do its work."""


class Tree:
    """Such a copy."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tried_whole: set[int] = set()

    def prepare(self) -> None:
        """Copies what differs, so that what does not is not compiled again."""
        for name in COPIED:
            for file in [ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"):
                if file.is_file():
                    self.put(file.relative_to(ROOT), file.read_bytes())
        for copy in (self.path / "crates").rglob("*"):
            if copy.is_file() and not (ROOT / copy.relative_to(self.path)).exists():
                copy.unlink()

    def put(self, name: Path | str, content: bytes) -> None:
        """Have a file of this content."""
        copy = self.path / name
        if not (copy.exists() and copy.read_bytes() == content):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)

    def one_by_one(self, file: Path, names: Collection[str], kept: Path, until: float) -> bool:
        """Have cargo-mutants try these changes of a file; false where the time was over before."""
        for how in (QUICK, FULL):
            found = outcomes.known(kept)
            wanted = [name for name in names if found.get(name, "missed") == "missed"]
            if not wanted:
                return True
            self._whole(how)
            if not self._pass(how, file, wanted, kept, until):
                return False
        return True

    def _whole(self, how: Pass) -> None:
        """The tests without a change. `NotTriedError` where they fail."""
        if id(how) in self._tried_whole:
            return
        command = ["cargo", "test", "-q", "--locked", "-p", PACKAGE, "--profile", "mutants", *how.targets]
        done = subprocess.run(
            [*command, "--", *how.tests],
            cwd=self.path,
            env=environment(how),
            text=True,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise NotTriedError(failing(done.stdout + done.stderr))
        self._tried_whole.add(id(how))

    def _pass(self, how: Pass, file: Path, names: Collection[str], kept: Path, until: float) -> bool:
        kept.mkdir(parents=True, exist_ok=True)
        command = ["cargo", "mutants", "--in-place", "--baseline", "skip", "--package", PACKAGE]
        command += ["--file", record.name_of(file), "--output", str(kept), "--timeout", str(WHOLE_RUN_S)]
        command += [f"--re=^{re.escape(name)}$" for name in names]
        command += [f"--cargo-arg={part}" for part in ("--locked", *how.targets)]
        command += [f"--cargo-test-arg={part}" for part in ("--", *how.tests)]
        with (kept / "log.txt").open("a") as log:
            running = subprocess.Popen(command, cwd=self.path, env=environment(how), stdout=log, stderr=log)
            while running.poll() is None and time.monotonic() < until:
                time.sleep(0.2)
            over = running.poll() is None
            if over:
                running.send_signal(signal.SIGINT)
                running.wait()
        outcomes.keep(kept, outcomes.of_cargo_mutants(kept / "mutants.out"))
        if running.returncode not in (0, 2, 3) and not over:
            raise NotTriedError(f"cargo mutants ended with {running.returncode}; {kept / 'log.txt'} has what it said")
        if over:
            # An interrupted change may stay in the copy.
            self.prepare()
        return not over


def failing(output: str) -> str:
    """What tests that fail without a change say last."""
    tail = "\n".join(output.splitlines()[-30:])
    return f"the tests fail without a change; mend them first:\n{tail}"
