"""Tables → the metrics of `qoslab.model.metrics`, by arm and repetition. Pure.

Goodput is payload that the receiving side got, divided by the receiver's own time from start to end of its test. A
traffic's sum is the payload of all its streams over the longest of their times; sums of several traffics add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd

from qoslab.analysis.classes import Lines, class_figures, interfaces_of, last_of_class, selected
from qoslab.analysis.goodput import total_bps
from qoslab.analysis.hosts import host_figures
from qoslab.analysis.missing import Figure, Missing, most, total
from qoslab.analysis.paths import Paths
from qoslab.analysis.queues import Place, each_of, place_figures
from qoslab.analysis.steady import steady_figures
from qoslab.analysis.throughput import only_pir, segment_size, throughput_figures
from qoslab.model.metrics import METRICS, ClassSelector, Reference, Selector, SelectorError
from qoslab.model.moments import DURING
from qoslab.results import tables

_CELL = ["arm", "repetition", "cell"]


def jain(goodputs: pd.Series) -> float:
    """Jain's fairness index (sum x)^2 / (n sum x^2): 1 for equal shares, 1/n where one has all; nan for nothing at all.

    R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984.
    """
    squares = float((goodputs.astype(float) ** 2).sum())
    return float(goodputs.sum()) ** 2 / (len(goodputs) * squares) if squares > 0 else math.nan


def goodput_figures(flows: pd.DataFrame) -> Iterator[Figure]:
    """Figures of one cell's `flows`."""
    if flows.empty:
        return
    yield "goodput.sum", total_bps(flows)
    each = flows["goodput_bps"].astype(float)
    least, greatest = float(each.min()), float(each.max())
    yield "goodput.flow.min", least
    yield "goodput.flow.max", greatest
    if greatest > 0:
        yield "goodput.spread", greatest / least if least > 0 else math.inf
        yield "fairness.jain", jain(each)
    datagrams = flows[flows["datagrams"].notna()]
    if not datagrams.empty:
        sent, lost = float(datagrams["datagrams"].sum()), total(datagrams["lost"], "lost datagrams of streams")
        yield "datagrams.lost", lost
        if sent:
            yield "datagrams.loss", lost if isinstance(lost, Missing) else lost / sent
        # A stream of which no two datagrams arrived has no jitter.
        few = datagrams["datagrams"].astype(float) - datagrams["lost"].astype(float) < 2
        arrived = datagrams[~few]
        if not arrived.empty:
            yield "datagrams.jitter", most(arrived["jitter_ms"], "jitters of streams")


def _only(values: pd.Series) -> float | None:
    """The value that all have; None where they differ or there is none."""
    found = values.dropna().unique()
    return float(found[0]) if len(found) == 1 else None


_POLICER = ["police_cir_bps", "police_cir_percent", "police_bc_bytes", "police_conformed_packets"]
"""One of them every policer has."""


def police_figures(classes: pd.DataFrame) -> Iterator[Figure]:
    """Figures of all policers of one cell together; `police.bc` only where all have the same."""
    policed = last_of_class(classes[classes[_POLICER].notna().any(axis=1)])
    if policed.empty:
        return
    burst = _only(policed["police_bc_bytes"])
    if burst is not None:
        yield "police.bc", burst
    counts = policed[["police_conformed_packets", "police_exceeded_packets", "police_violated_packets"]].astype(float)
    # Where nothing can violate there is no such count.
    counts["police_violated_packets"] = counts["police_violated_packets"].fillna(0)
    conformed, exceeded, violated = (total(counts[name], "packets of policers") for name in counts)
    yield "police.conformed_packets", conformed
    yield "police.exceeded_packets", exceeded
    if isinstance(conformed, Missing) or isinstance(exceeded, Missing) or isinstance(violated, Missing):
        yield "police.exceed_share", Missing(next(each for each in (conformed, exceeded) if isinstance(each, Missing)))
    elif conformed + exceeded + violated:
        yield "police.exceed_share", exceeded / (conformed + exceeded + violated)
    if policed["police_tokens_lost_bytes"].notna().any():
        yield "police.tokens_lost", total(policed["police_tokens_lost_bytes"], "lost tokens of policers")
        longest = most(policed["police_tokens_lost_longest_ns"], "lost tokens of policers")
        yield "police.tokens_lost.longest", longest if isinstance(longest, Missing) else longest / 1e6


