"""Plotly figures of series, the same for the report and for notebooks. Pure.

A figure is plain data in the format of plotly.js, `{"data": [...], "layout": {...}}`: importing the classes of the
Python package takes longer than drawing, and only notebooks need them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from qoslab.analysis.packets import ALL
from qoslab.analysis.statistics import Estimate

BLACK = "#111111"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b3294", "#8c564b")
"""Colours that colour-blind readers can distinguish (M. Okabe and K. Ito, with a darker yellow for white pages)."""
DASHES = ("solid", "dash", "dot", "dashdot")
"""Line styles: the next one is used when the colours are used up."""
_GRID = "#e3e6ea"
_INK, _PAPER, _OFFERED = "#222222", "#ffffff", "#56606b"
DARK = {
    BLACK: "#f2f4f6",
    _GRID: "#3a424b",
    _INK: "#e6e9ec",
    _PAPER: "#14181c",
    _OFFERED: "#a7b0ba",
    "#0072b2": "#4da3e0",
    "#d55e00": "#f08a4b",
    "#009e73": "#2fc298",
    "#cc79a7": "#e39ac3",
    "#b8860b": "#d9a93a",
    "#7b3294": "#b98ad0",
    "#8c564b": "#c08f84",
}
"""Replacements of colours on dark pages; other colours are unchanged."""
SCALE = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")
"""Colour map viridis, from its lowest to its highest colour: it is perceptually uniform, also in greyscale."""

Figure = dict[str, Any]


def axis_rate_unit(greatest_bps: float) -> tuple[float, str]:
    """Return the bits per second in a unit suitable for an axis up to this value, and the unit's name.

    With the threshold of ten, graphs of 1 Mb/s stay in kb/s though single bins reach 3 Mb/s.
    """
    for factor, unit in ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if greatest_bps >= 10 * factor:
            return factor, unit
    return (1e3, "kb/s") if greatest_bps >= 1e3 else (1.0, "b/s")


def axis_divisor_and_unit(unit: str, greatest: float) -> tuple[float, str]:
    """Return the divisor and the name of the unit for a metric's values up to this one; shares are in percent."""
    if unit == "b/s":
        return axis_rate_unit(greatest)
    return (0.01, "%") if unit == "fraction" else (1.0, unit)


def scale_colour(share: float) -> str:
    """Return the colour of `SCALE` at 0 to 1, interpolated between its neighbours."""
    place = min(max(share, 0.0), 1.0) * (len(SCALE) - 1)
    lower = min(int(place), len(SCALE) - 2)
    ends = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in SCALE[lower : lower + 2]]
    mixed = [round(low + (high - low) * (place - lower)) for low, high in zip(*ends, strict=True)]
    return "#" + "".join(f"{each:02x}" for each in mixed)


