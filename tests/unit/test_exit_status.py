"""Exit statuses of the program if the machine lacks something: 2 and its name, never the 1 of a verdict."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qoslab import errors
from qoslab.errors import find_shortage


def run_qoslab(folder: Path, *arguments: str, shell: str = 'exec "$@"') -> subprocess.CompletedProcess[str]:
    """Return a finished `qoslab`; `shell` redirects and limits it."""
    command = ["bash", "-c", shell, "bash", sys.executable, "-P", "-m", "qoslab", *arguments]
    # Buffered, regardless of the caller's environment: buffered output that cannot be written fails last.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=environment
    )


@pytest.fixture
def copied_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a copy of the package without compiled files, which `ended` starts."""
    package = Path(errors.__file__).parent
    shutil.copytree(package, tmp_path / "qoslab", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    return tmp_path


@pytest.mark.long
def test_file_size_limit_truncates_no_compiled_file(copied_package: Path) -> None:
    assert run_qoslab(copied_package, "list").returncode == 0
    written = {path: path.stat().st_size for path in copied_package.rglob("cli/__pycache__/*.pyc")}
    assert written
    for path in written:
        path.unlink()
    assert run_qoslab(copied_package, "list", shell='ulimit -f 8; exec "$@"').returncode == 0
    assert not list(copied_package.rglob("cli/__pycache__/*.pyc"))
    assert run_qoslab(copied_package, "list").returncode == 0


def test_truncated_compiled_file_is_reported_and_removed(copied_package: Path) -> None:
    assert run_qoslab(copied_package, "list").returncode == 0
    (file,) = copied_package.rglob("cli/__pycache__/listing.*.pyc")
    os.truncate(file, 600)
    found = run_qoslab(copied_package, "list")
    assert (found.returncode, file.exists()) == (2, False)
    assert (
        f"found {file} truncated, possibly because of a full disk" in found.stderr
        and "run the command again" in found.stderr
    )
    assert run_qoslab(copied_package, "list").returncode == 0


@pytest.mark.sample(9)
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&- >/dev/full", ">/dev/full"])
@pytest.mark.parametrize("arguments", [("schema",), ("validate", "none.yml"), ("nonsense",)], ids=" ".join)
def test_unprintable_output_is_not_reported_as_a_verdict(
    tmp_path: Path, redirection: str, arguments: tuple[str, ...]
) -> None:
    found = run_qoslab(tmp_path, *arguments, shell=f'exec "$@" {redirection}')
    stdout_alone_matters = arguments == ("schema",) and redirection == "2>/dev/full"
    assert found.returncode == (0 if stdout_alone_matters else 2), found.stderr
    if arguments == ("schema",) and redirection == ">/dev/full":
        assert "No space left on device" in found.stderr


def test_closed_stderr_is_not_reported_as_a_verdict(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-P", "-m", "qoslab", "validate", "none.yml"]
    found = subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=writing, check=False)
    os.close(writing)
    assert found.returncode not in (0, 1, 4)


def test_thread_limit_is_reported_as_a_shortage() -> None:
    assert find_shortage(RuntimeError("can't start new thread")) == "threads, or memory for threads"
    assert find_shortage(RuntimeError("something else")) == ""
