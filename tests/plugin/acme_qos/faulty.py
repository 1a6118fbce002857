"""What is not valid: a tool that is none, and a metric that fails."""

from __future__ import annotations

from qoslab.model.metrics import AddedMetric


class Hollow:
    name = "hole"
    suffix = "txt"


FAILS = AddedMetric("acme.fails", "ratio", "nothing", "traffic", "flows", lambda flows: 1 / (len(flows) * 0))
