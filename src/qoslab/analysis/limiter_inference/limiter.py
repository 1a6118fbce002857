"""The limiter between two captures: a policer, a marker, a shaper, a line, or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from qoslab.analysis.limiter_inference.bucket import Bucket, Interval, infer_bucket, missing
from qoslab.analysis.limiter_inference.clocks import QUARTZ
from qoslab.analysis.limiter_inference.joined import Joined
from qoslab.analysis.limiter_inference.releases import Releases, infer_line_before_losses, infer_releases
from qoslab.analysis.limiter_inference.two_buckets import infer_two_buckets

Counted = Literal["frame", "ip", "wire"]
COUNTED: dict[Counted, str] = {
    "frame": "frames without check sequence, as routers of IOS count",
    "ip": "IP packets",
    "wire": "frames with preamble, check sequence and gap",
}
"""Bytes that a limiter is assumed to count."""
_WIRE = 24
"""Bytes of preamble, check sequence and gap."""
Kind = Literal["policer", "marker", "shaper", "line", "unexplained", "nothing"]

_DEEP = 3
"""Packets that wait at once if something limits; fewer come so by chance."""
_UNSURE, _NEARLY_FULL = 2.0, 0.1
"""A queue is full with so many packets, or such a share, less than it ever held: releases are known to a packet."""
_MOST_ELSEWHERE = 0.1
"""Share of the drops that may have come while the queue was not full."""
_EACH_GAP = 0.9
"""Share of the gaps in which packets were lost, if a line releases packets that are then lost regularly."""
_SAME = 0.02
"""Greatest relative difference of two rates of one limiter."""
_AS_LATE, _ERRORS = 0.05, 2
"""Delays are those of a queue if they grow as it does, to such a share or so many standard errors of the slope."""
_CORRELATED, _CERTAIN = 0.4, 10
"""Least correlation of delays with a queue's length, and least slope in standard errors."""
_CREDITS = np.linspace(0, 0.975, 40)
"""Shares of what is missing from a bucket that a shaper may have sent without delay."""
_RATES = 9
"""Rates of a bucket's interval that are compared with delays."""
_KNOWN = 1.5
"""Greatest by least rate that explain the packets: beyond that the rate counts as unknown."""
_VARIED_S = 1e-3
"""Delays that differ by less are taken to be constant."""

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Limiter:
    """A limiter, in bytes as `counted`; values that it does not have are None."""

    kind: Kind
    counted: Counted
    rate_bps: Interval | None = None
    burst_bytes: Interval | None = None
    interval_s: Interval | None = None
    """Tc."""
    queue_packets: Interval | None = None
    """Packets inside when one was dropped because there was no room: median, fewest, most."""
    ahead_packets: int | None = None
    """Most packets for which one had to wait that overtook others, of the flow that did so most: those in a ring behind
    the queues and on the line, or before it in a queue that is fair."""
    unexplained: int | None = None
    """Packets that the limiter, replayed forward over the arrivals, decides differently; of a shaper or a line those
    that were dropped while its queue was not full."""
    buckets: int | None = None
    """Number of buckets that share the burst: 2 if tokens above the first bucket fill the second (RFC 2697)."""
    busiest_bps: float | None = None
    """Input rate over the busiest tenth of a second: there is no limit below that."""
    varied_s: float | None = None
    """Range of the delays, if no limiter explains them."""

    def lines(self) -> Iterator[str]:
        """Description for display."""
        match self.kind:
            case "nothing":
                yield from self._nothing()
                return
            case "unexplained":
                yield (
                    "No limiter found: packets were lost, and neither a token bucket nor a full queue explains which."
                )
                yield "  possible: random loss, several limiters in series, RED, a shaper with jitter behind it,"
                yield "  traffic missing from the captures, or a limiter that counts other bytes (--count)"
                return
            case "policer" | "marker" | "shaper" | "line":
                yield f"A {self.kind}, counted in {COUNTED[self.counted]}:"
        if self.rate_bps is not None:
            yield f"  rate   {_shown(self.rate_bps, 'b/s')}"
            if self.rate_bps.high > _KNOWN * self.rate_bps.low:
                yield "         known to a range only: the bucket filled up between bursts; longer ones determine it"
        if self.burst_bytes is not None and self.kind != "line":
            shared = ", two buckets of one rate together" if self.buckets == 2 else ""
            yield f"  burst  {_shown(self.burst_bytes, 'B')}{shared}"
        if self.kind == "shaper":
            known = self.interval_s
            yield f"  Tc     {'none: packets leave one by one' if known is None else _shown(_ms(known), 'ms', 4)}"
        if self.queue_packets is not None:
            each = self.queue_packets
            yield f"  queue  {each.value:.0f} packets inside when one was dropped ({each.low:.0f} to {each.high:.0f})"
        if self.ahead_packets is not None:
            yield f"  order  a packet that overtakes others waits for {self.ahead_packets} at most"
        if self.unexplained and self.kind in ("policer", "marker"):
            yield f"  unexplained: {self.unexplained:,} packets that such a bucket decides differently"
        elif self.unexplained:
            yield (
                f"  unexplained: {self.unexplained:,} packets lost while its queue was not full, by RED or by "
                "something else on the path"
            )

    def _nothing(self) -> Iterator[str]:
        shown = f"up to {self.busiest_bps:,.0f} b/s came in over 0.1 s"
        if self.varied_s is None or self.varied_s < _VARIED_S:
            yield f"Nothing limits: {shown} and left without waiting."
            return
        yield f"No limiter found: {shown}, nothing was lost, and packets do not leave at a constant rate."
        yield (
            f"  delays differ by {1e3 * self.varied_s:.3f} ms: jitter, or a line shared with traffic that is missing "
            "from the captures"
        )

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: {"value": value.value, "low": value.low, "high": value.high} if isinstance(value, Interval) else value
            for name, value in found.items()
        }


