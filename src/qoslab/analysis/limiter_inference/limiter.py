"""Limiter between two captures: a policer, a marker, a shaper, a line, or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from qoslab.analysis.limiter_inference.bucket import (
    FEWEST,
    MOST_UNEXPLAINED,
    Bucket,
    BurstSource,
    Interval,
    infer_bucket,
    missing_bytes,
)
from qoslab.analysis.limiter_inference.bucket_with_losses import Place, infer_bucket_with_losses
from qoslab.analysis.limiter_inference.clocks import QUARTZ
from qoslab.analysis.limiter_inference.packet_matching import Joined
from qoslab.analysis.limiter_inference.releases import Releases, infer_line_before_losses, infer_releases
from qoslab.analysis.limiter_inference.two_buckets import infer_two_buckets

Counted = Literal["frame", "ip", "wire"]
COUNTED: dict[Counted, str] = {
    "frame": "frames without FCS, as counted by IOS routers",
    "ip": "IP packets",
    "wire": "frames with preamble, FCS and interframe gap",
}
"""Units in which a limiter may count bytes."""
_WIRE = 24
"""Bytes of preamble, FCS and interframe gap."""
Kind = Literal["policer", "marker", "shaper", "line", "unexplained", "nothing"]

_DEEP = 3
"""Number of queued packets that shows a limiter; fewer can arrive together by chance."""
_UNSURE, _NEARLY_FULL = 2.0, 0.1
"""A queue counts as full up to this number of packets, or this share, below its maximum, since releases are known to
one packet.
"""
_MOST_ELSEWHERE = 0.1
"""Maximum share of drops while the queue was not full."""
_EACH_GAP = 0.9
"""Minimum share of gaps with losses if a line releases packets that are then lost regularly."""
_SAME = 0.02
"""Maximum relative difference of two rates of the same limiter."""
_AS_LATE, _ERRORS = 0.05, 2
"""Maximum deviation from 1 of the slope of delays over a queue's waiting times: absolute, or in standard errors."""
_CORRELATED, _CERTAIN = 0.4, 10
"""Minimum correlation of delays with a queue's length, and minimum slope in standard errors."""
_CREDITS = np.linspace(0, 0.975, 40)
"""Shares of a bucket's missing bytes that a shaper may have sent without delay."""
_RATES = 9
"""Number of rates in a bucket's interval that are compared with delays."""
_KNOWN = 1.5
"""Maximum ratio of the rates that explain the packets; above it the rate counts as unknown."""
_PLACES: dict[Place, str] = {
    "before": "before the policer: they consumed no tokens",
    "after": "after the policer, or missing from the second capture: they consumed tokens",
    "unknown": "before or after the policer, which these packets do not show",
}
_VARIED_S = 1e-3
"""Maximum difference of delays that count as constant."""

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Limiter:
    """A limiter, in bytes as `counted`; values that do not apply are None."""

    kind: Kind
    counted: Counted
    rate_bps: Interval | None = None
    burst_bytes: Interval | None = None
    interval_s: Interval | None = None
    """Tc, the shaping interval."""
    queue_packets: Interval | None = None
    """Queued packets at drops due to a full queue: median, minimum, maximum."""
    ahead_packets: int | None = None
    """Maximum number of packets that an overtaking packet waited for, in the flow with most overtaking: packets in a
    ring after the queues and on the line, or ahead of it in a fair queue.
    """
    unexplained: int | None = None
    """Number of packets with a different decision in the replay; for a shaper or a line, number of drops while its
    queue was not full.
    """
    buckets: int | None = None
    """Number of buckets that share the burst: 2 if tokens above the first bucket fill the second (RFC 2697)."""
    busiest_bps: float | None = None
    """Input rate over the busiest tenth of a second: there is no limit below that."""
    varied_s: float | None = None
    """Input rate over the busiest tenth of a second: any limit is higher."""
    largest_passed_bytes: int | None = None
    """Size of the largest packet that passed, if all larger packets were lost and no others."""
    burst_from: BurstSource | None = None
    """Evidence of the burst of a policer or marker."""
    random_losses: Place | None = None
    """Position of random losses relative to a policer, if it is the one limiter and did not drop all lost packets;
    `unexplained` is their number.
    """
    random_share: float | None = None
    """Share of these losses: of all packets if before the policer, otherwise of the packets that it passed."""
    unseen_packets: int | None = None
    """Number of packets missing from the first capture that count as passed, at the time at which they must have
    arrived.
    """
    lost_every: int | None = None
    """Number of packets from one lost packet to the next, if it is always the same, from the first packet on."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of a description."""
        yield from self._answer_text()
        if self.unseen_packets:
            yield f"  included: {self.unseen_packets:,} passed packets that are missing from the first capture"

    def _answer_text(self) -> Iterator[str]:
        match self.kind:
            case "nothing":
                yield from self._no_limiter_text()
                return
            case "unexplained" if self.largest_passed_bytes is not None:
                yield (
                    f"No limiter found: all packets larger than {self.largest_passed_bytes:,} B were lost, and no "
                    f"other packets."
                )
                yield "  possible causes: an MTU, a filter, or a policer with a burst smaller than these packets"
                return
            case "unexplained" if self.lost_every is not None:
                yield f"No limiter found: exactly one packet in {self.lost_every} was lost, from the start on."
                yield "  possible causes: a regular fault, or a policer whose bucket was empty; send bursts to find out"
                return
            case "unexplained":
                yield (
                    "No limiter found: packets were lost, but neither a token bucket nor a full queue explains the "
                    "losses."
                )
                yield "  possible causes: random loss, several limiters in series, RED, a shaper with jitter behind it,"
                yield "  traffic missing from the captures, or a limiter that counts other bytes (--count)"
                return
            case "policer" | "marker" | "shaper" | "line":
                yield f"A {self.kind}, counted in {COUNTED[self.counted]}:"
        yield from self._rate_and_burst_text()
        if self.kind == "shaper":
            known = self.interval_s
            shown = "none: packets leave one by one" if known is None else _interval_text(_ms(known), "ms", 4)
            yield f"  Tc     {shown}"
        if self.queue_packets is not None:
            each = self.queue_packets
            yield f"  queue  {each.value:.0f} packets queued at a drop ({each.low:.0f} to {each.high:.0f})"
        if self.ahead_packets is not None:
            yield f"  order  a packet that overtakes others waits for at most {self.ahead_packets} packets"
        if self.random_losses is not None:
            share = 100 * (self.random_share or 0)
            yield f"  other losses: {self.unexplained:,} packets ({share:.2g} %) lost at random"
            yield f"         {_PLACES[self.random_losses]}"
        elif self.unexplained and self.kind in ("policer", "marker"):
            yield f"  unexplained: {self.unexplained:,} packets that such a bucket would treat differently"
        elif self.unexplained:
            yield (
                f"  unexplained: {self.unexplained:,} packets lost while the queue was not full, by RED or by "
                "something else on the path"
            )

    def _rate_and_burst_text(self) -> Iterator[str]:
        if self.rate_bps is not None:
            yield f"  rate   {_interval_text(self.rate_bps, 'b/s')}"
            if self.rate_bps.high > _KNOWN * self.rate_bps.low:
                if self.kind == "shaper":
                    yield "         known only as a range: highest if the packets were lost after the shaper"
                else:
                    yield "         known only as a range: the bucket filled up between bursts; use longer bursts"
        if self.burst_bytes is not None and self.kind != "line":
            shared = ", two buckets with the same rate together" if self.buckets == 2 else ""
            if self.burst_from == "least":
                yield f"  burst  at least {self.burst_bytes.low:,.0f} B: the bucket was never full in this capture"
            else:
                yield f"  burst  {_interval_text(self.burst_bytes, 'B')}{shared}"
            if self.burst_from == "start":
                yield "         if the bucket was full at the start of the capture; later it was not"

    def _no_limiter_text(self) -> Iterator[str]:
        shown = f"up to {self.busiest_bps:,.0f} b/s arrived over 0.1 s"
        if self.varied_s is None or self.varied_s < _VARIED_S:
            yield f"No rate limit: {shown} and left without waiting."
            return
        yield f"No limiter found: {shown}, no packets were lost, and packets do not leave at a constant rate."
        yield (
            f"  delays vary by {1e3 * self.varied_s:.3f} ms: jitter, or a line shared with traffic missing from the "
            f"captures"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the same values for programs."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: {"value": value.value, "low": value.low, "high": value.high} if isinstance(value, Interval) else value
            for name, value in found.items()
        }


