"""How a cell ends: whether what was counted adds up stands in its record, before anybody analyses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sample_run

from qoslab.analysis import Readings
from qoslab.results import Cell, CellRecord
from qoslab.run.cell.journal import Journal
from qoslab.run.task import CellTask


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    """One that came to its end, without its record."""
    folder = sample_run.make_run(tmp_path)
    return next(each for each in folder.cells() if each.arm == "policed")


def concluded(cell: Cell, received: int) -> CellRecord:
    """Its record, where the server says to have received so many packets; the router has counted none."""
    started, experiment = cell.record().steps, cell.experiment()
    cell.record_file.unlink()
    counts = {"sent_packets": 0, "received_packets": 0, "sent_bytes": 0, "received_bytes": 0}
    after = counts | {"received_packets": received}
    cell.write(cell.host_cards("server"), json.dumps({"before": {"eth0": counts}, "after": {"eth0": after}}))
    task = CellTask(cell.identity, experiment, {}, key="", lab="virtual")
    journal = Journal(task, cell, lambda *_: None)
    journal._steps = list(started)
    return journal.conclude()


def test_a_host_and_a_router_that_disagree_make_the_record_invalid(cell: Cell) -> None:
    record = concluded(cell, 5000)
    assert not record.valid and record.disagreeing and not record.late
    (reason,) = [each for each in record.reasons if "server" in each]
    assert "server received 5000 packets by eth0, and R1 counts 0 that FastEthernet0/1 sent" in reason
    assert cell.record() == record
    # Whoever reads it later takes the record's word.
    assert Readings([], captures=False).of(cell).problems == record.reasons


def test_where_all_count_the_same_the_record_is_valid(cell: Cell) -> None:
    record = concluded(cell, 10)
    assert (record.valid, record.disagreeing, record.reasons) == (True, False, ())


def test_counters_that_cannot_be_read_are_no_agreement(cell: Cell) -> None:
    cell.counters("R1").write_text('{"ok": true}\nnonsense\n{"ok": true}\n')
    record = concluded(cell, 10)
    assert not record.valid and record.disagreeing
