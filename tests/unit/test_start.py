"""Imports of commands: slow libraries are loaded only by commands that need them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from qoslab.cli import SUBCOMMANDS

TOP = Path(__file__).parents[2]
EXPERIMENT = str(TOP / "experiments" / "policing-vs-shaping.yml")

NUMBERS = {"numpy", "pandas", "pyarrow"}
STATISTICS = {"scipy", "statsmodels"}
PLOTTING = {"plotly", "matplotlib"}
CLUSTER = {"dask", "distributed", "tornado"}
DEVICES = {"ansible", "ansible_runner", "genie", "pyats", "unicon", "asyncssh", "pyroute2"}
HEAVY = NUMBERS | STATISTICS | PLOTTING | CLUSTER | DEVICES
"""Packages that take at least a tenth of a second to import."""

COMMAND = """\
import json, sys
from qoslab.cli import main

status = main(sys.argv[1:])
print("\\n" + json.dumps([status, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def imported(folder: Path, *arguments: str) -> set[str]:
    """Return the heavy packages that a command has imported in its process at its end."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    status, names = json.loads(done.stdout.splitlines()[-1])
    assert status in (0, 1), done.stderr + done.stdout
    return HEAVY & set(names)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "arguments",
    [
        ("validate", EXPERIMENT),
        ("plan", EXPERIMENT),
        ("plan", EXPERIMENT, "--lab", "simulated"),
        ("run", EXPERIMENT, "--dry-run"),
        ("run", EXPERIMENT, "--lab", "simulated", "--dry-run"),
        ("list",),
    ],
    ids=" ".join,
)
def test_listing_experiments_imports_no_heavy_library(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert imported(tmp_path, *arguments) == set()


def test_try_imports_no_heavy_library(tmp_path: Path) -> None:
    edge = str(TOP / "tests" / "goldens" / "trial" / "wan-edge.ios")
    assert imported(tmp_path, "try", edge, "--traffic", "voice 2, web 2", "--seconds", "1") == set()


def test_simulated_run_imports_only_tables(tmp_path: Path) -> None:
    """Check the imports of a run in virtual time: Genie, which parses the output of the routers, is in another
    process.
    """
    arguments = ("--lab", "simulated", "--arm", "policed", "--duration", "2s")
    assert imported(tmp_path, "run", EXPERIMENT, *arguments) == NUMBERS
    assert next(tmp_path.glob("runs/*/latest/report.html")).stat().st_size > 10**6, "it has its graphs"


def test_help_imports_only_the_command_line(tmp_path: Path) -> None:
    """Count modules, which does not depend on the speed of the machine as a time does."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "qoslab", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(f"  {name} " in done.stdout for name in SUBCOMMANDS)
    modules = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert {name.partition(".")[0] for name in modules} & {"pydantic", "jinja2", "ruamel", "rich", *HEAVY} == set()
    assert len([name for name in modules if name.startswith("qoslab")]) <= 12


def test_imported_heavy_package_is_detected(tmp_path: Path) -> None:
    (tmp_path / "heavier.py").write_text("import scipy\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "import heavier\n" + COMMAND, "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert HEAVY & set(json.loads(done.stdout.splitlines()[-1])[1]) == {"numpy", "scipy"}