def sizes(packets: pd.DataFrame, counted: Counted) -> Array:
    """Return the bytes of each packet as a limiter may count them."""
    if counted == "ip":
        return packets["network_bytes"].to_numpy(np.float64)
    return packets["bytes"].to_numpy(np.float64) + (_WIRE if counted == "wire" else 0)


def infer(joined: Joined, counted: Counted = "frame") -> Limiter:
    """Infer the limiter of the packets from the first capture to the second."""
    if joined.unseen is not None and joined.lost_mask.any() and _delay_range(joined.packets) < _VARIED_S:
        # They have consumed tokens, and with constant delays their arrivals are known.
        return replace(infer(joined.with_unseen(), counted), unseen_packets=len(joined.unseen))
    packets = joined.packets
    in_s, out_s, size = packets["in_s"].to_numpy(), packets["out_s"].to_numpy(), sizes(packets, counted)
    lost = joined.lost_mask.to_numpy()
    marked = ~lost & (packets["tos"] != packets["after_tos"]).fillna(False).to_numpy(bool)
    varied_s = _delay_range(packets)
    if (largest := _largest_passed_size(size, lost)) is not None:
        count = int(lost.sum())
        return Limiter("unexplained", counted, unexplained=count, varied_s=varied_s, largest_passed_bytes=largest)
    before_losses = infer_line_before_losses(in_s, out_s, size) if lost.any() else None
    releases = before_losses or infer_releases(in_s, out_s, size)
    if releases is not None and not joined.clocks.drift_known:
        releases = _with_unknown_drift(releases)
    if releases is not None and varied_s <= _DEEP * 8 * float(size.max()) / releases.rate_bps.value:
        releases = None
    of_releases = None if releases is None else _limiter_from_releases(releases, counted, joined, size)
    if releases is not None and of_releases is not None and _is_ambiguous(releases, of_releases, size):
        releases = of_releases = None
    if of_releases is not None and (not lost.any() or before_losses is not None or _has_overflowed(of_releases)):
        return of_releases
    every = _lost_every(lost)
    bucket = infer_bucket(in_s, size, ~lost) if lost.any() and every is None else None
    if bucket is not None and not (releases is not None and _have_same_rate(releases, bucket)):
        return _policer_or_queue_limiter(bucket, releases, counted, in_s, out_s, size)
    if of_releases is not None:
        return of_releases
    if marked.any() and (marker := infer_bucket(in_s, size, ~marked & ~lost)) is not None:
        return _limiter_from_bucket("marker", counted, marker)
    if lost.any():
        both = infer_two_buckets(in_s, size, ~lost) if every is None else None
        if both is not None:
            return _policer_or_queue_limiter(both, releases, counted, in_s, out_s, size)
        if (
            every is None
            and releases is None
            and (found := _policer_with_losses(counted, in_s, out_s, size)) is not None
        ):
            return found
        return Limiter("unexplained", counted, unexplained=int(lost.sum()), varied_s=varied_s, lost_every=every)
    return Limiter("nothing", counted, busiest_bps=_busiest(in_s, size), varied_s=varied_s)


