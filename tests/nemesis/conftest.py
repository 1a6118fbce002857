"""Seeds of the fault injection on the command line, and fixtures of its tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from checker import UndisturbedRuns
from clocks import Clocks
from commands import temporary_folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", default="1-20", help="seeds of the fault injection: FROM-TO or one number")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        first, _, last = metafunc.config.getoption("--seeds").partition("-")
        metafunc.parametrize("seed", range(int(first), int(last or first) + 1))


@pytest.fixture(scope="session")
def undisturbed_run() -> Iterator[UndisturbedRuns]:
    with tempfile.TemporaryDirectory() as scratch:
        yield UndisturbedRuns(Path(scratch))


@pytest.fixture
def clean(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide a working folder, a folder for temporary files next to it, and clocks that can be set."""
    for name, value in Clocks.made(tmp_path_factory.mktemp("clocks")).environment.items():
        monkeypatch.setenv(name, value)
    temporary = temporary_folder(tmp_path, monkeypatch)
    yield tmp_path
    shutil.rmtree(temporary, ignore_errors=True)


@pytest.fixture
def tell(seed: int, record_property: Callable[[str, object], None]) -> Callable[[str, str], None]:
    """Record the lab and the injected fault of a trial as properties of the test in the JUnit file."""

    def record(lab: str, fault: str) -> None:
        for name, value in (("seed", seed), ("lab", lab), ("fault", fault)):
            record_property(name, value)

    return record
