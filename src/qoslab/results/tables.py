"""Tables of a run in tidy form: their columns, and Parquet files with exactly these columns.

Each row starts with `arm`, `repetition` and `cell` (the cell's name, which is also its folder); rows of `averages` and
`pairs`, which cover several cells, do not. Then each parameter has a column `matrix.NAME`; quantities are in b/s, B, ms
or fractions of the whole. Times `time_s` are seconds since the start of the cell's traffic, negative before it.
Booleans may be null. `time_error_s` is the maximum error of `time_s`: half of the duration of a show command, or null
if a data plane stamped its counters itself. Counters are those of internals/control-protocol.md, flattened with `_`;
`queues` has the counters of the egress queues of switch ports, which count from 1.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from qoslab.errors import UserError
from qoslab.model.drops import DROP_REASONS
from qoslab.model.expressions import Value, read_value
from qoslab.model.matrix import as_number
from qoslab.model.metrics import QUANTITY_BY_UNIT
from qoslab.results.columns import Columns
from qoslab.results.folder import RunFolder
from qoslab.results.records import CellSummary

_CELL = [("arm", pa.string()), ("repetition", pa.int64()), ("cell", pa.string())]

AGAIN = "`qoslab report` recomputes the tables"
FILE_MOST = 4 * 2**30
"""Maximum size of a table's file, in bytes."""
CHUNK_MOST = 256 * 2**20
"""Maximum unpacked size of a column in one row group, in bytes; row groups have up to 2**20 rows."""
VALUES_MOST = 2**29
"""Maximum number of rows times columns of a table, limited by the memory of a machine."""
TEXT_MOST = 4 * 2**30
"""Maximum size of the texts in a table, in bytes."""
_PARAMETER_KINDS = (pa.string(), pa.large_string(), pa.int64(), pa.float64(), pa.bool_())
BATCH = 2**16
"""Number of rows that are processed together."""

PARAMETER = "matrix."
"""Prefix of parameter columns: `matrix.rtt`."""


def _counted(name: str) -> list[tuple[str, pa.DataType]]:
    return [(f"{name}_packets", pa.int64()), (f"{name}_bytes", pa.int64())]


def _rated(name: str) -> list[tuple[str, pa.DataType]]:
    return [*_counted(name), (f"{name}_rate_bps", pa.float64())]


