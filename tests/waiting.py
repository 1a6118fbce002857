"""Helper that waits for a condition, which the failure names."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
PATIENCE_S = 60.0
"""Longer than any condition takes on a busy machine."""
STEP_S = 0.05


def wait_until(
    condition: Callable[[], T],
    what: str,
    seconds: float = PATIENCE_S,
    report: Callable[[], str] = str,
    step_s: float = STEP_S,
) -> T:
    """Return the first true value of a condition; `what` names it in the failure, and `report` adds details.

    A condition that can no longer become true raises `AssertionError`.
    A condition that reads a file still being written by another process may raise `ValueError` (like JSON) or
    `OSError`: it counts as false.
    """
    deadline = time.monotonic() + seconds
    failure: Exception | None = None
    while True:
        try:
            if value := condition():
                return value
            failure = None
        except (OSError, ValueError) as error:
            failure = error
        if time.monotonic() > deadline:
            details = " ".join(filter(None, (repr(failure) if failure else "", report())))
            raise AssertionError(f"waited {seconds:.0f} s in vain until {what}. {details}".rstrip()) from failure
        time.sleep(step_s)


def listens(path: Path) -> bool:
    """Return whether a process accepts connections on a Unix socket; the file exists earlier.

    `OSError` if none does.
    """
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    return True
