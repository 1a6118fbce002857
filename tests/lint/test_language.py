"""Checks of `docs/internals/style.md` that a program can make: help, metric descriptions, and plain pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from qoslab.cli import group
from qoslab.model.metrics import METRICS

TOP = Path(__file__).parents[2]

PRIVATE = re.compile(
    r"\b(mend(s|ed)?|told|anew|beside|but for|way back|one's own|likewise|meanwhile|who(m|so)?ever|what(so)?ever)\b",
    re.IGNORECASE,
)
"""Words that `docs/internals/style.md` replaces."""

RELATIVE = re.compile(r"\b(what|which|where|whose)\b", re.IGNORECASE)

PLAIN_PAGES = (
    "README.md",
    *sorted(f"docs/{page.name}" for page in (TOP / "docs").glob("*.md")),
    *(
        f"docs/reference/{name}.md"
        for name in ("api", "commands", "gallery", "glossary", "index", "metrics", "pyats", "python", "tables")
    ),
    "docs/internals/real-labs.md",
    "docs/internals/testing.md",
)
"""Pages that meet the style guide: README, every user page, and others once they are rewritten."""

USER_PAGES = 12
"""Greatest number of user pages, the index of the reference included."""

PER_THOUSAND = 8
"""Greatest number of relative words in a thousand words of a page."""


def commands(command: click.Command, name: str = "qoslab") -> Iterator[tuple[str, click.Command]]:
    """Every command below one, with its full name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            yield from commands(inner, f"{name} {each}")


def helps() -> Iterator[tuple[str, str]]:
    """The help of every command and option, with its place."""
    for name, command in commands(group):
        yield name, (command.help or "").strip()
        for option in command.params:
            if isinstance(option, click.Option) and option.help:
                yield f"{name} {option.opts[0]}", option.help


def prose(page: str) -> str:
    """The text of a Markdown page without code, tables and comments."""
    text = re.sub(r"```.*?```|<!--.*?-->|`[^`]*`", " ", page, flags=re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.startswith(("    ", "|")))


def test_help_has_full_phrases_in_plain_words() -> None:
    fragment = re.compile(r"(Of|In|To|By|For|What|How|Whether|Which|Where|Who)\b")
    found = [f"{place}: {text}" for place, text in helps() if not text[:1].isupper() or fragment.match(text)]
    assert found == []
    assert [f"{place}: {word[0]}" for place, text in helps() if (word := PRIVATE.search(text))] == []


def test_metric_descriptions_can_be_read_alone() -> None:
    texts = {name: metric.description for name, metric in METRICS.items()}
    reference = re.compile(r"(their|them|those|it|what|how|if|of)\b")
    assert {name: text for name, text in texts.items() if reference.match(text) or PRIVATE.search(text)} == {}


@pytest.mark.parametrize("page", PLAIN_PAGES)
def test_plain_page_has_few_relative_clauses_and_no_private_words(page: str) -> None:
    text = prose((TOP / page).read_text(encoding="utf-8"))
    assert PRIVATE.findall(text) == []
    assert len(RELATIVE.findall(text)) * 1000 / len(text.split()) <= PER_THOUSAND


def test_there_are_few_user_pages() -> None:
    assert len([*(TOP / "docs").glob("*.md"), TOP / "docs/reference/index.md"]) <= USER_PAGES
