"""Proof that expectations detect each deliberate mistake: the experiment files in virtual time, with each mistake.

    tox -e prove                        all mistakes
    tox -e prove -- ring-longer         these mistakes only
    PROVE_FILES='hqf-*' tox -e prove    these files
    PROVE_SPARING=1 tox -e prove        in each file cell by cell until a row notices
    PROVE_UNNOTICED=1 tox -e prove      so, and only mistakes that nothing is known to notice yet

A mistake of a router is a switch in a build of `qos-sim` with the feature `mistakes` (crates/mistakes), one of the
analysis is a patch (`analysis_mistakes`). A cell is simulated again with a mistake if it has executed the mistake's
switch, and computed again if its results differ. Simulations are cached (`simulation_cache`). An expectation detects a
mistake if it passes without the mistake and fails with it. Mistakes are tried in parallel, each in a separate process.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from subprocess import run
from typing import Any
from unittest.mock import patch

import pandas as pd
from analysis_mistakes import ANALYSIS
from document import FileProof, Row, page_section, proof_details, proof_document, replace_section
from simulation_cache import SimulationCache

from experiment_files import simulated_experiments
from qoslab.analysis import readings
from qoslab.analysis.judged import judge
from qoslab.analysis.metrics import concatenate_cells
from qoslab.errors import QoslabError
from qoslab.lab_kinds import lab_kind
from qoslab.lab_kinds.simulated import SimulatedKind
from qoslab.model.comparison import Comparison, PublishedValue
from qoslab.model.experiment import Experiment
from qoslab.model.instants import traffic_time
from qoslab.model.matrix import as_texts
from qoslab.model.reference_names import references
from qoslab.plan import Options, make_plan
from qoslab.results import Cell, CellSummary, RunFolder, tables
from qoslab.run.task import CellTask, make_task
from qoslab.run.workers import lab_machinery
from qoslab.run.workers.base import WorkerSlot
from qoslab.schema import load_sweep, published_values
from qoslab.system.programs import SIMULATOR, program_variable

TOP = Path(__file__).parents[2]
DOCUMENT = TOP / "docs/internals/proof.md"
TARGET = TOP / "target/mistakes"
DETAILS = TARGET / "rows.md"
"""The rows that detect each mistake; the document has their numbers."""
PROGRAM = TARGET / "release" / SIMULATOR
FOUND = TARGET / "found"
RESULTS = TARGET / "kept"
FORMAT = b"2"
"""Format of the stored results."""
FILES = "PROVE_FILES"
"""Variable that selects experiment files by a pattern; the document has the earlier results of the others."""
UNDETECTED = "PROVE_UNNOTICED"
"""Variable for a run with only the mistakes that no row is known to detect yet, file by file, cell by cell."""
REDUCED = "PROVE_SPARING"
"""Variable for a run in which a mistake is tried cell by cell until a row detects it."""
BUILT = "PROVE_BUILT"
"""Variable for a run with an existing simulator."""
SELECTED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "tcp-friendly-policer": (("connections", "1"), ("link", "10 Mb/s")),
    "tcp-friendly-policer-more": (("connections", "1"), ("pir", "1 Mb/s")),
}
"""Selected cells of sweeps by file, as with `--only`."""
CAPTURED: Mapping[str, str] = {"policing-vs-shaping": "shaped"}
"""Arm of each file that is simulated with captures, to compare them with the reports of traffic tools."""
LIMITERS = "limiter."
"""Prefix of metrics that need captures."""
WITHIN, OUTSIDE = "within", "outside"
AT_ONCE = 2
"""Number of cells or mistakes that are simulated in parallel."""

Patch = Callable[[], AbstractContextManager[None]]
Verdicts = Mapping[Row, str]
"""Verdicts by place (arm, cells) and metric."""


@dataclass(frozen=True)
class Mistake:
    """Deliberate mistake of a router or of the analysis."""

    name: str
    what: str
    patch: Patch | None = None
    """Function that patches the analysis."""


@dataclass
class ExperimentFile:
    """Experiment file with its results without a mistake."""

    name: str
    experiment: Experiment
    published: tuple[PublishedValue, ...]
    tasks: list[CellTask]
    all_cells: int = 0
    """Number of all cells; `tasks` are the simulated ones."""
    cells: list[Cell] = field(default_factory=list)
    metrics: pd.DataFrame = field(default_factory=pd.DataFrame)
    read: list[tuple[Any, ...]] = field(default_factory=list)
    """Inputs of the metrics of each cell."""
    held: list[tuple[Any, ...]] = field(default_factory=list)
    """Comparisons of each cell with captures."""
    captures: bool = False
    """True if expectations depend on captures."""
    verdicts: Verdicts = field(default_factory=dict)


def build() -> list[Mistake]:
    """Build the simulator with the switches; return the mistakes that it can make."""
    if BUILT not in os.environ:
        cargo = ["cargo", "build", "--release", "-q", "--locked", "-p", SIMULATOR, "--features", "mistakes"]
        run([*cargo, "--target-dir", str(TARGET)], cwd=TOP, check=True)
    listed = run([str(PROGRAM), "mistakes"], check=True, capture_output=True, text=True).stdout
    return [Mistake(*line.split("\t")) for line in listed.splitlines()]


def load_file(path: Path) -> ExperimentFile:
    """Return an experiment file with its cells: of arms with expectations, and of sweeps the `PICKED` ones.

    Captures without expectations, shows, graphs and notes affect no verdict, and are left out.
    """
    sweep = load_sweep(path, {}, lab_kind(SimulatedKind.name).check)
    compare = proven_experiment(sweep.experiment.compare)
    expected = {arm for each in compare.expectations for arm in each.arms} if compare else set()
    expected |= {each.arm for each in compare.averages} if compare else set()
    arms = tuple(arm.name for arm in sweep.experiment.arms if arm.name in expected)
    options = Options(lab=SimulatedKind.name, arms=arms, only=SELECTED.get(path.stem, ()))
    tasks = [make_task(cell, {}) for cell in make_plan(sweep, options).cells]
    captures = any(each.metric.startswith(LIMITERS) for each in compare.expectations) if compare else False
    bare: dict[str, tuple[()]] = dict.fromkeys(("observe", "graphs", "traces", "notes"), ())
    if not captures:
        bare["captures"] = ()
    tasks = [replace(task, experiment=task.experiment.model_copy(update=bare)) for task in tasks]
    return ExperimentFile(
        path.stem,
        sweep.experiment.model_copy(update={**bare, "compare": compare}),
        published_values(path, sweep.experiment),
        tasks,
        len(make_plan(sweep, Options(lab=SimulatedKind.name)).cells),
        captures=captures,
    )


def proven_experiment(compare: Comparison | None) -> Comparison | None:
    """Return the comparison without the labels of rows that detect no mistake: they may detect one now."""
    if compare is None:
        return None
    expectations = tuple(each.model_copy(update={"unproven": False}) for each in compare.expectations)
    return compare.model_copy(update={"expectations": expectations})


def simulate(tasks: Sequence[CellTask], folder: RunFolder) -> list[Cell]:
    """Run cells, `AT_ONCE` at a time."""
    made = lab_machinery(lab_kind(SimulatedKind.name))
    shared = made.shared()

    def run_task(task: CellTask) -> Cell:
        cell = folder.cell_folder(task.identity)
        slot = WorkerSlot(0, "", folder.path, shared, _ignore_output, lambda text: None, threading.Event())
        with made.worker(slot) as worker:
            worker.run(task, cell)
        return cell

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run_task, tasks))


def _ignore_output(cell: str, step: str, seconds: float | None = None) -> None:
    """Ignore progress, which is printed for each mistake."""


def verdicts(file: ExperimentFile, metrics: pd.DataFrame, invalid: Mapping[str, tuple[str, ...]]) -> Verdicts:
    """Return the verdict of each expectation and average."""
    cells = [
        CellSummary(
            arm=task.identity.arm,
            parameters=as_texts(dict(task.identity.parameters)),
            repetition=task.identity.repetition,
            valid=task.identity.folder not in invalid,
        )
        for task in file.tasks
    ]
    judged = judge(file.experiment, file.published, metrics, cells, SimulatedKind.name)
    found = {(_row_place(row), row["metric"]): row["verdict"] for row in judged.comparison.to_dict("records")}
    for row in judged.averages.to_dict("records"):
        found[f"{row['title']}, {row['arm']} {row['each']}".strip(), row["metric"]] = row["verdict"]
    return found


def _row_place(row: Mapping[str, Any]) -> str:
    where = row.get("where") or ""
    return f"{row['arm']} ({where})" if where else str(row["arm"])


@contextmanager
def record_calls(name: str, kept: list[tuple[Any, ...]]) -> Iterator[None]:
    """Record the arguments of a function of the analysis."""
    compute = getattr(readings, name)

    def record(*given: Any) -> Any:
        kept.append(given)
        return compute(*given)

    with patch.object(readings, name, record):
        yield


def fulfils(path: Path, folder: Path) -> list[tuple[Any, ...]]:
    """Compare the cells of a file's `CAPTURED` arm, simulated for this purpose, with captures."""
    if path.stem not in CAPTURED:
        return []
    sweep = load_sweep(path, {"observe": "[]"}, lab_kind(SimulatedKind.name).check)
    plan = make_plan(sweep, Options(lab=SimulatedKind.name, arms=(CAPTURED[path.stem],)))
    held: list[tuple[Any, ...]] = []
    with patch.dict(os.environ, {program_variable(SIMULATOR): str(PROGRAM)}), record_calls("report_mismatches", held):
        cells = simulate([make_task(cell, {}) for cell in plan.cells], RunFolder.create(folder, path.stem))
        if problems := readings.Readings(()).gather(cell.files() for cell in cells).problems:
            raise SystemExit(f"{path.stem} is not valid with its captures: {problems}")
    return held


