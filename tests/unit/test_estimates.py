"""Error bounds of a value that is read at intervals."""

from __future__ import annotations

import random
import statistics

import pytest

from qoslab.analysis.estimates import Estimate, estimate_error, passed_bytes, sampled_median, value_if_precise
from qoslab.analysis.missing import Missing


@pytest.mark.parametrize(
    "samples, median, error",
    [
        ([11.0], 11, 0),
        ([10.0, 12.0], 11, 1),
        # Of six values the least and the greatest: 1 of 32 cases is outside.
        ([10, 10, 10, 10, 11, 13], 10, 3),
        # Of nine values the second on either side: 20 of 512.
        ([1, 2, 3, 4, 5, 6, 7, 8, 100], 5, 3),
        # Of seventeen values the fifth: 6429 of 131072; 131072/20 are 6553.6.
        (range(1, 18), 9, 4),
        # Of sixty values the 22nd.
        (range(1, 61), 30.5, 8.5),
    ],
)
def test_error_of_the_median_follows_from_the_order_of_readings(
    samples: list[float], median: float, error: float
) -> None:
    found = sampled_median(samples)
    assert (found, estimate_error(found)) == (median, error)


@pytest.mark.parametrize("count", [6, 9, 20, 61])
def test_median_error_covers_95_percent_of_cases(count: int) -> None:
    chance = random.Random(1)
    everything = [chance.expovariate(1) for _ in range(10_001)]
    middle = statistics.median(everything)
    tries = 2_000
    found = [sampled_median(chance.sample(everything, count)) for _ in range(tries)]
    near = sum(abs(each - middle) <= estimate_error(each) for each in found)
    assert near / tries > 0.95


@pytest.mark.parametrize(
    ("packets", "size", "passed", "value", "error"),
    [
        # Packets have 34 to 1514 bytes. Six dropped packets had at least 204 bytes, four passed ones at least 136.
        (10, 5000, 4, 2000, 4796 - 2000),
        # Nine of ten large packets were dropped, of at most 1514 bytes each.
        (10, 15_000, 1, 1500, 1500 - (15_000 - 9 * 1514)),
        # Two more packets left than arrived: they had at least 68 and at most 3028 bytes.
        (10, 5000, 12, 6000, 8028 - 6000),
        (10, 5000, 10, 5000, 0),
        # Their sizes are unknown.
        (0, 0, 10, 10 * (34 + 1514) / 2, 10 * (1514 - 34) / 2),
        # The ends are exchanged for counters that do not agree: five packets had at least 170 bytes, more than arrived.
        (5, 100, 5, 100, 70),
    ],
)
def test_passed_bytes_are_bounded_by_possible_packet_sizes(
    packets: int, size: int, passed: int, value: float, error: float
) -> None:
    found = passed_bytes(packets, size, passed, 14)
    assert (found, estimate_error(found)) == pytest.approx((value, error))


def test_value_with_a_large_error_is_omitted() -> None:
    assert (
        value_if_precise(Estimate(-100, 5), lambda: "R1 A") == -100
        and value_if_precise(7.0, lambda: "R1 A") == 7
        and value_if_precise(Missing("why"), lambda: "R1 A") == "why"
    )
    assert value_if_precise(Estimate(100, 6), lambda: "R1 A") == Missing(
        "R1 A: the readings only show a value between 94 and 106"
    )
    # Nothing is less than zero.
    assert value_if_precise(Estimate(10, 20), lambda: "R1 A") == Missing(
        "R1 A: the readings only show a value between 0 and 30"
    )
    assert value_if_precise(Estimate(0.5, 0.2), lambda: "R1 A") == Missing(
        "R1 A: the readings only show a value between 0.3 and 0.7"
    )
