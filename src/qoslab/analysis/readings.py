"""Content of the files of cells, and the metrics of each: one cell at a time, also while others are still running."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from qoslab.analysis import raw, saved_cells
from qoslab.analysis.arrivals import Arriving, receiver_reports, report_mismatches
from qoslab.analysis.counter_files import DAMAGE, STRAY_S, add_counters, lines_by_interface, ns
from qoslab.analysis.limiters import limiter_rows
from qoslab.analysis.line_limit import impossible_value_messages
from qoslab.analysis.metric_functions import CellFacts
from qoslab.analysis.metrics import metrics_of_cell, order_metrics
from qoslab.analysis.packets import ALL, bin_packets, shift_clock
from qoslab.analysis.paths import first_arm_paths
from qoslab.analysis.saved_cells import Saved, SavedCells
from qoslab.capture import CaptureError
from qoslab.capture.packet_tables import read_packets
from qoslab.errors import QoslabError, UserError
from qoslab.lab_kinds import lab_kind
from qoslab.model.experiment import Experiment
from qoslab.model.instants import traffic_time
from qoslab.model.matrix import as_values
from qoslab.model.metrics import Reference
from qoslab.results import CellFiles, CellRecord, FileSeal, Manifest, RunFolder, tables
from qoslab.results.cell_files import EXPERIMENT
from qoslab.results.folder import OpenRun
from qoslab.results.sealed_files import CELL_RECORD
from qoslab.schema import CellIdentity
from qoslab.traffic import TrafficError

if TYPE_CHECKING:
    import pandas as pd

TABLES = (
    "flows",
    "intervals",
    "hosts",
    "probes",
    "classes",
    "interfaces",
    "queues",
    "conversations",
    "limiters",
    "health",
)
"""Tables with rows that are read from a cell's files."""


EXPERIMENTS_MOST = 16
"""Number of cached experiments of cells: repetitions share one, other combinations never do."""
_ALL_TABLES = (*TABLES, "packets_io", "metrics")


class MisfitError(UserError):
    """Error for a record that cannot be read, or belongs to another cell."""


@dataclass(frozen=True)
class Reading:
    """Content of one cell's files."""

    tables: dict[str, pa.Table]
    """Rows of the cell by table, including `metrics`, in Arrow's form; tables and columns without values are absent."""
    problems: tuple[str, ...]
    """Reasons of an invalid cell; empty if it is valid."""
    beyond: tuple[str, ...] = ()
    """Messages on impossible values of a valid cell."""


@dataclass(frozen=True)
class Gathered:
    """Results of some cells."""

    tables: dict[str, pd.DataFrame]
    problems: dict[str, tuple[str, ...]]
    """Reasons of invalid cells, by name; valid ones are absent."""
    beyond: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Messages on impossible values of valid cells, by the cell's name; other cells are absent."""
    saved: SavedCells | None = None
    """Record of the saved tables with exactly these rows; None if there are none."""


@dataclass(frozen=True)
class RunReading(Gathered):
    """Results of all cells of a run that count, with a column for each parameter."""

    cells: tuple[CellFiles, ...] = ()
    damaged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reasons of damaged cells, and of cells with records of another cell, by name."""
    reasons: tuple[str, ...] = ()
    """Reasons of invalid and missing cells, each with the cell's name."""
    unsaved: SavedCells | None = None
    """Record of the cells in these tables, if they are not the saved ones."""