def used_metrics(file: ExperimentFile, cells: Sequence[Cell]) -> tuple[pd.DataFrame, dict[str, tuple[str, ...]]]:
    """The metrics of some cells of a file, and the reasons of invalid cells."""
    wanted = references(file.experiment, file.published)
    found = readings.Readings(wanted, captures=file.captures).gather(cell.files() for cell in cells)
    parameters = {cell.name: cell.parameters for cell in cells}
    return tables.with_parameters(found.tables["metrics"], parameters), found.problems


def begin(file: ExperimentFile, folder: Path) -> None:
    """Run a file without a mistake."""
    with SimulationCache.of(PROGRAM, RESULTS).used():
        file.cells = simulate(file.tasks, RunFolder.create(folder, file.name))
    with record_calls("metrics_of_cell", file.read):
        file.metrics, invalid = used_metrics(file, file.cells)
    file.verdicts = verdicts(file, file.metrics, invalid)
    if invalid:
        raise SystemExit(f"{file.name} is not valid without a mistake: {invalid}")


def batches(file: ExperimentFile, mistake: Mistake) -> Iterator[list[int]]:
    """Yield the cells that execute a mistake's switch: all together, or one by one from the least traffic."""
    kept = SimulationCache.of(PROGRAM, RESULTS)
    reaching = [number for number, cell in enumerate(file.cells) if mistake.name in kept.reached(cell)]
    if not is_reduced():
        yield from [reaching] if reaching else []
        return

    def seconds(number: int) -> float:
        experiment = file.tasks[number].experiment
        return traffic_time(experiment, experiment.arm(file.tasks[number].identity.arm)).seconds

    yield from ([number] for number in sorted(reaching, key=seconds))


