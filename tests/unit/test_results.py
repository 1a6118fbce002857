"""Run folder: made once, read back, never mixed up."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from qoslab.errors import UserError
from qoslab.model.comparison import PublishedValue
from qoslab.model.experiment import Experiment
from qoslab.results import (
    CaptureRecord,
    CellRecord,
    CellSummary,
    FlowRecord,
    Health,
    Manifest,
    RunFolder,
    Step,
    find_run,
    runs,
    tables,
)
from qoslab.results.records import Session
from qoslab.traffic import FlowOutput

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

HEALTH = {
    "received": 10,
    "transmitted": 10,
    "lost_input": 0,
    "malformed": 0,
    "unsent": 0,
    "lateness_ns": {"max": 900_000, "p50": 1, "p99": 2, "p999": 3, "count": 10},
    "late_over_budget": 0,
    "behind_ns": 0,
    "budget_ns": 5_000_000,
}


def experiment() -> Experiment:
    return Experiment.model_validate_json(
        json.dumps(
            {
                "name": "police",
                "title": "Policing",
                "topology": {
                    "nodes": {"client": {"platform": "host"}, "server": {"platform": "host"}},
                    "links": [
                        {
                            "name": "lan",
                            "rate": "100 Mb/s",
                            "ends": [
                                {"node": "client", "interface": "eth0", "address": "10.0.0.1/24"},
                                {"node": "server", "interface": "eth0", "address": "10.0.0.2/24"},
                            ],
                        }
                    ],
                },
                "duration": "5 s",
                "traffic": [{"name": "transfer", "tool": "iperf3", "from": "client", "to": "server"}],
                "arms": [{"name": "policed"}, {"name": "free"}],
            }
        )
    )


def manifest(**keys: object) -> Manifest:
    return Manifest.model_validate({"experiment": experiment(), "started": NOW} | keys)


def record(arm: str = "policed", repetition: int = 1) -> CellRecord:
    return CellRecord(
        arm=arm,
        repetition=repetition,
        valid=True,
        steps=(Step(name="apply", started=NOW),),
        flows=(FlowRecord(traffic="transfer", source="10.0.0.1", destination="10.0.0.2", port=5201, started=NOW),),
        captures={"server": CaptureRecord(received=5, dropped=0)},
        health={"R1": Health.model_validate(HEALTH)},
    )


def test_two_runs_in_one_second_have_different_folders(tmp_path: Path) -> None:
    made: list[RunFolder] = []
    threads = [
        threading.Thread(target=lambda: made.append(RunFolder.create(tmp_path, "police", NOW))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({run.path for run in made}) == 8
    assert {run.path.name for run in made} >= {"20260102T030405Z", "20260102T030405Z-2", "20260102T030405Z-8"}
    assert [run.path.name for run in runs(tmp_path, "police")][-1] == "20260102T030405Z-8"


def test_latest_run_is_the_newest(tmp_path: Path) -> None:
    folders = [RunFolder.create(tmp_path, "police", NOW) for _ in range(12)]
    for folder in (folders[3], folders[11], folders[0]):
        folder.publish()
    assert (tmp_path / "police" / "latest").readlink() == Path(folders[11].path.name)
    assert not list((tmp_path / "police").glob(".latest*"))


def test_files_are_written_once(tmp_path: Path) -> None:
    cell = RunFolder.create(tmp_path, "police", NOW).cell("policed")
    cell.write(cell.configuration("R1.ios"), "hostname R1\n")
    with pytest.raises(UserError, match="found an existing file"):
        cell.write(cell.configuration("R1.ios"), "hostname R2\n")
    assert cell.files().text("config/R1.ios") == "hostname R1\n"


def test_full_disk_is_reported_and_leaves_no_partial_file(tmp_path: Path) -> None:
    cell = RunFolder.create(tmp_path, "police", NOW).cell("policed")
    cell.write(cell.configuration("R1.ios"), "hostname R1\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A file size limit fails in the middle of a write, like a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(UserError, match=r"R2\.ios: cannot be written, the disk is full") as caught:
            cell.write(cell.configuration("R2.ios"), "!" * 5000)
        with pytest.raises(UserError, match="the disk is full"):
            RunFolder(tmp_path).replace("report.html", "!" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "the files written earlier stay in" in caught.value.hint
    assert [path.name for path in cell.configuration("R1.ios").parent.iterdir()] == ["R1.ios"]
    assert not list(tmp_path.glob("*report*"))


def test_records_survive_a_round_trip(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "police", NOW)
    written = manifest(
        published=(PublishedValue("policed", "goodput.sum", "b/s", 841_000.0, "iperf"),),
        cells=(
            CellSummary(arm="free", repetition=1, valid=True),
            CellSummary(arm="policed", repetition=2, valid=True),
            CellSummary(arm="policed", repetition=1, valid=False, reasons=("late",)),
        ),
    )
    run.write_manifest(written)
    for arm, repetition in (("free", 1), ("policed", 2), ("policed", 1)):
        run.cell(arm, repetition).write_record(record(arm, repetition))
    assert run.manifest() == written
    assert not run.manifest().valid
    assert [(cell.arm, cell.repetition) for cell in run.open().cells] == [("policed", 1), ("policed", 2), ("free", 1)]
    assert run.open().cells[0].record() == record()
    assert record().traffic_start == NOW


def test_times_count_from_the_planned_start_of_traffic() -> None:
    """Compute times: the first flow determines the start, although it is planned two seconds later; the other began as
    late as planned.
    """
    (first,) = record().flows
    late = {"traffic": "later", "started": NOW + timedelta(seconds=2.93), "start_after_s": 3.0}
    later = first.model_copy(update=late)
    first = first.model_copy(update={"started": NOW + timedelta(seconds=2), "start_after_s": 2.0})
    for flows in ((first, later), (later, first)):
        assert record().model_copy(update={"flows": flows}).traffic_start == NOW
    assert record().model_copy(update={"flows": ()}).traffic_start is None


@pytest.mark.parametrize(("version", "message"), [(4, "newer"), (2, "older"), ("x", "older")])
def test_other_format_version_is_refused(tmp_path: Path, version: object, message: str) -> None:
    run = RunFolder.create(tmp_path, "police", NOW)
    (run.path / "manifest.json").write_text(json.dumps({"format": version}))
    with pytest.raises(UserError, match=f"found format {version}, expected 3") as caught:
        run.manifest()
    assert message in caught.value.hint


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 3}', '{"format": 3, "experiment": 3}', "\0"])
def test_damaged_manifest_is_a_users_error(tmp_path: Path, text: str) -> None:
    run = RunFolder.create(tmp_path, "police", NOW)
    (run.path / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=r"manifest\.json"):
        run.manifest()


def test_run_is_found_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no finished run"):
        find_run(tmp_path)
    older = RunFolder.create(tmp_path, "police", NOW)
    newer = RunFolder.create(tmp_path, "shape", NOW.replace(hour=4))
    unfinished = RunFolder.create(tmp_path, "shape", NOW.replace(hour=5))
    for run in (older, newer):
        run.write_manifest(manifest())
        run.publish()
    assert find_run(tmp_path).path == newer.path
    assert find_run(tmp_path, "police").path == older.path
    assert find_run(tmp_path, str(older.path)).path == older.path
    assert find_run(tmp_path, f"shape/{newer.path.name}").path == newer.path
    newest = RunFolder.create(tmp_path, "shape", NOW.replace(hour=6))
    newest.write_manifest(manifest())
    newest.publish()
    shutil.rmtree(newest.path)
    assert find_run(tmp_path).path == find_run(tmp_path, "shape").path == newer.path, "`latest` names a deleted run"
    with pytest.raises(UserError, match=r'found "nothing", expected .*\(police, shape\)'):
        find_run(tmp_path, "nothing")
    with pytest.raises(UserError, match="expected a finished run"):
        unfinished.manifest()


@pytest.mark.parametrize(("private", "mode"), [(True, 0o700), (False, 0o755)])
def test_run_with_router_configurations_is_private(tmp_path: Path, private: bool, mode: int) -> None:
    before = os.umask(0o022)
    try:
        made = RunFolder.create(tmp_path, "police", NOW, private=private)
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.path.stat().st_mode) == mode


def test_counters_are_read_back_and_a_truncated_line_is_reported(tmp_path: Path) -> None:
    cell = RunFolder.create(tmp_path, "police", NOW).cell("policed")
    for time_ns in (1, 2):
        cell.append_counters("R1", {"ok": True, "time_ns": time_ns})
    cell.append_counters("R1", {"ok": False, "error": {}})
    assert [reply["time_ns"] for reply in cell.files().counter_replies("R1")] == [1, 2]
    assert cell.files().devices_with_counters() == ["R1"]
    # A cell has its record when all is written, so no line of one that has it may be half there.
    with cell.counters("R1").open("a") as handle:
        handle.write('{"ok": tr')
    with pytest.raises(UserError, match=r"R1\.jsonl:4: not valid JSON"):
        list(cell.files().counter_replies("R1"))


def test_tool_output_is_read_back(tmp_path: Path) -> None:
    cell = RunFolder.create(tmp_path, "police", NOW).cell("policed")
    for side, suffix, text in (("client", "json", "{}"), ("client", "err", "warning"), ("server", "json", "[]")):
        cell.write(cell.traffic("transfer", side, suffix), text)
    assert cell.files().output("transfer", "json", "client") == FlowOutput("{}", "warning")
    assert cell.files().output("transfer", "json", "server") == FlowOutput("[]")


def test_observations_of_unusual_commands_have_safe_file_names(tmp_path: Path) -> None:
    cell = RunFolder.create(tmp_path, "police", NOW).cell("policed")
    path = cell.observation("R1", "during", "show policy-map interface  FastEthernet0/1")
    assert path.name == "during.show-policy-map-interface-FastEthernet0_1"
    cell.write(path.with_name(path.name + ".json"), '{"unparsed": "no parser"}')
    assert cell.files().parsed_output("R1", "during", "show policy-map interface FastEthernet0/1") is None


def test_health_gives_reasons_for_invalid_values() -> None:
    assert Health.model_validate(HEALTH).reasons("R1") == Health.model_validate(HEALTH).lateness("R1", 30) == ()
    assert Health.model_validate(HEALTH).warnings("R1", 30) == ()
    bad = Health.model_validate(HEALTH | {"lost_input": 3, "behind_ns": 310_000_000})
    assert len(bad.lateness("R1", 30)) == 2
    assert all("R1" in reason for reason in bad.lateness("R1", 30))
    assert bad.warnings("R1", 30) == ()


def test_single_stall_is_a_warning() -> None:
    once = Health.model_validate(HEALTH | {"late_over_budget": 1, "behind_ns": 30_000_000})
    assert once.lateness("R1", 30) == ()
    assert once.warnings("R1", 30) == (
        "R1: the router process got no CPU time for 0.10% of the traffic time: "
        "1 packets of 10 left more than 5 ms late, at most 0.9 ms",
    )


class TestTables:
    def test_round_trip_keeps_columns_kinds_and_nulls(self, tmp_path: Path) -> None:
        run = RunFolder.create(tmp_path, "police", NOW)
        rows: list[dict[str, object]] = [
            {"arm": "policed", "repetition": 1, "packets": 5, "shape_active": None, "unheard_of": 1},
            {"arm": "shaped", "repetition": 1, "packets": None, "shape_active": True},
        ]
        table = tables.frame("classes", rows)
        tables.write_table(run, "classes", table)
        tables.write_table(run, "classes", table)
        back = tables.read_table(run, "classes")
        pd.testing.assert_frame_equal(back, table)
        assert list(back.columns) == tables.columns("classes")
        assert back["packets"].dtype == "Int64"
        assert pd.isna(back["shape_active"][0]) and back["shape_active"][1]

    @pytest.mark.parametrize("name", tables.SCHEMAS)
    def test_empty_table_has_its_columns(self, tmp_path: Path, name: str) -> None:
        run = RunFolder.create(tmp_path, "police", NOW)
        tables.write_table(run, name, tables.frame(name, []))
        assert list(tables.read_table(run, name).columns) == tables.columns(name)
        of_cells = name not in ("averages", "pairs")
        assert (list(tables.columns(name))[:3] == ["arm", "repetition", "cell"]) == of_cells

    def test_missing_or_damaged_table_is_a_users_error(self, tmp_path: Path) -> None:
        run = RunFolder.create(tmp_path, "police", NOW)
        with pytest.raises(UserError, match="found no such table"):
            tables.read_table(run, "flows")
        run.replace("tables/flows.parquet", b"PAR1 no")
        with pytest.raises(UserError, match="cannot be read"):
            tables.read_table(run, "flows")


def test_run_duration_counts_only_working_time() -> None:
    def time_at(minute: int) -> datetime:
        return datetime(2026, 11, 22, 10, minute, tzinfo=UTC)

    killed, resumed = Session(started=time_at(0)), Session(started=time_at(50), ended=time_at(52))
    first = Session(started=time_at(10), ended=time_at(30))
    whole = manifest(started=time_at(0), ended=time_at(52), sessions=(killed, first, resumed))
    assert whole.took_s == 22 * 60
    assert manifest(started=time_at(0), ended=time_at(52)).took_s == 52 * 60
    assert manifest(started=time_at(0), ended=None, sessions=(killed,)).took_s is None
