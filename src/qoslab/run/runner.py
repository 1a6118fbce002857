"""Runs an experiment: labs, cells, manifest, analysis, report."""

from __future__ import annotations

import os
import queue
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import qoslab
from qoslab.errors import DeviceError, QoslabError
from qoslab.lab import Lab
from qoslab.lab.ios_routers import startup_config
from qoslab.model.experiment import Experiment, PublishedFigure
from qoslab.plan import Plan
from qoslab.results import CellSummary, Manifest, RunFolder
from qoslab.run import provenance
from qoslab.run.ansible import AnsibleSession
from qoslab.run.cell import CellRun, Interrupted, configuration_text
from qoslab.run.collector import Collector
from qoslab.run.inventory import lab_routers, write_inventory
from qoslab.run.progress import RunProgress
from qoslab.run.routers import Routers
from qoslab.run.verify import policy_differences


@dataclass(frozen=True)
class Request:
    """What is to be run."""

    file: Path
    """The experiment file."""
    plan: Plan
    published: tuple[PublishedFigure, ...]
    overrides: tuple[str, ...]
    """As typed, for the manifest."""
    runs: Path
    """The folder of run folders."""
    jobs: int = 1
    """Labs that are up at the same time."""
    meanwhile: Callable[[], None] | None = None
    """Called once, in a thread of least priority, when the first traffic starts."""


@dataclass
class _Shared:
    """What the workers of a run share."""

    request: Request
    folder: RunFolder
    progress: RunProgress
    interrupted: threading.Event = field(default_factory=threading.Event)
    cells: queue.SimpleQueue[tuple[str, int]] = field(default_factory=queue.SimpleQueue)
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: list[CellSummary] = field(default_factory=list)
    lab: dict[str, Any] = field(default_factory=dict)
    """How the virtual lab described itself."""
    configurations: dict[str, str] = field(default_factory=dict)
    meanwhile: threading.Thread | None = None

    def traffic_starts(self) -> None:
        """Do what the request wants to be done meanwhile."""
        call = self.request.meanwhile
        with self.lock:
            if call is not None and self.meanwhile is None:
                self.meanwhile = threading.Thread(target=_with_least_priority, args=(call,), daemon=True)
                self.meanwhile.start()


@contextmanager
def carry_out(request: Request, progress: RunProgress) -> Iterator[RunFolder]:
    """Run all cells of the plan. The block has the run folder with its manifest, for analysis and report.

    Meanwhile the routers are restored; leaving the block waits for that. What makes the figures of a cell worthless is
    recorded there. Raises what the user has to mend (`UserError`), or `KeyboardInterrupt`; routers are restored and
    labs are gone before that, and the folder keeps what there was.
    """
    folder = RunFolder.create(request.runs, request.plan.experiment.name)
    folder.write_experiment(request.file.read_text())
    shared = _Shared(request, folder, progress)
    for cell in request.plan.cells:
        shared.cells.put((cell.arm, cell.repetition))
    started = datetime.now(UTC)
    facts = _Background(_facts)
    crew = _Crew(shared)
    try:
        try:
            crew.wait_measured()
        finally:
            # Also of a run that was interrupted: what there is stays readable.
            folder.write_manifest(_manifest(shared, started, facts.result()))
        yield folder
    finally:
        # However it ends, no lab and no temporary file stays.
        crew.wait_ended()
    crew.check()


