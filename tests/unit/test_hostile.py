"""Untrusted files: reading them runs no code, opens no other files, and ends quickly with a finding."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hostile_files import BASE, MATRIX, TEMPLATED, hostile_experiments
from processor import time_limit_s
from qoslab import cli
from qoslab.cli import main
from qoslab.errors import DeviceError, ExperimentError
from qoslab.ios.cli import output_filters
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.regexps import Regexp, RegexpError
from qoslab.plan import make_plan
from qoslab.run.progress_lines import RunProgress
from qoslab.schema import load_experiment, load_sweep
from qoslab.system.printing import printable

CASES = dict(hostile_experiments())
SECONDS = 4.0


def write_experiment(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return folder / "e.yml"


def test_base_experiment_is_valid(tmp_path: Path) -> None:
    assert load_experiment(write_experiment(tmp_path, {"e.yml": BASE})).name == "e"
    files: dict[str, str | bytes] = {
        "e.yml": TEMPLATED,
        "t.j2": "{% include 'sub/u.j2' %}",
        "sub/u.j2": "hostname R9\n",
    }
    assert load_experiment(write_experiment(tmp_path, files)).arm("one").configure["R1"].template == "t.j2"


@pytest.mark.parametrize("name", ["YAML: a key that is no text", "YAML: a value that is no text"])
def test_file_that_is_not_text_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    file = write_experiment(tmp_path, CASES[name])
    with pytest.raises(ExperimentError) as raised:
        load_experiment(file)
    (line,) = [number for number, text in enumerate(file.read_text().splitlines(), 1) if r"\ud800" in text]
    answer = [
        found.line for found in raised.value.findings if r"found \ud800, which is not a character" in found.message
    ]
    assert answer == [line]


@pytest.mark.parametrize("what", ["template", "folder of templates", "published", "FIFO"])
def test_links_out_of_the_project_are_refused(tmp_path: Path, what: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "t.j2").write_text("secret of mine\n")
    folder = tmp_path / "folder"
    text = TEMPLATED if what in ("template", "FIFO") else TEMPLATED.replace("t.j2", "sub/t.j2")
    if what == "published":
        text = BASE + "compare: {article: A, published: p.csv}\n"
    file = write_experiment(folder, {"e.yml": text})
    match what:
        case "template":
            (folder / "t.j2").symlink_to(secret / "t.j2")
        case "folder of templates":
            (folder / "sub").symlink_to(secret)
        case "published":
            (folder / "p.csv").symlink_to(secret / "t.j2")
        case _:
            os.mkfifo(folder / "t.j2")
    with pytest.raises(ExperimentError) as raised:
        load_experiment(file)
    assert "secret of mine" not in raised.value.message
    assert "expected a file below" in raised.value.message or "no file" in raised.value.message


def test_project_finds_published_values_next_to_its_experiments(tmp_path: Path) -> None:
    text = BASE + "compare: {article: A, published: ../reports/published/p.csv}\n"
    values = {"reports/published/p.csv": "arm,metric,unit,value,source\n"}
    write_experiment(tmp_path, values)
    assert load_experiment(write_experiment(tmp_path / "experiments", {"e.yml": text})).compare is not None
    with pytest.raises(ExperimentError, match="expected a file below"):
        load_experiment(write_experiment(tmp_path / "other", {"e.yml": text}))


@pytest.mark.long
@pytest.mark.parametrize("repetitions", ["", "200001"])
def test_options_cannot_exceed_the_cell_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], repetitions: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_experiment(tmp_path / "experiments", {"e.yml": BASE})
    assert main(["run", "experiments/e.yml", "--dry-run", "--repetitions", repetitions or "200000"]) == (
        2 if repetitions else 0
    )
    assert ("expected at most 200000" in capsys.readouterr().err) == bool(repetitions)


@pytest.mark.usefixtures("small_machine")
def test_combinations_are_counted_before_expansion(tmp_path: Path) -> None:
    numbers = list(range(1, 500))  # not so many values that these alone would be refused
    text = MATRIX.replace("tool: iperf3", "tool: iperf3, window: $(q) kB") + f"{{p: {numbers}, q: {numbers}}}\n"
    with time_limit_s(SECONDS), pytest.raises(ExperimentError) as raised:
        load_sweep(write_experiment(tmp_path, {"e.yml": text}))
    (finding,) = raised.value.findings
    answer = "e.yml:24:9: matrix: found 249001 combinations (499 of p × 499 of q), expected at most 200000 of all arms"
    assert answer in str(finding)


@pytest.mark.long
@pytest.mark.usefixtures("small_machine")
def test_promised_number_of_cells_can_be_planned(tmp_path: Path) -> None:
    """Plan a hundred thousand cells, the number that docs/sweeps.md promises."""
    numbers = list(range(1, 318))
    text = MATRIX.replace("tool: iperf3", "tool: iperf3, window: $(q) kB") + f"{{p: {numbers}, q: {numbers}}}\n"
    plan = make_plan(load_sweep(write_experiment(tmp_path, {"e.yml": text})))
    assert len(plan.cells) == 317**2 > 100_000
    assert plan.estimate_seconds(4) is not None


FOREIGN = "A [/x] [red]b[/red] \x1b]0;owned\x07 \u202egnp.exe \x9b31m"
SHOWN = r"A [/x] [red]b[/red] \x1b]0;owned\x07 \u202egnp.exe \x9b31m"


def test_foreign_text_is_escaped() -> None:
    assert printable(FOREIGN) == SHOWN
    assert printable("Zürich\t→ 10 µs\n") == "Zürich\t→ 10 µs\n"


def test_list_shows_titles_and_broken_files_safely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    titled = BASE.replace("title: One", f"title: {json.dumps(FOREIGN)}")
    write_experiment(tmp_path / "experiments", {"e.yml": titled, "good.yml": BASE.replace("name: e", "name: good")})
    for number, files in enumerate(list(CASES.values())[::8]):
        write_experiment(tmp_path / "experiments", {f"b{number}.yml": files["e.yml"]})
    (tmp_path / "experiments" / "folder.yml").mkdir()
    os.mkfifo(tmp_path / "experiments" / "pipe.yml")
    for number, text in enumerate(["[", "[]", "{}", "null", '[{"verdict": []}]', "[" * 100_000, '"x"', "[1]", "\\xff"]):
        run = tmp_path / "runs" / "e" / f"2026010{number}T000000Z"
        write_experiment(run, {"comparison.json": text, "manifest.json": text})
    assert main(["list"]) == 0
    out, err = capsys.readouterr()
    assert SHOWN in out and "\x1b" not in out + err and "\u202e" not in out + err
    assert "experiments/good.yml  One  (one)" in out
    assert re.search(r"pipe\.yml  \(unreadable, see qoslab validate: .*not a regular file", out)
    assert out.count("runs/e/") == 9


def test_deeply_nested_file_is_listed_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_experiment(
        tmp_path / "experiments", {"e.yml": "[" * 60_000, "good.yml": BASE.replace("name: e", "name: good")}
    )
    assert main(["list", "experiments"]) == 0
    deep, good = capsys.readouterr().out.splitlines()
    assert deep.startswith("experiments/e.yml  (unreadable, see qoslab validate: ")
    assert good == "experiments/good.yml  One  (one)"


@pytest.mark.parametrize(("encoding", "shown"), [("latin-1", "Zürich \\u2192 10 µs"), ("utf-8", "Zürich → 10 µs")])
def test_text_is_escaped_for_an_ascii_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    titled = BASE.replace("title: One", "title: Zürich → 10 µs")
    write_experiment(tmp_path / "experiments", {"e.yml": titled})
    written_out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written_out, encoding=encoding))
    assert main(["list", "experiments"]) == 0
    assert written_out.getvalue().decode(encoding) == f"experiments/e.yml  {shown}  (one)\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_escapes_foreign_text(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with RunProgress(FOREIGN, 2, 10.0) as progress:
        progress("one/1", FOREIGN)
        progress.note(FOREIGN)
        progress.cell_done("one/1")
    assert "[/x] [red]b[/red]" in stream.getvalue()
    assert "\x1b]0;owned" not in stream.getvalue() and "\u202e" not in stream.getvalue()


def test_device_error_is_escaped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DeviceError(FOREIGN, hint=FOREIGN)

    monkeypatch.setattr(cli.command_group, "main", refuse)
    assert main(["list"]) == 2
    assert capsys.readouterr().err == f"qoslab: {SHOWN}\n  {SHOWN}\n"


@pytest.mark.parametrize(
    "expression", ["^(.|.)*X$", "(a*)*c", "((a|a)*)*c", "(a|b)*a" + "(a|b)" * 40 + "c", "a{9999999999}"]
)
def test_any_expression_of_a_filter_ends_in_time(expression: str) -> None:
    text = "\n".join(["ab" * 200] * 20)
    with time_limit_s(SECONDS):
        assert output_filters.parse(f"| include {expression}", 1).apply(text) == ""


@pytest.mark.parametrize("expression", ["(" * 60 + ")" * 60, "(" * 3000, "[a", "a)", "*", "a\\", "x" * 300, "[z-a]"])
def test_any_expression_of_a_filter_is_matched_or_refused(expression: str) -> None:
    with pytest.raises(CliError):
        output_filters.parse(f"| include {expression}", 1)


PIECES = st.sampled_from(["a", "b", ".", "(", ")", "|", "*", "+", "?", "^", "$", "[ab]", "[^a]", "[a-c]", r"\.", r"\("])


def _to_python_regexp(expression: str) -> str:
    """Translate an expression for Python: each sign repeats everything before it, `a+?` is `(a+)?`; Python reads the
    second one as lazy or possessive.
    """
    return re.sub(r"[*+?]{2,}", lambda signs: signs[0][0] if len(set(signs[0])) == 1 else "*", expression)


@example("a+?", [""])
@example("a*+a", ["a"])
@given(st.lists(PIECES, max_size=8).map("".join), st.lists(st.text("abc.(", max_size=6), max_size=4))
def test_regular_expressions_match_like_those_of_python(expression: str, lines: list[str]) -> None:
    try:
        expected = re.compile(_to_python_regexp(expression))
        found = Regexp(expression)
    except (re.error, RegexpError):
        return
    for line in lines:
        assert found.search(line) == bool(expected.search(line))


def test_underscore_matches_any_delimiter() -> None:
    lines = ["65000 100 7", "100", "1001", "(100)", "a,100,b", "a100", "x_100"]
    assert [line for line in lines if Regexp("_100_").search(line)] == [*lines[:2], *lines[3:5], "x_100"]
