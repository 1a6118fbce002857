"""Output for CI: JUnit, a summary in Markdown, annotations of lines; and the calls of qoslab in its templates."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
import sample_run
from ruamel.yaml import YAML

from qoslab.analysis import Outcome, analyse
from qoslab.cli import command_group, main
from qoslab.cli.gate import artifacts_url, repository_path
from qoslab.model.run_values import NEGLIGIBLE
from qoslab.overview import RunSummary, read_run
from qoslab.report import gate, render_index
from qoslab.report.arms import Graph
from qoslab.report.page import build_page
from qoslab.results import RunFolder, RunOptions

TOP = Path(__file__).parents[2]
OF_PROJECTS = ["project/.gitlab-ci.yml", "project/.github/workflows/qos.yml", "project/README.md"]


@pytest.fixture(scope="module")
def analysed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide an analysed run, below the folder of all runs."""
    folder = sample_run.make_run(tmp_path_factory.mktemp("analysed"))
    analyse(folder)
    return folder.path


@pytest.fixture
def run(analysed_run: Path, tmp_path: Path) -> RunFolder:
    shutil.copytree(analysed_run.parents[1], tmp_path / "runs", symlinks=True)
    return RunFolder(tmp_path / "runs" / analysed_run.parent.name / analysed_run.name)


def test_each_expected_value_is_a_test_case(run: RunFolder) -> None:
    top = ElementTree.fromstring(gate.junit(analyse(run), run.manifest()))
    (suite,) = top
    assert (top.get("tests"), top.get("failures"), top.get("errors")) == ("7", "1", "0")
    assert suite.get("name") == "policing-vs-shaping" and len(suite) == 7 and suite.get("skipped") == "1"
    (failed,) = (case for case in suite if case.find("failure") is not None)
    failure = failed.find("failure")
    assert failure is not None and ", expected " in str(failure.get("message"))


def test_baseline_of_an_untrusted_run_is_refused(tmp_path: Path) -> None:
    folder = sample_run.make_run(tmp_path, valid=False)
    top = ElementTree.fromstring(gate.junit(analyse(folder), folder.manifest()))
    error = top.find("testsuite/testcase/error")
    assert top.get("errors") == "1" and error is not None
    assert error.text == "policed/1: R1: the kernel dropped 7 frames"


def test_characters_invalid_in_xml_are_omitted(tmp_path: Path) -> None:
    experiment = json.loads(json.dumps(sample_run.EXPERIMENT))
    experiment["compare"]["expectations"][2]["reason"] = "bell \x07 <b> & \ufffe"
    folder = sample_run.make_run(tmp_path, experiment=experiment)
    top = ElementTree.fromstring(gate.junit(analyse(folder), folder.manifest()))
    failure = top.find("testsuite/testcase/failure")
    assert failure is not None and failure.text == "bell ? <b> & ?"


@cache
def analysed_page(path: Path) -> tuple[Outcome, Graph | None]:
    """Return the results of a run that stays unchanged, and the first graph of its report."""
    outcome = analyse(RunFolder(path))
    return outcome, build_page(RunFolder(path), outcome).lead


def summary(run: RunFolder, before: RunFolder | None, link: str = "") -> str:
    outcome, lead = analysed_page(run.path)
    old = None if before is None else read_run(before.path)
    return gate.markdown(outcome, run.manifest(), read_run(run.path), old, lead, link)


def test_summary_lists_changed_values(run: RunFolder) -> None:
    other = run.path.with_name("20260101T000000Z")
    shutil.copytree(run.path, other)
    rows = json.loads((other / "comparison.json").read_text())
    row = next(row for row in rows if row["verdict"] == "within" and row["unit"] == "fraction")
    row["measured"] = 0.9
    (other / "comparison.json").write_text(json.dumps(rows))
    text = summary(run, RunFolder(other), "https://example.net/1")
    moved = text.partition("### 1 value has changed since `policing-vs-shaping/20260101T000000Z`")[2].partition("<de")[
        0
    ]
    assert "| policed | police.exceed\\_share | 90 % | 33.3 % |" in moved
    assert moved.count("| policed |") == 1
    assert "[artifacts](https://example.net/1)" in text
    assert text.startswith("## ! ") and "Outside tolerance" in text.splitlines()[0]
    assert "### No values have changed" in summary(run, run)


