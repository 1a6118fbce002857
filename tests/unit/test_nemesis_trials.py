"""What is kept of the nemesis' trials, and the page about them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from script import script


@pytest.fixture(scope="module")
def trials() -> ModuleType:
    return script("tests/nemesis/trials.py")


def test_the_page_tells_what_was_tried(trials: ModuleType) -> None:
    kept = trials.read()
    assert [each for each in kept.values() if each.outcome != trials.WITHIN] == []
    assert trials.PAGE.read_text().partition(trials.MARK)[2].lstrip("\n") == trials.page(kept.values()).lstrip("\n")


def test_a_repeated_seed_is_reported_with_its_last_result(
    trials: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "TRIED", tmp_path / "tried.csv")
    monkeypatch.setattr(trials, "PAGE", tmp_path / "page.md")
    trials.PAGE.write_text(f"Words.\n\n{trials.MARK}\nold\n")
    day = "2026-01-0"

    def trial(seed: int, outcome: str, number: int) -> object:
        return trials.Trial("test_x.py", seed, "virtual", "kill", outcome, f"abc{number}", f"{day}{number}")

    trials.keep([trial(1, "outside", 1), trial(2, trials.WITHIN, 1), trial(4, trials.WITHIN, 1)])
    assert "2 of 3 trials were within the rules" in trials.PAGE.read_text()
    trials.keep([trial(1, trials.WITHIN, 2)])
    text = trials.PAGE.read_text()
    assert text.startswith(f"Words.\n\n{trials.MARK}\n") and "old" not in text
    assert "3 of 3 trials were within the rules" in text
    assert f"| virtual | kill | 3 | 3 | 0 | 1-2, 4 | `abc1`, `abc2` | {day}1 to {day}2 |" in text
