"""What limits between two captures of a cell, as far as metrics ask: rows of the table `limiters`, and its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from qoslab.analysis.between import infer, join, load
from qoslab.analysis.missing import Figure, Missing
from qoslab.analysis.raw import Row
from qoslab.analysis.registry import metrics_of
from qoslab.capture import CaptureError
from qoslab.errors import UserError
from qoslab.model.experiment import Experiment
from qoslab.model.metrics import Reference
from qoslab.pcap import read_packets
from qoslab.results import Cell

_COLUMNS = {
    "limiter.rate": "rate_bps",
    "limiter.burst": "burst_bytes",
    "limiter.interval": "interval_ms",
    "limiter.queue": "queue_packets",
    "limiter.ahead": "ahead_packets",
}


def limiter_rows(cell: Cell, experiment: Experiment, wanted: Iterable[Reference]) -> tuple[list[Row], list[str]]:
    """A row for each two captures that a metric names, and why there is none."""
    known = {point.name for point in experiment.captures}
    rows: list[Row] = []
    problems = []
    for selector in dict.fromkeys(each.selector for each in wanted if each.metric.selector == "captures"):
        before, after, *only = (selector or " ").split(" ")
        if not known.issuperset((before, after)):
            continue
        dscp = int(only[1]) if only else None
        files = [cell.capture(name) for name in (before, after)]
        try:
            joined = join(*load(files[0], files[1], lambda file, behind: read_packets(file, behind=behind)))
            if dscp is not None and dscp not in joined.dscps:
                # Other arms may have none, which is no fault of theirs.
                rows.append({"before": before, "after": after, "dscp": dscp, "kind": f"no packet of DSCP {dscp}"})
                continue
            found = infer(joined if dscp is None else joined.of_dscp(dscp))
        except (CaptureError, UserError) as error:
            problems.append(f"captures {before} and {after}: {error.message}")
            continue
        figures = {
            "rate_bps": found.rate_bps,
            "burst_bytes": found.burst_bytes,
            "interval_ms": found.interval_s,
            "queue_packets": found.queue_packets,
        }
        row: Row = {name: None if each is None else each.value for name, each in figures.items()}
        if found.interval_s is not None:
            row["interval_ms"] = 1e3 * found.interval_s.value
        row |= {"before": before, "after": after, "dscp": dscp, "kind": found.kind}
        rows.append(row | {"ahead_packets": found.ahead_packets, "unexplained": found.unexplained})
    return rows, problems


@metrics_of("limiters", *_COLUMNS)
def limiter_figures(limiters: pd.DataFrame) -> Iterator[Figure]:
    """Figures of what is between two captures; of several pairs together none."""
    if len(limiters) != 1:
        return
    row = limiters.iloc[0]
    for name, column in _COLUMNS.items():
        if pd.notna(row[column]):
            yield name, float(row[column])
        else:
            yield name, Missing(f"found {row['kind']} between {row['before']} and {row['after']}, which has none")
