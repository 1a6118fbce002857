"""Makes small changes to qos-core, and keeps which of them its tests do not notice.

    python tests/mutants/engine.py [--minutes M] [--jobs N] [--again] [--page] [FILE or FOLDER ...]

Without a name it takes the files of `crates/qos-core/src` that differ from what was tried of them; `--again` tries
unchanged ones, too. Each file that is done goes to `tried.csv` and its survivors to `survivors.toml`, and
docs/mutants.md is written anew; what was begun is gone on with the next time. A survivor with a reason is accepted. One
without is open: it wants a test, or a reason.

The changes are those of cargo-mutants. They are tried in one program that has them all (`switched`); those that cannot
be switched on where they stand are then tried by cargo-mutants, one after the other. Each is tried twice: the quick
pass takes `tests/it` without its slow tests and with few cases of each property; what lives on is tried with all
targets and all cases. Tests that need several times the processor's time that they need without a change, or more than
`MEMORY_BYTES`, are ended by the system and count as such that have noticed.

Needs `cargo install cargo-mutants --version 27.1.0`, tree-sitter with its grammar of Rust, and util-linux; `tox -e
mutants` has all but the last.
"""

from __future__ import annotations

import argparse
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import mistakes
import outcomes
import record
import switched
from board import Board
from passes import PACKAGE
from record import Survivor, Tried
from switched import Change
from tree import NotTriedError, Tree

from written import ROOT, commit, today

WORK = ROOT / "target" / "mutants"


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FILE or FOLDER", help="below crates/qos-core/src; all without")
    parser.add_argument("--minutes", type=float, help="end after so long; what was begun is gone on with next time")
    parser.add_argument("--jobs", type=int, default=1, help="changes at once")
    parser.add_argument("--again", action="store_true", help="files that have not changed since, too")
    parser.add_argument("--page", action="store_true", help="write docs/mutants.md from what is recorded, and no more")
    options = parser.parse_args()
    tried, survivors = record.read_tried(), record.read_survivors()
    if options.page:
        record.write_page(tried, survivors)
        return 0
    files = [file for file in chosen(options.names, parser) if options.again or stale(file, tried)]
    until = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    try:
        return Round(files, until, options.jobs, again=options.again).run()
    except NotTriedError as error:
        print(error, file=sys.stderr)
        return 1


def chosen(names: Iterable[str], parser: argparse.ArgumentParser) -> list[Path]:
    """The files that the names mean, in the order of the names."""
    source = record.CRATE / "src"
    files: list[Path] = []
    for name in names or [""]:
        found = source / name
        if not found.exists():
            parser.error(f"{name}: crates/qos-core/src has no such file or folder")
        files += [found] if found.is_file() else sorted(found.rglob("*.rs"))
    return list(dict.fromkeys(files))


def stale(file: Path, tried: dict[str, Tried]) -> bool:
    """Whether a file was not tried, or is another one by now."""
    before = tried.get(record.name_of(file))
    return before is None or before.digest != record.digest(file)


class Round:
    """Files that are tried; what is known of one is recorded when it is done."""

    def __init__(self, files: Sequence[Path], until: float, jobs: int, *, again: bool) -> None:
        self._files = {record.name_of(file): file for file in files}
        self._until = until
        self._jobs = jobs
        self._commit = commit()
        self._kept = {name: self._folder(name, again=again) for name in self._files}
        self._changes = changes_of(self._files)
        self._recording = threading.Lock()
        self._failed: list[str] = []

    def _folder(self, name: str, *, again: bool) -> Path:
        kept = WORK / "files" / f"{name.replace('/', '+')}-{record.digest(self._files[name])}"
        if again and (kept / "done").exists():
            shutil.rmtree(kept)
        return kept

    def run(self) -> int:
        """1 where something could not be tried, or lives without a reason."""
        if (left := self._left()) and time.monotonic() < self._until:
            board = Board(WORK / "switched", left, self._kept)
            board.compile()
            board.measure()
            board.try_all(self._jobs, self._until)
        self._one_by_one()
        for text in self._failed:
            print(text, file=sys.stderr)
        return int(bool(self._failed) or record.open_below("crates/"))

    def _left(self) -> dict[str, list[Change]]:
        """The changes of which nothing is known yet."""
        left = {}
        for name, changes in self._changes.items():
            found = outcomes.known(self._kept[name])
            if unknown := [change for change in changes if change.name not in found]:
                left[name] = unknown
        return left

    def _one_by_one(self) -> None:
        """What is left to cargo-mutants; a file without any is done."""
        waiting: queue.Queue[str] = queue.Queue()
        left = self._left()
        for name in self._files:
            if name in left:
                waiting.put(name)
            else:
                self._record(name)
        print(f"{sum(map(len, left.values()))} changes one by one, of {len(left)} files", flush=True)
        workers = [threading.Thread(target=self._work, args=(number, waiting, left)) for number in range(self._jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, number: int, waiting: queue.Queue[str], left: Mapping[str, Sequence[Change]]) -> None:
        tree = Tree(WORK / f"tree{number}")
        try:
            tree.prepare()
            while time.monotonic() < self._until:
                name = waiting.get_nowait()
                names = [change.name for change in left[name]]
                if tree.one_by_one(self._files[name], names, self._kept[name], self._until):
                    self._record(name)
        except queue.Empty:
            pass
        except NotTriedError as error:
            self._failed.append(str(error))

    def _record(self, name: str) -> None:
        """Keep what became of a file for good."""
        file, kept = self._files[name], self._kept[name]
        wanted = {change.name for change in self._changes.get(name, ())}
        found = {change: outcome for change, outcome in outcomes.known(kept).items() if change in wanted}
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "done").touch()
        counts = {kind: sum(outcome == kind for outcome in found.values()) for kind in outcomes.KINDS}
        entry = Tried(name, record.digest(file), **counts, commit=self._commit, day=today())
        lived = [Survivor.of(change, file) for change, outcome in sorted(found.items()) if outcome == "missed"]
        print(f"{name}: {len(found)} changes, {counts['missed']} live", flush=True)
        with self._recording:
            record.keep(entry, lived)


def changes_of(files: Mapping[str, Path]) -> dict[str, list[Change]]:
    """The changes of each file that are some of the program."""
    command = ["cargo", "mutants", "--list", "--json", "--package", PACKAGE]
    command += [word for name in files for word in ("--file", name)]
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
    sources = {name: file.read_bytes() for name, file in files.items()}
    found = switched.listed(done.stdout, sources)
    for name, changes in found.items():
        names = [change.name for change in changes]
        none = set(mistakes.without_effect(names, sources[name].decode()))
        found[name] = [change for change in changes if change.name not in none]
    return found


if __name__ == "__main__":
    sys.exit(main())