class _Crew:
    """The workers of a run, each a thread with a lab of its own."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._errors: list[BaseException] = []
        count = min(shared.request.jobs, len(shared.request.plan.cells))
        # An interrupt in `Thread.join` makes Python 3.11 take the thread for ended; waiting for events is safe.
        self._measured = [threading.Event() for _ in range(count)]
        self._ended = [threading.Event() for _ in range(count)]
        for number in range(count):
            threading.Thread(target=self._work, args=(number,), name=f"lab-{number}", daemon=True).start()

    def _work(self, number: int) -> None:
        try:
            with _Worker(self._shared, number) as worker:
                worker.run()
                self._measured[number].set()
        except Interrupted:
            pass
        except BaseException as error:
            self._errors.append(error)
            # What the user has to mend would meet the other cells too.
            self._shared.interrupted.set()
        finally:
            self._measured[number].set()
            self._ended[number].set()

    def wait_measured(self) -> None:
        """Wait for the last cell. Raises what ended a worker early, once all have ended."""
        self._wait(self._measured)
        if self._errors:
            self.wait_ended()
            self.check()

    def wait_ended(self) -> None:
        """Wait until routers are restored and labs are gone."""
        self._wait(self._ended)

    def check(self) -> None:
        """Raise what went wrong."""
        if self._errors:
            raise self._errors[0]

    def _wait(self, events: list[threading.Event]) -> None:
        try:
            _wait(events)
        except KeyboardInterrupt:
            self._shared.interrupted.set()
            self._shared.progress.note("interrupted: restoring the routers (Ctrl-C again leaves them as they are)")
            # A second interrupt leaves from here; the labs end with this process.
            _wait(self._ended)
            for error in self._errors:
                self._shared.progress.note(f"while it ended: {error}")
            raise


def _wait(events: list[threading.Event]) -> None:
    for event in events:
        while not event.wait(0.2):
            pass


class _Worker:
    """One lab, in which cells are run one after another."""

    def __init__(self, shared: _Shared, number: int) -> None:
        self._shared = shared
        self._number = number
        self._experiment: Experiment = shared.request.plan.experiment
        self._exit = ExitStack()
        self._scratch = Path(tempfile.mkdtemp(prefix="qoslab-run-"))
        self._exit.callback(shutil.rmtree, self._scratch, ignore_errors=True)

    def __enter__(self) -> _Worker:
        try:
            self._start()
        except BaseException:
            self._exit.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def _start(self) -> None:
        experiment, shared = self._experiment, self._shared
        inventory = self._scratch / "inventory.json"
        before = self._scratch / "before"
        # Ansible and Genie take seconds to start, so they start while the lab is built.
        session = AnsibleSession(inventory, before=before)
        self._exit.callback(session.close)
        session.start()
        self._collector = Collector()
        self._exit.callback(self._collector.close)
        first = experiment.arm(shared.request.plan.cells[0].arm)
        shared.progress(self._label, "lab up")
        self._lab = Lab.up(
            experiment.topology, name=f"{experiment.name[:24]}-{os.getpid()}-{self._number}",
            tcp_profile=experiment.tcp_of(first), seed=experiment.seed,
        )  # fmt: skip
        self._exit.callback(self._lab.down)
        for name, node in experiment.topology.nodes.items():
            if node.platform == "ios":
                way = self._lab.ssh(name)
                shared.progress.note(
                    f"look around in {name}: ssh -p {way.port} {way.user}@{way.host}, "
                    f"password {way.password}, enable secret {way.enable}"
                )
        with shared.lock:
            shared.lab = shared.lab or self._lab.describe()
        access = lab_routers(self._lab)
        write_inventory(inventory, access)
        known_hosts = self._lab.known_hosts() if self._lab.host_key is not None else None
        self._collector.connect(access, known_hosts=known_hosts, wait=False)
        # A Linux router boots with what an IOS router of the same topology has in its startup configuration.
        login = {"user": "lab", "password": "unused", "enable": "unused"}
        self._routers = Routers(
            experiment.topology, session, before, lambda router: startup_config(experiment.topology, router, login)
        )
        self._exit.callback(self._restore)
        shared.progress.step_done(self._label)

    @property
    def _label(self) -> str:
        return "lab" if self._shared.request.jobs == 1 else f"lab {self._number + 1}"

    def run(self) -> None:
        """Run cells until none is left."""
        while True:
            try:
                arm, repetition = self._shared.cells.get_nowait()
            except queue.Empty:
                return
            if self._shared.interrupted.is_set():
                raise Interrupted
            self._run_cell(arm, repetition)

    def _run_cell(self, arm_name: str, repetition: int) -> None:
        shared, experiment = self._shared, self._experiment
        arm = experiment.arm(arm_name)
        cell = shared.folder.cell(arm_name, repetition)
        run = CellRun(
            self._lab, experiment, arm, cell,
            observe=self._collector.observe, tell=shared.progress, interrupted=shared.interrupted,
        )  # fmt: skip
        try:
            texts = configuration_text(shared.request.file, experiment, arm)
            with shared.lock:
                for device, text in texts.items():
                    shared.configurations[f"{arm_name}/{device}"] = provenance.digest(text.encode())
            with run.step("configure the routers"):
                outcome = self._routers.configure(cell, texts, VERIFY_COMMANDS)
            for router, text in texts.items():
                answers = outcome.answers(router)
                if not answers:
                    continue
                config = self._routers.compiled(router, text, source=f"{router}.ios")
                shown = self._collector.parse(VERIFY_COMMANDS[0], answers[VERIFY_COMMANDS[0]])
                for difference in policy_differences(shown.parsed or {}, config):
                    raise DeviceError(f"{router} took the configuration and shows something else: {difference}")
            shared.traffic_starts()
            run.measure()
        finally:
            # Also of a cell that broke off: what there is stays readable.
            record = run.record()
            with suppress(QoslabError):
                cell.write_record(record)
        with shared.lock:
            shared.done.append(
                CellSummary(arm=arm_name, repetition=repetition, valid=record.valid, reasons=record.reasons)
            )
        shared.progress.cell_done(run.name)
        for reason in record.reasons:
            shared.progress.note(f"{run.name} is invalid: {reason}")

    def _restore(self) -> None:
        if self._lab.alive():
            self._shared.progress(self._label, "restore the routers")
            self._routers.restore(self._scratch / "restore", self._shared.folder.path / "restore" / str(self._number))


LEAST_PRIORITY = 19
"""The nice value of work that must not disturb the traffic."""

VERIFY_COMMANDS = ("show policy-map interface",)
"""What `verify` reads of an IOS router beside its configuration."""


def _with_least_priority(call: Callable[[], None]) -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LEAST_PRIORITY)
    call()


class _Background:
    """A function that runs beside the rest."""

    def __init__(self, call: Callable[[], dict[str, Any]]) -> None:
        self._found: dict[str, Any] = {}
        self._thread = threading.Thread(target=lambda: self._found.update(call()), daemon=True)
        self._thread.start()

    def result(self) -> dict[str, Any]:
        """What the function returned."""
        self._thread.join()
        return self._found


def _facts() -> dict[str, Any]:
    root = Path(qoslab.__file__).resolve().parents[2]
    return {
        "versions": provenance.package_versions() | provenance.tool_versions(),
        "commit": provenance.commit(root),
        "machine": provenance.machine(),
    }


def _manifest(shared: _Shared, started: datetime, facts: dict[str, Any]) -> Manifest:
    lab = dict(shared.lab)
    sysctls = lab.pop("sysctls", {})
    offloads = lab.pop("offloads_on", {})
    done = {(cell.arm, cell.repetition): cell for cell in shared.done}
    cells = tuple(
        done.get((cell.arm, cell.repetition))
        or CellSummary(arm=cell.arm, repetition=cell.repetition, valid=False, reasons=("it was not run to the end",))
        for cell in shared.request.plan.cells
    )
    return Manifest(
        experiment=shared.request.plan.experiment,
        published=shared.request.published,
        overrides=shared.request.overrides,
        started=started,
        ended=datetime.now(UTC),
        versions=facts.get("versions", {}),
        commit=facts.get("commit"),
        machine=facts.get("machine", {}) | {"lab": lab},
        sysctls={node: {key: str(value) for key, value in values.items()} for node, values in sysctls.items()},
        offloads={interface: dict.fromkeys(features, True) for interface, features in offloads.items()},
        seeds={"experiment": shared.request.plan.experiment.seed},
        configurations=dict(sorted(shared.configurations.items())),
        cells=cells,
    )
