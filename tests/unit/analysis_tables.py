"""Tables in the form of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
import sample_run

from qoslab.analysis import raw
from qoslab.analysis.metric_functions import CellFacts
from qoslab.analysis.metrics import metrics_of_cell, order_metrics
from qoslab.analysis.readings import TABLES
from qoslab.model.metrics import Reference
from qoslab.results import tables
from qoslab.results.columns import Columns


def flows_table(*streams: tuple[str, float, int]) -> pd.DataFrame:
    """Return the table for rows of (traffic, seconds, bytes)."""
    return tables.frame(
        "flows",
        [
            {
                "arm": "a",
                "repetition": 1,
                "traffic": traffic,
                "stream": number,
                "seconds": seconds,
                "bytes": count,
                "goodput_bps": count * 8 / seconds,
            }
            for number, (traffic, seconds, count) in enumerate(streams, start=1)
        ],
    )


def classes_table(*replies: dict[str, object]) -> pd.DataFrame:
    origin = int(sample_run.STARTED.timestamp() * 10**9)
    return tables.frame(
        "classes", [{"arm": "a", "repetition": 1} | row for row in raw.class_rows("R1", replies, origin)]
    )


CREDIT = [902.9, 806.9, 768.0, 612.0, 744.5, 821.6, 740.1, 798.7, 689.0, 889.8]
"""kb/s, second by second: 763.4 are granted, and the first second has the 190.8 kbit of payload of a full bucket more.
A sender that stops at the end of a second sends so much less in it, the first one too, and so much more in the
next."""


def columns(table: pd.DataFrame) -> Columns:
    return Columns.from_frame(table)


def reported_flows(intervals: pd.DataFrame) -> pd.DataFrame:
    """Streams that received what their intervals report, up to the last interval."""
    found = intervals.groupby(["traffic", "stream"], sort=False).agg(
        offset_s=("offset_s", "first"), seconds=("end_s", "max"), bytes=("bytes", "sum")
    )
    return found.reset_index()


def metrics(found: Mapping[str, pd.DataFrame], traffic_s: float, wanted: Iterable[Reference] = ()) -> pd.DataFrame:
    """Metrics of each cell in the tables `found`."""
    wanted = tuple(wanted)
    keys = pd.concat([table[["arm", "repetition", "cell"]] for table in found.values()]).drop_duplicates()
    rows: list[dict[str, object]] = []
    for key in keys.itertuples(index=False, name=None):
        own = {name: columns(table[table["cell"] == key[2]]) for name, table in found.items()}
        every = {name: tables.plain(name, []) for name in TABLES} | own
        rows += metrics_of_cell(key, CellFacts(every, traffic_s, {}, {}), wanted)
    return order_metrics(tables.frame("metrics", rows))
