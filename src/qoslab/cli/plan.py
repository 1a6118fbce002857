"""`qoslab plan`: what a run would do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import click

from qoslab.cli.options import cell_options, experiment_argument, json_option, open_experiment, set_option
from qoslab.plan import Options, Plan, Step, make_plan
from qoslab.units import Duration


@click.command()
@experiment_argument
@set_option
@cell_options
@json_option
def command(
    experiment: str,
    sets: Sequence[str],
    arms: Sequence[str],
    duration: Duration | None,
    repetitions: int | None,
    as_json: bool,
) -> None:
    """Show what a run would do, without doing it.

    EXPERIMENT is a file, or the name of one in experiments/. Times are estimates, in seconds.
    """
    _, checked = open_experiment(experiment, sets)
    plan = make_plan(checked, Options(arms=tuple(arms), duration=duration, repetitions=repetitions))
    if as_json:
        click.echo(json.dumps(plan.as_dict(), indent=2))
    else:
        click.echo("\n".join(plan_lines(plan)))


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan as text: one block for each cell, one line for each step."""
    cells = f"{len(plan.cells)} cell" + ("" if len(plan.cells) == 1 else "s")
    yield f"{plan.experiment.title} ({plan.experiment.name}): {cells}, about {_minutes(plan.seconds)}"
    yield from _block(plan.before)
    for index, cell in enumerate(plan.cells, 1):
        yield f"cell {index} of {len(plan.cells)}: {cell.name}, about {_minutes(cell.seconds)}"
        yield from _block(cell.steps)
    yield "at the end"
    yield from _block(plan.after)


def _block(steps: Iterable[Step]) -> Iterator[str]:
    for step in steps:
        # A step during the traffic shows when it starts instead of how long it takes.
        time = f"{step.seconds:6.1f}" if step.after_s is None else f"@{step.after_s:5.1f}"
        yield f"  {time}  {step.kind:<11}  {' '.join(step.nodes):<14}  {step.detail}".rstrip()


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
