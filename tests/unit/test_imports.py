"""Imports point one way: a module imports only from those above it in the tables of docs/internals/architecture.md.

No import cycle exists between files, of any length, inside functions or not.
"""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from syntax import statements

from qoslab.generate.architecture import draw_architecture, read_layers

TOP = Path(__file__).parents[2]
PACKAGE = TOP / "src" / "qoslab"
PURE = (
    "errors",
    "model",
    "ios",
    "platforms",
    "traffic",
    "capture",
    "genie",
    "verification",
    "schema",
    "simulation",
    "lab_kinds",
    "plan",
    "analysis",
)
"""Modules without subprocess, socket, clock or event loop; only `schema` and `analysis` read files."""
IMPURE = {"subprocess", "socket", "asyncio", "threading", "time", "random", "signal"}
ALLOWED = {
    # The command line waits for keys and answers, in any event loop.
    Path("ios/cli/terminal.py"): {"asyncio"},
    Path("ios/exec/ping.py"): {"asyncio"},
    # Genie's parser lookup is not thread-safe, so a lock protects it.
    Path("genie/show_parser.py"): {"threading"},
    # libpcap compiles some filters for minutes, and ignores signals in the meantime.
    Path("capture/filters.py"): {"subprocess"},
    # Captures are read by a program of `crates/`, cells by several processes.
    Path("capture/packet_tables.py"): {"subprocess"},
    Path("analysis/parallel.py"): IMPURE,
}


def module_order() -> list[str]:
    """Return the modules of the tables, from the bottom layer up; those of one row from left to right."""
    page = (TOP / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
    return [name for layer in reversed(read_layers(page)) for name in layer.packages]


ORDER = module_order()


def table_module(file: Path) -> str:
    """Return the module of the table to which a file belongs."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def imports(file: Path) -> list[tuple[int, str]]:
    """Return line and full name of every import of the file, also inside functions."""
    return list(_imports(file))


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    package = ["qoslab", *file.relative_to(PACKAGE).parent.parts]
    for node in statements(file.read_text(encoding="utf-8")):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            # `from qoslab import units` names a module in its list.
            yield from ((node.lineno, f"{name}.{alias.name}") for alias in node.names)


FILES = sorted(file for file in PACKAGE.rglob("*.py") if file.parent != PACKAGE or file.name != "__init__.py")


def test_table_lists_every_package() -> None:
    assert len(ORDER) == len(set(ORDER))
    assert {table_module(file) for file in FILES} <= set(ORDER), (
        "add the module to a table of docs/internals/architecture.md"
    )


def test_drawing_has_each_package_in_its_layer_and_numbers_the_path_of_a_run() -> None:
    tables = "### Below\n\n| `low`, `other` | x |\n\n### Above\n\n| `top` | x |\n"
    page = f"Path of a run: `top` → `low`\n\n## Packages\n\n{tables}"
    svg = draw_architecture(page)
    texts = re.findall(r">([^<>\n]+)</text>", svg)
    assert texts == ["Above", "top", "1", "Below", "low", "2", "other"]
    with pytest.raises(ValueError, match="names gone, expected packages that are in the tables"):
        draw_architecture(page.replace("`top` →", "`gone` →"))


def test_imports_follow_the_layers() -> None:
    wrong = [
        f"{file.relative_to(TOP)}:{line}: {name}"
        for file in FILES
        for line, name in imports(file)
        if name.startswith("qoslab.")
        if name.split(".")[1] in ORDER[ORDER.index(table_module(file)) + 1 :]
    ]
    assert wrong == [], "a module is above what it imports"


def test_pure_modules_have_no_side_effects() -> None:
    wrong = [
        f"{file.relative_to(TOP)}:{line}: {name}"
        for file in FILES
        if table_module(file) in PURE
        for line, name in imports(file)
        if name.split(".")[0] in IMPURE - ALLOWED.get(file.relative_to(PACKAGE), set())
    ]
    assert wrong == []


RUN_FLOORS = (
    (
        "events",
        "protocols",
        "faults",
        "scratch",
        "identity",
        "task",
        "provenance",
        "machine",
        "helper_process",
        "threads",
    ),
    ("devices",),
    ("real",),
    ("cell",),
    ("workers",),
    ("cluster",),
    ("jobs", "progress_lines", "costs", "attempts", "schedule", "background_analysis", "request", "reporter"),
    ("runner",),
)
"""Layers of the package `run`, bottom up: a file imports from its layer and those before it."""


def full_name(file: Path) -> str:
    """Return the full name of the module in imports."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def graph(files: Iterable[Path]) -> dict[str, set[str]]:
    """Return the imports of each module of the package."""
    known = {full_name(file): file for file in files}
    found: dict[str, set[str]] = {}
    for own, file in known.items():
        mine = found.setdefault(own, set())
        for _, name in imports(file):
            # `from a.b import c`: c is a module, or a name that module a.b defines.
            target = next((each for each in (name, name.rpartition(".")[0]) if each in known), None)
            if target is not None and target != own:
                mine.add(target)
    return found


def test_no_files_import_from_each_other() -> None:
    try:
        graphlib.TopologicalSorter(graph(FILES)).prepare()
    except graphlib.CycleError as error:
        pytest.fail("a circle: " + " -> ".join(error.args[1]))


def test_imports_of_run_follow_its_layers() -> None:
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


def test_only_one_module_imports_the_virtual_lab() -> None:
    """Workers and routers know a lab only by the protocols of `run.protocols`, and any data plane by its client."""
    found = {
        str(file.relative_to(PACKAGE))
        for file in FILES
        if file.is_relative_to(PACKAGE / "run")
        if any(
            name.startswith("qoslab.virtual_lab.") and not name.startswith("qoslab.virtual_lab.control")
            for _, name in imports(file)
        )
    }
    assert found and all(name.startswith("run/workers/virtual/") for name in found)


def test_kinds_of_labs_are_not_imported_by_name() -> None:
    """Check the registry: the workers of a kind of lab are found by its name (`qoslab.run.workers.lab_machinery`)."""
    allowed = {"qoslab.run.workers", "qoslab.run.workers.base", "qoslab.run.workers.virtual.access"}
    imported = graph(FILES)
    found = {
        f"{file.relative_to(PACKAGE)}: {target}"
        for file in FILES
        for target in imported[full_name(file)]
        if target.startswith("qoslab.run.workers") and target not in allowed
        if not file.is_relative_to(PACKAGE / "run/workers")
    }
    assert not found


def part_imports(package: str) -> dict[str, set[str]]:
    """Return the imports of each part of a package, a module or a package in it."""
    found: dict[str, set[str]] = {}
    for own, targets in graph(FILES).items():
        for target in targets:
            if own.startswith(f"{package}.") and target.startswith(f"{package}."):
                one, other = (name[len(package) + 1 :].split(".")[0] for name in (own, target))
                found.setdefault(one, set()).update({other} - {one})
    return found


@pytest.mark.parametrize("package", ["qoslab.ios", "qoslab.run", "qoslab.exchange", "qoslab.schema", "qoslab.analysis"])
def test_parts_of_a_package_import_in_one_direction(package: str) -> None:
    try:
        graphlib.TopologicalSorter(part_imports(package)).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


TOP_MODULES = {"__init__.py", "__main__.py", "api.py", "conformance.py", "errors.py"}
"""Entry points, and the exceptions of all packages; every other file belongs to a package."""


def test_top_of_the_package_has_only_entry_points() -> None:
    assert {file.name for file in PACKAGE.glob("*.py")} == TOP_MODULES
