"""Counters of policy classes over time → the metrics `class.*`. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import cast

import numpy as np

from qoslab.analysis.class_lines import CLASS, Line, Lines
from qoslab.analysis.classes import (
    class_interfaces,
    class_keys,
    dropped_amounts,
    group_rows,
    last_of_class,
    printed_depth,
    queued_amounts,
    round_as_printed,
    select_classes,
)
from qoslab.analysis.estimates import Estimate, estimate_error, passed_bytes, scale_estimate, value_if_precise
from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import MetricValue, Missing, total
from qoslab.model.instants import DURING, WINDOW_START
from qoslab.model.metrics import ClassSelector
from qoslab.results.columns import Column, Columns

_Key = tuple[str, str, str, str, str]
"""Key of a class: a row of CLASS."""
ANY_HEADER = 14
"""Bytes of layer 2 that are counted with a packet if the line is unknown."""
OF_PACKETS = {
    *("class.dropped", "class.drops", "class.ecn_marks"),
    *("class.dropped.during", "class.drops.during", "class.queue_depth.during"),
}
"""Metrics about the outcomes of the packets of a class."""
_Figures = dict[str, float | Missing]
_OfOne = Callable[[Columns, float, Line | None], _Figures]
"""Function that computes values of one class from its readings in order, the traffic time, and the line
if it is known.
"""


@register_metrics(
    "classes",
    "class.offered",
    "class.dropped",
    "class.passed",
    "class.share",
    "class.line_share",
    "class.packets",
    "class.bytes",
    "class.drops",
    "class.ecn_marks",
    "class.queue_delay",
    "class.offered.during",
    "class.dropped.during",
    "class.passed.during",
    "class.share.during",
    "class.drops.during",
    "class.queue_depth.during",
    classes=lambda selection: selection.whole.compute_once(
        EachClass, lambda: EachClass(selection.whole, selection.cell.traffic_s, selection.cell.lines)
    ),
    selector=lambda selection: selection.selector,
)
def _selection_metrics(rows: Columns, classes: EachClass, selector: str | None) -> Iterator[MetricValue]:
    """Compute the metrics of the selected classes. Shares are of all classes of a policy, including
    those not selected.
    """
    yield from class_values(classes, ClassSelector.parse(selector, class_interfaces(classes.readings)))


class EachClass:
    """Classes of one cell's `classes`, with values of each that are computed on first use.

    The share of a class is that of the packets that its policy passed, summed over all classes of the policy.
    """

    def __init__(self, readings: Columns, traffic_s: float, lines: Lines = MappingProxyType({})) -> None:
        self.readings = readings
        self._each = {
            cast(_Key, key): readings.take_rows(places) for key, places in group_rows(readings, *CLASS).items()
        }
        self._traffic_s, self._lines = traffic_s, lines
        self._in_order: dict[_Key, Columns] = {}
        """Readings of a class by their times."""
        self._computed: dict[tuple[_OfOne, _Key], _Figures] = {}

    def class_medians(self, readings: Columns, column: str) -> list[float]:
        """Return the median of a column over the window for rates, for each class with a known value there."""
        times = readings["time_s"]
        window = (times >= WINDOW_START * self._traffic_s) & (times <= self._traffic_s)
        known = readings.select(window & readings.has(column))
        return [float(np.median(known[column][places])) for places in group_rows(known, *CLASS).values()]

    def sum_selected(self, selected: Callable[[_Key], bool], values: _OfOne) -> _Figures:
        """Return the sums over the selected classes; a value that one of them lacks is left out."""
        each = [self._class_values(key, values) for key in self._each if selected(key)]
        names = [name for name in each[0] if all(name in other for other in each)] if each else []
        return {name: _sum([found[name] for found in each]) for name in names}

    def _class_values(self, key: _Key, values: _OfOne) -> _Figures:
        if (values, key) not in self._computed:
            if key not in self._in_order:
                self._in_order[key] = self._each[key].take_rows(self._each[key]["time_s"].argsort())
            self._computed[values, key] = values(self._in_order[key], self._traffic_s, self._lines.get(key[:2]))
        return self._computed[values, key]


def class_values(classes: EachClass, selector: ClassSelector) -> Iterator[MetricValue]:
    """Compute the metrics `class.*`, added up over the classes of `selector`.

    Drops and depths of classes without a packet are missing: a bound on them would prove nothing.
    """
    mine = select_classes(classes.readings, selector)
    if not len(mine):
        return
    last = last_of_class(mine)
    idle = float(last["packets"].sum()) == 0
    for name, value in _figures(classes, mine, last):
        yield (
            name,
            Missing(f"{_display_name(mine)}: no packet matched the class") if idle and name in OF_PACKETS else value,
        )


def _figures(classes: EachClass, mine: Columns, last: Columns) -> Iterator[MetricValue]:
    for unit in ("packets", "bytes"):
        yield f"class.{unit}", total(last[unit], f"{unit} of classes")
    yield "class.drops", total(dropped_amounts(last, "packets"), "drops for all reasons")
    marks = last["random_detect_ecn_mark_packets"]
    if len(marked := marks[~np.isnan(marks)]):
        yield "class.ecn_marks", total(marked, "its marks")
    if medians_ns := classes.class_medians(mine, "queue_delay_ns"):
        yield "class.queue_delay", max(medians_ns) / 1e6
    keys = set(class_keys(last))
    levels = {_level(key) for key in keys}
    for suffix, values in (("", _window_rates), (".during", _printed_values)):
        own = classes.sum_selected(keys.__contains__, values)
        for name, value in own.items():
            yield f"class.{name}{suffix}", value_if_precise(value, lambda: _display_name(mine))
        if "passed" in own:
            passed = own["passed"]
            of_level = classes.sum_selected(lambda key: _level(key) in levels, values).get(
                "passed", Missing("the total number of packets passed by its policy is unknown")
            )
            if isinstance(passed, Missing) or isinstance(of_level, Missing):
                yield f"class.share{suffix}", passed if isinstance(passed, Missing) else Missing(of_level)
            elif of_level > 0:
                share = passed / of_level
                error = (estimate_error(passed) + share * estimate_error(of_level)) / of_level
                yield (
                    f"class.share{suffix}",
                    value_if_precise(Estimate(share, error) if error else share, lambda: _display_name(mine)),
                )


def _level(key: _Key) -> _Key:
    """Return the key of the policy level of a class, which all classes of the policy share."""
    return (*key[:4], key[4].rpartition("/")[0])


def _sum(values: list[float | Missing]) -> float | Missing:
    found, error = 0.0, 0.0
    for value in values:
        if isinstance(value, Missing):
            return value
        found += value
        error += estimate_error(value)
    return Estimate(found, error) if error else found


def _window_rates(readings: Columns, traffic_s: float, line: Line | None) -> _Figures:
    """Return the rates between the first and the last reading of the window."""
    times = readings["time_s"]
    window = readings.select((times >= WINDOW_START * traffic_s) & (times <= traffic_s))
    if len(window) < 2:
        return {}
    seconds = float(window["time_s"][-1] - window["time_s"][0])
    offered, lost = window["bytes"], dropped_amounts(window, "bytes")
    if (np.diff(offered[~np.isnan(offered)]) < 0).any():
        # The counters decreased: the policy was attached again.
        return {}

    def rate(count: Column, what: str) -> float | Missing:
        grown = float(count[-1] - count[0])
        if math.isnan(grown):
            return Missing(f"{_display_name(readings)}: the readings do not include {what}")
        return grown * 8 / seconds

    found: _Figures = {
        "offered": rate(offered, "the offered bytes"),
        "dropped": rate(lost, "all dropped bytes"),
        "passed": rate(offered - lost - queued_amounts(window, "bytes"), "all dropped and queued bytes"),
    }
    if isinstance(found["passed"], Missing) and not window.has("time_error_s").any():
        # A kernel counts the bytes that it sent, not those that it dropped.
        found["passed"] = rate(window["queue_output_bytes"], "the bytes sent from the queue")
    packets = window["packets"] - dropped_amounts(window, "packets") - queued_amounts(window, "packets")
    if window.has("time_error_s").all():
        return _printed_window(window, found, packets, seconds, line)
    if line is not None:
        framing, passed = rate(packets, "all dropped and queued packets"), found["passed"]
        if line.extra_bytes is None:
            found["line_share"] = Missing(
                f"{_display_name(readings)}: the readings do not include the number of ATM cells"
            )
        elif isinstance(passed, Missing) or isinstance(framing, Missing):
            found["line_share"] = passed if isinstance(passed, Missing) else framing
        else:
            found["line_share"] = (passed + framing * line.extra_bytes) / line.rate_bps
    return found


def _printed_window(
    window: Columns, exact: _Figures, passed_packets: Column, seconds: float, line: Line | None
) -> _Figures:
    """Return the values over a window of readings from show commands: missing ones are estimated, with a bound of the
    error.

    `exact` are the completely reported values, `passed_packets` the number of packets passed at each reading.
    """
    header = ANY_HEADER if line is None else line.header_bytes

    def increase(count: Column) -> float:
        return float(count[-1] - count[0])

    packets, size = increase(window["packets"]), increase(window["bytes"])
    went, lost = increase(passed_packets), increase(dropped_amounts(window, "packets"))
    found = dict(exact)
    if isinstance(found["passed"], Missing):
        left = increase(window["queue_output_bytes"])
        if not math.isnan(left):
            # The bytes from a class's queue to the line are printed, regardless of earlier drops.
            found["passed"] = left * 8 / seconds
        elif not math.isnan(packets + size + went):
            found["passed"] = scale_estimate(passed_bytes(packets, size, went, header), 8 / seconds)
    if isinstance(found["dropped"], Missing) and not math.isnan(packets + size + lost):
        found["dropped"] = scale_estimate(passed_bytes(packets, size, lost, header), 8 / seconds)
    passed = found["passed"]
    if line is not None:
        if line.extra_bytes is None or math.isnan(went):
            found["line_share"] = Missing(
                f"{_display_name(window)}: the readings do not include the share of the line rate"
            )
        elif isinstance(passed, Missing):
            found["line_share"] = passed
        else:
            framing = went * 8 / seconds * line.extra_bytes
            found["line_share"] = scale_estimate(Estimate(passed + framing, estimate_error(passed)), 1 / line.rate_bps)
    # The counters were read at some instant between question and answer.
    apart = float(window["time_error_s"][0] + window["time_error_s"][-1]) / seconds
    return {
        name: value if isinstance(value, Missing) else Estimate(value, estimate_error(value) + abs(value) * apart)
        for name, value in found.items()
    }


def _display_name(readings: Columns) -> str:
    """Return the display name of the class."""
    return " ".join(str(readings[name][0]) for name in ("device", "interface", "direction", "class"))


def _printed_values(readings: Columns, traffic_s: float, line: Line | None) -> _Figures:
    """Return the values that the router prints at the time of `during`."""
    running = readings.select((readings["time_s"] > 0) & (readings["time_s"] < traffic_s))
    if not len(running):
        return {}
    nearest = np.abs(running["time_s"] - DURING * traffic_s).argmin()
    moment = running.take_rows(np.array([nearest]))
    found: _Figures = {"drops": total(dropped_amounts(moment, "packets"), "drops for all reasons")}
    depth = float(printed_depth(moment)[0])
    if not math.isnan(depth):
        found["queue_depth"] = depth
    offered, lost = (float(round_as_printed(moment[f"{name}_rate_bps"])[0]) for name in ("offered", "drop"))
    if not math.isnan(offered + lost):
        found |= {"offered": offered, "dropped": lost, "passed": offered - lost}
    return found
