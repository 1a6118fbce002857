"""Metrics `police.*`, from counters of policers over time. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qoslab.analysis.classes import common_value, last_of_class, round_as_printed
from qoslab.analysis.metric_functions import register_metrics
from qoslab.analysis.missing import MetricValue, Missing, known_maximum, total
from qoslab.results.columns import Columns

SETTLED_WITHIN = 0.2
"""Maximum range of the bucket size over the second half of the traffic time that counts as settled."""

_POLICER = ["police_cir_bps", "police_cir_percent", "police_bc_bytes", "police_conformed_packets"]
"""Columns at least one of which every policer has."""


@register_metrics(
    "classes",
    "police.bc",
    "police.conformed_packets",
    "police.exceeded_packets",
    "police.conformed_bytes",
    "police.exceeded_bytes",
    "police.conformed_rate",
    "police.exceeded_rate",
    "police.exceed_share",
    "police.violate_share",
    "police.without_tokens_share",
    "police.tokens_lost",
    "police.tokens_lost.longest",
)
def policer_values(classes: Columns) -> Iterator[MetricValue]:
    """Yield the totals of all policers of one cell; `police.bc` only if all have the same burst."""
    policed = last_of_class(classes.select(np.logical_or.reduce([classes.has(name) for name in _POLICER])))
    if not len(policed):
        return
    burst = common_value(policed, "police_bc_bytes")
    if burst is not None:
        yield "police.bc", burst
    counts = [policed[f"police_{colour}_packets"] for colour in ("conformed", "exceeded")]
    # Without a violate action this counter does not exist.
    counts.append(np.nan_to_num(policed["police_violated_packets"]))
    conformed, exceeded, violated = (total(each, "packets of policers") for each in counts)
    yield "police.conformed_packets", conformed
    yield "police.exceeded_packets", exceeded
    for colour in ("conformed", "exceeded"):
        yield f"police.{colour}_bytes", total(policed[f"police_{colour}_bytes"], "bytes of policers")
        yield (
            f"police.{colour}_rate",
            total(round_as_printed(policed[f"police_{colour}_rate_bps"]), "rates of policers"),
        )
    if isinstance(conformed, Missing) or isinstance(exceeded, Missing) or isinstance(violated, Missing):
        why = Missing(next(each for each in (conformed, exceeded, violated) if isinstance(each, Missing)))
        yield from ((f"police.{name}_share", why) for name in ("exceed", "violate", "without_tokens"))
    elif every := conformed + exceeded + violated:
        yield "police.exceed_share", exceeded / every
        yield "police.violate_share", violated / every
        yield "police.without_tokens_share", (exceeded + violated) / every
    if policed.has("police_tokens_lost_bytes").any():
        yield "police.tokens_lost", total(policed["police_tokens_lost_bytes"], "lost tokens of policers")
        longest = known_maximum(policed["police_tokens_lost_longest_ns"], "lost tokens of policers")
        yield "police.tokens_lost.longest", longest if isinstance(longest, Missing) else longest / 1e6
    elif policed.has("time_error_s").any():
        for name in ("police.tokens_lost", "police.tokens_lost.longest"):
            yield name, Missing("no show command reports the tokens that overflowed a bucket")


@register_metrics(
    "classes",
    "police.bucket.mean",
    "police.bucket.mean_ms",
    "police.bucket.p95",
    "police.bucket.p95_ms",
    "police.bucket.final",
    "police.bucket.final_ms",
    "police.bucket.late",
    "police.bucket.growths",
    "police.bucket.shrinks",
    "police.bucket.settled",
    traffic_s=lambda selection: selection.cell.traffic_s,
)
def bucket_values(classes: Columns, traffic_s: float) -> Iterator[MetricValue]:
    """Compute the metrics of the dynamic bucket of one cell; empty unless there is exactly one."""
    dynamic = classes.select(classes.has("police_dynamic_bucket_bytes"))
    times = dynamic["time_s"]
    # One row per trigger: several buckets have no common value.
    if not len(dynamic) or len(np.unique(times)) < len(times):
        return
    while_sent = dynamic.take_rows(times.argsort())
    while_sent = while_sent.select((while_sent["time_s"] >= 0) & (while_sent["time_s"] <= traffic_s))
    if not len(while_sent):
        return
    times, sizes = while_sent["time_s"], while_sent["police_dynamic_bucket_bytes"]
    for name, size in (("mean", sizes.mean()), ("p95", np.percentile(sizes, 95)), ("final", sizes[-1])):
        yield f"police.bucket.{name}", float(size)
        yield f"police.bucket.{name}_ms", float(size) * 8000 / float(while_sent["police_cir_bps"][-1])
    yield "police.bucket.growths", float(while_sent["police_dynamic_growths"][-1])
    yield "police.bucket.shrinks", float(while_sent["police_dynamic_shrinks"][-1])
    late = sizes[times >= traffic_s / 2]
    if len(late):
        settled_at = float(late.mean())
        yield "police.bucket.late", settled_at
        near = np.abs(sizes - settled_at) <= SETTLED_WITHIN * settled_at
        if near.any():
            yield "police.bucket.settled", float(times[near][0]) * 1000
