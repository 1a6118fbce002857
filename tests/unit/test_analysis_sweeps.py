"""A metric over the parameters of a sweep."""

import math
from collections.abc import Callable

import pandas as pd
import pytest

from qoslab.analysis import averages
from qoslab.model.matrix import Scalar
from qoslab.report import sweep_points
from qoslab.results import CellSummary

RTTS = ("10 ms", "50 ms", "100 ms")


def run(
    value: Callable[[str, int, int], float], *, invalid: tuple[str, ...] = ()
) -> tuple[pd.DataFrame, list[CellSummary]]:
    """Return three round-trip times, two numbers of connections, two repetitions; cells in no particular order."""
    cells, rows = [], []
    for rtt in ("100 ms", "10 ms", "50 ms"):
        for connections in (10, 1):
            for repetition in (2, 1):
                parameters: dict[str, Scalar] = {"rtt": rtt, "connections": connections}
                cell = CellSummary(arm="dynamic", parameters=parameters, repetition=repetition, valid=True)
                if cell.name in invalid:
                    cell = cell.model_copy(update={"valid": False, "reasons": ("R1 was late",)})
                cells.append(cell)
                rows.append(
                    {
                        "arm": "dynamic",
                        "cell": cell.name,
                        "metric": "goodput.sum",
                        "value": value(rtt, connections, repetition),
                    }
                )
    return pd.DataFrame(rows), cells


def figure(rtt: str, connections: int, repetition: int) -> float:
    return 10.0 * (RTTS.index(rtt) + 1) + connections / 10 + repetition


def test_points_are_medians_of_repetitions() -> None:
    found = averages.points(*run(figure), "dynamic", "goodput.sum", {})
    assert len(found) == 6
    point = next(each for each in found if each.parameters == {"rtt": "10 ms", "connections": 1})
    assert point.estimate.value == 11.6
    assert (point.estimate.low, point.estimate.high) == pytest.approx((11.6 - 6.35310, 11.6 + 6.35310), abs=1e-5)


def test_invalid_cells_are_left_out() -> None:
    name = CellSummary(arm="dynamic", parameters={"rtt": "10 ms", "connections": 1}, repetition=2, valid=True).name
    found = averages.points(*run(figure, invalid=(name,)), "dynamic", "goodput.sum", {"rtt": "10 ms"})
    assert sorted(each.estimate.n for each in found) == [1, 2]


def test_condition_selects_cells() -> None:
    found = averages.points(*run(figure), "dynamic", "goodput.sum", {"rtt": ("10 ms", "50 ms"), "connections": 1})
    assert [each.parameters["rtt"] for each in found] == ["10 ms", "50 ms"]


def test_means_by_parameter_are_in_the_order_of_size() -> None:
    table = sweep_points.means_by_parameter(averages.points(*run(figure), "dynamic", "goodput.sum", {}))
    assert list(table) == ["rtt", "connections"]
    assert [value for value, _ in table["rtt"]] == list(RTTS)
    assert [round(estimate.value, 6) for _, estimate in table["rtt"]] == [12.05, 22.05, 32.05]
    assert [estimate.over for _, estimate in table["rtt"]] == ["cells"] * 3


def test_worst_cells_come_first() -> None:
    found = averages.points(*run(figure), "dynamic", "goodput.sum", {})
    assert [each.parameters["rtt"] for each in averages.extremes(found, 2, lowest=True)] == ["10 ms", "10 ms"]
    assert averages.extremes(found, 1, lowest=False)[0].parameters == {"rtt": "100 ms", "connections": 10}


def test_each_combination_of_other_parameters_is_a_curve() -> None:
    lines = sweep_points.curves(averages.points(*run(figure), "dynamic", "goodput.sum", {}), "rtt")
    assert list(lines) == ["connections 1", "connections 10"]
    assert [point.parameters["rtt"] for point in lines["connections 1"]] == list(RTTS)


def test_constant_parameter_is_not_in_curve_names() -> None:
    found = averages.points(*run(figure), "dynamic", "goodput.sum", {"connections": 1})
    assert list(sweep_points.curves(found, "rtt")) == ["dynamic"]


def test_grid_has_each_point_once() -> None:
    found = averages.points(*run(figure), "dynamic", "goodput.sum", {})
    made = sweep_points.grid(found, ("rtt",), ("connections",))
    assert made.rows == [("10 ms",), ("50 ms",), ("100 ms",)]
    assert made.columns == [(1,), (10,)]
    assert {len(points) for points in made.cells.values()} == {1}
    joined = sweep_points.grid(found, ("rtt",), ())
    assert [len(points) for points in joined.cells.values()] == [2, 2, 2]


def test_sweep_without_values_has_no_points() -> None:
    assert averages.points(*run(lambda *_: math.nan), "dynamic", "goodput.sum", {}) == []
