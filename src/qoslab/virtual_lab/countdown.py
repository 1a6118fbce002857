"""Delayed action of a virtual router, which can be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta


class ScheduledCall:
    """One delayed action, executed at most once for each `start`."""

    def __init__(self, happen: Callable[[], Awaitable[None]]) -> None:
        self._happen = happen
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Future[None] | None = None
        self.at: datetime | None = None
        """Time of the event; None: not scheduled."""

    def start(self, seconds: float) -> None:
        """Schedule the action after this time, replacing an earlier schedule."""
        self.stop()
        self.at = datetime.now(UTC) + timedelta(seconds=seconds)
        self._handle = asyncio.get_running_loop().call_later(seconds, self._fire)

    def stop(self) -> None:
        """Cancel the action."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self.at = None

    def _fire(self) -> None:
        self.stop()
        self._task = asyncio.ensure_future(self._happen())
