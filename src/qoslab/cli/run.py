"""`qoslab run`: an experiment from policy push to report."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from types import FrameType

import click

from qoslab.cli.options import RUNS, cell_options, experiment_argument, json_option, open_experiment, set_option
from qoslab.errors import ExitStatus
from qoslab.plan import Options, make_plan
from qoslab.schema import load_published
from qoslab.units import Duration


@click.command()
@experiment_argument
@set_option
@cell_options
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Labs that run side by side.")
@json_option
def command(
    experiment: str,
    sets: Sequence[str],
    arms: Sequence[str],
    duration: Duration | None,
    repetitions: int | None,
    jobs: int,
    as_json: bool,
) -> ExitStatus:
    """Run an experiment on the virtual lab and compare with the published figures.

    EXPERIMENT is a file, or the name of one in experiments/. The figures go to standard output, everything else to
    standard error; the last line says where the report is. The exit status is 0 when every figure is within its
    tolerance, 1 when one is outside, 3 when the run is invalid.
    """
    file, checked = open_experiment(experiment, sets)
    plan = make_plan(checked, Options(arms=tuple(arms), duration=duration, repetitions=repetitions))
    published = (
        load_published(file.parent / checked.compare.published, [arm.name for arm in checked.arms])
        if checked.compare is not None
        else ()
    )

    from qoslab.run.progress import RunProgress
    from qoslab.run.runner import Request, carry_out

    overrides = [f"--set {each}" for each in sets] + ([f"--duration {duration}"] if duration is not None else [])
    overrides += [f"--arm {arm}" for arm in arms]
    overrides += [f"--repetitions {repetitions}"] if repetitions is not None else []
    request = Request(file, plan, published, tuple(overrides), RUNS, jobs, _load_analysis)

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    with (
        RunProgress(checked.title, [cell.name for cell in plan.cells], plan.seconds) as progress,
        carry_out(request, progress) as folder,
    ):
        progress("run", "analysis and report")
        from qoslab.analysis import analyse
        from qoslab.report import render

        outcome = analyse(folder)
        render(folder, outcome)
        folder.publish()

    from qoslab.cli.figures import print_outcome

    print_outcome(outcome, folder, as_json=as_json)
    return outcome.exit_status


def _load_analysis() -> None:
    """Import what comes after the traffic: it takes a second."""
    import qoslab.analysis
    import qoslab.report  # noqa: F401
