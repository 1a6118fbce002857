"""Processes of a run that stop for 0.1 to 10 s, like under a debugger, `cpulimit` or job control.

    pytest tests/nemesis/test_stops.py --seeds 1-200

The rules are those of any other fault: the run ends in time, its cells are valid or invalid with a reason, and nothing
is left.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from checker import UndisturbedRuns
from faults import STOPS
from survival import assert_survived

pytestmark = pytest.mark.lab


def test_run_survives_a_stopped_process(
    seed: int, clean: Path, undisturbed_run: UndisturbedRuns, tell: Callable[[str, str], None]
) -> None:
    assert_survived(seed, clean, undisturbed_run, tell, STOPS)
