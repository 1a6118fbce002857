"""What all flows of a cell got together. Pure."""

from __future__ import annotations

import numpy as np
import pandas as pd

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


def summed(intervals: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """What entries that come and go received together: bits and seconds of equal steps, from first start to last end.

    A step is as long as the usual interval; an interval that lies in two of them is divided between them.
    """
    starts = (intervals["start_s"] + intervals["offset_s"]).to_numpy(float)
    ends = (intervals["end_s"] + intervals["offset_s"]).to_numpy(float)
    bits = intervals["bytes"].to_numpy(float) * 8
    step = float(np.median(ends - starts))
    origin = float(starts.min())
    steps = max(1, int((float(ends.max()) - origin) / step))
    edges = origin + step * np.arange(steps + 1)
    overlap = np.minimum(ends[:, None], edges[None, 1:]) - np.maximum(starts[:, None], edges[None, :-1])
    share = np.clip(overlap, 0, None) / np.maximum(ends - starts, 1e-9)[:, None]
    return (bits[:, None] * share).sum(axis=0), np.full(steps, step)
