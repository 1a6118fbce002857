"""What limits between two captures: a policer, a marker, a shaper, a line, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from qoslab.analysis.limiter_inference.bucket import Bucket, Interval, infer_bucket
from qoslab.analysis.limiter_inference.joined import Joined
from qoslab.analysis.limiter_inference.releases import Releases, infer_releases
from qoslab.analysis.limiter_inference.two_buckets import infer_two_buckets

Counted = Literal["frame", "ip", "wire"]
COUNTED: dict[Counted, str] = {
    "frame": "frames without check sequence, as routers of IOS count",
    "ip": "IP packets",
    "wire": "frames with preamble, check sequence and gap",
}
"""What bytes a limiter is taken to count."""
_WIRE = 24
"""Bytes of preamble, check sequence and gap."""
Kind = Literal["policer", "marker", "shaper", "line", "unexplained", "nothing"]

_DEEP = 3
"""Packets that wait at once where something limits; fewer come so by chance."""
_ONE_PACKET = 2.5
"""Packets that a line lets go at once, at most."""
_SAME = 0.02
"""By how much two rates of one limiter may differ."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Limiter:
    """What limits, in bytes as `counted`; figures that it has not are None."""

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
    """Packets that the token bucket would have treated otherwise."""
    buckets: int | None = None
    """That share the burst: 2 where the second is filled by what the first has no room for (RFC 2697)."""
    busiest_bps: float | None = None
    """What came in over the busiest tenth of a second: nothing limits below that."""

    def lines(self) -> Iterator[str]:
        """What it is, for people."""
        match self.kind:
            case "nothing":
                yield f"Nothing limits: up to {self.busiest_bps:,.0f} b/s came in over 0.1 s and left without waiting."
                return
            case "unexplained":
                yield "Packets were lost, and neither a token bucket nor a full queue explains which."
                return
            case "policer" | "marker" | "shaper" | "line":
                yield f"A {self.kind}, counted in {COUNTED[self.counted]}:"
        if self.rate_bps is not None:
            yield f"  rate   {_told(self.rate_bps, 'b/s')}"
        if self.burst_bytes is not None and self.kind != "line":
            shared = ", two buckets of one rate together" if self.buckets == 2 else ""
            yield f"  burst  {_told(self.burst_bytes, 'B')}{shared}"
        if self.kind == "shaper":
            known = self.interval_s
            told = "none: packets leave one by one" if known is None else _told(_ms(known), "ms", 4)
            yield f"  Tc     {told}"
        if self.queue_packets is not None:
            each = self.queue_packets
            yield f"  queue  {each.value:.0f} packets inside when one was dropped ({each.low:.0f} to {each.high:.0f})"
        if self.ahead_packets is not None:
            yield f"  order  a packet that overtakes others waits for {self.ahead_packets} at most"
        if self.unexplained:
            yield f"  packets that such a bucket would have treated otherwise: {self.unexplained}"

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
    """What limited the packets that went from the first capture to the second."""
    packets = joined.packets
    in_s, out_s, size = packets["in_s"].to_numpy(), packets["out_s"].to_numpy(), sizes(packets, counted)
    lost = joined.lost.to_numpy()
    marked = ~lost & (packets["tos"] != packets["after_tos"]).fillna(False).to_numpy(bool)
    releases = infer_releases(in_s[~lost], out_s[~lost], size[~lost])
    if releases is not None and not _deep(in_s[~lost], out_s[~lost], size[~lost], releases):
        releases = None
    bucket = infer_bucket(in_s, size, ~lost) if lost.any() else None
    if bucket is not None and not (releases is not None and _same(releases, bucket)):
        return _of_bucket("policer", counted, bucket)
    if releases is not None:
        return _of_releases(releases, counted, packets, size)
    if marked.any() and (marker := infer_bucket(in_s, size, ~marked & ~lost)) is not None:
        return _of_bucket("marker", counted, marker)
    if lost.any():
        both = infer_two_buckets(in_s, size, ~lost)
        return Limiter("unexplained", counted) if both is None else _of_bucket("policer", counted, both)
    return Limiter("nothing", counted, busiest_bps=_busiest(in_s, size))


def _of_bucket(kind: Kind, counted: Counted, bucket: Bucket) -> Limiter:
    return Limiter(
        kind, counted, bucket.rate_bps, bucket.burst_bytes, unexplained=bucket.unexplained, buckets=bucket.buckets
    )


def _same(releases: Releases, bucket: Bucket) -> bool:
    """Whether the queue is what the bucket describes: it is full where the bucket is empty."""
    return abs(releases.rate_bps.value / bucket.rate_bps.value - 1) < _SAME


def _of_releases(releases: Releases, counted: Counted, packets: pd.DataFrame, size: Array) -> Limiter:
    burst = releases.burst_bytes.value > _ONE_PACKET * float(size.max())
    kind: Kind = "shaper" if burst or releases.interval_s is not None else "line"
    in_s, out_s = packets["in_s"].to_numpy(), packets["out_s"].to_numpy()
    lost = np.isnan(out_s)
    least = _after_the_line(in_s[~lost], out_s[~lost], size[~lost], releases if kind == "line" else None)
    left, came = np.sort(out_s[~lost]), np.sort(in_s[~lost])
    queue = None
    if lost.any():
        when = in_s[lost]
        inside = np.searchsorted(came, when, "right") - np.searchsorted(left, when + least, "right")
        queue = Interval(float(np.median(inside)), float(inside.min()), float(inside.max()))
    ahead_most = None
    overtook = (packets["overtook"] > 0).to_numpy()
    if overtook.any():
        passed = packets[~lost].assign(overtook=overtook[~lost])
        shares = passed.groupby(["flow", "tos"])["overtook"].mean().reset_index()
        first = shares.sort_values("overtook", ascending=False, kind="stable").iloc[0]
        mine = ((packets["flow"] == first["flow"]) & (packets["tos"] == first["tos"])).to_numpy() & ~lost
        ahead = np.searchsorted(left, out_s[mine], "left") - np.searchsorted(left, in_s[mine] + least, "right")
        ahead_most = int(ahead.max())
    return Limiter(kind, counted, releases.rate_bps, releases.burst_bytes, releases.interval_s, queue, ahead_most)


def _after_the_line(in_s: Array, out_s: Array, size: Array, line: Releases | None) -> float:
    """Seconds from when a packet has left the device to when it is seen: the least of any, less its time on the line,
    in which it is inside.
    """
    on_line = 8 * size / line.rate_bps.value if line is not None else 0.0
    return max(0.0, float((out_s - in_s - on_line).min()))


def _deep(in_s: Array, out_s: Array, size: Array, releases: Releases) -> bool:
    """Whether more packets wait at once than come so by chance."""
    delay = out_s - in_s
    return float(delay.max() - delay.min()) > _DEEP * 8 * float(size.max()) / releases.rate_bps.value


def _busiest(in_s: Array, size: Array) -> float:
    bins = ((in_s - in_s[0]) * 10).astype(np.int64)
    return float(np.bincount(bins, weights=size).max() * 80)


def _ms(each: Interval) -> Interval:
    return Interval(1e3 * each.value, 1e3 * each.low, 1e3 * each.high)


def _told(each: Interval, unit: str, decimals: int = 0) -> str:
    value, low, high = (f"{number:,.{decimals}f}" for number in (each.value, each.low, each.high))
    return f"{value} {unit} ({low} to {high})"
