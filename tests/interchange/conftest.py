"""Kinds of interchange, each tested with the other tool (`tox -e interchange`); `-- --write` writes the page's
table.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from other_tools import BEGIN, END, KINDS, PAGE, TOP, OtherTools, TestedTool, earlier_table, qoslab, tools_table

sys.path.insert(0, str(TOP / "tests/unit"))  # samples of topologies
FOUND: dict[tuple[str, str], str] = {}
"""Rows of the table by kind and tool."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tools", type=Path, help="the folder of programs of requirements/interchange.txt")
    parser.addoption("--clab-schema", type=Path, help="containerlab's schemas/clab.schema.json")
    parser.addoption("--crate-context", type=Path, help="the context of RO-Crate 1.1, where w3id.org is not in reach")
    parser.addoption("--write", action="store_true", help=f"write the table of {PAGE.relative_to(TOP)}")


@pytest.fixture(scope="session")
def tools(request: pytest.FixtureRequest) -> OtherTools:
    return OtherTools(request.config.getoption("--tools"))


@pytest.fixture
def record_tested_tool(request: pytest.FixtureRequest) -> TestedTool:
    """Record at the end of a test that a kind was tested: kind, tool, version.

    The docstring of the test is the description in the table.
    """

    def note(kind: str, tool: str, version: str) -> None:
        assert kind in KINDS
        how = " ".join((request.function.__doc__ or "").split()).removesuffix(".")
        FOUND[kind, tool] = f"| {kind} | {tool} | {version} | {how} | {datetime.now(UTC):%Y-%m-%d} |"

    return note


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a simulated run, made like a user does."""
    folder = tmp_path_factory.mktemp("run")
    qoslab("run", "policing-vs-shaping", "--lab", "simulated", "--duration", "10s", folder=folder)
    return (folder / "runs/policing-vs-shaping/latest").resolve()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if FOUND:
        print("\n" + "\n".join(FOUND.values()))
    if FOUND and session.config.getoption("--write"):
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        inside, _, after = rest.partition(END)
        lines = tools_table(earlier_table(inside) | FOUND)
        PAGE.write_text("\n".join([before + BEGIN, "", *lines, "", END + after]), encoding="utf-8")
