"""Figures for papers: graphs of a report, and the distribution of a metric, drawn by matplotlib.

The same run always produces the same file, which contains no creation time. Text in SVG and PDF remains text.
"""

from __future__ import annotations

import io
import math
import shutil
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from qoslab.analysis import Outcome
from qoslab.analysis import charts as drawing
from qoslab.errors import MachineError, UserError
from qoslab.report.arms import Graph
from qoslab.results import Manifest, tables
from qoslab.results.file_access import replace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from qoslab.results import RunFolder

Kind = Literal["ecdf", "box", "bar"]
KINDS: tuple[Kind, ...] = ("ecdf", "box", "bar")
MM = 25.4
"""Millimetres per inch."""
POINT = 72.0
"""Points per inch."""
LETTER = 0.58
"""Average width of a letter of the font (DejaVu Sans) as a share of its size, measured over the names in the
experiments.
"""
LINE = 1.25
"""Height of a line as a multiple of the font's size."""
FONT, SMALL_FONT_POINTS = 8.0, 7.0
"""Font sizes in points: of axes, of the legend."""
MARGIN = 50.0
"""Height in points of the value axis and a legend of one line."""
MIN_AXES_INCHES = 1.6
"""Minimum height in inches of each pair of axes."""
_NO_BREAK = "\0"
"""Placeholder for a non-breaking space."""
_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_NO_TIME: Mapping[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
    "png": {"metadata": {"Software": None}, "dpi": 300},
    "pgf": {},
}
FORMATS = tuple(_NO_TIME)
_STYLE = {
    "font.size": FONT,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.0,
    "legend.frameon": False,
    "legend.fontsize": SMALL_FONT_POINTS,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "qoslab",
    "pgf.rcfonts": False,
    "pgf.texsystem": "pdflatex",
    "pgf.preamble": r"\AtBeginDocument{\catcode`\&=12\catcode`\#=12\relax}",
}
_PGF_BEGIN = rb"\begingroup%" + b"\n"
_PGF_ALONE = (
    rb"\def\mathdefault#1{#1}\catcode`\_=\active\def_{\ifmmode\sb\else\_\fi}\catcode`\&=12\catcode`\#=12\relax%" + b"\n"
)
"""Preamble for a standalone PGF file, in place of matplotlib's, with text as written."""


def set_style() -> None:
    """Set fonts, grid and lines for all later drawings of the process."""
    import matplotlib

    # A `matplotlibrc` of the current folder has been read by now.
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(_STYLE)  # type: ignore[arg-type]


def draw_graph(graph: Graph, width_mm: float) -> Figure:
    """Draw a graph of the report: lines in one pair of axes, or in two above each other. Bins are joined as in the
    report.
    """
    content = graph.figure
    layout = content["layout"]
    pairs = [("x", "y"), *([("x2", "y2")] if "yaxis2" in layout else [])]
    figure, axes = _create_axes(width_mm, len(pairs))
    for trace in content["data"]:
        place = axes[pairs.index((trace.get("xaxis", "x"), trace.get("yaxis", "y")))]
        _draw_line(place, trace, graph.binned or 1)
    for each, (x, y) in zip(axes, pairs, strict=True):
        _describe_axis(each, layout.get(f"xaxis{x[1:]}", {}), layout.get(f"yaxis{y[1:]}", {}))
    _draw_legend(figure, axes[0])
    return figure


def _draw_line(axes: Axes, trace: Mapping[str, Any], bins: int) -> None:
    line = trace.get("line", {})
    style = {
        "color": line.get("color"),
        "linewidth": float(line.get("width", 2)) / 2,
        "linestyle": _DASHES.get(line.get("dash", "solid"), "-"),
        "label": trace.get("name") if trace.get("showlegend", True) else None,
        "marker": "o" if "markers" in trace.get("mode", "") else None,
        "markersize": 3,
    }
    values = [np.nan if value is None else value for value in trace["y"]]
    bars = trace.get("error_y")
    if bars is None:
        axes.plot(*_join_bins(trace["x"], values, bins), **style)
        return
    ends = [[np.nan if end is None else end for end in bars[name]] for name in ("arrayminus", "array")]
    axes.errorbar(trace["x"], values, yerr=ends, elinewidth=0.6, capsize=1.5, **style)


def _join_bins(times: list[Any], values: list[float], bins: int) -> tuple[list[Any], list[float]]:
    """Return the means of `bins` bins each, counted from time 0; groups that the series covers only in part are
    omitted.
    """
    if bins == 1 or len(times) < 2:
        return times, values
    width = (times[-1] - times[0]) / (len(times) - 1)
    groups: dict[int, list[float]] = {}
    for time, value in zip(times, values, strict=True):
        groups.setdefault(math.floor(round(time / width) / bins), []).append(value)
    whole = {place: found for place, found in groups.items() if len(found) == bins}
    return [place * bins * width for place in whole], [sum(found) / bins for found in whole.values()]


