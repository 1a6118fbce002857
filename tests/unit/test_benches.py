"""Benchmarks are run by hand, and rarely: here they show that they would start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = sorted((Path(__file__).parents[2] / "benches").glob("*.py"))


@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_a_benchmark_finds_what_it_imports(file: Path) -> None:
    done = subprocess.run([sys.executable, file, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert file.stem == "page" or file.name in done.stdout, "it says what it takes"
