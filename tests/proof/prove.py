"""Which expectation notices which mistake: the experiment files in virtual time, with each mistake made on purpose.

    tox -e prove                        all mistakes
    tox -e prove -- ring-longer         these mistakes only

A mistake of a router is a switch in a build of `qos-sim` with the feature `mistakes` (crates/mistakes), one of the
analysis a patch (`analysis_mistakes`). A cell is simulated again with a mistake if it has come by its switch. An
expectation notices where it holds without the mistake and not with it.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from subprocess import run
from typing import Any

import pandas as pd
from analysis_mistakes import ANALYSIS
from document import FileProof, document

from qoslab.analysis.run import judge, metrics_of_cells
from qoslab.cli.run import published_figures
from qoslab.errors import QoslabError
from qoslab.labs import lab_kind
from qoslab.labs.simulated import Simulated
from qoslab.model.comparison import PublishedFigure
from qoslab.model.experiment import Experiment
from qoslab.model.matrix import as_texts
from qoslab.plan import Options, make_plan
from qoslab.programs import SIMULATOR, variable_of
from qoslab.results import Cell, CellSummary, RunFolder
from qoslab.run.labs import machinery
from qoslab.run.labs.worker import WorkerSlot
from qoslab.run.task import CellTask, make_task
from qoslab.schema import load_sweep

TOP = Path(__file__).parents[2]
DOCUMENT = TOP / "docs/proof.md"
TARGET = TOP / "target/mistakes"
PROGRAM = TARGET / "release" / SIMULATOR
FOUND = TARGET / "found"
REACHED = "reached.txt"
"""In a cell's folder: the switches that the simulator has come by."""
FILES = "PROVE_FILES"
"""Variable that picks experiment files by a pattern; of the others the document has what was found before."""
BUILT = "PROVE_BUILT"
"""Variable that says that the simulator is built already."""
WITHIN, OUTSIDE = "within", "outside"

Patch = Callable[[], AbstractContextManager[None]]
Verdicts = Mapping[tuple[str, str], str]
"""By place (arm, cells) and metric."""


@dataclass(frozen=True)
class Mistake:
    """One of a router or of the analysis."""

    name: str
    what: str
    patch: Patch | None = None
    """Of the analysis: what makes it."""


@dataclass
class File:
    """An experiment file with what came of it without a mistake."""

    name: str
    experiment: Experiment
    published: tuple[PublishedFigure, ...]
    tasks: list[CellTask]
    cells: list[Cell] = field(default_factory=list)
    metrics: pd.DataFrame = field(default_factory=pd.DataFrame)
    verdicts: Verdicts = field(default_factory=dict)

    def reaching(self, mistake: Mistake) -> list[int]:
        """The cells that have come by a mistake's switch."""
        return [
            number
            for number, cell in enumerate(self.cells)
            if mistake.name in (cell.path / REACHED).read_text(encoding="utf-8").split()
        ]


def build() -> list[Mistake]:
    """Build the simulator with the switches; returns the mistakes that it can make."""
    if BUILT in os.environ:
        return _listed()
    cargo = ["cargo", "build", "--release", "-q", "--locked", "-p", SIMULATOR, "--features", "mistakes"]
    run([*cargo, "--target-dir", str(TARGET)], cwd=TOP, check=True)
    return _listed()


def _listed() -> list[Mistake]:
    listed = run([str(PROGRAM), "mistakes"], check=True, capture_output=True, text=True).stdout
    return [Mistake(*line.split("\t")) for line in listed.splitlines()]


