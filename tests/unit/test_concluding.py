"""The journal of a cell: what it keeps of routers' words, and whether what was counted adds up when it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sample_run

from qoslab.analysis import Readings
from qoslab.model.experiment import Observation
from qoslab.redaction import Redaction
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


PRINTED = "Building configuration...\nenable secret 5 $1$PLANTED\nsnmp-server community PLANTED RO\nhostname R1\n"
WITHOUT = "Building configuration...\nenable secret 5 <removed>\nsnmp-server community <removed>\nhostname R1\n"


def observed(cell: Cell, command: str, raw: str, data: dict[str, Any]) -> tuple[str, Any]:
    """What is kept of an answer: as it came, and as it was parsed."""
    task = CellTask(cell.identity, cell.experiment(), {}, key="", lab="external")
    Journal(task, cell, lambda *_: None).observed(Observation(node="R1", command=command), "before", raw, data)
    base = cell.observation("R1", "before", command)
    parsed = json.loads(base.with_name(base.name + ".json").read_text())
    return base.with_name(base.name + ".txt").read_text(), parsed


@pytest.mark.parametrize(
    "command",
    [
        "show running-config",
        "show startup-config",
        "show configuration",
        "show archive config differences",
        "show derived-config",
        "show tech-support",
        "more flash:before.cfg",
        "more nvram:startup-config",
    ],
)
def test_of_a_configuration_lines_are_kept_without_secrets(cell: Cell, command: str) -> None:
    # A parser that knows the command may have the secret alone, in which nothing tells what it is.
    raw, data = observed(cell, command, PRINTED, {"snmp": {"community": "PLANTED"}})
    assert raw == WITHOUT
    assert data == {"unparsed": "a configuration, of which the secrets were removed"}


def test_what_no_command_is_known_to_print_is_kept_without_secrets_too(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qoslab.run.cell.journal.KNOWN", Redaction(["zebra-crossing-47"]))
    said = "password 7 PLANTED"
    data = {"up": True, "lines": [1, None, said, {"text": "by zebra-crossing-47"}], "rate": 2.5}
    kept, parsed = observed(cell, "show something new", f"{PRINTED}by zebra-crossing-47\n", data)
    assert kept == f"{WITHOUT}by <removed>\n"
    assert parsed == {
        "up": True,
        "lines": [1, None, "password 7 <removed>", {"text": "by <removed>"}],
        "rate": 2.5,
    }


def test_what_has_no_secrets_is_kept_as_it_is(cell: Cell) -> None:
    said = " Service-policy output: Police\n\n    Class-map: class-default (match-any)\n      0 packets, 0 bytes\n"
    data = {"FastEthernet0/1": {"service_policy": {"output": {"policy_name": "Police"}}}}
    assert observed(cell, "show policy-map interface FastEthernet0/1", said, data) == (said, data)
