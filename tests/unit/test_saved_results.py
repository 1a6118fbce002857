"""Saved results of cells: used while cells, tables and code are the same, else computed again and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sample_run
from test_damage import cut_file, flip_byte

from qoslab.analysis import analyse, readings, saved_cells
from qoslab.results import Cell, RunFolder, file_access
from qoslab.results.folder import SAVED_CELLS


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return the names of the cells that are read from their files."""
    names: list[str] = []
    original = readings.Readings._read

    def note(self: readings.Readings, cell: Cell) -> readings.Reading:
        names.append(cell.name)
        return original(self, cell)

    monkeypatch.setattr(readings.Readings, "_read", note)
    return names


@pytest.fixture(scope="module")
def analysed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = sample_run.make_run(tmp_path_factory.mktemp("analysed"))
    analyse(folder)
    return folder.path


@pytest.fixture
def run(analysed_run: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(shutil.copytree(analysed_run, tmp_path / analysed_run.name))


def results(folder: RunFolder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (*folder.tables.glob("*"), *folder.path.glob("comparison.*"))}


def test_known_cells_are_not_read_and_give_the_same_results(run: RunFolder, read: list[str]) -> None:
    before = results(run)
    assert analyse(run).notes == () and read == []
    assert results(run) == before and SAVED_CELLS.rpartition("/")[2] in before


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["metrics.parquet", "cells.json"])
@pytest.mark.parametrize("damage", [cut_file, flip_byte])
def test_damaged_results_are_recomputed_and_reported(run: RunFolder, read: list[str], name: str, damage: Any) -> None:
    before = results(run)
    damage(run.tables / name)
    (note,) = analyse(run).notes
    assert f"tables/{name}" in note and note.endswith("; the cells are read again")
    assert len(read) == len(run.manifest().cells) and results(run) == before


def test_results_of_other_code_are_computed_again_and_named(
    run: RunFolder, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = results(run)
    with monkeypatch.context() as patch:
        patch.setattr(saved_cells, "code_version", lambda: "0.0.1, SHA-256 of something else")
        assert analyse(run).notes == (
            "tables/cells.json: found results of another version of qoslab; the cells are read again",
        )
    assert len(read) == len(run.manifest().cells)
    analyse(run)
    assert results(run) == before


def test_only_a_cell_with_another_record_is_read(run: RunFolder, read: list[str]) -> None:
    cell = sample_run.cells_of(run)[0]

    def refuse(record: dict[str, Any]) -> None:
        record["valid"], record["reasons"] = False, ["a dog ate it"]

    sample_run.change_json(cell.record_file, refuse)
    sample_run.reseal(run.path)
    outcome = analyse(RunFolder(run.path))
    assert read == [cell.name] and f"{cell.name}: a dog ate it" in outcome.reasons and outcome.notes == ()
    after = results(run)
    (run.path / SAVED_CELLS).unlink()
    analyse(RunFolder(run.path))
    assert results(run) == after


def test_two_readers_at_once_give_the_same_results(run: RunFolder) -> None:
    before = results(run)
    for _ in range(2):
        (run.path / SAVED_CELLS).unlink()
        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(analyse, [RunFolder(run.path), RunFolder(run.path)]))
        assert all(outcome.valid for outcome in outcomes) and results(run) == before


def test_full_disk_preserves_earlier_results(run: RunFolder, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    original = file_access.Disk.create

    def create(self: file_access.Disk, path: Path, content: bytes) -> None:
        if SAVED_CELLS.rpartition("/")[2] in path.name:
            raise OSError(28, "No space left on device")
        original(self, path, content)

    (run.path / SAVED_CELLS).unlink()
    before = results(run)
    with monkeypatch.context() as patch:
        patch.setattr(file_access.Disk, "create", create)
        (note,) = analyse(run).notes
    assert "the disk is full" in note and note.endswith("the next report reads the cells again")
    assert results(run) == before
    analyse(RunFolder(run.path))
    assert len(read) == 2 * len(run.manifest().cells) and json.loads((run.path / SAVED_CELLS).read_text())["cells"]