def _describe_axis(axes: Axes, x: Mapping[str, Any], y: Mapping[str, Any]) -> None:
    for axis, label, scale in ((x, axes.set_xlabel, axes.set_xscale), (y, axes.set_ylabel, axes.set_yscale)):
        if title := axis.get("title", {}).get("text"):
            label(title)
        if axis.get("type") == "log":
            scale("log")
    if y.get("rangemode") == "tozero":
        axes.set_ylim(bottom=0)


def draw_metric(
    folder: RunFolder, manifest: Manifest, outcome: Outcome, metric: str, kind: Kind, width_mm: float
) -> Figure:
    """Draw the distribution of a metric over the valid cells of each arm.

    `ecdf`: the share of the cells with at most this value; `box`: quartiles, with every cell as a point; `bar`: the
    value of the comparison with its interval, and the published value if there is one. Raise `UserError` for a metric
    without a valid cell.
    """
    table = tables.read_table(folder, "metrics")
    table = table[table["value"].notna()]
    valid = {cell.name for cell in manifest.cells if cell.valid}
    mine = table[(table["metric"] == metric) & table["cell"].isin(valid)]
    if mine.empty:
        raise UserError(f'found no valid cell with metric "{metric}", expected at least one')
    unit = str(mine["unit"].iloc[0])
    factor, shown = drawing.axis_divisor_and_unit(unit, float(mine["value"].max()))
    values = {
        arm.title or arm.name: (mine[mine["arm"] == arm.name]["value"] / factor).to_numpy(dtype=float)
        for arm in manifest.experiment.arms
        if arm.name in set(mine["arm"])
    }
    figure, (axes,) = _create_axes(width_mm, 1)
    label = f"{metric}, {shown}" if shown else metric
    if kind == "ecdf":
        _draw_ecdf(figure, axes, values, label)
        _draw_legend(figure, axes)
    elif kind == "box":
        _draw_box(figure, axes, values, label)
    else:
        _draw_bars(figure, axes, outcome.comparison, manifest, metric, factor, label)
    return figure


def _draw_ecdf(figure: Figure, axes: Axes, values: Mapping[str, np.ndarray], label: str) -> None:
    # Solid curves in each colour first, then dashed curves in each colour, and so on.
    styles = [(colour, _DASHES[dash]) for dash in drawing.DASHES for colour in drawing.COLOURS]
    for (name, found), (colour, dashes) in zip(values.items(), cycle(styles), strict=False):
        axes.ecdf(found, label=f"{name} (n = {len(found)})", color=colour, linestyle=dashes)
    _name_values(figure, axes, label, 0.75)
    axes.set_ylabel("share of the cells")
    axes.set_ylim(0, 1.02)


def _draw_box(figure: Figure, axes: Axes, values: Mapping[str, np.ndarray], label: str) -> None:
    drawn = axes.boxplot(list(values.values()), orientation="horizontal", showfliers=False, widths=0.5)
    for line in drawn["medians"]:
        line.set_color(drawing.COLOURS[1])
    places = range(1, len(values) + 1)
    for place, found in zip(places, values.values(), strict=True):
        # Spread out within the box, so that no point hides another.
        spread = np.linspace(-0.12, 0.12, len(found)) if len(found) > 1 else np.zeros(1)
        axes.plot(found, place + spread, "o", color=drawing.COLOURS[0], markersize=2.5, alpha=0.7)
    _name_rows(figure, axes, places, [(name, f"n = {len(found)}") for name, found in values.items()])
    _set_up_value_axis(figure, axes, label, np.concatenate(list(values.values())))


def _keep_pairs_together(where: str) -> str:
    """Return the description of the cells, with no line break between a parameter and its value."""
    return where.replace(" ", _NO_BREAK).replace(f",{_NO_BREAK}", ", ")


def _fitting_letters(width: float, size: float) -> int:
    """Return the number of letters of a size that fit in a width in inches."""
    return int(width * POINT / (LETTER * size))


def _name_values(figure: Figure, axes: Axes, label: str, part: float) -> None:
    """Label the value axis, in lines no wider than the figure."""
    axes.set_xlabel(textwrap.fill(label, _fitting_letters(part * figure.get_figwidth(), FONT)))


def _name_rows(figure: Figure, axes: Axes, places: Sequence[float], names: Sequence[tuple[str, ...]]) -> None:
    """Add names next to the rows, in lines of less than half the width; the height of the figure is adapted."""
    letters = _fitting_letters(0.4 * figure.get_figwidth(), FONT)
    lines = [
        [line for part in parts for line in textwrap.wrap(part, letters, break_long_words=False)] for parts in names
    ]
    axes.set_yticks(places, ["\n".join(each).replace(_NO_BREAK, " ") for each in lines])
    high = len(lines) * (max(map(len, lines)) + 0.5) * LINE * FONT + MARGIN
    figure.set_figheight(max(figure.get_figheight(), high / POINT))


def _set_up_value_axis(figure: Figure, axes: Axes, label: str, values: np.ndarray) -> None:
    """Set up the value axis, with the first arm on top; logarithmic if small values would not be visible."""
    axes.invert_yaxis()
    _name_values(figure, axes, label, 0.5)
    axes.grid(visible=False, axis="y")
    if _needs_log_axis(values):
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)


