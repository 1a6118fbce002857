"""Limiters between two captures of a cell: rows of the table `limiters`, and their metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qoslab.analysis.limiter_inference import Joined, infer, join, load
from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import MetricValue, Missing
from qoslab.analysis.raw import Row
from qoslab.capture import CaptureError
from qoslab.capture.packet_tables import read_packets
from qoslab.errors import UserError
from qoslab.model.experiment import Experiment
from qoslab.model.metrics import CapturesSelector, Reference
from qoslab.results import CellFiles
from qoslab.results.columns import Columns

_COLUMNS = {
    "limiter.rate": "rate_bps",
    "limiter.burst": "burst_bytes",
    "limiter.interval": "interval_ms",
    "limiter.queue": "queue_packets",
    "limiter.ahead": "ahead_packets",
}


def limiter_rows(files: CellFiles, experiment: Experiment, wanted: Iterable[Reference]) -> tuple[list[Row], list[str]]:
    """Return a row for each pair of captures and DSCP that a metric names, and the reasons of missing rows."""
    known = {point.name for point in experiment.captures}
    named = dict.fromkeys(each.selector for each in wanted if each.metric.selector == "captures" and each.selector)
    pairs: dict[tuple[str, str], list[int | None]] = {}
    for pair in map(CapturesSelector.parse, filter(None, named)):
        if known.issuperset((pair.before, pair.after)):
            pairs.setdefault((pair.before, pair.after), []).append(pair.dscp)
    rows: list[Row] = []
    problems = []
    for (before, after), dscps in pairs.items():
        captures = [files.capture(name) for name in (before, after)]
        try:
            joined = join(*load(captures[0], captures[1], lambda file, behind, _: read_packets(file, behind=behind)))
            rows += [{"before": before, "after": after, "dscp": dscp, **_figures(joined, dscp)} for dscp in dscps]
        except (CaptureError, UserError) as error:
            problems.append(f"captures {before} and {after}: {error.message}")
    return rows, problems


def _figures(joined: Joined, dscp: int | None) -> Row:
    """Return the values of the limiter for packets with a DSCP at the input, or for all packets."""
    if dscp is not None and dscp not in joined.dscps:
        # Other arms may have none, which is not an error.
        return {"kind": f"no packet of DSCP {dscp}"}
    found = infer(joined.select_dscp(dscp))
    values = {
        "rate_bps": found.rate_bps,
        "burst_bytes": None if found.burst_from == "least" else found.burst_bytes,
        "interval_ms": found.interval_s,
        "queue_packets": found.queue_packets,
    }
    row: Row = {name: None if each is None else each.value for name, each in values.items()}
    if found.interval_s is not None:
        row["interval_ms"] = 1e3 * found.interval_s.value
    return row | {"kind": found.kind, "ahead_packets": found.ahead_packets, "unexplained": found.unexplained}


@register_metrics("limiters", *_COLUMNS)
def limiter_values(limiters: Columns) -> Iterator[MetricValue]:
    """Compute the metrics of the limiter between two captures; none for several pairs together."""
    if len(limiters) != 1:
        return
    kind, before, after = (limiters[name][0] for name in ("kind", "before", "after"))
    for name, column in _COLUMNS.items():
        if limiters.has(column)[0]:
            yield name, float(limiters[column][0])
        else:
            yield name, Missing(f"found {kind} between {before} and {after}, without this value")
