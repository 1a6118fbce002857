"""Saved baselines, differences of another run, and the document that is written from them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from qoslab.cli import baseline as command
from qoslab.cli import compare, main
from qoslab.errors import ExitStatus
from qoslab.generate import RESULTS
from qoslab.generate.outdated import find_outdated
from qoslab.generate.results_page import results_document
from qoslab.model.run_values import RunValue
from qoslab.results.baselines import (
    AVERAGES,
    BASELINES,
    COMPARISON,
    changes,
    read,
    read_comparison_rows,
    reduce_manifest,
)
from qoslab.results.sealed_files import add_seal

TOP = Path(__file__).parents[2]
KEPT = TOP / BASELINES / "policing-vs-shaping/simulated"
ROW = RunValue("a", "goodput.sum", "", "b/s", 1e6, None, None, 9e5, "", "within", 1e6, "as predicted")


def test_unchanged_experiment_has_no_changes() -> None:
    repeated = replace(ROW, arm="b", measured=1.2e6, low=0.9e6, high=1.5e6)
    then = [ROW, replace(ROW, arm="b", low=0.8e6, high=1.1e6), replace(ROW, arm="c", measured=None)]
    now = [replace(ROW, measured=1.04e6), repeated, replace(ROW, arm="c", measured=None)]
    assert list(changes(now, then, 0.05)) == []


def test_every_change_is_reported() -> None:
    then = [ROW, replace(ROW, arm="b"), replace(ROW, arm="c"), replace(ROW, arm="d", where="rtt = 50 ms")]
    now = [
        replace(ROW, measured=1.06e6),
        replace(ROW, arm="b", verdict="outside"),
        replace(ROW, arm="c", measured=None),
        replace(ROW, arm="e"),
    ]
    assert list(changes(now, then, 0.05)) == [
        "a goodput.sum: 1.06e+06 b/s, was 1e+06 b/s",
        "b goodput.sum: outside, was within (1e+06 b/s, was 1e+06 b/s)",
        "c goodput.sum: not measured, was 1e+06 b/s",
        "e goodput.sum: new row, within",
        "d (rtt = 50 ms) goodput.sum: is gone",
    ]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a run like the baseline, in a folder without others."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(KEPT, tmp_path / "runs/policing-vs-shaping/20261122T000000Z"))


def test_run_is_compared_with_the_saved_baseline(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = len(read_comparison_rows(KEPT / COMPARISON))
    assert main(["compare", str(run)]) == ExitStatus.WITHIN
    assert capsys.readouterr().out == f"{rows} values, 0 different from {KEPT}\n"
    comparison = run / COMPARISON
    was, now = (f",31250.0,31250.0,{','.join([found] * 3)}," for found in ("31250.0", "62500.0"))
    comparison.write_text(comparison.read_text().replace(was, now))
    assert main(["compare", str(run), "--difference", "1 %"]) == ExitStatus.OUTSIDE
    text = "policed police.bc: 62500 B, was 31250 B\n"
    assert capsys.readouterr().out == f"{text}{rows} values, 1 different from {KEPT}\n"


def test_invalid_baseline_is_reported(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(run), "nowhere"]) == ExitStatus.USER_MISTAKE
    assert 'found "nowhere", expected the folder of a finished run' in capsys.readouterr().err
    other = TOP / BASELINES / "wfq-precedence/simulated"
    assert main(["compare", str(run), str(other)]) == ExitStatus.USER_MISTAKE
    assert "found a baseline of wfq-precedence, expected one of policing-vs-shaping" in capsys.readouterr().err
    assert main(["compare", str(run), "--difference", "5"]) == ExitStatus.USER_MISTAKE
    assert "--difference" in capsys.readouterr().err
    (run / COMPARISON).write_text("not, what\nit, was\n")
    assert main(["compare", str(run)]) == ExitStatus.USER_MISTAKE
    assert f"{COMPARISON}: found no table of a run's results" in capsys.readouterr().err


@pytest.mark.parametrize("wheel", [False, True])
def test_run_is_compared_with_the_baseline_of_its_project(
    wheel: bool, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if wheel:
        monkeypatch.setattr(compare, "find_checkout", lambda: None)
    kept = Path("reports/saved/simulated")
    kept.mkdir(parents=True)
    for name in (COMPARISON, "manifest.json"):
        shutil.copy(TOP / BASELINES / "wfq-precedence/simulated" / name, kept)
    # The saved baseline belongs to another experiment: a checkout has one of this experiment, a wheel none.
    assert main(["compare", str(run)]) == (ExitStatus.USER_MISTAKE if wheel else ExitStatus.WITHIN)
    for name in (COMPARISON, "manifest.json"):
        shutil.copy(run / name, kept)
    capsys.readouterr()
    assert main(["compare", str(run)]) == ExitStatus.WITHIN
    assert capsys.readouterr().out.endswith(f" values, 0 different from {kept}\n")


def test_hint_without_a_baseline_can_be_followed(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (run.parent / "latest").symlink_to(run.name)
    monkeypatch.setattr(compare, "find_checkout", lambda: None)
    assert main(["compare", str(run)]) == ExitStatus.USER_MISTAKE
    output = capsys.readouterr().err
    assert "found no baseline of policing-vs-shaping in the lab simulated, expected one in reports/saved/" in output
    assert "qoslab baseline" not in output
    reported = re.search(r"or save this one: (.*)", output)
    assert reported is not None
    subprocess.run(["bash", "-c", reported.group(1)], check=True)
    assert main(["compare", str(run)]) == ExitStatus.WITHIN


def test_baseline_can_be_given_by_experiment_name(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run.parent / "latest").symlink_to(run.name)
    assert main(["compare", str(run), "policing-vs-shaping"]) == ExitStatus.WITHIN
    assert " values, 0 different from " in capsys.readouterr().out


def test_baseline_command_saves_an_experiment_of_the_checkout(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/policing-vs-shaping.yml").touch()
    shutil.copytree(SWEPT, tmp_path / BASELINES / "tcp-friendly-policer/simulated")
    virtual = shutil.copytree(KEPT.parent / "virtual", tmp_path / BASELINES / "policing-vs-shaping/virtual")
    monkeypatch.setattr(compare, "find_checkout", lambda: tmp_path)
    assert main(["compare", str(run)]) == ExitStatus.USER_MISTAKE
    output = capsys.readouterr().err
    assert f"or one of another lab: {virtual}\n" in output and "`qoslab baseline` saves a run as the baseline" in output


def test_run_of_another_file_is_not_saved(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_checkout", lambda: tmp_path)
    assert main(["baseline", str(run)]) == ExitStatus.USER_MISTAKE
    assert "found a run of policing-vs-shaping, not an experiment in experiments/" in capsys.readouterr().err
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/policing-vs-shaping.yml").write_text("name: policing-vs-shaping\n")
    (run / "experiment.yml").write_text("name: policing-vs-shaping # was\n")
    assert main(["baseline", str(run)]) == ExitStatus.USER_MISTAKE
    assert "found a run of another version of policing-vs-shaping.yml" in capsys.readouterr().err
    assert not (tmp_path / BASELINES).exists()


def test_run_is_saved_and_the_page_is_written(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(TOP / "experiments", tmp_path / "experiments")
    shutil.copytree(TOP / "reports/published", tmp_path / "reports/published")
    shutil.copyfile(TOP / "experiments/policing-vs-shaping.yml", run / "experiment.yml")
    (tmp_path / "docs/reference").mkdir(parents=True)
    mark = "before\n<!-- baseline: policing-vs-shaping -->\nwhat was there\n<!-- end of baseline -->\nafter\n"
    (tmp_path / RESULTS).write_text(mark)
    monkeypatch.setattr(command, "find_checkout", lambda: tmp_path)
    assert main(["baseline", str(run)]) == ExitStatus.WITHIN
    kept = f"{BASELINES}/policing-vs-shaping/simulated"
    assert capsys.readouterr().out == f"{kept} written\n{RESULTS} written\n"
    assert (tmp_path / kept / COMPARISON).read_bytes() == (KEPT / COMPARISON).read_bytes()
    text = (tmp_path / RESULTS).read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "what was there" not in text
    assert "\n| metric | predicted | published | simulated |\n|---|---|---|---|\n" in text
    assert "| policed: `police.bc` | 31250 B | 31250 B | 31250 B |\n" in text
    assert "\nNot reproduced (policed: `police.conformed_packets @ conformed_bytes 1992832 B`): " in text


SWEPT = TOP / BASELINES / "tcp-friendly-policer/simulated"


@pytest.mark.long
def test_results_page_counts_averages() -> None:
    text = results_document("<!-- baseline: tcp-friendly-policer -->\n<!-- end of baseline -->\n", TOP)
    judged = [row for row in read(SWEPT).rows if row.verdict != "informative"]
    least = "mean of police.bucket.late / least bucket of size"
    assert {row.subject for row in judged if row.subject} == {"mean of goodput.of_pir", least}
    assert re.search(rf"of {len(judged)} expectations within\n", text)
    assert "\n| grid (sender = client): Target for the dynamic bucket (`mean of goodput.of_pir`) | at least 92" in text


def test_saved_averages_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    averages = [row for row in read(SWEPT).rows if row.subject]
    assert len(averages) > 3 and all(row.lowest for row in averages)
    monkeypatch.chdir(tmp_path)
    run = Path(shutil.copytree(SWEPT, tmp_path / "runs/tcp-friendly-policer/20261122T000000Z"))
    assert main(["compare", str(run)]) == ExitStatus.WITHIN
    content = (run / AVERAGES).read_text()
    (run / AVERAGES).write_text(content.replace(",within", ",outside"))
    capsys.readouterr()
    assert main(["compare", str(run)]) == ExitStatus.OUTSIDE
    output = capsys.readouterr().out
    assert output.startswith("grid (sender = client) Target for the dynamic bucket: outside, was within (")


@pytest.mark.long
def test_results_page_lists_wins_of_each_value() -> None:
    text = results_document("<!-- baseline: tcp-friendly-policer-more -->\n<!-- end of baseline -->\n", TOP)
    score = read(TOP / BASELINES / "tcp-friendly-policer-more/simulated").scores[0]
    counts = f"{score.won}, {score.equal}, {score.lost}"
    assert f"\n| {score.title} | `{score.metric}` | {counts} |" in text


@pytest.mark.long
def test_one_command_measures_and_saves_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TOP / "project", tmp_path, dirs_exist_ok=True)
    file = tmp_path / "experiments/first-policy.yml"
    file.write_text(file.read_text().replace("duration: 10 s", "duration: 1 s"))
    (tmp_path / "docs/reference").mkdir(parents=True)
    (tmp_path / RESULTS).write_text("<!-- baseline: first-policy -->\n<!-- end of baseline -->\n")
    monkeypatch.setattr(command, "find_checkout", lambda: tmp_path)
    words = ["baseline", "--measure", "--lab", "simulated", "--repetitions", "2", "first-policy", "nobody"]
    assert main(words) == ExitStatus.RUN_INVALID
    output = capsys.readouterr()
    assert f"{BASELINES}/first-policy/simulated written\n{RESULTS} written\n" in output.out
    assert output.out.endswith("Not saved: nobody\n") and "nobody" in output.err
    assert "4 cells, 2 repetitions each (medians, 95 % intervals)" in (tmp_path / RESULTS).read_text()
    assert main(["baseline", "--repetitions", "2"]) == ExitStatus.USER_MISTAKE
    assert "without --measure" in capsys.readouterr().err
    # Each record says that its cell is valid; the files contradict it.
    (tmp_path / "runs/first-policy/latest").resolve().joinpath("cells/policed/1/counters/R1.jsonl").unlink()
    assert main(["baseline", "first-policy"]) == ExitStatus.USER_MISTAKE
    assert "found a run with unreliable results (policed/1: " in capsys.readouterr().err


def test_experiment_without_a_baseline_is_reported(tmp_path: Path) -> None:
    mark = "<!-- baseline: small -->\n<!-- end of baseline -->"
    text = "<!-- baseline: small -->\n\nNo run of `small` is saved.\n\n<!-- end of baseline -->"
    assert results_document(mark, tmp_path) == results_document(text, tmp_path) == text


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Provide a checkout with one experiment and its baseline."""
    shutil.copytree(KEPT, tmp_path / BASELINES / "policing-vs-shaping/simulated")
    shutil.copytree(TOP / "experiments", tmp_path / "experiments")
    shutil.copytree(TOP / "reports/published", tmp_path / "reports/published")
    return tmp_path


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("duration: ", "duration: 1", ["settings that changed: duration", "expectations: 10 with other bounds"]),
        ("    tcp: modern\n", "", ["settings that changed: arms.policed-cubic"]),
        ("\ncaptures:", "\n  - {name: again, title: Again}\ncaptures:", ["settings that changed: arms.again (new)"]),
        ("title: Policed to 1 Mb/s, modern TCP", "title: Otherwise", []),
        ("reason: >-\n", "reason: >-\n        Not least:\n", []),
        ("\ndescription: >\n", "\ndescription: >\n  In other words.\n", []),
        ("explained: >-\n", "explained: >-\n        Not least:\n", []),
        (
            *("equals: 31250 B", "equals: 31251 B"),
            ["expectations: 1 with other bounds, 1 with another verdict on the published value"],
        ),
    ],
)
def test_baseline_of_another_version_of_the_file_is_reported(
    was: str, now: str, message: list[str], tree: Path
) -> None:
    baseline = read(tree / BASELINES / "policing-vs-shaping/simulated")
    file = tree / "experiments/policing-vs-shaping.yml"
    text = file.read_text()
    assert list(find_outdated(baseline, file)) == [] and was in text
    file.write_text(text.replace(was, now, 1))
    assert list(find_outdated(baseline, file)) == message