def contrasting_ink(colour: str) -> str:
    """Return black or white, whichever has more contrast with a colour (WCAG 2, relative luminance)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def _axis(title: str | None, **keys: Any) -> dict[str, Any]:
    grid = {"showgrid": True, "gridcolor": _GRID, "zeroline": False, "ticks": "outside", "tickcolor": _GRID}
    return {**grid, **({"title": {"text": title}} if title is not None else {}), **keys}


def _figure(lines: list[dict[str, Any]], height: int, **axes: dict[str, Any]) -> Figure:
    layout: dict[str, Any] = {
        "height": height,
        "margin": {"l": 64, "r": 12, "t": 40, "b": 44},
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": _INK},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "itemsizing": "constant"},
        "hovermode": "x unified",
        "hoverlabel": {"namelength": -1},
        "plot_bgcolor": _PAPER,
        "paper_bgcolor": _PAPER,
        **axes,
    }
    return {"data": lines, "layout": layout}


def _line(
    name: str,
    x: Sequence[float | str],
    y: list[float | None],
    unit: str,
    *,
    colour: str,
    width: float = 2,
    dash: str = "solid",
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": list(x),
        "y": y,
        "line": {"color": colour, "width": width, "dash": dash},
        "hovertemplate": f"%{{y:.4g}} {unit}",
    }


def io_graph(throughput: pd.DataFrame | Mapping[str, pd.Series], what: str = "frames") -> Figure:
    """Draw the article's IO graph of `series.flow_throughput`: the total in black, one colour for each flow.

    `what` is the counted unit: frames, or payload in `series.reported_throughput`.
    """
    factor, unit = axis_rate_unit(float(throughput[ALL].max()) if len(throughput) else 0.0)
    lines = []
    for number, (name, curve) in enumerate(throughput.items()):
        times = [round(float(time), 3) for time in curve.index]
        rates: list[float | None] = [round(float(rate) / factor, 4) for rate in curve]
        if name == ALL:
            lines.append(_line("all flows", times, rates, unit, colour=BLACK))
            continue
        colour = COLOURS[(number - 1) % len(COLOURS)]
        dash = DASHES[(number - 1) // len(COLOURS) % len(DASHES)]
        lines.append(_line(str(name), times, rates, unit, colour=colour, width=1.6, dash=dash))
    return _figure(
        lines, 400, xaxis=_axis("seconds since the traffic started"), yaxis=_axis(f"{what}, {unit}", rangemode="tozero")
    )


LOG_RATIO = 10.0
"""Ratio of the greatest mean to the least from which lines share a logarithmic axis."""


def overlay_graph(lines: Mapping[str, pd.Series], *, linear: bool = False, height: int = 400) -> Figure:
    """Draw payload over time (bits per second by `time_s`), one line each, on one axis.

    The axis is logarithmic if the means are far apart, unless `linear`.
    """
    factor, unit = axis_rate_unit(max((float(line.max()) for line in lines.values()), default=0.0))
    drawn = []
    for number, (name, line) in enumerate(lines.items()):
        seconds = [round(float(time), 2) for time in line.index]
        rates: list[float | None] = [round(float(rate) / factor, 4) for rate in line]
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        drawn.append(_line(name, seconds, rates, unit, colour=colour, dash=dash))
    means = [float(line.mean()) for line in lines.values() if float(line.mean()) > 0]
    logarithmic = not linear and len(means) > 1 and max(means) > LOG_RATIO * min(means)
    # Labels between the decades would be too small to read.
    scale = {"type": "log", "dtick": 1} if logarithmic else {"rangemode": "tozero"}
    times = _axis("seconds since the traffic started")
    return _figure(drawn, height, xaxis=times, yaxis=_axis(f"payload, {unit}", **scale))


def sample_graph(lines: Mapping[str, pd.Series], unit: str) -> Figure:
    """Draw single values over time (by `time_s`), such as round-trip times: one line each."""
    drawn = [
        _line(
            name,
            [round(float(time), 4) for time in line.index],
            [round(float(value), 5) for value in line],
            unit,
            colour=COLOURS[number % len(COLOURS)],
            width=1.2,
        )
        for number, (name, line) in enumerate(lines.items())
    ]
    return _figure(
        drawn, 300, xaxis=_axis("seconds since the first sample"), yaxis=_axis(unit or None, rangemode="tozero")
    )


def class_graph(rates: pd.DataFrame) -> Figure:
    """Draw the offered, sent and dropped rate of a class over time (`series.class_rates`), and its queue or dynamic
    bucket.
    """
    below = [each for each in _STATE if bool(rates[each[0]].notna().any())]
    factor, unit = axis_rate_unit(float(rates["offered_bps"].max()) if len(rates) else 0.0)
    times = [round(float(time), 2) for time in rates["time_s"]]
    lines = []
    for column, name, colour, dash in (
        ("offered_bps", "offered", _OFFERED, "dot"),
        ("sent_bps", "sent", "#0072b2", "solid"),
        ("dropped_bps", "dropped", "#d55e00", "dash"),
    ):
        values: list[float | None] = [round(float(rate) / factor, 4) for rate in rates[column]]
        lines.append(_line(name, times, values, unit, colour=colour, dash=dash))
    title = "seconds since the traffic started"
    if not below:
        return _figure(lines, 300, xaxis=_axis(title), yaxis=_axis(unit, rangemode="tozero"))
    for column, name, of, colour, dash in below:
        depths: list[float | None] = [None if pd.isna(depth) else int(depth) for depth in rates[column]]
        # The second pair of axes shares the first one's times.
        lines.append(_line(name, times, depths, of, colour=colour, dash=dash) | {"xaxis": "x2", "yaxis": "y2"})
    return _figure(
        lines,
        420,
        xaxis=_axis(None, anchor="y", matches="x2", showticklabels=False),
        yaxis=_axis(unit, anchor="x", domain=[0.56, 1], rangemode="tozero"),
        xaxis2=_axis(title, anchor="y2"),
        yaxis2=_axis(
            ", ".join(dict.fromkeys(f"{name}, {of}" if len(below) == 1 else of for _, name, of, *_ in below)),
            anchor="x2",
            domain=[0, 0.44],
            rangemode="tozero",
        ),
    )


_STATE = (
    ("queue_packets", "queue", "packets", "#009e73", "solid"),
    ("bucket_bytes", "bucket", "B", "#7b3294", "solid"),
    ("level_bytes", "level", "B", "#b8860b", "dot"),
)
"""Columns of `series.class_rates` below the rates in the graph."""


def queue_graph(rates: pd.DataFrame) -> Figure:
    """Draw the frames that each egress queue of a port accepted over time, with dropped frames below
    (`queues.queue_rates`).
    """
    lines = []
    for queue, table in rates.groupby("queue"):
        number = int(str(queue))
        times = [round(float(time), 2) for time in table["time_s"]]
        for column, axes in (("enqueued", {}), ("dropped", {"xaxis": "x2", "yaxis": "y2", "showlegend": False})):
            values: list[float | None] = [round(float(rate), 1) for rate in table[column]]
            colour = COLOURS[(number - 1) % len(COLOURS)]
            lines.append(_line(f"queue {number}", times, values, f"frames/s {column}", colour=colour) | axes)
    return _figure(
        lines,
        420,
        xaxis=_axis(None, anchor="y", matches="x2", showticklabels=False),
        yaxis=_axis("enqueued, frames/s", anchor="x", domain=[0.46, 1], rangemode="tozero"),
        xaxis2=_axis("seconds since the traffic started", anchor="y2"),
        yaxis2=_axis("dropped, frames/s", anchor="x2", domain=[0, 0.38], rangemode="tozero"),
    )


def curve_graph(
    lines: Mapping[str, Sequence[tuple[float | str, Estimate]]], title: str, unit: str, *, log: bool
) -> tuple[Figure, str]:
    """Draw a metric over a parameter: points with their estimates, by the curve's name. Also return the unit of the y
    axis.

    Intervals are drawn as bars; a single measurement has none. Shares are in percent.
    """
    factor, shown = axis_divisor_and_unit(
        unit, max((each.value for points in lines.values() for _, each in points), default=0.0)
    )
    drawn = []
    for number, (name, points) in enumerate(lines.items()):
        values = [estimate.value / factor for _, estimate in points]
        trace = _line(
            name,
            [position for position, _ in points],
            [round(value, 4) for value in values],
            shown,
            colour=COLOURS[number % len(COLOURS)],
            dash=DASHES[number // len(COLOURS) % len(DASHES)],
        )
        ends = [(estimate.low / factor, estimate.high / factor) for _, estimate in points]
        if not all(math.isnan(low) for low, _ in ends):
            trace["error_y"] = {
                "type": "data",
                "symmetric": False,
                "array": [_bar(high - value) for (_, high), value in zip(ends, values, strict=True)],
                "arrayminus": [_bar(value - low) for (low, _), value in zip(ends, values, strict=True)],
                "thickness": 1,
                "width": 3,
            }
        drawn.append(trace | {"mode": "lines+markers"})
    axis = _axis(title, type="log") if log else _axis(title)
    return _figure(drawn, 420, xaxis=axis, yaxis=_axis(shown, rangemode="tozero")), shown


def _bar(length: float) -> float | None:
    return None if math.isnan(length) else round(max(length, 0.0), 4)
