"""Deliberate mistakes of the analysis, made by patches: name, description, patch.

Most of them change the tables from which metrics are computed, like a faulty reader of raw results would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from qoslab.analysis import (
    averages,
    expected_comparison,
    goodput,
    idle,
    line_limit,
    measured_values,
    series,
    statistics,
    steady,
    timeline,
)
from qoslab.analysis import readings as analysis
from qoslab.analysis.arrivals import Arriving
from qoslab.analysis.limiter_inference import limiter, releases
from qoslab.analysis.limiter_inference.bucket import Arrivals
from qoslab.analysis.metric_functions import CellFacts
from qoslab.analysis.statistics import Values, WarmUp
from qoslab.analysis.verdicts import LOOSE, UNDECIDED, WITHIN
from qoslab.exchange.readers import base, flent
from qoslab.genie import policy_map_interface
from qoslab.results import tables
from qoslab.results.columns import Columns

Change = Callable[[pd.DataFrame], pd.DataFrame]


def table(name: str, change: Change) -> Callable[[], AbstractContextManager[None]]:
    """Return a patch that replaces a table."""

    @contextmanager
    def made() -> Iterator[None]:
        compute, compare = analysis.metrics_of_cell, analysis.report_mismatches

        def changed_columns(rows: Columns) -> Columns:
            return Columns.from_frame(change(tables.make_frame(name, rows)))

        def mistaken(key: tuple[object, ...], facts: CellFacts, *others: Any) -> list[dict[str, object]]:
            read = {**facts.tables, name: changed_columns(facts.tables[name])}
            return compute(key, replace(facts, tables=read), *others)

        def unlike(flows: Columns, arriving: Arriving) -> Iterator[str]:
            return compare(changed_columns(flows) if name == "flows" else flows, arriving)

        with patch.object(analysis, "metrics_of_cell", mistaken), patch.object(analysis, "report_mismatches", unlike):
            yield

    return made


def flows(factor: float) -> Change:
    """Multiply payload and rates by a factor."""
    return lambda rows: rows.assign(bytes=rows["bytes"] * factor, goodput_bps=rows["goodput_bps"] * factor)


def of_sender(rows: pd.DataFrame) -> pd.DataFrame:
    """Return sent bytes in place of received ones."""
    sent = rows["sender_bps"].where(rows["sender_bps"].notna(), rows["goodput_bps"])
    return rows.assign(goodput_bps=sent, bytes=sent * rows["seconds"] / 8)


def whole_reads(rows: pd.DataFrame) -> pd.DataFrame:
    """Return TCP bytes in whole reads of 128 KiB, as iperf3 3.18 counts them."""
    whole = (rows["bytes"] // 131_072 * 131_072).where(rows["protocol"] == "tcp", rows["bytes"])
    return rows.assign(bytes=whole, goodput_bps=whole * 8 / rows["seconds"])


def longer_flow(rows: pd.DataFrame) -> pd.DataFrame:
    """Make the flow a second longer."""
    seconds = rows["seconds"] + 1
    return rows.assign(seconds=seconds, goodput_bps=rows["goodput_bps"] * rows["seconds"] / seconds)


def other_direction(rows: pd.DataFrame) -> pd.DataFrame:
    """Exchange input and output."""
    prefixes = {"input_": "output_", "output_": "input_"}
    names = {name: other + name[len(own) :] for name in rows for own, other in prefixes.items() if name.startswith(own)}
    return rows.rename(columns=names)


def swap_directions(one: str, other: str) -> Change:
    """Exchange two columns."""
    return lambda rows: rows.rename(columns={one: other, other: one})


@contextmanager
def with_warm_up() -> Iterator[None]:
    """Count the warm-up as measurement."""
    found = steady.warm_up

    def without_samples(series: Values, known: int = 0) -> WarmUp:
        return replace(found(series, known), samples=0)

    with patch.object(steady, "warm_up", without_samples):
        yield


ANALYSIS: list[tuple[str, str, Callable[[], AbstractContextManager[None]]]] = [
    ("payload-with-headers", "goodput counts headers of 40 bytes in 1500", table("flows", flows(1500 / 1460))),
    ("rates-in-1024", "rates are in units of 1024 bits", table("flows", flows(1000 / 1024))),
    ("goodput-of-sender", "goodput counts the sent bytes", table("flows", of_sender)),
    ("whole-reads", "goodput omits a partial read of 128 KiB", table("flows", whole_reads)),
    ("time-longer", "a flow lasts one second longer", table("flows", longer_flow)),
    ("first-stream-lost", "the first stream of a flow is left out", table("flows", lambda r: r[r["stream"] != 1])),
    (
        "first-interval-lost",
        "the first two seconds of a flow are left out",
        table("intervals", lambda rows: rows[rows["start_s"] >= 2]),
    ),
    ("warm-up-kept", "no interval is treated as warm-up", with_warm_up),
    ("interfaces-reversed", "the directions of an interface are swapped", table("interfaces", other_direction)),
    (
        "samples-early",
        "counters are read five seconds before their recorded time",
        table("classes", lambda rows: rows.assign(time_s=rows["time_s"] + 5)),
    ),
    (
        "queues-from-zero",
        "queues of a switch are numbered from 0",
        table("queues", lambda rows: rows.assign(queue=rows["queue"] - 1)),
    ),
    (
        "average-for-greatest",
        "the mean and the greatest round trip are swapped",
        table("probes", swap_directions("rtt_avg_ms", "rtt_max_ms")),
    ),
    (
        "jitter-for-round-trip",
        "mean jitter and mean round trip are swapped",
        table("probes", swap_directions("rtt_avg_ms", "jitter_avg_ms")),
    ),
]


@contextmanager
def replace_values(module: object, name: str, other: Callable[..., object]) -> Iterator[None]:
    """Return a patch that replaces a function; the replacement gets the original first."""
    with patch.object(module, name, partial(other, getattr(module, name))):
        yield


def _calculation(module: object, name: str, other: Callable[..., object]) -> Callable[[], AbstractContextManager[None]]:
    return partial(replace_values, module, name, other)


def _from_start(flows: Columns) -> Columns:
    return Columns(len(flows), lambda name: np.zeros(len(flows)) if name == "offset_s" else flows[name])


def _own_rates(_: Callable[..., object], flows: Columns) -> float:
    """Rates of different times added up."""
    return float((flows["bytes"] * 8 / flows["seconds"]).sum())


def _longest(_: Callable[..., object], flows: Columns) -> float:
    """All bytes over the time of the longest flow, whenever it began."""
    return float(flows["bytes"].sum()) * 8 / float(flows["seconds"].max())


def _without_gaps(right: Callable[..., object], found: object, start: float, end: float) -> list[object]:
    """Count time without a report as time without bytes."""
    return []


def _all_cells(_: Callable[..., object], sides: list[list[object]], names: object) -> list[list[object]]:
    """Leave cells unpaired."""
    return sides


def _method(owner: type, name: str, other: Callable[..., object]) -> Callable[[], AbstractContextManager[None]]:
    """Return a patch that replaces a method."""

    @contextmanager
    def made() -> Iterator[None]:
        with patch.object(owner, name, other):
            yield

    return made


def _certain_alone(right: Callable[..., tuple[statistics._Uncertain, str]], *given: object) -> tuple[object, str]:
    """Treat a single value as certain."""
    found, over = right(*given)
    return (found if found.variance >= 0 else statistics._Uncertain(0.0, 1)), over


def _as_passed(verdict: str) -> Callable[..., object]:
    """Count every verdict as passed."""

    def verdict_text(right: Callable[..., object], *given: object) -> object:
        found = right(*given)
        return WITHIN if found == verdict else found

    return verdict_text


def _without_parameters(
    _: Callable[..., object], sides: list[list[measured_values.CellKey]], names: object
) -> list[list[measured_values.CellKey]]:
    """Pair cells by repetition, regardless of their parameters."""
    common = set.intersection(*({key[1:] for key in side} for side in sides))
    return [[key for key in side if key[1:] in common] for side in sides]


def _of_rates(_: Callable[..., object], flows: Columns, everything: Columns) -> Iterator[tuple[str, float]]:
    """Shares are of each flow's own rate over the rate of all, in another time."""
    yield "goodput.share", float(flows["goodput_bps"].sum()) / goodput.total_bps(everything)


