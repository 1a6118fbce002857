"""No process imports modules from the current folder."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sample_run

from qoslab.analysis import Readings
from qoslab.analysis.parallel import FEWEST
from qoslab.cli import main
from qoslab.system.programs import python_module_command

PACKAGE = Path(__file__).parents[2] / "src" / "qoslab"
ANSIBLES = "run/devices/ansible_inventory.py"
"""Executable that has Ansible's option of the same letter."""
PLANTED = ("subprocess.py", "pandas.py", "pathlib.py", "qoslab/__init__.py")
CODE = "open(__file__ + '.ran', 'w').close(); raise SystemExit(9)\n"


@pytest.fixture
def malicious_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide a malicious current folder, and check that none of its modules has run after the test."""
    folder = tmp_path / "received"
    for name in PLANTED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(CODE)
    monkeypatch.chdir(folder)
    yield folder
    assert list(folder.rglob("*.ran")) == []


def test_planted_modules_could_be_imported(tmp_path: Path) -> None:
    (tmp_path / "pathlib.py").write_text(CODE)
    words = python_module_command("ipykernel_launcher", "--version")
    assert words[1] == "-P"
    del words[1]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode == 9
    assert (tmp_path / "pathlib.py.ran").exists()


def test_report_with_helpers_imports_no_planted_module(
    malicious_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = [{"name": name} for name in ("policed", "shaped", *(f"policed{number}" for number in range(FEWEST - 2)))]
    experiment = {key: value for key, value in sample_run.EXPERIMENT.items() if key != "compare"}
    made = sample_run.make_run(tmp_path / "runs", experiment={**experiment, "arms": arms}, published=())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    helped, take = [], Readings.take

    def count_and_take(readings: Readings, *answer: Any) -> None:
        helped.append(answer)
        take(readings, *answer)

    monkeypatch.setattr(Readings, "take", count_and_take)
    assert main(["report", str(made.path)]) == 0
    assert helped


@pytest.mark.long
def test_run_with_workers_imports_no_planted_module(malicious_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--lab", "simulated", "--duration", "2s", "--arm", "policed", "--scheduler", "local"]
    main(["run", "policing-vs-shaping", *words])
    assert '"valid": true' in next(malicious_folder.glob("runs/*/latest/manifest.json")).read_text(), (
        capsys.readouterr().err
    )


def test_notebook_imports_no_planted_module(malicious_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[list[str], dict[str, str], Path]] = []
    monkeypatch.setattr(os, "execve", lambda _, words, environment: started.append((words, environment, Path.cwd())))
    monkeypatch.setenv("QOSLAB_RUN", "x")
    assert main(["notebook", "policing-vs-shaping", "--no-browser"]) == 0
    ((words, environment, folder),) = started
    assert words[:5] == python_module_command(
        "jupyterlab", str(malicious_folder / "analysis/policing-vs-shaping.ipynb")
    )
    assert folder.samefile(sys.prefix), "there are no configuration files of Jupyter but the environment's own"
    # As Jupyter starts it, in a folder with planted modules.
    kernel = [sys.executable, "-m", "ipykernel_launcher", "--version"]
    subprocess.run(kernel, env=environment, check=True, capture_output=True)


def test_every_process_start_uses_the_safe_form() -> None:
    found = {
        file.relative_to(PACKAGE).as_posix(): number
        for file in PACKAGE.rglob("*.py")
        if '"-m"' in file.read_text(encoding="utf-8")
        if (
            number := sum(isinstance(node, ast.Constant) and node.value == "-m" for node in ast.walk(syntax_tree(file)))
        )
    }
    assert found == {"system/programs.py": 1, ANSIBLES: 1}


def syntax_tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))