def _delay_range(packets: pd.DataFrame) -> float:
    """Return the range of the delays in seconds."""
    delay = packets["out_s"] - packets["in_s"]
    return float(delay.max() - delay.min())


def _largest_passed_size(size: Array, lost: Mask) -> int | None:
    """Return the size of the largest packet that passed, if the sizes alone decide which packets were lost.

    A bucket that is smaller than these packets drops the same ones at any rate, as an MTU does.
    """
    if min(int(lost.sum()), int((~lost).sum())) < FEWEST or size[lost].min() <= size[~lost].max():
        return None
    return int(size[~lost].max())


def _lost_every(lost: Mask) -> int | None:
    """Return the number of packets from one loss to the next, if it is always the same and the first loss is no later.

    A full bucket passes more packets at first. Without that, a regular fault loses the same packets of constant-rate
    traffic as a policer does.
    """
    places = np.flatnonzero(lost)
    if len(places) < FEWEST:
        return None
    step = int(places[1] - places[0])
    regular = bool((np.diff(places) == step).all()) and places[0] < step and len(lost) - places[-1] <= step
    return step if regular and step > 1 else None


def _limiter_from_bucket(kind: Kind, counted: Counted, bucket: Bucket) -> Limiter:
    return Limiter(
        kind,
        counted,
        bucket.rate_bps,
        bucket.burst_bytes,
        unexplained=bucket.unexplained,
        buckets=bucket.buckets,
        burst_from=bucket.burst_from,
    )


def _policer_or_queue_limiter(
    bucket: Bucket, releases: Releases | None, counted: Counted, in_s: Array, out_s: Array, size: Array
) -> Limiter:
    """Return the line with the queue that a bucket describes, if nothing shows its release times; otherwise the
    policer.
    """
    queue = None if releases is not None else _line_from_bucket(bucket, counted, in_s, out_s, size)
    return queue or _limiter_from_bucket("policer", counted, bucket)


