"""Foreign run folders, damaged or malicious: they show none of the reader's files and never cause an internal error."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sample_run
from analysis_tables import columns, reported_flows
from rich.console import Console

from hostile_runs import BEGIN, CELL, LINES, RUNS, change_manifest
from levels import long_cases
from processor import time_limit_s
from qoslab.analysis.steady import steps
from qoslab.analysis.timeline import STEPS_MOST
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.live.openmetrics import metrics_exposition
from qoslab.live.page import page_content
from qoslab.live.screen import render_screen
from qoslab.live.watched_run import WatchedRun
from qoslab.results import Cell, RunFolder, sealed_files, tables
from qoslab.results.progress import PROGRESS
from qoslab.results.records import RunOptions
from qoslab.results.sealed_files import add_seal
from qoslab.schema import CellIdentity

ASKED = RunOptions(file="e.yml")
INTERFACE, ENHANCED_PACKET = 1, 6
"""Kinds of pcapng blocks."""
SECRET = "a secret of the reader"
SECONDS = 4.0
"""Duration of a cell."""
DAMAGE = {
    "empty": "",
    "cut": '{"a": ',
    "list": "[]",
    "nothing": "null",
    "object": "{}",
    "text": '"x"',
    "deep": "[" * 20000,
}


@pytest.fixture(autouse=True)
def watch_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `watch` read again without waiting, and at this process's priority."""
    monkeypatch.setattr("qoslab.cli.watch.REFRESH_INTERVAL_S", 0)
    monkeypatch.setattr("qoslab.live.watched_run.SILENT_S", 0)
    monkeypatch.setattr("qoslab.cli.watch.step_last", lambda: None)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_run.make_run_of_one_arm(tmp_path_factory.mktemp("whole")).path


@pytest.fixture(scope="module")
def two_arms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_run.make_run(tmp_path_factory.mktemp("two-arms")).path


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    """Provide a copy of a finished run of one cell, and a secret outside it."""
    (tmp_path / "secret").write_text(SECRET)
    return Path(shutil.copytree(finished_run, tmp_path / "received" / finished_run.name))


def first_cell(run: Path) -> Path:
    return sorted(run.glob("cells/**/cell.json"))[0]