SCHEMAS: dict[str, pa.Schema] = {
    "flows": pa.schema(
        [
            *_CELL,
            ("traffic", pa.string()),
            ("offset_s", pa.float64()),
            ("tool", pa.string()),
            ("protocol", pa.string()),
            ("stream", pa.int64()),
            ("local_port", pa.int64()),
            ("seconds", pa.float64()),
            ("bytes", pa.int64()),
            ("goodput_bps", pa.float64()),
            ("sender_bps", pa.float64()),
            ("retransmits", pa.int64()),
            ("mss_bytes", pa.int64()),
            ("rtt_mean_ms", pa.float64()),
            ("datagrams", pa.int64()),
            ("lost", pa.int64()),
            ("jitter_ms", pa.float64()),
            ("delay_p50_ms", pa.float64()),
            ("delay_p99_ms", pa.float64()),
            ("delay_max_ms", pa.float64()),
            ("voice_r", pa.float64()),
            ("pages", pa.int64()),
            ("page_mean_ms", pa.float64()),
            ("page_max_ms", pa.float64()),
        ]
    ),
    "hosts": pa.schema(
        [
            *_CELL,
            ("host", pa.string()),
            ("sends", pa.bool_()),
            ("sent_segments", pa.int64()),
            ("retransmitted_segments", pa.int64()),
            ("timeouts", pa.int64()),
        ]
    ),
    "probes": pa.schema(
        [
            *_CELL,
            ("probe", pa.string()),
            ("rtt_count", pa.int64()),
            ("rtt_p50_ms", pa.float64()),
            *(
                (f"{name}_{part}_ms", pa.int64())
                for name in ("rtt", "jitter", "jitter_back")
                for part in ("min", "avg", "max")
            ),
        ]
    ),
    "intervals": pa.schema(
        [
            *_CELL,
            ("traffic", pa.string()),
            ("offset_s", pa.float64()),
            ("stream", pa.int64()),
            ("start_s", pa.float64()),
            ("end_s", pa.float64()),
            ("bytes", pa.int64()),
            ("bps", pa.float64()),
        ]
    ),
    "packets_io": pa.schema(
        [
            *_CELL,
            ("capture", pa.string()),
            ("flow", pa.string()),
            ("time_s", pa.float64()),
            ("bytes", pa.int64()),
            ("packets", pa.int64()),
        ]
    ),
    "limiters": pa.schema(
        [
            *_CELL,
            ("before", pa.string()),
            ("after", pa.string()),
            ("dscp", pa.int64()),
            ("kind", pa.string()),
            ("rate_bps", pa.float64()),
            ("burst_bytes", pa.float64()),
            ("interval_ms", pa.float64()),
            ("queue_packets", pa.float64()),
            ("ahead_packets", pa.float64()),
            ("unexplained", pa.int64()),
        ]
    ),
    "classes": pa.schema(
        [
            *_CELL,
            ("device", pa.string()),
            ("interface", pa.string()),
            ("direction", pa.string()),
            ("policy", pa.string()),
            ("class", pa.string()),
            ("time_s", pa.float64()),
            ("time_error_s", pa.float64()),
            ("packets", pa.int64()),
            ("bytes", pa.int64()),
            ("offered_rate_bps", pa.float64()),
            ("drop_rate_bps", pa.float64()),
            *(column for reason in DROP_REASONS for column in _counted(f"drops_{reason}")),
            ("bandwidth_kbps", pa.float64()),
            ("bandwidth_percent", pa.float64()),
            ("bandwidth_remaining_percent", pa.float64()),
            ("bandwidth_remaining_ratio", pa.float64()),
            ("priority_unit", pa.string()),
            ("priority_kbps", pa.float64()),
            ("priority_percent", pa.float64()),
            ("priority_burst_bytes", pa.int64()),
            ("priority_level", pa.int64()),
            ("police_form", pa.string()),
            ("police_cir_bps", pa.float64()),
            ("police_cir_percent", pa.float64()),
            ("police_bc_bytes", pa.float64()),
            ("police_pir_bps", pa.float64()),
            ("police_pir_percent", pa.float64()),
            ("police_be_bytes", pa.float64()),
            *_rated("police_conformed"),
            *_rated("police_exceeded"),
            *_rated("police_violated"),
            ("police_tokens_lost_bytes", pa.float64()),
            ("police_tokens_lost_longest_ns", pa.int64()),
            ("police_dynamic_bucket_bytes", pa.float64()),
            ("police_dynamic_level_bytes", pa.float64()),
            ("police_dynamic_mean_bucket_bytes", pa.float64()),
            ("police_dynamic_growths", pa.int64()),
            ("police_dynamic_shrinks", pa.int64()),
            ("police_dynamic_overflow_bytes", pa.float64()),
            ("police_dynamic_most_overflow_bytes", pa.float64()),
            ("shape_mode", pa.string()),
            ("shape_cir_bps", pa.float64()),
            ("shape_percent", pa.float64()),
            ("shape_target_bps", pa.float64()),
            ("shape_bc_bits", pa.float64()),
            ("shape_be_bits", pa.float64()),
            ("shape_interval_ms", pa.float64()),
            ("shape_byte_limit", pa.float64()),
            ("shape_increment_bytes", pa.float64()),
            ("shape_active", pa.bool_()),
            *_counted("shape_sent"),
            *_counted("shape_delayed"),
            ("queue_discipline", pa.string()),
            ("queue_limit_packets", pa.int64()),
            ("queue_limit_bytes", pa.int64()),
            ("queue_limit_ms", pa.int64()),
            ("queue_depth_packets", pa.int64()),
            ("queue_depth_bytes", pa.int64()),
            ("queue_in_ring_packets", pa.int64()),
            ("queue_per_flow_limit", pa.int64()),
            ("queue_flows", pa.int64()),
            ("queue_max_flows", pa.int64()),
            ("queue_delay_ns", pa.int64()),
            ("queue_delay_peak_ns", pa.int64()),
            ("queue_delay_base_ns", pa.int64()),
            *_counted("queue_output"),
            *_counted("queue_congested"),
            ("random_detect_mean_depth", pa.float64()),
            *_counted("random_detect_ecn_mark"),
        ]
    ),
    "interfaces": pa.schema(
        [
            *_CELL,
            ("device", pa.string()),
            ("interface", pa.string()),
            ("time_s", pa.float64()),
            ("time_error_s", pa.float64()),
            ("enabled", pa.bool_()),
            ("load_interval_s", pa.int64()),
            ("line_rate_bps", pa.float64()),
            *(
                (f"{direction}_{counter}", kind)
                for direction in ("input", "output")
                for counter, kind in (
                    ("packets", pa.int64()),
                    ("bytes", pa.int64()),
                    ("rate_bps", pa.float64()),
                    ("rate_pps", pa.float64()),
                    ("drops", pa.int64()),
                )
            ),
            ("queue_strategy", pa.string()),
            ("queue_depth", pa.int64()),
            ("queue_limit", pa.int64()),
            ("queue_drops", pa.int64()),
            ("queue_conversations", pa.int64()),
            ("queue_max_conversations", pa.int64()),
            ("queue_max_active_conversations", pa.int64()),
            ("queue_threshold", pa.int64()),
            ("queue_available_bandwidth_kbps", pa.int64()),
            ("tx_ring_limit", pa.int64()),
            ("tx_ring_depth", pa.int64()),
            ("queueing_delay_packets", pa.int64()),
            *((f"queueing_delay_{name}_ns", pa.float64()) for name in ("mean", "p50", "p99", "max")),
            *_counted("denied_input"),
            *_counted("denied_output"),
            *_counted("link_input_lost"),
            ("link_input_in_flight", pa.int64()),
            *_counted("link_output_lost"),
            ("link_output_in_flight", pa.int64()),
        ]
    ),
    "queues": pa.schema(
        [
            *_CELL,
            ("device", pa.string()),
            ("interface", pa.string()),
            ("queue", pa.int64()),
            ("threshold", pa.int64()),
            ("time_s", pa.float64()),
            ("time_error_s", pa.float64()),
            ("enqueued", pa.int64()),
            ("dropped", pa.int64()),
        ]
    ),
    "conversations": pa.schema(
        [
            *_CELL,
            ("device", pa.string()),
            ("interface", pa.string()),
            ("conversation", pa.int64()),
            ("traffic", pa.string()),
            ("time_s", pa.float64()),
            ("time_error_s", pa.float64()),
            ("depth_packets", pa.int64()),
            ("weight", pa.int64()),
            ("drops", pa.int64()),
        ]
    ),
    "health": pa.schema(
        [
            *_CELL,
            ("device", pa.string()),
            ("received", pa.int64()),
            ("transmitted", pa.int64()),
            ("lost_input", pa.int64()),
            ("lateness_p50_ns", pa.float64()),
            ("lateness_p99_ns", pa.float64()),
            ("lateness_p999_ns", pa.float64()),
            ("lateness_max_ns", pa.float64()),
            ("late_over_budget", pa.int64()),
            ("behind_ns", pa.int64()),
            ("budget_ns", pa.int64()),
        ]
    ),
    "averages": pa.schema(
        [
            *((name, pa.string()) for name in ("title", "arm", "each", "condition", "metric", "unit", "statistic")),
            *((name, pa.float64()) for name in ("published", "value", "low", "high")),
            ("over", pa.string()),
            ("cells", pa.int64()),
            ("excluded", pa.int64()),
            ("unmeasured", pa.int64()),
            ("lowest", pa.float64()),
            ("lowest_cell", pa.string()),
            ("highest", pa.float64()),
            ("highest_cell", pa.string()),
            *((name, pa.string()) for name in ("tolerance", "reason", "verdict", "reproduction", "explanation")),
        ]
    ),
    "pairs": pa.schema(
        [
            *(
                (name, pa.string())
                for name in ("title", "arm", "metric", "unit", "parameter", "first", "second", "cell")
            ),
            *((name, pa.float64()) for name in ("first_value", "second_value", "difference", "low", "high")),
            *((name, pa.string()) for name in ("winner", "first_folder", "second_folder", "published")),
        ]
    ),
    "metrics": pa.schema(
        [
            *_CELL,
            ("metric", pa.string()),
            ("unit", pa.string()),
            ("value", pa.float64()),
            # Maximum error, if it comes from readings with instants or bytes that are not known exactly.
            ("error", pa.float64()),
            # Reason of a missing value, if the metric applies and a part of it is unknown.
            ("missing", pa.string()),
        ]
    ),
}


