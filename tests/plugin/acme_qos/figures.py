"""Metric and figure of another package; slow modules are imported on use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoslab.model.metrics import AddedMetric

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from qoslab.api import Run


def _slowest_flow(flows: pd.DataFrame) -> float | None:
    """Return the rows of one cell that match the selector; None if they have no such value."""
    return None if flows.empty else float(flows["goodput_bps"].min())


SLOWEST_FLOW = AddedMetric("acme.slowest", "b/s", "goodput of the slowest stream", "traffic", "flows", _slowest_flow)


class ShareFigure:
    """Figure with a bar for each stream of a run."""

    title = "Goodput of each stream"

    def draw(self, run: Run, width_mm: float) -> Figure:
        """Draw a figure of this width."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width_mm / 25.4, width_mm / 40))
        flows = run.table("flows")
        figure.subplots().bar(range(len(flows)), flows["goodput_bps"])
        return figure
