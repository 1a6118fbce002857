"""Seeds of the nemesis from the command line, and what is kept of how they went."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trials
from checker import Undisturbeds
from clocks import Clocks
from commands import temporary_folder

from written import commit, today


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", default="1-20", help="which trials of the nemesis: FROM-TO or one number")
    parser.addoption("--write", action="store_true", help="keep how each went, and write tests/nemesis/tried.md")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        first, _, last = metafunc.config.getoption("--seeds").partition("-")
        metafunc.parametrize("seed", range(int(first), int(last or first) + 1))


@pytest.fixture(scope="session")
def undisturbed() -> Iterator[Undisturbeds]:
    with tempfile.TemporaryDirectory() as scratch:
        yield Undisturbeds(Path(scratch))


@pytest.fixture
def clean(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder, with a folder for temporary files beside it, and clocks that can be set."""
    for name, value in Clocks.made(tmp_path_factory.mktemp("clocks")).environment.items():
        monkeypatch.setenv(name, value)
    temporary = temporary_folder(tmp_path, monkeypatch)
    yield tmp_path
    shutil.rmtree(temporary, ignore_errors=True)


@pytest.fixture
def tell(seed: int, record_property: Callable[[str, object], None]) -> Callable[[str, str], None]:
    """To be told of the lab and of what is done in it, for what is kept of the trial."""

    def told(lab: str, fault: str) -> None:
        for name, value in (("seed", seed), ("lab", lab), ("fault", fault)):
            record_property(name, value)

    return told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Keeps what each test has told of its trial, and how it ended."""
    if not config.getoption("--write"):
        return
    found, at, day = [], commit(), today()
    for ended, outcome in (("passed", trials.WITHIN), ("failed", "outside")):
        for report in terminalreporter.getreports(ended):
            told = dict(report.user_properties)
            if "seed" in told:
                test = report.nodeid.rpartition("/")[2].partition("::")[0]
                found.append(trials.Trial(test, told["seed"], told["lab"], told["fault"], outcome, at, day))
    trials.keep(found)
