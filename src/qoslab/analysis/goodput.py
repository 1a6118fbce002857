"""Goodput of the flows of a cell: sum, each flow, fairness, and losses. Pure.

Goodput is the payload that receivers got over a time. Of one flow it is the time from start to end of its test; of
several flows together it is the time from the first start to the last end, whenever each of them ran in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from qoslab.analysis.metric_functions import metrics_of
from qoslab.analysis.missing import NOT_TOGETHER, Figure, Missing, most, total
from qoslab.analysis.timeline import Timeline, common_span, span
from qoslab.model.voice import mean_opinion

NO_DELAY = "its lab does not measure one-way delay; --lab simulated does"


def total_bps(flows: pd.DataFrame) -> float:
    """Payload rate of one cell's `flows` together: all that they received over the time from first start to last end.

    nan if no flow took any time.
    """
    found = span(flows)
    return math.nan if found is None else float(flows["bytes"].sum()) * 8 / (found[1] - found[0])


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
    "datagrams.delay.p50",
    "datagrams.delay.p99",
    "datagrams.delay.max",
    "voice.r",
    "voice.mos",
    intervals=lambda selection: selection.cell.tables["intervals"],
)
def goodput_figures(flows: pd.DataFrame, intervals: pd.DataFrame | None = None) -> Iterator[Figure]:
    """Figures of one cell's `flows`; `intervals` are those of the cell, if there are any."""
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
        yield "fairness.jain", fairness(flows, intervals)
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
        yield from _delays(datagrams[datagrams["datagrams"] > datagrams["lost"]])
        if "voice_r" in datagrams and not datagrams["voice_r"].isna().all():
            worst = float(datagrams["voice_r"].min())
            yield "voice.r", worst
            yield "voice.mos", mean_opinion(worst)


def _delays(arrived: pd.DataFrame) -> Iterator[Figure]:
    """Yield the one-way delays of the UDP flows of which anything arrived."""
    for name in ("p50", "p99", "max"):
        column = f"delay_{name}_ms"
        if arrived.empty:
            return
        if column not in arrived or arrived[column].isna().all():
            yield f"datagrams.delay.{name}", Missing(NO_DELAY)
        else:
            yield f"datagrams.delay.{name}", most(arrived[column], "delays of streams")


def fairness(flows: pd.DataFrame, intervals: pd.DataFrame | None = None) -> float | Missing:
    """Jain's index of what the flows received in the time in which all of them ran."""
    together = common_span(flows)
    if together is None:
        return Missing(NOT_TOGETHER)
    index = jain(pd.Series([stream.between(*together) for stream in Timeline.each(flows, intervals)]))
    return Missing("none of its flows received anything while all of them ran") if math.isnan(index) else index


@metrics_of("flows", "goodput.share", everything=lambda selection: selection.whole.rows)
def share_figures(flows: pd.DataFrame, everything: pd.DataFrame) -> Iterator[Figure]:
    """The part that `flows` received of all that `everything` in their cell did, in bytes: parts add up to 1."""
    if flows.empty:
        return
    received = float(everything["bytes"].sum())
    if received > 0:
        yield "goodput.share", float(flows["bytes"].sum()) / received
