"""`qoslab run`: from policy push to report."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING

import click

from qoslab.cli.completion import complete_experiments, complete_runs
from qoslab.cli.gate import GateOptions, gate_options
from qoslab.cli.options import (
    JOBS,
    CellChoice,
    LiveChoice,
    ask_option,
    cell_options,
    live_options,
    set_option,
    tls_options,
)
from qoslab.cli.output_options import json_option, verbose_option
from qoslab.cli.places import RUNS, open_sweep
from qoslab.cli.plan import device_lines, summary_lines
from qoslab.errors import ExitStatus, QoslabError, UserError
from qoslab.lab_kinds import LabKind, find_kind
from qoslab.plan import Plan
from qoslab.platforms import router_names
from qoslab.schema import published_values
from qoslab.schema.idle import idle_warnings
from qoslab.system.printing import echo
from qoslab.system.priority import processor_count

if TYPE_CHECKING:
    from qoslab.analysis import Outcome, Readings
    from qoslab.model.comparison import PublishedValue
    from qoslab.model.experiment import Experiment, StoppingRule
    from qoslab.results import Cell, CellFiles, RunFolder
    from qoslab.run.background_analysis import MetricRows
    from qoslab.run.request import RunRequest
    from qoslab.schema import Sweep

ATTEMPTS = 3
"""Maximum number of attempts for a cell that was invalid because of a busy machine (as with parallel cells) or a failed
lab.
"""

VALUES_INTERVAL_S = 1.0
"""Shortest interval between updates of the values for viewers."""
MIN_VALUES_INTERVAL_RATIO = 20
"""Minimum ratio of the time between two updates of the values to the duration of an update."""

NEWEST = ""
"""Value of `--resume` without a run."""


@click.command()
@click.argument("experiment", metavar="EXPERIMENT", required=False, shell_complete=complete_experiments)
@set_option
@cell_options
@click.option(
    "--jobs",
    type=JOBS,
    metavar="N|auto",
    help="Number of labs to run in parallel. auto: limited by CPU load; 1: one cell at a time. [default: auto; "
    "simulated: number of processors]",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    help="Maximum attempts for a cell that was invalid because the machine was busy or the lab failed. "
    "[default: 3; 1 if cells run one at a time without a matrix]",
)
@click.option(
    "--strict", is_flag=True, help="With --duration: fail on expected values that the shortened traffic did not reach."
)
@click.option("--dry-run", is_flag=True, help="Print the number of cells and the estimated time; run nothing.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value=NEWEST,
    metavar="[RUN]",
    shell_complete=complete_runs,
    help="Run only the missing or invalid cells of RUN, a run folder or an experiment name. [default: the newest run]",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS|local",
    help="Run the cells on the workers of this Dask cluster, such as tls://192.0.2.1:8786. local: on --jobs worker "
    "processes of this machine. See docs/sweeps.md.",
)
@tls_options
@ask_option
@live_options
@gate_options
@verbose_option
@json_option
def command(
    experiment: str | None,
    sets: Sequence[str],
    choice: CellChoice,
    jobs: int | str | None,
    attempts: int | None,
    strict: bool,
    dry_run: bool,
    resume: str | None,
    scheduler: str | None,
    tls: Mapping[str, Path | None],
    ask: bool,
    live: LiveChoice,
    gate: GateOptions,
    verbose: bool,
    as_json: bool,
) -> ExitStatus:
    """Run an experiment in a lab and compare the results with the published values.

    EXPERIMENT is a file, or the name of a file in experiments/. Results go to standard output, progress to standard
    error; the last line contains the path of the report. The exit status is 0 if every value is within its tolerance, 1
    if a value is not, 3 if the run is invalid or an expectation is undecided because most of its cells are invalid or
    lack the value. Warnings about classes and policies that matched no packet do not change it, but such a class has
    no drops and no queue depth to compare; `allow_idle` in the file silences the warnings by name.

    An interrupted run, or a run with invalid cells, continues with --resume; it uses the options of the original run
    unless you override them. For a run on an inventory, EXPERIMENT, --lab and --set must be given again.
    """
    _check_scheduler(scheduler, jobs, tls)
    if dry_run and (gate != GateOptions() or live.is_requested):
        raise click.UsageError(
            "found --junit, --summary, --compare, --live or --metrics with --dry-run, expected them only without it"
        )
    choice = replace(choice, strict=strict)
    folder = None
    if resume is not None:
        folder = _find_run_to_resume(experiment, resume, sets, choice.kind.name)
        experiment, sets, choice = _updated_options(folder, experiment, sets, choice)
    if experiment is None:
        raise click.UsageError("found no EXPERIMENT, expected a file or the name of one in experiments/")
    file, sweep = open_sweep(experiment, sets, choice.kind.name)
    gate.check(sweep.experiment.name)
    for warning in idle_warnings(sweep):
        echo(str(warning), err=True)
    prepared = prepare_run(
        file, sweep, choice, sets, jobs=jobs, attempts=attempts, scheduler=scheduler, tls=tls, resume=folder
    )
    if dry_run:
        device_lines(choice, prepared.request.plan)  # refuses an inventory that cannot be run
        _print_plan(prepared.request.plan, prepared.expected, as_json=as_json)
        return ExitStatus.WITHIN
    if choice.kind.real_time:
        _check_filters(prepared.request.plan)
    with _serve_viewers(live) as watched:
        if ask:
            _ask_for_passwords(choice, prepared.request.plan.experiment)
        prepared = replace(prepared, request=replace(prepared.request, serve=watched))
        return _run_and_report(prepared, gate, as_json=as_json, verbose=verbose)


@dataclass(frozen=True)
class PreparedRun:
    """A run that is ready to start."""

    request: RunRequest
    expected: int
    """Number of labs in the estimate of the duration."""
    analysis: RunAnalysis


def prepare_run(
    file: Path,
    sweep: Sweep,
    choice: CellChoice,
    sets: Sequence[str],
    *,
    jobs: int | str | None = None,
    attempts: int | None = None,
    scheduler: str | None = None,
    tls: Mapping[str, Path | None] = MappingProxyType({}),
    resume: RunFolder | None = None,
    runs: Path = RUNS,
) -> PreparedRun:
    """Prepare a run from the command-line options. Raise errors for options that cannot be applied."""
    from qoslab.run.jobs import expected_labs
    from qoslab.run.request import RunRequest

    plan, kind, matrix = choice.plan(sweep), choice.kind, bool(sweep.parameters)
    side_by_side = _parallel_cells(jobs, scheduler, plan, kind)
    scheduler = scheduler or kind.scheduler(len(plan.cells))
    analysis = RunAnalysis(plan.experiment, published_values(file, sweep.experiment), plan.lab)
    request = RunRequest(
        file,
        plan,
        analysis.published,
        (*(f"--set {each}" for each in sets), *choice.to_words()),
        runs,
        choice.to_record(file, sets),
        jobs=side_by_side,
        # In a sweep, labs leave little processor time for it; docs/reports.md.
        begin=None if matrix and kind.real_time else analysis.begin,
        enough=None if sweep.experiment.enough is None else partial(_stopping_rule, sweep.experiment.enough),
        resume=resume,
        attempts=attempts or (ATTEMPTS if matrix or scheduler is not None or side_by_side != 1 else 1),
        scheduler=scheduler,
        report_interrupted=_report_interrupted_run,
        place=choice.place,
        tls=tls,
    )
    return PreparedRun(request, expected_labs(side_by_side, len(plan.cells)), analysis)


@contextlib.contextmanager
def _serve_viewers(live: LiveChoice) -> Iterator[Callable[[RunFolder, Callable[[str], None]], None]]:
    """Open the ports for viewers, and yield the function that serves a run once it has started; see `Request.watched`.

    Raise `UserError` if a port is in use, before any part of the run exists.
    """
    if not live.is_requested:
        yield lambda folder, note: None
        return
    from qoslab.live.server import LiveView
    from qoslab.live.watched_run import WatchedRun

    with LiveView(live.browser, live.port, live.metrics) as view:

        def serve(folder: RunFolder, note: Callable[[str], None]) -> None:
            view.serve(WatchedRun(folder))
            for line in view.addresses:
                note(line)

        yield serve


class RunAnalysis:
    """Analysis of finished cells while other cells run."""

    def __init__(self, experiment: Experiment, published: tuple[PublishedValue, ...], lab: str) -> None:
        self._experiment = experiment
        self._lab = lab
        self._cells: list[CellFiles] = []
        self._shown_at = -math.inf
        """Time of the last update of the values, by the monotonic clock."""
        self.published = published
        self.readings: Readings | None = None
        """Readings of the cells so far; None without any."""

    def begin(self) -> Callable[[Cell], MetricRows]:
        """Import the modules for the analysis, which takes a second, and return the function that reads each cell and
        returns the values so far.
        """
        # In this order: cells also import the analysis, each in a thread, and must wait for the whole import.
        from qoslab.analysis import Readings
        from qoslab.model.reference_names import references

        import qoslab.report  # noqa: F401  # isort: skip

        self.readings = Readings(references(self._experiment, self.published))
        return self._take

    def _take(self, cell: Cell) -> MetricRows:
        from qoslab.analysis.run_analysis import preliminary_values

        assert self.readings is not None
        self._cells.append(cell.files())
        self.readings.cell_content(self._cells[-1])
        # Thousands of cells per minute would cause thousands of comparisons.
        began = time.monotonic()
        if began - self._shown_at < VALUES_INTERVAL_S:
            return ()
        found = preliminary_values(self._experiment, self.published, self.readings, self._cells, self._lab)
        self._shown_at = time.monotonic()
        self._shown_at += MIN_VALUES_INTERVAL_RATIO * (self._shown_at - began)
        return found


def _run_and_report(prepared: PreparedRun, gate: GateOptions, *, as_json: bool, verbose: bool) -> ExitStatus:
    """Carry out the run and show its results."""
    from qoslab.run.progress_lines import RUN, RunProgress
    from qoslab.run.runner import run_cells

    request, plan = prepared.request, prepared.request.plan
    handle_signals_as_ctrl_c()
    with (
        RunProgress(plan.experiment.title, len(plan.cells), plan.estimate_seconds(prepared.expected)) as progress,
        run_cells(request, progress) as made,
    ):
        progress(RUN, "analysis and report")
        outcome = write_run_report(made, prepared.analysis.readings)
        made.publish()
    from qoslab.cli.result_table import print_outcome  # slow to load, and only needed now

    print_outcome(outcome, made, as_json=as_json, verbose=verbose)
    gate.write(made, outcome)
    return outcome.exit_status


def _ask_for_passwords(choice: CellChoice, experiment: Experiment) -> None:
    """Ask for passwords before any thread starts: a terminal can only serve one."""
    if not choice.kind.has_place:
        raise click.UsageError(
            f"found --ask for {choice.kind.title}, expected --lab with an inventory: no password is needed"
        )
    from qoslab.run.devices.password_prompt import prompt_for_passwords

    prompt_for_passwords(Path(choice.place), router_names(experiment.topology))


def _check_scheduler(scheduler: str | None, jobs: int | str | None, tls: Mapping[str, Path | None]) -> None:
    """Raise `UsageError` for options that are incompatible with the scheduler."""
    if scheduler not in (None, "local") and jobs is not None:
        raise click.UsageError(
            "found --jobs with --scheduler, expected one of them: a cluster has as many labs as threads"
        )
    if any(tls.values()) and scheduler in (None, "local"):
        raise click.UsageError("found --tls-… without the address of a --scheduler, expected tls://HOST:PORT")


def _check_one_at_a_time(kind: LabKind, jobs: int | str | None, scheduler: str | None) -> None:
    """Raise `UsageError` for options that need more labs than available."""
    if kind.max_parallel_cells is None:
        return
    if scheduler is not None:
        raise click.UsageError(
            f"found --scheduler for {kind.title}, expected no --scheduler: there is only one such lab"
        )
    if isinstance(jobs, int) and jobs > kind.max_parallel_cells:
        raise click.UsageError(
            f"found --jobs {jobs} for {kind.title}, expected {kind.max_parallel_cells}: there is only one such lab"
        )


def _check_filters(plan: Plan) -> None:
    """Raise `UserError` for an invalid capture filter before a lab starts, not in its first cell."""
    from qoslab.capture.filters import filter_problem

    for point in plan.experiment.captures:
        problem = filter_problem(point.filter) if point.filter else ""
        if problem is None:
            echo(f'qoslab: the filter "{point.filter}" was not checked before the run: libpcap is missing', err=True)
        elif problem:
            raise UserError(
                f'capture {point.name}: found the filter "{point.filter}", '
                f"expected the syntax of pcap-filter(7): {problem}",
                hint="`man pcap-filter` describes the language",
            )


def _parallel_cells(jobs: int | str | None, scheduler: str | None, plan: Plan, kind: LabKind) -> int | None:
    """Return the number of parallel cells; None for as many as possible. Raise `UsageError` for more than possible."""
    _check_one_at_a_time(kind, jobs, scheduler)
    if not kind.real_time and jobs in (None, "auto"):
        # Timing does not matter: one per processor, at most one per cell.
        return min(processor_count(), len(plan.cells))
    if kind.max_parallel_cells is not None:
        return kind.max_parallel_cells
    if jobs is None and len(plan.cells) == 1 and not plan.sweep.parameters:
        return 1
    return None if jobs in (None, "auto") else int(jobs)


def handle_signals_as_ctrl_c() -> None:
    """Make SIGTERM and SIGHUP end the run as Ctrl-C does; an ignored SIGHUP (as with nohup) stays ignored."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _detach_terminal()
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)


