"""What flows got together: rates of traffic that comes and goes, step by step."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qoslab.analysis import goodput
from qoslab.analysis.goodput import apart, jain, summed, total_bps


def intervals(*rows: tuple[float, float, float, int]) -> pd.DataFrame:
    """Offset of the flow, start and end in its own time, and bytes."""
    return pd.DataFrame(rows, columns=["offset_s", "start_s", "end_s", "bytes"])


def bits(table: pd.DataFrame) -> list[float]:
    return [round(float(each), 6) for each in summed(table)[0]]


def test_steps_are_as_long_as_the_usual_interval() -> None:
    table = intervals(*((5.0, n / 2, (n + 1) / 2, 100) for n in range(4)), (6.0, 0.0, 0.5, 10))
    found, seconds = summed(table)
    assert list(found) == [800, 800, 880, 800] and list(seconds) == [0.5] * 4


def test_an_interval_in_two_steps_is_divided_between_them() -> None:
    table = intervals((0.0, 0.0, 2.0, 100), (0.0, 2.0, 4.0, 100), (0.5, 0.0, 2.0, 100))
    assert bits(table) == [800 + 600, 800 + 200]
    # What comes after a pause is where it is.
    assert bits(intervals((0.0, 0.0, 1.0, 1), (3.0, 0.0, 1.0, 2))) == [8, 0, 0, 16]


def test_a_single_interval_is_a_step() -> None:
    found, seconds = summed(intervals((3.0, 0.0, 4.0, 100)))
    assert (list(found), list(seconds)) == ([800], [4])


def test_intervals_without_a_length_say_nothing() -> None:
    found, seconds = summed(intervals((0.0, 1.0, 1.0, 100), (0.0, 0.0, 0.0, 100)))
    assert found.shape == seconds.shape == (0,)


def test_steps_become_longer_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    table = intervals(*((0.0, float(n), n + 1.0, 100) for n in range(6)))
    monkeypatch.setattr(goodput, "PAIRS_MOST", 36)
    assert bits(table) == [800] * 6
    for pairs, steps in ((23, 3), (12, 2), (6, 1), (5, 1)):
        monkeypatch.setattr(goodput, "PAIRS_MOST", pairs)
        found, seconds = summed(table)
        assert list(seconds) == [6 / steps] * steps and list(found) == [4800 / steps] * steps
    # Just as many as may be are as long as they were, whatever is left in the end.
    monkeypatch.setattr(goodput, "PAIRS_MOST", 9)
    assert list(summed(intervals((0.0, 0.0, 1.0, 1), (0.0, 1.0, 2.0, 1), (0.0, 2.0, 3.5, 1)))[1]) == [1, 1, 1]


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 12), st.integers(1, 4), st.integers(0, 1000)),
        min_size=1,
        max_size=9,
    ),
    at_once=st.integers(1, 20),
)
def test_all_bits_are_in_some_step(rows: list[tuple[int, int, int, int]], at_once: int) -> None:
    """However many are computed at once; of what lies behind the last whole step nothing."""
    table = intervals(
        *((float(offset), float(start), start + float(length), size) for offset, start, length, size in rows)
    )
    whole, seconds = summed(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(goodput, "PAIRS_AT_ONCE", at_once)
        assert summed(table)[0] == pytest.approx(whole)
    begin, step = min(offset + start for offset, start, _, _ in rows), float(seconds[0])
    expected = np.zeros(len(whole))
    for offset, start, length, size in rows:
        for number in range(len(whole)):
            low, high = begin + number * step, begin + (number + 1) * step
            inside = min(high, offset + start + length) - max(low, offset + start)
            expected[number] += max(inside, 0) / length * size * 8
    assert whole == pytest.approx(expected)


def test_flows_that_start_a_second_apart_are_of_one_moment() -> None:
    assert not apart(pd.Series([1.0, 2.0, None])) and apart(pd.Series([1.0, 2.001]))
    assert not apart(pd.Series([None], dtype=float))


def test_what_all_received_together() -> None:
    flows = pd.DataFrame(
        [("a", 0.0, 10.0, 1000), ("a", 0.5, 20.0, 1000), ("b", 1.0, 5.0, 500)],
        columns=["traffic", "offset_s", "seconds", "bytes"],
    )
    assert total_bps(flows) == pytest.approx(16_000 / 20 + 4000 / 5)
    assert total_bps(flows.assign(offset_s=[2.0, 0.5, 19.0])) == pytest.approx(20_000 / (24 - 0.5))


def test_an_index_of_fairness() -> None:
    assert jain(pd.Series([3.0, 3.0, 3.0])) == 1 and jain(pd.Series([5.0, 0.0])) == 0.5
    assert jain(pd.Series([1.0, 2.0, 3.0])) == pytest.approx(36 / (3 * 14))
    assert jain(pd.Series([0.1, 0.1])) == pytest.approx(1)
    assert math.isnan(jain(pd.Series([0.0, 0.0])))