def test_results_page_updates_explanations_of_unchanged_expectations(tree: Path) -> None:
    file = tree / "experiments/policing-vs-shaping.yml"
    file.write_text(file.read_text().replace("explained: >-\n", "explained: >-\n        As rewritten:\n", 1))
    mark = "<!-- baseline: policing-vs-shaping -->\n<!-- end of baseline -->"
    text = results_document(mark, tree)
    assert text.count("As rewritten:") == 1 and "earlier version" not in text


def test_baseline_of_other_configurations_is_reported_in_the_document(tree: Path) -> None:
    template = tree / "experiments/templates/police.ios.j2"
    template.write_text(template.read_text() + "!\nip domain-name example.net\n")
    mark = "<!-- baseline: policing-vs-shaping -->\n<!-- end of baseline -->"
    assert (
        "\n  - of an earlier version of the file: settings that changed: configuration of R1 in policed,"
        in results_document(mark, tree)
    )


def test_run_of_another_version_is_reported(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = run / "manifest.json"
    written = json.loads(manifest.read_text())
    del written["seal"]
    written["experiment"]["duration"] = "7 s"
    written["experiment"]["arms"].pop()
    manifest.write_bytes(add_seal(json.dumps(written, indent=2).encode()))
    assert main(["compare", str(run)]) == ExitStatus.OUTSIDE
    rows = len(read_comparison_rows(KEPT / COMPARISON))
    assert capsys.readouterr().out == (
        f"{KEPT} belongs to another version of policing-vs-shaping, with different settings: duration, "
        "arms.policed-cubic (gone)\n"
        f"{rows} values, 0 different from {KEPT}\n"
    )


def test_results_page_has_a_column_for_every_kind_of_lab(tmp_path: Path) -> None:
    kept = tmp_path / BASELINES / "policing-vs-shaping"
    for lab in ("simulated", "virtual"):
        shutil.copytree(KEPT, kept / lab)
    table = (kept / "virtual" / COMPARISON).read_text()
    was, now = (f",31250.0,31250.0,{','.join([found] * 3)}," for found in ("31250.0", "62500.0"))
    (kept / "virtual" / COMPARISON).write_text(table.replace(was, now))
    mark = "<!-- baseline: policing-vs-shaping -->\n<!-- end of baseline -->"
    text = results_document(mark, tmp_path)
    assert "\n- simulated: 2026-" in text and "\n- virtual: 2026-" in text
    assert "\n| metric | predicted | published | simulated | virtual |\n|---|---|---|---|---|\n" in text
    assert "\n| policed: `police.bc` | 31250 B | 31250 B | 31250 B | 62500 B |\n" in text


def test_results_page_has_a_place_for_every_experiment() -> None:
    named = re.findall(r"^<!-- baseline: (\S+) -->$", (TOP / RESULTS).read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(path.stem for path in (TOP / "experiments").glob("*.yml"))


def test_saved_manifest_has_one_line_for_the_cells_of_each_arm_and_the_settings_of_the_run() -> None:
    content = (KEPT / "manifest.json").read_text()
    manifest = read(KEPT).manifest
    lines = [line for line in content.splitlines() if line.startswith('    {"arm": ')]
    assert len(lines) == len({each.arm for each in manifest.cells})
    assert reduce_manifest(manifest).decode() == content
    assert manifest.experiment.topology.nodes["R1"].model == "3725"
    assert manifest.machine == {} and manifest.experiment.compare is None
