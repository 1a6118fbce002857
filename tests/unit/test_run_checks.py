"""`./qoslab test`: levels, checks before the tests, and an end that leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import wait_until

TOP = Path(__file__).parents[2]
TOX = """\
import os, pathlib, subprocess, sys, tempfile, time
words = sys.argv[1:]
if "--notest" in words:
    sys.exit(int(os.environ.get("SETUP_ENDS_WITH", "0")))
print("tox", *words, flush=True)
if "hang" in words:
    tempfile.mkdtemp()
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    pathlib.Path(os.environ["FOUND"]).write_text(f"{os.environ['QOSLAB_TEST_RUN']} {child.pid}\\n")
    time.sleep(60)
sys.exit(3)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment with stubs for tox, cargo and unshare."""
    (tmp_path / "tox").mkdir()
    (tmp_path / "tox/__init__.py").touch()
    (tmp_path / "tox/__main__.py").write_text(TOX)
    for name in ("cargo", "unshare"):
        stub(tmp_path / name, 0)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(tmp_path), "FOUND": str(tmp_path / "found")}


def stub(file: Path, status: int) -> None:
    file.write_text(f"#!/bin/sh\nexit {status}\n")
    file.chmod(0o755)


def run(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "tests/run.py"), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), "tox run"),
        (("--all",), "tox run -m all"),
        (("-e", "unit", "--", "-k", "rate", "--all"), "tox run -e unit -- -k rate --all"),
    ],
)
def test_levels_are_lists_of_tox(environment: dict[str, str], words: tuple[str, ...], asked: str) -> None:
    done = run(environment, *words)
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{asked}\n", "")


def test_unreachable_crates_are_reported_before_the_tests(environment: dict[str, str], tmp_path: Path) -> None:
    stub(tmp_path / "cargo", 101)
    done = run(environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "qoslab: nothing was tested: the crates of Cargo.lock cannot be fetched (above)\n"


def test_uncreatable_environment_is_reported_before_the_tests(
    environment: dict[str, str],
) -> None:
    done = run(environment | {"SETUP_ENDS_WITH": "1"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing was tested: the Python environments of the checks cannot be created" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_run_leaves_no_process_and_no_folder(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, str(TOP / "tests/run.py"), "hang"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        found = tmp_path / "found"
        wait_until(lambda: found.exists() and found.read_text().endswith("\n"), "tox has started a process")
        process.send_signal(number)
        assert process.wait() == 128 + number
    token, pid = found.read_text().split()
    assert list(Path("/tmp").glob(f"t{token}*")) == []
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()
