"""Repeated runs of tests are reported, and too many fail the call of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILE = """\
import warnings
import pytest
from rerun_budget import RepeatedRunWarning

@pytest.mark.parametrize("number", range({number}))
def test_it(number):
    warnings.warn(RepeatedRunWarning(f"late {{number}}"))

def test_other():
    warnings.warn("another")
"""


@pytest.mark.long
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["here", "in workers"])
@pytest.mark.parametrize(("number", "status"), [(3, 1), (0, 0), (1, 0), (2, 0)])
def test_reruns_are_counted_and_reported(tmp_path: Path, workers: tuple[str, ...], number: int, status: int) -> None:
    (tmp_path / "test_x.py").write_text(FILE.format(number=number))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "rerun_budget", "-p", "no:cacheprovider", *workers],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    end = f"{number} run{'s' if number > 1 else ''} repeated because of invalid results; at most 2 are allowed"
    assert (end in done.stdout) == bool(number)
    assert done.stdout.count("test_x.py::test_it[0]: late 0") == bool(number)
