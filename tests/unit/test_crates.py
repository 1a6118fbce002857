"""Crates have layers: no cycle of files, and the folders of the engine in the order of its guide."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

CRATES = Path(__file__).parents[2] / "crates"
SOURCES = sorted(path.parent for path in CRATES.glob("*/src/lib.rs"))
ENGINE = CRATES / "qos-core" / "src"
HEADING = "//! # Floors"

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.S)
USE = re.compile(r"^\s*(pub(?:\([a-z ]+\))?\s+)?use\s+([^;]+);", re.M)
INLINE = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
DEFINITION = r"\b(?:struct|enum|fn|trait|type|const|static|mod|macro_rules!)\s+{}\b"

Module: TypeAlias = tuple[str, ...]
"""Module as its path from the root of the crate; the root is the empty one."""


def crate_file_text(file: Path) -> str:
    return STRING.sub('""', COMMENT.sub("", file.read_text(encoding="utf-8")))


def use_branches(tree: str) -> Iterator[Module]:
    """Return the paths of a `use` tree, each with the name in the last place; `a as b` keeps `a`."""
    tree = tree.strip()
    opening = tree.find("{")
    if opening < 0:
        yield tuple(part.strip() for part in tree.split(" as ")[0].split("::"))
        return
    prefix = tuple(part.strip() for part in tree[:opening].split("::") if part.strip())
    depth, start, inner = 0, 0, tree[opening + 1 : tree.rindex("}")]
    for at, character in enumerate(inner + ","):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if inner[start:at].strip():
                yield from (prefix + branch for branch in use_branches(inner[start:at]))
            start = at + 1


class Crate:
    """Modules of a crate and their imports from each other, resolved through re-exports to the definition."""

    def __init__(self, source: Path) -> None:
        self.texts: dict[Module, str] = {}
        self.files: dict[Module, str] = {}
        for file in sorted(source.rglob("*.rs")):
            parts = file.relative_to(source).with_suffix("").parts
            if parts[0] == "bin" or parts == ("main",):
                # A program is another crate, above the library.
                continue
            module = () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts
            self.texts[module] = crate_file_text(file)
            self.files[module] = str(file.relative_to(source))
        self.uses = {module: list(self._uses(module)) for module in self.texts}
        self.exports = {module: dict(self._exports(module)) for module in self.texts}

    def _absolute(self, module: Module, path: Module) -> Module | None:
        if path[0] == "crate":
            return path[1:]
        base = module
        if path[0] == "self":
            return module + path[1:]
        if path[0] == "super":
            while path and path[0] == "super":
                base, path = base[:-1], path[1:]
            return base + path
        # A child that is named without `self`.
        return module + path if module + path[:1] in self.texts else None

    def _uses(self, module: Module) -> Iterator[tuple[bool, Module]]:
        text = self.texts[module]
        for match in USE.finditer(text):
            for branch in use_branches(match[2]):
                path = self._absolute(module, branch)
                # `use super::*` in a module of tests refers to the same file.
                if path is not None and not (branch == ("super", "*") and match[0].startswith((" ", "\n "))):
                    yield match[1] is not None, path
        for match in INLINE.finditer(USE.sub("", text)):
            path = self._absolute(module, tuple(match[0].split("::")))
            if path is not None:
                yield False, path

    def _exports(self, module: Module) -> Iterator[tuple[str, Module]]:
        yield from ((path[-1], path) for public, path in self.uses[module] if public)

    def defining(self, path: Module, hops: int = 0) -> Module | None:
        """Return the module that defines the item at a path."""
        assert hops < 20, f"the re-exports of {'::'.join(path)} go in a circle"
        if path in self.texts:
            return path
        known = next((path[:length] for length in range(len(path), -1, -1) if path[:length] in self.texts), ())
        name = path[len(known)]
        if name == "*" or re.search(DEFINITION.format(name), self.texts[known]):
            return known
        exported = self.exports[known].get(name)
        return known if exported is None or exported == path else self.defining(exported, hops + 1)

    def imports(self) -> dict[Module, set[Module]]:
        """Return the dependencies of each module. A re-export is no dependency of the module that makes it."""
        needs: dict[Module, set[Module]] = {module: set() for module in self.texts}
        for module, uses in self.uses.items():
            for public, path in uses:
                found = self.defining(path)
                if found is not None and found != module and not public:
                    needs[module].add(found)
        return needs


def import_cycles(graph: dict[Module, set[Module]]) -> list[list[Module]]:
    """Return the strongly connected components of more than one node (Tarjan, 1972)."""
    index: dict[Module, int] = {}
    low: dict[Module, int] = {}
    stack: list[Module] = []
    found: list[list[Module]] = []

    def visit(node: Module) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component: list[Module] = []
            while not component or component[-1] != node:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.parent.name)
def test_files_have_no_import_cycle(source: Path) -> None:
    crate = Crate(source)
    found = [[crate.files[module] for module in circle] for circle in import_cycles(crate.imports())]
    assert not found, f"files of {source.parent.name} import each other in a circle"


def engine_layers() -> list[list[str]]:
    """Return the layers of the engine, bottom up: the numbered lines below the heading in `lib.rs`."""
    text = (ENGINE / "lib.rs").read_text(encoding="utf-8").split(HEADING, 1)[1].split("\n\n", 1)[0]
    lines = [line for line in text.splitlines() if line.startswith("//! 1. ")]
    return [re.findall(r"`(\w+)`", line.split(":", 1)[0]) for line in lines]


def test_list_of_minimum_versions_is_complete() -> None:
    listed = [name for floor in engine_layers() for name in floor]
    there = {path.stem if path.is_file() else path.name for path in ENGINE.iterdir()} - {"lib"}
    assert len(listed) == len(set(listed))
    assert set(listed) == there, "add the folder to the floors in crates/qos-core/src/lib.rs"


def test_engine_imports_downwards() -> None:
    level = {name: number for number, floor in enumerate(engine_layers()) for name in floor}
    crate = Crate(ENGINE)
    wrong = [
        f"{crate.files[module]}: {'::'.join(('crate', *other))}"
        for module, others in sorted(crate.imports().items())
        for other in sorted(others)
        if module and other and module[0] != other[0]
        if level[other[0]] >= level[module[0]] or (other[0] == "compile" and module[0] != "engine")
    ]
    assert not wrong, "a floor imports from those below it only (crates/qos-core/src/lib.rs)"
