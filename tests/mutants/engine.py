"""Makes small changes to qos-core, file by file, and keeps which of them its tests do not notice.

    python tests/mutants/engine.py [--minutes M] [--jobs N] [--again] [--page] [FILE or FOLDER ...]

Without a name it takes the files of `crates/qos-core/src` that differ from what was tried of them; `--again` tries
unchanged ones, too. Each file that is done goes to `tried.csv` at once and its survivors to `survivors.toml`, and
docs/mutants.md is written anew; a file that was begun is gone on with the next time. A survivor with a reason is
accepted. One without is open: it wants a test, or a reason.

A change is tried twice. The quick pass takes `tests/it` without its slow tests and with few cases of each property;
what lives on is tried with all targets and all cases. Tests that need several times the processor's time that they
need without a change, or more than `MEMORY_BYTES`, are ended by the system and count as such that have noticed.

Needs `cargo install cargo-mutants --version 27.1.0` and util-linux; `tox -e mutants` has the first.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import mistakes
import record
from record import Survivor, Tried

from written import ROOT, commit, today

WORK = ROOT / "target" / "mutants"
COPIED = ("Cargo.toml", "Cargo.lock", ".cargo", "crates", "docs/results.md")
"""What the crate's tests need."""
OUTCOMES = ("caught", "timeout", "unviable", "missed")
MEMORY_BYTES = 4 * 2**30
WHOLE_RUN_S = 3600
"""Of a pass over one change; the limit of the processor's time comes long before, unless a test sleeps for ever."""
SLOW = (
    "cells::a_shaper_accounts_for_what_lies_behind",
    "cells::parts_of_a_line_are_by_the_accounted_length",
    "classic_queueing::a_flood_of_random_sizes_has_its_steady_state_at_once",
    "dynamic_bucket::the_start_does_not_matter",
    "fairness::conversations_get_weighted_bytes",
    "fairness::flows_get_equal_bytes",
    "later_queueing::depths_shown_include_the_ring",
    "links::delays_are_distributed_as_asked_for",
    "links::losses_are_as_frequent_and_as_long_as_asked_for",
    "priority::congestion_holds_a_priority_class_to_its_rate",
    "priority::waits_behind_the_ring_are_less_than_published_round_trips",
    "priority_propagation::the_rest_is_shared_as_if_there_were_no_voice",
    "programs::",
    "random_detect::drops_",
    "random_detect::half_way_half_of_the_greatest_share_is_marked",
    "rates::a_shaper_keeps_its_rate",
    "shaper_release::a_classic_shaper_does_not_look_at_the_line",
    "shares::",
    "srr::a_shaped_queue_gets_its_part",
    "srr::every_cell_comes_back",
    "srr::stalls_of_the_caller_cost_nothing",
    "srr::weighted_tail_drop_begins_above_the_threshold",
    "subinterfaces::any_load_is_accounted_for_and_within_the_shapes",
    "subinterfaces::two_subinterfaces_each_get_their_shape_with_priority_and_bandwidth_below",
    "tx_ring_delays::",
)
"""Not optimised they take half a second or more each, 50 s together where the other tests take 5."""


class NotTriedError(Exception):
    """The tests fail without a change, or cargo-mutants could not do its work."""


@dataclass(frozen=True)
class Pass:
    """How the tests are built and run."""

    cpu_s: int
    """Of a test program: five times what it takes without a change."""
    targets: tuple[str, ...]
    tests: tuple[str, ...]
    environment: dict[str, str]


