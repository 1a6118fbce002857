"""Runs that tests repeat because the machine was too busy: counted, reported at the end, and limited to a few.

A test says `warnings.warn(MadeAgainWarning(why))`; pytest hands warnings of other processes on, too.
"""

from __future__ import annotations

import warnings

import pytest

MOST = 2
"""Greatest number in one call of pytest; beyond it the call fails."""


class MadeAgainWarning(UserWarning):
    """Warning of a repeated invalid run."""


_reported: list[str] = []


def pytest_warning_recorded(warning_message: warnings.WarningMessage, nodeid: str) -> None:
    """Count the repeated run."""
    if issubclass(warning_message.category, MadeAgainWarning):
        _reported.append(f"{nodeid}: {warning_message.message}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where there were too many."""
    if len(_reported) > MOST and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say so, whether it was one or many."""
    if not _reported:
        return
    terminalreporter.section("repeated runs")
    for each in _reported:
        terminalreporter.write_line(each.partition("\n")[0])
    number = f"{len(_reported)} run{'s' if len(_reported) > 1 else ''}"
    terminalreporter.write_line(f"{number} repeated because they were invalid, of {MOST} that may be")