def test_undamaged_run_is_reported(run: Path) -> None:
    assert main(["report", str(run)]) == 1, "one figure of the sample is outside its tolerance"
    text = (run / "report.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "script-src 'sha256-" in policy[1] and "base-uri 'none'; form-action 'none'" in policy[1]
    links = re.findall(r'href="([^"]*)"', text.partition("<script")[0])
    assert links and all(link.startswith(("#", "./cells/")) for link in links)


@pytest.mark.parametrize("place", ["experiment.yml", "config", "cell", "pipe"])
def test_links_out_of_a_run_are_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    cell = first_cell(run).parent
    match place:
        case "experiment.yml":
            (run / "experiment.yml").unlink(missing_ok=True)
            (run / "experiment.yml").symlink_to(tmp_path / "secret")
        case "config":
            (cell / "config").mkdir(exist_ok=True)
            (cell / "config" / "R1.before.ios").unlink(missing_ok=True)
            (cell / "config" / "R1.before.ios").symlink_to(tmp_path / "secret")
        case "cell":
            shutil.move(cell, tmp_path / "moved")
            cell.symlink_to(tmp_path / "moved")
        case _:
            os.mkfifo(cell / "pipe")
    assert main(["report", str(run)]) == 2
    assert re.search("found (a symbolic link|neither a file nor a folder)", capsys.readouterr().err)
    assert not (run / "report.html").exists() or SECRET not in (run / "report.html").read_text()


@pytest.mark.parametrize("folder", ["javascript:alert(0);x=/cell", "/etc", "../..", "cells/../..", "//example.com/x"])
def test_cell_path_must_be_below_cells(run: Path, capsys: pytest.CaptureFixture[str], folder: str) -> None:
    def change(manifest: Any) -> None:
        manifest["cells"][0]["folder"] = folder

    sample_run.change_json(run / "manifest.json", change)
    assert main(["report", str(run)]) == 2
    assert "expected a folder below cells/" in capsys.readouterr().err


def write_events(run: Path, *lines: str) -> None:
    """Return the events of a run after its first lines and before its last."""
    with RunFolder(run).lock_run(ASKED):
        pass
    first = [json.dumps(BEGIN), json.dumps({"event": "cell", "name": "policed/1", "folder": CELL})]
    last = json.dumps({"event": "end", "how": "interrupted"})
    (run / PROGRESS).write_text("".join(f"{line}\n" for line in (*first, *lines, last)))


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", LINES)
def test_text_of_a_hostile_run_is_escaped_or_omitted(run: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    line, status, text = LINES[name]
    write_events(run, line)
    for words in (["watch", str(run)], ["watch", str(run), "--json"]):
        assert main(words) == status
        output = capsys.readouterr()
        assert "Traceback" not in output.err and "\x1b" not in output.out + output.err
    assert re.search(text, output.out + output.err)
    if status != 2:
        watched = WatchedRun(RunFolder(run))
        watched.read_new_data()
        shown = io.StringIO()
        console = Console(file=shown, force_terminal=False, width=200)
        console.print(render_screen(watched, console))
        assert "interrupted" in shown.getvalue() and "\x1b" not in shown.getvalue()
        json.dumps(page_content(watched), allow_nan=False)
        assert metrics_exposition(watched)


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "value", ["1e999", "-1e999", "NaN", "9" * 4300, "9" * 300, '"x"', "[]", "{}"], ids=lambda value: value[:6]
)
@pytest.mark.parametrize("key", ["time_ns", "depth_packets", "bytes", "depth", "rate_bps", "drops"])
def test_hostile_counters_are_watched(run: Path, key: str, value: str) -> None:
    write_events(run)
    file = run / CELL / "counters/R1.jsonl"
    file.write_text(re.sub(rf'"{key}":[^,{{}}]*', lambda _: f'"{key}":{value}', file.read_text()))
    watched = WatchedRun(RunFolder(run))
    watched.read_new_data()
    json.dumps(page_content(watched), allow_nan=False)
    assert metrics_exposition(watched)
    console = Console(file=io.StringIO(), width=200)
    console.print(render_screen(watched, console))


@pytest.mark.sample(3)
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_counters_are_reported_with_their_line(tmp_path: Path, damage: str) -> None:
    cell = Cell(tmp_path, CellIdentity("a", (), 1))
    (tmp_path / "counters").mkdir()
    (tmp_path / "counters" / "R1.jsonl").write_text(DAMAGE[damage] + "\n")
    if damage == "object":
        assert list(cell.files().counter_replies("R1")) == []
    else:
        with pytest.raises(UserError, match=r"R1\.jsonl:1: "):
            list(cell.files().counter_replies("R1"))


def shift_timestamps(capture: Path, packets: int, seconds: float) -> None:
    """Delay the last packets of a capture by a number of seconds."""
    content = bytearray(capture.read_bytes())
    order = "<" if content[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    places, at, resolution = [], 0, 10**6
    while at < len(content):
        kind, length = struct.unpack_from(order + "II", content, at)
        if kind == ENHANCED_PACKET:
            places.append(at + 12)
        elif kind == INTERFACE and b"\x09\x00\x01\x00\x09" in content[at : at + length]:
            resolution = 10**9
        at += length
    for place in places[-packets:]:
        high, low = struct.unpack_from(order + "II", content, place)
        stamp = ((high << 32) | low) + int(seconds * resolution)
        struct.pack_into(order + "II", content, place, stamp >> 32, stamp & 0xFFFFFFFF)
    capture.write_bytes(content)


@pytest.mark.parametrize("years", [10, *long_cases(-10)])
def test_packet_of_another_year_does_not_use_memory(
    run: Path, capsys: pytest.CaptureFixture[str], small_machine: None, years: int
) -> None:
    shift_timestamps(first_cell(run).parent / "captures" / "server.pcapng", 3, years * 365 * 86400.0)
    sample_run.reseal(run)
    assert main(["report", str(run)]) == 3
    output = capsys.readouterr()
    reason = r"policed/1: capture server: 3 packets are stamped -?3\.15\d*e\+08 to .* expected -600 to 604 s"
    assert re.search(reason, output.out)
    table = tables.read_table(RunFolder(run), "packets_io")
    assert table["time_s"].min() >= 0 and table["time_s"].max() < 10


@pytest.mark.parametrize(
    ("duration", "seconds", "message"),
    [
        ("99999999 s", 9e7, r"experiment\.json: duration: found 99999999 s, expected at most 31622400 s"),
        ("31622400 s", 3e7, r"iperf3 server, .*the test ended after 4\.2 s, expected 31622400 s"),
    ],
    ids=["three years", "a year"],
)
def test_packet_within_an_experiment_of_years_does_not_use_memory(
    run: Path, capsys: pytest.CaptureFixture[str], small_machine: None, duration: str, seconds: float, message: str
) -> None:
    change_manifest(f"{CELL}/experiment.json", lambda experiment: experiment.update(duration=duration))(run)
    shift_timestamps(run / CELL / "captures" / "server.pcapng", 3, seconds)
    sample_run.reseal(run)
    with time_limit_s(SECONDS):
        assert main(["report", str(run)]) == 3
    output = capsys.readouterr().out
    assert re.search(f"policed/1: {message}", output), output
    assert (run / "report.html").stat().st_size < 40_000_000


def test_interval_of_another_year_does_not_use_memory(
    run: Path, capsys: pytest.CaptureFixture[str], small_machine: None
) -> None:
    def change(text: Any) -> None:
        for stream in text["intervals"][-1]["streams"]:
            stream["end"] = 3e11

    file = next(first_cell(run).parent.glob("traffic/*.server.json"))
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    sample_run.reseal(run)
    assert main(["report", str(run)]) == 3
    assert "4 intervals lie outside the cell's time, expected -600 to 604 s" in capsys.readouterr().out


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("cell.json", 5 * 2**30, r"cell\.json: found 5368709120 bytes, expected \d+ lines \(\d+ bytes\)"),
        ("experiment.json", 5 * 2**30, r"experiment\.json: found 5368709120 bytes, expected \d+ lines \(\d+ bytes\)"),
        ("captures/server.pcapng", 5 * 2**30, r"captures/server\.pcapng: found 5368709120 bytes, expected \d+ bytes"),
        (
            "counters/R1.jsonl",
            5 * 2**30,
            r"counters/R1\.jsonl: found 5368709120 bytes, expected \d+ lines \(\d+ bytes\)",
        ),
    ],
)
def test_endless_files_are_not_read(
    run: Path, capsys: pytest.CaptureFixture[str], small_machine: None, name: str, size: int, message: str
) -> None:
    os.truncate(first_cell(run).parent / name, size)  # larger, with a hole
    assert main(["report", str(run)]) == 3
    assert re.search(f"policed/1: {message}", capsys.readouterr().out)