@contextmanager
def simulator(mistake: str = "") -> Iterator[None]:
    """Cells are simulated by the program with the switches, which makes a mistake."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / SIMULATOR
        made = f" --mistake {mistake}" if mistake else ""
        script.write_text(f'#!/bin/sh\nexec {PROGRAM} --reached {REACHED}{made} "$@"\n', encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        os.environ[variable_of(SIMULATOR)] = str(script)
        try:
            yield
        finally:
            del os.environ[variable_of(SIMULATOR)]


def load(path: Path) -> File:
    """An experiment file with its cells. Captures and shows decide no expectation, and are left out."""
    sweep = load_sweep(path, {}, lab_kind(Simulated.name).check)
    tasks = [make_task(cell, {}) for cell in make_plan(sweep, Options(lab=Simulated.name)).cells]
    bare = {"captures": (), "observe": ()}
    tasks = [replace(task, experiment=task.experiment.model_copy(update=bare)) for task in tasks]
    return File(path.stem, sweep.experiment, published_figures(path, sweep.experiment), tasks)


def simulate(tasks: Sequence[CellTask], folder: RunFolder) -> list[Cell]:
    """Run cells, two at a time."""
    made = machinery(lab_kind(Simulated.name))
    shared = made.shared()

    def one(task: CellTask) -> Cell:
        cell = folder.cell_of(task.identity)
        slot = WorkerSlot(0, "", folder.path, shared, _silent, lambda text: None, threading.Event())
        with made.worker(slot) as worker:
            worker.run(task, cell)
        return cell

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, tasks))


def _silent(cell: str, step: str, seconds: float | None = None) -> None:
    """Progress is told for each mistake."""


def verdicts(file: File, metrics: pd.DataFrame, invalid: Mapping[str, tuple[str, ...]]) -> Verdicts:
    """What the comparison says of each expectation and average."""
    cells = [
        CellSummary(
            arm=task.identity.arm,
            parameters=as_texts(dict(task.identity.parameters)),
            repetition=task.identity.repetition,
            valid=task.identity.folder not in invalid,
        )
        for task in file.tasks
    ]
    judged = judge(file.experiment, file.published, metrics, cells, Simulated.name)
    found = {(_place(row), row["metric"]): row["verdict"] for row in judged.comparison.to_dict("records")}
    for row in judged.averages.to_dict("records"):
        found[f"{row['title']}, {row['arm']} {row['each']}".strip(), row["metric"]] = row["verdict"]
    return found


def _place(row: Mapping[str, Any]) -> str:
    where = row.get("where") or ""
    return f"{row['arm']} ({where})" if where else str(row["arm"])


def begin(file: File, folder: Path) -> None:
    """Run a file without a mistake."""
    with simulator():
        file.cells = simulate(file.tasks, RunFolder.create(folder, file.name))
    file.metrics, invalid = metrics_of_cells(file.experiment, file.published, file.cells)
    file.verdicts = verdicts(file, file.metrics, invalid)
    if invalid:
        raise SystemExit(f"{file.name} is not valid without a mistake: {invalid}")


def noticed(file: File, mistake: Mistake, folder: Path) -> list[str] | None:
    """The expectations that notice; None where no cell comes by the switch."""
    if mistake.patch is not None:
        with mistake.patch():
            metrics, invalid = metrics_of_cells(file.experiment, file.published, file.cells)
            return changed(file, verdicts(file, metrics, invalid))
    numbers = file.reaching(mistake)
    if not numbers:
        return None
    try:
        with simulator(mistake.name):
            cells = simulate([file.tasks[number] for number in numbers], RunFolder.create(folder, file.name))
    except QoslabError as error:
        return [f"it is refused: {error.message}"]
    metrics, invalid = metrics_of_cells(file.experiment, file.published, cells)
    kept = file.metrics[~file.metrics["cell"].isin([cell.name for cell in cells])]
    return changed(file, verdicts(file, pd.concat([kept, metrics], ignore_index=True), invalid))


def changed(file: File, found: Verdicts) -> list[str]:
    """The rows that hold without a mistake and not with it."""
    held = [key for key, verdict in file.verdicts.items() if verdict == WITHIN]
    return [f"{place} {metric}" for place, metric in held if found.get((place, metric)) != WITHIN]


def prove(file: File, mistakes: Sequence[Mistake]) -> None:
    """Simulate a file without a mistake, then with each; what is found is kept beside what was found before."""
    with tempfile.TemporaryDirectory() as folder:
        begin(file, Path(folder))
        held = sum(verdict == WITHIN for verdict in file.verdicts.values())
        outside = [f"{place} {metric}" for (place, metric), verdict in file.verdicts.items() if verdict == OUTSIDE]
        print(f"{file.name}: {len(file.cells)} cells, {held} rows hold, {len(outside)} do not", flush=True)
        found = dict(before.noticed) if (before := kept(file.name)) else {}
        for each in mistakes:
            with tempfile.TemporaryDirectory() as made:
                found[each.name] = rows = noticed(file, each, Path(made))
            said = "not made" if rows is None else f"{len(rows)} rows" if rows else "NOT NOTICED"
            print(f"{file.name}: {each.name}: {said}", flush=True)
            FOUND.mkdir(exist_ok=True)
            text = json.dumps(asdict(FileProof(file.name, held, outside, found)))
            (FOUND / f"{file.name}.json").write_text(text, encoding="utf-8")


def kept(name: str) -> FileProof | None:
    """What was found of an experiment file."""
    path = FOUND / f"{name}.json"
    return FileProof(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def main(names: Sequence[str]) -> int:
    """Prove, and write the document from all that was found."""
    every = build() + [Mistake(name, what, patch) for name, what, patch in ANALYSIS]
    if unknown := sorted(set(names) - {each.name for each in every}):
        print(f"no such mistake: {', '.join(unknown)}; docs/proof.md lists them", file=sys.stderr)
        return 2
    paths = sorted((TOP / "experiments").glob("*.yml"))
    if not names and FILES not in os.environ:
        shutil.rmtree(FOUND, ignore_errors=True)
    for path in sorted((TOP / "experiments").glob(f"{os.environ.get(FILES, '*')}.yml")):
        prove(load(path), [each for each in every if not names or each.name in names])
    proofs = [proof for path in paths if (proof := kept(path.stem)) is not None]
    missing = sorted({path.stem for path in paths} - {proof.name for proof in proofs})
    listed = [(each.name, each.what) for each in every]
    DOCUMENT.write_text(document(listed, proofs, missing), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
