"""Counters of classes at an instant, given as a time or as a counter value. Pure."""

from __future__ import annotations

import numpy as np
import pandas as pd

from qoslab.analysis.class_lines import CLASS
from qoslab.analysis.missing import NEVER, NOTHING_COUNTED, Missing
from qoslab.model.metrics import At

APART_S = 2.5
"""Maximum time between the readings around an instant. A data plane is read each second; between show commands that are
far apart, counters need not grow evenly, and the waiting packets are unknown.
"""
_COLUMNS = {"conformed_bytes": "police_conformed_bytes", "bytes": "bytes"}


def moment_s(rows: pd.DataFrame, at: At) -> float | Missing:
    """Return the instant in seconds of the cell's time, from `rows`, the readings of the selected classes.

    Counters are interpolated between readings. The result is missing if the instant was never reached, or has no
    readings close to it.
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
    """Return the maximum time error of the readings around an instant, in seconds; 0 for those of a data plane.

    It is also 0 for the instant of a counter value, since that counter was read together with all others.
    """
    if at.counter != "time":
        return 0.0
    times = rows["time_s"].astype(float)
    around = (times == times[times <= moment].max()) | (times == times[times >= moment].min())
    return float(rows["time_error_s"].astype(float)[around].fillna(0.0).max())


def _near(at: At, moment: float, before: float, after: float) -> float | Missing:
    """Return the instant if the readings around it are close enough; `before` is nan if there is no earlier reading."""
    if after - before > APART_S:
        return Missing(f"{at} is not known: the readings around it are of {before:.1f} s and {after:.1f} s")
    return moment


def until(rows: pd.DataFrame, moment: float) -> pd.DataFrame:
    """Return the readings up to an instant, plus one of each class at the instant with interpolated counters.

    Numbers in `rows` must be floats, as in `metrics`.
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