NEVER_NULL = frozenset({"packets_io"})
"""Tables without missing values: their data frames have NumPy's types."""


def columns(name: str) -> list[str]:
    """Return the columns of a table, in order."""
    return [str(column) for column in SCHEMAS[name].names]


_SUFFIXES = {
    "bps": "b/s",
    "kbps": "kb/s",
    "pps": "packets/s",
    "bytes": "B",
    "bits": "bit",
    "packets": "packets",
    "segments": "segments",
    "percent": "%",
    "s": "s",
    "ms": "ms",
    "ns": "ns",
    "seconds": "s",
}
"""Unit for the last part of a column's name."""
_COUNTED = frozenset(
    (
        *("received", "transmitted", "lost_input", "late_over_budget", "input_drops", "output_drops"),
        *("queue_depth", "queue_limit", "queue_drops", "queue_threshold", "queue_per_flow_limit"),
        *("tx_ring_limit", "tx_ring_depth", "link_input_in_flight", "link_output_in_flight"),
        *(
            "random_detect_mean_depth",
            "retransmits",
            "datagrams",
            "lost",
            "enqueued",
            "dropped",
            "drops",
            "unexplained",
        ),
    )
)
"""Columns of counted packets, frames or segments with names that lack the unit."""


def unit_of(column: str) -> str:
    """Return the unit of a table's column; empty for text, plain numbers and parameters."""
    if column in _COUNTED:
        return "packets"
    return "B" if column == "shape_byte_limit" else _SUFFIXES.get(column.rpartition("_")[2], "")


