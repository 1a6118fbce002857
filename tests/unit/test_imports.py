"""Imports point one way: a module imports only from those above it in the table of docs/architecture.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PACKAGE = TOP / "src" / "qoslab"
HEADING = "## The Python package, bottom up; imports point upwards in this list only"

PURE = ("errors", "units", "model", "platforms", "schema", "plan")
"""No subprocess, socket, clock or event loop; files are read by `schema` only."""
IMPURE = {"subprocess", "socket", "asyncio", "threading", "time", "random", "signal"}


def order() -> list[str]:
    """The modules of the table, bottom up; those of one row from left to right."""
    text = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.split(HEADING, 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)]


ORDER = order()


def module_of(file: Path) -> str:
    """The module of the table to which a file belongs."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that the file imports, inside functions too."""
    package = ["qoslab", *file.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            # `from qoslab import units` names a module in its list.
            yield from ((node.lineno, f"{name}.{alias.name}") for alias in node.names)


FILES = sorted(file for file in PACKAGE.rglob("*.py") if file.parent != PACKAGE or file.name != "__init__.py")


def test_the_table_lists_what_there_is() -> None:
    assert len(ORDER) == len(set(ORDER))
    assert {module_of(file) for file in FILES} <= set(ORDER), "add the module to the table of docs/architecture.md"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_point_up(file: Path) -> None:
    own = ORDER.index(module_of(file))
    wrong = [
        f"{file.relative_to(TOP)}:{line}: {name}"
        for line, name in imports(file)
        if name.startswith("qoslab.") and name.split(".")[1] in ORDER[own + 1 :]
    ]
    assert not wrong, f"{ORDER[own]} is above what it imports"


@pytest.mark.parametrize("file", [file for file in FILES if module_of(file) in PURE], ids=lambda file: file.name)
def test_pure_modules(file: Path) -> None:
    assert not IMPURE & {name.split(".")[0] for _, name in imports(file)}
