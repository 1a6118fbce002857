"""What passes between a run and the cells in it: steps that are announced, and the user's wish to end."""

from __future__ import annotations

from typing import Protocol


class Tell(Protocol):
    """Where a step of a cell is announced; `seconds` is its expected length, where one is known."""

    def __call__(self, cell: str, step: str, seconds: float | None = None) -> None:
        """Announce that `cell` now does `step`."""


class Interrupted(KeyboardInterrupt):
    """The user wants the run to end; raised in the thread of the cell."""
