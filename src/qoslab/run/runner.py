"""Runs an experiment: labs, cells, manifest, analysis, report."""

from __future__ import annotations

# Threads of a run import modules on demand. Two of them import each other, and two threads would wait for each other.
import multiprocessing  # noqa: F401
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from qoslab.errors import DamageError
from qoslab.lab_kinds import lab_kind
from qoslab.results import Cell, CellRecord, Manifest, RunFolder, RunOptions, Session
from qoslab.results.redaction import KNOWN
from qoslab.run import identity, provenance
from qoslab.run.attempts import RunCells
from qoslab.run.background_analysis import BackgroundAnalysis
from qoslab.run.events import RunInterrupted, parallel_cells_text
from qoslab.run.jobs import LabCount
from qoslab.run.progress_lines import RunProgress
from qoslab.run.reporter import ProgressReporter
from qoslab.run.request import RunRequest, resume_command
from qoslab.run.schedule import CellSchedule
from qoslab.run.task import CellTask, Demands, cell_demands
from qoslab.run.workers import lab_machinery
from qoslab.run.workers.base import CellWorker, SharedLabData, WorkerSlot
from qoslab.system.priority import processor_count


@dataclass
class _SharedRunState:
    """State shared by the workers of a run."""

    request: RunRequest
    folder: RunFolder
    reporter: ProgressReporter
    schedule: CellSchedule
    interrupted: threading.Event
    analysis: BackgroundAnalysis
    lab: dict[str, Any] = field(default_factory=dict)
    """Description of the virtual lab."""
    configurations: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def traffic_turn(self, worker: int) -> Iterator[None]:
        """Take the turn of a worker for traffic, and start the background analysis of the request in the meantime."""
        with self.schedule.traffic_turn(worker):
            self.analysis.start()
            yield

    def finish(self, task: CellTask, record: CellRecord, *, lost: bool = False, worker: int | None = None) -> None:
        """Record the outcome of a leased cell."""
        self.reporter.report_outcome(task.name, record)
        self.schedule.finish(task, record, lost=lost, worker=worker)
        if record.valid:
            self.analysis.take(self.folder.cell_folder(task.identity, task.attempt))

    def attempt_folder(self, task: CellTask) -> Cell:
        """Return the folder for the results of an attempt."""
        with self.schedule.changed:
            for device, text in task.configurations.items():
                name = task.name.removesuffix(f"/{task.identity.repetition}")
                self.configurations[f"{name}/{device}"] = provenance.configuration_digest(KNOWN.hidden(text).encode())
        cell = self.folder.cell_folder(task.identity, task.attempt)
        self.reporter.report_start(cell)
        return cell


REPORTING = "writing the report of the measured cells (Ctrl-C again skips it)"


@contextmanager
def run_cells(request: RunRequest, progress: RunProgress) -> Iterator[RunFolder]:
    """Run all cells of the plan; the block receives the run folder with its manifest, for analysis and report.

    The routers of a lab that outlives the run are restored while the block runs; leaving the block waits for that.
    Reasons why a cell is invalid are recorded in the folder. Routers are restored and labs have ended before
    `UserError` (for a missing tool, before a folder is created) or `KeyboardInterrupt`; the results so far remain.
    """
    kind = lab_kind(request.plan.lab)
    made_with = lab_machinery(kind)
    tools = made_with.versions(request.place, request.plan.experiment)
    folder = request.resume or RunFolder.create(request.runs, request.plan.experiment.name, private=kind.has_place)
    with folder.lock_run(request.options):
        folder.write_experiment(request.file.read_text(encoding="utf-8"))
        reporter = ProgressReporter(progress, folder, steps=kind.real_time)
        facts = _BackgroundCall(
            lambda: _run_facts({**made_with.packages(), **tools, **identity.identity_facts(kind.programs)})
        )
        cells = RunCells(folder, request.plan.cells, tools)
        if request.resume is not None and (before := cells.find_results()):
            reporter.note(f"{before} of {len(request.plan.cells)} cells are already complete")
        missing = len(cells.unfinished_cells)
        reporter.expect(request.plan, len(request.plan.cells) - missing)
        request.serve(folder, progress.note)
        interrupted = threading.Event()
        schedule = CellSchedule(
            cells,
            LabCount(request.jobs, missing, spare=kind.real_time),
            reporter,
            interrupted=interrupted,
            attempts=request.attempts,
            enough=request.enough,
        )
        analysis = BackgroundAnalysis(request.begin, reporter.report_values, punctual=kind.real_time)
        shared = _SharedRunState(request, folder, reporter, schedule, interrupted, analysis)
        started = datetime.now(UTC)
        pool = _WorkerThreads(shared)
        measured = False
        try:
            try:
                pool.wait_until_measured()
                shared.analysis.end()
                measured = True
            finally:
                # Also after an interrupt, so that the results so far can be read.
                folder.write_manifest(_initial_manifest(shared, started, facts.result()))
            if kind.has_place:
                # The report states whether the lab was left as it was found.
                pool.wait_until_ended()
            yield folder
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not (measured or pool.abandoned) and cells.has_results:
                _report_interrupted(request, folder, reporter)
            reporter.end(error)
            reporter.note(_resume_hint(cells, request.options, folder))
            raise
        finally:
            # However the run ends, no lab and no temporary file remains.
            pool.wait_until_ended()
        pool.check()
        reporter.end()


