"""Tables → the metrics of `qoslab.model.metrics`, by arm and repetition. Pure.

Goodput is payload that the receiving side got, divided by the receiver's own time from start to end of its test. A
traffic's sum is the payload of all its streams over the longest of their times; sums of several traffics add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from qoslab.model.metrics import METRICS
from qoslab.results import tables

DURING = 2 / 3
"""The share of the traffic time at which `.during` metrics are read; the moment of `during` observations."""

Figure = tuple[str, float]
_CELL = ["arm", "repetition"]
_CLASS = ["device", "interface", "direction", "policy", "class"]


def jain(goodputs: pd.Series) -> float:
    """Jain's fairness index (sum x)^2 / (n sum x^2): 1 for equal shares, 1/n where one has all; nan for nothing at all.

    R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984.
    """
    squares = float((goodputs.astype(float) ** 2).sum())
    return float(goodputs.sum()) ** 2 / (len(goodputs) * squares) if squares > 0 else math.nan


def goodput_figures(flows: pd.DataFrame) -> Iterator[Figure]:
    """Figures of one cell's `flows`."""
    if flows.empty:
        return
    by_traffic = flows.groupby("traffic")
    yield "goodput.sum", float((by_traffic["bytes"].sum() * 8 / by_traffic["seconds"].max()).sum())
    each = flows["goodput_bps"].astype(float)
    least, greatest = float(each.min()), float(each.max())
    yield "goodput.flow.min", least
    yield "goodput.flow.max", greatest
    if greatest > 0:
        yield "goodput.spread", greatest / least if least > 0 else math.inf
        yield "fairness.jain", jain(each)


def last_of_class(classes: pd.DataFrame) -> pd.DataFrame:
    """Each class as it was counted last, before its policy was removed."""
    return classes.sort_values("time_s").groupby(_CLASS, as_index=False).tail(1)


DROP_REASONS = ("police", "tail", "flow")
"""Why a class drops: its policer, its queue was full, the flow's own queue was full."""


def class_drops(classes: pd.DataFrame) -> pd.DataFrame:
    """Packets of each class of one cell at its last reading, by what became of them.

    The keys of a class, then offered, sent, police, tail, flow, queued (null without a queue). By the counters'
    identity offered = sent + dropped + queued.
    """
    last = last_of_class(classes)
    found = last[_CLASS].assign(offered=last["packets"])
    for reason in DROP_REASONS:
        found[reason] = last[f"drops_{reason}_packets"].fillna(0)
    found["queued"] = last["queue_depth_packets"]
    found["sent"] = found["offered"] - found[list(DROP_REASONS)].sum(axis=1) - found["queued"].fillna(0)
    return found[[*_CLASS, "offered", "sent", *DROP_REASONS, "queued"]].reset_index(drop=True)


def _only(values: pd.Series) -> float | None:
    """The value that all have; None where they differ or there is none."""
    found = values.dropna().unique()
    return float(found[0]) if len(found) == 1 else None


def police_figures(classes: pd.DataFrame) -> Iterator[Figure]:
    """Figures of all policers of one cell together; `police.bc` only where all have the same."""
    policed = last_of_class(classes[classes["police_conformed_packets"].notna()])
    if policed.empty:
        return
    burst = _only(policed["police_bc_bytes"])
    if burst is not None:
        yield "police.bc", burst
    conformed = int(policed["police_conformed_packets"].sum())
    exceeded = int(policed["police_exceeded_packets"].sum())
    violated = int(policed["police_violated_packets"].sum())
    yield "police.conformed_packets", float(conformed)
    yield "police.exceeded_packets", float(exceeded)
    if conformed + exceeded + violated:
        yield "police.exceed_share", exceeded / (conformed + exceeded + violated)


_SHAPE = {
    "shape.byte_limit": "shape_byte_limit",
    "shape.sustain_bits": "shape_bc_bits",
    "shape.excess_bits": "shape_be_bits",
    "shape.interval_ms": "shape_interval_ms",
    "shape.increment_bytes": "shape_increment_bytes",
}


def shape_figures(classes: pd.DataFrame, traffic_s: float) -> Iterator[Figure]:
    """Figures of all shapers of one cell; settings only where all have the same, queue depths added up."""
    shaped = classes[classes["shape_mode"].notna()]
    if shaped.empty:
        return
    last = last_of_class(shaped)
    for metric, column in _SHAPE.items():
        value = _only(last[column])
        if value is not None:
            yield metric, value
    running = shaped[(shaped["time_s"] > 0) & (shaped["time_s"] < traffic_s)]
    if running.empty:
        return
    times = running["time_s"].to_numpy(dtype=float)
    moment = running[times == times[np.abs(times - DURING * traffic_s).argmin()]]
    if moment["queue_depth_packets"].notna().any():
        yield "shape.queue_depth.during", float(moment["queue_depth_packets"].sum())
    if moment["shape_active"].notna().any():
        yield "shape.active.during", float(moment["shape_active"].fillna(False).any())


def metrics(flows: pd.DataFrame, classes: pd.DataFrame, traffic_s: float) -> pd.DataFrame:
    """The `metrics` table. `traffic_s` is the experiment's traffic time."""
    parts: list[tuple[pd.DataFrame, Callable[[pd.DataFrame], Iterator[Figure]]]] = [
        (flows, goodput_figures),
        (classes, police_figures),
        (classes, lambda cell: shape_figures(cell, traffic_s)),
    ]
    rows: list[dict[str, object]] = []
    for table, figures in parts:
        for key, cell in table.groupby(_CELL, sort=False):
            rows += [
                {
                    "arm": key[0],
                    "repetition": key[1],
                    "metric": name,
                    "unit": METRICS[name].unit,
                    "value": value,
                }
                for name, value in figures(cell)
            ]
    return tables.frame("metrics", rows)