def sizes(packets: pd.DataFrame, counted: Counted) -> Array:
    """Bytes of each packet as a limiter may count them."""
    if counted == "ip":
        return packets["network_bytes"].to_numpy(np.float64)
    return packets["bytes"].to_numpy(np.float64) + (_WIRE if counted == "wire" else 0)


def infer(joined: Joined, counted: Counted = "frame") -> Limiter:
    """The limiter of the packets that went from the first capture to the second."""
    packets = joined.packets
    in_s, out_s, size = packets["in_s"].to_numpy(), packets["out_s"].to_numpy(), sizes(packets, counted)
    lost = joined.lost.to_numpy()
    marked = ~lost & (packets["tos"] != packets["after_tos"]).fillna(False).to_numpy(bool)
    delay = out_s[~lost] - in_s[~lost]
    varied_s = float(delay.max() - delay.min())
    before_losses = infer_line_before_losses(in_s, out_s, size) if lost.any() else None
    releases = before_losses or infer_releases(in_s, out_s, size)
    if releases is not None and not joined.clocks.drift_known:
        releases = _drifting(releases)
    if releases is not None and varied_s <= _DEEP * 8 * float(size.max()) / releases.rate_bps.value:
        releases = None
    of_releases = None if releases is None else _of_releases(releases, counted, packets, size)
    if releases is not None and of_releases is not None and _ambiguous(releases, of_releases, size):
        releases = of_releases = None
    if of_releases is not None and (not lost.any() or before_losses is not None or _overflowed(of_releases)):
        return of_releases
    bucket = infer_bucket(in_s, size, ~lost) if lost.any() else None
    if bucket is not None and not (releases is not None and _same(releases, bucket)):
        return _policer_or_queue(bucket, releases, counted, in_s, out_s, size)
    if of_releases is not None:
        return of_releases
    if marked.any() and (marker := infer_bucket(in_s, size, ~marked & ~lost)) is not None:
        return _of_bucket("marker", counted, marker)
    if lost.any():
        both = infer_two_buckets(in_s, size, ~lost)
        if both is not None:
            return _policer_or_queue(both, releases, counted, in_s, out_s, size)
        return Limiter("unexplained", counted, unexplained=int(lost.sum()), varied_s=varied_s)
    return Limiter("nothing", counted, busiest_bps=_busiest(in_s, size), varied_s=varied_s)