def _detach_terminal() -> None:
    """Stop printing to a terminal that is closed or about to close: printing would fail."""
    for stream in (1, 2):
        with contextlib.suppress(OSError):
            poll = select.poll()
            poll.register(stream, 0)
            gone = any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))
            if gone or os.isatty(stream):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream)
                os.close(nowhere)


def write_run_report(made: RunFolder, readings: Readings | None = None) -> Outcome:
    """Analyse a run, except for the cells in `readings`, and write its report."""
    from qoslab.analysis.parallel import analyse_by_helpers
    from qoslab.report import render

    outcome = analyse_by_helpers(made, readings)
    render(made, outcome)
    return outcome


def _report_interrupted_run(made: RunFolder) -> None:
    """Write the report of a run that the user interrupted. The run ends as requested even if a part cannot be shown."""
    try:
        write_run_report(made)
    except QoslabError as error:
        echo(f"qoslab: the measured cells could not be reported: {error.message}", err=True)


def _find_run_to_resume(experiment: str | None, resume: str, sets: Sequence[str], lab: str) -> RunFolder:
    from qoslab.results import find_run_to_resume

    if experiment is not None and resume == NEWEST:
        _, sweep = open_sweep(experiment, sets, lab)
        resume = sweep.experiment.name
    found = find_run_to_resume(RUNS, resume or None)
    if experiment is not None:
        name = open_sweep(experiment, sets, lab)[1].experiment.name
        if found.path.parent.name != name:
            raise UserError(
                f"{found.path} is a run of {found.path.parent.name}, not of {name}",
                hint="Give the run of that experiment, or leave EXPERIMENT out.",
            )
    return found


