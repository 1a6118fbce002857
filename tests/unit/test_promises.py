"""Documented behaviour under faults, and fixed weaknesses: `tests/promises.toml` maps them to tests.

A paragraph, list item or table row about a fault needs an entry there: its first words and its tests.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parents[2]
MAP = tomllib.loads((TOP / "tests/promises.toml").read_text(encoding="utf-8"))
PAGES = [
    *("README.md", "SECURITY.md", "CONTRIBUTING.md", "crates/README.md", "project/README.md"),
    *sorted(str(page.relative_to(TOP)) for page in (TOP / "docs").rglob("*.md") if page.name != "style.md"),
]
FAULT = re.compile(
    r"\b(?:dies|died|dead|killed|SIG(?:TERM|INT|KILL|HUP)|Ctrl-C|interrupted|loss of power|full disk|suspended|"
    r"clock was set|damaged?|panics?|half-made|restored|rescued?|cut off|restarts|breaks off|broken off|"
    r"crash(?:es|ed)?|has failed|tool failed|refuses everything|refused before any traffic|is ended|ends with the run|"
    r"tried again|tries them again|(?:does|do|did) not answer|no answer|no disk|broke off|was stopped for|errored|"
    r"countdown is started|(?:router|sender)(?: that)? was late|keep its pace|makes its cell invalid|become invalid|"
    r"invalid, not wrong|too long is invalid|was invalid|begins with \*invalid|captures and tools disagree|"
    r"configuration is not what was asked|fails|failed cell|gives up|invalid (?:cells?|run))\b"
)
BEGINS = re.compile(r"\s*(?:[-*] |\d+\. |\|)")


def passages(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph, list item and table row with its line number; code and headings are skipped."""
    start, passage, code = 0, "", False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        code ^= line.startswith("```")
        ends = not line.strip() or line.startswith(("#", "```", "    ")) or code
        if passage and (ends or BEGINS.match(line)):
            yield start, " ".join(passage.split())
            passage = ""
        if not ends:
            start = start if passage else number
            passage += line + "\n"


def without_test(text: str, entries: dict[str, list[str]]) -> list[str]:
    """Return passages about a fault that match no entry."""
    return [
        f"{number}: {passage[:100]}"
        for number, passage in passages(text)
        if FAULT.search(passage) and not passage.startswith(tuple(entries))
    ]


def without_passage(text: str, entries: dict[str, list[str]]) -> list[str]:
    """Return entries that match no passage of a page."""
    found = [passage for _, passage in passages(text)]
    return [words for words in entries if not any(passage.startswith(words) for passage in found)]


def exists(test: str) -> bool:
    """Return whether a test exists: `FILE::NAME` of pytest or Rust, `CRATE:NAME` of cargo."""
    file, _, name = test.partition("::")
    name = name.partition("[")[0].rpartition("::")[2]
    if not name:
        crate, _, name = test.partition(":")
        return bool(name) and any(f"fn {name}" in each.read_text() for each in (TOP / "crates" / crate).rglob("*.rs"))
    path = TOP / file
    return path.is_file() and re.search(rf"\b(?:def|fn) {re.escape(name)}\(", path.read_text()) is not None


def test_every_passage_about_a_fault_has_a_test() -> None:
    for page in PAGES:
        text, entries = (TOP / page).read_text(encoding="utf-8"), MAP["pages"].get(page, {})
        name = f'[pages."{page}"] of tests/promises.toml'
        assert not without_test(text, entries), f"add the first words of each passage and its tests to {name}"
        assert not without_passage(text, entries), f"{name} names passages that {page} has not: other first words?"
        assert [test for tests in entries.values() for test in tests if not exists(test)] == [], page


def test_every_page_of_the_map_exists() -> None:
    assert MAP["pages"].keys() <= set(PAGES)


def test_every_fixed_weakness_keeps_its_test() -> None:
    fixes = {weakness: test for danger in MAP["fixes"].values() for weakness, test in danger.items()}
    assert len(fixes) >= 128
    assert {weakness: test for weakness, test in fixes.items() if not exists(test)} == {}
