"""Damaged runs: any truncated, emptied, changed, removed or added file is detected and named; its cell decides
nothing.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from levels import every_nth
from qoslab.analysis import analyse
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.results import RunFolder, find_run_to_resume
from qoslab.results.changes import RouterChanges, read_changes, write_changes
from qoslab.results.sealed_files import compute_seal
from qoslab.results.tables import read_table
from qoslab.results.verify import verify
from verdicts import newest_run, status_of

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "policing-vs-shaping.yml"
CELL = "cells/policed/1"


def cut_file(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def empty_file(path: Path) -> None:
    path.write_bytes(b"")


def flip_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def remove_file(path: Path) -> None:
    path.unlink()


def add_file(path: Path) -> None:
    path.with_name(f"more-{path.name}").write_bytes(path.read_bytes())


MESSAGES: dict[Callable[[Path], None], str] = {
    cut_file: r"{}: found (\d+ lines? \()?\d+ bytes\)?, expected (\d+ lines? \()?\d+ bytes\)?",
    empty_file: r"{}: found (0 lines \()?0 bytes\)?, expected (\d+ lines? \()?\d+ bytes\)?",
    flip_byte: r"{}: found content that was changed after the run, in (\d+ lines? \()?\d+ bytes\)? \(SHA-256 ",
    remove_file: r"{} is missing, (\d+ lines? \()?\d+ bytes\)? were written",
    add_file: r"{} was not written by the run",
}


@pytest.fixture(scope="module")
def simulated_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a simulated run of two cells."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = ["run", str(EXPERIMENT), "--lab", "simulated", "--duration", "1s", "--arm=policed", "--arm=shaped"]
        status = main(words)
    assert status == status_of(newest_run(folder)) in (0, 1)
    return (folder / "runs" / "policing-vs-shaping" / "latest").resolve()


@pytest.fixture
def run(simulated_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(simulated_run, tmp_path / "runs" / "policing-vs-shaping" / simulated_run.name))


def cell_file_names(run: Path) -> list[Path]:
    return sorted(path for path in (run / CELL).rglob("*") if path.is_file())


def verify_run(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["verify", str(run)])
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    return status, output.out


def test_undamaged_run_is_reported_as_such(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, output = verify_run(run, capsys)
    assert status == 0 and output.startswith("2 cells, ") and "all checksums match" in output
    assert RunFolder(run).open().damaged == {}
    # A report, which is computed from the written files, damages nothing.
    before = {path: compute_seal(path) for path in cell_file_names(run)}
    assert main(["report", str(run)]) == status_of(run) in (0, 1)
    assert {path: compute_seal(path) for path in cell_file_names(run)} == before
    assert verify_run(run, capsys)[0] == 0


@pytest.mark.sample(2)
@pytest.mark.parametrize("damage", MESSAGES)
def test_damage_of_any_file_of_a_cell_is_reported(
    run: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    files = cell_file_names(run)
    assert len(files) > 10 and {".json", ".jsonl", ".pcapng", ".txt", ".ios"} <= {path.suffix for path in files}
    for path in files[:: every_nth(5)]:
        content = path.read_bytes()
        damage(path)
        name = path.relative_to(run / CELL).as_posix()
        reported = name if damage is not add_file else str(Path(name).with_name(f"more-{path.name}"))
        opened = RunFolder(run).open()
        (reason,) = opened.damaged["policed/1"]
        assert re.match(MESSAGES[damage].format(re.escape(reported)), reason), reason
        assert [cell.name for cell in opened.cells] == ["shaped/1"]
        path.write_bytes(content)
        path.with_name(f"more-{path.name}").unlink(missing_ok=True)
    assert verify_run(run, capsys)[0] == 0


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (cut_file, "counters/R1.jsonl"),
        (empty_file, "traffic/transfer.simulated.json"),
        (flip_byte, "captures/server.pcapng"),
        (remove_file, "cell.json"),
        (flip_byte, "cell.json"),
        (add_file, "hosts/client.simulated.json"),
    ],
)
def test_damaged_cell_is_invalid(
    run: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], name: str
) -> None:
    damage(run / CELL / name)
    assert main(["report", str(run)]) == 3
    printed = capsys.readouterr()
    assert f"policed/1: {name if damage is not add_file else 'hosts/more-client.simulated.json'}" in printed.out
    assert "Traceback" not in printed.err
    outcome = analyse(RunFolder(run))
    rows = outcome.comparison.set_index(["arm", "metric"])["measured"]
    assert rows["shaped", "goodput.sum"] > 0
    assert rows["policed"].isna().all()
    status, output = verify_run(run, capsys)
    assert status == 3 and f"{CELL}/" in output


def test_errors_name_the_line_of_files_with_lines(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / CELL / "counters" / "R1.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:1]))
    output = verify_run(run, capsys)[1]
    assert f"{CELL}/counters/R1.jsonl: found 1 line (" in output and f"expected {len(lines)} lines (" in output


@pytest.mark.sample(11)
@pytest.mark.parametrize(
    ("damage", "name"),
    [
        *itertools.product((cut_file, empty_file, flip_byte), ("manifest.json", "run.json", "experiment.yml")),
        # The content of a table does not matter, because each report computes it again.
        *((damage, "tables/metrics.parquet") for damage in (cut_file, empty_file)),
    ],
)
def test_damage_outside_the_cells_is_reported(
    run: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], name: str
) -> None:
    damage(run / name)
    status, output = verify_run(run, capsys)
    assert status == 3
    assert re.search(rf"^{re.escape(name)}: ", output, re.MULTILINE), output
    # Values are computed from the cells, and from the manifest's description of them.
    assert (main(["report", str(run)]) == 3) == (name == "manifest.json")


@pytest.mark.long
@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["metrics", "flows", "classes"])
def test_flipped_byte_of_a_table_causes_no_traceback(run: Path, name: str) -> None:
    """Flip bytes of a table, which has no seal: it is reported as unreadable, or read."""
    path = run / "tables" / f"{name}.parquet"
    content = path.read_bytes()
    unreadable = 0
    # The schema of the table is at its end.
    some, step = every_nth(3), len(content) // 60 + 1
    for place in {*range(0, len(content), some * step), *range(len(content) - 40, len(content), some)}:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x80]) + content[place + 1 :])
        damage = verify(RunFolder(run)).damage
        assert all(each.startswith(f"tables/{name}.parquet: ") for each in damage), damage
        try:
            read_table(RunFolder(run), name)
        except UserError as error:
            assert str(path) in error.message and "computes the tables again" in error.hint
            unreadable += 1
    assert unreadable >= 20 // some


def test_added_experiment_file_is_reported_and_not_used(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = RunFolder(run).experiment_text()
    (run / "experiment.9.yml").write_text("title: somebody else's\n")
    status, output = verify_run(run, capsys)
    assert status == 0 and "experiment.9.yml: the manifest does not list it" in output
    assert RunFolder(run).experiment_text() == before != ""
    (run / "manifest.json").unlink()
    assert RunFolder(run).experiment_text() == "title: somebody else's\n", "a run that goes on was given it last"


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["extra.txt", "config/R1.ios", "tables/mine.parquet", "cells/policed/more.json"])
def test_added_file_outside_the_cells_is_reported(run: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    for printed in ("transcripts/R1.txt", "restore/1/stdout"):
        (run / printed).parent.mkdir(parents=True)
        (run / printed).write_text("printed\n")
    under_way = run / "cells/policed/.2"
    under_way.mkdir()
    (under_way / "experiment.json").write_text("{")
    assert verify_run(run, capsys)[1].count("\n") == 1
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text("somebody else's\n")
    status, output = verify_run(run, capsys)
    assert status == 0 and output.startswith(f"{name}: no run has such a file") and output.count("\n") == 2


@pytest.mark.sample(3)
@pytest.mark.parametrize("damage", [cut_file, empty_file, flip_byte])
def test_damage_to_recorded_router_changes_is_reported(
    run: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    changes = {"R1": RouterChanges(arms={"policed": ("+policy-map Police",)}, left=(), why="")}
    write_changes(run / "restore" / "1", changes)
    assert read_changes(RunFolder(run)) == changes and verify_run(run, capsys)[0] == 0
    damage(run / "restore" / "1" / "changes.json")
    status, output = verify_run(run, capsys)
    assert status == 3 and "restore/1/changes.json: found " in output
    assert read_changes(RunFolder(run)) == {}


def test_removed_manifest_looks_like_an_interrupted_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "manifest.json").unlink()
    status, output = verify_run(run, capsys)
    assert status == 0 and "manifest.json is missing: the run was interrupted" in output and "2 cells" in output
    cut_file(run / CELL / "cell.json")
    status, output = verify_run(run, capsys)
    assert status == 3 and f"{CELL}/cell.json: found " in output


@pytest.mark.long
def test_resume_measures_damaged_cells_again(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_file(run / CELL / "counters" / "R1.jsonl")
    monkeypatch.chdir(run.parents[2])
    assert find_run_to_resume(Path("runs")).path.resolve() == run
    status = main(["run", "--resume", str(run)])
    assert status == status_of(run) in (0, 1)
    assert "1 of 2 cells are already complete" in capsys.readouterr().err
    (cell,) = [each for each in RunFolder(run).manifest().cells if each.arm == "policed"]
    assert cell.folder == f"{CELL}.2" and cell.valid
    assert [attempt.folder for attempt in cell.earlier] == [CELL]
    assert "counters/R1.jsonl: " in cell.earlier[0].reasons[0]
    # A file that does not count stays as it was found, damaged.
    status, output = verify_run(run, capsys)
    assert status == 3 and f"{CELL}/counters/R1.jsonl: " in output


def test_json_output_has_all_values(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remove_file(run / CELL / "experiment.json")
    capsys.readouterr()
    assert main(["verify", str(run), "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["cells"] == 2 and document["files"] > 20 and document["bytes"] > 10_000 and document["notes"] == []
    (reason,) = document["damage"]
    assert reason.startswith(f"{CELL}/experiment.json is missing")