def _policer_with_losses(counted: Counted, in_s: Array, out_s: Array, size: Array) -> Limiter | None:
    """Return the policer on a path that loses other packets at random; None if there is none, or if packets wait as in
    a queue.
    """
    found = infer_bucket_with_losses(in_s, size, ~np.isnan(out_s))
    if found is None or _line_from_bucket(found.bucket, counted, in_s, out_s, size) is not None:
        return None
    limiter = _limiter_from_bucket("policer", counted, found.bucket)
    of = len(size) if found.place == "before" else found.reached
    return replace(limiter, unexplained=found.random, random_losses=found.place, random_share=found.random / of)


def _line_from_bucket(bucket: Bucket, counted: Counted, in_s: Array, out_s: Array, size: Array) -> Limiter | None:
    """Return the line with the queue that a bucket describes; None if packets did not wait for it.

    A full queue drops the same packets as an empty bucket, but passed packets wait for the bytes missing from the
    bucket, or for a shaper the bytes beyond its burst. Jitter after the queue hides the release times, but not the
    waiting times. A shaper's burst and queue cannot be separated then, so its losses are unexplained.
    """
    passed = ~np.isnan(out_s)
    delay = (out_s - in_s)[passed]
    known = bucket.rate_bps
    for rate in dict.fromkeys((known.value, *np.geomspace(known.low, known.high, _RATES).tolist())):
        absent = (missing_bytes(in_s - in_s[0], np.where(passed, size, 0.0), rate) + size)[passed]
        for credit in _CREDITS:
            waited = 8 * np.maximum(0, absent - credit * absent.max()) / rate
            if not _delays_grow_with_waiting(waited, delay):
                continue
            if credit:
                return Limiter("unexplained", counted, unexplained=int((~passed).sum()), varied_s=float(np.ptp(delay)))
            left = np.full(len(in_s), np.nan)
            left[passed] = in_s[passed] + waited
            queue, unexplained = _queue(in_s, left, size)
            line = Interval(rate, known.low, known.high)
            return Limiter("line", counted, line, queue_packets=queue, unexplained=unexplained)
    return None


def _delays_grow_with_waiting(waited: Array, delay: Array) -> bool:
    """Return whether delays grow with the expected waiting times, with a slope of 1 and sufficient correlation."""
    (variance, common), (_, of_delays) = np.cov(waited, delay)
    if common <= 0:
        return False
    slope, correlation = common / variance, common / np.sqrt(variance * of_delays)
    error = slope * np.sqrt(max(0.0, 1 / correlation**2 - 1) / max(1, len(delay) - 2))
    close = abs(slope - 1) <= max(_AS_LATE, _ERRORS * error)
    return bool(close and correlation >= _CORRELATED and slope >= _CERTAIN * error)


def _has_overflowed(found: Limiter) -> bool:
    """Return whether packets were lost at a full queue that is too long to be full by chance."""
    return found.queue_packets is not None and found.queue_packets.low > _DEEP


def _is_ambiguous(releases: Releases, found: Limiter, size: Array) -> bool:
    """Return whether a shaper of equally large packets could also be a line with regular later loss of at least every
    second packet.

    The departure times are the same; only a shaper's queue that is full to the packet explains the losses.
    """
    if not releases.shaper or releases.gaps_with_losses < _EACH_GAP or float(np.ptp(size)) > 0:
        return False
    queue = found.queue_packets
    return queue is None or queue.high - queue.low > 1 or bool(found.unexplained)


def _have_same_rate(releases: Releases, bucket: Bucket) -> bool:
    """Return whether queue and bucket have the same rate: they are the same limiter, with a full queue for an empty
    bucket.
    """
    return abs(releases.rate_bps.value / bucket.rate_bps.value - 1) < _SAME


def _limiter_from_releases(releases: Releases, counted: Counted, joined: Joined, size: Array) -> Limiter:
    kind: Kind = "shaper" if releases.shaper else "line"
    packets = joined.packets
    in_s, out_s = packets["in_s"].to_numpy(), packets["out_s"].to_numpy()
    lost = np.isnan(out_s)
    least = _min_delay_after_line(in_s[~lost], out_s[~lost], size[~lost], None if releases.shaper else releases)
    queue, unexplained = _queue(in_s, out_s - least, size) if lost.any() else (None, None)
    rate = releases.rate_bps
    if releases.shaper and lost.any():
        # If the clocks differ, the length of the queue is uncertain.
        nearly_full = 0.0 if joined.clocks.state == "agree" else _NEARLY_FULL
        sent, all_after = _sent_ratio(in_s, out_s - least, size, nearly_full)
        rate, queue = replace(rate, high=rate.high * sent), None if all_after else queue
    return Limiter(
        kind,
        counted,
        rate,
        releases.burst_bytes,
        releases.interval_s,
        queue,
        _max_packets_ahead(packets, lost, least),
        unexplained,
    )


