"""Figures for papers from plug-ins: `qoslab figure RUN NAME`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from qoslab.system.plugins import PluginRegistry, missing_members

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from qoslab.report.view import RunView


class PluginFigure(Protocol):
    """A figure of a run."""

    @property
    def title(self) -> str:
        """Title in one line, for the list of a run's figures."""

    def draw(self, run: RunView, width_mm: float) -> Figure:
        """Draw the figure at this width. Raise `UserError` for a run without the data that it shows."""


FIGURES: PluginRegistry[PluginFigure] = PluginRegistry("figures", {}, partial(missing_members, PluginFigure))
"""Figures of plug-ins by name; qoslab's own figures are the graphs of a report and its metrics."""
