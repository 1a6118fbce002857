"""Messages between a run and its cells: announced steps, and the user's interrupt."""

from __future__ import annotations

from typing import Protocol


class StepReceiver(Protocol):
    """Receiver of a cell's steps; `seconds` is the expected length, if known."""

    def __call__(self, cell: str, step: str, seconds: float | None = None) -> None:
        """Announce that `cell` now does `step`."""


class RunInterrupted(KeyboardInterrupt):
    """Request of the user to end the run; raised in the thread of the cell."""


def ignore_step(cell: str, step: str, seconds: float | None = None) -> None:
    """A `StepReceiver` that ignores everything."""


def parallel_cells_text(count: int) -> str:
    """Format the number of parallel cells."""
    return f"{count} cell{'' if count == 1 else 's'} at a time"
