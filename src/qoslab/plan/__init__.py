"""Plan of a run: its cells (arm × parameters × repetition), and the steps of each in order, with time estimates. Pure.

`qoslab plan` prints the plan and `qoslab run` executes it: a run opens the steps of a cell by their keys, in this
order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from qoslab.errors import ExperimentError, did_you_mean
from qoslab.lab_kinds import lab_kind, report_step
from qoslab.model.experiment import Experiment, Order
from qoslab.model.expressions import Value, read_value, show_value
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.matrix import BUILT_IN, CELL_LIMIT, as_scalar, as_texts, is_same_value
from qoslab.model.steps import Step
from qoslab.model.units import Duration, QuantityError
from qoslab.schema import CellIdentified, CellIdentity

if TYPE_CHECKING:
    from qoslab.schema import Sweep


@dataclass(frozen=True)
class Options:
    """Command-line options for an experiment."""

    arms: tuple[str, ...] = ()
    """Names of the arms to run, which keep the experiment's order; all arms if empty."""
    duration: Duration | None = None
    """Traffic time, in place of the experiment's."""
    repetitions: int | None = None
    """Number of repetitions, in place of the experiment's."""
    lab: str = DEFAULT_LAB
    """Kind of the lab; see `qoslab.lab_kinds`."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Seconds of simulation per second of a cell's traffic, by arm; unknown if absent."""
    only: tuple[tuple[str, str], ...] = ()
    """Pairs of parameter (or `arm`, `repetition`) and value: only matching cells are run; several values of one
    parameter are alternatives.
    """
    order: Order | None = None
    """Order of the cells, in place of the experiment's."""


