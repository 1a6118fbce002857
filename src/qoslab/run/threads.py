"""Calls in daemon threads: unfinished ones end with the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

from qoslab.errors import QoslabError

Result = TypeVar("Result")
POLL_S = 0.2


def start_thread(call: Callable[[], Result]) -> Future[Result]:
    """Start `call` in its own thread.

    A thread pool joins its threads when it is left, and again at the end of the process, so Ctrl-C would wait for a
    router that does not answer.
    """
    future: Future[Result] = Future()

    def run_call() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run_call, daemon=True).start()
    return future


def wait_for_result(future: Future[Result], check: Callable[[], None], timeout_s: float | None = None) -> Result:
    """Return the result; while waiting, call `check`, which raises to end the wait.

    Raise `TimeoutError` after `timeout_s`.
    """
    waited = 0.0
    while True:
        check()
        step = POLL_S if timeout_s is None else min(POLL_S, max(0.0, timeout_s - waited))
        try:
            return future.result(step)
        except FutureTimeoutError:
            waited += step
            if future.done() or (timeout_s is not None and waited >= timeout_s):
                raise


def ignore_check() -> None:
    """Do nothing: a check that never ends the wait."""


def run_parallel(
    calls: Mapping[str, Callable[[], Result]], check: Callable[[], None] = ignore_check
) -> tuple[dict[str, Result], list[QoslabError]]:
    """Return the results of calls by name, and their errors, after all have ended; each call has its own thread.

    `check` ends the wait by raising. After an interrupt, such as Ctrl-C, no call is waited for.
    """
    results: dict[str, Result] = {}
    errors: list[QoslabError] = []
    for name, future in {name: start_thread(call) for name, call in calls.items()}.items():
        try:
            results[name] = wait_for_result(future, check)
        except QoslabError as error:
            errors.append(error)
    return results, errors
