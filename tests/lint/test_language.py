"""Checks of `docs/internals/style.md` that a program can make: help, messages, metrics, pages, docstrings and names."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from qoslab.cli import command_group
from qoslab.model.metrics import METRICS

TOP = Path(__file__).parents[2]
SHORTEST = 100
"""Bytes of a page with more text than an include."""

PRIVATE = re.compile(
    r"\b(mend(s|ed)?|told|anew|beside|but for|way back|taken back|dead man|one's own|likewise|meanwhile|who(m|so)?ever"
    r"|what(so)?ever)\b",
    re.IGNORECASE,
)
"""Words that `docs/internals/style.md` replaces."""

PRIVATE_NAMES = {"told", "said", "mend", "mends", "anew", "beside", "door", "doors", "likewise", "meanwhile", "meant"}
PRIVATE_NAMES |= {"whoever", "whatever", "keeper"}
"""The same of the parts of names."""

CLAUSES = {"what", "which", "where", "whose", "who", "whom"}
"""Parts of a test's name that replace its subject."""

GUIDE = ("tests/lint/test_language.py",)
"""Files that list the words."""

RUST_COMMENT = re.compile(r"(?:^|\s)//.*", re.MULTILINE)

RUST_NAME = re.compile(r"\b(?:fn|struct|enum|trait|mod|const|static|type|let mut|let)\s+(\w+)")
"""A definition in Rust."""

CODE = ("src", "tests", "benches", "site", "hatch_build.py", "toxfile.py")
"""Folders and files of Python code."""

CONFIGURATION = ("*.toml", "*.ini", "*.yml", "*.yaml", "*.in", "Containerfile", "qoslab", ":!experiments", ":!tests")
"""Patterns of files with settings for qoslab and its tools."""

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

FRAGMENT = re.compile(
    r"(What|Whether|How|Where|Which|Who|Whose|When|Why|Of|In|To|By|For|With|From|As|That|Those|Its|It|They|Until)\b"
)
"""First words of a text that neither names its subject nor gives an instruction."""

USER_PAGES = 12
"""Greatest number of user pages, including the index of the reference."""

PER_THOUSAND = 8
"""Greatest number of relative words in a thousand words of a page."""

PER_THOUSAND_IN_MESSAGES = 6
"""Greatest number of relative words in a thousand words of messages and hints."""


def commands(command: click.Command, name: str = "qoslab") -> Iterator[tuple[str, click.Command]]:
    """Yield every command below one, with its full name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            yield from commands(inner, f"{name} {each}")


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield the help of every command and option, with its place."""
    for name, command in commands(command_group):
        yield name, (command.help or "").strip()
        for option in command.params:
            if isinstance(option, click.Option) and option.help:
                yield f"{name} {option.opts[0]}", option.help


def page_prose(page: str) -> str:
    """Return the text of a Markdown page without code, tables and comments."""
    text = re.sub(r"```.*?```|<!--.*?-->|`[^`]*`", " ", page, flags=re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.startswith(("    ", "|")))