def _sent_ratio(in_s: Array, left_s: Array, size: Array, nearly_full: float) -> tuple[float, bool]:
    """Return the ratio of the bytes that a shaper may have sent to those that passed, and whether all packets may have
    been lost after it.

    Its rate is measured by the passed packets. A full queue drops at exactly one length; losses at other lengths may be
    those of a policer after the shaper, and then so may all others.
    """
    lost = np.isnan(left_s)
    _, elsewhere = _queue(in_s, left_s, size, nearly_full)
    all_after = bool(elsewhere > MOST_UNEXPLAINED * lost.sum())
    after = float(lost.sum()) if all_after else float(elsewhere)
    return 1 + after * float(size[lost].mean() / size[~lost].sum()), all_after


def _queue(in_s: Array, left_s: Array, size: Array, nearly_full: float = _NEARLY_FULL) -> tuple[Interval | None, int]:
    """Return the number of queued packets at drops, and the number of drops while the queue was not full.

    The limit may be in packets or in bytes. The former is None if it explains too few of the drops.
    """
    lost = np.isnan(left_s)
    inside = _queued_weight(in_s, left_s, np.ones(len(size)))
    absent = []
    for weight in (np.ones(len(size)), size):
        level = _queued_weight(in_s, left_s, weight) + weight
        most = float(level[~lost].max())
        absent.append(level < most - max(_UNSURE * float(weight.max()), nearly_full * most))
    elsewhere = min(absent, key=lambda each: int((each & lost).sum())) & lost
    if elsewhere.sum() > _MOST_ELSEWHERE * lost.sum():
        return None, int(elsewhere.sum())
    full = inside[lost & ~elsewhere]
    return Interval(float(np.median(full)), float(full.min()), float(full.max())), int(elsewhere.sum())


def _queued_weight(in_s: Array, left_s: Array, weight: Array) -> Array:
    """Return the total weight of the queued packets at each arrival."""
    through = np.flatnonzero(~np.isnan(left_s))
    came = np.sort(in_s[through])
    order = np.argsort(left_s[through], kind="stable")
    gone = np.concatenate([[0.0], np.cumsum(weight[through][order])])
    taken = np.concatenate([[0.0], np.cumsum(weight[through][np.argsort(in_s[through], kind="stable")])])
    # A passed packet is not yet queued at its arrival.
    before = np.where(np.isnan(left_s), np.searchsorted(came, in_s, "right"), np.searchsorted(came, in_s, "left"))
    found: Array = taken[before] - gone[np.searchsorted(left_s[through][order], in_s, "right")]
    return found


def _max_packets_ahead(packets: pd.DataFrame, lost: Mask, least: float) -> int | None:
    """Return the maximum number of packets that an overtaking packet waited for, in the flow with most overtaking."""
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


def _min_delay_after_line(in_s: Array, out_s: Array, size: Array, line: Releases | None) -> float:
    """Return the minimum delay from the device to the capture, in seconds, without the packet's time on the line,
    during which it counts as queued.
    """
    on_line = 8 * size / line.rate_bps.value if line is not None else 0.0
    return max(0.0, float((out_s - in_s - on_line).min()))


def _busiest(in_s: Array, size: Array) -> float:
    bins = ((in_s - in_s[0]) * 10).astype(np.int64)
    return float(np.bincount(bins, weights=size).max() * 80)


def _with_unknown_drift(releases: Releases) -> Releases:
    """Return the same releases for a clock with unknown drift."""

    def wider(each: Interval) -> Interval:
        return Interval(each.value, (1 - QUARTZ) * each.low, (1 + QUARTZ) * each.high)

    known = releases.interval_s
    return replace(releases, rate_bps=wider(releases.rate_bps), interval_s=None if known is None else wider(known))


def _ms(each: Interval) -> Interval:
    return Interval(1e3 * each.value, 1e3 * each.low, 1e3 * each.high)


def _interval_text(each: Interval, unit: str, decimals: int = 0) -> str:
    value, low, high = (f"{number:,.{decimals}f}" for number in (each.value, each.low, each.high))
    return f"{value} {unit} ({low} to {high})"