def _of_bucket(kind: Kind, counted: Counted, bucket: Bucket) -> Limiter:
    return Limiter(
        kind, counted, bucket.rate_bps, bucket.burst_bytes, unexplained=bucket.unexplained, buckets=bucket.buckets
    )


def _policer_or_queue(
    bucket: Bucket, releases: Releases | None, counted: Counted, in_s: Array, out_s: Array, size: Array
) -> Limiter:
    """Return the line whose queue a bucket describes, if nothing shows when it released packets; else the policer."""
    queue = None if releases is not None else _of_queue(bucket, counted, in_s, out_s, size)
    return queue or _of_bucket("policer", counted, bucket)


def _of_queue(bucket: Bucket, counted: Counted, in_s: Array, out_s: Array, size: Array) -> Limiter | None:
    """The line whose queue is what a bucket describes; None if packets did not wait for it.

    A full queue drops what an empty bucket drops, but the packets that pass wait for the bytes that are missing from
    the bucket, of a shaper for those beyond its burst. Jitter behind it hides at which times it released them, and not
    how long they waited. What a shaper holds, its burst or its queue, cannot be separated then: it is unexplained.
    """
    passed = ~np.isnan(out_s)
    delay = (out_s - in_s)[passed]
    known = bucket.rate_bps
    for rate in dict.fromkeys((known.value, *np.geomspace(known.low, known.high, _RATES).tolist())):
        absent = (missing(in_s - in_s[0], np.where(passed, size, 0.0), rate) + size)[passed]
        for credit in _CREDITS:
            waited = 8 * np.maximum(0, absent - credit * absent.max()) / rate
            if not _grows(waited, delay):
                continue
            if credit:
                return Limiter("unexplained", counted, unexplained=int((~passed).sum()), varied_s=float(np.ptp(delay)))
            left = np.full(len(in_s), np.nan)
            left[passed] = in_s[passed] + waited
            queue, unexplained = _queue(in_s, left, size)
            line = Interval(rate, known.low, known.high)
            return Limiter("line", counted, line, queue_packets=queue, unexplained=unexplained)
    return None


def _grows(waited: Array, delay: Array) -> bool:
    """Return whether delays grow with the expected waiting times: with a slope of 1, and a correlation."""
    (variance, common), (_, of_delays) = np.cov(waited, delay)
    if common <= 0:
        return False
    slope, correlation = common / variance, common / np.sqrt(variance * of_delays)
    error = slope * np.sqrt(max(0.0, 1 / correlation**2 - 1) / max(1, len(delay) - 2))
    close = abs(slope - 1) <= max(_AS_LATE, _ERRORS * error)
    return bool(close and correlation >= _CORRELATED and slope >= _CERTAIN * error)


def _overflowed(found: Limiter) -> bool:
    """Return whether packets were lost at a full queue that is too long to be full by chance."""
    return found.queue_packets is not None and found.queue_packets.low > _DEEP


def _ambiguous(releases: Releases, found: Limiter, size: Array) -> bool:
    """Return whether a shaper of packets of one size may be a line with later loss of every second packet, or more.

    Packets leave at the same times then; only the shaper's queue, full to the packet, explains the losses.
    """
    if not releases.shaper or releases.gaps_with_losses < _EACH_GAP or float(np.ptp(size)) > 0:
        return False
    queue = found.queue_packets
    return queue is None or queue.high - queue.low > 1 or bool(found.unexplained)


def _same(releases: Releases, bucket: Bucket) -> bool:
    """Return whether queue and bucket are the same limiter: the queue is full if the bucket is empty."""
    return abs(releases.rate_bps.value / bucket.rate_bps.value - 1) < _SAME


def _of_releases(releases: Releases, counted: Counted, packets: pd.DataFrame, size: Array) -> Limiter:
    kind: Kind = "shaper" if releases.shaper else "line"
    in_s, out_s = packets["in_s"].to_numpy(), packets["out_s"].to_numpy()
    lost = np.isnan(out_s)
    least = _after_the_line(in_s[~lost], out_s[~lost], size[~lost], None if releases.shaper else releases)
    queue, unexplained = _queue(in_s, out_s - least, size) if lost.any() else (None, None)
    return Limiter(
        kind,
        counted,
        releases.rate_bps,
        releases.burst_bytes,
        releases.interval_s,
        queue,
        _ahead(packets, lost, least),
        unexplained,
    )


