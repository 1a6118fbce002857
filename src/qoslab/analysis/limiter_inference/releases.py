"""Inference of a shaper or line from the times at which it released waiting packets.

Only departures with a packet already waiting count, since then only the limiter decides when it leaves. A line, and a
bucket with continuous tokens, release packets one by one, each after its size at the rate; a shaper with an interval
releases packets worth the interval's tokens, so that its releases begin at multiples of the interval. Delays that
follow neither rule, such as jitter or those of a line shared with packets missing from the captures, have no limiter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from qoslab.analysis.limiter_inference.bucket import Interval, missing_bytes, timestamp_resolution

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LEAST_WAITED = 20
"""Minimum number of departures of waiting packets for an inference."""
STEADY = 0.3
"""Share of the waiting time after which a bucket that was full is empty; the rate is that of the rest."""
BACK_TO_BACK = 1.6
"""Maximum ratio of a gap to the shortest gaps of its size if both are of the line."""
ON_THE_GRID = 0.04
"""Maximum error of a release, as a share of an interval or of a packet's time at the rate."""
REGULAR = 0.8
"""Minimum share of the departures that follow the limiter's rule."""
EARLY = 0.02
"""Maximum share of the departures that are earlier than possible one by one."""
MOST_OF_THE_TIME = 0.6
"""Minimum share of the waiting time in regular gaps; other causes delay packets in the rest."""
ONE_PACKET, SHARP = 2.5, 1.5
"""Maximum deviation from a straight line for releases at intervals, and maximum size of a line's release, both in
largest packets.
"""
_BETWEEN = 3
"""Maximum number of packets that are always lost between two passed packets, if these are back to back otherwise."""
_ALIKE = 20
AS_ONE = 1e-6
"""Time stamps within this number of seconds count as one instant: no shorter interval is reported."""


@dataclass(frozen=True)
class Releases:
    """A limiter that delays packets, in the same bytes as the packets."""

    rate_bps: Interval
    burst_bytes: Interval
    """Bytes released at once, beyond the rate; for a line one packet."""
    interval_s: Interval | None
    """Tc: releases begin at its multiples; None if packets left one by one."""
    waited: int
    """Number of departures behind the inference."""
    shaper: bool
    """True if it releases more at once than a line, or at intervals."""
    error: float
    """Relative error of the rate of packets of one size."""
    extra_s: float = 0.0
    """Time of a packet in addition to that of its bytes, for headers that are not counted."""
    per_byte_s: float = 0.0
    gaps_with_losses: float = 0.0
    """Share of the waiting packets with losses just before them in the order of arrival."""

    def line_times_s(self, size: Array) -> Array:
        """Return the time on the line of each packet."""
        found: Array = self.extra_s + self.per_byte_s * size if self.extra_s else 8 * size / self.rate_bps.value
        return found


@dataclass(frozen=True)
class _Departures:
    """Packets in the order of their departure."""

    in_s: Array
    out_s: Array
    size: Array
    waited: Mask
    """Mask of the packets that arrived before the previous packet left."""

    @property
    def gaps(self) -> Array:
        """Seconds since the previous departure, for packets that waited."""
        found: Array = np.diff(self.out_s)[self.waited[1:]]
        return found

    @property
    def sizes(self) -> Array:
        """Bytes of the packets that waited."""
        return self.size[self.waited]


def infer_releases(in_s: Array, out_s: Array, size: Array) -> Releases | None:
    """Infer the limiter that released packets; `out_s` is nan for lost packets.

    Return None if too few packets waited, if they left by no rule, or if losses after a line look like releases of a
    shaper.
    """
    lost = np.isnan(out_s)
    departures = _sort_by_departure(in_s[~lost], out_s[~lost], size[~lost])
    if departures is None:
        return None
    gone = np.concatenate([[0.0], np.cumsum(size[lost])])
    missed = np.maximum(0, np.diff(gone[np.searchsorted(in_s[lost], departures.in_s)]))[departures.waited[1:]]
    for found in (_infer_pacing(departures), _infer_interval_shaper(departures)):
        if found is not None and _replayed_share(departures, found) >= REGULAR:
            if found.shaper and _matches_line_with_losses(departures, missed):
                return None
            return replace(found, gaps_with_losses=float((missed > 0).mean()))
    return None