def _report_interrupted(request: RunRequest, folder: RunFolder, reporter: ProgressReporter) -> None:
    """Write the report of an interrupted run, unless it is interrupted again."""
    reporter.note(REPORTING)
    with suppress(KeyboardInterrupt):
        request.report_interrupted(folder)


def _resume_hint(cells: RunCells, options: RunOptions, folder: RunFolder) -> str:
    state = "the measured cells are saved" if cells.has_results else "nothing was measured yet"
    return f"{state}; {resume_command(options, folder.path)} runs the rest"


class _WorkerThreads:
    """Workers of the run, each a thread with its own lab."""

    def __init__(self, shared: _SharedRunState) -> None:
        self._shared = shared
        self._errors: list[BaseException] = []
        self._kind = lab_kind(shared.request.plan.lab)
        self._machinery = lab_machinery(self._kind)
        self._common: SharedLabData = self._machinery.shared()
        cluster = shared.request.scheduler is not None
        count = 1 if cluster else shared.schedule.jobs.workers
        # An interrupt in `Thread.join` makes Python 3.11 take the thread for ended; waiting for events is safe.
        self._measured = [threading.Event() for _ in range(count)]
        self._ended = [threading.Event() for _ in range(count)]
        self.abandoned = False
        """True if the user did not wait for the end: the remaining labs end with this process."""
        if cluster:
            threading.Thread(target=self._gather, name="cluster", daemon=True).start()
            return
        if not self._kind.real_time and count:
            shared.reporter.note(parallel_cells_text(count))
            shared.analysis.start()
        for number in range(count):
            threading.Thread(target=self._run_worker, args=(number,), name=f"lab-{number}", daemon=True).start()

    def _run_worker(self, number: int) -> None:
        try:
            label = "lab" if self._shared.schedule.jobs.workers == 1 else f"lab {number + 1}"
            slot = WorkerSlot(
                number,
                label,
                self._shared.folder.path / "restore",
                shared=self._common,
                tell=self._shared.reporter,
                note=self._shared.reporter.note,
                interrupted=self._shared.interrupted,
                place=self._shared.request.place,
                demands=cell_demands(self._shared.request.plan.cells) if self._kind.has_place else Demands(),
                initial_lab=self._initial_lab(),
            )
            with self._machinery.worker(slot) as worker:
                while (task := self._shared.schedule.lease(number)) is not None:
                    self._run(number, worker, task)
                self._measured[number].set()
        except RunInterrupted:
            pass
        except BaseException as error:
            self._errors.append(error)
            # An error that the user has to fix would occur in the other cells too.
            self._shared.interrupted.set()
        finally:
            self._measured[number].set()
            self._ended[number].set()

    def _initial_lab(self) -> Mapping[str, Any]:
        before = _earlier_manifest(self._shared) if self._kind.has_place else None
        found: Mapping[str, Any] = before.machine.get("lab", {}) if before else {}
        return found

    def _gather(self) -> None:
        """Run the cells in other processes."""
        shared = self._shared
        assert shared.request.scheduler is not None
        try:
            from qoslab.run.cluster.crew import ClusterRunner

            ClusterRunner(
                shared.request.scheduler,
                lease=shared.schedule.lease_next,
                finish=shared.finish,
                folder_of=shared.attempt_folder,
                interrupted=shared.interrupted,
                note=shared.reporter.note,
                workers=shared.request.jobs or processor_count(),
                tls=shared.request.tls,
            ).run(shared.schedule.has_remaining_cells)
        except BaseException as error:
            self._errors.append(error)
            shared.interrupted.set()
        finally:
            self._measured[0].set()
            self._ended[0].set()

    def _run(self, number: int, worker: CellWorker, task: CellTask) -> None:
        shared = self._shared
        cell = shared.attempt_folder(task)
        record = worker.run(task, cell, turn=shared.traffic_turn(number))
        cell.sync_place()
        with shared.schedule.changed:
            shared.lab = shared.lab or dict(worker.lab_description)
        shared.finish(task, record, worker=number)

    def wait_until_measured(self) -> None:
        """Wait for the last cell. Raise the error that ended a worker early, once all workers have ended."""
        self._wait(self._measured)
        if self._errors:
            self.wait_until_ended()
            self.check()

    def wait_until_ended(self) -> None:
        """Wait until all routers are restored and all labs have ended."""
        self._wait(self._ended)
        if not self.abandoned:
            self._common.close()

    def check(self) -> None:
        """Raise the first error of the workers."""
        if self._errors:
            raise self._errors[0]

    def _wait(self, events: list[threading.Event]) -> None:
        if self.abandoned:
            return
        try:
            _wait(events)
        except KeyboardInterrupt:
            self._shared.interrupted.set()
            self._shared.reporter.note(f"interrupted: {self._kind.interrupt_activity}")
            try:
                _wait(self._ended)
            except KeyboardInterrupt:
                self.abandoned = True
                if self._kind.interrupt_message:
                    self._shared.reporter.note(
                        self._kind.interrupt_message.replace("PLACE", self._shared.request.place)
                    )
                raise
            for error in self._errors:
                self._shared.reporter.note(f"while the run was ending: {error}")
            raise


