"""Partial runs: a run of a part of its file does not report the other parts as missing."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import sample_run

from qoslab.analysis import analyse
from qoslab.cli import main, notebook
from qoslab.errors import ExitStatus, UserError
from qoslab.model.partial_runs import left_out_test
from qoslab.overview import read_run
from qoslab.report import gate
from qoslab.report.page import build_page, published_tables
from qoslab.report.view import RunView
from qoslab.results.baselines import BASELINES, COMPARISON, Baseline, read
from qoslab.results.sealed_files import add_seal, split_seal
from qoslab.schema import load_experiment

TOP = Path(__file__).parents[2]
BEFORE = TOP / BASELINES / "policing-vs-shaping/simulated"
SWEPT = TOP / BASELINES / "tx-ring-limit/simulated"


@pytest.mark.parametrize("folder", sorted(each.parent for each in (TOP / BASELINES).glob(f"*/*/{COMPARISON}")), ids=str)
def test_each_row_has_the_cells_of_the_part(folder: Path) -> None:
    kept = read(folder)
    cells = [(cell.arm, cell.parameters) for cell in kept.manifest.cells]
    rows = [row for row in kept.rows if not row.subject]
    part = left_out_test(("--only a=b",), cells)
    assert not [row.place for row in rows if part(row)]
    assert all(part(row) for row in kept.rows if row.subject)
    for arm in {arm for arm, _ in cells}:
        part = left_out_test(("--arm a",), [cell for cell in cells if cell[0] == arm])
        assert {row.arm for row in rows if not part(row)} <= {arm}
    whole = left_out_test(("--duration 8s",), [])
    assert not any(whole(row) for row in kept.rows)


def test_parameters_select_the_cells() -> None:
    kept = read(SWEPT)
    cells = [(cell.arm, cell.parameters) for cell in kept.manifest.cells if cell.parameters["line"] == "128 kb/s"]
    part = left_out_test(("--only line=128kb/s",), cells)
    own = [row for row in kept.rows if not part(row)]
    assert own == [row for row in kept.rows if "line = 128 kb/s" in row.where] and 0 < len(own) < len(kept.rows)


def narrow_run(folder: Path, kept: Path = BEFORE) -> Path:
    """Provide a run of one arm, with the stored values."""
    shutil.copytree(kept, folder)
    manifest = json.loads(split_seal((folder / "manifest.json").read_bytes())[0])
    manifest["overrides"] = ["--arm policed"]
    manifest["cells"] = [cell for cell in manifest["cells"] if cell["arm"] == "policed"]
    (folder / "manifest.json").write_bytes(add_seal(json.dumps(manifest, indent=2).encode()))
    lines = (folder / COMPARISON).read_text().splitlines(keepends=True)
    head = lines[0].split(",").index("arm")
    own = [line for line in lines[1:] if line.split(",")[head] == "policed"]
    (folder / COMPARISON).write_text("".join([lines[0], *own]))
    return folder


def test_run_of_one_arm_is_compared_in_that_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = narrow_run(tmp_path / "runs/policing-vs-shaping/20261122T000000Z")
    own, all_rows = (len(read(each).rows) for each in (run, BEFORE))
    assert 0 < own < all_rows
    assert main(["compare", str(run)]) == ExitStatus.WITHIN
    apart = f"{all_rows - own} not compared, because only one of the two runs includes them"
    assert capsys.readouterr().out == f"{own} values, 0 different from {BEFORE}; {apart}\n"
    assert main(["compare", str(BEFORE), str(run)]) == ExitStatus.WITHIN
    assert main(["compare", str(run), "--json"]) == ExitStatus.WITHIN
    output = capsys.readouterr().out
    assert json.loads(output[output.index("{") :])["not_asked_for"] == all_rows - own
    # A requested value that is missing counts as missing nonetheless.
    lines = (run / COMPARISON).read_text().splitlines(keepends=True)
    (run / COMPARISON).write_text("".join([lines[0], *lines[2:]]))
    assert main(["compare", str(run)]) == ExitStatus.OUTSIDE
    assert ": is gone\n" in capsys.readouterr().out


def test_summaries_compare_only_the_cells_of_both_runs(tmp_path: Path) -> None:
    now, before = read_run(narrow_run(tmp_path / "a/b")), read_run(BEFORE)
    assert now.missing_values(before) == before.missing_values(now) == []
    assert read_run(BEFORE).changed_values(now) == []
    assert now.words.endswith(" within, 0 outside of --arm policed") and before.words.endswith(" 0 outside")


def test_averages_over_other_cells_are_not_compared(tmp_path: Path) -> None:
    kept = read(TOP / BASELINES / "tcp-friendly-policer-more/simulated")
    averages = [row for row in kept.rows if row.subject]
    manifest = kept.manifest.model_copy(update={"overrides": ("--only rtt=50ms",)})
    assert averages and not set(averages) & set(Baseline(manifest, kept.rows).requested_rows(kept))
    assert kept.requested_rows(kept) == kept.rows


@pytest.mark.parametrize("where", ["a", "=", " = ", "a = b = c", ", ", "a = b, "])
def test_selection_without_cells_is_accepted(where: str) -> None:
    row = read(SWEPT).rows[0]
    assert left_out_test(("--arm a",), [(row.arm, {"a": "x"})])(type(row)(**{**vars(row), "where": where}))


def test_report_has_no_rows_of_omitted_parts() -> None:
    comparison = pd.read_csv(SWEPT / COMPARISON)
    experiment = load_experiment(TOP / "experiments/tx-ring-limit.yml")
    whole = published_tables(comparison, experiment)
    assert [[name for name, _ in table.rows] for table in whole] == [["2", "5", "10"], ["1", "2", "5"]]
    where = comparison["where"]
    slow = comparison[where.str.contains("128 kb/s") & (where != "line = 128 kb/s, ring = 2")]
    (table,) = published_tables(slow, experiment)
    assert table.title == whole[1].title and table.rows == [whole[1].rows[0], whole[1].rows[2]]
    # A planned value that was not measured has its row.
    (table,) = published_tables(slow.assign(measured=math.nan), experiment)
    assert [{measured for _, measured in pairs} for _, pairs in table.rows] == [{"–/–/–"}] * 2


def test_report_and_summary_name_the_executed_part(tmp_path: Path) -> None:
    run = sample_run.make_run(tmp_path)
    manifest = run.manifest()
    run.write_manifest(manifest.model_copy(update={"overrides": ("--duration 10 s", "--arm policed", "--arm shaped")}))
    outcome = analyse(run)
    page, reported = build_page(run, outcome), "Part of the experiment: --arm policed, --arm shaped."
    assert page.when.endswith(f" of traffic in each arm. {reported}")
    summary = gate.markdown(outcome, run.manifest(), read_run(run.path), None, page.lead, "")
    assert f"\n\n{reported}\n\n" in summary
    run.write_manifest(manifest)
    outcome = analyse(run)
    assert "part" not in build_page(run, outcome).when
    assert "Of a part" not in gate.markdown(outcome, manifest, read_run(run.path), None, page.lead, "")


def test_notebook_of_a_partial_run_reports_missing_arms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = narrow_run(tmp_path / "a/b")
    notebook.warn_about_partial_run(run)
    reported = f"{run} is partial (--arm policed): the notebook shows only this part\n"
    assert capsys.readouterr().err == reported
    for whole in (BEFORE, tmp_path / "none"):
        notebook.warn_about_partial_run(whole)
    assert capsys.readouterr().err == ""


def test_omitted_arm_is_reported(tmp_path: Path) -> None:
    run = sample_run.make_run_of_one_arm(tmp_path)
    manifest = run.manifest()
    run.write_manifest(manifest.model_copy(update={"overrides": ("--arm policed",)}))
    reported = 'found arm "shaped", expected one of policed; the run covers only part of its file: --arm policed'
    with pytest.raises(UserError, match=f"^{re.escape(reported)}$"):
        RunView(run).configuration("shaped", "R1")