def _sort_by_departure(in_s: Array, out_s: Array, size: Array) -> _Departures | None:
    """Return packets in the order of their departure; None if too few waited."""
    order = np.argsort(out_s, kind="stable")
    in_s, out_s, size = in_s[order], out_s[order], size[order]
    least = float((out_s - in_s).min())
    waited = np.concatenate([[False], in_s[1:] + least < out_s[:-1] - AS_ONE])
    waited &= np.concatenate([[False], np.diff(out_s) > 0])
    return None if waited.sum() < LEAST_WAITED else _Departures(in_s, out_s, size, waited)


def _seconds_per_byte(departures: _Departures) -> tuple[float, float] | None:
    """Return the seconds per byte of packets that leave back to back, and its relative error; None for fewer than
    three.
    """
    gaps, sizes = departures.gaps, departures.sizes
    each = gaps / sizes
    near = np.abs(each / np.partition(each, 2)[2] - 1) <= ON_THE_GRID
    if near.sum() < 3:
        return None
    found = float(gaps[near].sum() / sizes[near].sum())
    # Consecutive gaps share a time stamp.
    runs = int((near[1:] & ~near[:-1]).sum()) + 1
    spread = float((gaps[near] - found * sizes[near]).std()) * float(np.sqrt(near.sum()))
    return found, 2 * (spread + timestamp_resolution(departures.out_s) * runs) / float(gaps[near].sum())


def _matches_line_with_losses(departures: _Departures, missed: Array) -> bool:
    """Return whether packets leave back to back, with gaps that the lost packets would have filled.

    `missed` has the bytes lost between each waiting packet and the previous one. A shaper's pauses do not depend on
    losses, and are not multiples of a packet's time.
    """
    slot = _seconds_per_byte(departures)
    if slot is None:
        return False
    gaps, sizes = departures.gaps, departures.sizes
    idle = gaps / slot[0] - sizes
    paused = idle > (BACK_TO_BACK - 1) * sizes
    if not paused.any():
        return False
    filled = idle[paused] <= missed[paused] + ON_THE_GRID * (idle[paused] + sizes[paused])
    if np.ptp(sizes) == 0:
        packets = idle[paused] / sizes[paused]
        filled &= np.abs(packets - np.rint(packets)) <= ON_THE_GRID * (packets + 1)
    return bool(filled.mean() >= REGULAR)


def infer_line_before_losses(in_s: Array, out_s: Array, size: Array) -> Releases | None:
    """Infer the line that passed packets waited for, together with packets lost after it, for which `out_s` is nan.

    A replay over all packets gives the observed departures, while a replay over the passed packets alone does not.
    """
    passed = ~np.isnan(out_s)
    departures = _sort_by_departure(in_s[passed], out_s[passed], size[passed])
    slot = None if departures is None else _seconds_per_byte(departures)
    if departures is None or slot is None:
        return None
    # Regular losses of equally large packets may leave no two packets back to back.
    for parts in range(1, _BETWEEN + 2 if np.ptp(size) == 0 else 2):
        per_byte, error = slot[0] / parts, slot[1]
        if _needs_later_losses(in_s, out_s, per_byte * size, error):
            rate, largest = 8 / per_byte, float(size.max())
            interval = Interval(rate, (1 - error) * rate, (1 + error) * rate)
            burst = Interval(largest, 0.0, 2 * largest)
            return Releases(interval, burst, None, int(departures.waited.sum()), False, error)
    return None


def _needs_later_losses(in_s: Array, out_s: Array, on_line: Array, error: float) -> bool:
    """Return whether a line explains the departures of waiting packets only if lost packets also crossed it."""
    passed = ~np.isnan(out_s)
    came = in_s + float((out_s - in_s - on_line)[passed].min())
    with_lost, since = _line_departures(came, on_line)
    without, _ = _line_departures(came[passed], on_line[passed])
    waited = (with_lost - came)[passed] > 2 * float(on_line.max())
    if waited.sum() < LEAST_WAITED:
        return False
    allowed = (float(on_line.max()) / 2 + AS_ONE + error * (with_lost - since)[passed])[waited]
    shares = [float((np.abs(out_s[passed] - left)[waited] <= allowed).mean()) for left in (with_lost[passed], without)]
    return shares[0] >= 1 - EARLY and shares[1] < REGULAR


def _line_departures(came: Array, on_line: Array) -> tuple[Array, Array]:
    """Return the departure of each packet from a line, and the start of the busy period that includes it."""
    sent = np.cumsum(on_line)
    left = sent + np.maximum.accumulate(came - sent + on_line)
    since = np.maximum.accumulate(np.where(left - came <= on_line + AS_ONE, came, -np.inf))
    return left, since


