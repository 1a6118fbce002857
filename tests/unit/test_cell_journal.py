"""Journal of a cell: stored output of routers, and the packet balance at its end."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sample_run

from qoslab.analysis import Readings
from qoslab.analysis.counter_files import add_counters, ns, stale_counter_messages
from qoslab.model.experiment import Observation
from qoslab.model.steps import TRAFFIC
from qoslab.results import Cell, CellRecord, PollingRecord, Step
from qoslab.results.redaction import Redaction
from qoslab.run.cell.journal import CellJournal
from qoslab.run.task import CellTask


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    """Provide a finished cell without its record."""
    folder = sample_run.make_run(tmp_path)
    return next(each for each in sample_run.cells_of(folder) if each.arm == "policed")


def conclude_cell(cell: Cell, received: int) -> CellRecord:
    """Return its record if the server reports so many received packets; the router has counted none."""
    before, experiment = cell.files().record(), cell.files().experiment()
    cell.record_file.unlink()
    counts = {"sent_packets": 0, "received_packets": 0, "sent_bytes": 0, "received_bytes": 0}
    after = counts | {"received_packets": received}
    cell.write(cell.host_cards("server"), json.dumps({"before": {"eth0": counts}, "after": {"eth0": after}}))
    task = CellTask(cell.identity, experiment, {}, key="", lab="virtual")
    journal = CellJournal(task, cell, lambda *_: None)
    journal._steps, journal.findings.flows = list(before.steps), before.flows
    return journal.conclude()


def test_record_is_invalid_if_host_and_router_disagree(cell: Cell) -> None:
    record = conclude_cell(cell, 5000)
    assert not record.valid and record.disagreeing and not record.late
    (reason,) = [each for each in record.reasons if "server" in each]
    assert "server received 5000 packets on eth0, but R1 counts 0 packets that FastEthernet0/1 sent" in reason
    assert cell.files().record() == record
    # Later readers trust the record.
    assert Readings([], captures=False).cell_content(cell.files()).problems == record.reasons


def test_record_with_equal_counts_is_valid(cell: Cell) -> None:
    record = conclude_cell(cell, 10)
    assert (record.valid, record.disagreeing, record.reasons) == (True, False, ())


def test_unreadable_counters_do_not_count_as_agreement(cell: Cell) -> None:
    cell.counters("R1").write_text('{"ok": true}\nnonsense\n{"ok": true}\n')
    record = conclude_cell(cell, 10)
    assert not record.valid and record.disagreeing


def end_after(cell: Cell, seconds: float) -> None:
    """The step of the traffic ends so long after the start of its flow, whose time is 4 s."""
    record = cell.files().record()
    assert record.traffic_start is not None
    cell.record_file.unlink()
    ended = record.traffic_start + timedelta(seconds=seconds)
    steps = [step for step in record.steps if step.name != TRAFFIC]
    traffic = Step(name=TRAFFIC, started=record.traffic_start, ended=ended)
    cell.write_record(record.model_copy(update={"steps": (*steps, traffic)}))


def early_reading(cell: Cell) -> list[str]:
    record, experiment = cell.files().record(), cell.files().experiment()
    _, last = add_counters(cell.files(), record, experiment, lambda name, row: None)
    return list(stale_counter_messages(last, record, experiment))


def test_counters_that_lack_the_end_of_the_traffic_make_the_record_invalid(cell: Cell) -> None:
    replies = cell.counters("R1").read_text().splitlines()
    origin = cell.files().record().traffic_start
    assert origin is not None
    times = [(json.loads(each)["time_ns"] - ns(origin)) / 1e9 for each in replies]
    assert times[-1] > 4
    end_after(cell, 5.0)
    assert early_reading(cell) == []
    kept = [each for each, time_s in zip(replies, times, strict=True) if time_s <= 2.5]
    cell.counters("R1").write_text("\n".join(kept) + "\n")
    last = max(time_s for time_s in times if time_s <= 2.5)
    reported = (
        f"the last counters of R1 were taken {4 - last:.1f} s before the end of the traffic, expected at most 1 s"
    )
    assert early_reading(cell) == [reported]
    # It ended early.
    end_after(cell, last + 0.9)
    assert early_reading(cell) == []
    end_after(cell, 5.0)
    record = conclude_cell(cell, 10)
    assert not record.valid and record.disagreeing and record.reasons == (reported,)


@pytest.mark.parametrize(("every_s", "most"), [(0.0, 1.0), (2.0, 2.0)])
def test_show_readings_without_the_end_of_traffic_make_the_record_invalid(
    cell: Cell, every_s: float, most: float
) -> None:
    cell.counters("R1").unlink()
    end_after(cell, 5.0)
    record = cell.files().record()
    polling = PollingRecord(every_s=every_s, commands=(), readings=2, took_mean_s=0.1, took_max_s=0.1)
    cell.record_file.unlink()
    cell.write_record(record.model_copy(update={"polling": {"R1": polling}}))

    def read(**times_s: float) -> list[str]:
        commands = {"classes": "show policy-map interface", "wan": "show interfaces FastEthernet0/1", "load": "show x"}
        origin = ns(record.traffic_start)  # type: ignore[arg-type]
        kept: list[dict[str, Any]] = []
        for name, last_s in times_s.items():
            for time_s in (-1.0, last_s):
                at = origin + round(time_s * 1e9)
                kept.append({"command": commands[name], "before_ns": at, "after_ns": at, "raw": "", "parsed": {}})
        cell.readings("R1").unlink(missing_ok=True)
        cell.write_readings("R1", kept)
        return early_reading(cell)

    assert read(classes=4.1, wan=4.2, load=0.0) == []
    assert read(classes=4.1, wan=4.01 - most) == []
    (output,) = read(classes=4.1, wan=3.9 - most)
    assert output.endswith(f"taken {most + 0.1:.1f} s before the end of the traffic, expected at most {most:g} s")


PRINTED = "Building configuration...\nenable secret 5 $1$PLANTED\nsnmp-server community PLANTED RO\nhostname R1\n"
WITHOUT = "Building configuration...\nenable secret 5 <removed>\nsnmp-server community <removed>\nhostname R1\n"


def observed(cell: Cell, command: str, raw: str, data: dict[str, Any]) -> tuple[str, Any]:
    """Return the recorded answer, raw and parsed."""
    task = CellTask(cell.identity, cell.files().experiment(), {}, key="", lab="external")
    CellJournal(task, cell, lambda *_: None).save_observation(
        Observation(node="R1", command=command), "before", raw, data
    )
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
def test_saved_configuration_lines_have_no_secrets(cell: Cell, command: str) -> None:
    # A parser that knows the command may return only the secret, without a word that identifies it.
    raw, data = observed(cell, command, PRINTED, {"snmp": {"community": "PLANTED"}})
    assert raw == WITHOUT
    assert data == {"unparsed": "a configuration, with its secrets removed"}


def test_unparsed_output_has_no_secrets(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qoslab.run.cell.journal.KNOWN", Redaction(["zebra-crossing-47"]))
    text = "password 7 PLANTED"
    data = {"up": True, "lines": [1, None, text, {"text": "by zebra-crossing-47"}], "rate": 2.5}
    kept, parsed = observed(cell, "show something new", f"{PRINTED}by zebra-crossing-47\n", data)
    assert kept == f"{WITHOUT}by <removed>\n"
    assert parsed == {
        "up": True,
        "lines": [1, None, "password 7 <removed>", {"text": "by <removed>"}],
        "rate": 2.5,
    }


def test_output_without_secrets_is_unchanged(cell: Cell) -> None:
    text = " Service-policy output: Police\n\n    Class-map: class-default (match-any)\n      0 packets, 0 bytes\n"
    data = {"FastEthernet0/1": {"service_policy": {"output": {"policy_name": "Police"}}}}
    assert observed(cell, "show policy-map interface FastEthernet0/1", text, data) == (text, data)
