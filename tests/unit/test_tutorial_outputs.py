"""Outputs in the tutorial equal those of its commands."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOP = Path(__file__).parents[2]


@pytest.fixture
def outputs() -> ModuleType:
    """Return the program that writes the outputs; the folder `site` is no package."""
    spec = importlib.util.spec_from_file_location("outputs", TOP / "site" / "outputs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_outputs_of_the_tutorial_are_current(outputs: ModuleType, tmp_path: Path) -> None:
    page = (TOP / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert outputs.with_outputs(page, tmp_path) == page, "run: python site/outputs.py --write docs/tutorial.md"


def test_outputs_replace_older_ones_and_leave_out_progress(outputs: ModuleType, tmp_path: Path) -> None:
    page = (
        "# P\n\n```ios\n! a/b.txt\nhostname R1\n```\n\n"
        "```console\n$ cd a\n$ cat b.txt\nold\n$ echo '1 of 2 cells'; pwd\n```\n\nEnd.\n"
    )
    expected = page.replace("old\n", "! a/b.txt\nhostname R1\n").replace("pwd\n", "pwd\n~/a\n")
    assert outputs.with_outputs(page, tmp_path) == expected


def test_failed_command_is_an_error(outputs: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with status 1"):
        outputs.with_outputs("```console\n$ false | cat\n```\n", tmp_path)
