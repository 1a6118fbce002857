"""Faults of a run at any time, and an independent checker of the remains.

The run ends in time and without a defect of qoslab; each cell is valid and right, or invalid with a reason; damaged
files are detected; no process, lab or file is left; and the same run continues with `--resume` to a correct result.

    pytest tests/nemesis --seeds 1-200

A seed determines lab, fault, time and victim; the action of the victim at that time depends on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from checker import UndisturbedRuns
from survival import assert_survived

pytestmark = pytest.mark.lab


def test_run_survives_any_fault(
    seed: int, clean: Path, undisturbed_run: UndisturbedRuns, tell: Callable[[str, str], None]
) -> None:
    assert_survived(seed, clean, undisturbed_run, tell)
