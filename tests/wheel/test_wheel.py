"""Wheel, installed into an empty environment without extras and used in an empty folder."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import uv

from levels import every_nth
from qoslab.cli.man import manual_pages
from qoslab.system.programs import OWN_PROGRAMS
from verdicts import newest_run, status_of

TOP = Path(__file__).parents[2]
UV = uv.find_uv_bin()


def run_command(argv: Sequence[str | Path], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "QOSLAB"))
    }
    return subprocess.run(
        [str(part) for part in argv], cwd=folder, env=kept | environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = run_command([UV, "build", "-q", "--wheel", "--python", sys.executable, "-o", folder, TOP], folder)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the interpreter of an environment with only the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    made = run_command([UV, "venv", "-q", "--python", sys.executable, folder / "v"], folder)
    assert made.returncode == 0, made.stderr
    found = folder / "v/bin/python"
    lock = TOP / "requirements/run.txt"
    filled = run_command([UV, "pip", "install", "-q", "--python", found, "-c", lock, wheel], folder)
    assert filled.returncode == 0, filled.stderr
    return found


def qoslab(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `qoslab` with an empty PATH except for the wheel's programs."""
    return run_command([python.parent / "qoslab", *words], folder, PATH="/usr/bin:/bin")


def test_wheel_has_the_programs_and_its_platform(wheel: Path, python: Path, tmp_path: Path) -> None:
    kind, _, machines = wheel.name.removesuffix(".whl").partition("-none-")
    assert kind == "qoslab-0.1.0-py3"
    assert re.fullmatch(rf"manylinux_2_\d+_{platform.machine()}(\.musllinux_1_1_\w+)?", machines)
    with zipfile.ZipFile(wheel) as archive:
        sizes = {name: archive.getinfo(f"qoslab/data/bin/{name}").file_size for name in OWN_PROGRAMS}
    assert max(sizes.values()) < 8_000_000, sizes  # without data that only a debugger reads
    code = "from qoslab.system.programs import *; print(*(find_own_program(name) for name in OWN_PROGRAMS), sep='\\n')"
    asked = run_command([python, "-c", code], tmp_path, PATH="/usr/bin:/bin")
    found = [Path(line) for line in asked.stdout.splitlines()]
    assert [path.name for path in found] == list(OWN_PROGRAMS), asked.stderr
    assert all(path.is_relative_to(python.parents[1]) for path in found)
    for path in found:
        assert run_command([path, "--version"], tmp_path).stdout.startswith(path.name)


def test_build_without_cargo_names_the_missing_program(tmp_path: Path) -> None:
    argv = [UV, "build", "--wheel", "--python", sys.executable, "-o", tmp_path, TOP]
    done = run_command(argv, tmp_path, PATH=str(tmp_path))
    assert done.returncode != 0 and list(tmp_path.glob("*.whl")) == []
    assert "building the wheel needs cargo" in done.stderr


def test_core_installation_is_small(python: Path) -> None:
    files = (path for path in python.parents[1].rglob("*") if path.is_file() and not path.is_symlink())
    assert sum(path.stat().st_size for path in files) < 600_000_000


def test_sdist_has_everything_for_the_wheel(tmp_path: Path) -> None:
    built = run_command([UV, "build", "-q", "--sdist", "--python", sys.executable, "-o", tmp_path, TOP], tmp_path)
    assert built.returncode == 0, built.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    folders = ("benches/rust", "crates", "experiments", "playbooks", "reports", "src")
    files = ("Cargo.toml", "Cargo.lock", "hatch_build.py")
    listed = subprocess.run(["git", "ls-files", *folders, *files], cwd=TOP, capture_output=True, text=True, check=True)
    assert set(listed.stdout.split()) <= inside
    assert not any(name.startswith(("target", ".venv", "tests")) for name in inside)


