"""What the documents promise about faults is held by tests, and each promise says by which.

A paragraph, list item or row of a table that speaks of a fault names its tests in a comment that readers do not see:
`<!-- held by: tests/lab/test_faults.py::test_… -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGES = [
    *(TOP / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "crates/README.md", "project/README.md")),
    *sorted((TOP / "docs").rglob("*.md")),
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
HELD = re.compile(r"<!-- held by:\s(.*?) -->", re.DOTALL)
BEGINS = re.compile(r"\s*(?:[-*] |\d+\. |\|)")


def passages(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and rows of tables, each with its first line's number; no code and no headings."""
    start, passage, code = 0, "", False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        code ^= line.startswith("```")
        ends = not line.strip() or line.startswith(("#", "```", "    ")) or code
        if passage and (ends or BEGINS.match(line)):
            yield start, passage
            passage = ""
        if not ends:
            start = start if passage else number
            passage += line + "\n"


def unheld(text: str) -> list[str]:
    """Passages that speak of a fault and name no test."""
    return [
        f"{number}: {passage.strip()[:100]}"
        for number, passage in passages(text)
        if FAULT.search(HELD.sub("", passage)) and not HELD.search(passage)
    ]


def there_is(test: str) -> bool:
    """Whether a test exists, given as `FILE::NAME`: a function of Python or Rust."""
    file, _, name = test.partition("::")
    path = TOP / file
    return (
        bool(name) and path.is_file() and re.search(rf"\b(?:def|fn) {re.escape(name)}\(", path.read_text()) is not None
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_promise_about_a_fault_has_its_test(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not unheld(text), "say which test holds it: <!-- held by: FILE::TEST -->"
    # Between backquotes it is how such a comment looks.
    named = [test.strip() for found in HELD.findall(re.sub("`<!--.*?-->`", "", text)) for test in found.split(",")]
    assert [test for test in named if not there_is(test)] == []


def test_what_holds_nothing_is_found() -> None:
    text = "# When it dies\n\nIt was killed.\n- Ctrl-C ends it. <!-- held by: a::b -->\n- A full\n  disk: a full disk\n"
    assert unheld(text + "\n    killed\n\n| SIGTERM | x |\n") == [
        "3: It was killed.",
        "5: - A full\n  disk: a full disk",
        "10: | SIGTERM | x |",
    ]
    # What neither dies nor breaks may be a fault as well.
    said = "A plane has failed.\n\nIt does not answer.\n\nA cell is ended and invalid.\n\nIt is tried again.\n"
    assert [each.partition(":")[0] for each in unheld(said)] == ["1", "3", "5", "7"]
    said = "The gate fails.\n\nIt is a failed cell.\n\nIt gives up.\n\nInvalid\n\nan invalid run\n"
    assert [each.partition(":")[0] for each in unheld(said)] == ["1", "3", "5", "9"]
    assert there_is("tests/unit/test_promises.py::there_is")
    assert not there_is("tests/unit/test_promises.py::there_was")
    assert not there_is("tests/unit/no_such.py::there_is")
