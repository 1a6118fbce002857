"""Times of pages over TCP, some of which may be unfinished at the end of the traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PageTimes:
    """Times of pages or answers over TCP, from the write to the arrival of the last byte.

    A page that was unfinished at the end counts as longer than all others: a value is None if it is such a page's.
    """

    finished: int
    unfinished: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None

    @property
    def total(self) -> int:
        """Number of pages that began."""
        return self.finished + self.unfinished

    @classmethod
    def from_histogram(cls, times_ns: Sequence[Sequence[int]], unfinished: int) -> PageTimes | None:
        """Return the times from those of the finished pages in ascending order, each with its number of pages; None
        without a page.
        """
        finished = sum(count for _, count in times_ns)
        total = finished + unfinished

        def quantile_ms(percent: int) -> float | None:
            rank = total * percent / 100
            return ranked_value(times_ns, rank) / 1e6 if finished and rank <= finished else None

        return cls(finished, unfinished, quantile_ms(50), quantile_ms(99), quantile_ms(100)) if total else None


def ranked_value(ordered: Sequence[Sequence[int]], rank: float) -> int:
    """Return the value of a rank, from values in ascending order, each with its number."""
    below = 0
    for value, count in ordered:
        below += count
        if below >= rank:
            return value
    return ordered[-1][0]