@pytest.mark.long
def test_summary_has_all_judged_values(tmp_path: Path) -> None:
    run = sample_run.make_run(tmp_path / "runs", experiment=sample_run.AVERAGED)
    outcome = analyse(run)
    other = run.path.with_name("20260101T000000Z")
    shutil.copytree(run.path, other)
    averages = (other / "averages.csv").read_text()
    (other / "averages.csv").write_text(averages.replace(",outside,", ",within,"))
    text = summary(run, RunFolder(other))
    assert f"<summary>{len(list(gate.expected(outcome)))} values with an expectation</summary>" in text
    moved = text.partition("### 1 value has changed since ")[2].partition("<de")[0]
    assert "| policed | All transfers |" in moved and moved.count("| policed |") == 1


def test_removed_and_new_values_are_reported(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = run.path.with_name("20260101T000000Z")
    shutil.copytree(run.path, other)
    rows = json.loads((other / "comparison.json").read_text())
    assert rows.pop()["arm"] == "shaped/policed"
    gone = rows[0] | {"arm": "marked", "verdict": "within"}
    rows += [gone | {"metric": metric} for metric in ("police.bc", "police.exceed_share")]
    (other / "comparison.json").write_text(json.dumps(rows))
    text = summary(run, RunFolder(other))
    assert "No values have changed since" in text and "was not valid" not in text
    assert "\n2 values are gone: marked police.bc, marked police.exceed\\_share.\n" in text
    assert "\n1 value is new: shaped/policed goodput.sum.\n" in text
    many = [gone | {"metric": f"metric{number}"} for number in range(30)]
    (other / "comparison.json").write_text(json.dumps(rows + many))
    assert "32 values are gone: " in (text := summary(run, RunFolder(other)))
    assert ", marked metric17, and 12 more.\n" in text and "metric18" not in text
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(run.path), "--compare", str(other)]) == 1
    assert f"qoslab: 0 values changed since {other}, 32 are gone, 1 is new\n" in capsys.readouterr().err


@pytest.mark.sample(4)
def test_untrusted_earlier_run_is_reported(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = sample_run.make_run(tmp_path / "before", valid=False)
    analyse(other)
    assert "\nThat run was not valid (1 of 2 cells).\n" in summary(run, other)
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(run.path), "--compare", str(other.path)]) == 1
    assert "; that run was not valid (1 of 2 cells)\n" in capsys.readouterr().err


def test_documentation_states_the_least_difference_of_a_changed_value() -> None:
    words = " ".join((TOP / "docs/comparing.md").read_text().split())
    assert re.findall(r"differ by more than (.*?) of the larger one", words) == [f"{100 * NEGLIGIBLE:g} %"]


@pytest.mark.parametrize("page", ["docs/internals/architecture.md", "index.html"])
def test_documentation_defines_a_changed_value(page: str, run: RunFolder) -> None:
    if page == "index.html":  # of two runs, one compared with the previous one
        shutil.copytree(run.path, run.path.with_name("20260101T000000Z"))
        render_index(run.path.parents[1])
    words = " ".join((run.path.parents[1] if page == "index.html" else TOP).joinpath(page).read_text().split())
    reported = re.findall(r"has changed if its verdict is different, or if it differs by more than (.*?) of", words)
    assert reported == [f"{100 * NEGLIGIBLE:g} %"]
    assert "larger value and the two intervals, if any, do not overlap" in words


def test_summary_escapes_all_text_of_a_run(run: RunFolder) -> None:
    file = run.path / "comparison.json"
    rows = json.loads(file.read_text())
    rows[0] |= {"where": "<img src=x> | [a](b) `c` @team #1", "verdict": "outside"}
    outcome = analyse(run)
    file.write_text(json.dumps(rows))
    text = gate.markdown(outcome, run.manifest(), read_run(run.path), None, None, "")
    assert "<img" not in text and r"\| \[a\](b) \`c\` \@team \#1" in text


@pytest.mark.long
def test_earlier_run_with_an_unknown_unit_is_accepted(run: RunFolder) -> None:
    other = run.path.with_name("20260101T000000Z")
    shutil.copytree(run.path, other)
    rows = json.loads((other / "comparison.json").read_text())
    row = next(row for row in rows if row["verdict"] == "within" and row["unit"] == "fraction")
    row |= {"measured": 0.9, "unit": "furlongs"}
    (other / "comparison.json").write_text(json.dumps(rows))
    assert "| policed | police.exceed\\_share | 0.9 furlongs | 33.3 % |" in summary(run, RunFolder(other))


