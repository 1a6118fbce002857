"""Runs on the nodes of an inventory that are killed or cut off at any time: hosts and routers are examined from
outside.

    pytest tests/nemesis/test_inventory.py --seeds 1-100

A seed determines the fault and its time; the state of the run at that time depends on the machine.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import temporary_folder
from kills import RealLab, draw_cut, run_trial, start_real_lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLab]:
    """Provide one lab for all seeds: each must leave it unchanged."""
    with start_real_lab(f"test-nemesis-inventory-{os.getpid()}", tmp_path_factory.mktemp("rack")) as made:
        yield made


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide a working folder, next to a folder for temporary files."""
    temporary = temporary_folder(tmp_path, monkeypatch)
    yield tmp_path
    shutil.rmtree(temporary, ignore_errors=True)


def test_run_disconnected_at_any_time_restores_everything(
    seed: int, clean: Path, made: RealLab, monkeypatch: pytest.MonkeyPatch, tell: Callable[[str, str], None]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(clean / "state"))
    cut, guard = draw_cut(random.Random(seed))
    tell("inventory", f"{cut.__name__.replace('_', ' ')}; countdown: {guard}")
    print(f"seed {seed}: {run_trial(seed, made, clean)}")
