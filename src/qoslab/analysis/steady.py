"""Goodput without its warm-up, from what the receivers reported interval by interval. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd

from qoslab.analysis.classes import keys_of
from qoslab.analysis.metric_functions import Selection, metrics_of
from qoslab.analysis.missing import BUCKET_LASTED, NOT_TOGETHER, Figure, Missing
from qoslab.analysis.statistics import warm_up
from qoslab.analysis.throughput import only_pir
from qoslab.analysis.timeline import STEPS_MOST, Span, Timeline, greatest, least, reported_flows, span, usual_interval

WHOLE = 0.9
"""A last step shorter than this share of the usual interval is broken, and left out."""


def of_selection(selection: Selection) -> pd.DataFrame:
    """The flows whose intervals a selection has."""
    flows = selection.cell.tables["flows"]
    return flows[flows["traffic"].isin(selection.rows["traffic"].unique())]


@metrics_of(
    "intervals",
    "goodput.steady",
    "goodput.warm_up",
    "goodput.of_pir.steady",
    flows=of_selection,
    pir_bps=lambda selection: only_pir(selection.cell.policed, selection.cell.lines),
    policed=lambda selection: not selection.cell.policed.empty,
    bucket_bytes=lambda selection: _static_bucket(selection.cell.policed),
    dropped=lambda selection: partial(dropped_by, selection.cell.policed),
)
def steady_figures(
    intervals: pd.DataFrame,
    pir_bps: float | None = None,
    *,
    flows: pd.DataFrame | None = None,
    policed: bool = False,
    bucket_bytes: float | None = None,
    dropped: Callable[[], float | None] = lambda: None,
) -> Iterator[Figure]:
    """`goodput.steady` and `goodput.warm_up` of one cell's `intervals`; the former over what the only policer grants.

    `flows` are those that the intervals are of; without them all that was received was reported. All of them are added
    up on one time grid; where the sum is not steady even in its second half, the whole time counts.

    Where a policer is in the cell (`policed`) the first interval is warm-up: its bucket is full then, and what that
    lets through at once comes not again. In intervals of a second no statistic distinguishes it from the scatter of a
    flow at a low rate, of which a stopped sender's packets come an interval later. Where the only policer's bucket is
    known, everything until it is first as good as empty is warm-up: what is in it then is no more than a tenth of it.
    What receivers report lags behind losses, so that more may be left by it than there is: where more than the rate has
    passed it is warm-up until the policer's counters had a packet that found no tokens (`dropped`). Where the bucket
    lasts to the end all three are missing: what goes beyond the rate there is of no steady state."""
    bits, seconds = steps(reported_flows(intervals) if flows is None else flows, intervals)
    if not len(bits):
        return
    known, lasts = int(policed), False
    if pir_bps is not None and bucket_bytes is not None:
        emptied = _emptied(bits, seconds, pir_bps, bucket_bytes * 8)
        known, lasts = max(known, emptied), not emptied
    steady, trimmed = _without_warm_up(bits, seconds, known)
    if lasts and pir_bps is not None and steady * OF_PAYLOAD > pir_bps:
        emptied = _before(seconds, dropped())
        if not emptied:
            for name in ("goodput.steady", "goodput.warm_up", "goodput.of_pir.steady"):
                yield name, Missing(BUCKET_LASTED)
            return
        steady, trimmed = _without_warm_up(bits, seconds, max(known, emptied))
    yield "goodput.steady", steady
    yield "goodput.warm_up", trimmed * 1000
    if pir_bps is not None:
        yield "goodput.of_pir.steady", steady / pir_bps


def _without_warm_up(bits: np.ndarray, seconds: np.ndarray, known: int) -> tuple[float, float]:
    """Bits a second after the warm-up, and its length in seconds."""
    start = warm_up(bits / seconds, known=known).samples
    return float(bits[start:].sum() / seconds[start:].sum()), float(seconds[:start].sum())


def steps(flows: pd.DataFrame, intervals: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Bits of all `flows` together in each step of one time grid, and the steps' lengths in seconds.

    A step is as long as the usual interval. What is left at the end is a shorter step, or left out where it is broken.
    """
    found, step = span(flows), usual_interval(intervals)
    if found is None or step is None:
        return np.zeros(0), np.zeros(0)
    start, end = found
    step = max(step, (end - start) / STEPS_MOST)
    count = max(1, int((end - start) / step + 1 - WHOLE))
    edges = np.append(start + step * np.arange(count), min(start + step * count, end))
    return np.diff(Timeline.of(flows, intervals).until(edges)), np.diff(edges)


