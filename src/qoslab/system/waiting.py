"""Wait for a condition that another thread or process brings about."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
STEP_S = 0.005


def wait_until(condition: Callable[[], T], within_s: float, check: Callable[[bool], object]) -> T:
    """Return the first true value of a condition.

    After each look, `check` gets whether the time is up. It must then raise an error, and may raise one earlier.
    """
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        check(time.monotonic() > deadline)
        time.sleep(STEP_S)
    return value


def answers_hello(control: Path, within_s: float) -> bool:
    """Return whether a server answers `hello` at this Unix socket: the file exists before the server listens.

    `within_s` limits the wait for the answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.settimeout(within_s)
            client.connect(str(control))
            client.sendall(b'{"op": "hello"}\n')
            return b'"ok"' in client.recv(4096)
        except OSError:
            return False
