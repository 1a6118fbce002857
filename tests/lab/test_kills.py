"""Faults of runs in the lab of an inventory, each injected once; `tests/nemesis/test_inventory.py` draws them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kills import DISRUPTIONS, Disruption, RealLab, run_trial, start_real_lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.slow, pytest.mark.xdist_group("kills")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLab]:
    """Provide one lab for all faults: each must leave it unchanged."""
    with start_real_lab(f"test-kills-{os.getpid()}", tmp_path_factory.mktemp("rack")) as made:
        yield made


@pytest.mark.parametrize(
    ("cut", "guard"),
    [
        pytest.param(cut, guard, id=f"{cut.__name__}-{guard}")
        for (cut, _), guard in zip(DISRUPTIONS, ("archive", "eem", "archive", "none"), strict=True)
    ],
)
def test_interrupted_run_restores_everything(
    cut: Disruption, guard: str, clean: Path, made: RealLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(clean / "state"))
    print(run_trial(1, made, clean, cut, guard))