@dataclass(frozen=True)
class Cell(CellIdentified):
    """One repetition of one arm with one combination of parameters."""

    identity: CellIdentity
    sweep: Sweep = field(repr=False, compare=False)
    lab: str = DEFAULT_LAB
    """Kind of the lab that runs the cell."""
    cost: float | None = field(default=None, repr=False, compare=False)
    """Simulation time in seconds per second of its traffic; None if unknown."""

    @property
    def experiment(self) -> Experiment:
        """Experiment of this cell: one arm, with all parameter values filled in."""
        return self.sweep.resolve(self.identity)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the steps in order: a run opens these steps by their keys."""
        return lab_kind(self.lab).steps(self.experiment, self.cost)

    @property
    def seconds(self) -> float | None:
        """Estimate of all steps in sequence; None if unknown."""
        return _sum_times(step.seconds for step in self.steps if step.after_s is None)

    @property
    def turn_seconds(self) -> float | None:
        """Estimate of the part of the cell that excludes traffic of other cells; None if unknown."""
        turn = lab_kind(self.lab).turn
        return _sum_times(step.seconds for step in self.steps if step.after_s is None and step.key in turn)


def _sum_times(parts: Iterable[float | None]) -> float | None:
    """Return the sum; None if a part is unknown."""
    total = 0.0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


TIME_FIELDS = frozenset({"duration", "start_after", "frequency", "interval", "count", "packets"})
"""Keys of an experiment with values that affect the duration of a cell; for the estimate."""


@dataclass(frozen=True)
class Plan:
    """Plan of a run: its cells, and the steps before and after them."""

    sweep: Sweep
    """Experiment with the options applied; it still lists the arms that are left out."""
    lab: str
    before: tuple[Step, ...]
    cells: tuple[Cell, ...]
    after: tuple[Step, ...]

    @property
    def experiment(self) -> Experiment:
        """Experiment with the parameters of each arm's first combination."""
        return self.sweep.experiment

    @property
    def seconds(self) -> float | None:
        """Estimate of the run with its cells in sequence; None if unknown."""
        return self.estimate_seconds(1)

    def estimate_seconds(self, labs: int) -> float | None:
        """Estimate the time of the run with traffic in this number of labs at a time, while further labs are prepared.

        Return None if it is unknown.
        """
        known: dict[tuple[object, ...], tuple[float, float]] = {}
        names = {arm.name: self.sweep.relevant_parameters(arm.name, TIME_FIELDS) for arm in self.experiment.arms}
        whole = turns = 0.0
        for cell in self.cells:
            # Cells that differ only in other parameters take the same time.
            key = (cell.arm, *(cell.identity.get(name) for name in names[cell.arm]))
            if key not in known:
                seconds, turn = cell.seconds, cell.turn_seconds
                if seconds is None or turn is None:
                    return None
                known[key] = seconds, turn
            whole += known[key][0]
            turns += known[key][1]
        around = sum(step.seconds or 0.0 for step in (*self.before, *self.after))
        side_by_side = min(labs, len(self.cells))
        if side_by_side <= 1:
            return around + whole
        # No cell has traffic while the first cells are configured, and after the last one. Parallel cells do not
        # shorten a cell.
        longest = max(turn for _, turn in known.values())
        return around + (whole - turns) / len(self.cells) + max(turns / side_by_side, longest)

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values for `--json`, times in seconds."""
        return {
            "experiment": self.experiment.name,
            "lab": self.lab,
            "seconds": self.seconds,
            "before": [asdict(step) for step in self.before],
            "cells": [
                {
                    "arm": cell.arm,
                    "parameters": as_texts(cell.parameters),
                    "repetition": cell.repetition,
                    "seconds": cell.seconds,
                    "steps": [asdict(step) for step in cell.steps],
                }
                for cell in self.cells
            ],
            "after": [asdict(step) for step in self.after],
        }


def make_plan(experiment: Experiment | Sweep, options: Options | None = None) -> Plan:
    """Return the plan of a checked experiment. Raise `ExperimentError` for options that do not fit the experiment."""
    chosen = options or Options()
    from qoslab.schema.sweep import Sweep  # it loads the check of experiments, and records of runs need a plan's names

    sweep = experiment if isinstance(experiment, Sweep) else Sweep.from_experiment(experiment)
    names = [arm.name for arm in sweep.experiment.arms]
    for name in chosen.arms:
        if name not in names:
            raise ExperimentError(
                f'found the arm "{name}", expected one of {", ".join(names)}',
                hint="Only the arms given with --arm are selected.",
            )
    if chosen.repetitions is not None and chosen.repetitions < 1:
        raise ExperimentError(f"found {chosen.repetitions} repetitions, expected at least 1")
    if chosen.duration is not None and not chosen.duration:
        raise ExperimentError(f"found the duration {chosen.duration}, expected one above zero")
    changes: dict[str, Any] = {}
    if chosen.duration is not None:
        changes["duration"] = chosen.duration
    if chosen.repetitions is not None:
        changes["repetitions"] = chosen.repetitions
    if chosen.order is not None:
        changes["order"] = chosen.order
    sweep = sweep.with_experiment(**changes)
    if sweep.count > CELL_LIMIT:
        found = f"found {sweep.count} cells, repetitions counted, expected at most {CELL_LIMIT}"
        raise ExperimentError(found, hint="Reduce the number of repetitions.")
    experiment = sweep.experiment
    _check_probe_time(experiment)
    cells = tuple(
        Cell(identity, sweep, chosen.lab, chosen.costs.get(identity.arm))
        for identity in _order_cells(sweep, _select_cells(sweep, chosen))
    )
    kind = lab_kind(chosen.lab)
    return Plan(
        sweep=sweep,
        lab=chosen.lab,
        before=kind.steps_before_cells(experiment),
        cells=cells,
        after=(*kind.steps_after_cells(experiment), report_step(len(cells))),
    )


def _check_probe_time(experiment: Experiment) -> None:
    """Check that each probe has enough time: a traffic time from the command line may be too short."""
    for probe in experiment.probes:
        if not experiment.has_time_for(probe):
            raise ExperimentError(
                f'found the duration {experiment.duration}, too short for the probe "{probe.name}", started after '
                f"{probe.start_after}",
                hint="Give the traffic more time.",
            )


def _select_cells(sweep: Sweep, options: Options) -> list[CellIdentity]:
    """Return the cells that the options select, in the order of the file."""
    experiment = sweep.experiment
    # Repetitions outermost, so that any drift over time affects all arms alike.
    cells = [
        CellIdentity(arm.name, tuple(parameters.items()), repetition)
        for repetition in range(1, experiment.repetitions + 1)
        for arm in experiment.arms
        if not options.arms or arm.name in options.arms
        for parameters in sweep.combinations(arm.name)
    ]
    wanted: dict[str, list[Value]] = {}
    known = (*BUILT_IN, *sweep.parameters)
    for name, text in options.only:
        if name not in known:
            raise ExperimentError(
                f'found --only {name}={text}, expected one of {", ".join(known)} before the "="',
                hint=did_you_mean(name, known),
            )
        values = list(dict.fromkeys(value for cell in cells if (value := cell.get(name)) is not None))
        try:
            value = read_value(as_scalar(text))
        except QuantityError as error:
            raise ExperimentError(f"--only {name}={text}: {error.message}", hint=error.hint) from error
        found = [each for each in values if is_same_value(each, value) or show_value(each) == text]
        if not found:
            listed = ", ".join(map(show_value, values)) or "nothing: no cell is left"
            raise ExperimentError(f"found --only {name}={text}, expected a value of {name}: {listed}")
        wanted.setdefault(name, []).extend(found)
    chosen = [cell for cell in cells if all(cell.get(name) in values for name, values in wanted.items())]
    if not chosen:
        selection = " ".join(f"--only {name}={text}" for name, text in options.only)
        raise ExperimentError(f"found no cell with {selection}, expected at least one")
    return chosen


def _order_cells(sweep: Sweep, cells: list[CellIdentity]) -> list[CellIdentity]:
    """Sort the cells in the experiment's order. A cell's place in random order depends on the seed and on the cell, not
    on the other cells.
    """
    seed = sweep.experiment.seed

    def place(cell: CellIdentity) -> bytes:
        return hashlib.sha256(f"{seed} {cell.folder}".encode()).digest()

    match sweep.experiment.order:
        case "random":
            return sorted(cells, key=place)
        case "blocked":
            return sorted(cells, key=lambda cell: (cell.repetition, place(cell)))
        case "as written":
            return cells
