"""What the flows of a cell got: together, each, how fairly, and what they lost. Pure.

Goodput is payload that the receiving side got, divided by the receiver's own time from start to end of its test. A
traffic's sum is the payload of all its streams over the longest of their times; sums of several traffics add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from qoslab.analysis.missing import Figure, Missing, most, total
from qoslab.analysis.registry import metrics_of

APART_S = 1.0
"""Flows whose starts differ by more are meant to come one after another; those of one moment differ by milliseconds."""


def apart(offsets: pd.Series) -> bool:
    """Whether flows start at different times; `offsets` are their starts, in seconds."""
    known = offsets.dropna().astype(float)
    return bool(len(known)) and float(known.max() - known.min()) > APART_S


def total_bps(flows: pd.DataFrame) -> float:
    """Payload rate of one cell's `flows` together.

    Traffic that runs at the same time adds up, each entry over its own time. Of entries that come and go it is all they
    received over the time from the first start to the last end.
    """
    if not apart(flows["offset_s"]):
        by_traffic = flows.groupby("traffic")
        return float((by_traffic["bytes"].sum() * 8 / by_traffic["seconds"].max()).sum())
    starts = flows["offset_s"].astype(float)
    span = float((starts + flows["seconds"].astype(float)).max() - starts.min())
    return float(flows["bytes"].sum()) * 8 / span


PAIRS_MOST, PAIRS_AT_ONCE = 2**28, 2**20
"""Steps times intervals: six hours, second by second, are as many."""


def summed(intervals: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """What entries that come and go received together: bits and seconds of equal steps, from first start to last end.

    A step is as long as the usual interval; an interval that lies in two of them is divided between them. Nothing where
    the usual interval has no length; where steps times intervals are more than `PAIRS_MOST`, steps are longer.
    """
    starts = (intervals["start_s"] + intervals["offset_s"]).to_numpy(float)
    ends = (intervals["end_s"] + intervals["offset_s"]).to_numpy(float)
    bits = intervals["bytes"].to_numpy(float) * 8
    step = float(np.median(ends - starts))
    origin = float(starts.min())
    span = float(ends.max()) - origin
    if not step > 0:
        return np.zeros(0), np.zeros(0)
    steps = max(1, int(span / step))
    if steps > (most := max(1, PAIRS_MOST // len(starts))):
        steps, step = most, span / most
    edges = origin + step * np.arange(steps + 1)
    found = np.zeros(steps)
    # Some at a time: all intervals against all steps take the memory of their product.
    some = max(1, PAIRS_AT_ONCE // len(starts))
    for first in range(0, steps, some):
        low, high = edges[first : first + some + 1][:-1], edges[first + 1 : first + some + 1]
        overlap = np.minimum(ends[:, None], high[None, :]) - np.maximum(starts[:, None], low[None, :])
        share = np.clip(overlap, 0, None) / np.maximum(ends - starts, 1e-9)[:, None]
        found[first : first + some] = (bits[:, None] * share).sum(axis=0)
    return found, np.full(steps, step)


def jain(goodputs: pd.Series) -> float:
    """Jain's fairness index (sum x)^2 / (n sum x^2): 1 for equal shares, 1/n where one has all; nan for nothing at all.

    R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984.
    """
    squares = float((goodputs.astype(float) ** 2).sum())
    return float(goodputs.sum()) ** 2 / (len(goodputs) * squares) if squares > 0 else math.nan


@metrics_of(
    "flows",
    "goodput.sum",
    "goodput.flow.min",
    "goodput.flow.max",
    "goodput.flow.second_min",
    "goodput.flow.second_max",
    "goodput.flow.median",
    "goodput.spread",
    "fairness.jain",
    "datagrams.lost",
    "datagrams.loss",
    "datagrams.jitter",
)
def goodput_figures(flows: pd.DataFrame) -> Iterator[Figure]:
    """Figures of one cell's `flows`."""
    if flows.empty:
        return
    yield "goodput.sum", total_bps(flows)
    each = flows["goodput_bps"].astype(float)
    least, greatest = float(each.min()), float(each.max())
    yield "goodput.flow.min", least
    yield "goodput.flow.max", greatest
    yield "goodput.flow.median", float(each.median())
    if len(each) > 1:
        yield "goodput.flow.second_min", float(each.nsmallest(2).iloc[-1])
        yield "goodput.flow.second_max", float(each.nlargest(2).iloc[-1])
    if greatest > 0:
        yield "goodput.spread", greatest / least if least > 0 else math.inf
        yield "fairness.jain", jain(each)
    datagrams = flows[flows["datagrams"].notna()]
    if not datagrams.empty:
        sent, lost = float(datagrams["datagrams"].sum()), total(datagrams["lost"], "lost datagrams of streams")
        yield "datagrams.lost", lost
        if sent:
            yield "datagrams.loss", lost if isinstance(lost, Missing) else lost / sent
        # A stream of which no two datagrams arrived has no jitter.
        few = datagrams["datagrams"].astype(float) - datagrams["lost"].astype(float) < 2
        arrived = datagrams[~few]
        if not arrived.empty:
            yield "datagrams.jitter", most(arrived["jitter_ms"], "jitters of streams")


@metrics_of("flows", "goodput.share", everything=lambda selection: selection.whole.rows)
def share_figures(flows: pd.DataFrame, everything: pd.DataFrame) -> Iterator[Figure]:
    """What those of one cell's flows got that are meant, of what `everything` got."""
    if flows.empty:
        return
    together = total_bps(everything)
    if together > 0:
        yield "goodput.share", total_bps(flows) / together
