"""Metrics and a figure of another package."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from qoslab.api import Run
from qoslab.model.metrics import AddedMetric


def _slowest(flows: pd.DataFrame) -> float | None:
    return None if flows.empty else float(flows["goodput_bps"].min())


SLOWEST = AddedMetric("acme.slowest", "b/s", "goodput of the slowest stream", "traffic", "flows", _slowest)
FAILS = AddedMetric("acme.fails", "ratio", "nothing", "traffic", "flows", lambda flows: 1 / (len(flows) * 0))


class Shares:
    title = "What each stream got"

    def draw(self, run: Run, width_mm: float) -> Figure:
        figure = Figure(figsize=(width_mm / 25.4, width_mm / 40))
        flows = run.table("flows")
        figure.subplots().bar(range(len(flows)), flows["goodput_bps"])
        return figure
