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
NOTEBOOKS = {"jupyterlab", "nbclient"}
HEAVY = NUMBERS | STATISTICS | PLOTTING | CLUSTER | DEVICES | NOTEBOOKS
"""Packages that take at least a tenth of a second to import."""

COMMAND = """\
import json, sys
from qoslab.cli import main

statuses = [main(words.split("|")) for words in sys.argv[1:]]
print("\\n" + json.dumps([statuses, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def imported_packages(folder: Path, *commands: tuple[str, ...]) -> set[str]:
    """Return the heavy packages that one process has imported after these commands."""
    words = ["|".join(each) for each in commands]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    statuses, names = json.loads(done.stdout.splitlines()[-1])
    assert set(statuses) <= {0, 1}, done.stderr + done.stdout
    return HEAVY & set(names)


def test_commands_without_a_run_import_no_heavy_library(tmp_path: Path) -> None:
    edge = str(TOP / "tests" / "goldens" / "trial" / "wan-edge.ios")
    commands: list[tuple[str, ...]] = [("list",), ("validate", EXPERIMENT)]
    for lab in ("virtual", "simulated"):
        commands += [("plan", EXPERIMENT, "--lab", lab), ("run", EXPERIMENT, "--lab", lab, "--dry-run")]
    commands.append(("try", edge, "--traffic", "voice 2, web 2", "--seconds", "1"))
    assert imported_packages(tmp_path, *commands) == set()


@pytest.mark.long
def test_simulated_run_imports_only_tables(tmp_path: Path) -> None:
    """Check the imports of a run in virtual time: Genie, which parses the output of the routers, is in another
    process.
    """
    command = ("run", EXPERIMENT, "--lab", "simulated", "--arm", "policed", "--duration", "2s")
    assert imported_packages(tmp_path, command) == NUMBERS
    assert next(tmp_path.glob("runs/*/latest/report.html")).stat().st_size > 10**6, "it has its graphs"


def imported_modules(folder: Path, *command: str) -> tuple[str, list[str]]:
    """Return the output of a command, and the names of all modules that it imports."""
    words = [sys.executable, "-X", "importtime", "-m", "qoslab", *command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return done.stdout, [line.rpartition("|")[2].strip() for line in lines]


def test_list_of_experiments_imports_no_model_of_them() -> None:
    printed, modules = imported_modules(TOP, "list", "experiments")
    assert "policing-vs-shaping" in printed
    assert not {"qoslab.model.experiment", "qoslab.lab_kinds", "qoslab.schema.document"} & {*modules}


def test_help_imports_only_the_command_line(tmp_path: Path) -> None:
    """Count modules, which does not depend on the speed of the machine as a time does."""
    printed, modules = imported_modules(tmp_path, "--help")
    assert all(f"  {name} " in printed for name in SUBCOMMANDS)
    assert {name.partition(".")[0] for name in modules} & {"pydantic", "jinja2", "ruamel", "rich", *HEAVY} == set()
    assert len([name for name in modules if name.startswith("qoslab")]) <= 12
