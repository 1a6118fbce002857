"""Goodput without its warm-up, from the receivers' reports by interval. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from qoslab.analysis.classes import class_keys
from qoslab.analysis.metric_functions import Selection, register_metrics
from qoslab.analysis.missing import BUCKET_LASTED, NOT_TOGETHER, MetricValue, Missing
from qoslab.analysis.statistics import warm_up
from qoslab.analysis.throughput import single_policer_rate
from qoslab.analysis.timeline import STEPS_MOST, Span, Timeline, greatest, known_minimum, span, usual_interval
from qoslab.results.columns import Columns, once

WHOLE = 0.9
"""Share of the usual interval below which a shorter last step is left out."""


def select_flows(selection: Selection) -> Columns:
    """Return the flows with intervals in the selection."""
    return selection.cell.tables["flows"].select_values("traffic", selection.rows.distinct("traffic"))


@register_metrics(
    "intervals",
    "goodput.steady",
    "goodput.warm_up",
    "goodput.of_pir.steady",
    flows=select_flows,
    pir_bps=lambda selection: single_policer_rate(selection.cell.policed_readings, selection.cell.lines),
    policed=lambda selection: len(selection.cell.policed_readings) > 0,
    bucket_bytes=lambda selection: _static_bucket(selection.cell.policed_readings),
    dropped=lambda selection: partial(first_drop_s, selection.cell.policed_readings),
)
def steady_values(
    intervals: Columns,
    pir_bps: float | None = None,
    *,
    flows: Columns,
    policed: bool = False,
    bucket_bytes: float | None = None,
    dropped: Callable[[], float | None] = lambda: None,
) -> Iterator[MetricValue]:
    """Yield `goodput.steady` and `goodput.warm_up` of one cell's `intervals`, and the former relative to the only
    policer's rate.

    `flows` are the flows of the intervals. All of them are added up on one time grid; if the sum is not steady even in
    its second half, the whole time counts.

    If the cell has a policer (`policed`), the first interval is warm-up: the bucket is full then, and its initial burst
    does not recur. In intervals of a second no statistic distinguishes this burst from the scatter of a flow at a low
    rate, whose packets may arrive an interval later after a pause of the sender. If the only policer's bucket is known,
    all intervals until it is first almost empty are warm-up; then it has at most a tenth of its size left. Receivers'
    reports lag behind losses, so that the estimated level may be too high: if more than the rate has passed, the
    warm-up extends to the first packet without tokens in the policer's counters (`dropped`). If the bucket lasts to the
    end, all three metrics are missing, since a rate above the policer's is not a steady state.
    """
    bits, seconds = steps(flows, intervals)
    if not len(bits):
        return
    known, lasts = int(policed), False
    if pir_bps is not None and bucket_bytes is not None:
        emptied = _intervals_until_empty(bits, seconds, pir_bps, bucket_bytes * 8)
        known, lasts = max(known, emptied), not emptied
    steady, trimmed = _remove_warm_up(bits, seconds, known)
    if lasts and pir_bps is not None and steady * OF_PAYLOAD > pir_bps:
        emptied = _count_intervals_before(seconds, dropped())
        if not emptied:
            for name in ("goodput.steady", "goodput.warm_up", "goodput.of_pir.steady"):
                yield name, Missing(BUCKET_LASTED)
            return
        steady, trimmed = _remove_warm_up(bits, seconds, max(known, emptied))
    yield "goodput.steady", steady
    yield "goodput.warm_up", trimmed * 1000
    if pir_bps is not None:
        yield "goodput.of_pir.steady", steady / pir_bps


def _remove_warm_up(bits: np.ndarray, seconds: np.ndarray, known: int) -> tuple[float, float]:
    """Return the bits per second after the warm-up, and the length of the warm-up in seconds."""
    start = warm_up(bits / seconds, known=known).samples
    return float(bits[start:].sum() / seconds[start:].sum()), float(seconds[:start].sum())


def steps(flows: Columns, intervals: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Return the bits of all `flows` together in each step of one time grid, and the lengths of the steps in seconds.

    A step is as long as the usual interval. The rest at the end is a shorter step, or left out if it is shorter than
    `WHOLE`.
    """
    found, step = span(flows), usual_interval(intervals)
    if found is None or step is None:
        return np.zeros(0), np.zeros(0)
    start, end = found
    step = max(step, (end - start) / STEPS_MOST)
    count = max(1, int((end - start) / step + 1 - WHOLE))
    edges = np.append(start + step * np.arange(count), min(start + step * count, end))
    return np.diff(Timeline.from_flows(flows, intervals).bits_until(edges)), np.diff(edges)


