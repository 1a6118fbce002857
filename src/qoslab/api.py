"""The Python interface: check an experiment, run it, open a run, read its tables and graphs.

    from qoslab import api

    run = api.run("policing-vs-shaping", lab="simulated", duration="5 s", arms=["policed"])
    run.figures()                      # measured next to published values, a DataFrame
    flows = run.table("flows")         # a tidy table; flows.attrs["units"] names the unit of each column
    run.graph("lead")                  # a Plotly figure of the report; run.graphs() names them

The names in `__all__` and their documentation here do not change within a minor version (0.1, 0.2, …). The changelog
announces removals one minor version in advance. Everything else in the package may change at any time.

Errors are those of `qoslab.errors`: `UserError` and its subclasses, with a `hint`, for errors that the caller can fix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from qoslab.cli.options import CellChoice, LabType
from qoslab.cli.places import RUNS, open_sweep
from qoslab.errors import UserError
from qoslab.model.experiment import Experiment
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.units import Duration, QuantityError
from qoslab.report.view import RunView as Run
from qoslab.report.view import open_run
from qoslab.schema import Sweep

__all__ = ["CheckedExperiment", "Run", "load", "open_run", "run"]


@dataclass(frozen=True)
class CheckedExperiment:
    """An experiment file without errors."""

    file: Path
    sweep: Sweep
    """Sweep of the checked file; may change at any time."""

    @property
    def experiment(self) -> Experiment:
        """The experiment as immutable values. Each arm has the parameters of its first combination."""
        return self.sweep.experiment

    @property
    def name(self) -> str:
        """Name of the experiment, and of the folder of its runs."""
        return self.experiment.name

    @property
    def title(self) -> str:
        """Title of the experiment in one line, as in the report."""
        return self.experiment.title

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms."""
        return tuple(arm.name for arm in self.experiment.arms)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the matrix; empty if there is no matrix."""
        return tuple(self.sweep.parameters)


def load(experiment: str | Path, *, sets: Mapping[str, str] | None = None, lab: str = DEFAULT_LAB) -> CheckedExperiment:
    """Read and check an experiment: an experiment file, or the name of an experiment in `experiments/` or of a shipped
    one.

    `sets` changes single values, as `--set` does: `{"R1.platform": "engine"}`. Raise `ExperimentError`, which lists all
    errors in the file and everything that a lab of this kind cannot run.
    """
    file, sweep = open_sweep(str(experiment), _option_words(sets), lab)
    return CheckedExperiment(file, sweep)


def run(
    experiment: str | Path,
    *,
    lab: str = DEFAULT_LAB,
    sets: Mapping[str, str] | None = None,
    arms: Sequence[str] = (),
    only: Mapping[str, str] | None = None,
    duration: str | Duration | None = None,
    repetitions: int | None = None,
    jobs: int | None = None,
    root: str | Path = RUNS,
    quiet: bool = True,
) -> Run:
    """Run an experiment as `qoslab run` does, report included, and open the run.

    `lab` is a kind of lab (`virtual`, `simulated`) or the path of an inventory. `only` selects values of parameters to
    run. `duration` is the traffic time of each cell, such as "10 s"; `jobs` is the number of cells that run in
    parallel; `root` is the folder of run folders. Progress is printed to standard error unless `quiet`. Raise
    `UserError` for an error that the caller must fix first. An invalid run raises nothing: check its `outcome.valid`.
    """
    from qoslab.cli.run import prepare_run, write_run_report
    from qoslab.run.progress_lines import RunProgress
    from qoslab.run.runner import run_cells

    repetitions = _count("repetitions", repetitions, "omit it to use the number in the experiment file")
    jobs = _count("jobs", jobs, "omit it to use the maximum")
    choice = CellChoice(
        arms=tuple(arms),
        only=tuple(f"{name}={value}" for name, value in (only or {}).items()),
        duration=_parse_duration(duration),
        repetitions=repetitions,
        lab=_lab_choice(lab),
    )
    words = _option_words(sets)
    file, sweep = open_sweep(str(experiment), words, choice.kind.name)
    prepared = prepare_run(file, sweep, choice, words, jobs=jobs, runs=Path(root))
    plan = prepared.request.plan
    with (
        RunProgress(
            plan.experiment.title, len(plan.cells), plan.estimate_seconds(prepared.expected), quiet=quiet
        ) as progress,
        run_cells(prepared.request, progress) as made,
    ):
        write_run_report(made, prepared.analysis.readings)
        made.publish()
    return Run(made)


def _option_words(sets: Mapping[str, str] | None) -> list[str]:
    return [f"{path}={value}" for path, value in (sets or {}).items()]


def _parse_duration(value: object) -> Duration | None:
    # A caller without types may give anything.
    if value is None or isinstance(value, Duration):
        return value
    if not isinstance(value, str):
        raise UserError(
            f'duration: found {value!r}, expected text with a unit, such as "10 s"',
            hint="omit it to use the duration in the experiment file",
        )
    try:
        return Duration.parse(value)
    except QuantityError as error:
        raise UserError(f"duration: {error}") from error


def _count(what: str, value: object, hint: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise UserError(f"{what}: found {value!r}, expected a number from 1", hint=hint)


def _lab_choice(word: str) -> str:
    try:
        return LabType().convert(word, None, None)
    except click.UsageError as error:
        raise UserError(f"lab: {error.message}") from error
