"""Analysis of cells during the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import sample_run

from qoslab.analysis import Readings, analyse
from qoslab.model.comparison import PublishedValue
from qoslab.model.reference_names import references
from qoslab.results import Cell, RunFolder
from qoslab.run.background_analysis import BackgroundAnalysis
from qoslab.schema import CellIdentity
from qoslab.system.priority import IDLE_NICE

POLICING = Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml"


def results(folder: RunFolder) -> dict[str, bytes]:
    files = [*folder.tables.glob("*.parquet"), *folder.path.glob("comparison.*")]
    return {file.name: file.read_bytes() for file in files}


def run_readings(folder: RunFolder) -> Readings:
    manifest = folder.manifest()
    published: tuple[PublishedValue, ...] = manifest.published
    return Readings(references(manifest.experiment, published))


def test_background_analysis_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = sample_run.make_run(tmp_path)
    analyse(folder)
    at_once = results(folder)
    assert len(at_once) > 10
    for file in folder.tables.glob("*"):
        file.unlink()
    readings = run_readings(folder)
    for cell in reversed(folder.open().cells):
        readings.cell_content(cell)
    analyse(folder, readings)
    assert results(folder) == at_once


def test_cell_is_read_again_only_if_its_record_changed(tmp_path: Path) -> None:
    folder = sample_run.make_run(tmp_path)
    readings, cell = run_readings(folder), sample_run.cells_of(folder)[0]
    first = readings.cell_content(cell.files())
    assert readings.cell_content(cell.files()) is first

    def refuse(record: dict[str, Any]) -> None:
        record["valid"], record["reasons"] = False, ["a dog ate it"]

    sample_run.change_json(cell.record_file, refuse)
    assert first.problems == () and readings.cell_content(cell.files()).problems == ("a dog ate it",)


def ignore_call(values: object) -> None:
    """Ignore the event."""


def cell(number: int) -> Cell:
    return Cell(Path("cells", "a", str(number)), CellIdentity("a", (), number))


def test_cells_are_analysed_in_order_at_the_lowest_priority() -> None:
    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    seen: list[tuple[int, int]] = []
    both = threading.Event()

    def analyse_nothing(taken: Cell) -> tuple[()]:
        seen.append((taken.repetition, os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))
        if len(seen) == 2:
            both.set()
        return ()

    analysis = BackgroundAnalysis(lambda: analyse_nothing, ignore_call, punctual=True)
    analysis.take(cell(1))
    analysis.start()
    analysis.start()
    analysis.take(cell(2))
    assert both.wait(60)
    analysis.end()
    assert seen == [(1, IDLE_NICE), (2, IDLE_NICE)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


def test_unstarted_analysis_is_skipped() -> None:
    seen: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def analyse_nothing(taken: Cell) -> tuple[()]:
        begun.set()
        assert go_on.wait(60)
        seen.append(taken.repetition)
        return ()

    analysis = BackgroundAnalysis(lambda: analyse_nothing, ignore_call, punctual=False)
    analysis.start()
    for number in (1, 2):
        analysis.take(cell(number))
    assert begun.wait(60)
    threading.Timer(0.1, go_on.set).start()
    analysis.end()
    assert seen == [1]


@pytest.mark.parametrize("where", ["begin", "each"])
def test_error_ends_the_background_analysis_only(where: str) -> None:
    met = threading.Event()

    def fail(*_: object) -> Any:
        met.set()
        raise json.JSONDecodeError("damaged", "", 0)

    analysis = BackgroundAnalysis(fail if where == "begin" else lambda: fail, ignore_call, punctual=False)
    analysis.start()
    analysis.take(cell(1))
    assert met.wait(60)
    analysis.end()


def test_unstarted_background_analysis_causes_no_wait() -> None:
    BackgroundAnalysis(None, ignore_call, punctual=True).end()
    BackgroundAnalysis(lambda: lambda cell: (), ignore_call, punctual=True).end()


MEETING = f"""
import sys, threading, time
from importlib.abc import MetaPathFinder
from pathlib import Path
from unittest.mock import Mock
from qoslab.cli.run import RunAnalysis
from qoslab.errors import UserError
from qoslab.run.cell.journal import CellJournal
from qoslab.schema import load_experiment

class Slow(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "qoslab.analysis.readings" and not half_way.is_set():
            half_way.set()
            time.sleep(0.3)

half_way = threading.Event()
analysis = RunAnalysis(load_experiment(Path({str(POLICING)!r})), (), "virtual")
journal = Mock()
journal.record.side_effect = UserError("nothing was measured")
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=analysis.begin)
thread.start()
half_way.wait()
CellJournal.conclude(journal)
journal.write.assert_called_once()
thread.join()
assert analysis.readings is not None
"""


@pytest.mark.long
def test_cell_can_end_while_the_analysis_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", MEETING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
