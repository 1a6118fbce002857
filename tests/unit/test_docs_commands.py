"""qoslab commands in documents: each is valid, and is run when the site is built, or excused with a reason."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from qoslab.cli import command_group

TOP = Path(__file__).parents[2]
PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "SECURITY.md", *sorted((TOP / "docs").rglob("*.md"))]
EXCUSED = {
    "CONTRIBUTING.md": "runs the checks themselves",
    "README.md": "is no page of the site; those that it names run them",
    "docs/real-routers.md": "needs a rack, or namespaces in its place",
    "docs/labs.md": "needs namespaces",
}
"""Pages with commands that are not run, with the missing requirement of the site's build."""
EXCUSED_COMMANDS = {
    ("docs/index.md", "run policing-vs-shaping --lab simulated"): "stands behind the installation of a wheel",
    ("docs/index.md", "policy"): "reads a file of the reader",
    ("docs/install.md", "run policing-vs-shaping --lab simulated"): "is the first start of a clone",
    ("docs/reference/pyats.md", "testbed -o testbed.yml"): "needs namespaces",
    ("docs/sweeps.md", "run tcp-friendly-policer --scheduler tls://192.0.2.1:8786"): "needs a cluster",
}
"""Commands that are not run, of pages whose other commands are; by their first words."""
_COMMAND = re.compile(r"^(?:    |\$ )\s*(?:\w+=\S+ )*(?:\./)?qoslab (?P<words>.*)$")
_FENCE = re.compile(r"^\s*```(?P<language>\w*)")
_LEFT_OUT = re.compile(r"…|\.\.\.|\[|^test\b")
"""Placeholders, and commands of the script of a checkout."""


def page_commands(text: str) -> Iterator[tuple[int, str, bool]]:
    """Return the line numbers of a page's commands, their arguments after `qoslab`, and whether the site runs them."""
    lines = iter(enumerate(text.splitlines(), 1))
    language: str | None = None
    for number, line in lines:
        if fence := _FENCE.match(line):
            language = fence["language"] if language is None else None
        if found := _COMMAND.match(line):
            command = found["words"]
            while command.endswith("\\"):
                command = command[:-1] + next(lines)[1]
            yield number, command, language == "console" and line.startswith("$ ")


def command_words(command: str) -> list[str]:
    """Return the words of a command, without other shell syntax."""
    words = shlex.split(command, comments=True)
    ends = [place for place, word in enumerate(words) if word in ("|", "||", "&&", "<", ">", ">>", "2>&1", "&")]
    return words[: min(ends, default=len(words))]


def commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers and words of the commands without placeholders."""
    for number, command, _ in page_commands(text):
        if not _LEFT_OUT.search(command.partition("  ")[0]):
            yield number, command_words(command)


def complaint(words: list[str]) -> str:
    """Return the usage error of the command line for these words; files need not exist."""
    context, command = click.Context(command_group), command_group
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


def unexcused_commands(page: str, text: str) -> list[str]:
    """Return the commands of a page that the site does not run without an excuse."""
    if page in EXCUSED:
        return []
    left = [command for _, command, runs in page_commands(text) if not (runs and page.startswith("docs/"))]
    excused = [start for where, start in EXCUSED_COMMANDS if where == page]
    return [command for command in left if not command.startswith(tuple(excused))]


def test_documented_commands_exist() -> None:
    found = [(page.name, *each) for page in PAGES for each in commands(page.read_text(encoding="utf-8"))]
    assert [f"{page}:{number}: {text}" for page, number, words in found if (text := complaint(words))] == []


def test_commands_are_run_when_the_site_is_built_or_excused() -> None:
    left = {str(page.relative_to(TOP)): page.read_text(encoding="utf-8") for page in PAGES}
    assert [f"{page}: {command}" for page, text in left.items() for command in unexcused_commands(page, text)] == []


def test_exemption_of_a_removed_command_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    excused = [*((page, "") for page in EXCUSED), *EXCUSED_COMMANDS]
    monkeypatch.setattr(f"{__name__}.EXCUSED", {})
    monkeypatch.setattr(f"{__name__}.EXCUSED_COMMANDS", {})
    left = {page: unexcused_commands(page, (TOP / page).read_text(encoding="utf-8")) for page, _ in excused}
    assert [(page, start) for page, start in excused if not any(each.startswith(start) for each in left[page])] == []
