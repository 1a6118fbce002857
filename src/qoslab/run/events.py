"""What passes between a run and the cells in it: steps that are announced, and the user's wish to end."""

from __future__ import annotations

from typing import Protocol


class Tell(Protocol):
    """Where a step of a cell is announced; `seconds` is its expected length, where one is known."""

    def __call__(self, cell: str, step: str, seconds: float | None = None) -> None:
        """Announce that `cell` now does `step`."""


class Interrupted(KeyboardInterrupt):
    """The user wants the run to end; raised in the thread of the cell."""


def silent(cell: str, step: str, seconds: float | None = None) -> None:
    """A `Tell` that tells nobody."""


def cells_at_a_time(count: int) -> str:
    """For people: how many cells run side by side."""
    return f"{count} cell{'' if count == 1 else 's'} at a time"
