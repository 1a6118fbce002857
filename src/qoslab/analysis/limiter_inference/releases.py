"""The shaper or line that packets waited for, told from when it let them go.

Only departures count before which a packet was waiting already: then nothing but the limiter decides when it leaves.
A shaper with an interval lets go what the interval's tokens pay for, so that its releases begin at multiples of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qoslab.analysis.limiter_inference.bucket import Interval, missing

Array = npt.NDArray[np.float64]

LEAST_WAITED = 20
"""Departures that others waited for, without which there is nothing to infer."""
STEADY = 0.3
"""A bucket that was full is empty behind so much of the time that packets waited; the rate is that of the rest."""
BACK_TO_BACK = 1.6
"""A gap that is no longer than so many of the shortest of its size is the line's."""
ON_THE_GRID = 0.04
"""Of an interval: how far from its multiples releases may begin."""
_ALIKE = 20
STAMP = 1e-9
"""Stamps are no finer, in s."""
AS_ONE = 1e-6
"""Stamps of one moment, in s: an interval is told to no less."""


@dataclass(frozen=True)
class Releases:
    """A limiter that delays, in bytes as they were given."""

    rate_bps: Interval
    burst_bytes: Interval
    """What it let go at once, beyond its rate: of a line one packet."""
    interval_s: Interval | None
    """Tc: releases begin at its multiples; None where packets left one by one."""
    waited: int
    """Departures that it was inferred from."""


def infer_releases(in_s: Array, out_s: Array, size: Array) -> Releases | None:
    """The limiter for packets that were not lost; None where too few waited for another one."""
    order = np.argsort(out_s, kind="stable")
    in_s, out_s, size = in_s[order], out_s[order], size[order]
    least = float((out_s - in_s).min())
    waited = np.concatenate([[False], in_s[1:] + least < out_s[:-1] - AS_ONE])
    waited &= np.concatenate([[False], np.diff(out_s) > 0])
    if waited.sum() < LEAST_WAITED:
        return None
    span = _longest(waited, out_s)
    if span is None:
        return None
    begin, end = span
    begin += int(STEADY * (end - begin))
    gaps = np.diff(out_s[begin : end + 1])
    sizes = size[begin + 1 : end + 1]
    line = _line(gaps, sizes)
    starts = np.flatnonzero(gaps > BACK_TO_BACK * line * sizes)
    grouped = len(starts) > LEAST_WAITED / 2 and len(starts) < len(gaps)
    interval = _interval(out_s[begin + 1 : end + 1][starts] - line * sizes[starts]) if len(starts) > 3 else None
    if interval is not None and not grouped and _one_by_one(gaps, sizes):
        interval = None
    # Before the packet at each such moment so much had gone, in a straight line but for what is less than a packet.
    moments = np.arange(len(gaps)) if interval is None else starts
    rate, off = _slope(out_s[begin + 1 + moments], np.cumsum(sizes)[moments] - sizes[moments])
    granted = out_s
    if interval is not None:
        # Its tokens come at the ticks, not in between.
        first = float(out_s[begin + 1 + starts[0]] - line * sizes[starts[0]])
        granted = interval.value * np.floor((out_s - line * size - first) / interval.value + ON_THE_GRID)
        # What packets of one size leave of each interval's tokens may add up to nearly a packet before it shows.
        off = max(off, 8 * float(sizes.max()) / float(out_s[end] - out_s[begin]))
    ahead = missing(granted, size, rate) + size
    burst = float(ahead.max())
    return Releases(
        Interval(rate, rate - off, rate + off),
        Interval(burst, burst - float(size.max()), burst + float(size.max())),
        interval,
        int(waited.sum()),
    )


def _longest(waited: npt.NDArray[np.bool_], out_s: Array) -> tuple[int, int] | None:
    """The longest stretch in which each packet but the first waited for the one before: its first and last number."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], waited, [False]]).astype(np.int8)))
    begins, ends = edges[::2] - 1, edges[1::2] - 1
    best = int((out_s[ends] - out_s[begins]).argmax())
    first, last = int(begins[best]), int(ends[best])
    return (first, last) if last - first >= LEAST_WAITED else None


def _slope(time_s: Array, gone: Array) -> tuple[float, float]:
    """Bits a second of bytes that had gone by then, and how wrong that may be: residues are alike over `_ALIKE`."""
    slope, level = np.polyfit(time_s - time_s[0], gone, 1)
    residue = gone - level - slope * (time_s - time_s[0])
    free = max(len(gone) / _ALIKE, 3.0)
    return 8 * float(slope), 16 * float(residue.std()) * float(np.sqrt(12 / free)) / float(time_s[-1] - time_s[0])


def _line(gaps: Array, sizes: Array) -> float:
    """Seconds a byte of packets that leave back to back."""
    return float(np.quantile(gaps / sizes, 0.001))


def _one_by_one(gaps: Array, sizes: Array) -> bool:
    """Whether each gap is the packet's size at one rate."""
    each = gaps / sizes
    return bool(np.quantile(each, 0.99) <= (1 + ON_THE_GRID) * np.quantile(each, 0.01))


def _interval(starts: Array) -> Interval | None:
    """The interval of whose multiples the starts are; None where there is none, or they tell none."""
    apart = np.diff(starts)
    shortest = float(np.quantile(apart, 0.02))
    for parts in range(1, 41):
        guess = shortest / parts
        if guess < 20 * AS_ONE:
            break
        # Each step corrects the guess by all the gaps that it numbers right.
        for _ in range(3):
            number = np.rint(apart / guess)
            if not (number >= 1).all():
                break
            guess = float(apart.sum() / number.sum())
        number = np.rint(apart / guess)
        if (number < 1).any():
            continue
        off = np.abs(apart - number * guess)
        if np.quantile(off, 0.95) <= max(ON_THE_GRID * guess, AS_ONE):
            if len(np.unique(number)) == 1 and parts > 1:
                continue
            error = 2 * max(float(np.quantile(off, 0.95)), STAMP) / float(number.sum())
            return Interval(guess, guess - error, guess + error)
    return None
