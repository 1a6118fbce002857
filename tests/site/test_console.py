"""Blocks of a page during the build of the site: files, commands, programs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from docutils import nodes

sys.path.insert(0, str(Path(__file__).parents[2] / "site"))
import console


@pytest.fixture(autouse=True)
def warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the warnings of a build whose pages use a folder of the test."""
    notes: list[str] = []
    monkeypatch.setattr(console, "WORK", tmp_path)
    monkeypatch.setattr(console, "_sources", lambda: "")
    monkeypatch.setattr(console._LOG, "warning", lambda text, *values, location: notes.append(text % values))
    return notes


def blocks(*each: tuple[str, str]) -> list[nodes.literal_block]:
    return [nodes.literal_block(text, text, language=language) for language, text in each]


def test_console_block_keeps_the_folder_between_commands(tmp_path: Path) -> None:
    page = console.Page(
        "how-to/mine",
        blocks(
            ("yaml", "# lab/a/b.yml\nx: 1"),
            ("console", "$ cd lab\n$ cat a/b.yml"),
            ("python", "from pathlib import Path\n\nprint(Path('a/b.yml').read_text())"),
            ("python", "# a/said.py\nprint('said')"),
            ("console", "$ python a/said.py"),
        ),
    )
    here = str(tmp_path / "how-to-mine" / "home" / "lab")
    assert page.outputs() == [
        [],
        [("cd lab", "", here), ("cat a/b.yml", "# lab/a/b.yml\nx: 1", here)],
        [("", "# lab/a/b.yml\nx: 1", here)],
        [],
        [("python a/said.py", "said", here)],
    ]


def test_program_is_shown_with_its_output_below() -> None:
    program, silent, commands = blocks(("python", "print(1)"), ("python", "x = 1"), ("console", "$ echo 1"))
    shown = [
        (each.get("language"), each.astext())
        for block, text in (
            (program, [("", "1", "/")]),
            (silent, [("", "", "/")]),
            (commands, [("echo 1", "1", "/")]),
        )
        for each in console._shown(block, text)
    ]
    assert shown == [("python", "print(1)"), ("text", "1"), ("python", "x = 1"), ("console", "$ echo 1\n1")]


def test_failing_program_is_reported_and_not_cached(tmp_path: Path, warnings: list[str]) -> None:
    page = console.Page("mine", blocks(("python", "raise SystemExit('no')")))
    assert [text for ((_, text, _),) in page.outputs()] == ["no"]
    assert warnings == ["`raise SystemExit('no')` ended with status 1:\nno"]
    assert not (tmp_path / "mine" / "outputs.json").exists()


def test_failing_command_before_another_is_reported(warnings: list[str]) -> None:
    page = console.Page("mine", blocks(("console", "$ echo said | tail -n 1\n$ false | cat")))
    assert [text for _, text, _ in page.outputs()[0]] == ["said", ""]
    assert warnings == ["`false | cat` ended with status 1:\n"]


def test_value_out_of_tolerance_is_not_a_build_failure() -> None:
    text = ("qoslab run x", "A=b qoslab report x | tail", "qoslab validate x", "echo qoslab run x")
    assert [bool(console._OUTSIDE.match(each)) for each in text] == [True, True, False, False]
