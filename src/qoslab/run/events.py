"""Messages between a run and its cells: announced steps, and the user's interrupt."""

from __future__ import annotations

from typing import Protocol


class StepReceiver(Protocol):
    """Receiver of a cell's steps; `seconds` is the expected length, if known."""

    def __call__(self, cell: str, step: str, seconds: float | None = None) -> None:
        """Announce that `cell` now does `step`."""


class Interrupted(KeyboardInterrupt):
    """Request of the user to end the run; raised in the thread of the cell."""


def silent(cell: str, step: str, seconds: float | None = None) -> None:
    """A `StepReceiver` that ignores everything."""


def cells_at_a_time(count: int) -> str:
    """Format the number of parallel cells."""
    return f"{count} cell{'' if count == 1 else 's'} at a time"