def test_oversized_file_of_changes_is_ignored(run: Path, small_machine: None) -> None:
    file = run / "restore" / "1" / "changes.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    os.truncate(file, 5 * 2**30)
    assert main(["report", str(run)]) == 1, "one figure of the sample is outside its tolerance"


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "name",
    [
        *("the record of another cell", "a cell of no kind of lab", "traffic that nobody recorded"),
        *("an experiment of another arm", "an experiment of three years", "an experiment that is deep"),
    ],
)
@pytest.mark.parametrize("cells", [1, 2], ids=["one", "all"])
def test_invalid_record_invalidates_its_cell(two_arms: Path, tmp_path: Path, name: str, cells: int) -> None:
    run = Path(shutil.copytree(two_arms, tmp_path / "received" / two_arms.name))
    RUNS[name][0](run)
    if cells == 2:
        (run / "cells/shaped/1/experiment.json").write_text("{}")
    sample_run.reseal(run)
    assert main(["report", str(run)]) == 3
    rows = json.loads((run / "comparison.json").read_text())
    measured = {(row["arm"], row["metric"]): row["measured"] for row in rows}
    assert (measured["shaped", "goodput.sum"] is None) == (cells == 2)
    assert all(value is None for (arm, _), value in measured.items() if arm == "policed")
    assert "policed/1" in (run / "report.html").read_text()
    assert main(["export", str(run), "--format", "flent", "--to", str(run.parent / "flent")]) == (
        0 if cells == 1 else 2
    )