def _updated_options(
    folder: RunFolder, experiment: str | None, sets: Sequence[str], choice: CellChoice
) -> tuple[str, Sequence[str], CellChoice]:
    """Return the recorded options of the run, with new ones applied.

    For the lab of an inventory, the user must give experiment and lab again, so that a run folder from another user
    cannot choose them.
    """
    from qoslab.run.request import resume_command

    recorded = folder.options()
    if not find_kind(recorded.lab).has_place:
        return experiment or recorded.file, [*recorded.sets, *sets], choice.merge_record(recorded)
    if experiment is None or choice.lab is None or not set(recorded.sets) <= set(sets):
        raise UserError(
            f"{folder.path}/run.json: found a run in the lab of an inventory, expected EXPERIMENT, --lab and each "
            "--set again: an inventory can execute code, and a run folder may come from another user",
            hint=f"To continue anyway: {resume_command(recorded, folder.path)}",
        )
    return experiment, sets, choice.merge_record(recorded)


def _print_plan(plan: Plan, labs: int, *, as_json: bool) -> None:
    if as_json:
        arms = {arm.name: sum(cell.arm == arm.name for cell in plan.cells) for arm in plan.experiment.arms}
        document = {
            "experiment": plan.experiment.name,
            "lab": plan.lab,
            "cells": len(plan.cells),
            "arms": arms,
            "labs": labs,
            "seconds": plan.estimate_seconds(labs),
            "seconds_with_one_lab": plan.seconds,
        }
        echo(json.dumps(document, indent=2))
    else:
        echo("\n".join(summary_lines(plan, labs)))


def _stopping_rule(wanted: StoppingRule, cells: Sequence[Cell]) -> str:
    if len(cells) < wanted.at_least:
        return ""
    from qoslab.analysis import stopping_reason

    return stopping_reason(wanted, [cell.files() for cell in cells])
