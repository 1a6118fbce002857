"""Fixtures: a lab of two hosts, and a folder in which a command must leave nothing behind."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import processes, temporary_folder
from labs import TWO_HOSTS

import levels
from qoslab.schema import load_sweep
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from waiting import wait_until

POLICING = Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules without tests of the chosen mark or level."""
    if not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    only_long = re.search(r"^pytestmark = .*pytest\.mark\.long", text, re.MULTILINE) and not levels.run_all_cases()
    not_quiet = config.option.markexpr == "quiet" and "pytest.mark.quiet" not in text
    return bool(only_long or not_quiet) or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the long tests first, so that none of them remains alone at the end; keep groups together."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if getattr(config.option, "loadgroup", False):
        lost = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        if lost:
            raise pytest.UsageError(f"pytest-xdist does not see the groups of {', '.join(lost)}; see pyproject.toml")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Succeed if the chosen files have no test of the chosen mark: tox calls pytest twice, with and without `quiet`."""
    if session.config.option.markexpr and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


@pytest.fixture(scope="session", autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Provide a folder for temporary files that no other pytest process has: tests check it for remains."""
    # First, because pytest uses the same variable.
    tmp_path_factory.getbasetemp()
    # A short path with room for socket names; tests/run.py removes the remaining files.
    prefix = f"t{os.environ.get('QOSLAB_TEST_RUN', '')}"
    with tempfile.TemporaryDirectory(prefix=prefix, dir="/tmp") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        yield


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a unique lab name, also with several pytest processes."""
    return f"test-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**8}"


@pytest.fixture
def lab(name: str) -> Iterator[Lab]:
    """Provide two hosts on one link."""
    with Lab.up(TWO_HOSTS, name=name) as lab:
        yield lab


@pytest.fixture
def exposed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lab, Path]]:
    """Provide the lab of policing and shaping, and its inventory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # As a user may start it.
    file = tmp_path / "a rack" / "here.yml"
    file.parent.mkdir()
    with Lab.up(load_sweep(POLICING).experiment.topology, name=name) as lab:
        expose_lab(lab, file)
        yield lab, file


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide a working folder; afterwards check that no process, lab or temporary file is left."""
    temporary = temporary_folder(tmp_path, monkeypatch)
    yield tmp_path
    wait_until(
        lambda: not processes(tmp_path), "all processes of the test have ended", report=lambda: str(processes(tmp_path))
    )
    assert list(temporary.rglob("*")) == []
    temporary.rmdir()
