"""Instants of a cell: its traffic time, the instant `during`, and the counter values that trigger an observation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from qoslab.model.experiment import Arm, Experiment, Trigger
from qoslab.model.metrics import Reference
from qoslab.model.units import Duration
from qoslab.system import program_formats

DURING = Fraction(2, 3)
"""The instant `during` as a share of the traffic time, for observations and for metrics that end in `.during`."""


WINDOW_START = Fraction(1, 3)
"""Start of the rate measurement as a share of the traffic time; it lasts until the end. By then flows have reached
their steady rate.
"""


COUNTER_INTERVAL_S = 1.0
"""Interval of the data plane's counter readings during traffic."""


def observation_time(length: Duration) -> Duration:
    """Return the instant `during` of traffic of this length."""
    return Duration(int(length.ns * DURING))


def traffic_time(experiment: Experiment, arm: Arm) -> Duration:
    """Return the time from the start of the first flow to the end of the last."""
    ends = [flow.start_after + experiment.flow_duration(arm, flow) for flow in experiment.arm_flows(arm)]
    return max(ends, default=Duration(0))


def triggers(experiment: Experiment) -> tuple[Trigger, ...]:
    """Return the triggers of the observations of an experiment with one arm: a time, or the value of a counter."""
    observed = experiment.arm_observations(experiment.arms[0])
    return tuple(dict.fromkeys(each for one in observed for each in one.moments if isinstance(each, Trigger)))


@dataclass(frozen=True)
class MeasurementDemand:
    """Requirements of a cell's expected values on its measurement.

    A cell's experiment (`Sweep.resolve`) has only its arm and no expectations, so the demand is passed with it.
    """

    times_s: tuple[float, ...] = ()
    """Instants with an expected value, such as `@ time 6 s`, in seconds of the traffic, ascending."""
    needs_counter_triggers: bool = False
    """True if a value is expected at a counter trigger such as `@ bytes 1 MB`, whose time is unknown."""
    depends_on_one_packet: bool = False
    """True if a value that a single packet decides is expected, such as the longest round trip."""


def measurement_demand(experiment: Experiment, arm: str) -> MeasurementDemand:
    """Return the requirements of an arm's cells, from the whole experiment."""
    expected = list(_expected_metrics(experiment, arm))
    moments = {each.at.quantity for each in expected if each.at is not None}
    return MeasurementDemand(
        times_s=tuple(sorted(each.seconds for each in moments if isinstance(each, Duration))),
        needs_counter_triggers=any(not isinstance(each, Duration) for each in moments),
        depends_on_one_packet=any(each.metric.depends_on_one_packet for each in expected),
    )


def counter_reading_times(experiment: Experiment, demand: MeasurementDemand) -> tuple[Duration, ...]:
    """Return the instants of a cell's traffic at which its routers are examined, in order: for observations and for
    expected values.

    The contents of a queue may change within a tenth of a second, and are unknown between two readings.
    """
    length = traffic_time(experiment, experiment.arms[0])
    moments = {observation_time(length).ns, *(round(each * 1e9) for each in demand.times_s)}
    moments |= {each.time.ns for each in triggers(experiment) if each.time is not None}
    return tuple(Duration(each) for each in sorted(moments) if 0 < each < length.ns)


def _expected_metrics(experiment: Experiment, arm: str) -> Iterator[Reference]:
    compared = experiment.compare
    for each in compared.expectations if compared else ():
        if arm in each.arms:
            yield Reference.parse(each.metric)


def trigger_bytes(trigger: Trigger, counters: program_formats.Counters) -> int:
    """Return the value of a trigger's counter in bytes, over the classes of all output policies of a router, without
    nested policies.
    """
    return sum(_counter_bytes(entry, trigger.at.counter) for entry in _counted_classes(counters))


def _counted_classes(counters: program_formats.Counters) -> Iterator[Mapping[str, Any]]:
    for port in counters["interfaces"].values():
        everything: list[Mapping[str, Any]] = [port, *(port.get("subinterfaces") or {}).values()]
        for each in everything:
            yield from (each.get("policy_output") or {"classes": ()})["classes"]


def _counter_bytes(entry: Mapping[str, Any], counter: str) -> int:
    if counter == "bytes":
        return int(entry["bytes"])
    police = entry.get("police")
    return int(police["conformed"]["bytes"]) if police else 0
