"""A run's cells as flent data files (format 4), for `flent` and `flent-gui`.

Each cell is a test `tcp_nup`: its TCP streams are the series `TCP upload::1`, …, in Mb/s as counted by the receivers.
Streams of datagrams and probes are series with their own names, for which flent's tests have no plot. Values are placed
at the middle of the receivers' intervals (`raw_values`), and at the steps of the whole file (`x_values`, `results`).
"""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from qoslab.errors import UserError
from qoslab.exchange.base import ExportRequest
from qoslab.model.matrix import parameters_text
from qoslab.results import CellFiles, CellSummary, Manifest, tables
from qoslab.traffic.endpoints import flow_family

FORMAT = 4
"""Format version of flent 2."""
TEST = "tcp_nup"
"""flent test whose plots fit: any number of uploads."""
_UPLOAD = "TCP upload"
_NAMESPACE = uuid.UUID("6d5c2f0e-7a50-5f5b-9d55-6f1a4f0c7a1d")
"""Namespace for stable identifiers of runs."""


def write_flent(request: ExportRequest, to: Path) -> None:
    """Write a folder: `EXPERIMENT-CELL.flent.gz` for each cell with intervals. Raise `UserError` if no cell has any."""
    run = request.outcome.run
    manifest = run.manifest
    intervals = tables.read_table(request.folder, "intervals")
    flows = tables.read_table(request.folder, "flows")
    to.mkdir()
    written = 0
    summaries = {summary.name: summary for summary in manifest.cells}
    for cell in run.cells:
        summary = summaries[cell.name]
        mine = intervals[intervals["cell"] == cell.name]
        if len(mine):
            content = build_data_file(manifest, summary, cell, mine, flows[flows["cell"] == cell.name])
            name = f"{manifest.experiment.name}-{summary.name.replace('/', '-')}.flent.gz"
            # Without a creation time, the same run produces the same file.
            (to / name).write_bytes(gzip.compress(json.dumps(content, sort_keys=True).encode(), mtime=0))
            written += 1
    if not written:
        raise UserError(f"{request.folder.path}: found no cell with traffic intervals, expected at least one")


def build_data_file(
    manifest: Manifest, summary: CellSummary, cell: CellFiles, intervals: pd.DataFrame, flows: pd.DataFrame
) -> dict[str, Any]:
    """Return the content of a data file as JSON values."""
    started = cell.record().traffic_start or manifest.started
    zero = started.timestamp()
    protocols = {(str(row["traffic"]), int(row["stream"])): str(row["protocol"]) for row in flows.to_dict("records")}
    series: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    step = 0.0
    uploads = 0
    for _, table in intervals.groupby(["traffic", "stream"], sort=True):
        traffic, stream = str(table["traffic"].iloc[0]), int(table["stream"].iloc[0])
        times = (table["offset_s"] + (table["start_s"] + table["end_s"]) / 2).to_numpy(dtype=float)
        step = max(step, float((table["end_s"] - table["start_s"]).median()))
        if protocols.get((traffic, stream), "tcp") == "tcp":
            uploads += 1
            name = f"{_UPLOAD}::{uploads}"
        else:
            name = f"{traffic} {stream}"
        series[name] = (times, table["bps"].to_numpy(dtype=float) / 1e6)
    grid = np.round(np.arange(0.0, max(times[-1] for times, _ in series.values()) + step / 2, step), 6)
    results = {name: _resample(grid, *values) for name, values in series.items()}
    results |= _computed_series([values for name, values in results.items() if name.startswith(f"{_UPLOAD}::")])
    return {
        "version": FORMAT,
        "metadata": _run_metadata(manifest, summary, cell, started, step, float(grid[-1]), uploads, results),
        "x_values": grid.tolist(),
        "results": results,
        "raw_values": {
            name: [{"t": round(zero + time, 6), "val": round(value, 6)} for time, value in zip(*values, strict=True)]
            for name, values in series.items()
        },
    }


def _resample(grid: np.ndarray, times: np.ndarray, values: np.ndarray) -> list[float | None]:
    """Return a series at the steps between its first and last value; None outside."""
    found = np.interp(grid, times, values, left=np.nan, right=np.nan)
    return [None if np.isnan(value) else round(float(value), 6) for value in found]


def _computed_series(uploads: list[list[float | None]]) -> Mapping[str, list[float | None]]:
    """Return the series that flent's test computes from its streams: their sum and their mean."""
    if not uploads:
        return {}
    known = [[value for value in values if value is not None] for values in zip(*uploads, strict=True)]
    return {
        f"{_UPLOAD} sum": [round(sum(values), 6) if values else None for values in known],
        f"{_UPLOAD} avg": [round(sum(values) / len(values), 6) if values else None for values in known],
    }


def _run_metadata(
    manifest: Manifest,
    summary: CellSummary,
    cell: CellFiles,
    started: datetime,
    step: float,
    length: float,
    uploads: int,
    results: Mapping[str, object],
) -> dict[str, Any]:
    experiment = manifest.experiment
    model = cell.experiment()
    flows = model.arm_flows(model.arms[0])
    families = {flow_family(model.topology, flow) for flow in flows}
    time = _format_time(started)
    parameters = parameters_text(summary.values)
    title = f"{experiment.name} {summary.arm}" + (f" {parameters}" if parameters else "") + f" {summary.repetition}"
    return {
        "NAME": TEST,
        "TITLE": title,
        "NOTE": experiment.title + ("" if summary.valid else f"; INVALID: {'; '.join(summary.reasons)}"),
        "TIME": time,
        "T0": time,
        "LENGTH": length,
        "TOTAL_LENGTH": length,
        "STEP_SIZE": step,
        "HOST": flows[0].destination,
        "HOSTS": [flows[0].destination],
        "LOCAL_HOST": flows[0].source,
        # None if there are flows of both IP versions, as in a flent test without -4 and -6.
        "IP_VERSION": families.pop() if len(families) == 1 else None,
        "TEST_PARAMETERS": {"upload_streams": str(uploads)},
        "BATCH_NAME": experiment.name,
        "BATCH_TITLE": experiment.title,
        "BATCH_TIME": _format_time(manifest.started),
        "BATCH_UUID": str(uuid.uuid5(_NAMESPACE, f"{experiment.name} {manifest.started.isoformat()}")),
        "SERIES_META": {name: {"UNITS": "Mbits/s"} for name in results},
    }


def _format_time(when: datetime) -> str:
    """Format a time for flent, always with microseconds."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
