"""Bounds of processor time, in seconds of a machine of known speed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

LOOP_S = 0.02
"""Time of the loop below on an idle core of 2.5 to 3 GHz with Python 3.11."""
MUTATION = 5.0 if "MUTANT_UNDER_TEST" in os.environ else 1.0
"""Factor of the calls that mutmut inserts between those of a program."""


def processor_slowness() -> float:
    """Return how many times slower than the reference this shared machine is now; at least 1."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        total = 0
        for number in range(500_000):
            total += number & 7
        taken.append(time.process_time() - began)
    return max(1.0, min(taken) / LOOP_S)


@contextmanager
def time_limit_s(seconds: float, children: bool = False) -> Iterator[None]:
    """Fail if the block takes more processor time than `seconds` of a core like that of `LOOP_S`; with `children`,
    child processes count too.
    """
    began = os.times()
    yield
    taken = os.times()
    took = sum(taken[:2]) - sum(began[:2]) + (sum(taken[2:4]) - sum(began[2:4]) if children else 0.0)
    if took >= seconds * MUTATION:
        # Measured only if the result depends on it, because the measurement takes a while.
        slow = processor_slowness()
        assert took < seconds * slow * MUTATION, f"{took:.2f} s of a processor {slow:.1f} times as slow"
