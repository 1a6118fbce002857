"""Short and long level: the short one leaves out long tests and most cases of a sample; the long one has everything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

import levels


def item(name: str, **marks: Any) -> Any:
    """Return a collected test with marks: their arguments by name."""
    found = {mark: SimpleNamespace(args=args) for mark, args in marks.items()}
    return SimpleNamespace(nodeid=name, get_closest_marker=found.get)


ITEMS = [
    item("plain"),
    item("varies", long=()),
    *(item(f"sweep[{case}]", sample=(3,)) for case in "abcde"),
    item("sweep of others[a]", sample=(3,)),
    item("sweep of others[b]", sample=(3,)),
]


def selected_tests() -> list[str]:
    return [each.nodeid for each, runs in levels.select_cases(ITEMS) if runs]


def test_short_level_runs_every_nth_case_of_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(levels.VARIABLE, raising=False)
    assert selected_tests() == ["plain", "sweep[a]", "sweep[d]", "sweep of others[a]"]
    assert (levels.every_nth(7), levels.example_count(90), levels.value_by_level(short=1, long=2)) == (7, 9, 1)
    assert levels.example_count(20) == 5


def test_long_level_runs_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(levels.VARIABLE, "1")
    assert selected_tests() == [each.nodeid for each in ITEMS]
    assert (levels.every_nth(7), levels.example_count(25), levels.value_by_level(short=1, long=2)) == (1, 25, 2)


@pytest.mark.parametrize(("variable", "repeats"), [(None, True), ("1", False)])
def test_only_the_short_level_repeats_its_random_examples(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, repeats: bool
) -> None:
    if variable:
        monkeypatch.setenv(levels.VARIABLE, variable)
    else:
        monkeypatch.delenv(levels.VARIABLE, raising=False)
    try:
        levels.load_hypothesis_profile()
        assert settings.default is not None
        assert (settings.default.derandomize, settings.default.deadline) == (repeats, None)
        assert settings.default.print_blob or repeats
    finally:
        monkeypatch.undo()
        levels.load_hypothesis_profile()
