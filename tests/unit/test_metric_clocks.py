"""Clocks of values: none is the difference of two hosts' clocks."""

from __future__ import annotations

from qoslab.model.metrics import METRICS, Metric

ONE_CLOCK = {
    "goodput.warm_up": "intervals as the receiver counts them",
    "tcp.rtt": "the sender's, from a segment to its acknowledgement",
    "rtt.min": "the sender's, less what the other end took by its own",
    "rtt.avg": "the sender's, less what the other end took by its own",
    "rtt.p50": "the sender's, less what the other end took by its own",
    "rtt.max": "the sender's, less what the other end took by its own",
    "interface.delay.mean": "the router's",
    "interface.delay.p50": "the router's",
    "interface.delay.p99": "the router's",
    "interface.delay.max": "the router's",
    "class.queue_delay": "the router's",
    "police.tokens_lost.longest": "the router's",
    "police.bucket.mean_ms": "a size over a rate",
    "police.bucket.p95_ms": "a size over a rate",
    "police.bucket.final_ms": "a size over a rate",
    "police.bucket.settled": "the router's",
    "shape.interval_ms": "a configured time",
    "datagrams.delay.p50": "of virtual time; no other lab measures it",
    "datagrams.delay.p99": "of virtual time; no other lab measures it",
    "datagrams.delay.max": "of virtual time; no other lab measures it",
    "pages.time.p50": "the sender's, up to the receiver's answer",
    "pages.time.mean": "the sender's, up to the receiver's answer",
    "pages.time.max": "the sender's, up to the receiver's answer",
}
"""Times, and the clock that each uses."""
DIFFERENCES = {
    "datagrams.jitter",
    *(f"jitter.{way}{which}" for way in ("", "back.") for which in ("min", "avg", "max")),
}
"""Gaps at one end minus gaps at the other: independent of the offset of the clocks, and at a drift of 50 ppm a gap of
20 ms changes by a millionth of a second.
"""
OF_TWO_CAPTURES = {"limiter.rate", "limiter.burst", "limiter.interval", "limiter.queue", "limiter.ahead"}
"""Values of two captures, whose clocks are aligned by the packets themselves, see `test_limiter_inference`."""


def compares_clocks(metric: Metric) -> bool:
    """Return whether the value may compare two clocks: a time, or a value of two captures."""
    return metric.unit == "ms" or metric.selector == "captures"


def test_no_value_is_the_difference_of_two_host_clocks() -> None:
    times = {metric.name for metric in METRICS.values() if compares_clocks(metric)}
    # A new metric belongs to one of them. If it does not, it has the error of both clocks, or is withheld.
    assert times == {*ONE_CLOCK, *DIFFERENCES, *OF_TWO_CAPTURES}
