"""Counters of classes as they stood at a moment: of time, or of one of the counters. Pure."""

from __future__ import annotations

import numpy as np
import pandas as pd

from qoslab.analysis.class_lines import CLASS
from qoslab.analysis.missing import NEVER, NOTHING_COUNTED, Missing
from qoslab.model.metrics import At

APART_S = 2.5
"""Greatest time between the readings around an instant. A data plane is read each second; between show commands that
are far apart, counters need not grow evenly, and the waiting packets are not known."""
_COLUMNS = {"conformed_bytes": "police_conformed_bytes", "bytes": "bytes"}


def moment_s(rows: pd.DataFrame, at: At) -> float | Missing:
    """Return when it was, in seconds of the cell's time, from the readings `rows` of the classes that are meant.

    Between two readings counters grow evenly. Missing if the moment never came, or nobody looked near it.
    """
    if rows.empty:
        return Missing("there are no counters over time")
    last = float(rows["time_s"].max())
    if at.counter == "time":
        wanted = at.value / 1000
        if wanted > last:
            return Missing(f"{at} {NEVER}: the last reading is of {last:.1f} s")
        read = rows["time_s"].astype(float)
        return _near(at, wanted, float(read[read <= wanted].max()), float(read[read >= wanted].min()))
    counted = rows.dropna(subset=[_COLUMNS[at.counter]]).groupby("time_s")[_COLUMNS[at.counter]].sum().astype(float)
    reached = np.flatnonzero(counted.to_numpy() >= at.value)
    if not len(reached):
        most = f"{counted.iloc[-1]:.0f} B at the end" if len(counted) else NOTHING_COUNTED
        return Missing(f"{at} {NEVER}: {most}")
    place = int(reached[0])
    if place == 0:
        return float(counted.index[0])
    times, values = counted.index[place - 1 : place + 1], counted.to_numpy()[place - 1 : place + 1]
    moment = float(np.interp(at.value, values, times.astype(float)))
    return _near(at, moment, float(times[0]) if moment < times[1] else moment, float(times[1]))


def instant_error_s(rows: pd.DataFrame, at: At, moment: float) -> float:
    """Return the possible time error of the readings around a moment, in seconds; 0 for a data plane's.

    So it is 0 if the moment is that of a counter, too: that one was read together with all others.
    """
    if at.counter != "time":
        return 0.0
    times = rows["time_s"].astype(float)
    around = (times == times[times <= moment].max()) | (times == times[times >= moment].min())
    return float(rows["time_error_s"].astype(float)[around].fillna(0.0).max())


def _near(at: At, moment: float, before: float, after: float) -> float | Missing:
    """The moment, where readings around it are near enough; `before` is not a number if there is none."""
    if after - before > APART_S:
        return Missing(f"{at} is not known: the readings around it are of {before:.1f} s and {after:.1f} s")
    return moment


def until(rows: pd.DataFrame, moment: float) -> pd.DataFrame:
    """The readings up to a moment, and one of each class at the moment: its counters even between those around it.

    Numbers of `rows` are floats, as `metrics` makes them.
    """
    parts = []
    for _, one in rows.groupby(CLASS):
        one = one.sort_values("time_s")
        before, after = one[one["time_s"] <= moment], one[one["time_s"] > moment]
        if before.empty:
            continue
        parts.append(before)
        if after.empty or float(before["time_s"].iloc[-1]) == moment:
            continue
        near, far = before.iloc[-1], after.iloc[0]
        share = (moment - near["time_s"]) / (far["time_s"] - near["time_s"])
        at = near.copy()
        for name in one.columns:
            if isinstance(near[name], float | int) and not isinstance(near[name], bool):
                at[name] = near[name] + (far[name] - near[name]) * share
        parts.append(at.to_frame().T)
    return pd.concat(parts, ignore_index=True).infer_objects().astype(rows.dtypes) if parts else rows.iloc[:0]
