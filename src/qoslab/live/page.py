"""Content of the browser page for a watched run, as JSON; graphs as in the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from qoslab.analysis import charts
from qoslab.live.counter_rates import ClassKey, ClassPoint, InterfacePoint
from qoslab.live.openmetrics import count_finished_cells
from qoslab.live.watched_run import MAX_REASONS, RUNNING, WatchedCell, WatchedRun
from qoslab.report import text
from qoslab.results.progress import FINISHED

WINDOW = 600
"""Greatest number of readings in a graph: the latest."""
MAX_GRAPHS = 24
"""Greatest number of classes with graphs: a browser redraws each once a second."""


def page_content(run: WatchedRun, *, graphs: bool = True) -> dict[str, Any]:
    """Return the content of the page; without `graphs`, only the values."""
    cells = [_cell_content(cell, graphs) for cell in run.shown_cells()]
    found = {
        "title": run.title,
        "run": f"{run.folder.path.parent.name}/{run.folder.path.name}",
        "lab": run.lab,
        "state": run.state,
        "going_on": run.state == RUNNING,
        "report": str(run.folder.report) if run.state == FINISHED and run.folder.report.exists() else "",
        "planned": run.planned,
        "done": count_finished_cells(run),
        "doing": [{"name": name, **asdict(doing)} for name, doing in run.doing.items()],
        "invalid": [{"name": name, "reasons": list(why)} for name, why in list(run.invalid.items())[-MAX_REASONS:]],
        "invalid_count": len(run.invalid),
        "notes": list(run.notes),
        "figures": run.figures,
        "cells": cells,
    }
    return found | ({"dark": charts.DARK} if graphs else {})


def _cell_content(cell: WatchedCell, graphs: bool) -> dict[str, Any]:
    classes = [(key, points) for key, points in cell.rates.classes.items() if points[-1].offered_bytes]
    found = {
        "name": cell.name,
        "over": cell.is_finished,
        "damaged": cell.is_damaged,
        "classes": [{"title": key.title, **class_texts(points[-1])} for key, points in classes],
        "interfaces": [
            {"title": f"{router} {name}", **interface_texts(points[-1])}
            for (router, name), points in cell.rates.interfaces.items()
        ],
    }
    if not graphs:
        return found
    drawn = [_graph_points(key, points[-WINDOW:]) for key, points in classes[:MAX_GRAPHS]]
    return {**found, "graphs": drawn, "undrawn": len(classes) - len(drawn)}


def _graph_points(key: ClassKey, points: Sequence[ClassPoint]) -> dict[str, Any]:
    columns = ("time_s", "offered_bps", "sent_bps", "dropped_bps", "queue_packets", "bucket_bytes", "level_bytes")
    rates = pd.DataFrame({name: [getattr(point, name) for point in points] for name in columns}, dtype=float)
    graph = charts.class_graph(rates)
    for line in graph["data"]:
        # A missing count is a gap; JSON has no NaN.
        line["y"] = [None if y is None or math.isnan(y) else y for y in line["y"]]
    return {"title": key.title, **graph}


def class_texts(point: ClassPoint) -> dict[str, str]:
    """Format the current values of a class."""
    return {
        "time": f"{point.time_s:.0f} s",
        "offered": _format_rate(point.offered_bps),
        "sent": text.NONE if point.sent_bps is None else _format_rate(point.sent_bps),
        "dropped": text.NONE if point.dropped_bps is None else _format_rate(point.dropped_bps),
        "queue": text.NONE if point.queue_packets is None else f"{point.queue_packets}",
        "wait": text.NONE if point.wait_ms is None else f"{point.wait_ms:.1f} ms",
    }


def interface_texts(point: InterfacePoint) -> dict[str, str]:
    """Format the current values of an interface."""
    return {
        "time": f"{point.time_s:.0f} s",
        "input": _format_rate(point.input_bps),
        "output": _format_rate(point.output_bps),
        "queue": text.NONE if point.queue_packets is None else f"{point.queue_packets}",
        "drops": text.NONE if point.drops is None else f"{point.drops}",
        "delay": text.NONE if point.delay_ms is None else f"{point.delay_ms:.1f} ms",
    }


def _format_rate(bps: float) -> str:
    """Format a rate with plain spaces, as in terminals and scripts."""
    return text.rate(bps).replace("\N{NO-BREAK SPACE}", " ")
