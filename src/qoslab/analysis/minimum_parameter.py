"""Ratio of a metric to the smallest value of a parameter with an equally good result. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from qoslab.analysis import sweeps
from qoslab.analysis.statistics import average
from qoslab.analysis.sweeps import Point
from qoslab.model.comparison import MinimumParameter
from qoslab.model.expressions import read_value
from qoslab.model.matrix import as_number
from qoslab.results import CellSummary


def over_least(
    wanted: MinimumParameter, found: Sequence[Point], metrics: pd.DataFrame, cells: Sequence[CellSummary]
) -> list[Point]:
    """Return the points divided by the smallest parameter value at which a cell of the other arm is at least as good.

    Points without such a value are left out: those without the metric, and those that are better than all cells of the
    other arm.
    """
    made = []
    for point in found:
        if (least := min(_as_good(wanted, point, metrics, cells), default=None)) is not None:
            values = tuple(value / least for value in point.values)
            made.append(replace(point, values=values, estimate=average([values])))
    return made


def _as_good(
    wanted: MinimumParameter, point: Point, metrics: pd.DataFrame, cells: Sequence[CellSummary]
) -> Iterator[float]:
    """Yield parameter values at which the other arm's cells are at least as good as those of a point."""
    own = sweeps.points(metrics, point.cells, point.arm, wanted.metric, {})
    same = {name: point.parameters[name] for name in wanted.same}
    for other in sweeps.points(metrics, cells, wanted.arm, wanted.metric, same) if own else []:
        shared = sweeps.shared_repetitions(own[0], other)
        if shared is None:
            continue
        to_reach, reached = (each.estimate.value for each in shared)
        worse = (to_reach - reached) * (1 if wanted.better == "higher" else -1)
        value = as_number(read_value(other.parameters[wanted.parameter]))
        if worse <= wanted.equal_within.fraction * abs(to_reach) and isinstance(value, int | float) and value > 0:
            yield float(value)
