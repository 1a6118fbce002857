"""Every qoslab command that a document shows is one: its words are read as the command line reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from qoslab.cli import group

TOP = Path(__file__).parents[2]
PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "SECURITY.md", *sorted((TOP / "docs").rglob("*.md"))]
_COMMAND = re.compile(r"^(?:    |\$ )\s*(?:\w+=\S+ )*(?:\./)?qoslab (?P<words>.*)$")
_LEFT_OUT = re.compile(r"…|\.\.\.|\[|^test\b")
"""Words that stand for others, and what the script of a checkout does itself."""


def commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and words of the commands of a page, without what else the shell is told."""
    # What goes on in the next line is one command, which counts as being where it begins.
    joined = re.sub(
        r"(?:[^\n]*\\\n)+[^\n]*", lambda found: found[0].replace("\\\n", " ") + "\n" * found[0].count("\n"), text
    )
    for number, line in enumerate(joined.splitlines(), 1):
        found = _COMMAND.match(line)
        if found is None or _LEFT_OUT.search(found["words"].partition("  ")[0]):
            continue
        words = shlex.split(found["words"], comments=True)
        ends = [place for place, word in enumerate(words) if word in ("|", "||", "&&", ">", ">>", "2>&1", "&")]
        yield number, words[: min(ends, default=len(words))]


def complaint(words: list[str]) -> str:
    """What the command line would say of the words themselves; files need not be there."""
    context, command = click.Context(group), group
    try:
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            name, found, words = command.resolve_command(context, words)
            assert name is not None and found is not None
            context, command = click.Context(found, parent=context, info_name=name), found  # type: ignore[assignment]
        command.make_context(context.info_name, list(words), parent=context.parent)
    except click.exceptions.Exit:
        return ""
    except click.BadParameter as error:
        return error.format_message() if isinstance(getattr(error.param, "type", None), click.Choice) else ""
    except click.UsageError as error:
        return error.format_message()
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_commands_are_commands(page: Path) -> None:
    found = list(commands(page.read_text(encoding="utf-8")))
    assert [f"{page.name}:{number}: {said}" for number, words in found if (said := complaint(words))] == []


def test_what_is_no_command_is_found() -> None:
    text = "    ./qoslab run x --jbs 4   # c\n$ qoslab rum x | tail\n    qoslab lab dwn NAME\n    qoslab run … --jbs\n"
    assert [complaint(words).partition(" ")[0] for _, words in commands(text)] == ["No", "found", "No"]
    assert complaint(["figure", "a", "--format", "gif"]).startswith("Invalid value for '--format'")
