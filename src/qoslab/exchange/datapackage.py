"""A run's tables as CSV or Parquet, with a description of types and units.

CSV files form a Data Package (specs.frictionlessdata.io, version 1): `datapackage.json` has files, columns, types and
units (`unit`). Empty fields are missing values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from qoslab.exchange.attribution import Author, parse_author
from qoslab.exchange.base import ExportRequest
from qoslab.results import tables
from qoslab.results.csv_text import csv_text

_TYPES = {"int": "integer", "Int": "integer", "float": "number", "Float": "number", "bool": "boolean"}


def write_csv(request: ExportRequest, to: Path) -> None:
    """Write a folder: `TABLE.csv` for each table that has rows, `comparison.csv`, and `datapackage.json`."""
    to.mkdir()
    resources = []
    for name, table in _table_resources(request):
        (to / f"{name}.csv").write_text(csv_text(table), encoding="utf-8")
        resources.append(_table_resource(name, table, tables.column_units(request.outcome.run.manifest.cells, table)))
    comparison = request.outcome.comparison
    (to / "comparison.csv").write_text(csv_text(comparison), encoding="utf-8")
    resources.append(_table_resource("comparison", comparison, {}))
    manifest = request.outcome.run.manifest
    package: dict[str, Any] = {
        "profile": "tabular-data-package",
        "name": manifest.experiment.name,
        "title": manifest.experiment.title,
        "created": manifest.started.isoformat(),
        "resources": resources,
    }
    if request.licence:
        package["licenses"] = [{"name": request.licence}]
    if request.authors:
        package["contributors"] = [_contributor_entry(parse_author(text)) for text in request.authors]
    (to / "datapackage.json").write_text(json.dumps(package, indent=2) + "\n", encoding="utf-8")


def _contributor_entry(author: Author) -> dict[str, str]:
    page = {"path": author.address} if author.address else {}
    return {"title": author.name, "role": "author", **page}


def write_parquet(request: ExportRequest, to: Path) -> None:
    """Write a folder: `TABLE.parquet` for each table that has rows; each column's metadata has its `unit`."""
    to.mkdir()
    for name, table in _table_resources(request):
        units = tables.column_units(request.outcome.run.manifest.cells, table)
        plain = pa.Table.from_pandas(table, preserve_index=False)
        fields = [
            field.with_metadata({"unit": units[field.name]}) if field.name in units else field for field in plain.schema
        ]
        pq.write_table(plain.cast(pa.schema(fields)), to / f"{name}.parquet", compression="zstd")


def _table_resources(request: ExportRequest) -> list[tuple[str, pd.DataFrame]]:
    read = ((name, tables.read_table(request.folder, name)) for name in tables.SCHEMAS)
    return [(name, table) for name, table in read if len(table)]


def _table_resource(name: str, table: pd.DataFrame, units: dict[str, str]) -> dict[str, Any]:
    fields = []
    for column in map(str, table.columns):
        kind = str(table[column].dtype).rstrip("0123456789").removeprefix("u")
        field = {"name": column, "type": _TYPES.get(kind.removesuffix("ean"), "string")}
        fields.append({**field, **({"unit": units[column]} if column in units else {})})
    return {
        "name": name.replace("_", "-"),
        "path": f"{name}.csv",
        "profile": "tabular-data-resource",
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "schema": {"fields": fields, "missingValues": [""]},
    }
