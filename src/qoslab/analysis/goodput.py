"""Goodput of the flows of a cell: total, single flows, fairness, and losses. Pure.

Goodput is received payload over time. For one flow the time is from start to end of its test; for several flows
together it is from the first start to the last end, regardless of the time of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import NOT_TOGETHER, MetricValue, Missing, known_maximum, total
from qoslab.analysis.timeline import Timeline, common_span, greatest, known_minimum, span
from qoslab.model.voice import mean_opinion_score
from qoslab.results.columns import Column, Columns

NO_DELAY = "this lab does not measure one-way delay; use --lab simulated"


def total_bps(flows: Columns) -> float:
    """Return the total payload rate of one cell's `flows`: all received payload over the time from first start to last
    end.

    Return nan if no flow lasted.
    """
    found = span(flows)
    return math.nan if found is None else float(np.nansum(flows["bytes"])) * 8 / (found[1] - found[0])


def jain(goodputs: Column) -> float:
    """Return Jain's fairness index (sum x)^2 / (n sum x^2): 1 for equal shares, 1/n if one has all; nan if all are 0.

    R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984.
    """
    squares = float((goodputs**2).sum())
    return float(goodputs.sum()) ** 2 / (len(goodputs) * squares) if squares > 0 else math.nan


@register_metrics(
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
    "pages.complete",
    "pages.unfinished",
    "pages.time.p50",
    "pages.time.mean",
    "pages.time.max",
    intervals=lambda selection: selection.cell.tables["intervals"],
)
def goodput_values(flows: Columns, intervals: Columns | None = None) -> Iterator[MetricValue]:
    """Compute the metrics of one cell's `flows`; `intervals` are those of the cell, if there are any."""
    if not len(flows):
        return
    yield "goodput.sum", total_bps(flows)
    each = flows["goodput_bps"]
    low, high = known_minimum(each), greatest(each)
    yield "goodput.flow.min", low
    yield "goodput.flow.max", high
    known = each[~np.isnan(each)]
    yield "goodput.flow.median", float(np.median(known)) if len(known) else math.nan
    if len(each) > 1:
        yield "goodput.flow.second_min", float(np.sort(each)[1])
        yield "goodput.flow.second_max", -float(np.sort(-each)[1])
    if high > 0:
        yield "goodput.spread", high / low if low > 0 else math.inf
        yield "fairness.jain", fairness(flows, intervals)
    yield from _page_times(flows.select(flows.has("pages")))
    datagrams = flows.select(flows.has("datagrams"))
    if len(datagrams):
        sent, lost = float(datagrams["datagrams"].sum()), total(datagrams["lost"], "lost datagrams of streams")
        yield "datagrams.lost", lost
        if sent:
            yield "datagrams.loss", lost if isinstance(lost, Missing) else lost / sent
        # A stream without two received datagrams has no jitter.
        arrived = datagrams.select(~(datagrams["datagrams"] - datagrams["lost"] < 2))
        if len(arrived):
            yield "datagrams.jitter", known_maximum(arrived["jitter_ms"], "jitter values of streams")
        yield from _delays(datagrams.select(datagrams["datagrams"] > datagrams["lost"]))
        worst = known_minimum(datagrams["voice_r"])
        if not math.isnan(worst):
            yield "voice.r", worst
            yield "voice.mos", mean_opinion_score(worst)


def _delays(arrived: Columns) -> Iterator[MetricValue]:
    """Yield the one-way delays of UDP flows with arrivals."""
    for name in ("p50", "p99", "max"):
        column = f"delay_{name}_ms"
        if not len(arrived):
            return
        if not arrived.has(column).any():
            yield f"datagrams.delay.{name}", Missing(NO_DELAY)
        else:
            yield f"datagrams.delay.{name}", known_maximum(arrived[column], "delay values of streams")


def _page_times(flows: Columns) -> Iterator[MetricValue]:
    """Yield the number and times of pages of the connections that send pages.

    A page that was unfinished at the end counts as longer than all others, so it has no known mean or maximum.
    """
    if not len(flows):
        return
    complete, unfinished = (float(np.nansum(flows[name])) for name in ("pages", "pages_unfinished"))
    yield "pages.complete", complete
    yield "pages.unfinished", unfinished
    began = flows.select((flows["pages"] > 0) | (flows["pages_unfinished"] > 0))
    if not len(began):
        return
    cut = Missing(f"{unfinished:.0f} of {complete + unfinished:.0f} pages were unfinished at the end")
    yield "pages.time.p50", greatest(began["page_p50_ms"]) if began.has("page_p50_ms").all() else cut
    if unfinished:
        yield from (("pages.time.mean", cut), ("pages.time.max", cut))
        return
    yield "pages.time.mean", float((began["pages"] * began["page_mean_ms"]).sum()) / complete
    yield "pages.time.max", known_maximum(began["page_max_ms"], "page times")


def fairness(flows: Columns, intervals: Columns | None = None) -> float | Missing:
    """Return Jain's index of the payload that the flows received while all of them ran."""
    together = common_span(flows)
    if together is None:
        return Missing(NOT_TOGETHER)
    index = jain(np.array([stream.bits_between(*together) for stream in Timeline.stream_timelines(flows, intervals)]))
    return Missing("no flow received data while all flows were running") if math.isnan(index) else index


@register_metrics("flows", "goodput.share", everything=lambda selection: selection.whole)
def share_values(flows: Columns, everything: Columns) -> Iterator[MetricValue]:
    """Return the share of `flows` in the bytes received by `everything` in their cell: shares add up to 1."""
    if not len(flows):
        return
    received = float(np.nansum(everything["bytes"]))
    if received > 0:
        yield "goodput.share", float(np.nansum(flows["bytes"])) / received
