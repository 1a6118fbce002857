"""Received bytes of a cell's streams over time, on one time axis: seconds since the start of the cell's traffic. Pure.

Each stream received its bytes between its start and its end. Bytes that its tool reports by interval are placed in that
interval; the others are spread evenly over the time without a report. Time without a report is never assumed to be
without bytes, and the bytes of all pieces of a stream add up to its value in the table `flows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from qoslab.results.columns import Columns, once

_STREAM = ["traffic", "stream"]
_EPSILON = 1e-9
"""Rounding error in seconds, for clocks with a resolution of nanoseconds at best."""

Span = tuple[float, float]
"""First and last second."""
Piece = tuple[float, float, float]
"""First and last second, and bits."""


@once
def spans(flows: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Return start and end of each stream of `flows`, in their order; nan for a stream that did not last."""
    start, seconds = flows["offset_s"], flows["seconds"]
    start = np.where(np.isnan(start), 0.0, start)
    lasted = seconds > 0
    return np.where(lasted, start, np.nan), np.where(lasted, start + seconds, np.nan)


@once
def span(flows: Columns) -> Span | None:
    """Return the time from the first start to the last end of streams; None if none lasted."""
    start, end = spans(flows)
    first, last = known_minimum(start), greatest(end)
    return None if math.isnan(first) else (first, last)


def common_span(flows: Columns) -> Span | None:
    """Return the time in which all streams ran; None if there is none."""
    start, end = spans(flows)
    first, last = greatest(start), known_minimum(end)
    return (first, last) if last - first > _EPSILON else None


def known_minimum(values: np.ndarray) -> float:
    """Return the minimum of the values that are not nan; nan if there are none."""
    return float(np.fmin.reduce(values, initial=np.nan))


def greatest(values: np.ndarray) -> float:
    """Return the maximum of the values that are not nan; nan if there are none."""
    return float(np.fmax.reduce(values, initial=np.nan))


@once
def usual_interval(intervals: Columns) -> float | None:
    """Return the usual interval in seconds, from the entry with the longest intervals; None if there are none."""
    lengths, names = intervals["end_s"] - intervals["start_s"], intervals["traffic"]
    real = lengths > _EPSILON
    lengths, names = lengths[real], names[real]
    return max((float(np.median(lengths[names == name])) for name in dict.fromkeys(names)), default=None)


@dataclass(frozen=True)
class Timeline:
    """Pieces of time with a constant bit rate in each."""

    starts: np.ndarray
    ends: np.ndarray
    bits: np.ndarray

    @classmethod
    def from_flows(cls, flows: Columns, intervals: Columns | None) -> Timeline:
        """Build the timeline of the streams of `flows` in one cell; `intervals` may have those of others too."""
        return cls._from_pieces([piece for pieces in _pieces_by_stream(flows, intervals) for piece in pieces])

    @classmethod
    def stream_timelines(cls, flows: Columns, intervals: Columns | None) -> list[Timeline]:
        """Build the timeline of each stream of `flows`, in their order."""
        return [cls._from_pieces(pieces) for pieces in _pieces_by_stream(flows, intervals)]

    @classmethod
    def _from_pieces(cls, pieces: list[Piece]) -> Timeline:
        starts, ends, bits = np.array(pieces, dtype=float).reshape(-1, 3).T
        return cls(starts, ends, bits)

    def bits_until(self, times: np.ndarray) -> np.ndarray:
        """Return the bits received up to each of the times."""
        if not len(self.bits):
            return np.zeros(len(times))
        rates = self.bits / (self.ends - self.starts)
        moments, place = np.unique(np.concatenate([self.starts, self.ends]), return_inverse=True)
        changes = np.bincount(place, np.concatenate([rates, -rates]))
        come = np.concatenate([[0.0], np.cumsum(np.cumsum(changes)[:-1] * np.diff(moments))])
        found: np.ndarray = np.interp(times, moments, come)
        return found

    def bits_between(self, start: float, end: float) -> float:
        """Return the bits received in a time span."""
        come = self.bits_until(np.array([start, end]))
        return float(come[1] - come[0])


@once
def _pieces_by_stream(flows: Columns, intervals: Columns | None) -> list[list[Piece]]:
    """Return the pieces of each stream; none for a stream that did not last."""
    reported: list[np.ndarray] = [np.zeros(0)] * 3
    found: dict[tuple[object, object], list[int]] = {}
    if intervals is not None and len(intervals):
        reported = [intervals[name] for name in ("start_s", "end_s", "bytes")]
        for place, stream in enumerate(_streams(intervals)):
            found.setdefault(stream, []).append(place)
    pieces: list[list[Piece]] = []
    for stream, start, end, bits in zip(_streams(flows), *spans(flows), flows["bytes"] * 8, strict=True):
        places = np.array(found.get(stream, ()), dtype=int)
        pieces.append(list(_pieces([column[places] for column in reported], start, end, bits)) if end > start else [])
    return pieces


def _streams(table: Columns) -> Iterator[tuple[object, object]]:
    """Return the traffic and the stream number of each row."""
    traffic, stream = (table[name].tolist() for name in _STREAM)
    return zip(traffic, stream, strict=True)


def _pieces(reported: Sequence[np.ndarray], start: float, end: float, bits: float) -> Iterator[Piece]:
    """Return the pieces of a stream that received `bits` from `start` to `end`; `reported` are its
    intervals' columns.
    """
    begins, stops, sizes = reported
    # A report may extend to the next full second after the last byte.
    begins, stops = (np.clip(start + each, start, end) for each in (begins, stops))
    real = stops - begins > _EPSILON
    found = sorted(zip(begins[real], stops[real], sizes[real] * 8, strict=True))
    rest = bits - sum(each for _, _, each in found)
    gaps = list(_unreported_spans(found, start, end)) if rest > 0 else []
    # If there are no gaps between reports, the arrival times of the rest are unknown.
    gaps = gaps or ([(start, end)] if rest > 0 else [])
    length = sum(high - low for low, high in gaps)
    yield from found
    yield from ((low, high, rest * (high - low) / length) for low, high in gaps)


def _unreported_spans(found: list[Piece], start: float, end: float) -> Iterator[Span]:
    """Return the times from `start` to `end` without a report."""
    reached = start
    for low, high, _ in found:
        if low - reached > _EPSILON:
            yield reached, low
        reached = max(reached, high)
    if end - reached > _EPSILON:
        yield reached, end


def step_edges(found: Span, step: float | None) -> np.ndarray:
    """Return the edges of equal steps over a span, each at least as long as `step`; a single step if that is None."""
    start, end = found
    steps = 1 if step is None else max(1, min(STEPS_MOST, int((end - start) / step + _EPSILON)))
    return np.linspace(start, end, steps + 1)


STEPS_MOST = 2**16
"""Maximum number of steps of a grid: eighteen hours in steps of a second."""
