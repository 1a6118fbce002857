"""Comparisons with independent peers (`tox -e peers`); `-- --write` writes the section of docs/internals/proof.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "proof")]

from document import page_section, replace_section  # noqa: E402
from peer_programs import TOP, VALUES, MissingPeerError  # noqa: E402
from peers_section import Comparison, comparison_values, earlier_sections, file_name, skipped_comparison, write_section  # noqa: E402

PAGE = TOP / "docs/internals/proof.md"
COMPARISONS: dict[str, Comparison] = {}
"""Results by title."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write", action="store_true", help=f"write the section of {PAGE.relative_to(TOP)}")


@pytest.fixture
def note() -> Callable[[str, Comparison], None]:
    """Record the result of a comparison for the page."""
    return COMPARISONS.__setitem__


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Skip a test whose peer is missing; its marker `comparison` has its title."""
    try:
        return (yield)
    except MissingPeerError as missing:
        marker = pyfuncitem.get_closest_marker("comparison")
        if marker is not None:
            COMPARISONS[marker.args[0]] = skipped_comparison(str(missing))
        pytest.skip(f"not run: {missing}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    for title, each in COMPARISONS.items():
        if each.each:
            VALUES.mkdir(parents=True, exist_ok=True)
            (VALUES / file_name(title)).write_text(comparison_values(title, each), encoding="utf-8")
    if COMPARISONS and session.config.getoption("--write"):
        page = PAGE.read_text(encoding="utf-8")
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        dated = {title: replace(each, date=today) for title, each in COMPARISONS.items()}
        PAGE.write_text(
            replace_section(page, write_section(earlier_sections(page_section(page)) | dated)), encoding="utf-8"
        )
