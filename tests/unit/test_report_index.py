"""Index of a folder's runs."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import sample_run
from hypothesis import given
from hypothesis import strategies as st

from qoslab.analysis import analyse
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.model.run_values import RunValue
from qoslab.overview import read_run, read_runs
from qoslab.report import render, render_index
from qoslab.report.index import build_index

FIGURE = RunValue("policed", "goodput.sum", "", "b/s", 1e6, None, None, None, "0.9 to 1.1 Mb/s", "within")


@pytest.fixture(scope="module")
def analysed_run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = sample_run.make_run(tmp_path_factory.mktemp("made") / "runs")
    render(folder, analyse(folder))
    return folder.path


@pytest.fixture
def root(analysed_run_folder: Path, tmp_path: Path) -> Path:
    """Provide two runs, the later one with more goodput and another verdict."""
    root = tmp_path / "runs"
    before = root / analysed_run_folder.parent.name / analysed_run_folder.name
    shutil.copytree(analysed_run_folder, before)
    after = before.with_name("2027" + analysed_run_folder.name[4:])
    shutil.copytree(analysed_run_folder, after)
    rows = json.loads((after / "comparison.json").read_text())
    row = next(row for row in rows if row["verdict"] == "within" and row["unit"] == "fraction")
    row["measured"], row["verdict"] = 0.9, "outside"
    (after / "comparison.json").write_text(json.dumps(rows))
    return root


def test_newest_run_comes_first_with_a_link_to_its_report(root: Path) -> None:
    page = render_index(root).read_text()
    links = re.findall(r'href="(\./[^"]+)"', page)
    assert len(links) == 3 and "/2027" in links[1] and "/2027" not in links[2]
    assert all((root / link).is_file() for link in links)
    assert "outside tolerance" in page and "default-src 'none'" in page


def test_changed_values_are_reported(root: Path) -> None:
    (section,) = build_index(root, read_runs(root)).sections
    (moved,) = section.moved
    assert moved.name == "policed: police.exceed_share"
    assert [text.replace("\xa0", " ") for text, _ in moved.cells] == ["90 %", "33.3 %"]
    first, last = (float(point.split(",")[1]) for point in moved.spark.split())
    assert first > last  # up, as SVG counts
    assert section.still and not any(trend.moved for trend in section.still)


def test_runs_with_other_options_are_not_compared(root: Path) -> None:
    runs = read_runs(root)
    (section,) = build_index(root, [runs[0], replace(runs[1], overrides=("--duration 5 s",))]).sections
    assert section.compared == "" and section.moved == []
    assert len(section.rows) == len(section.heads) == 2


def test_unreadable_runs_are_listed(root: Path) -> None:
    newest = max(next(root.iterdir()).iterdir())
    (newest / "manifest.json").write_text('{"cells": 3}')
    broken = root / "other" / "20270101T000000Z"
    broken.mkdir(parents=True)
    states = {run.folder.name: run.state for run in read_runs(root)}
    assert states.pop(newest.name) == "damaged" and states.pop(broken.name) == "unfinished"
    assert set(states.values()) == {"finished"}
    page = render_index(root).read_text()
    assert "damaged" in page and "unfinished" in page


def test_unneeded_cell_is_not_invalid(root: Path) -> None:
    newest = max(next(root.iterdir()).iterdir())
    manifest = json.loads((newest / "manifest.json").read_text())
    manifest["cells"][0] |= {"valid": False, "record": None, "spared": "the interval is narrow enough"}
    (newest / "manifest.json").write_text(json.dumps(manifest))
    assert (read_run(newest).invalid, read_run(newest).cells) == (0, 2)
    del manifest["cells"][0]["spared"]
    (newest / "manifest.json").write_text(json.dumps(manifest))
    assert read_run(newest).invalid == 1


def test_text_of_a_run_cannot_become_markup(root: Path) -> None:
    newest = max(next(root.iterdir()).iterdir())
    manifest = json.loads((newest / "manifest.json").read_text())
    manifest["experiment"]["title"] = manifest["commit"] = "</h2><script>alert(1)</script>"
    (newest / "manifest.json").write_text(json.dumps(manifest))
    rows = json.loads((newest / "comparison.json").read_text())
    rows[0] |= {"arm": "<img src=x>", "unit": "<b>", "verdict": "outside"}
    (newest / "comparison.json").write_text(json.dumps(rows))
    page = render_index(root).read_text()
    assert "<script" not in page and "<img" not in page and "<b>" not in page
    assert "&lt;img src=x&gt;" in page


def test_rows_with_other_types_are_damage(root: Path) -> None:
    newest = max(next(root.iterdir()).iterdir())
    for content in ("[3]", '[{"arm": "a"}]', '{"a": 1}'):
        (newest / "comparison.json").write_text(content)
        assert read_run(newest).state == "damaged", content


def test_average_counts_like_in_its_run(tmp_path: Path) -> None:
    """Count averages: the only failed value is one, and so is the only changed one."""
    expectations = [each for each in sample_run.EXPERIMENT["compare"]["expectations"] if "at_most" not in each]
    compare = sample_run.AVERAGED["compare"] | {"expectations": expectations}
    folder = sample_run.make_run(tmp_path, experiment=sample_run.AVERAGED | {"compare": compare})
    outcome = analyse(folder)
    assert outcome.outside == 1
    before = folder.path.with_name("20260101T000000Z")
    shutil.copytree(folder.path, before)
    averages = before / "averages.csv"
    averages.write_text(averages.read_text().replace(",outside,", ",within,"))
    then, now = read_runs(tmp_path)
    assert (then.count("outside"), now.count("outside")) == (0, 1)
    assert (now.words, then.words) == ("4 within, 1 outside", "5 within, 0 outside")
    (section,) = build_index(tmp_path, [then, now]).sections
    assert [row.word for row in section.rows] == ["outside tolerance", "within tolerance"]
    assert [trend.name for trend in section.moved] == ["policed: All transfers"]


@pytest.mark.parametrize("content", ["", "what\nit was\n", "title,verdict\nA,within\n", None])
def test_invalid_averages_are_damage(content: str | None, root: Path) -> None:
    newest = max(next(root.iterdir()).iterdir())
    averages = newest / "averages.csv"
    averages.mkdir() if content is None else averages.write_text(content)
    assert read_run(newest).state == "damaged"


def test_folder_without_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="found no run"):
        render_index(tmp_path)
    assert main(["report", "--index", str(tmp_path / "none")]) == 2
    assert "found no folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_command_writes_the_index(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--index", str(root), "--json"]) == 0
    assert Path(json.loads(capsys.readouterr().out)["index"]) == root / "index.html"
    assert (root / "index.html").is_file()


class TestMoved:
    def test_changed_verdict_is_a_change(self) -> None:
        assert replace(FIGURE, verdict="outside").has_changed_from(FIGURE)

    def test_missing_value_is_a_change(self) -> None:
        assert replace(FIGURE, measured=None).has_changed_from(FIGURE)

    def test_intervals_decide_if_available(self) -> None:
        wide = replace(FIGURE, low=0.8e6, high=1.2e6)
        assert not replace(wide, measured=1.15e6, low=1.1e6, high=1.2e6).has_changed_from(wide)
        assert replace(wide, measured=1.3e6, low=1.25e6, high=1.4e6).has_changed_from(wide)

    @given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
    def test_change_between_two_runs_is_symmetric(self, first: float, second: float) -> None:
        one, other = (replace(FIGURE, measured=value) for value in (first, second))
        assert one.has_changed_from(other) == other.has_changed_from(one)
        assert not one.has_changed_from(one)
