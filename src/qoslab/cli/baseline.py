"""`qoslab baseline`: save a complete run as a baseline, and update the results page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qoslab.cli.completion import complete_runs
from qoslab.cli.options import lab_option
from qoslab.cli.places import EXPERIMENTS, RUNS, find_experiment_file
from qoslab.errors import ExitStatus, UserError
from qoslab.lab_kinds import LABS
from qoslab.plan import Options, make_plan
from qoslab.results.file_access import replace
from qoslab.schema import load_sweep
from qoslab.system.printing import echo
from qoslab.system.shipped import find_checkout

if TYPE_CHECKING:
    from qoslab.results import RunFolder

HARMLESS = ("--lab ", "--repetitions ", "--strict")
"""Options with which a run is still complete."""


@click.command()
@click.argument("given", metavar="[RUN]...", nargs=-1, shell_complete=complete_runs)
@click.option(
    "--measure", is_flag=True, help="First run these experiments one after the other. [default: all in experiments/]"
)
@click.option("--repetitions", type=click.IntRange(min=1), help="With --measure: number of times to run each cell.")
@lab_option
@click.pass_context
def command(
    context: click.Context, given: Sequence[str], measure: bool, repetitions: int | None, lab: str | None
) -> ExitStatus:
    """Save runs of this checkout's experiments as baselines and update docs/reference/results.md.

    RUN is a run folder or an experiment name (its latest run). [default: the latest run of all] The run must be valid
    and cover the whole file as it is in experiments/; it may repeat cells. The comparison and the manifest are saved in
    reports/baselines/, by experiment and kind of lab. For values that vary by chance, save a run of ten repetitions:
    the baseline then holds medians with intervals.

    With --measure, RUN is an experiment, which is first run in full in the lab of --lab. Invalid runs are not saved;
    the exit status is then 3.
    """
    top = find_checkout()
    if top is None:
        raise UserError(
            "qoslab runs from a wheel, but baselines can be saved in a checkout only",
            hint="Run ./qoslab in a checkout.",
        )
    if not measure:
        if lab is not None or repetitions is not None:
            raise click.UsageError("found --lab or --repetitions without --measure, expected an existing run")
        for each in given or (None,):
            _keep(each, top)
        return ExitStatus.WITHIN
    failed = [
        name for name in given or _experiment_names() if not _measure_and_save(context, name, lab, repetitions, top)
    ]
    if failed:
        echo(f"Not saved: {', '.join(failed)}")
    return ExitStatus.RUN_INVALID if failed else ExitStatus.WITHIN


def _experiment_names() -> list[str]:
    return sorted(path.stem for path in EXPERIMENTS.glob("*.yml"))


def _measure_and_save(context: click.Context, name: str, lab: str | None, repetitions: int | None, top: Path) -> bool:
    """Run an experiment, save it if possible, and return whether it was saved. Problems are printed."""
    from qoslab.cli.run import command as run

    echo(f"{name}:")
    try:
        status = context.invoke(run, experiment=str(find_experiment_file(name)), lab=lab, repetitions=repetitions)
        # The run has been analysed; the reasons for an invalid run are looked up only if needed.
        _keep(name, top, trusted=status != ExitStatus.RUN_INVALID)
    except UserError as error:
        echo(f"qoslab: {error.message}", err=True)
        return False
    return True


def _keep(run: str | None, top: Path, *, trusted: bool = False) -> None:
    """Save a run as a baseline and write the document. Raise `UserError` if it does not qualify.

    `trusted` skips the check of its outputs, which have already been checked.
    """
    from qoslab.generate import FILES, RESULTS
    from qoslab.results import find_run
    from qoslab.results.baselines import save_baseline

    folder = find_run(RUNS, run)
    if why := _baseline_obstacle(folder, top) or ("" if trusted else _output_error(folder)):
        raise UserError(
            f"{folder.path}: {why}, expected a valid run of an unmodified file in experiments/",
            hint="qoslab run --resume re-runs the invalid cells",
        )
    echo(f"{save_baseline(folder, top).relative_to(top)} written")
    text = FILES[RESULTS](top)
    if (top / RESULTS).read_text(encoding="utf-8") != text:
        replace(top / RESULTS, text.encode())
        echo(f"{RESULTS} written")


def _baseline_obstacle(folder: RunFolder, top: Path) -> str:
    """Return the reason why a run cannot be a baseline; empty if it can."""
    manifest = folder.manifest()
    if manifest.lab not in LABS:
        return f"found a run in the lab {manifest.lab}"
    if not manifest.valid:
        invalid = [each.name for each in manifest.cells if not each.valid and not each.spared]
        return f"found a run that is not valid ({', '.join(invalid[:4])}{', …' if len(invalid) > 4 else ''})"
    if others := [each for each in manifest.overrides if not each.startswith(HARMLESS)]:
        return f"found a run with other values ({', '.join(others)})"
    file = top / "experiments" / f"{manifest.experiment.name}.yml"
    if not file.exists():
        return f"found a run of {manifest.experiment.name}, not an experiment in experiments/"
    if (folder.path / "experiment.yml").read_bytes() != file.read_bytes():
        return f"found a run of another version of {file.name}"
    planned = make_plan(load_sweep(file, {}, LABS[manifest.lab].check), Options(lab=manifest.lab)).cells
    missing = {cell.name for cell in planned} - {cell.name for cell in manifest.cells}
    return f"found a run without {len(missing)} of {len(planned)} cells" if missing else ""


def _output_error(folder: RunFolder) -> str:
    """Return the error in a run's outputs that its records do not show; empty for a baseline, which has no outputs."""
    from qoslab.analysis import analyse

    reasons = analyse(folder).reasons if (folder.path / "cells").is_dir() else ()
    more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"found a run with unreliable results ({reasons[0]}{more})" if reasons else ""