def bucket_figures(classes: pd.DataFrame, traffic_s: float) -> Iterator[Figure]:
    """Figures of the dynamic bucket of one cell; none where there is none, or more than one."""
    dynamic = classes[classes["police_dynamic_bucket_bytes"].notna()]
    # One row a moment: nothing is told of several buckets together.
    if dynamic.empty or dynamic["time_s"].duplicated().any():
        return
    while_sent = dynamic[(dynamic["time_s"] >= 0) & (dynamic["time_s"] <= traffic_s)].sort_values("time_s")
    if while_sent.empty:
        return
    last = while_sent.iloc[-1]
    sizes = while_sent["police_dynamic_bucket_bytes"].astype(float)
    for name, size in (("mean", sizes.mean()), ("p95", sizes.quantile(0.95)), ("final", sizes.iloc[-1])):
        yield f"police.bucket.{name}", float(size)
        yield f"police.bucket.{name}_ms", float(size) * 8000 / float(last["police_cir_bps"])
    yield "police.bucket.growths", float(last["police_dynamic_growths"])
    yield "police.bucket.shrinks", float(last["police_dynamic_shrinks"])
    settled_at = float(sizes[while_sent["time_s"] >= traffic_s / 2].mean())
    if not math.isnan(settled_at):
        yield "police.bucket.late", settled_at
    near = while_sent[(sizes - settled_at).abs() <= SETTLED_WITHIN * settled_at]
    if not near.empty:
        yield "police.bucket.settled", float(near["time_s"].iloc[0]) * 1000


SETTLED_WITHIN = 0.2
"""Of the size over the second half of the traffic time."""

_SHAPE = {
    "shape.byte_limit": "shape_byte_limit",
    "shape.sustain_bits": "shape_bc_bits",
    "shape.excess_bits": "shape_be_bits",
    "shape.interval_ms": "shape_interval_ms",
    "shape.increment_bytes": "shape_increment_bytes",
}


def shape_figures(classes: pd.DataFrame, traffic_s: float) -> Iterator[Figure]:
    """Figures of all shapers of one cell; settings only where all have the same, queue depths added up."""
    shaped = classes[classes["shape_mode"].notna()]
    if shaped.empty:
        return
    last = last_of_class(shaped)
    for metric, column in _SHAPE.items():
        value = _only(last[column])
        if value is not None:
            yield metric, value
    running = shaped[(shaped["time_s"] > 0) & (shaped["time_s"] < traffic_s)]
    if running.empty:
        return
    times = running["time_s"].to_numpy(dtype=float)
    moment = running[times == times[np.abs(times - DURING * traffic_s).argmin()]]
    queues = moment[moment["queue_depth_packets"].notna() | moment["queue_discipline"].notna()]
    if not queues.empty:
        yield "shape.queue_depth.during", total(queues["queue_depth_packets"], "depths of queues")
    known = moment["shape_active"].dropna()
    if known.any():
        yield "shape.active.during", 1.0
    elif len(known):
        yield "shape.active.during", total(moment["shape_active"], "states of shapers")


def _class_figures(classes: pd.DataFrame, selector: str | None, traffic_s: float, lines: Lines) -> Iterator[Figure]:
    try:
        meant = ClassSelector.parse(selector, interfaces_of(classes))
    except SelectorError:
        # Names a router or interface that has no class in this cell.
        return
    mine = classes if selector is None else selected(classes, meant, nested=True)
    yield from police_figures(mine)
    yield from bucket_figures(mine, traffic_s)
    yield from shape_figures(mine, traffic_s)
    yield from class_figures(classes, meant, traffic_s, lines)


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """The same with NumPy's types, nan where something is missing: rows of such a table are chosen much faster."""
    numbers = [name for name in table.columns if pd.api.types.is_numeric_dtype(table[name].dtype)]
    numbers = [name for name in numbers if not pd.api.types.is_bool_dtype(table[name].dtype)]
    kinds = {name: "float64" if name in numbers else "object" for name in table.columns}
    return table.astype(kinds)


def _selectors(wanted: Iterable[Reference], kind: Selector, known: Iterable[str]) -> list[str | None]:
    """None, everything known by itself, and what else is wanted."""
    named = [each.selector for each in wanted if each.metric.selector == kind]
    return list(dict.fromkeys([None, *known, *named]))


