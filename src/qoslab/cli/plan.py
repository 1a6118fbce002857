"""`qoslab plan`: the steps of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import click

from qoslab.cli.options import CellChoice, cell_options, experiment_argument, set_option
from qoslab.cli.output_options import json_option
from qoslab.cli.places import open_sweep
from qoslab.lab_kinds import lab_kind
from qoslab.model.expressions import show_value
from qoslab.model.steps import Step
from qoslab.plan import Plan
from qoslab.schema.devices import lines_without_effect
from qoslab.schema.idle import idle_warnings
from qoslab.system.printing import echo


@click.command()
@experiment_argument
@set_option
@cell_options
@json_option
def command(experiment: str, sets: Sequence[str], choice: CellChoice, as_json: bool) -> None:
    """Show the steps of a run without running it.

    EXPERIMENT is a file, or the name of a file in experiments/. Times are estimates, in seconds. Template lines that
    the routers accept but do not act on, and the warnings of `qoslab validate`, go to standard error. With --lab
    INVENTORY the output includes every line that would be sent to each router and the lines that restore the router if
    the run is killed; no device is contacted.
    """
    file, sweep = open_sweep(experiment, sets, choice.kind.name)
    plan = choice.plan(sweep)
    for remark in (*lines_without_effect(sweep.experiment, file), *idle_warnings(sweep)):
        echo(str(remark), err=True)
    sent = device_lines(choice, plan)
    if as_json:
        echo(json.dumps(plan.as_dict() | ({"sent": sent} if sent else {}), indent=2))
    else:
        echo("\n".join((*plan_lines(plan), *sent)))


def device_lines(choice: CellChoice, plan: Plan) -> list[str]:
    """Return the lines that are sent to the devices of an inventory. Raise `UserError` if it cannot be used for the
    plan.
    """
    if not choice.kind.has_place:
        return []
    from qoslab.run.workers import lab_machinery

    sent = lab_machinery(choice.kind).device_lines
    return [] if sent is None else list(sent(choice.place, plan))


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the plan as text: one block for each cell, one line for each step.

    Steps are only listed for the first of an arm's cells with different parameters.
    """
    yield _plan_headline(plan)
    yield from _step_block(plan.before)
    seen: set[str] = set()
    for index, cell in enumerate(plan.cells, 1):
        yield f"cell {index} of {len(plan.cells)}: {cell.name}, {_approximate_time(cell.seconds)}"
        if not cell.parameters or cell.arm not in seen:
            yield from _step_block(cell.steps)
        seen.add(cell.arm)
    yield "at the end"
    yield from _step_block(plan.after)


def summary_lines(plan: Plan, labs: int) -> Iterator[str]:
    """Yield a summary of a run: cells by arm, values of the parameters, time; `labs` is the expected number of labs."""
    yield _plan_headline(plan)
    for arm in plan.experiment.arms:
        own = [cell for cell in plan.cells if cell.arm == arm.name]
        if not own:
            continue
        repetitions = len({cell.repetition for cell in own})
        times = f", {repetitions} repetitions" if repetitions > 1 else ""
        yield f"  arm {arm.name}: {_format_cells(len(own))}{times}"
        for name in own[0].parameters:
            values = dict.fromkeys(value for cell in own if (value := cell.identity.get(name)) is not None)
            yield f"    {name}: {', '.join(map(show_value, values))}"
    yield f"order: {plan.experiment.order}"
    if plan.seconds is None:
        yield f"time: {UNKNOWN} before the first simulated cell of each arm"
        return
    kind = lab_kind(plan.lab)
    unit = kind.worker
    counts = sorted(
        count for count in {1, 2, 4, labs} if kind.max_parallel_cells is None or count <= kind.max_parallel_cells
    )
    estimates = [f"{_format_count(count, unit)} {_format_minutes(plan.estimate_seconds(count))}" for count in counts]
    yield f"time: {', '.join(estimates)} (estimates)"
    yield f"as requested: {_format_count(labs, unit)}, {_approximate_time(plan.estimate_seconds(labs))}"


UNKNOWN = "not known"


def _format_count(count: int, unit: str) -> str:
    return f"one {unit}" if count == 1 else f"{count} {unit}{'es' if unit.endswith('s') else 's'}"


def _format_cells(count: int) -> str:
    return f"{count} cell" + ("" if count == 1 else "s")


def _plan_headline(plan: Plan) -> str:
    kind = lab_kind(plan.lab)
    where = "" if kind.is_default else f", {kind.title}"
    title = f"{plan.experiment.title} ({plan.experiment.name})"
    return f"{title}: {_format_cells(len(plan.cells))}{where}, {_approximate_time(plan.seconds)}"


def _step_block(steps: Iterable[Step]) -> Iterator[str]:
    for step in steps:
        # A step during the traffic shows when it starts instead of how long it takes.
        known = f"{'?':>6}" if step.seconds is None else f"{step.seconds:6.1f}"
        time = known if step.after_s is None else f"@{step.after_s:5.1f}"
        yield f"  {time}  {step.kind:<11}  {' '.join(step.nodes):<14}  {step.detail}".rstrip()


def _approximate_time(seconds: float | None) -> str:
    return f"time {UNKNOWN}" if seconds is None else f"about {_format_minutes(seconds)}"


def _format_minutes(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