def affected_cells(file: ExperimentFile, mistake: Mistake, numbers: Sequence[int]) -> list[int]:
    """Return the cells whose result changes with a mistake."""
    without, mistaken = SimulationCache.of(PROGRAM, RESULTS), SimulationCache.of(PROGRAM, RESULTS, mistake.name)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda number: mistaken.simulate(file.cells[number]), numbers))
    return [number for number in numbers if not mistaken.like(without, file.cells[number])]


def is_reduced() -> bool:
    """Return whether further cells are omitted after a detection."""
    return UNDETECTED in os.environ or REDUCED in os.environ


def detecting_rows(file: ExperimentFile, mistake: Mistake, folder: Path) -> list[Row] | None:
    """Return the expectations that detect a mistake; None if no cell executes the switch."""
    if mistake.patch is not None:
        with mistake.patch():
            parameters = {cell.name: cell.parameters for cell in file.cells}
            each = [tables.arrow("metrics", readings.metrics_of_cell(*given)) for given in file.read]
            metrics = tables.with_parameters(concatenate_cells(each), parameters)
            output = [problem for given in file.held for problem in readings.report_mismatches(*given)]
        return rows_that_fail(file, verdicts(file, metrics, {})) + [
            (CAPTURED[file.name], "is invalid") for _ in output[:1]
        ]
    rows: list[Row] | None = None
    for numbers in batches(file, mistake):
        rows = detecting_rows_in(file, mistake, affected_cells(file, mistake, numbers), folder)
        if rows:
            break
    return rows