EMPTY = 0.1
"""Share of a bucket, or two packets, left in it when its credit counts as used."""
OF_PAYLOAD = 1500 / 1448
"""Bytes of a full IP packet for each of its payload, as few as there can be."""


def _static_bucket(policed: pd.DataFrame) -> float | None:
    """Bytes of the only policer's bucket; None if there are several or it is dynamic."""
    sizes = policed["police_bc_bytes"].dropna().unique()
    dynamic = policed["police_dynamic_bucket_bytes"].notna().any()
    return float(sizes[0]) if len(sizes) == 1 and not dynamic else None


_WITHOUT_TOKENS = ("exceeded", "violated")


def dropped_by(policed: pd.DataFrame) -> float | None:
    """Seconds of the traffic's start at which the policers' counters first show packets without tokens."""
    counts = (policed[f"police_{colour}_packets"].to_numpy(dtype=float, na_value=np.nan) for colour in _WITHOUT_TOKENS)
    without = np.nansum(list(counts), axis=0).tolist()
    keys, times = keys_of(policed), policed["time_s"].to_numpy(dtype=float, na_value=np.nan).tolist()
    first: dict[tuple[object, ...], float] = {}
    for key, count in zip(keys, without, strict=True):
        first[key] = min(count, first.get(key, count))
    # A reading that does not name its class is of none.
    grown = (key for key, count in zip(keys, without, strict=True) if count > first[key])
    named = {key for key in grown if not any(map(pd.isna, key))}
    rows = zip(keys, without, times, strict=True)
    return min((time for key, count, time in rows if time > 0 and key in named and count > first[key]), default=None)


def _before(seconds: np.ndarray, moment_s: float | None) -> int:
    """Return how many intervals begin before a moment, of which some are after it; else none."""
    if moment_s is None:
        return 0
    begun = int((np.concatenate([[0.0], np.cumsum(seconds)[:-1]]) < moment_s).sum())
    return begun if begun < len(seconds) else 0


def _emptied(bits: np.ndarray, seconds: np.ndarray, pir_bps: float, bucket_bits: float) -> int:
    """Number of intervals, without the last, until a full bucket is practically empty; 0 if it never is."""
    level, left = bucket_bits, max(EMPTY * bucket_bits, 2 * 1500 * 8)
    for number, (got, length) in enumerate(zip(bits[:-1], seconds[:-1], strict=True), start=1):
        level = min(bucket_bits, level + pir_bps * float(length) - float(got) * OF_PAYLOAD)
        if level <= left:
            return number
    return 0


@metrics_of("intervals", "goodput.together", flows=of_selection, whole=lambda selection: selection.whole.rows)
def together(intervals: pd.DataFrame, whole: pd.DataFrame, flows: pd.DataFrame | None = None) -> Iterator[Figure]:
    """`goodput.together`: what `flows` received in the time in which every traffic entry of the cell's `whole` ran.

    Missing if there is no such time. An entry has ended where its last interval begins: no tool reports when within
    that one its traffic did.
    """
    if intervals.empty:
        return
    shared = whole_span(whole)
    if shared is None:
        yield "goodput.together", Missing(NOT_TOGETHER)
        return
    start, end = shared
    flows = reported_flows(intervals) if flows is None else flows
    yield "goodput.together", Timeline.of(flows, intervals).between(start, end) / (end - start)


def whole_span(whole: pd.DataFrame) -> Span | None:
    """The time in which every traffic entry that has intervals in `whole` ran; None if there is none."""
    names, streams = whole["traffic"].to_numpy(dtype=object), whole["stream"].to_numpy(dtype=float, na_value=np.nan)
    starts, ends = ((whole[name] + whole["offset_s"]).to_numpy(dtype=float) for name in ("start_s", "end_s"))
    began, ended = [], []
    for name in dict.fromkeys(names):
        mine = names == name
        several = mine.sum() > len(np.unique(streams[mine]))
        began.append(least(starts[mine]))
        ended.append(greatest(starts[mine] if several else ends[mine]))
    start, end = greatest(np.array(began)), least(np.array(ended))
    return (start, end) if end > start else None
