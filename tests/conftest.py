"""Fixtures and hooks of all tests."""

from __future__ import annotations

import gc
import importlib
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import levels
from qoslab.results.redaction import KNOWN
from rerun_budget import (  # noqa: F401 (hooks)
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_warning_recorded,
)

# mutmut adds its own calls between those of a program, so brackets nested to the limit need more stack than Python's
# default.
if "MUTANT_UNDER_TEST" in os.environ:
    sys.setrecursionlimit(4000)

# Where this package is, as Jupyter brings it, jsonschema has it compile 38 grammars of addresses at import, more than
# two seconds in each process, for formats that no schema of ours names. jsonschema does without it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# A shell starts background jobs with Ctrl-C ignored, and nohup ignores SIGHUP. Child processes inherit this, and a
# command that the tests interrupt would continue.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for ending in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ending) is signal.SIG_IGN:
        signal.signal(ending, signal.SIG_DFL)


MADE_UNTIL_COLLECTED = 100_000
"""Number of allocations before a collection; Python's default is 700."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write goldens instead of comparing with them")
    parser.addoption("--all", action="store_true", help="run the long level: every test, case and random example")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the level before test modules are imported: samples and Hypothesis examples depend on it."""
    # Modules and test items are never freed: collecting garbage among them takes a seventh of the time until the first
    # test.
    gc.disable()
    if config.getoption("--all"):
        os.environ[levels.VARIABLE] = "1"
    levels.load_hypothesis_profile()


def pytest_collection(session: pytest.Session) -> None:
    """Import the test modules in a worker of pytest-xdist, each worker starting with others.

    The first import of a module rewrites its assertions and stores the result, half a minute for all: the workers share
    it. A module that cannot be imported is reported by the collection.
    """
    if (worker := os.environ.get("PYTEST_XDIST_WORKER")) is None:
        return
    files = [file for each in session.config.args for file in sorted(Path(each).glob("test_*.py"))]
    start = len(files) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for file in files[start:] + files[:start]:
        # As in pytest: files of two folders may have the same name.
        folder = str(file.parent.resolve())
        sys.path.insert(0, folder)
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(file.stem)
        sys.path.remove(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the long level."""
    chosen = list(levels.select_cases(items))
    if left_out := [item for item, runs in chosen if not runs]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item, runs in chosen if runs]


def pytest_collection_finish() -> None:
    """Freeze the imported modules, so that the garbage collector visits only objects of tests: saves an eighth of the
    time.
    """
    gc.freeze()
    gc.set_threshold(MADE_UNTIL_COLLECTED, 10, 10)
    gc.enable()


def pytest_unconfigure() -> None:
    """Exempt all objects from the collections at the end of the process, which take a third of the time of the lint."""
    gc.freeze()


def _inherited_signals() -> list[str]:
    """Return the masks of blocked and ignored signals, see proc_pid_status(5)."""
    with open("/proc/thread-self/status", encoding="utf-8") as status:  # noqa: PTH123 (twice for each test)
        return [line for line in status if line.startswith(("SigBlk", "SigIgn"))]


@pytest.fixture(autouse=True)
def check_process_state() -> Iterator[None]:
    """Check what a test may change for later ones, and forget its secrets, which a process hides in all its output.

    Only root can raise the priority of a process again. Programs inherit ignored and blocked signals. One fixture for
    all: each costs a tenth of a short test.
    """
    secrets = dict(vars(KNOWN))
    priority, signals = os.getpriority(os.PRIO_PROCESS, 0), _inherited_signals()
    yield
    vars(KNOWN).update(secrets)
    assert os.getpriority(os.PRIO_PROCESS, 0) == priority, "this test changed the priority of its process"
    assert _inherited_signals() == signals, "this test changed which signals its process ignores or blocks"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file; a missing golden is a failure. `--update-goldens` writes it instead."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"there is no golden {path}; look at the text, then use --update-goldens:\n{text}"
        assert text == path.read_text(encoding="utf-8"), f"differs from {path}; --update-goldens accepts it"

    return compare


MEMORY = 500 * 2**20


@pytest.fixture
def small_machine() -> Iterator[None]:
    """Limit the process to `MEMORY` more than it already has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
