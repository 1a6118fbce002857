"""Moments of a cell: how long its traffic takes, when in it `during` is, whether a counter has come to a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from qoslab.model.experiment import Arm, Experiment, Trigger
from qoslab.model.metrics import Reference
from qoslab.model.units import Duration

if TYPE_CHECKING:
    from qoslab.system import program_formats

DURING = Fraction(2, 3)
"""The moment `during` as a share of the traffic time: of observations, and of metrics that end in `.during`."""


WINDOW_FROM = Fraction(1, 3)
"""The share of the traffic time from which rates are counted, up to its end: by then flows have found their rate."""


COUNTED_EVERY_S = 1.0
"""Interval of the data plane's counter readings during traffic."""


def during(length: Duration) -> Duration:
    """The moment `during` of traffic of this length."""
    return Duration(int(length.ns * DURING))


def traffic_time(experiment: Experiment, arm: Arm) -> Duration:
    """Return the time from the start of the first flow to the end of the last."""
    ends = [flow.start_after + experiment.duration_of(arm, flow) for flow in experiment.flows_of(arm)]
    return max(ends, default=Duration(0))


def triggers(experiment: Experiment) -> tuple[Trigger, ...]:
    """The moments of a cell's observations that are a time or the value of a counter; it has its only arm."""
    observed = experiment.observations_of(experiment.arms[0])
    return tuple(dict.fromkeys(each for one in observed for each in one.moments if isinstance(each, Trigger)))


@dataclass(frozen=True)
class Demand:
    """Requirements of a cell's expected values on its measurement.

    A cell's experiment has its arm and no expectations (`Sweep.resolve`), so that this goes with it.
    """

    times_s: tuple[float, ...] = ()
    """The moments of time of which a figure is expected, `@ time 6 s`, in seconds of its traffic, in order."""
    by_counter: bool = False
    """True if a value is expected at a counter trigger, `@ bytes 1 MB`, of unknown time."""
    one_packet: bool = False
    """A figure is expected that one packet decides, as the longest round trip."""


def demand(experiment: Experiment, arm: str) -> Demand:
    """Return the requirements of an arm's cells, from the whole experiment."""
    expected = list(_expected(experiment, arm))
    moments = {each.at.quantity for each in expected if each.at is not None}
    return Demand(
        times_s=tuple(sorted(each.seconds for each in moments if isinstance(each, Duration))),
        by_counter=any(not isinstance(each, Duration) for each in moments),
        one_packet=any(each.metric.of_one for each in expected),
    )


def looks(experiment: Experiment, demand: Demand) -> tuple[Duration, ...]:
    """The moments of a cell's traffic at which its routers are examined, in order: those of prints and of figures.

    What waits in a queue may be another a tenth of a second later, and is not known between two readings.
    """
    length = traffic_time(experiment, experiment.arms[0])
    moments = {during(length).ns, *(round(each * 1e9) for each in demand.times_s)}
    moments |= {each.time.ns for each in triggers(experiment) if each.time is not None}
    return tuple(Duration(each) for each in sorted(moments) if 0 < each < length.ns)


def _expected(experiment: Experiment, arm: str) -> Iterator[Reference]:
    compared = experiment.compare
    for each in compared.expectations if compared else ():
        if arm in each.arms:
            yield Reference.parse(each.metric)


def counted(trigger: Trigger, counters: program_formats.Counters) -> int:
    """Return the value of a trigger's counter in bytes, over the classes of all output policies of a router, not of
    nested ones.
    """
    return sum(_bytes_of(entry, trigger.at.counter) for entry in _classes(counters))


def _classes(counters: program_formats.Counters) -> Iterator[Mapping[str, Any]]:
    for port in counters["interfaces"].values():
        everything: list[Mapping[str, Any]] = [port, *(port.get("subinterfaces") or {}).values()]
        for each in everything:
            yield from (each.get("policy_output") or {"classes": ()})["classes"]


def _bytes_of(entry: Mapping[str, Any], counter: str) -> int:
    if counter == "bytes":
        return int(entry["bytes"])
    police = entry.get("police")
    return int(police["conformed"]["bytes"]) if police else 0