def detecting_rows_in(file: ExperimentFile, mistake: Mistake, numbers: Sequence[int], folder: Path) -> list[Row]:
    """Return the expectations that detect a mistake in some cells."""
    if not numbers:
        return []
    try:
        with SimulationCache.of(PROGRAM, RESULTS, mistake.name).used():
            cells = simulate([file.tasks[number] for number in numbers], RunFolder.create(folder, file.name))
    except QoslabError as error:
        return [("it is refused:", error.message)]
    metrics, invalid = used_metrics(file, cells)
    kept = file.metrics[~file.metrics["cell"].isin([cell.name for cell in cells])]
    return rows_that_fail(file, verdicts(file, pd.concat([kept, metrics], ignore_index=True), invalid))


def rows_that_fail(file: ExperimentFile, found: Verdicts) -> list[Row]:
    """Return the rows that pass without a mistake and fail with it."""
    return [row for row in rows_with_verdict(file, WITHIN) if found.get(row) != WITHIN]


def rows_with_verdict(file: ExperimentFile, verdict: str) -> list[Row]:
    """Return the rows with this verdict without a mistake."""
    return [row for row, found in file.verdicts.items() if found == verdict]


def processor_s() -> float:
    """Return the processor time of this process and of its finished children, in seconds."""
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def prove(path: Path, mistakes: Sequence[Mistake]) -> None:
    """Simulate a file without a mistake, then with each; store the results with the earlier ones."""
    begun = processor_s()
    file = load_file(path)
    before = saved_proof(path)
    found = dict(before.noticed) if before else {}
    spared = set(before.spared) if before else set()
    with tempfile.TemporaryDirectory() as folder:
        begin(file, Path(folder))
        file.held = fulfils(path, Path(folder))
        held, outside = rows_with_verdict(file, WITHIN), rows_with_verdict(file, OUTSIDE)
        print(f"{file.name}: {len(file.cells)} cells, {len(held)} rows hold, {len(outside)} do not", flush=True)
        earlier = before.processor_s if before else 0
        for mistake, rows, took in check_each_mistake(file, mistakes):
            earlier += took
            found[mistake.name] = rows
            spared = spared | {mistake.name} if rows and is_reduced() else spared - {mistake.name}
            text = "not made" if rows is None else f"{len(rows)} rows" if rows else "NOT NOTICED"
            print(f"{file.name}: {mistake.name}: {text}", flush=True)
            took = processor_s() - begun + earlier
            counts = (len(file.cells), file.all_cells)
            proof = FileProof(file.name, digest(path), *counts, took, held, outside, found, sorted(spared))
            FOUND.mkdir(exist_ok=True)
            (FOUND / f"{file.name}.json").write_text(json.dumps(asdict(proof)), encoding="utf-8")