def _replayed_share(departures: _Departures, found: Releases) -> float:
    """Return the share of packets with the observed departure in a replay of the limiter over the arrivals.

    It is the smaller of the shares of all packets and of the delayed ones: if few were delayed, the others prove
    little. A bucket releases a packet when a line of its rate would have sent it, less the time in which the burst is
    sent, but not before its arrival. Departures are known to an interval and two packets.
    """
    on_line = found.line_times_s(departures.size)
    shortest = float((departures.out_s - departures.in_s - (0 if found.shaper else on_line)).min())
    came = departures.in_s + shortest
    left, busy_since = _line_departures(came, on_line)
    if found.shaper:
        left = np.maximum(came, left - 8 * found.burst_bytes.value / found.rate_bps.value)
    known = 2 * float(on_line.max()) + (0 if found.interval_s is None else found.interval_s.value)
    # The error of the rate adds up while the limiter is busy.
    drift = found.error * (left - busy_since)
    explained = np.abs(departures.out_s - left) <= known + drift + AS_ONE
    delayed = departures.out_s - came > known
    return float(min(explained.mean(), explained[delayed].mean() if delayed.any() else 1.0))


def _infer_pacing(departures: _Departures) -> Releases | None:
    """Return the limiter that releases packets one by one; None if they do not leave one by one."""
    gaps, sizes = departures.gaps, departures.sizes
    per_byte, extra, regular = _pace(gaps, sizes)
    seconds = float(gaps[regular].sum())
    early = gaps[~regular] < extra + per_byte * sizes[~regular]
    if regular.sum() < LEAST_WAITED or early.sum() > EARLY * len(gaps):
        return None
    if regular.mean() < REGULAR or seconds < MOST_OF_THE_TIME * float(gaps.sum()):
        return None
    rate = 8 * float(sizes[regular].sum()) / seconds
    residue = gaps[regular] - extra - per_byte * sizes[regular]
    # Consecutive gaps share a time stamp; those of a busy period are rounded in the same way.
    periods = int((departures.waited[1:] & ~departures.waited[:-1]).sum())
    stamps = 2 * timestamp_resolution(departures.out_s) * (periods + float((~regular).sum()))
    error = (stamps + 3 * float(residue.std()) * np.sqrt(regular.sum())) / seconds
    # Uncounted overhead of each packet makes the rate depend on the sizes.
    each = 8 / (per_byte + extra / np.array([sizes.min(), sizes.max()])) if extra else np.array([rate, rate])
    low, high = (1 - error) * min(rate, *each), (1 + error) * max(rate, *each)
    # In bytes that all take the same time, regardless of the packet's size.
    alike = (extra + per_byte * departures.size) * rate / 8 if extra else departures.size
    burst = _burst(departures.out_s, alike, Interval(rate, (1 - error) * rate, (1 + error) * rate))
    shaper = burst.value > SHARP * float(alike.max())
    # Each release may be an interval, filled by one packet, if all are equally far apart.
    equal = float(np.ptp(sizes)) == 0 and shaper
    interval = _filled_intervals(departures, gaps[regular]) if equal else None
    waited = int(departures.waited.sum())
    return Releases(Interval(rate, low, high), burst, interval, waited, shaper, error, extra, per_byte)


def _pace(gaps: Array, sizes: Array) -> tuple[float, float, Mask]:
    """Return the seconds per byte and per packet of packets that leave one by one, and the mask of gaps
    of such length.
    """
    per_byte, extra = float(np.median(gaps / sizes)), 0.0

    def regular() -> Mask:
        due = extra + per_byte * sizes
        found: Mask = np.abs(gaps - due) <= np.maximum(ON_THE_GRID * due, AS_ONE)
        return found

    found = regular()
    if not found.all() and len(np.unique(sizes)) > 1:
        kinds = [kind for kind in np.unique(sizes) if (sizes == kind).sum() >= LEAST_WAITED / 2]
        if len(kinds) > 1:
            slope, level = np.polyfit(kinds, [float(np.median(gaps[sizes == kind])) for kind in kinds], 1)
            if slope > 0 and level > 0:
                before = per_byte, extra, found
                per_byte, extra = float(slope), float(level)
                found = regular()
                if found.mean() < before[2].mean() + EARLY:
                    return before
    return per_byte, extra, found