def test_wheel_has_the_data_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {name.removeprefix("qoslab/data/") for name in archive.namelist() if name.startswith("qoslab/data/")}
    folders = ("analysis", "docs/schema", "experiments", "inventory", "playbooks", "project", "reports/published")
    listed = subprocess.run(["git", "ls-files", *folders], cwd=TOP, capture_output=True, text=True, check=True)
    tracked = set(listed.stdout.split())
    assert tracked
    assert tracked <= inside
    assert {"requirements/run.txt", "requirements/tools.txt"} <= inside
    assert {"reports/report.html.j2", "reports/report.css", "reports/report.js", "ansible.cfg"} <= inside
    assert {"reports/index.html.j2", "reports/plotly/plotly-basic.min.js", "reports/plotly/LICENSE"} <= inside


def test_man_finds_the_installed_pages(python: Path, tmp_path: Path) -> None:
    program = shutil.which("man")
    assert program is not None, "no man on this machine: sudo apt-get install man-db"
    shared = python.parents[1] / "share/man"
    assert {
        file.name for file in (shared / "man1").iterdir() if file.name.startswith("qoslab")
    } == manual_pages().keys()
    # Next to the programs, without configuration.
    done = run_command([program, "--path"], tmp_path, PATH=f"{python.parent}:/usr/bin:/bin", MANPATH="")
    assert str(shared) in done.stdout.strip().split(":"), done
    done = run_command([program, "--warnings", "qoslab-run"], tmp_path, MANPATH=str(shared), MANWIDTH="100")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Run an experiment in a lab" in done.stdout


def test_wheel_omits_dependencies_that_the_simulation_does_not_need(python: Path, tmp_path: Path) -> None:
    names = "('ansible', 'pyats', 'distributed', 'asyncssh')"
    asked = f"import importlib.util as u; print([name for name in {names} if u.find_spec(name)])"
    assert run_command([python, "-c", asked], tmp_path).stdout == "[]\n"


def test_shipped_experiments_are_valid_from_any_folder(python: Path, tmp_path: Path) -> None:
    for experiment in sorted((TOP / "experiments").glob("*.yml"))[:: every_nth(7)]:
        done = qoslab(python, tmp_path, "validate", experiment.stem)
        assert done.returncode == 0, done.stderr
        assert f"the experiment {experiment.stem} is valid" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_cell_is_simulated_and_reported(python: Path, tmp_path: Path) -> None:
    words = ("--lab", "simulated", "--arm", "shaped", "--duration", "5s")
    done = qoslab(python, tmp_path, "run", "policing-vs-shaping", *words)
    assert done.returncode == status_of(newest_run(tmp_path)) in (0, 1), done.stderr
    folder = tmp_path / "runs/policing-vs-shaping/latest"
    assert json.loads((folder / "cells/shaped/1/cell.json").read_text())["valid"] is True
    assert "plotly" in (folder / "report.html").read_text()


def test_missing_extra_is_reported(python: Path, tmp_path: Path) -> None:
    done = qoslab(python, tmp_path, "lab", "list")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "qoslab: the virtual lab needs Python packages that are not installed: asyncssh, pyroute2",
        "  pip install 'qoslab-….whl[lab]', or start ./qoslab in a working copy to install everything.",
    ]


def test_doctor_lists_all_missing_requirements_of_a_virtual_run(python: Path, tmp_path: Path) -> None:
    done = qoslab(python, tmp_path, "doctor", "--json")
    assert (done.returncode, done.stderr) == (2, "")
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    assert {name: checks[name]["state"] for name in OWN_PROGRAMS} == dict.fromkeys(OWN_PROGRAMS, "ok")
    assert checks["python packages"]["state"] == "ok"
    for name in ("python packages for the virtual lab", "virtual lab"):
        assert checks[name]["state"] == "missing"
        assert checks[name]["found"].endswith("not installed: asyncssh, pyroute2")
        assert "pip install 'qoslab-….whl[lab]'" in checks[name]["what_to_do"]