def _no_gaps(
    right: Callable[..., object],
    found: object,
    number: int,
    name: str,
    points: list[tuple[float, float]],
    step: float,
    own: object,
) -> object:
    """Join the values of a sparse series without gaps."""
    return right(found, number, name, [(place * step, value) for place, (_, value) in enumerate(points)], step, own)


def _as_utf8(right: Callable[..., object], head: bytes) -> tuple[bytes, str]:
    """Keep a byte order mark as part of the first name in a text."""
    return b"", "utf-8"


def _no_circuits(right: Callable[..., str | None], line: str, indent: int) -> str | None:
    """Treat the heading of a DLCI like any other line."""
    return None if "DLCI" in line else right(line, indent)


@contextmanager
def _any_departures() -> Iterator[None]:
    """Accept departures at any times as those of a limiter, without a replay."""

    def paced(gaps: np.ndarray, sizes: np.ndarray) -> tuple[float, float, np.ndarray]:
        return float(np.median(gaps / sizes)), 0.0, np.ones(len(gaps), dtype=bool)

    with patch.object(releases, "_pace", paced), patch.object(releases, "_replayed_share", lambda *_: 1.0):
        yield


CALCULATION: list[tuple[str, str, Callable[[], AbstractContextManager[None]]]] = [
    (
        "rates-of-other-times",
        "goodput.sum adds up rates of different times",
        _calculation(goodput, "total_bps", _own_rates),
    ),
    (
        "span-of-longest",
        "goodput.sum refers to the duration of the longest flow",
        _calculation(goodput, "total_bps", _longest),
    ),
    (
        "span-to-first-end",
        "the period of several flows ends with the first flow",
        _calculation(goodput, "span", lambda right, flows: timeline.common_span(flows)),
    ),
    (
        "gaps-as-nothing",
        "time without a report counts as time without data",
        _calculation(timeline, "_unreported_spans", _without_gaps),
    ),
    (
        "starts-forgotten",
        "all flows are assumed to start at the same time",
        _calculation(timeline, "spans", lambda right, flows: right(_from_start(flows))),
    ),
    (
        "shortest-interval",
        "steps of curves are as long as the shortest report, so that other streams seem to stop",
        _calculation(series, "step_edges", lambda right, found, step: right((found[0], found[1] + 1.0), step)),
    ),
    (
        "fairness-of-all-times",
        "fairness refers to the whole time, regardless of the times of the flows",
        _calculation(goodput, "common_span", lambda right, flows: timeline.span(flows)),
    ),
    ("cells-unpaired", "a ratio combines different cells", _calculation(measured_values, "matched_cells", _all_cells)),
    (
        "cells-dropped",
        "cells without the value are ignored",
        _calculation(measured_values, "is_undecided", lambda right, counted, planned: False),
    ),
    (
        "averages-of-the-rest",
        "an average includes only the remaining cells",
        _calculation(averages, "is_undecided", lambda right, counted, planned: False),
    ),
    (
        "repetitions-unpaired",
        "two values of a parameter are compared in different repetitions",
        _calculation(averages, "shared_repetitions", lambda right, one, other: (one, other)),
    ),
    (
        "normal-for-t",
        "intervals of few repetitions use the normal distribution",
        _calculation(statistics, "_student_t_quantile", lambda right, free, confidence: right(1e6, confidence)),
    ),
    (
        "variance-of-many",
        "the variance of a median is computed as that of a mean",
        _calculation(
            statistics, "_median_uncertainty", lambda right, values: statistics._mean_uncertainty(values).times(0.5)
        ),
    ),
    (
        "line-without-headers",
        "a line is assumed to carry payload only",
        _calculation(line_limit, "payload_share", lambda right, *_: 1.5),
    ),
    (
        "span-of-a-second-more",
        "the period of several flows ends one second later",
        _calculation(goodput, "span", lambda right, flows: (right(flows)[0], right(flows)[1] + 1.0)),
    ),
    (
        "cells-of-other-parameters",
        "cells are paired by repetition only",
        _calculation(measured_values, "matched_cells", _without_parameters),
    ),
    (
        "arms-unpaired",
        "cells are paired by the parameters in which their arms differ, too",
        _calculation(
            measured_values,
            "pairing_parameters",
            lambda right, sides: {name for side in sides for cell in side for name, _ in cell[0]},
        ),
    ),
    (
        "reports-from-zero",
        "reported intervals are placed as if each flow started at time 0",
        _calculation(
            timeline,
            "_pieces",
            lambda right, reported, low, high, bits: right(
                [reported[0] - low, reported[1] - low, reported[2]], low, high, bits
            ),
        ),
    ),
    (
        "gap-filled-at-its-end",
        "bytes without a report are assigned to the last second",
        _calculation(timeline, "_unreported_spans", lambda right, found, start, end: [(end - 1, end)]),
    ),
    (
        "shares-of-other-times",
        "shares use rates of different times",
        _calculation(goodput, "share_values", _of_rates),
    ),
    (
        "fairness-of-one-more",
        "fairness counts a flow that does not exist",
        _calculation(goodput, "jain", lambda right, each: right(np.append(each, 0.0))),
    ),
    (
        "quantile-of-one-side",
        "an interval leaves out 5 % on each side",
        _calculation(
            statistics, "_student_t_quantile", lambda right, free, confidence: right(free, 2 * confidence - 1)
        ),
    ),
    (
        "degrees-of-all",
        "an interval has as many degrees of freedom as repetitions",
        _calculation(statistics, "_student_t_quantile", lambda right, free, confidence: right(free + 1, confidence)),
    ),
    (
        "interval-of-one",
        "one repetition has an interval of zero width",
        _calculation(statistics, "_uncertain", _certain_alone),
    ),
    (
        "undecided-as-passed",
        "an undecided expectation counts as passed",
        _calculation(expected_comparison, "_verdict", _as_passed(UNDECIDED)),
    ),
    (
        "loose-as-passed",
        "a value within loose bounds counts as passed",
        _calculation(expected_comparison, "_verdict", _as_passed(LOOSE)),
    ),
    (
        "lowest-for-highest",
        "the worst cell is used as the best one",
        _calculation(
            averages, "extremes", lambda right, found, count, *, lowest: right(found, count, lowest=not lowest)
        ),
    ),
    (
        "idle-class-forgotten",
        "a class without packets is not reported",
        _calculation(idle, "_idle_policy_parts", lambda right, *_: iter(())),
    ),
    (
        "candidate-not-replayed",
        "a bucket is not replayed over the arrivals",
        _method(Arrivals, "replay", lambda self, rate, burst: (0, int((~self.passed).sum()))),
    ),
    ("jitter-as-shaper", "packets delayed by jitter are reported as output of a shaper", _any_departures),
    (
        "queue-as-policer",
        "a full queue followed by jitter is reported as a policer",
        _calculation(limiter, "_line_from_bucket", lambda right, *_: None),
    ),
    (
        "clocks-as-one",
        "the interval of a line's rate does not include the drift of two clocks",
        _calculation(limiter, "_with_unknown_drift", lambda right, found: found),
    ),
    (
        "loss-clipped",
        "a negative loss is reported as none",
        _method(base.ForeignResults, "read_loss", lambda self, lost, stream: lost and max(0, lost)),
    ),
    (
        "losses-unnoted",
        "negative losses of intervals are not noted",
        _method(base.ForeignResults, "note_interval_losses", lambda *_: None),
    ),
    (
        "sub-series-as-stream",
        "a sub-series of flent is read as a stream",
        _calculation(flent, "_series_key", lambda right, *_: ""),
    ),
    ("sparse-times-shifted", "a sparse series of flent has no gaps", _calculation(flent, "_add_stream", _no_gaps)),
    ("mark-as-text", "a byte order mark is read as text", _calculation(base, "_detect_encoding", _as_utf8)),
    (
        "circuits-unread",
        "the heading of a DLCI is not recognised",
        _calculation(policy_map_interface, "_parse_heading", _no_circuits),
    ),
    (
        "circuits-as-one",
        "the circuits of an interface are read as one",
        _calculation(
            policy_map_interface,
            "_parse_heading",
            lambda right, *given: (right(*given) or "").partition(": DLCI")[0] or None,
        ),
    ),
]
"""Mistakes of calculation that no experiment has to detect: `tests/unit/test_calculation.py` does."""