class Readings:
    """Cells that were read so far. Not thread-safe.

    The reading of a cell is used as long as its record has the same seal, which covers the seals of all its files: the
    caller has to check that the files are unchanged (`qoslab.results.RunFolder.open`).
    """

    def __init__(self, wanted: Iterable[Reference], *, captures: bool = True) -> None:
        """Create it for the metrics `wanted`, which are named anywhere; without `captures`, these are not read."""
        self._wanted = tuple(wanted)
        self._captures = captures
        self._known: dict[Path, tuple[FileSeal | None, Reading]] = {}
        self._saved: Saved | None = None
        self._loaded: Path | None = None
        self.note = ""
        """Reason for not using the saved results of the run; empty if they are used, or if there are none."""
        self._experiments: dict[bytes, Experiment] = {}

    @property
    def reading_arguments(self) -> tuple[tuple[Reference, ...], bool]:
        """Return the arguments of the reading: the named metrics, and whether captures are read."""
        return self._wanted, self._captures

    def from_run(
        self, folder: RunFolder, run: OpenRun, read: Callable[[Readings, Sequence[CellFiles]], None] | None = None
    ) -> RunReading:
        """Read the cells of a run, except those in its saved results; `read` reads some, such as by other processes.

        Cells that are damaged, or have records of another cell, are left out. `note` has the reason if saved results
        exist and cannot be used.
        """
        if self._loaded != folder.path:
            self._loaded = folder.path
            self._saved, self.note = saved_cells.load(folder, self._names, captures=self._captures)
        if read is not None:
            read(self, run.cells)
        misfits = dict(self.misplaced_cells(run.cells))
        cells = tuple(cell for cell in run.cells if cell not in misfits)
        damaged = {**run.damaged, **{cell.name: why for cell, why in misfits.items()}}
        found = self.gather(cells)
        reasons = [f"{name}: {problem}" for name, each in found.problems.items() for problem in each]
        reasons += _missing_record_reasons(run.manifest, damaged, {cell.name for cell in cells})
        known, unsaved = found.saved, None
        if known is None or known.manifest != run.manifest_sha256:
            known, unsaved = None, self._unsaved_record(cells, run.manifest_sha256)
        parameters = {summary.name: summary.values for summary in run.manifest.cells}
        rows = {name: tables.with_parameters(table, parameters) for name, table in found.tables.items()}
        return RunReading(rows, found.problems, found.beyond, known, cells, damaged, tuple(reasons), unsaved)

    def _unsaved_record(self, cells: Iterable[CellFiles], manifest_sha256: str) -> SavedCells:
        """Return the record of tables from these cells, in this order, without the tables and the warnings."""
        found = {}
        for cell in cells:
            reading = self.cell_content(cell)
            seal, _ = self._known[cell.path]
            if seal is not None:
                found[cell.name] = saved_cells.SavedCell(
                    record=seal.sha256, problems=reading.problems, beyond=reading.beyond
                )
        return SavedCells(
            code=saved_cells.code_version(),
            manifest=manifest_sha256,
            metrics=self._names,
            captures=self._captures,
            cells=found,
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(map(str, self._wanted))

    def is_unread(self, cell: CellFiles) -> bool:
        """Return whether the cell is unread, or has changed since it was read."""
        seal = cell.seal
        return self._cached_reading(cell, seal) is None and not self._is_saved(cell.name, seal)

    def _cached_reading(self, cell: CellFiles, seal: FileSeal | None) -> Reading | None:
        """Return the reading of the cell when its record had this seal; None if there is none."""
        known = self._known.get(cell.path)
        return known[1] if known is not None and known[0] == seal else None

    def _is_saved(self, name: str, seal: FileSeal | None) -> bool:
        return self._saved is not None and self._saved.has(name, seal)

    def misplaced_cells(self, cells: Iterable[CellFiles]) -> Iterator[tuple[CellFiles, tuple[str, ...]]]:
        """Read the cells; yield those with records of another cell, with the reason."""
        for cell in cells:
            try:
                if self.is_unread(cell):
                    self.cell_content(cell)
            except MisfitError as error:
                yield cell, (error.message,)

    def take(self, cell: CellFiles, seal: FileSeal | None, reading: Reading) -> None:
        """Add the reading of a cell by another process, from when its record had this seal."""
        self._known[cell.path] = (seal, reading)

    def forget(self, cell: CellFiles) -> None:
        """Free the memory of a cell's reading."""
        self._known.pop(cell.path, None)

    def cell_content(self, cell: CellFiles) -> Reading:
        """Return the content of the cell's files, read on first use. Raise `MisfitError` if they belong to another
        cell.
        """
        seal = cell.seal
        if (known := self._cached_reading(cell, seal)) is not None:
            return known
        if self._saved is not None and self._saved.has(cell.name, seal):
            of_cell = self._saved.record.cells[cell.name]
            reading = Reading(self._saved.rows(cell.name), of_cell.problems, of_cell.beyond)
        else:
            reading = self._read(cell)
            cell.forget()
        self.take(cell, seal, reading)
        return reading

    def gather(self, cells: Iterable[CellFiles]) -> Gathered:
        """Return the tables of several cells, in their order."""
        cells = list(cells)
        if self._saved is not None and self._are_saved(cells, self._saved):
            each: Mapping[str, Reading | saved_cells.SavedCell] = self._saved.record.cells
            parts = {name: [table] for name, table in self._saved.tables.items()}
            known: SavedCells | None = self._saved.record
        else:
            each = found = {cell.name: self.cell_content(cell) for cell in cells}
            parts = {
                name: [reading.tables[name] for reading in found.values() if name in reading.tables]
                for name in _ALL_TABLES
            }
            known = None
        gathered = {name: tables.concatenate_parts(name, part) for name, part in parts.items()}
        gathered["metrics"] = order_metrics(gathered["metrics"])
        problems = {name: reading.problems for name, reading in each.items() if reading.problems}
        return Gathered(
            gathered, problems, {name: reading.beyond for name, reading in each.items() if reading.beyond}, known
        )

    def _are_saved(self, cells: Sequence[CellFiles], found: Saved) -> bool:
        """Return whether the saved results are exactly these cells in their present state."""
        return [cell.name for cell in cells] == list(found.record.cells) and all(
            found.has(cell.name, cell.seal) for cell in cells
        )

    def _read(self, cell: CellFiles) -> Reading:
        """Return the content of a cell's files as plain values, with its metrics."""
        record, own = self._records(cell)
        keys: dict[str, object] = {"arm": cell.arm, "repetition": cell.repetition, "cell": cell.name}
        rows: dict[str, list[raw.Row]] = {name: [] for name in TABLES}
        problems = _collect(cell, record, own, lambda name, row: rows[name].append(keys | row))
        read, damaged = _read_tables(rows)
        problems += damaged
        if self._captures:
            arriving = Arriving(receiver_reports(own, record))
            read["packets_io"], unreadable = _packets(cell, record, own, arriving)
            # The rest of a capture that stops early is unknown.
            problems += unreadable or report_mismatches(tables.plain("flows", rows["flows"]), arriving)
            limited, why = limiter_rows(cell, own, self._wanted)
            rows["limiters"] = [keys | row for row in limited]
            read["limiters"] = tables.arrow("limiters", rows["limiters"])
            problems += why
        if not record.valid:
            # Unreadable files are a consequence of the errors in the run.
            problems = list(record.reasons) or ["the record gives no reason"]
        found = {name: tables.plain(name, content) for name, content in rows.items()}
        facts = CellFacts(found, own.duration.seconds, lines_by_interface(own), first_arm_paths(own))
        computed = metrics_of_cell((cell.arm, cell.repetition, cell.name), facts, self._wanted)
        beyond = () if problems else tuple(impossible_value_messages(own, cell.arm, found, computed))
        read["metrics"] = tables.arrow("metrics", computed)
        some = {name: table for name, table in read.items() if table.num_rows}
        return Reading(some, tuple(dict.fromkeys(problems)), beyond)

    def _records(self, cell: CellFiles) -> tuple[CellRecord, Experiment]:
        """Return the record and the experiment of a cell. Raise `MisfitError` if they are unreadable or of another
        cell.
        """
        try:
            record = cell.record()
            own = self._experiment(cell)
            _check(cell, record, own)
        except UserError as error:
            raise MisfitError(error.message.replace(cell.label(""), ""), hint=error.hint) from error
        return record, own

    def _experiment(self, cell: CellFiles) -> Experiment:
        """Return the cell's experiment, cached, since many cells have the same, and parsing it takes most of the time
        of a small cell.
        """
        if len(self._experiments) >= EXPERIMENTS_MOST:
            self._experiments.clear()
        return cell.experiment(self._experiments)


def _check(cell: CellFiles, record: CellRecord, experiment: Experiment) -> None:
    """Raise `UserError` if the records of a cell belong to another cell or to different cells."""
    hint = "the file was changed"
    record_file, experiment_file = cell.label(CELL_RECORD), cell.label(EXPERIMENT)
    lab_kind(record.lab, record_file)
    identity = CellIdentity(record.arm, tuple(as_values(record.parameters).items()), record.repetition)
    if identity != cell.identity:
        message = f"{record_file}: found the record of {identity.folder}, expected that of {cell.name}"
        raise UserError(message, hint=hint)
    if cell.arm not in [arm.name for arm in experiment.arms]:
        raise UserError(f'{experiment_file}: found no arm "{cell.arm}"', hint=hint)
    traffic = {flow.name for flow in experiment.arm_flows(experiment.arm(cell.arm))}
    recorded = {flow.traffic for flow in record.flows}
    for name in sorted(recorded ^ traffic if record.valid else recorded - traffic):
        file, other = (experiment_file, record_file) if name in recorded else (record_file, "")
        of = f", although {other} has a record of it" if other else ""
        raise UserError(f'{file}: found no traffic "{name}"{of}', hint=hint)


def _read_tables(rows: dict[str, list[raw.Row]]) -> tuple[dict[str, pa.Table], list[str]]:
    """Return the tables, and the names of tables with values of an unexpected type, which are emptied."""
    found, problems = {}, []
    for name, content in rows.items():
        try:
            table = tables.arrow(name, content)
            if (column := tables.negative_column(name, content)) is not None:
                raise ValueError(f"found {column} below zero")
            found[name] = table
        except DAMAGE as error:
            problems.append(f"the source data of the table {name} is damaged: {str(error).partition(chr(10))[0]}")
            content.clear()
    return found, problems


def _missing_record_reasons(manifest: Manifest, damaged: Mapping[str, Sequence[str]], recorded: Set[str]) -> list[str]:
    """Return the reasons why planned cells have no record, each with the name of its cell."""
    missing = [each for each in manifest.cells if each.name not in recorded and not each.spared]
    return [
        f"{each.name}: {reason}"
        for each in missing
        for reason in damaged.get(each.name) or each.reasons or ("it did not run to completion",)
    ] or ([] if manifest.cells else ["no cell was run"])


def _collect(
    cell: CellFiles, record: CellRecord, experiment: Experiment, add: Callable[[str, raw.Row], None]
) -> list[str]:
    """Add the rows of a cell; return messages for unreadable data."""
    problems: list[str] = []
    problems += _collect_flows(cell, record, experiment, add)
    arm = experiment.arm(cell.arm)
    outputs = lab_kind(record.lab)
    senders = {flow.source for flow in experiment.arm_flows(arm) if flow.protocol == "tcp"}
    try:
        for row in outputs.hosts(cell, senders):
            add("hosts", row)
    except QoslabError as error:
        problems.append(error.message)
    for probe in experiment.probes:
        text = cell.probe(probe.name)
        if text is None:
            problems.append(f'probe "{probe.name}" left no results')
            continue
        try:
            row = raw.probe_row(probe.name, json.loads(text))
        except (*DAMAGE, RecursionError):
            problems.append(f'the results of probe "{probe.name}" are damaged')
            continue
        add("probes", row)
    problems += add_counters(cell, record, experiment, add)[0]
    for device, health in record.health.items():
        add("health", raw.health_row(device, health))
    return problems


def _collect_flows(
    cell: CellFiles, record: CellRecord, experiment: Experiment, add: Callable[[str, raw.Row], None]
) -> list[str]:
    """Add the rows of a cell's traffic; return messages for unreadable data."""
    problems: list[str] = []
    arm = experiment.arm(cell.arm)
    outputs = lab_kind(record.lab)
    late = {each.traffic: (each.began - each.started).total_seconds() for each in record.flows if each.began}
    for flow in experiment.arm_flows(arm):
        try:
            result = outputs.flow(cell, flow, experiment.flow_duration(arm, flow))
        except TrafficError as error:
            problems.append(error.message)
            continue
        if result is None:
            problems.append(f'traffic "{flow.name}" left no output')
            continue
        offset_s = flow.start_after.seconds + late.get(flow.name, 0.0)
        for row in raw.flow_rows(flow.name, result, offset_s):
            add("flows", row)
        latest = experiment.flow_duration(arm, flow).seconds + STRAY_S
        strays = 0
        for row in raw.interval_rows(flow.name, result, offset_s):
            if -STRAY_S <= row["start_s"] <= row["end_s"] <= latest:  # type: ignore[operator]
                add("intervals", row)
            else:
                strays += 1
        if strays:
            problems.append(
                f'traffic "{flow.name}": {strays} intervals lie outside the cell\'s time, expected -{STRAY_S:g} to '
                f"{latest:g} s"
            )
    return problems


def _packets(
    cell: CellFiles, record: CellRecord, experiment: Experiment, arriving: Arriving
) -> tuple[pa.Table, list[str]]:
    """Return the table `packets_io` of a cell, and messages for unreadable data; the packets are also passed to
    `arriving`.
    """
    schema = tables.SCHEMAS["packets_io"]
    parts = [schema.empty_table()]
    problems: list[str] = []
    latest = traffic_time(experiment, experiment.arm(cell.arm)).seconds + STRAY_S
    for point in experiment.captures:
        file = cell.capture(point.name)
        try:
            origin = None if record.traffic_start is None else ns(record.traffic_start)
            pieces = shift_clock(read_packets(file), record.host_clocks.get(point.node))
            table = bin_packets(arriving.pass_through(point.name, pieces), origin)
        except CaptureError as error:
            problems.append(error.message)
            continue
        times = table["time_s"].to_numpy()
        stray = (times < -STRAY_S) | (times > latest)
        if stray.any():
            of_all = stray & (np.array(table["flow"].to_pylist()) == ALL)
            problems.append(
                f"capture {point.name}: {table['packets'].to_numpy()[of_all].sum()} packets are stamped "
                f"{times[stray].min():g} to {times[stray].max():g} s after the start of the traffic, expected "
                f"-{STRAY_S:g} to {latest:g} s"
            )
            table = table.filter(~stray)
        same = {"arm": cell.arm, "repetition": cell.repetition, "cell": cell.name, "capture": point.name}
        columns = [
            pa.repeat(pa.scalar(same[field.name], field.type), len(table)) if field.name in same else table[field.name]
            for field in schema
        ]
        parts.append(pa.table(columns, schema=schema))
    return pa.concat_tables(parts), problems