def column_units(cells: Sequence[CellSummary], table: pd.DataFrame) -> dict[str, str]:
    """Return the units of a table's columns that have one; for a parameter column, the unit of the cells'
    values."""
    found = {}
    for column in map(str, table.columns):
        of_parameter = column.startswith(PARAMETER)
        if unit := _parameter_unit(cells, column.removeprefix(PARAMETER)) if of_parameter else unit_of(column):
            found[column] = unit
    return found


def _parameter_unit(cells: Sequence[CellSummary], name: str) -> str:
    values = (cell.values[name] for cell in cells if name in cell.values)
    kinds = {type(read_value(value) if isinstance(value, str) else value) for value in values}
    return next((unit for unit, kind in QUANTITY_BY_UNIT.items() if kinds == {kind}), "")


def arrow(name: str, rows: list[dict[str, object]]) -> pa.Table:
    """Return rows as an Arrow table, without columns that have no values, to save memory: most columns of a cell are
    empty. Keys without a column are ignored.
    """
    found = {}
    keys = {key for row in rows for key in row}
    for column, kind in _types(name).items():
        if column in keys:
            values = [row.get(column) for row in rows]
            if values.count(None) < len(values):
                found[column] = pa.array(values, kind)
    return pa.table(found)


def frame(name: str, rows: list[dict[str, object]]) -> pd.DataFrame:
    """Return rows as a data frame, as `arrow`."""
    return joined(name, [arrow(name, rows)] if rows else [])


def joined(name: str, parts: Sequence[pa.Table]) -> pd.DataFrame:
    """Return the rows of all parts in order, as a data frame."""
    table = pa.concat_tables([SCHEMAS[name].empty_table(), *parts], promote_options="default")
    found: pd.DataFrame = table.to_pandas(types_mapper=None if name in NEVER_NULL else _nullable)
    return found


