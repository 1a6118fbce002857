"""Benchmarks, which are run rarely and by hand: each of them starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = sorted((Path(__file__).parents[2] / "benches").glob("*.py"))


@pytest.mark.sample(10)
@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_every_benchmark_can_be_imported(file: Path) -> None:
    done = subprocess.run([sys.executable, file, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert file.stem == "page" or file.name in done.stdout, "it says what it takes"