def _needs_log_axis(values: np.ndarray) -> bool:
    above = values[values > 0]
    return len(above) > 0 and bool(above.max() > drawing.LOG_RATIO * above.min())


def _draw_bars(
    figure: Figure, axes: Axes, comparison: pd.DataFrame, manifest: Manifest, metric: str, factor: float, label: str
) -> None:
    """Draw rows of the comparison: one for each arm and selection of cells."""
    arms = {arm.name: arm.title or arm.name for arm in manifest.experiment.arms}
    rows = comparison[(comparison["metric"] == metric) & comparison["arm"].isin(arms) & comparison["measured"].notna()]
    if rows.empty:
        raise UserError(f'found no row of the comparison with metric "{metric}", expected one', hint="try --kind box")
    names = [(arms[row["arm"]], _keep_pairs_together(row["where"])) for row in rows.to_dict("records")]
    measured = rows["measured"].to_numpy(dtype=float) / factor
    ends = [
        np.nan_to_num(np.abs(rows[name].to_numpy(dtype=float) / factor - measured), nan=0.0) for name in ("low", "high")
    ]
    places = np.arange(len(rows))
    if _needs_log_axis(measured):
        # On a logarithmic axis there is no 0 at which a bar could begin.
        axes.errorbar(measured, places, xerr=ends, fmt="o", color=drawing.COLOURS[0], capsize=2, label="measured")
    else:
        axes.barh(places, measured, 0.6, xerr=ends, color=drawing.COLOURS[0], error_kw={"capsize": 2})
    for column, marker, name, colour in (
        ("predicted", "|", "predicted", "#111111"),
        ("published", "D", "published", drawing.COLOURS[1]),
    ):
        found = pd.to_numeric(rows[column], errors="coerce").to_numpy(dtype=float) / factor
        if np.isfinite(found).any():
            size = 12 if marker == "|" else 3.5
            axes.plot(found, places, marker, color=colour, markersize=size, label=name)
    _draw_legend(figure, axes)
    _name_rows(figure, axes, list(places), names)
    _set_up_value_axis(figure, axes, label, measured)


def _create_axes(width_mm: float, rows: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    set_style()
    width = width_mm / MM
    height = max(width * (0.62 if rows == 1 else 0.95), rows * MIN_AXES_INCHES)
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, 1, sharex=True, squeeze=False)
    for each in axes[:, 0]:
        each.set_axisbelow(True)
        each.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[:, 0])


def _draw_legend(figure: Figure, axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1 or (names and axes.get_ylabel() == ""):
        figure.legends.clear()
        # Each name is followed by its line and the gap before the next name, about as wide as five letters.
        letters = _fitting_letters(figure.get_figwidth(), SMALL_FONT_POINTS)
        columns = max(1, min(len(names), 3, letters // (max(map(len, names)) + 5)))
        names = [textwrap.fill(name, max(letters // columns - 5, 1)) for name in names]
        figure.legend(handles, names, loc="outside upper left", ncols=columns)
        # Half a line separates two names; the figure's height has room for two names.
        rows = math.ceil(len(names) / columns)
        lines = max(sum(name.count("\n") + 1 for name in names[at::columns]) for at in range(columns))
        more = lines * LINE + rows / 2 - 2 * LINE
        figure.set_figheight(figure.get_figheight() + max(more, 0) * SMALL_FONT_POINTS / POINT)


def save(figure: Figure, to: Path) -> None:
    """Write a figure in the format of the name's suffix. Raise `UserError` for another suffix, `MachineError` without
    LaTeX.
    """
    form = to.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        endings = ", ".join(f".{each}" for each in FORMATS)
        raise UserError(f'{to}: found the extension "{to.suffix}", expected one of {endings}')
    if form == "pgf" and shutil.which("pdflatex") is None:
        raise MachineError(
            "found no pdflatex; PGF needs LaTeX to measure its text",
            hint="install texlive-latex-base and texlive-pictures, or use --format pdf",
        )
    from matplotlib.backends.backend_pgf import LatexError

    content = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "constrained_layout not applied")
            figure.savefig(content, format=form, **_NO_TIME[form])
    except UserWarning as error:
        width_mm = f"{figure.get_figwidth() * MM:.0f} mm"
        raise UserError(f"{to}: found no space next to the labels in {width_mm}, expected a larger --width") from error
    except (LatexError, RuntimeError) as error:
        if form != "pgf":
            raise
        found = next((line for line in str(error).splitlines() if line.startswith("!")), str(error).strip()[:200])
        raise MachineError(
            f"{to}: LaTeX failed while measuring the PGF text: {found}",
            hint="install texlive-latex-base and texlive-pictures, or use --format pdf",
        ) from error
    whole = content.getvalue()
    replace(to, whole.replace(_PGF_BEGIN, _PGF_BEGIN + _PGF_ALONE, 1) if form == "pgf" else whole, in_run=False)