def plain(name: str, rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Return rows as NumPy columns. `arrow` must accept the rows."""
    return Columns.of_rows(rows, _kinds(name))


def frame_of(name: str, rows: Columns) -> pd.DataFrame:
    """Return rows as a data frame with all columns of the table, with NumPy's types."""
    return pd.DataFrame({column: rows[column] for column in columns(name)})


@cache
def _kinds(name: str) -> dict[str, type]:
    """Return the type of each column in `plain`."""
    return {column: object if kind in (pa.string(), pa.bool_()) else float for column, kind in _types(name).items()}


@cache
def _types(name: str) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in SCHEMAS[name]}


def negative_column(name: str, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the name of the first integer column with a negative value; None if there is none."""
    below = {key for row in rows for key, value in row.items() if type(value) in (int, float) and value < 0}
    return next((column for column, kind in _types(name).items() if kind == pa.int64() and column in below), None)


def _nullable(kind: pa.DataType) -> object:
    return {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}.get(kind)


def conform(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its declared columns, in order, parameters after `cell`. Raise `KeyError` for a missing
    column.
    """
    known = columns(name)
    own = len(_CELL)
    return table[[*known[:own], *parameter_columns(table), *known[own:]]].reset_index(drop=True)


def parameter_columns(table: pd.DataFrame) -> list[str]:
    """Return the table's parameter columns."""
    return [str(column) for column in table.columns if str(column).startswith(PARAMETER)]


def with_parameters(table: pd.DataFrame, cells: Mapping[str, Mapping[str, Value]]) -> pd.DataFrame:
    """Return the table with a column for each parameter, null for cells without it; `cells` are the
    parameters by cell.
    """
    found = table.copy()
    places, names = pd.factorize(table["cell"])
    for name in dict.fromkeys(name for parameters in cells.values() for name in parameters):
        values = {cell: as_number(parameters[name]) for cell, parameters in cells.items() if name in parameters}
        kinds = {type(value) for value in values.values()}
        kind = {frozenset({int}): "Int64", frozenset({bool}): "boolean", frozenset({str}): "string"}.get(
            frozenset(kinds), "Float64"
        )
        each = pd.Series([values.get(cell) for cell in names], dtype=kind)
        found[PARAMETER + name] = each.take(places).set_axis(found.index)
    return found


def write_table(folder: RunFolder, name: str, table: pd.DataFrame) -> None:
    """Write a table as Parquet, replacing an existing file."""
    folder.replace(file_of(name), parquet(name, table))


def file_of(name: str) -> str:
    """Return the path of a table's file within a run's folder."""
    return f"tables/{name}.parquet"


def parquet(name: str, table: pd.DataFrame) -> bytes:
    """Return the content of a table's file."""
    content = io.BytesIO()
    conforming = conform(name, table)
    fields = {field.name: field for field in SCHEMAS[name]}
    inferred = pa.Schema.from_pandas(conforming[parameter_columns(conforming)], preserve_index=False)
    fields |= {field.name: field for field in inferred}
    schema = pa.schema([fields[column] for column in conforming.columns])
    pq.write_table(pa.Table.from_pandas(conforming, schema=schema, preserve_index=False), content, compression="zstd")
    return content.getvalue()


def read_table(folder: RunFolder, name: str) -> pd.DataFrame:
    """Read a table. Raise `UserError` if it is missing or not a qoslab table."""
    path = folder.tables / f"{name}.parquet"
    with _opened(path, name) as file:
        found: pd.DataFrame = _read(path, file).to_pandas(types_mapper=_nullable)
    return found


def arrow_of(label: str, name: str, content: bytes) -> pa.Table:
    """Return the table in the content of a file, in Arrow's form; `label` names the file in messages."""
    with _opened(label, name, pa.BufferReader(content)) as file:
        return _read(label, file)


def _read(path: Path | str, file: pq.ParquetFile) -> pa.Table:
    table = file.read()
    _check_texts(path, sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks))
    plain = [pa.field(each.name, _plain(each.type)) for each in table.schema]
    # The texts were read as dictionary indices: a text of a megabyte in each of a million rows is still small here.
    return table.cast(pa.schema(plain, metadata=table.schema.metadata))