EMPTY = 0.1
"""Share of a bucket's size, with a minimum of two packets, up to which it counts as empty."""
OF_PAYLOAD = 1500 / 1448
"""Minimum ratio of a full IP packet's bytes to its payload."""


def _static_bucket(policed: Columns) -> float | None:
    """Return the bucket size of the only policer in bytes; None if there are several or it is dynamic."""
    sizes = policed.distinct("police_bc_bytes")
    dynamic = policed.has("police_dynamic_bucket_bytes").any()
    return float(sizes[0]) if len(sizes) == 1 and not dynamic else None


_WITHOUT_TOKENS = ("exceeded", "violated")


def first_drop_s(policed: Columns) -> float | None:
    """Return the first time with packets without tokens in the policers' counters, in seconds since the start of the
    traffic.
    """
    counts = [policed[f"police_{colour}_packets"] for colour in _WITHOUT_TOKENS]
    without = np.nansum(counts, axis=0).tolist()
    keys, times = class_keys(policed), policed["time_s"].tolist()
    first: dict[tuple[object, ...], float] = {}
    for key, count in zip(keys, without, strict=True):
        first[key] = min(count, first.get(key, count))
    # A reading without the name of its class is ignored.
    grown = (key for key, count in zip(keys, without, strict=True) if count > first[key])
    named = {key for key in grown if None not in key}
    rows = zip(keys, without, times, strict=True)
    return min((time for key, count, time in rows if time > 0 and key in named and count > first[key]), default=None)


def _count_intervals_before(seconds: np.ndarray, moment_s: float | None) -> int:
    """Return the number of intervals that begin before an instant; 0 if none are after it."""
    if moment_s is None:
        return 0
    begun = int((np.concatenate([[0.0], np.cumsum(seconds)[:-1]]) < moment_s).sum())
    return begun if begun < len(seconds) else 0


def _intervals_until_empty(bits: np.ndarray, seconds: np.ndarray, pir_bps: float, bucket_bits: float) -> int:
    """Return the number of intervals until a full bucket is practically empty, excluding the last; 0 if it never is."""
    level, left = bucket_bits, max(EMPTY * bucket_bits, 2 * 1500 * 8)
    for number, (got, length) in enumerate(zip(bits[:-1], seconds[:-1], strict=True), start=1):
        level = min(bucket_bits, level + pir_bps * float(length) - float(got) * OF_PAYLOAD)
        if level <= left:
            return number
    return 0


@register_metrics("intervals", "goodput.together", flows=select_flows, whole=lambda selection: selection.whole)
def simultaneous_goodput(intervals: Columns, whole: Columns, flows: Columns) -> Iterator[MetricValue]:
    """Yield `goodput.together`: the goodput of `flows` while every traffic entry of the cell's `whole` ran.

    It is missing if there is no such time. An entry counts as ended at the start of its last interval, since no tool
    reports when its traffic ended within that interval.
    """
    if not len(intervals):
        return
    shared = simultaneous_span(whole)
    if shared is None:
        yield "goodput.together", Missing(NOT_TOGETHER)
        return
    start, end = shared
    yield "goodput.together", Timeline.from_flows(flows, intervals).bits_between(start, end) / (end - start)


@once
def simultaneous_span(whole: Columns) -> Span | None:
    """Return the time in which every traffic entry with intervals in `whole` ran; None if there is none."""
    names, streams = whole["traffic"], whole["stream"]
    starts, ends = (whole[name] + whole["offset_s"] for name in ("start_s", "end_s"))
    began, ended = [], []
    for name in dict.fromkeys(names):
        mine = names == name
        several = mine.sum() > len(np.unique(streams[mine]))
        began.append(known_minimum(starts[mine]))
        ended.append(greatest(starts[mine] if several else ends[mine]))
    start, end = greatest(np.array(began)), known_minimum(np.array(ended))
    return (start, end) if end > start else None
