"""The command that lets the fuzzer try: how long inputs are, and what its page keeps."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from script import script

TOP = Path(__file__).parents[2]
ROW = "| `{}` | Any bytes | {} | 7 | `{}` | 2026-01-02 |"


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    return script("benches/fuzz.py")


@pytest.fixture
def page(fuzz: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page with a row of this commit, one of another and one of a target that is gone."""
    file = tmp_path / "fuzzing.md"
    rows = [ROW.format("frame", "1 000", "abcd"), ROW.format("flood", "20", "ef01"), ROW.format("gone", "5", "abcd")]
    file.write_text("\n".join(["# Fuzzing", "", fuzz.MARK, "", *rows, ""]))
    monkeypatch.setattr(fuzz, "PAGE", file)
    monkeypatch.setattr(fuzz, "commit", lambda: "abcd")
    monkeypatch.setattr(fuzz, "build", lambda: None)
    monkeypatch.setattr(fuzz, "tried", lambda name, target, seconds: (500, 9))
    return file


def written(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, tuple[int, int, str]]:
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--write", *words])
    assert fuzz.main() == 0
    found = fuzz.earlier(fuzz.targets(), None)
    return {name: (tried.executions, tried.edges, tried.commit) for name, tried in found.items()}


def test_each_target_has_a_length_that_its_seeds_keep(fuzz: ModuleType) -> None:
    targets = fuzz.targets()
    assert set(fuzz.LENGTHS) == set(targets) and set(fuzz.OPTIONS) <= set(targets)
    for name, target in targets.items():
        # The fuzzer cuts a longer one off, after which most say nothing; what is steps has fewer of them then.
        seeds = list(target.corpus.iterdir())
        whole = [seed.name for seed in seeds if seed.stat().st_size <= target.longest]
        assert 2 * len(whole) > len(seeds) or name in ("program", "sla"), (name, whole)


def test_executions_add_up_over_commits(fuzz: ModuleType, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(fuzz, monkeypatch, "frame") == {"frame": (1500, 9, "abcd"), "flood": (20, 7, "ef01")}
    assert page.read_text().endswith("\nIn all 1 520 executions.\n")


def test_a_page_may_be_restarted(fuzz: ModuleType, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(fuzz, monkeypatch, "--anew", "sla") == {"frame": (1000, 7, "abcd"), "sla": (500, 9, "abcd")}


def test_each_row_of_the_page_can_be_read_and_is_of_a_target(fuzz: ModuleType) -> None:
    text = fuzz.PAGE.read_text(encoding="utf-8")
    rows = fuzz.ROW.findall(text)
    assert text.count("\n| `") == len(rows)
    assert {name for name, *_ in rows} <= set(fuzz.targets())
