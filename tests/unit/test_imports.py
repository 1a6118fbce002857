"""Imports point one way: a module imports only from those above it in the tables of docs/internals/architecture.md.

No file imports from one that imports from it, over however many files, inside functions or not.
"""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from qoslab.generate.architecture import drawing, layers

TOP = Path(__file__).parents[2]
PACKAGE = TOP / "src" / "qoslab"
PURE = (
    "errors",
    "units",
    "model",
    "ios",
    "platforms",
    "traffic",
    "capture",
    "genie",
    "verification",
    "schema",
    "simulation",
    "labs",
    "plan",
    "analysis",
)
"""No subprocess, socket, clock or event loop; files are read by `schema` and `analysis` only."""
IMPURE = {"subprocess", "socket", "asyncio", "threading", "time", "random", "signal"}
ALLOWED = {
    # The command line waits for keys and for answers, in whatever event loop it is run in.
    Path("ios/cli/terminal.py"): {"asyncio"},
    Path("ios/exec/ping.py"): {"asyncio"},
    # Genie's look-up of parsers is not safe for threads, so that there is a lock around it.
    Path("genie/parse.py"): {"threading"},
    # libpcap compiles some filters for minutes and hears no signal meanwhile.
    Path("capture/filters.py"): {"subprocess"},
}


def order() -> list[str]:
    """The modules of the tables, from the bottom layer up; those of one row from left to right."""
    page = (TOP / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
    return [name for layer in reversed(layers(page)) for name in layer.packages]


ORDER = order()


def module_of(file: Path) -> str:
    """The module of the table to which a file belongs."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def imports(file: Path) -> list[tuple[int, str]]:
    """Line and full name of everything that the file imports, inside functions too."""
    return list(_imports(file))


def _imports(file: Path) -> Iterator[tuple[int, str]]:
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
    assert {module_of(file) for file in FILES} <= set(ORDER), (
        "add the module to a table of docs/internals/architecture.md"
    )


def test_drawing_has_each_package_in_its_layer_and_numbers_the_path_of_a_run() -> None:
    tables = "### Below\n\n| `low`, `other` | x |\n\n### Above\n\n| `top` | x |\n"
    page = f"Path of a run: `top` → `low`\n\n## Packages\n\n{tables}"
    svg = drawing(page)
    texts = re.findall(r">([^<>\n]+)</text>", svg)
    assert texts == ["Above", "top", "1", "Below", "low", "2", "other"]
    with pytest.raises(ValueError, match="names gone, expected packages of the tables"):
        drawing(page.replace("`top` →", "`gone` →"))


def test_imports_point_up() -> None:
    wrong = [
        f"{file.relative_to(TOP)}:{line}: {name}"
        for file in FILES
        for line, name in imports(file)
        if name.startswith("qoslab.")
        if name.split(".")[1] in ORDER[ORDER.index(module_of(file)) + 1 :]
    ]
    assert wrong == [], "a module is above what it imports"


def test_pure_modules() -> None:
    wrong = [
        f"{file.relative_to(TOP)}:{line}: {name}"
        for file in FILES
        if module_of(file) in PURE
        for line, name in imports(file)
        if name.split(".")[0] in IMPURE - ALLOWED.get(file.relative_to(PACKAGE), set())
    ]
    assert wrong == []


RUN_FLOORS = (
    ("events", "lab", "faults", "scratch", "identity", "task", "provenance", "machine", "helper", "threads"),
    ("devices",),
    ("door",),
    ("cell",),
    ("labs",),
    ("cluster",),
    ("jobs", "progress", "costs", "attempts", "schedule", "meanwhile", "request", "told"),
    ("runner", "rescue"),
)
"""What is in the package `run`, bottom up: a file imports from its own floor and from those before it."""


def full_name(file: Path) -> str:
    """The module's name, as it is imported."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def graph(files: Iterable[Path]) -> dict[str, set[str]]:
    """By module of the package the modules that it imports from."""
    known = {full_name(file): file for file in files}
    found: dict[str, set[str]] = {}
    for own, file in known.items():
        mine = found.setdefault(own, set())
        for _, name in imports(file):
            # `from a.b import c`: c is a module, or something that module a.b defines.
            target = next((each for each in (name, name.rpartition(".")[0]) if each in known), None)
            if target is not None and target != own:
                mine.add(target)
    return found


def test_no_files_import_from_each_other() -> None:
    try:
        graphlib.TopologicalSorter(graph(FILES)).prepare()
    except graphlib.CycleError as error:
        pytest.fail("a circle: " + " -> ".join(error.args[1]))


def test_a_circle_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_imports.PACKAGE", tmp_path / "qoslab")
    for name, text in (("a", "from qoslab.b import x"), ("b", "def f():\n    from qoslab import a")):
        (tmp_path / "qoslab").mkdir(exist_ok=True)
        (tmp_path / "qoslab" / f"{name}.py").write_text(text)
    found = graph((tmp_path / "qoslab").glob("*.py"))
    assert found == {"qoslab.a": {"qoslab.b"}, "qoslab.b": {"qoslab.a"}}
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(found).prepare()


def test_floors_of_run() -> None:
    floor = {name: number for number, names in enumerate(RUN_FLOORS) for name in names}
    inside = (file.relative_to(PACKAGE / "run") for file in FILES if file.is_relative_to(PACKAGE / "run"))
    present = {Path(file.parts[0]).stem for file in inside if file.name != "__init__.py"}
    assert present == set(floor)
    wrong = [
        f"{own} imports {target}"
        for own, targets in graph(FILES).items()
        for target in targets
        if own.startswith("qoslab.run.") and target.startswith("qoslab.run.")
        if floor[own.split(".")[2]] < floor[target.split(".")[2]]
    ]
    assert not wrong


def test_only_the_virtual_lab_is_the_virtual_lab() -> None:
    """What carries out cells and talks to routers knows a lab by the protocols of `run.protocols`."""
    found = {
        str(file.relative_to(PACKAGE))
        for file in FILES
        if file.is_relative_to(PACKAGE / "run")
        if any(name.startswith("qoslab.virtual_lab.") for _, name in imports(file))
    }
    assert found and all(name.startswith("run/labs/virtual/") for name in found)


def test_nobody_imports_a_kind_of_lab_by_name() -> None:
    """What runs a kind's cells is found by the kind's name (`qoslab.run.workers.machinery`)."""
    allowed = {"qoslab.run.workers", "qoslab.run.workers.base", "qoslab.run.workers.virtual.access"}
    imported = graph(FILES)
    found = {
        f"{file.relative_to(PACKAGE)}: {target}"
        for file in FILES
        for target in imported[full_name(file)]
        if target.startswith("qoslab.run.workers") and target not in allowed
        if not file.is_relative_to(PACKAGE / "run/labs")
    }
    assert not found