def _queue(in_s: Array, left_s: Array, size: Array) -> tuple[Interval | None, int]:
    """Packets inside when one was dropped, and drops at a moment when the queue was not full.

    The limit may be of packets or of bytes; None if it explains too few of the drops.
    """
    lost = np.isnan(left_s)
    inside = _inside(in_s, left_s, np.ones(len(size)))
    absent = []
    for weight in (np.ones(len(size)), size):
        level = _inside(in_s, left_s, weight) + weight
        most = float(level[~lost].max())
        absent.append(level < most - max(_UNSURE * float(weight.max()), _NEARLY_FULL * most))
    elsewhere = min(absent, key=lambda each: int((each & lost).sum())) & lost
    if elsewhere.sum() > _MOST_ELSEWHERE * lost.sum():
        return None, int(elsewhere.sum())
    full = inside[lost & ~elsewhere]
    return Interval(float(np.median(full)), float(full.min()), float(full.max())), int(elsewhere.sum())


def _inside(in_s: Array, left_s: Array, weight: Array) -> Array:
    """The weight of the packets inside when each comes."""
    through = np.flatnonzero(~np.isnan(left_s))
    came = np.sort(in_s[through])
    order = np.argsort(left_s[through], kind="stable")
    gone = np.concatenate([[0.0], np.cumsum(weight[through][order])])
    taken = np.concatenate([[0.0], np.cumsum(weight[through][np.argsort(in_s[through], kind="stable")])])
    # A packet that passed is not inside when it comes.
    before = np.where(np.isnan(left_s), np.searchsorted(came, in_s, "right"), np.searchsorted(came, in_s, "left"))
    found: Array = taken[before] - gone[np.searchsorted(left_s[through][order], in_s, "right")]
    return found


def _ahead(packets: pd.DataFrame, lost: Mask, least: float) -> int | None:
    """Most packets for which one waited that overtook others, of the flow that did so most."""
    overtook = (packets["overtook"] > 0).to_numpy()
    if not overtook.any():
        return None
    in_s, out_s = packets["in_s"].to_numpy(), packets["out_s"].to_numpy()
    passed = packets[~lost].assign(overtook=overtook[~lost])
    shares = passed.groupby(["flow", "tos"])["overtook"].mean().reset_index()
    first = shares.sort_values("overtook", ascending=False, kind="stable").iloc[0]
    mine = ((packets["flow"] == first["flow"]) & (packets["tos"] == first["tos"])).to_numpy() & ~lost
    left = np.sort(out_s[~lost])
    ahead = np.searchsorted(left, out_s[mine], "left") - np.searchsorted(left, in_s[mine] + least, "right")
    return int(ahead.max())


def _after_the_line(in_s: Array, out_s: Array, size: Array, line: Releases | None) -> float:
    """Seconds from when a packet has left the device to when it is seen: the least of any, less its time on the line,
    in which it is inside.
    """
    on_line = 8 * size / line.rate_bps.value if line is not None else 0.0
    return max(0.0, float((out_s - in_s - on_line).min()))


def _busiest(in_s: Array, size: Array) -> float:
    bins = ((in_s - in_s[0]) * 10).astype(np.int64)
    return float(np.bincount(bins, weights=size).max() * 80)


def _drifting(releases: Releases) -> Releases:
    """The same by a clock whose drift is not known."""

    def wider(each: Interval) -> Interval:
        return Interval(each.value, (1 - QUARTZ) * each.low, (1 + QUARTZ) * each.high)

    known = releases.interval_s
    return replace(releases, rate_bps=wider(releases.rate_bps), interval_s=None if known is None else wider(known))


def _ms(each: Interval) -> Interval:
    return Interval(1e3 * each.value, 1e3 * each.low, 1e3 * each.high)


def _shown(each: Interval, unit: str, decimals: int = 0) -> str:
    value, low, high = (f"{number:,.{decimals}f}" for number in (each.value, each.low, each.high))
    return f"{value} {unit} ({low} to {high})"