def _wait(events: list[threading.Event]) -> None:
    for event in events:
        while not event.wait(0.2):
            pass


class _BackgroundCall:
    """Function that runs in the background."""

    def __init__(self, call: Callable[[], dict[str, Any]]) -> None:
        self._call = call
        self._found: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(Exception):
            self._found = self._call()

    def result(self) -> dict[str, Any]:
        """Return the result of the function. If it failed, call it again, since the cause may have disappeared."""
        self._thread.join()
        return self._call() if self._found is None else self._found


def _run_facts(versions: Mapping[str, str]) -> dict[str, Any]:
    return {"versions": dict(versions), "commit": provenance.source_commit(), "machine": provenance.machine_facts()}


def _earlier_manifest(shared: _SharedRunState) -> Manifest | None:
    """Return the manifest of earlier calls; None if there is none, or it was damaged."""
    if not shared.folder.is_finished:
        return None
    try:
        return shared.folder.manifest()
    except DamageError as error:
        shared.reporter.note(f"{error.message}; it is rebuilt from the cells, without the record of earlier commands")
        return None


def _initial_manifest(shared: _SharedRunState, started: datetime, facts: dict[str, Any]) -> Manifest:
    request = shared.request
    before = _earlier_manifest(shared)
    lab = dict(shared.lab) or dict((before.machine if before else {}).get("lab", {}))
    sysctls = lab.pop("sysctls", {})
    offloads = lab.pop("offloads_on", {})
    ended = datetime.now(UTC)
    session = Session(
        started=started,
        ended=ended,
        overrides=request.overrides,
        versions=facts.get("versions", {}),
        commit=facts.get("commit"),
    )
    return Manifest(
        experiment=request.plan.experiment,
        published=request.published,
        overrides=request.overrides,
        lab=request.plan.lab,
        started=before.started if before else started,
        ended=ended,
        versions=session.versions,
        commit=session.commit,
        machine=facts.get("machine", {}) | ({"lab": lab} if lab else {}),
        sysctls={node: {key: str(value) for key, value in values.items()} for node, values in sysctls.items()}
        or (before.sysctls if before else {}),
        offloads={interface: dict.fromkeys(features, True) for interface, features in offloads.items()}
        or (before.offloads if before else {}),
        seeds={"experiment": request.plan.experiment.seed},
        configurations=(before.configurations if before else {}) | dict(sorted(shared.configurations.items())),
        cells=shared.schedule.cells.summaries(),
        sessions=(*(before.sessions if before else ()), session),
    )