QUICK = Pass(
    25,
    ("--test", "it"),
    # Libtest ends at the first failure only where it believes to be unstable; of the program alone, not of rustc.
    ("-Z", "unstable-options", "--fail-fast", *(part for name in SLOW for part in ("--skip", name))),
    {"QOS_CASES_AT_MOST": "8", "PROPTEST_CASES": "32"},
)
FULL = Pass(
    60,
    ("--lib", "--test", "it"),
    ("-Z", "unstable-options", "--fail-fast"),
    # Compiled in 25 s then and not in 5, but done in 12 and not in 70.
    {"CARGO_PROFILE_MUTANTS_OPT_LEVEL": "1"},
)
COMMON = {
    "PROPTEST_MAX_SHRINK_ITERS": "0",
    "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
    # The same cases for each change, so that one that lives does so in the next round, too.
    "PROPTEST_RNG_SEED": "1",
    "CARGO_TERM_COLOR": "never",
}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FILE or FOLDER", help="below crates/qos-core/src; all without")
    parser.add_argument("--minutes", type=float, help="end after so long; what was begun is gone on with next time")
    parser.add_argument("--jobs", type=int, default=1, help="files at once, each with a copy of the crates")
    parser.add_argument("--again", action="store_true", help="files that have not changed since, too")
    parser.add_argument("--page", action="store_true", help="write docs/mutants.md from what is recorded, and no more")
    options = parser.parse_args()
    tried, survivors = record.read_tried(), record.read_survivors()
    if options.page:
        record.write_page(tried, survivors)
        return 0
    files = [file for file in chosen(options.names, parser) if options.again or stale(file, tried)]
    until = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    return Round(files, until, options.jobs, again=options.again).run()


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
    """Files that are tried, several at once; what is known of one is recorded when it is done."""

    def __init__(self, files: list[Path], until: float, jobs: int, *, again: bool) -> None:
        self._files: queue.Queue[Path] = queue.Queue()
        for file in files:
            self._files.put(file)
        self._until = until
        self._jobs = min(jobs, len(files))
        self._again = again
        self._recording = threading.Lock()
        self._failed: list[str] = []
        self._commit = commit()

    def run(self) -> int:
        """1 where something could not be tried, or lives without a reason."""
        workers = [threading.Thread(target=self._work, args=(number,)) for number in range(self._jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for text in self._failed:
            print(text, file=sys.stderr)
        return int(bool(self._failed) or record.open_below("crates/"))

    def _work(self, number: int) -> None:
        tree = Tree(WORK / f"tree{number}")
        try:
            tree.prepare()
            while time.monotonic() < self._until:
                self._try(tree, self._files.get_nowait())
        except queue.Empty:
            pass
        except NotTriedError as error:
            self._failed.append(str(error))

    def _try(self, tree: Tree, file: Path) -> None:
        at = record.digest(file)
        kept = WORK / "files" / f"{record.name_of(file).replace('/', '+')}-{at}"
        if self._again and (kept / "done").exists():
            shutil.rmtree(kept)
        began = time.monotonic()
        outcomes = tree.outcomes(file, kept, self._until)
        if outcomes is None:
            print(f"{record.name_of(file)}: not done in this time", flush=True)
            return
        (kept / "done").touch()
        counts = {kind: sum(outcome == kind for outcome in outcomes.values()) for kind in OUTCOMES}
        entry = Tried(record.name_of(file), at, **counts, commit=self._commit, day=today())
        lived = [Survivor.of(name, file) for name, outcome in sorted(outcomes.items()) if outcome == "missed"]
        each = (time.monotonic() - began) / max(len(outcomes), 1)
        print(f"{entry.file}: {len(outcomes)} changes, {each:.0f} s each, {counts['missed']} live", flush=True)
        with self._recording:
            record.keep(entry, lived)


class Tree:
    """A copy of the crates, in which cargo-mutants changes one place after the other; what was compiled stays."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tried_whole: set[int] = set()

    def prepare(self) -> None:
        """Copies what differs, so that what does not is not compiled again."""
        for name in COPIED:
            for file in [ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"):
                copy = self._path / file.relative_to(ROOT)
                if file.is_file() and not (copy.exists() and copy.read_bytes() == file.read_bytes()):
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(file.read_bytes())
        for copy in (self._path / "crates").rglob("*"):
            if copy.is_file() and not (ROOT / copy.relative_to(self._path)).exists():
                copy.unlink()

    def outcomes(self, file: Path, kept: Path, until: float) -> dict[str, str] | None:
        """What became of each change of a file, by its name; `None` where the time was over before."""
        if not (kept / "quick").exists():
            self._whole(QUICK)
            if not self._pass(QUICK, file, kept, until):
                return None
            (kept / "quick").touch()
        found = known(kept)
        if "missed" in found.values():
            self._whole(FULL)
            if not self._pass(FULL, file, kept, until):
                return None
            found = known(kept)
        return found

    def _without_effect(self, file: Path) -> Iterable[str]:
        """The changes of a file that are none of the program."""
        command = ["cargo", "mutants", "--list", "--package", "qos-core", "--file", record.name_of(file)]
        done = subprocess.run(command, cwd=self._path, text=True, stdout=subprocess.PIPE, check=True)
        return mistakes.without_effect(done.stdout.splitlines(), file.read_text(encoding="utf-8"))

    def _whole(self, how: Pass) -> None:
        """The tests without a change. `NotTriedError` where they fail."""
        if id(how) in self._tried_whole:
            return
        command = ["cargo", "test", "-q", "--locked", "-p", "qos-core", "--profile", "mutants", *how.targets]
        done = subprocess.run(
            [*command, "--", *how.tests],
            cwd=self._path,
            env=environment(how),
            text=True,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
            raise NotTriedError(f"the tests fail without a change; mend them first:\n{tail}")
        self._tried_whole.add(id(how))

    def _pass(self, how: Pass, file: Path, kept: Path, until: float) -> bool:
        """Tries the changes of a file that no test has noticed yet; false where the time was over before."""
        kept.mkdir(parents=True, exist_ok=True)
        command = ["cargo", "mutants", "--in-place", "--baseline", "skip", "--iterate", "--package", "qos-core"]
        command += ["--file", record.name_of(file), "--output", str(kept), "--timeout", str(WHOLE_RUN_S)]
        command += [f"--exclude-re=^{re.escape(name)}$" for name in self._without_effect(file)]
        command += [f"--cargo-arg={part}" for part in ("--locked", *how.targets)]
        command += [f"--cargo-test-arg={part}" for part in ("--", *how.tests)]
        with (kept / "log.txt").open("a") as log:
            running = subprocess.Popen(command, cwd=self._path, env=environment(how), stdout=log, stderr=log)
            while running.poll() is None and time.monotonic() < until:
                time.sleep(0.2)
            over = running.poll() is None
            if over:
                running.send_signal(signal.SIGINT)
                running.wait()
        keep(kept)
        if running.returncode not in (0, 2, 3) and not over:
            raise NotTriedError(f"cargo mutants ended with {running.returncode}; {kept / 'log.txt'} has what it said")
        if over:
            # An interrupted change may stay in the copy.
            self.prepare()
        return not over


def environment(how: Pass) -> dict[str, str]:
    """Of cargo; the limits are those of test programs alone."""
    host = subprocess.run(["rustc", "-vV"], text=True, stdout=subprocess.PIPE, check=True).stdout
    triple = next(line.split()[1] for line in host.splitlines() if line.startswith("host:"))
    runner = f"env RUSTC_BOOTSTRAP=1 prlimit --cpu={how.cpu_s} --as={MEMORY_BYTES} --"
    variables = {key: value for key, value in os.environ.items() if key != "CARGO_TARGET_DIR"}
    return {**variables, **COMMON, **how.environment, f"CARGO_TARGET_{triple.upper().replace('-', '_')}_RUNNER": runner}


def keep(kept: Path) -> None:
    """Adds what the last pass found to what is known of a file."""
    found = known(kept)
    for kind in OUTCOMES:
        listed = kept / "mutants.out" / f"{kind}.txt"
        if listed.exists():
            found.update(dict.fromkeys(listed.read_text(encoding="utf-8").splitlines(), kind))
    (kept / "outcomes.json").write_text(json.dumps(found, indent=1), encoding="utf-8")


def known(kept: Path) -> dict[str, str]:
    """What passes have found of a file so far, by the changes' names."""
    file = kept / "outcomes.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


if __name__ == "__main__":
    sys.exit(main())
