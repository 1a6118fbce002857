"""Checks of `docs/internals/style.md` that a program can make: help, messages, docstrings, metrics, and pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from qoslab.cli import group
from qoslab.model.metrics import METRICS

TOP = Path(__file__).parents[2]
SHORTEST = 100
"""Bytes of a page that has text of its own, and not only an include."""

PRIVATE = re.compile(
    r"\b(mend(s|ed)?|told|anew|beside|but for|way back|one's own|likewise|meanwhile|who(m|so)?ever|what(so)?ever)\b",
    re.IGNORECASE,
)
"""Words that `docs/internals/style.md` replaces."""

RELATIVE = re.compile(r"\b(what|which|where|whose)\b", re.IGNORECASE)

PLAIN_PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(
        path.relative_to(TOP).as_posix()
        for path in (TOP / "docs").rglob("*.md")
        # The guide lists the words.
        if path.name != "style.md" and path.stat().st_size > SHORTEST
    ),
)
"""Pages that meet the style guide."""

SHIPPED = sorted((TOP / "experiments").glob("*.yml"))
"""Experiment files."""

PACKAGES = sorted(path.parent.name for path in (TOP / "src/qoslab").glob("*/__init__.py"))
"""Packages in which every docstring starts with a noun phrase or an imperative."""

UNRENAMED = "test_hostile"
"""First word of the files whose tests are not renamed yet."""

FRAGMENT = re.compile(
    r"(What|Whether|How|Where|Which|Who|Whose|When|Why|Of|In|To|By|For|With|From|As|That|Those|Its|It|They|Until)\b"
)
"""First words of a text that neither names its subject nor gives an instruction."""

USER_PAGES = 12
"""Greatest number of user pages, the index of the reference included."""

PER_THOUSAND = 8
"""Greatest number of relative words in a thousand words of a page."""

PER_THOUSAND_IN_MESSAGES = 6
"""The same, of messages and hints."""


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


def shown(value: Any, key: str = "") -> Iterator[str]:
    """The texts of an experiment file that reports print."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from shown(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from shown(each)
    elif key in ("title", "description", "reason", "explained", "fitted", "text"):
        yield value


def sources(*packages: str) -> Iterator[Path]:
    """The modules of these packages; of all packages without an argument."""
    for package in packages or ("",):
        yield from sorted((TOP / "src/qoslab" / package).rglob("*.py"))


def texts(node: ast.AST) -> Iterator[str]:
    """The text literals below a node, with `{}` for each value in them."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for each in ast.iter_child_nodes(node):
            yield from texts(each)


def messages() -> Iterator[tuple[str, str]]:
    """The texts of errors, hints and yielded findings, with their module."""
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found: ast.AST | None = None
            if isinstance(node, ast.Raise):
                found = node.exc
            elif isinstance(node, ast.Yield) or (isinstance(node, ast.keyword) and node.arg in ("hint", "message")):
                found = node.value
            if found is not None:
                yield from ((path.name, text) for text in texts(found) if len(text.split()) > 2)


def docstrings(path: Path) -> Iterator[str]:
    """The docstrings of a module: its own, and those of classes, functions, constants and fields."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        body = getattr(node, "body", None)
        for before, each in zip([None, *body], body, strict=False) if isinstance(body, list) else ():
            first = before is None and isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            )
            if (first or isinstance(before, ast.Assign | ast.AnnAssign)) and isinstance(each, ast.Expr):
                value = each.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value.strip()


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


def test_messages_have_few_relative_clauses_and_no_private_words() -> None:
    found = list(messages())
    assert [f"{place}: {text}" for place, text in found if PRIVATE.search(text)] == []
    words = sum(len(text.split()) for _, text in found)
    assert sum(len(RELATIVE.findall(text)) for _, text in found) * 1000 / words <= PER_THOUSAND_IN_MESSAGES


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_start_with_a_noun_phrase_or_an_imperative(package: str) -> None:
    found = [f"{path.name}: {text}" for path in sources(package) for text in docstrings(path) if FRAGMENT.match(text)]
    assert found == []


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_experiment_is_in_plain_words(file: Path) -> None:
    written = file.read_text(encoding="utf-8")
    comments = re.findall(r"(?:^|\s)# (.*)", written)
    words = " ".join(dict.fromkeys([*shown(yaml.safe_load(written)), *comments]))
    text = re.sub(r"\{[^{}]*\}", " ", words)
    assert PRIVATE.findall(text) == []
    assert len(RELATIVE.findall(text)) * 1000 / len(text.split()) <= PER_THOUSAND


def test_names_of_unit_tests_have_no_private_words() -> None:
    private = re.compile(r"_(mend|told|anew|beside|likewise|meanwhile|whoever|whatever)(_|$)")
    names = {
        name
        for path in (TOP / "tests/unit").glob("*.py")
        if not path.stem.startswith(UNRENAMED)
        for name in [path.stem, *re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))]
    }
    assert sorted(name for name in names if private.search(name)) == []


def test_there_are_few_user_pages() -> None:
    assert len([*(TOP / "docs").glob("*.md"), TOP / "docs/reference/index.md"]) <= USER_PAGES
