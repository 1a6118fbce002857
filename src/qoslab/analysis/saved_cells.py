"""Saved results of cells: the tables of a run with the list of their cells, and the version of the code.

`tables/cells.json` names each cell with the SHA-256 of its record, and each table with its own. A later analysis takes
a cell from the tables if all of these are unchanged; any other cell is read again from its files.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict

import qoslab
from qoslab.capture.packet_tables import PROGRAM
from qoslab.errors import MachineError, UserError
from qoslab.model.metrics import METRICS, AddedMetric
from qoslab.results import FileSeal, RunFolder, tables
from qoslab.results.folder import SAVED_CELLS
from qoslab.results.sealed_files import MANIFEST_MOST, content_difference, read_bytes, read_record
from qoslab.system.programs import find_own_program
from qoslab.system.source_hash import hash_files, list_files

AGAIN = "the cells are read again"
_NOT_READING = frozenset({"cli", "report", "live", "data"})
"""Parts of the package that are not used for reading a cell."""


class SavedCell(BaseModel):
    """Findings about a cell, in addition to its rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    record: str
    """SHA-256 of its `cell.json`, which has the SHA-256 of each of its files."""
    problems: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()


class SavedCells(BaseModel):
    """Content of `tables/cells.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    """Code that computed the tables; see `code_version`."""
    manifest: str
    """SHA-256 of the run's manifest, which has the parameters of the cells."""
    metrics: tuple[str, ...]
    """Metrics that the experiment names."""
    captures: bool
    """True if captures were read."""
    cells: dict[str, SavedCell]
    """Cells by name, in the order of their rows."""
    tables: dict[str, FileSeal] = {}
    warnings: tuple[str, ...] = ()
    """Inactive parts of the run; see `qoslab.analysis.idle`."""


@dataclass(frozen=True)
class Saved:
    """Saved results that are undamaged and from the running version of the code."""

    record: SavedCells
    tables: Mapping[str, pa.Table]
    """Rows by table, without parameters; rows of a cell are consecutive."""
    _places: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)

    def has(self, name: str, seal: FileSeal | None) -> bool:
        """Return whether there is a cell with a record of this seal."""
        known = self.record.cells.get(name)
        return known is not None and seal is not None and known.record == seal.sha256

    def rows(self, name: str) -> dict[str, pa.Table]:
        """Return the rows of one cell by table."""
        found = {}
        for table, content in self.tables.items():
            if table not in self._places:
                self._places[table] = dict(_runs(content))
            found[table] = content.slice(*self._places[table].get(name, (0, 0)))
        return found


def load(folder: RunFolder, metrics: Sequence[str], *, captures: bool) -> tuple[Saved | None, str]:
    """Return the saved results of a run for these metrics, and the reason if there are some that cannot be used."""
    path = folder.path / SAVED_CELLS
    if not path.exists():
        return None, ""
    try:
        record = read_record(SavedCells, path, MANIFEST_MOST)
        if record.code != code_version():
            return None, f"{SAVED_CELLS}: found results of another version of qoslab; {AGAIN}"
        if (record.metrics, record.captures) != (tuple(metrics), captures):
            return None, f"{SAVED_CELLS}: found results for other metrics of the experiment; {AGAIN}"
        found = {}
        for name, seal in record.tables.items():
            file = tables.table_path(name)
            # The checked content is the content that is used.
            if not (folder.path / file).exists():
                raise UserError(f"{file} is missing; its recorded size is {seal.size}")
            content = read_bytes(folder.path / file, tables.FILE_MOST)
            if damage := content_difference(file, content, seal):
                raise UserError(damage)
            found[name] = tables.read_arrow_table(f"{folder.path}/{file}", name, content)
        return Saved(record, {name: _order_by_cell(name, table, record) for name, table in found.items()}), ""
    except (UserError, OSError) as error:
        message = error.message if isinstance(error, UserError) else str(error)
        return None, f"{message.replace(f'{folder.path}/', '')}; {AGAIN}"


def _order_by_cell(name: str, table: pa.Table, record: SavedCells) -> pa.Table:
    """Return a table without parameters, cell by cell; that of metrics is ordered by source table."""
    table = table.select(tables.columns(name)).replace_schema_metadata()
    if name != "metrics":
        return table
    place = {cell: number for number, cell in enumerate(record.cells)}
    numbers = np.array([place.get(cell, -1) for cell in table.column("cell").to_pylist()], dtype=int)
    return table.take(pa.array(numbers.argsort(kind="stable")))


def _runs(table: pa.Table) -> Iterator[tuple[str, tuple[int, int]]]:
    """Return the first row and the number of rows of each cell."""
    first = 0
    for name, rows in groupby(table.column("cell").to_pylist()):
        count = sum(1 for _ in rows)
        yield name, (first, count)
        first += count


@cache
def code_version() -> str:
    """Return the version of qoslab and the SHA-256 of all code for reading a cell: sources, libraries, `qos-pcap`."""
    files = (*list_files(Path(qoslab.__file__).parent, _NOT_READING), *_added_metric_sources(), *_program())
    libraries = f"pandas {pd.__version__}, numpy {np.__version__}, pyarrow {pa.__version__}"
    return f"{qoslab.__version__}, {libraries}, SHA-256 {hash_files(files)}"


def _added_metric_sources() -> Iterator[tuple[str, Path]]:
    """Return the sources of metrics of other packages."""
    for _, metric in METRICS.added_items():
        if isinstance(metric, AddedMetric) and (source := inspect.getsourcefile(inspect.unwrap(metric.figure))):
            yield source, Path(source)


def _program() -> Iterator[tuple[str, Path]]:
    try:
        yield PROGRAM, find_own_program(PROGRAM)
    except MachineError:
        return
