"""Something goes wrong in a run, at any moment; a checker that trusts nobody looks at what is left.

Whatever happens, the run ends in time and not by a defect of its own; each cell is valid and right, or invalid with a
reason; what was written is told from what is damaged; nothing is left, no process, no lab, no file; and the same run
goes on with `--resume` to a result that is right.

    pytest tests/nemesis --seeds 1-200

A seed decides lab, fault, moment and victim; what the victim is doing then is the machine's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from checker import Undisturbeds
from survival import assert_survived

pytestmark = pytest.mark.lab


def test_a_run_survives_any_fault(
    seed: int, clean: Path, undisturbed: Undisturbeds, tell: Callable[[str, str], None]
) -> None:
    assert_survived(seed, clean, undisturbed, tell)
