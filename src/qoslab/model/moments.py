"""Moments of a cell: how long its traffic takes, when in it `during` is, whether a counter has come to a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from qoslab.model.experiment import Arm, Experiment, Trigger
from qoslab.model.metrics import Reference
from qoslab.units import Duration

if TYPE_CHECKING:
    from qoslab import formats

DURING = Fraction(2, 3)
"""The moment `during` as a share of the traffic time: of observations, and of metrics that end in `.during`."""


WINDOW_FROM = Fraction(1, 3)
"""The share of the traffic time from which rates are counted, up to its end: by then flows have found their rate."""


COUNTED_EVERY_S = 1.0
"""How often a data plane is asked for its counters while traffic runs."""


def during(length: Duration) -> Duration:
    """The moment `during` of traffic of this length."""
    return Duration(int(length.ns * DURING))


def traffic_time(experiment: Experiment, arm: Arm) -> Duration:
    """From the start of the first flow to the end of the last."""
    ends = [flow.start_after + experiment.duration_of(arm, flow) for flow in experiment.flows_of(arm)]
    return max(ends, default=Duration(0))


def triggers(experiment: Experiment) -> tuple[Trigger, ...]:
    """The moments of a cell's observations that are a time or the value of a counter; it has its only arm."""
    observed = experiment.observations_of(experiment.arms[0])
    return tuple(dict.fromkeys(each for one in observed for each in one.moments if isinstance(each, Trigger)))


def times_expected(experiment: Experiment, arm: Arm) -> tuple[Duration, ...]:
    """The moments of time of which a figure of the arm's cells is expected, `@ time 6 s`, in order."""
    moments = {each.at.quantity for each in _expected(experiment, arm) if each.at is not None}
    return tuple(sorted((each for each in moments if isinstance(each, Duration)), key=lambda each: each.ns))


def one_packet_decides(experiment: Experiment, arm: Arm) -> bool:
    """Whether a figure of the arm's cells is expected that one packet decides, as the longest round trip."""
    return any(each.metric.of_one for each in _expected(experiment, arm))


def _expected(experiment: Experiment, arm: Arm) -> Iterator[Reference]:
    compared = experiment.compare
    for each in compared.expectations if compared else ():
        if arm.name in each.arms:
            yield Reference.parse(each.metric)


def counted(trigger: Trigger, counters: formats.Counters) -> int:
    """What the counter of a trigger says, in bytes: of the classes of all output policies of a router, not of those
    that are nested in them."""
    return sum(_bytes_of(entry, trigger.at.counter) for entry in _classes(counters))


def _classes(counters: formats.Counters) -> Iterator[Mapping[str, Any]]:
    for port in counters["interfaces"].values():
        everything: list[Mapping[str, Any]] = [port, *(port.get("subinterfaces") or {}).values()]
        for each in everything:
            yield from (each.get("policy_output") or {"classes": ()})["classes"]


def _bytes_of(entry: Mapping[str, Any], counter: str) -> int:
    if counter == "bytes":
        return int(entry["bytes"])
    police = entry.get("police")
    return int(police["conformed"]["bytes"]) if police else 0
