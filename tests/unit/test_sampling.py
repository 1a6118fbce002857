"""Sampling times of the data planes' counters: once a second, and at triggers of the traffic."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qoslab.run.cell.sampling import MAX_READING_DISTANCE_S, CounterReadings


def taken_times(readings: CounterReadings, count: int) -> list[float]:
    """Return the sampling times of so many samples."""
    times = []
    for _ in range(count):
        times.append(readings.next_reading_time())
        readings.record_taken(times[-1])
    return times


def test_without_triggers_routers_are_read_every_second() -> None:
    readings = CounterReadings(100.0)
    assert taken_times(readings, 2) == [100, 101]
    readings.start(101.3)
    assert taken_times(readings, 2) == [102, 103]


@pytest.mark.parametrize(
    ("moment", "times"),
    [
        (1.4, [101, 101.7, 102, 103]),
        # Close to a regular sample, before or after it, it replaces the regular one.
        (1.625, [101, 101.925, 103, 104]),
        (1.8, [101, 102.1, 103, 104]),
        (1.95, [101, 102, 102.25, 103]),
    ],
)
def test_counters_are_read_once_per_trigger(moment: float, times: list[float]) -> None:
    readings = CounterReadings(100.0, [moment])
    assert taken_times(readings, 1) == [100]
    # Before the traffic starts, its time is unknown.
    assert readings.next_reading_time() == 101
    readings.start(100.3)
    assert taken_times(readings, 4) == pytest.approx(times)


@given(
    zero=st.floats(0, 1.5),
    moments=st.lists(st.integers(1, 200).map(lambda each: each / 8), max_size=12, unique=True),
)
@example(zero=0.25, moments=[0.5, 0.625, 0.75])
@example(zero=0.0, moments=[1.0])
def test_each_trigger_is_read_and_no_second_is_omitted(zero: float, moments: list[float]) -> None:
    readings = CounterReadings(0.0, moments)
    readings.start(zero)
    times = taken_times(readings, 60)
    wanted = {zero + each for each in moments}
    assert wanted <= set(times)
    regular = [each for each in times if each not in wanted]
    assert all(first < second for first, second in pairwise(times))
    assert all(abs(each - moment) >= MAX_READING_DISTANCE_S for each in regular for moment in wanted)
    # One may be early and the next one late.
    assert all(second - first <= 1 + 2 * MAX_READING_DISTANCE_S for first, second in pairwise(times))
