"""Series over time for charts, from tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from qoslab.analysis.classes import dropped_amounts as all_dropped
from qoslab.analysis.classes import printed_depth, queued_amounts
from qoslab.analysis.packets import ALL, BIN_NS, flow_name, host_name
from qoslab.analysis.timeline import Timeline, span, step_edges, usual_interval
from qoslab.results import FlowRecord
from qoslab.results.columns import Column, Columns

BIN_S = BIN_NS / 1e9
VALUES_MOST = 2**20
"""Maximum number of bins times flows, enough for an hour with 29 flows in the bins of the packets' table; larger graphs
are slow to draw.
"""
MANY = 32
"""Number of streams of a traffic up to which they are drawn and listed one by one."""


def stream_labels(flows: pd.DataFrame) -> dict[tuple[str, int], str]:
    """Return the label of each stream of a cell, by traffic and number: `stream 1`, `voice 1` among several."""
    several = flows["traffic"].nunique() > 1
    return {
        (str(row["traffic"]), int(row["stream"])): f"{row['traffic'] if several else 'stream'} {row['stream']}"
        for row in flows.to_dict("records")
    }


@dataclass(frozen=True)
class ClassPeaks:
    """Highest rates of a class between two readings, with the state of its bucket and its queue."""

    offered_bps: float
    sent_bps: float
    dropped_bps: float
    bucket_bytes: tuple[float, float, float] | None
    """Least, greatest and last value; None without a dynamic bucket."""
    queue_packets: int | None
    """Greatest length; None without a queue."""


def class_peaks(rates: pd.DataFrame) -> ClassPeaks:
    """Return the peaks in a non-empty result of `class_rates`."""
    offered, sent, dropped = (float(rates[f"{name}_bps"].max()) for name in ("offered", "sent", "dropped"))
    sizes, queue = rates["bucket_bytes"].dropna(), rates["queue_packets"].dropna()
    return ClassPeaks(
        offered,
        sent,
        dropped,
        (sizes.min(), sizes.max(), sizes.iloc[-1]) if len(sizes) else None,
        int(queue.max()) if len(queue) else None,
    )


def means_until(table: pd.DataFrame, seconds: float) -> dict[str, float]:
    """Return the mean of each column of a series by `time_s` from 0 to the given time; 0 if there are no values."""
    busy = table[(table.index >= 0) & (table.index < seconds)]
    return {str(name): float(busy[name].mean()) if len(busy) else 0.0 for name in table.columns}


def flow_throughput(packets_io: pd.DataFrame, flows: pd.DataFrame, records: Sequence[FlowRecord]) -> pd.DataFrame:
    """Return the article's IO graph: bits per second of whole frames in bins of 0.1 s, for one cell at one capture
    point.

    Bins are wider for a long time (`VALUES_MOST`). The index is `time_s`; the columns are `all` (all frames towards the
    receivers, including the tools' control connections), then each stream by its label, or as one column for a traffic
    of more than MANY streams. Bins without packets are 0. If no packet belongs to a flow of the cell, `all` has all
    packets.
    """
    if packets_io.empty:
        return pd.DataFrame({ALL: pd.Series(dtype=float)}, index=pd.Index([], name="time_s", dtype=float))
    table = _rates_by_flow(packets_io)
    ends = {record.traffic: record for record in records}
    towards = [
        name
        for name in table.columns
        if any(
            name.startswith(f"{host_name(str(record.source))}:")
            and name.endswith(f"> {host_name(str(record.destination))}:{record.port}")
            for record in records
        )
    ]
    found = pd.DataFrame({ALL: table[towards].sum(axis=1) if towards else table[ALL]})
    labels = stream_labels(flows)
    names: dict[str, list[str]] = {}
    for row in flows.to_dict("records"):
        traffic = str(row["traffic"])
        if traffic not in ends or pd.isna(row["local_port"]):
            continue
        record = ends[traffic]
        name = flow_name(str(record.source), int(row["local_port"]), str(record.destination), record.port)
        if name in table.columns:
            many = (flows["traffic"] == traffic).sum() > MANY
            names.setdefault(traffic if many else labels[traffic, int(row["stream"])], []).append(name)
    return found.assign(**{label: table[members].sum(axis=1) for label, members in names.items()})


def _rates_by_flow(packets_io: pd.DataFrame) -> pd.DataFrame:
    """Return bits per second of whole frames by bin, with a column for each flow of the table, including `all`.

    For more bins than `VALUES_MOST` allows, several are combined.
    """
    bins = (packets_io["time_s"].astype(float) / BIN_S).round().astype(int)
    values = (int(bins.max()) - int(bins.min()) + 1) * packets_io["flow"].nunique()
    each = -(-values // VALUES_MOST)
    bins //= each
    table = packets_io.assign(bin=bins).pivot_table(index="bin", columns="flow", values="bytes", aggfunc="sum")
    width_s = BIN_S * each
    table = table.reindex(range(int(bins.min()), int(bins.max()) + 1)).fillna(0).astype(float) * 8 / width_s
    table.index = pd.Index(np.round(np.array(table.index) * width_s, 3), name="time_s")
    return table


def frames_of_flows(packets_io: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return the equivalent of `flow_throughput` for a capture without a cell: `all`, then the flows with the most
    bytes.
    """
    table = _rates_by_flow(packets_io)
    greatest = table.drop(columns=ALL).sum().nlargest(most).index
    return table[[ALL, *greatest]]


def reported_throughput(intervals: pd.DataFrame, flows: pd.DataFrame) -> dict[str, pd.Series]:
    """Return payload in bits per second, as reported by the receivers of one cell: `all`, then as `flow_throughput`.

    `time_s` is the middle of a step, in seconds since the start of the cell's traffic. A curve has equal steps with the
    usual interval of its flows or slightly more, from the first start to the last end of the flows, so that its mean is
    their goodput (`qoslab.analysis.goodput.total_bps`). Empty if no flow lasted.
    """
    labels = stream_labels(flows)
    curves = {ALL: flows}
    for traffic, table in flows.groupby("traffic", sort=False):
        if len(table) > MANY:
            curves[str(traffic)] = table
        else:
            numbers = table["stream"].astype(int)
            curves |= {labels[str(traffic), number]: table[numbers == number] for number in numbers}
    reported = Columns.from_frame(intervals)
    found = {name: _payload_curve(Columns.from_frame(table), reported) for name, table in curves.items()}
    return {name: curve for name, curve in found.items() if curve is not None}


def _payload_curve(flows: Columns, intervals: Columns) -> pd.Series | None:
    """Return the total received payload of some flows over time; None if none lasted."""
    ran = span(flows)
    if ran is None:
        return None
    own = intervals.select_values("traffic", flows.distinct("traffic"))
    edges = step_edges(ran, usual_interval(own))
    rates = np.diff(Timeline.from_flows(flows, own).bits_until(edges)) / np.diff(edges)
    return pd.Series(rates, pd.Index(np.round((edges[:-1] + edges[1:]) / 2, 3), name="time_s"))


def class_rates(classes: pd.DataFrame) -> pd.DataFrame:
    """Return the rates of one class of one cell between readings of its counters.

    Columns: time_s (of the later reading), offered_bps, sent_bps, dropped_bps; at the reading queue_packets (null
    without a queue), bucket_bytes and level_bytes (of a dynamic bucket). Bits are those that the router counts: layer 3
    and its layer-2 header. Counters that decrease (since a policy was attached again) start over. A reading less than
    half the usual time after another one is left out, since its rate over a short time would look like a peak.
    """
    readings = Columns.from_frame(classes)
    table = _thin_out_close_samples(readings.take_rows(readings["time_s"].argsort()))
    seconds = _growth(table["time_s"])
    dropped = all_dropped(table, "bytes")
    offered = table["bytes"]

    def rate(count: Column) -> Column:
        found: Column = _growth(count) * 8 / seconds
        return found

    found = pd.DataFrame(
        {
            "time_s": table["time_s"],
            "offered_bps": rate(offered),
            # By the identity of the counters: offered = sent + dropped + queued.
            "sent_bps": rate(offered - dropped - queued_amounts(table, "bytes")),
            "dropped_bps": rate(dropped),
            "queue_packets": printed_depth(table),
            "bucket_bytes": table["police_dynamic_bucket_bytes"],
            "level_bytes": table["police_dynamic_level_bytes"],
        }
    )
    return found[(seconds > 0) & (_growth(offered) >= 0)].reset_index(drop=True)


def _growth(count: Column) -> Column:
    """Return the difference of each value from the previous one; nan for the first."""
    return np.diff(count, prepend=np.nan)


def _thin_out_close_samples(table: Columns) -> Columns:
    times = table["time_s"]
    if len(times) < 3:
        return table
    least = float(np.median(np.diff(times))) / 2
    kept: list[int] = []
    for number, time in enumerate(times):
        if not kept or time - times[kept[-1]] >= least:
            kept.append(number)
    return table.take_rows(np.array(kept))
