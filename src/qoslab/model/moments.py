"""Moments of a cell: how long its traffic takes, and when in it `during` is."""

from __future__ import annotations

from fractions import Fraction

from qoslab.model.experiment import Arm, Experiment
from qoslab.units import Duration

DURING = Fraction(2, 3)
"""The moment `during` as a share of the traffic time: of observations, and of metrics that end in `.during`."""


WINDOW_FROM = Fraction(1, 3)
"""The share of the traffic time from which rates are counted, up to its end: by then flows have found their rate."""


def during(length: Duration) -> Duration:
    """The moment `during` of traffic of this length."""
    return Duration(int(length.ns * DURING))


def traffic_time(experiment: Experiment, arm: Arm) -> Duration:
    """From the start of the first flow to the end of the last."""
    ends = [flow.start_after + experiment.duration_of(arm, flow) for flow in experiment.flows_of(arm)]
    return max(ends, default=Duration(0))
