"""Series → Plotly figures, the same for the report and for notebooks. Pure."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go  # type: ignore[import-untyped]
from plotly.subplots import make_subplots  # type: ignore[import-untyped]

from qoslab.analysis.packets import ALL

BLACK = "#111111"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b3294", "#8c564b")
"""Told apart by colour-blind readers too; after M. Okabe and K. Ito, with a darker yellow that shows on white."""
DASHES = ("solid", "dash", "dot", "dashdot")
"""The next one when the colours are used up."""
_GRID = "#e3e6ea"


def unit_of(greatest_bps: float) -> tuple[float, str]:
    """Bits per second in one unit of an axis, and the unit's name, fit for figures up to this one.

    The threshold of ten keeps graphs of 1 Mb/s in kb/s though single bins reach 3 Mb/s.
    """
    for factor, unit in ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if greatest_bps >= 10 * factor:
            return factor, unit
    return (1e3, "kb/s") if greatest_bps >= 1e3 else (1.0, "b/s")


def _layout(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 64, "r": 12, "t": 40, "b": 44},
        font={"family": "system-ui, sans-serif", "size": 13, "color": "#222"},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "itemsizing": "constant"},
        hovermode="x unified",
        hoverlabel={"namelength": -1},
        plot_bgcolor="white",
        paper_bgcolor="white",
    )
    figure.update_xaxes(showgrid=True, gridcolor=_GRID, zeroline=False, ticks="outside", tickcolor=_GRID)
    figure.update_yaxes(showgrid=True, gridcolor=_GRID, zeroline=False, rangemode="tozero", fixedrange=False)
    return figure


def io_graph(throughput: pd.DataFrame) -> go.Figure:
    """The article's IO graph of `series.flow_throughput`: the aggregate in black, one colour a flow."""
    factor, unit = unit_of(float(throughput[ALL].max()) if len(throughput) else 0.0)
    figure = go.Figure()
    for number, name in enumerate(throughput.columns):
        aggregate = name == ALL
        figure.add_trace(
            go.Scatter(
                x=[round(float(time), 3) for time in throughput.index],
                y=[round(float(rate) / factor, 4) for rate in throughput[name]],
                name="all flows" if aggregate else str(name),
                mode="lines",
                line={
                    "color": BLACK if aggregate else COLOURS[(number - 1) % len(COLOURS)],
                    "width": 2 if aggregate else 1.6,
                    "dash": "solid" if aggregate else DASHES[(number - 1) // len(COLOURS) % len(DASHES)],
                },
                hovertemplate=f"%{{y:.4g}} {unit}",
            )
        )
    _layout(figure, 400)
    figure.update_xaxes(title="seconds since the traffic started")
    figure.update_yaxes(title=f"frames, {unit}")
    return figure


def class_graph(rates: pd.DataFrame) -> go.Figure:
    """What a class was offered, sent and dropped over time (`series.class_rates`), and its queue where it has one."""
    queued = bool(rates["queue_packets"].notna().any())
    greatest = float(rates["offered_bps"].max()) if len(rates) else 0.0
    factor, unit = unit_of(greatest)
    figure = make_subplots(rows=2 if queued else 1, cols=1, shared_xaxes=True, vertical_spacing=0.12)
    for column, name, colour, dash in (
        ("offered_bps", "offered", "#56606b", "dot"),
        ("sent_bps", "sent", "#0072b2", "solid"),
        ("dropped_bps", "dropped", "#d55e00", "dash"),
    ):
        figure.add_trace(
            go.Scatter(
                x=[round(float(time), 2) for time in rates["time_s"]],
                y=[round(float(rate) / factor, 4) for rate in rates[column]],
                name=name,
                mode="lines",
                line={"color": colour, "width": 2, "dash": dash},
                hovertemplate=f"%{{y:.4g}} {unit}",
            ),
            row=1,
            col=1,
        )
    if queued:
        figure.add_trace(
            go.Scatter(
                x=[round(float(time), 2) for time in rates["time_s"]],
                y=[None if pd.isna(depth) else int(depth) for depth in rates["queue_packets"]],
                name="queue",
                mode="lines",
                line={"color": "#009e73", "width": 2},
                hovertemplate="%{y} packets",
            ),
            row=2,
            col=1,
        )
        figure.update_yaxes(title="queue, packets", row=2, col=1)
    _layout(figure, 420 if queued else 300)
    figure.update_xaxes(title="seconds since the traffic started", row=2 if queued else 1, col=1)
    figure.update_yaxes(title=unit, row=1, col=1)
    return figure