def test_zero_length_intervals_take_no_memory(small_machine: None) -> None:
    starts = [0.0, *([1.0] * 40), 600.0]
    table = pd.DataFrame({"traffic": "x", "stream": 1, "start_s": starts, "end_s": starts, "offset_s": 0.0})
    table = table.assign(bytes=1000)
    assert len(steps(columns(reported_flows(table)), columns(table))[0]) == 0
    short = table.assign(end_s=table["start_s"] + 1e-8)
    bits, seconds = steps(columns(reported_flows(short)), columns(short))
    assert len(bits) <= STEPS_MOST and seconds.sum() == pytest.approx(600)


def test_endless_records_are_not_read(run: Path, capsys: pytest.CaptureFixture[str], small_machine: None) -> None:
    os.truncate(run / "manifest.json", 5 * 2**30)
    assert main(["report", str(run)]) == 2
    assert "manifest.json: found 5368709120 bytes, expected at most 536870912" in capsys.readouterr().err


def test_folders_beyond_the_longest_path_are_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path.cwd()
    try:
        os.chdir(run)
        for _ in range(20):
            os.mkdir("d" * 250)  # noqa: PTH102 (no longer path can be given)
            os.chdir("d" * 250)
        os.chdir(before)
        for command in ("report", "verify", "watch", "compare"):
            assert main([command, str(run)]) == 2
            assert "the path is too long, expected at most 3000 bytes" in capsys.readouterr().err
    finally:
        os.chdir(before)
        shutil.rmtree(run)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "entry",
    [
        {"@id": "a%00b", "sha256": "0" * 64, "contentSize": 1},
        {"@id": "a", "sha256": "0" * 64, "contentSize": float("inf")},
        {"@id": "x" * 5000, "sha256": "0" * 64, "contentSize": 1},
        {"@id": "a\nqoslab: all checksums match", "sha256": "0" * 64, "contentSize": 1},
    ],
)
def test_hostile_list_of_an_ro_crate_counts_as_damage(
    run: Path, capsys: pytest.CaptureFixture[str], entry: dict[str, Any]
) -> None:
    (run / "ro-crate-metadata.json").write_text(json.dumps({"@graph": [entry]}))
    assert main(["verify", str(run)]) == 3
    assert "DAMAGED" in (output := capsys.readouterr().out)
    assert not [line for line in output.splitlines() if line.startswith("qoslab: all is")]


def test_records_of_too_many_values_are_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "manifest.json").write_bytes(add_seal(b'{\n  "format": 1, "cells": [' + b"[]," * 5_000_000 + b"[]]}"))
    with time_limit_s(1 << 30):
        for command in ("report", "verify"):
            assert main([command, str(run)]) in (2, 3)
            captured = capsys.readouterr()
            assert "commas and brackets, expected at most 8000000" in captured.out + captured.err


def test_list_omits_a_comparison_with_too_many_values(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "comparison.json").write_bytes(b"[" + b"[]," * 5_000_000 + b"[]]")
    kept = run.parent.parent / "there/runs/e"
    kept.parent.mkdir(parents=True)
    run.parent.rename(kept)
    monkeypatch.chdir(kept.parent.parent)
    with time_limit_s(1 << 30):
        assert main(["list", "runs"]) == 0
    assert f"runs/e/{run.name}  unfinished" in capsys.readouterr().out


def test_endless_progress_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "run.json").write_bytes(add_seal(sealed_files.record_json(ASKED)))
    with (run / PROGRESS).open("ab") as file:
        file.truncate(64 * 2**20 + 1)
    assert main(["watch", str(run)]) == 2
    assert f"found {64 * 2**20 + 1} bytes, expected at most {64 * 2**20}" in capsys.readouterr().err
