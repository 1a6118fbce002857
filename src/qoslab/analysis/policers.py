"""Metrics `police.*`, from counters of policers over time. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from qoslab.analysis.classes import last_of_class, only_value, printed
from qoslab.analysis.metric_functions import metrics_of
from qoslab.analysis.missing import Figure, Missing, most, total

SETTLED_WITHIN = 0.2
"""Maximum range of the bucket size over the second half of the traffic time that counts as settled."""

_POLICER = ["police_cir_bps", "police_cir_percent", "police_bc_bytes", "police_conformed_packets"]
"""Columns of which every policer has at least one."""


@metrics_of(
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
def police_figures(classes: pd.DataFrame) -> Iterator[Figure]:
    """Yield the totals of all policers of one cell; `police.bc` only if all have the same burst."""
    policed = last_of_class(classes[classes[_POLICER].notna().any(axis=1)])
    if policed.empty:
        return
    burst = only_value(policed["police_bc_bytes"])
    if burst is not None:
        yield "police.bc", burst
    counts = policed[["police_conformed_packets", "police_exceeded_packets", "police_violated_packets"]].astype(float)
    # Without a violate action there is no such counter.
    counts["police_violated_packets"] = counts["police_violated_packets"].fillna(0)
    conformed, exceeded, violated = (total(counts[name], "packets of policers") for name in counts)
    yield "police.conformed_packets", conformed
    yield "police.exceeded_packets", exceeded
    for colour in ("conformed", "exceeded"):
        yield f"police.{colour}_bytes", total(policed[f"police_{colour}_bytes"], "bytes of policers")
        yield f"police.{colour}_rate", total(printed(policed[f"police_{colour}_rate_bps"]), "rates of policers")
    if isinstance(conformed, Missing) or isinstance(exceeded, Missing) or isinstance(violated, Missing):
        why = Missing(next(each for each in (conformed, exceeded, violated) if isinstance(each, Missing)))
        yield from ((f"police.{name}_share", why) for name in ("exceed", "violate", "without_tokens"))
    elif every := conformed + exceeded + violated:
        yield "police.exceed_share", exceeded / every
        yield "police.violate_share", violated / every
        yield "police.without_tokens_share", (exceeded + violated) / every
    if policed["police_tokens_lost_bytes"].notna().any():
        yield "police.tokens_lost", total(policed["police_tokens_lost_bytes"], "lost tokens of policers")
        longest = most(policed["police_tokens_lost_longest_ns"], "lost tokens of policers")
        yield "police.tokens_lost.longest", longest if isinstance(longest, Missing) else longest / 1e6
    elif policed["time_error_s"].notna().any():
        for name in ("police.tokens_lost", "police.tokens_lost.longest"):
            yield name, Missing("no show command reports the tokens that overflowed a bucket")


@metrics_of(
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
def bucket_figures(classes: pd.DataFrame, traffic_s: float) -> Iterator[Figure]:
    """Compute the metrics of the dynamic bucket of one cell; none if there is none, or more than one."""
    dynamic = classes[classes["police_dynamic_bucket_bytes"].notna()]
    # One row per trigger: several buckets have no common value.
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
