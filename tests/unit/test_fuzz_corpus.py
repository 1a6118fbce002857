"""Fuzz targets in Python: every file of their corpora passes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "fuzz"))

from targets import CORPUS, TARGETS

FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.mark.sample(5)
@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_targets_pass_the_whole_corpus(file: Path) -> None:
    TARGETS[file.parent.name](file.read_bytes())


def test_every_corpus_and_every_target_is_replayed() -> None:
    assert {file.parent.name for file in FILES} == {path.name for path in CORPUS.iterdir()} == set(TARGETS)


def test_failing_fuzz_target_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targets.main", lambda words: 4)
    with pytest.raises(AssertionError):
        TARGETS["run"](b"\0")
