"""Lines of routers that no parser recognised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sample_run

from qoslab.analysis.unparsed import find_unparsed
from qoslab.cli import main
from qoslab.genie.show_parser import parse
from qoslab.results import RunFolder

POLICE = Path(__file__).parents[1] / "recorded/ios/police.classic.txt"


def genie(command: str, text: str) -> tuple[Any, str]:
    found = parse("ios", command, text)
    return found.parsed, found.reason


def make_run_with_output(root: Path, command: str, text: str, parsed: str) -> RunFolder:
    """Return a run in which R1 printed these lines before each arm's traffic."""
    run = sample_run.make_run(root)
    for cell in sample_run.cells_of(run):
        base = cell.observation("R1", "before", "show policy-map interface")
        base.with_name(base.name + ".txt").write_text(text)
        base.with_name(base.name + ".json").write_text(parsed)
        sample_run.change_json(
            cell.path / "cell.json",
            lambda record: record.update(observed=[{**record["observed"][0], "command": command}]),
        )
    sample_run.reseal(run.path)
    return RunFolder(run.path)


def test_unrecognised_lines_are_listed_once(tmp_path: Path) -> None:
    import json

    text = POLICE.read_text().rstrip() + "\n      frobnication 7 ms\n"
    run = make_run_with_output(
        tmp_path, "show policy-map interface", text, json.dumps(genie("show policy-map interface", text)[0])
    )
    (found,) = find_unparsed(run.open().cells, genie)
    assert (found.device, found.command, found.line, found.times) == (
        "R1",
        "show policy-map interface",
        "frobnication 7 ms",
        2,
    )
    number = text.splitlines().index("      frobnication 7 ms") + 1
    assert found.place == f"policed/1/observations/R1/before.show-policy-map-interface.txt:{number}"


def test_unparsed_output_is_reported_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run_with_output(tmp_path / "runs", "show policy-map interface", "Tides are high\n", '{"unparsed": "nothing"}')
    monkeypatch.chdir(tmp_path)
    assert main(["unparsed"]) == 0
    assert capsys.readouterr().out == (
        "R1: show policy-map interface: nothing: the parser recognised nothing in it  "
        "(policed/1/observations/R1/before.show-policy-map-interface.txt, in 2 outputs)\n"
    )


CLASSES = """\
 Class Map match-all Voice (id 2)
   Match access-group  101
 Class Map is odd today
"""


def test_lines_without_values_are_unparsed_by_other_parsers() -> None:
    from qoslab.analysis.unparsed import _ineffective_lines

    assert list(_ineffective_lines("show class-map", CLASSES.splitlines(), genie)) == ["Class Map is odd today"]
