"""Goodput of the flows of a cell: total, single flows, fairness, and losses. Pure.

Goodput is received payload over time. For one flow the time is from start to end of its test; for several flows
together it is from the first start to the last end, regardless of the time of each.
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
    """Return the total payload rate of one cell's `flows`: all received payload over the time from first start to last
    end.

    Return nan if no flow lasted.
    """
    found = span(flows)
    return math.nan if found is None else float(flows["bytes"].sum()) * 8 / (found[1] - found[0])


def jain(goodputs: pd.Series) -> float:
    """Return Jain's fairness index (sum x)^2 / (n sum x^2): 1 for equal shares, 1/n if one has all; nan if all are 0.

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
    """Compute the metrics of one cell's `flows`; `intervals` are those of the cell, if there are any."""
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
    """Yield the one-way delays of UDP flows with arrivals."""
    for name in ("p50", "p99", "max"):
        column = f"delay_{name}_ms"
        if arrived.empty:
            return
        if column not in arrived or arrived[column].isna().all():
            yield f"datagrams.delay.{name}", Missing(NO_DELAY)
        else:
            yield f"datagrams.delay.{name}", most(arrived[column], "delays of streams")


def fairness(flows: pd.DataFrame, intervals: pd.DataFrame | None = None) -> float | Missing:
    """Return Jain's index of the payload that the flows received while all of them ran."""
    together = common_span(flows)
    if together is None:
        return Missing(NOT_TOGETHER)
    index = jain(pd.Series([stream.between(*together) for stream in Timeline.each(flows, intervals)]))
    return Missing("none of its flows received anything while all of them ran") if math.isnan(index) else index


@metrics_of("flows", "goodput.share", everything=lambda selection: selection.whole.rows)
def share_figures(flows: pd.DataFrame, everything: pd.DataFrame) -> Iterator[Figure]:
    """Return the share of `flows` in the bytes received by `everything` in their cell: shares add up to 1."""
    if flows.empty:
        return
    received = float(everything["bytes"].sum())
    if received > 0:
        yield "goodput.share", float(flows["bytes"].sum()) / received
