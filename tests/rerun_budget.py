"""Budget of runs that tests may repeat because the machine was too busy.

Tests call `warnings.warn(RepeatedRunWarning(reason))`. The warnings, also those of pytest-xdist
workers, are counted and listed at the end.
"""

from __future__ import annotations

import warnings

import pytest

MAX_RERUNS = 2
"""Maximum number of repeated runs in one call of pytest; with more, the call fails."""


class RepeatedRunWarning(UserWarning):
    """Warning of a repeated invalid run."""


_reported: list[str] = []


def pytest_warning_recorded(warning_message: warnings.WarningMessage, nodeid: str) -> None:
    """Count the repeated run."""
    if issubclass(warning_message.category, RepeatedRunWarning):
        _reported.append(f"{nodeid}: {warning_message.message}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the call if too many runs were repeated."""
    if len(_reported) > MAX_RERUNS and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the repeated runs."""
    if not _reported:
        return
    terminalreporter.section("repeated runs")
    for each in _reported:
        terminalreporter.write_line(each.partition("\n")[0])
    number = f"{len(_reported)} run{'s' if len(_reported) > 1 else ''}"
    terminalreporter.write_line(f"{number} repeated because of invalid results; at most {MAX_RERUNS} are allowed")