def _filled_intervals(departures: _Departures, gaps: Array) -> Interval | None:
    """Return the interval that each packet fills; None if busy periods do not begin at common multiples of it."""
    interval = float(gaps.mean())
    error = 2 * timestamp_resolution(departures.out_s) / np.sqrt(len(gaps)) + 2 * float(gaps.std()) / np.sqrt(len(gaps))
    phases = departures.out_s[departures.waited] / interval % 1
    middle = np.angle(np.exp(2j * np.pi * phases).mean()) / (2 * np.pi)
    off = np.abs((phases - middle + 0.5) % 1 - 0.5)
    if np.quantile(off, 0.95) > ON_THE_GRID:
        return None
    return Interval(interval, interval - error, interval + error)


def _infer_interval_shaper(departures: _Departures) -> Releases | None:
    """Return the shaper with releases at multiples of an interval; None if there is no such interval."""
    out_s, size = departures.out_s, departures.size
    span = _longest(departures.waited, out_s)
    if span is None:
        return None
    begin, end = span
    begin += int(STEADY * (end - begin))
    gaps, sizes = np.diff(out_s[begin : end + 1]), size[begin + 1 : end + 1]
    line = float(np.quantile(gaps / sizes, 0.001))
    starts = np.flatnonzero(gaps > BACK_TO_BACK * line * sizes)
    if len(starts) <= 3:
        return None
    at = out_s[begin + 1 + starts] - line * sizes[starts]
    interval = _interval(at, timestamp_resolution(out_s))
    # Multiples of a packet's time on the line are gaps of packets that were dropped after it.
    if interval is None or interval.value < BACK_TO_BACK * line * float(sizes.mean()):
        return None
    # The sum of bytes before the packet at each start is a straight line, to within less than a packet.
    gone = np.cumsum(sizes)[starts] - sizes[starts]
    rate, off, bent = _slope(out_s[begin + 1 + starts], gone)
    largest = float(size.max())
    if bent > ONE_PACKET * largest:
        return None
    # Its tokens are added at the ticks, not in between.
    off_grid = (at - at[0] + interval.value / 2) % interval.value - interval.value / 2
    first = at[0] + float(np.quantile(off_grid, 0.05)) - AS_ONE
    granted = interval.value * np.floor((out_s - line * size - first) / interval.value)
    # Leftover tokens of intervals with equally large packets may add up to nearly a packet before they have an effect.
    off = max(off, 8 * largest / float(out_s[end] - out_s[begin]))
    rates = Interval(rate, rate - off, rate + off)
    burst = _burst(granted, size, rates)
    return Releases(rates, burst, interval, int(departures.waited.sum()), shaper=True, error=off / rate)


def _burst(granted_s: Array, size: Array, rate: Interval) -> Interval:
    """Return the bytes that were released at once, with an error of a packet."""
    least, burst, most = (
        float((missing_bytes(granted_s, size, each) + size).max()) for each in (rate.high, rate.value, rate.low)
    )
    return Interval(burst, least - float(size.max()), most + float(size.max()))


def _longest(waited: Mask, out_s: Array) -> tuple[int, int] | None:
    """Return the first and last index of the longest run of packets that each waited for the previous one, except for
    the first.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], waited, [False]]).astype(np.int8)))
    begins, ends = edges[::2] - 1, edges[1::2] - 1
    best = int((out_s[ends] - out_s[begins]).argmax())
    first, last = int(begins[best]), int(ends[best])
    return (first, last) if last - first >= LEAST_WAITED else None


def _slope(time_s: Array, gone: Array) -> tuple[float, float, float]:
    """Return the slope of cumulative bytes in bits per second, its error, and the deviation from a straight line in
    bytes.

    Residues are assumed to be correlated over `_ALIKE` of them.
    """
    slope, level = np.polyfit(time_s - time_s[0], gone, 1)
    residue = gone - level - slope * (time_s - time_s[0])
    free = max(len(gone) / _ALIKE, 3.0)
    error = 16 * float(residue.std()) * float(np.sqrt(12 / free)) / float(time_s[-1] - time_s[0])
    return 8 * float(slope), error, float(np.ptp(residue))


def _interval(starts: Array, stamp_s: float) -> Interval | None:
    """Return the interval with multiples at the starts; None if there is none, or if the starts do not determine it."""
    apart = np.diff(starts)
    shortest = float(np.quantile(apart, 0.02))
    for parts in range(1, 41):
        guess = shortest / parts
        if guess < 20 * AS_ONE:
            break
        # Each step corrects the estimate by all gaps that it numbers correctly.
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
            error = 2 * max(float(np.quantile(off, 0.95)), stamp_s) / float(number.sum())
            return Interval(guess, guess - error, guess + error)
    return None
