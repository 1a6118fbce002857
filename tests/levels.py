"""Levels of tests: the short level gates every change, the long level (`pytest --all`) adds everything else.

The short level always has the same tests, cases and Hypothesis examples. Only the long level has the tests and cases
marked `long`, every case of a test marked `sample(N)` (the short level has every Nth), every step of a sweep that calls
`every(N)`, and random examples.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import settings

VARIABLE = "QOSLAB_TEST_ALL"
"""Variable set by `pytest --all`, from which the workers of pytest-xdist and test helpers read the level."""


def run_all_cases() -> bool:
    """Return whether this is the long level."""
    return VARIABLE in os.environ


def value_by_level(*, short: int, long: int) -> int:
    """Return a number that depends on the level."""
    return long if run_all_cases() else short


def every_nth(number: int) -> int:
    """Return the step of a sweep: `number` in the short level, 1 in the long one."""
    return value_by_level(short=number, long=1)


def example_count(number: int) -> int:
    """Return the number of Hypothesis examples: `number` in the long level, a tenth in the short one, at least 5."""
    return value_by_level(short=max(5, number // 10), long=number)


def long_cases(*cases: object) -> list[object]:
    """Return values for `pytest.mark.parametrize` that belong to the long level."""
    return [pytest.param(case, marks=pytest.mark.long) for case in cases]


def load_hypothesis_profile() -> None:
    """Load the profile of this level, before any test module is imported.

    The short level always draws the same examples. The long level draws new ones and prints how to reproduce a failure.
    """
    # No deadline: a busy machine must not fail a test.
    settings.register_profile("short", deadline=None, derandomize=True, database=None, max_examples=example_count(100))
    settings.register_profile("long", deadline=None, derandomize=False, print_blob=True)
    settings.load_profile("long" if run_all_cases() else "short")


def select_cases(items: Iterable[pytest.Item]) -> Iterator[tuple[pytest.Item, bool]]:
    """Yield each test, and whether this level runs it."""
    cases = Counter[str]()
    for item in items:
        chosen = item.get_closest_marker("long") is None
        if chosen and (sample := item.get_closest_marker("sample")):
            function = item.nodeid.partition("[")[0]
            chosen = cases[function] % sample.args[0] == 0
            cases[function] += 1
        yield item, chosen or run_all_cases()
