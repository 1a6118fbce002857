"""Malicious run folders as input of each command."""

from __future__ import annotations

import atexit
import functools
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import sample_run
from damage import BYTES, NAMES, PLACES, UNPRINTABLE
from harness import CaseResult, HostileCase, Make

from hostile_captures import CAPTURES
from hostile_runs import BEGIN, CELL, COMPUTED, LINES, OPTIONS, RUNS, SCRIPT, TABLES, TEXTS, Change, requested_run
from qoslab.cli import main
from qoslab.results.progress import PROGRESS
from qoslab.results.sealed_files import add_seal

READERS: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "run"),
    "watch": ("watch", "run"),
    "compare": ("compare", "run", "run"),
    "export": ("export", "run", "--format", "ro-crate", "--to", "crate.zip"),
}
WRITES = ("run", "run/*", "crate.zip", "a.svg")
CHECKED_FILES = ("run/cells/*", "run/experiment.yml", "run/run.json")
"""Raw results, which no command changes."""
REPORT = ("report", "run")
DAMAGED = (
    *("manifest.json", "run.json", "experiment.yml", f"{CELL}/cell.json", f"{CELL}/experiment.json"),
    *(f"{CELL}/counters/R1.jsonl", f"{CELL}/traffic/transfer.server.json", f"{CELL}/captures/server.pcapng"),
)
"""Files that are tested with all kinds of damage."""


@functools.cache
def whole_run(capture: str = "") -> Path:
    """Return a finished run, with a table and a comparison; with `capture`, that capture."""
    place = Path(tempfile.mkdtemp(prefix="whole"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    if not capture:
        return sample_run.make_run_of_one_arm(place).path
    file = place / "hostile.pcapng"
    file.write_bytes(CAPTURES[capture][0])
    experiment = {**sample_run.EXPERIMENT, "arms": [{"name": "a"}]}
    experiment.pop("compare")
    return sample_run.make_run(place, experiment=experiment, captures={"a": file}, published=()).path


@functools.cache
def reported_run() -> Path:
    """Return a finished run with its tables and its report."""
    place = Path(tempfile.mkdtemp(prefix="reported"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    made = Path(shutil.copytree(whole_run(), place / "run"))
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        main(["report", str(made)])
    return made


def run(
    change: Change | None = None, *, options: str = "", seal: bool = True, of: Callable[[], Path] = whole_run
) -> Make:
    """Copy a finished run, change it, and reseal it."""

    def make(folder: Path) -> None:
        place = folder / "run"
        shutil.copytree(of(), place)
        (folder / "secret").write_text("a secret of the reader")
        if options:
            (place / "run.json").write_bytes(add_seal(options.encode()))
            (place / PROGRESS).write_text("")
        if change is not None:
            change(place)
        if seal:
            sample_run.reseal(place)

    return make


def case(
    name: str, make: Make, words: tuple[str, ...], statuses: tuple[int, ...] = (0, 1, 2, 3), says: str = ""
) -> HostileCase:
    """Return a case of a run folder."""
    return HostileCase(name, make, words, statuses, says, WRITES, CHECKED_FILES, 8.0, 600.0, keeps_secrets)


def keeps_secrets(folder: Path, found: CaseResult) -> None:
    """Check that nothing outside the run is shown, and no script is in the report."""
    assert "a secret of the reader" not in found.text
    report = folder / "run/report.html"
    if report.is_file():
        text = report.read_text()
        assert SCRIPT not in text and "a secret of the reader" not in text and len(text) < 20_000_000


def progress(line: str) -> Change:
    """Make a run print a line of progress after its first lines and before its last."""

    def change(place: Path) -> None:
        (place / "run.json").write_bytes(add_seal(requested_run().encode()))
        first = [json.dumps(BEGIN), json.dumps({"event": "cell", "name": "policed/1", "folder": CELL})]
        last = json.dumps({"event": "end", "how": "interrupted"})
        (place / PROGRESS).write_text("".join(f"{each}\n" for each in (*first, line, last)))

    return change


def put(name: str, place: str) -> Change:
    """Replace a file of a run."""

    def change(folder: Path) -> None:
        path = folder / name
        content = path.read_bytes() if path.is_file() else b"{}"
        path.unlink(missing_ok=True)
        PLACES[place](path, content)

    return change


def damaged_run(name: str, kind: str) -> Change:
    """Damage a file of a run."""

    def change(folder: Path) -> None:
        path = folder / name
        path.write_bytes(BYTES[kind](path.read_bytes() if path.exists() else requested_run().encode()))

    return change


def named(name: bytes) -> Change:
    """Add a file with a name to a cell."""
    return lambda folder: (folder / CELL / "config" / os.fsdecode(name)).write_text("x")


def computed_file(name: str) -> Change:
    """Write a file that is computed from the results."""
    return lambda folder: (folder / COMPUTED[name][0]).write_text(COMPUTED[name][1])


def cases() -> Iterator[HostileCase]:
    """Yield all cases of this module."""
    yield case("report a whole run", run(), REPORT, (1,))
    for name, (change, status, answer) in RUNS.items():
        yield case(f"report {name}", run(change), REPORT, (status,), answer)
    for name, change in TEXTS.items():
        yield case(f"report {name}", run(change), REPORT, (1,))
    for name, change in {**{name: each[0] for name, each in RUNS.items()}, **TEXTS}.items():
        for command, words in READERS.items():
            yield case(f"{command} {name}", run(change, options=requested_run()), words)
    for name in DAMAGED:
        for kind in BYTES:
            make = run(damaged_run(name, kind), options=requested_run())
            yield case(f"report damage of {Path(name).name}: {kind}", make, REPORT)
        for kind in PLACES:
            make = run(put(name, kind), options=requested_run(), seal=False)
            yield case(f"verify in the place of {Path(name).name}: {kind}", make, READERS["verify"])
    for kind, given in NAMES.items():
        refused = (
            ((2,), "found a name with other characters, expected printable text in UTF-8")
            if kind in UNPRINTABLE
            else ()
        )
        for words in (READERS["verify"], READERS["watch"], REPORT):
            yield case(f"{words[0]} a name: {kind}", run(named(given), options=requested_run()), words, *refused)
    for name, (change, answer) in TABLES.items():
        says = rf"tables/metrics\.parquet: {answer}"
        yield case(f"verify a table: {name}", run(change, of=reported_run), READERS["verify"], (3,), says)
    for name in COMPUTED:
        yield case(f"compare {name}", run(computed_file(name), of=reported_run), READERS["compare"])
    for name, (line, status, _) in LINES.items():
        yield case(f"watch progress: {name}", run(progress(line)), READERS["watch"], (status,))
    for name, (text, answer) in OPTIONS.items():
        resumed = HostileCase(
            f"resume options: {name}", run(options=text), ("run", "--resume", "run"), (2,), answer, WRITES
        )
        yield resumed
    for name, (_, answer) in CAPTURES.items():
        yield case(f"report a capture: {name}", run(of=functools.partial(whole_run, name)), REPORT, (3,), answer)