def experiment_texts(value: Any, key: str = "") -> Iterator[str]:
    """Yield the texts of an experiment file that reports print."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from experiment_texts(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from experiment_texts(each)
    elif key in ("title", "description", "reason", "explained", "fitted", "text"):
        yield value


def sources(*packages: str) -> Iterator[Path]:
    """Yield the modules of these packages; of all packages without an argument."""
    for package in packages or ("",):
        yield from sorted((TOP / "src/qoslab" / package).rglob("*.py"))


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the text literals below a node, with `{}` for each value in them."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for each in ast.iter_child_nodes(node):
            yield from texts(each)


def messages() -> Iterator[tuple[str, str]]:
    """Yield the texts of errors, hints and yielded findings, with their module."""
    for path in sources():
        for node in nodes_of(path):
            found: ast.AST | None = None
            if isinstance(node, ast.Raise):
                found = node.exc
            elif isinstance(node, ast.Yield) or (isinstance(node, ast.keyword) and node.arg in ("hint", "message")):
                found = node.value
            if found is not None:
                yield from ((path.name, text) for text in texts(found) if len(text.split()) > 2)


@functools.cache
def docstrings(path: Path) -> tuple[str, ...]:
    """Return the docstrings of a module: of the module, and of its classes, functions, constants and fields."""
    found: list[str] = []
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    for node in pending:
        # No expressions, which most nodes are.
        pending += [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt | ast.excepthandler)]
        body = getattr(node, "body", None)
        for before, each in zip([None, *body], body, strict=False) if isinstance(body, list) else ():
            first = before is None and isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            )
            if (first or isinstance(before, ast.Assign | ast.AnnAssign)) and isinstance(each, ast.Expr):
                value = each.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found.append(value.value.strip())
    return tuple(found)


@functools.cache
def python_files() -> tuple[str, ...]:
    """Return the Python files of the repository, as paths in it, except goldens and recordings of other projects."""
    done = subprocess.run(["git", "ls-files", *CODE], cwd=TOP, capture_output=True, text=True, check=True)
    return tuple(file for file in done.stdout.splitlines() if file.endswith(".py") and "/goldens/" not in file)


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return the nodes of a file's syntax tree; walking a tree takes longer than parsing."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def literals() -> Iterator[tuple[str, str]]:
    """Yield the text literals of the package except docstrings, with their file."""
    for path in sources():
        nodes = nodes_of(path)
        bare = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
                yield path.name, node.value


def comments(path: Path) -> Iterator[str]:
    """Yield the comments of a file."""
    with path.open("rb") as file:
        yield from (token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT)


def names(path: Path) -> Iterator[str]:
    """Yield the names that a file defines: functions, classes, parameters, variables and attributes."""
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def parts(name: str) -> list[str]:
    """Return the words of a name, in lower case."""
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


@functools.cache
def rust_files() -> dict[str, str]:
    """Return the text of each Rust file of the repository, by its path in it."""
    done = subprocess.run(["git", "ls-files", "*.rs"], cwd=TOP, capture_output=True, text=True, check=True)
    return {file: (TOP / file).read_text(encoding="utf-8") for file in done.stdout.splitlines()}


def test_help_has_full_phrases_in_plain_words() -> None:
    fragment = re.compile(r"(Of|In|To|By|For|What|How|Whether|Which|Where|Who)\b")
    found = [f"{place}: {text}" for place, text in help_texts() if not text[:1].isupper() or fragment.match(text)]
    assert found == []
    assert [f"{place}: {word[0]}" for place, text in help_texts() if (word := PRIVATE.search(text))] == []


def test_metric_descriptions_can_be_read_alone() -> None:
    texts = {name: metric.description for name, metric in METRICS.items()}
    reference = re.compile(r"(their|them|those|it|what|how|if|of)\b")
    assert {name: text for name, text in texts.items() if reference.match(text) or PRIVATE.search(text)} == {}


@pytest.mark.parametrize("page", PLAIN_PAGES)
def test_plain_page_has_few_relative_clauses_and_no_private_words(page: str) -> None:
    text = page_prose((TOP / page).read_text(encoding="utf-8"))
    assert PRIVATE.findall(text) == []
    assert len(RELATIVE.findall(text)) * 1000 / len(text.split()) <= PER_THOUSAND


def test_messages_have_few_relative_clauses_and_no_private_words() -> None:
    found = list(messages())
    assert [f"{place}: {text}" for place, text in found if PRIVATE.search(text)] == []
    words = sum(len(text.split()) for _, text in found)
    assert sum(len(RELATIVE.findall(text)) for _, text in found) * 1000 / words <= PER_THOUSAND_IN_MESSAGES


def test_texts_have_no_private_words() -> None:
    found = [f"{file}: {text}" for file, text in literals() if len(text.split()) > 2 and PRIVATE.search(text)]
    assert found == []
    script = re.findall(r"^\s*(?:say|die) .*|^\s+again.*", (TOP / "qoslab").read_text(encoding="utf-8"), re.MULTILINE)
    assert [line for line in script if PRIVATE.search(line)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_start_with_a_noun_phrase_or_an_imperative(package: str) -> None:
    found = [f"{path.name}: {text}" for path in sources(package) for text in docstrings(path) if FRAGMENT.match(text)]
    assert found == []


def test_docstrings_of_tests_and_benchmarks_start_with_a_noun_phrase_or_an_imperative() -> None:
    found = [
        f"{file}: {text}"
        for file in python_files()
        if not file.startswith("src/")
        for text in docstrings(TOP / file)
        if FRAGMENT.match(text)
    ]
    assert found == []


def test_docstrings_and_comments_have_no_private_words() -> None:
    found = [
        f"{file}: {text}"
        for file in python_files()
        # Parsing and above all splitting into tokens takes long.
        if file not in GUIDE and PRIVATE.search((TOP / file).read_text(encoding="utf-8"))
        for text in (*docstrings(TOP / file), *comments(TOP / file))
        if PRIVATE.search(text)
    ]
    assert found == []


def test_comments_of_configuration_files_are_in_plain_words() -> None:
    listed = subprocess.run(["git", "ls-files", *CONFIGURATION], cwd=TOP, check=True, capture_output=True, text=True)
    found = [
        f"{file}: {comment}"
        for file in listed.stdout.splitlines()
        for comment in re.findall(r"(?:^|\s)# (.*)", (TOP / file).read_text(encoding="utf-8"))
        if PRIVATE.search(comment) or re.match(r"(what|which|whose|of)\b", comment, re.IGNORECASE)
    ]
    assert found == []


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_experiment_is_in_plain_words(file: Path) -> None:
    written = file.read_text(encoding="utf-8")
    comments = re.findall(r"(?:^|\s)# (.*)", written)
    words = " ".join(dict.fromkeys([*experiment_texts(yaml.safe_load(written)), *comments]))
    text = re.sub(r"\{[^{}]*\}", " ", words)
    assert PRIVATE.findall(text) == []
    assert len(RELATIVE.findall(text)) * 1000 / len(text.split()) <= PER_THOUSAND


def test_names_have_no_private_words() -> None:
    private = re.compile("|".join(PRIVATE_NAMES), re.IGNORECASE)
    found = {
        f"{file}: {name}"
        for file in python_files()
        if private.search(file + (TOP / file).read_text(encoding="utf-8"))
        for name in (Path(file).stem, *names(TOP / file))
        if PRIVATE_NAMES & set(parts(name))
    }
    assert sorted(found) == []


def test_rust_comments_have_no_private_words() -> None:
    found = [
        f"{file}: {comment}"
        for file, text in rust_files().items()
        for comment in RUST_COMMENT.findall(text)
        if PRIVATE.search(comment)
    ]
    assert found == []


def test_rust_names_have_no_private_words() -> None:
    found = {
        f"{file}: {name}"
        for file, text in rust_files().items()
        for name in RUST_NAME.findall(text)
        if PRIVATE_NAMES & set(parts(name))
    }
    assert sorted(found) == []


def test_names_of_tests_state_their_subject() -> None:
    found = {
        f"{file}: {name}"
        for file in python_files()
        if file.startswith("tests/")
        for name in (Path(file).stem, *re.findall(r"\bdef (test_\w+)", (TOP / file).read_text(encoding="utf-8")))
        if name.startswith("test_") and CLAUSES & set(parts(name))
    }
    assert sorted(found) == []


def test_there_are_few_user_pages() -> None:
    assert len([*(TOP / "docs").glob("*.md"), TOP / "docs/reference/index.md"]) <= USER_PAGES