@pytest.mark.long
def test_chart_omits_lines_far_above_the_others(run: RunFolder) -> None:
    graph = build_page(run, analyse(run)).lead
    assert graph is not None
    value = graph.figure
    drawn = gate.picture(graph)
    assert drawn.count("    line [") == len(value["data"]) == 2
    value["data"][0]["y"] = [y * 100 for y in value["data"][0]["y"]]
    far = gate.picture(type(graph)(graph.id, graph.title, graph.summary, graph.unit, value))
    assert far.count("    line [") == 1 and "Far above: Policed to 1 Mb/s (mean " in far


@pytest.mark.long
def test_annotations_point_to_the_line_of_the_expectation(run: RunFolder) -> None:
    text = run.experiment_text()
    warning, note = gate.failure_annotations(analyse(run), text)
    assert (warning.line, warning.level) == (1, "warning")
    expected = sample_run.EXPERIMENT["compare"]["expectations"][2]
    near = "\n".join(text.splitlines()[note.line - 1 : note.line + 3])
    assert expected["metric"] in near and f'"arm": "{expected["arm"]}"' in near
    _, lost = gate.failure_annotations(analyse(run), "no experiment any more")
    assert lost.line == 1


def test_command_writes_the_requested_files(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    step = tmp_path / "step.md"
    step.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    monkeypatch.setattr(RunFolder, "options", lambda self: RunOptions(file=str(tmp_path / "mine.yml")))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    words = ["--junit", "out.xml", "--summary", str(step), "--compare", "policing-vs-shaping"]
    assert main(["report", "policing-vs-shaping", *words]) == 1
    written = ElementTree.parse("out.xml").getroot()
    assert written.tag == "testsuites" and {case.get("file") for case in written.iter("testcase")} == {"mine.yml"}
    assert step.read_text().startswith("before\n## ! ")
    output = capsys.readouterr().err
    assert "qoslab: 0 values changed since " in output
    assert re.search(r"^::error file=mine\.yml,line=\d+,col=1,title=\w+%3A outside tolerance::", output, re.MULTILINE)


@pytest.mark.long
def test_saved_baseline_suffices_for_a_comparison(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "reports/baselines/policing-vs-shaping/virtual"
    kept.mkdir(parents=True)
    output = re.search(r"a folder with `(.*?)` and `(.*?)` \(and", (TOP / "docs/comparing.md").read_text())
    assert output is not None and output.groups() == ("comparison.csv", "manifest.json")
    for name in output.groups():
        shutil.copy(run.path / name, kept)
    assert main(["report", str(run.path), "--compare", str(kept)]) == 1
    assert f"qoslab: 0 values changed since {kept}" in capsys.readouterr().err
    for moved, words in ((1, "1 value changed"), (2, "2 values changed")):
        with monkeypatch.context() as patch:
            patch.setattr(RunSummary, "changed_values", lambda self, _, moved=moved: self.values[:moved])
            assert main(["report", str(run.path), "--compare", str(kept)]) == 1
        assert f"qoslab: {words} since {kept}" in capsys.readouterr().err
    monkeypatch.chdir(kept.parent)
    assert main(["report", str(run.path), "--compare", "virtual", "--summary", "summary.md"]) == 1
    assert "No values have changed since `policing-vs-shaping/virtual`" in Path("summary.md").read_text()
    (kept / "comparison.csv").write_text("arm,metric\npoliced,police.bc\n")
    assert main(["report", str(run.path), "--compare", str(kept)]) == 2
    assert "the run is unfinished, expected one with figures" in capsys.readouterr().err


FOR_A_RUN = (["--junit", "out.xml"], ["--summary", "out.md"], ["--live"], ["--metrics", "0"])


def test_bad_input_is_found_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, text in (
        (["--junit", "none/out.xml"], "--junit none/out.xml: found no folder none, expected it to exist"),
        (["--compare", "nothing"], 'found "nothing", expected the folder of a finished run'),
        *((["--dry-run", *words], "with --dry-run, expected them only without it") for words in FOR_A_RUN),
    ):
        assert main(["run", "policing-vs-shaping", "--lab", "simulated", *words]) == 2
        assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_run_of_another_experiment_is_refused_before_the_run(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, here = tmp_path / "policing-vs-shaping/simulated", tmp_path / "here"
    other = sample_run.make_run(tmp_path / "others", experiment=sample_run.EXPERIMENT | {"name": "other"})
    analyse(other)
    kept.mkdir(parents=True)
    for name in ("comparison.csv", "manifest.json"):
        shutil.copy(other.path / name, kept)
    here.mkdir()
    monkeypatch.chdir(here)
    report = run.path / "report.html"
    for words in (["run", "policing-vs-shaping", "--lab", "simulated"], ["report", str(run.path)]):
        assert main([*words, "--compare", str(kept), "--summary", "summary.md"]) == 2
        output = capsys.readouterr().err
        assert f"--compare {kept}: found a run of other, expected one of policing-vs-shaping" in output
    assert list(here.iterdir()) == [] and not report.exists()


def test_invalid_file_is_annotated_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    (tmp_path / "bad.yml").write_text('name: bad\ntitle: T\n"wrong\\e[2J": 100 %\n')
    assert main(["validate", "bad.yml"]) == 2
    output = capsys.readouterr().err
    noted = [line for line in output.splitlines() if line.startswith("::error ")]
    assert any(line.startswith("::error file=bad.yml,line=3,col=1,title=") for line in noted), noted
    assert "wrong" in output and "\x1b" not in output


def test_annotations_have_paths_in_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(policies)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for top, place in (
        (tmp_path, "file=policies/bad.yml,line=1,col=1,"),
        (tmp_path / "link", "file=policies/bad.yml,"),
    ):
        monkeypatch.setenv("GITHUB_WORKSPACE", str(top))
        (policies / "bad.yml").write_text("wrong: 1\n")
        assert main(["validate", "bad.yml"]) == 2
        assert f"::error {place}" in capsys.readouterr().err
    file = str(policies / "bad.yml")
    assert repository_path(file, {"CI_PROJECT_DIR": str(tmp_path)}) == "policies/bad.yml"
    assert repository_path(file, {}) == "bad.yml"
    assert repository_path(file, {"GITHUB_WORKSPACE": str(tmp_path / "other")}) == ""
    assert repository_path("", {}) == ""


def test_test_case_has_the_file_and_line_of_its_expectation(run: RunFolder) -> None:
    text, outcome = run.experiment_text(), analyse(run)
    (suite,) = ElementTree.fromstring(gate.junit(outcome, run.manifest(), "experiments/mine.yml", text))
    assert {case.get("file") for case in suite} == {"experiments/mine.yml"}
    _, note = gate.failure_annotations(outcome, text)
    assert [case.get("line") for case in suite if case.find("failure") is not None] == [str(note.line)]
    lines = [int(case.get("line", 0)) for case in suite if case.find("skipped") is None]
    assert lines[0] == 1 and len(set(lines)) == len(lines)
    (suite,) = ElementTree.fromstring(gate.junit(outcome, run.manifest(), "", text))
    assert {(case.get("file"), case.get("line")) for case in suite} == {(None, None)}


def test_ci_system_is_recognised_by_its_environment() -> None:
    github = {"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://h", "GITHUB_REPOSITORY": "a/b"}
    assert artifacts_url(github | {"GITHUB_RUN_ID": "3"}) == "https://h/a/b/actions/runs/3"
    assert artifacts_url({"CI_JOB_URL": "https://g/j/1"}) == "https://g/j/1/artifacts/browse"
    assert artifacts_url({}) == ""


@pytest.mark.parametrize("name", ["action.yml", "templates/qoslab.gitlab-ci.yml", *OF_PROJECTS])
def test_templates_use_existing_options(name: str) -> None:
    text = (TOP / name).read_text(encoding="utf-8")
    if not name.endswith(".md"):
        assert YAML(typ="safe").load(text)
    calls = [shlex.split(line.split("#")[0]) for line in re.findall(r"^[\s-]*(qoslab (?!: ).*)$", text, re.MULTILINE)]
    assert calls
    for words in calls:
        command = command_group.get_command(click.Context(command_group), words[1])
        assert command is not None, words
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words