def check_each_mistake(
    file: ExperimentFile, mistakes: Sequence[Mistake]
) -> Iterator[tuple[Mistake, list[Row] | None, float]]:
    """Yield the detecting rows of each mistake as they are found, and the processor time of the others.

    Several run in parallel, in processes that inherit the file's results without a mistake.
    """
    if len(mistakes) == 1:
        yield mistakes[0], _detecting_rows_of(file, mistakes[0])[0], 0.0
        return
    _GIVEN.append((file, mistakes))
    with multiprocessing.get_context("fork").Pool(AT_ONCE, _one_at_a_time) as pool:
        numbered = pool.imap_unordered(_make_separately, range(len(mistakes)))
        yield from ((mistakes[number], rows, took) for number, rows, took in numbered)
        # They end by themselves: a process with this process's handler of SIGTERM may survive the pool's signal.
        pool.close()
        pool.join()
    _GIVEN.pop()


_GIVEN: list[tuple[ExperimentFile, Sequence[Mistake]]] = []
"""Common data of the processes that try mistakes: file and mistakes cannot be sent, so they are set before the fork."""


def _one_at_a_time() -> None:
    """Let this process simulate one cell at a time, next to other processes."""
    global AT_ONCE
    AT_ONCE = 1


def _make_separately(number: int) -> tuple[int, list[Row] | None, float]:
    file, mistakes = _GIVEN[-1]
    return number, *_detecting_rows_of(file, mistakes[number])


def _detecting_rows_of(file: ExperimentFile, mistake: Mistake) -> tuple[list[Row] | None, float]:
    """Return the detecting rows of a mistake, and the processor time spent here."""
    begun = processor_s()
    with tempfile.TemporaryDirectory() as made:
        rows = detecting_rows(file, mistake, Path(made))
    return rows, processor_s() - begun


def digest(path: Path) -> str:
    """Return the digest of an experiment file and the simulator: results with another digest are obsolete."""
    return sha256(FORMAT + path.read_bytes() + PROGRAM.read_bytes()).hexdigest()[:16]


def saved_proof(path: Path) -> FileProof | None:
    """Return the stored results of the current experiment file."""
    found = FOUND / f"{path.stem}.json"
    if not found.exists():
        return None
    read = json.loads(found.read_text(encoding="utf-8"))
    return FileProof.of(read) if read.get("digest") == digest(path) else None


def detected_by(paths: Sequence[Path]) -> set[str]:
    """Return the mistakes that a row of one of these files is known to detect."""
    proofs = [proof for path in paths if (proof := saved_proof(path)) is not None]
    return {name for proof in proofs for name, rows in proof.noticed.items() if rows}


def main(names: Sequence[str]) -> int:
    """Try the mistakes, and write the document from all results; the status is 1 if a mistake is undetected."""
    every = build() + [Mistake(name, what, patch) for name, what, patch in ANALYSIS]
    if unknown := sorted(set(names) - {each.name for each in every}):
        print(f"no such mistake: {', '.join(unknown)}; docs/internals/proof.md lists them", file=sys.stderr)
        return 2
    paths = simulated_experiments()
    for path in paths:
        if not fnmatch(path.stem, os.environ.get(FILES, "*")):
            continue
        known = detected_by(paths) if UNDETECTED in os.environ else set()
        if wanted := [each for each in every if each.name not in known and (not names or each.name in names)]:
            prove(path, wanted)
    proofs = [proof for path in paths if (proof := saved_proof(path)) is not None]
    missing = sorted({path.stem for path in paths} - {proof.name for proof in proofs})
    listed = [(each.name, each.what) for each in every]
    peers = page_section(DOCUMENT.read_text(encoding="utf-8")) if DOCUMENT.exists() else ""
    DETAILS.write_text(proof_details(listed, proofs), encoding="utf-8")
    DOCUMENT.write_text(replace_section(proof_document(listed, proofs, missing), peers), encoding="utf-8")
    if unnoticed := [each.name for each in every if each.name not in detected_by(paths)]:
        print(f"no row notices: {', '.join(unnoticed)}", file=sys.stderr)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