def check_table(folder: RunFolder, name: str) -> None:
    """Check a table, with the errors of `read_table`; the table is read in small parts to save memory."""
    path = folder.tables / f"{name}.parquet"
    with _opened(path, name) as file:
        file.schema_arrow.empty_table().to_pandas(types_mapper=_nullable)
        texts = 0
        for column in file.schema_arrow.names:
            rows = 0
            for batch in file.iter_batches(BATCH, columns=[column], use_threads=False):
                batch.validate(full=True)
                rows += batch.num_rows
                _check_texts(path, texts := texts + _text_bytes(batch.column(0)))
            if rows != file.metadata.num_rows:
                raise _refused(path, f"found {rows} rows of {column}, expected {file.metadata.num_rows}")


@contextmanager
def _opened(path: Path | str, name: str, content: pa.BufferReader | None = None) -> Iterator[pq.ParquetFile]:
    """Open a table's file with a declared schema; any error within the block becomes a `UserError`."""
    try:
        size = Path(path).stat().st_size if content is None else content.size()
        if size > FILE_MOST:
            raise _refused(path, f"found {size} bytes, expected at most {FILE_MOST}")
        source = path if content is None else content
        texts = [
            field.name for field in pq.read_schema(source) if _plain(field.type) in (pa.string(), pa.large_string())
        ]
        # Read in pieces: a sparse file may be much longer than its data.
        with pq.ParquetFile(source, read_dictionary=texts, buffer_size=2**20, pre_buffer=False) as file:
            _check_shape(path, name, file)
            yield file
    except FileNotFoundError as error:
        raise UserError(f"{path}: found no such table", hint=AGAIN) from error
    except (OSError, pa.ArrowException, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _refused(path, f"cannot be read: {str(error).partition(chr(10))[0]}") from error


def _check_shape(path: Path | str, name: str, file: pq.ParquetFile) -> None:
    """Raise `UserError` if a table has undeclared or missing columns, or is larger than tables of qoslab."""
    about = file.metadata
    if (values := about.num_rows * about.num_columns) > VALUES_MOST:
        raise _refused(path, f"found {about.num_rows} rows, expected at most {VALUES_MOST // about.num_columns}")
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    if (size := max((chunk.total_uncompressed_size for chunk in chunks), default=0)) > CHUNK_MOST:
        raise _refused(path, f"found {size} bytes in a part of a column, expected at most {CHUNK_MOST}")
    if (rows := sum(group.num_rows for group in groups)) != about.num_rows or values < 0:
        raise _refused(path, f"found {rows} rows in its parts, expected {about.num_rows}")
    found = {field.name: _plain(field.type) for field in file.schema_arrow}
    if len(found) != len(file.schema_arrow):
        raise _refused(path, "found a column twice")
    for column, kind in found.items():
        if column not in SCHEMAS[name].names and not (column.startswith(PARAMETER) and kind in _PARAMETER_KINDS):
            raise _refused(path, f"found {kind} for the column {column}, expected a column of this format")
    for field in SCHEMAS[name]:
        if found.get(field.name) != field.type:
            raise _refused(
                path,
                f"found {found.get(field.name) or 'nothing'} for the column {field.name}, expected {field.type}",
            )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _text_bytes(column: pa.Array) -> int:
    """Return the size of a column's texts, with repeated texts counted each time."""
    if not pa.types.is_dictionary(column.type):
        return 0
    return int(pc.sum(pc.take(pc.binary_length(column.dictionary), column.indices)).as_py() or 0)


def _check_texts(path: Path | str, size: int) -> None:
    if size > TEXT_MOST:
        raise _refused(path, f"found {size} bytes of text, expected at most {TEXT_MOST}")


def _refused(path: Path | str, problem: str) -> UserError:
    return UserError(f"{path}: {problem}", hint=AGAIN)
