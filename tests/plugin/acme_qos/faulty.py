"""Invalid additions: an incomplete tool, and a metric that fails."""

from __future__ import annotations

from qoslab.model.metrics import AddedMetric


class IncompleteTool:
    name = "hole"
    suffix = "txt"


FAILS = AddedMetric("acme.fails", "ratio", "nothing", "traffic", "flows", lambda flows: 1 / (len(flows) * 0))
