"""Rate of correct answers of `qoslab infer` over 2,000 captures of known devices (minutes; `tox -e infer`)."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from limiter_cases import Score, Verdict, judge_answer, make_case

CASES = 2000


def judged_cases(seed: int) -> Verdict:
    return judge_answer(make_case(seed))


@pytest.fixture(scope="module")
def score() -> Score:
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = Score(list(pool.map(judged_cases, range(CASES), chunksize=20)))
    print("\n".join(found.lines()))
    return found


def test_kind_is_correct_in_98_percent(score: Score) -> None:
    assert score.kinds_right() >= 0.98, list(score.lines())


def test_true_values_are_inside_their_intervals_in_95_percent(score: Score) -> None:
    assert score.values_inside() >= 0.95, list(score.lines())


def test_limiter_is_invented_in_at_most_1_percent(score: Score) -> None:
    assert score.invented() <= 0.01, list(score.lines())