def probe_figures(probes: pd.DataFrame) -> Iterator[Figure]:
    """Figures of one probe; of several together none, since their paths differ."""
    if len(probes) != 1:
        return
    row = probes.iloc[0]
    yield "rtt.count", float(row["rtt_count"])
    for name in ("rtt", "jitter"):
        for part in ("min", "avg", "max"):
            # An echo operation has no jitter.
            if pd.notna(row[f"{name}_{part}_ms"]):
                yield f"{name}.{part}", float(row[f"{name}_{part}_ms"])


def metrics(
    flows: pd.DataFrame,
    classes: pd.DataFrame,
    traffic_s: Mapping[str, float],
    wanted: Iterable[Reference] = (),
    *,
    intervals: pd.DataFrame | None = None,
    probes: pd.DataFrame | None = None,
    places: Mapping[Place, pd.DataFrame] = MappingProxyType({}),
    hosts: pd.DataFrame | None = None,
    lines: Mapping[str, Lines] = MappingProxyType({}),
    paths: Mapping[str, Paths] = MappingProxyType({}),
) -> pd.DataFrame:
    """The `metrics` table: every metric of all flows, classes and places, of each by itself, and as `wanted`.

    `traffic_s` is the traffic time of each cell; `intervals` is the table of what flows reported; `places` are the
    tables of interfaces and of queues, `hosts` what their kernels counted; `lines` are those behind the routers'
    interfaces and `paths` those of the traffic, of each cell.
    """
    wanted = tuple(wanted)
    classes, places = _plain(classes), {kind: _plain(table) for kind, table in places.items()}
    found: list[tuple[tuple[object, ...], str | None, Figure]] = []
    policed = classes[classes["police_cir_bps"].notna()]
    for key, cell in flows.groupby(_CELL, sort=False, dropna=False):
        name = str(key[2])
        theirs = policed[policed["cell"] == name]
        for selector in _selectors(wanted, "traffic", cell["traffic"].unique()):
            mine = cell if selector is None else cell[cell["traffic"] == selector]
            way, line = paths.get(name, {}), lines.get(name, {})
            found += [(key, selector, figure) for figure in goodput_figures(mine)]
            found += [(key, selector, figure) for figure in throughput_figures(mine, theirs, way, line)]
    if hosts is not None:
        for key, cell in hosts.groupby(_CELL, sort=False, dropna=False):
            mss = segment_size(flows[(flows["cell"] == key[2]) & (flows["protocol"] == "tcp")])
            for selector in _selectors(wanted, "host", cell[cell["sends"]]["host"].unique()):
                mine = cell[cell["sends"] if selector is None else cell["host"] == selector]
                found += [(key, selector, figure) for figure in host_figures(mine, mss)]
    if intervals is not None:
        for key, cell in intervals.groupby(_CELL, sort=False, dropna=False):
            for selector in _selectors(wanted, "traffic", cell["traffic"].unique()):
                mine = cell if selector is None else cell[cell["traffic"] == selector]
                steady = dict(steady_figures(mine))
                pir = only_pir(policed[policed["cell"] == key[2]], lines.get(str(key[2]), {}))
                of_all = steady.get("goodput.steady")
                if pir is not None and isinstance(of_all, float):
                    steady["goodput.of_pir.steady"] = of_all / pir
                found += [(key, selector, figure) for figure in steady.items()]
    if probes is not None:
        for key, cell in probes.groupby(_CELL, sort=False, dropna=False):
            for selector in _selectors(wanted, "probe", cell["probe"].unique()):
                mine = cell if selector is None else cell[cell["probe"] == selector]
                found += [(key, selector, figure) for figure in probe_figures(mine)]
    for key, cell in classes.groupby(_CELL, sort=False, dropna=False):
        outputs = cell[cell["direction"] == "output"]["class"].unique()
        for selector in _selectors(wanted, "class", outputs):
            name = str(key[2])
            figures = _class_figures(cell, selector, traffic_s[name], lines.get(name, {}))
            found += [(key, selector, figure) for figure in figures]
    for kind, table in places.items():
        for key, cell in table.groupby(_CELL, sort=False, dropna=False):
            for selector in _selectors(wanted, kind, each_of(kind, cell)):
                found += [(key, selector, figure) for figure in place_figures(kind, cell, selector)]
    rows: list[dict[str, object]] = [
        {
            "arm": key[0],
            "repetition": key[1],
            "cell": key[2],
            "metric": str(Reference(METRICS[name], selector)),
            "unit": METRICS[name].unit,
            "value": None if isinstance(value, Missing) else value,
            "missing": str(value) if isinstance(value, Missing) else None,
        }
        for key, selector, (name, value) in found
    ]
    return tables.frame("metrics", rows)
