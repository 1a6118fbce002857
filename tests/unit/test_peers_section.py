"""Section of docs/internals/proof.md with the comparisons with independent peers."""

from __future__ import annotations

import sys
from pathlib import Path

TOP = Path(__file__).parents[2]
sys.path[:0] = [str(TOP / "tests/peers"), str(TOP / "tests/proof")]

from document import page_section, replace_section  # noqa: E402
from peers_section import TITLES, Comparison, earlier_sections, skipped_comparison, write_section  # noqa: E402

FOUND = {
    TITLES[0]: Comparison(
        "DPDK 1", "0 of 10 differ", ("Text.", "", "| a | b |", "|---|--:|", "| 1 | 2 |"), "2026-11-29"
    ),
    TITLES[2]: skipped_comparison("the Debian package libns3-dev is not installed"),
    TITLES[-1]: Comparison("Linux 1", "all agree", ("Last text.",), "2026-11-30"),
}


def test_written_section_is_parsed_back() -> None:
    text = write_section(FOUND)
    assert earlier_sections(text) == {
        title: FOUND.get(title, skipped_comparison("it was never selected")) for title in TITLES
    }


def test_missing_peer_is_reported_with_its_reason() -> None:
    row = f"| {TITLES[2]} |  | not run: the Debian package libns3-dev is not installed |  |"
    assert row in write_section(FOUND).splitlines()


def test_page_keeps_its_other_text() -> None:
    page = "# Deliberate mistakes\n\nText.\n"
    first = replace_section(page, write_section({}))
    assert first.startswith(page) and page_section(first) == write_section({})
    assert replace_section(first, write_section(FOUND)) == replace_section(page, write_section(FOUND))
    assert replace_section(page, "") == page and page_section(page) == ""


def test_page_has_all_comparisons() -> None:
    page = (TOP / "docs/internals/proof.md").read_text(encoding="utf-8")
    found = earlier_sections(page_section(page))
    assert list(found) == list(TITLES), "run: tox -e peers -- --write"
    assert not [title for title, each in found.items() if each.result.startswith("not run")]
