"""Counters of classes at an instant, given as a time or as a counter value. Pure."""

from __future__ import annotations

import numpy as np

from qoslab.analysis.class_lines import CLASS
from qoslab.analysis.classes import group_rows_by_time, sums_by_time
from qoslab.analysis.missing import NEVER, NOTHING_COUNTED, Missing
from qoslab.analysis.timeline import greatest, known_minimum
from qoslab.model.metrics import CounterTrigger
from qoslab.results.columns import Column, Columns

APART_S = 2.5
"""Maximum time between the readings around an instant. A data plane is read each second; between show commands that are
far apart, counters need not grow evenly, and the waiting packets are unknown.
"""
_COLUMNS = {"conformed_bytes": "police_conformed_bytes", "bytes": "bytes"}


def moment_s(rows: Columns, at: CounterTrigger) -> float | Missing:
    """Return the instant in seconds of the cell's time, from `rows`, the readings of the selected classes.

    Counters are interpolated between readings. The result is missing if the instant was never reached, or has no
    readings close to it.
    """
    if not len(rows):
        return Missing("there are no counters over time")
    read = rows["time_s"]
    last = greatest(read)
    if at.counter == "time":
        wanted = at.value / 1000
        if wanted > last:
            return Missing(f"{at} {NEVER}: the last reading is at {last:.1f} s")
        return _instant_if_close(at, wanted, greatest(read[read <= wanted]), known_minimum(read[read >= wanted]))
    name = _COLUMNS[at.counter]
    times, counted = sums_by_time(rows.select(rows.has(name)), name)
    reached = np.flatnonzero(counted >= at.value)
    if not len(reached):
        most = f"{counted[-1]:.0f} B at the end" if len(counted) else NOTHING_COUNTED
        return Missing(f"{at} {NEVER}: {most}")
    place = int(reached[0])
    if place == 0:
        return float(times[0])
    before, after = float(times[place - 1]), float(times[place])
    moment = float(np.interp(at.value, counted[place - 1 : place + 1], (before, after)))
    return _instant_if_close(at, moment, before if moment < after else moment, after)


def instant_error_s(rows: Columns, at: CounterTrigger, moment: float) -> float:
    """Return the maximum time error of the readings around an instant, in seconds; 0 for those of a data plane.

    It is also 0 for the instant of a counter value, since that counter was read together with all others.
    """
    if at.counter != "time":
        return 0.0
    times = rows["time_s"]
    around = (times == greatest(times[times <= moment])) | (times == known_minimum(times[times >= moment]))
    return greatest(np.nan_to_num(rows["time_error_s"][around]))


def _instant_if_close(at: CounterTrigger, moment: float, before: float, after: float) -> float | Missing:
    """Return the instant if the readings around it are close enough; `before` is nan if there is no earlier reading."""
    if after - before > APART_S:
        return Missing(f"{at} is not known: the readings around it are at {before:.1f} s and {after:.1f} s")
    return moment


def readings_until(rows: Columns, moment: float) -> Columns:
    """Return the readings up to an instant, plus one of each class at the instant with interpolated counters."""
    parts: list[tuple[Column, int | None]] = []
    for _, places in sorted(group_rows_by_time(rows, *CLASS).items()):
        times = rows["time_s"][places]
        count = int((times <= moment).sum())
        if count:
            between = (times[count:] > moment).any() and times[count - 1] != moment
            parts.append((places[:count], int(places[count]) if between else None))

    def share(near: int, far: int) -> float:
        times = rows["time_s"]
        return float((moment - times[near]) / (times[far] - times[near]))

    def read(name: str) -> Column:
        column = rows[name]
        pieces = [column[:0]]
        for before, far in parts:
            pieces.append(column[before])
            if far is not None:
                near = int(before[-1])
                counted = column.dtype == float
                at = column[near] + (column[far] - column[near]) * share(near, far) if counted else column[near]
                pieces.append(np.array([at], dtype=column.dtype))
        return np.concatenate(pieces)

    return Columns(sum(len(before) + (far is not None) for before, far in parts), read)
