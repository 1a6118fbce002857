"""How far a figure may be off that was looked at now and then."""

from __future__ import annotations

import random
import statistics

import pytest

from qoslab.analysis.estimates import error_of, sampled_median


@pytest.mark.parametrize(
    "samples, median, error",
    [
        ([11.0], 11, 0),
        ([10.0, 12.0], 11, 1),
        # Of six the least and the greatest: 1 of 32 cases is outside.
        ([10, 10, 10, 10, 11, 13], 10, 3),
        # Of nine the second on either side: 20 of 512.
        ([1, 2, 3, 4, 5, 6, 7, 8, 100], 5, 3),
        # Of sixty the 22nd.
        (range(1, 61), 30.5, 8.5),
    ],
)
def test_the_median_of_a_few_readings_is_as_wrong_as_their_order_allows(
    samples: list[float], median: float, error: float
) -> None:
    found = sampled_median(samples)
    assert (found, error_of(found)) == (median, error)


@pytest.mark.parametrize("count", [6, 9, 20, 61])
def test_in_95_of_100_cases_it_is_no_farther_from_the_median_of_all(count: int) -> None:
    chance = random.Random(1)
    everything = [chance.expovariate(1) for _ in range(10_001)]
    middle = statistics.median(everything)
    tries = 2_000
    found = [sampled_median(chance.sample(everything, count)) for _ in range(tries)]
    near = sum(abs(each - middle) <= error_of(each) for each in found)
    assert near / tries > 0.95
