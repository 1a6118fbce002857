"""Counters of policy classes over time → the metrics `class.*`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType

import pandas as pd

from qoslab.analysis.classes import CLASS, Line, Lines, dropped, interfaces_of, last_of_class, selected, waiting
from qoslab.analysis.missing import Figure, Missing, total
from qoslab.analysis.registry import metrics_of
from qoslab.model.metrics import ClassSelector
from qoslab.model.moments import DURING

WINDOW_FROM = 1 / 3
"""The share of the traffic time from which rates are counted, up to its end: by then flows have found their rate."""
PRINTED_RATE_BPS = 1000
"""Routers print rates in whole multiples of this."""

_Figures = dict[str, float | Missing]
_OfOne = Callable[[pd.DataFrame, float, Line | None], _Figures]
"""Computes figures of one class from its readings, in their order, the traffic time, and the line if it is known."""


@metrics_of(
    "classes",
    "class.offered",
    "class.dropped",
    "class.passed",
    "class.share",
    "class.line_share",
    "class.drops",
    "class.ecn_marks",
    "class.offered.during",
    "class.dropped.during",
    "class.passed.during",
    "class.share.during",
    "class.drops.during",
    "class.queue_depth.during",
    whole=lambda selection: selection.whole,
    selector=lambda selection: selection.selector,
    traffic_s=lambda selection: selection.cell.traffic_s,
    lines=lambda selection: selection.cell.lines,
)
def _of_selection(
    rows: pd.DataFrame, whole: pd.DataFrame, selector: str | None, traffic_s: float, lines: Lines
) -> Iterator[Figure]:
    """Shares are of all classes of a policy, not only of those that are meant."""
    yield from class_figures(whole, ClassSelector.parse(selector, interfaces_of(whole)), traffic_s, lines)


def class_figures(
    classes: pd.DataFrame, selector: ClassSelector, traffic_s: float, lines: Lines = MappingProxyType({})
) -> Iterator[Figure]:
    """The metrics `class.*` of the classes that `selector` means, added up, from one cell's `classes`."""
    mine = selected(classes, selector)
    if mine.empty:
        return
    yield "class.drops", total(dropped(last_of_class(mine), "packets"), "drops of every reason")
    marks = last_of_class(mine)["random_detect_ecn_mark_packets"]
    if marks.notna().any():
        yield "class.ecn_marks", total(marks.dropna(), "its marks")
    for suffix, figures in (("", _over_window), (".during", _at_moment)):
        own = _added(mine, figures, traffic_s, lines)
        for name, value in own.items():
            yield f"class.{name}{suffix}", value
        if "passed" in own:
            passed = own["passed"]
            of_level = _added(_siblings(classes, mine), figures, traffic_s, lines).get(
                "passed", Missing("what its policy passed in all is not known")
            )
            if isinstance(passed, Missing) or isinstance(of_level, Missing):
                yield f"class.share{suffix}", passed if isinstance(passed, Missing) else Missing(of_level)
            elif of_level > 0:
                yield f"class.share{suffix}", passed / of_level


def _siblings(classes: pd.DataFrame, mine: pd.DataFrame) -> pd.DataFrame:
    """The rows of all classes of the policies in which those of `mine` are."""

    def level(table: pd.DataFrame) -> pd.Series:
        above = table["class"].str.rpartition("/")[0]
        return table[CLASS[:4]].agg("\0".join, axis=1) + "\0" + above

    return classes[level(classes).isin(set(level(mine)))]


def _added(table: pd.DataFrame, figures: _OfOne, traffic_s: float, lines: Lines) -> _Figures:
    """The figures of several classes added up; those that one of the classes lacks are left out."""
    each = [
        figures(one.sort_values("time_s"), traffic_s, lines.get((str(key[0]), str(key[1]))))
        for key, one in table.groupby(CLASS, sort=False)
    ]
    names = [name for name in each[0] if all(name in other for other in each)] if each else []
    return {name: _sum([found[name] for found in each]) for name in names}


def _sum(values: list[float | Missing]) -> float | Missing:
    found = 0.0
    for value in values:
        if isinstance(value, Missing):
            return value
        found += value
    return found


def _over_window(readings: pd.DataFrame, traffic_s: float, line: Line | None) -> _Figures:
    """Rates between the first and the last reading of the window."""
    times = readings["time_s"].astype(float)
    window = readings[(times >= WINDOW_FROM * traffic_s) & (times <= traffic_s)]
    if len(window) < 2:
        return {}
    seconds = float(window["time_s"].iloc[-1] - window["time_s"].iloc[0])
    offered, lost = window["bytes"].astype(float), dropped(window, "bytes")
    if (offered.diff().dropna() < 0).any():
        # Counters that went back: the policy was attached anew.
        return {}

    def rate(count: pd.Series, what: str) -> float | Missing:
        ends = count.iloc[[0, -1]]
        if ends.isna().any():
            return Missing(f"{_of(readings)}: its readings do not tell {what}")
        return float(ends.iloc[1] - ends.iloc[0]) * 8 / seconds

    found: _Figures = {
        "offered": rate(offered, "the bytes that were offered"),
        "dropped": rate(lost, "the bytes of all drops"),
        "passed": rate(offered - lost - waiting(window, "bytes"), "the bytes of all drops and of its queue"),
    }
    if line is not None:
        packets = window["packets"].astype(float) - dropped(window, "packets") - waiting(window, "packets")
        framing, passed = rate(packets, "the packets of all drops and of its queue"), found["passed"]
        if line.extra_bytes is None:
            found["line_share"] = Missing(f"{_of(readings)}: its readings do not tell how many cells its packets took")
        elif isinstance(passed, Missing) or isinstance(framing, Missing):
            found["line_share"] = passed if isinstance(passed, Missing) else framing
        else:
            found["line_share"] = (passed + framing * line.extra_bytes) / line.rate_bps
    return found


def _of(readings: pd.DataFrame) -> str:
    """The class, for people."""
    first = readings.iloc[0]
    return f"{first['device']} {first['interface']} {first['direction']} {first['class']}"


def _at_moment(readings: pd.DataFrame, traffic_s: float, line: Line | None) -> _Figures:
    """What the router prints at the moment of `during`."""
    running = readings[(readings["time_s"] > 0) & (readings["time_s"] < traffic_s)]
    if running.empty:
        return {}
    nearest = int((running["time_s"].astype(float) - DURING * traffic_s).abs().to_numpy().argmin())
    moment = running.iloc[[nearest]]
    found: _Figures = {"drops": total(dropped(moment, "packets"), "drops of every reason")}
    depth = moment["queue_depth_packets"].iloc[0]
    if pd.notna(depth):
        found["queue_depth"] = float(depth)
    offered, lost = (moment[f"{name}_rate_bps"].iloc[0] for name in ("offered", "drop"))
    if pd.notna(offered) and pd.notna(lost):
        found |= {"offered": _printed(offered), "dropped": _printed(lost)}
        found["passed"] = _printed(offered) - _printed(lost)
    return found


def _printed(rate_bps: float) -> float:
    return float(int(rate_bps / PRINTED_RATE_BPS + 0.5) * PRINTED_RATE_BPS)
