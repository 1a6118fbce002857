"""Calls in threads that nobody has to wait for: what is under way in one ends with the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
POLL_S = 0.2


def in_thread(call: Callable[[], Result]) -> Future[Result]:
    """Start `call` in a thread of its own.

    A thread pool joins its threads when it is left, and again at the end of the process: Ctrl-C would wait for a router
    that does not answer.
    """
    future: Future[Result] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future


def side_by_side(call: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return the results of `call` for each item, in their order; each call has a thread of its own.

    Raises what a call raises, once all have ended. Whatever interrupts the wait itself, such as Ctrl-C, waits for none.
    """
    futures = [in_thread(partial(call, item)) for item in items]
    wait(futures)
    return [future.result() for future in futures]


def result_of(future: Future[Result], check: Callable[[], None], timeout_s: float | None = None) -> Result:
    """Wait for the result and call `check` meanwhile, which raises where the wait must end.

    `TimeoutError` after `timeout_s`.
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
