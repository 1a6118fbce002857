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


_CELL = "arm:text repetition:int cell:text"
_DROPS = " ".join(f"drops_{reason}:counted" for reason in DROP_REASONS)
_TYPES = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
_PARTS = {"counted": "_packets:int _bytes:int", "rated": "_packets:int _bytes:int _rate_bps:float"}
"""Columns that a name stands for, by its kind."""


def _table_schema(columns: str) -> pa.Schema:
    """Return the schema of columns `name:type`; `CELL` is the columns that identify a cell."""
    found = []
    for column in columns.replace("CELL", _CELL).split():
        name, kind = column.split(":")
        for part in _PARTS.get(kind, f":{kind}").split():
            ending, _, type_name = part.partition(":")
            found.append((name + ending, _TYPES[type_name]))
    return pa.schema(found)


SCHEMAS: dict[str, pa.Schema] = {
    "flows": _table_schema(
        """
        CELL traffic:text offset_s:float tool:text protocol:text stream:int local_port:int seconds:float bytes:int
        goodput_bps:float sender_bps:float retransmits:int mss_bytes:int rtt_mean_ms:float datagrams:int lost:int
        jitter_ms:float delay_p50_ms:float delay_p99_ms:float delay_max_ms:float voice_r:float pages:int
        pages_unfinished:int page_p50_ms:float page_mean_ms:float page_max_ms:float
        """
    ),
    "hosts": _table_schema("CELL host:text sends:bool sent_segments:int retransmitted_segments:int timeouts:int"),
    "probes": _table_schema(
        """
        CELL probe:text rtt_count:int rtt_p50_ms:float rtt_min_ms:int rtt_avg_ms:int rtt_max_ms:int jitter_min_ms:int
        jitter_avg_ms:int jitter_max_ms:int jitter_back_min_ms:int jitter_back_avg_ms:int jitter_back_max_ms:int
        """
    ),
    "intervals": _table_schema(
        """
        CELL traffic:text offset_s:float stream:int start_s:float end_s:float bytes:int bps:float
        """
    ),
    "packets_io": _table_schema("CELL capture:text flow:text time_s:float bytes:int packets:int"),
    "limiters": _table_schema(
        """
        CELL before:text after:text dscp:int kind:text rate_bps:float burst_bytes:float interval_ms:float
        queue_packets:float ahead_packets:float unexplained:int
        """
    ),
    "classes": _table_schema(
        f"""
        CELL device:text interface:text direction:text policy:text class:text time_s:float time_error_s:float
        packets:int bytes:int offered_rate_bps:float drop_rate_bps:float {_DROPS}
        bandwidth_kbps:float bandwidth_percent:float bandwidth_remaining_percent:float
        bandwidth_remaining_ratio:float priority_unit:text priority_kbps:float priority_percent:float
        priority_burst_bytes:int priority_level:int police_form:text police_cir_bps:float police_cir_percent:float
        police_bc_bytes:float police_pir_bps:float police_pir_percent:float police_be_bytes:float
        police_conformed:rated police_exceeded:rated police_violated:rated police_tokens_lost_bytes:float
        police_tokens_lost_longest_ns:int police_dynamic_bucket_bytes:float police_dynamic_level_bytes:float
        police_dynamic_mean_bucket_bytes:float police_dynamic_growths:int police_dynamic_shrinks:int
        police_dynamic_overflow_bytes:float police_dynamic_most_overflow_bytes:float shape_mode:text
        shape_cir_bps:float shape_percent:float shape_target_bps:float shape_bc_bits:float shape_be_bits:float
        shape_interval_ms:float shape_byte_limit:float shape_increment_bytes:float shape_active:bool shape_sent:counted
        shape_delayed:counted queue_discipline:text queue_limit:counted queue_limit_ms:int queue_depth:counted
        queue_in_ring_packets:int queue_per_flow_limit:int queue_flows:int queue_max_flows:int queue_delay_ns:int
        queue_delay_peak_ns:int queue_delay_base_ns:int queue_output:counted queue_congested:counted
        random_detect_mean_depth:float random_detect_ecn_mark:counted
        """
    ),
    "interfaces": _table_schema(
        """
        CELL device:text interface:text time_s:float time_error_s:float enabled:bool load_interval_s:int
        line_rate_bps:float input:rated input_rate_pps:float input_drops:int output:rated output_rate_pps:float
        output_drops:int queue_strategy:text queue_depth:int queue_limit:int queue_drops:int queue_conversations:int
        queue_max_conversations:int queue_max_active_conversations:int queue_threshold:int
        queue_available_bandwidth_kbps:int tx_ring_limit:int tx_ring_depth:int queueing_delay_packets:int
        queueing_delay_mean_ns:float queueing_delay_p50_ns:float queueing_delay_p99_ns:float
        queueing_delay_max_ns:float denied_input:counted denied_output:counted link_input_lost:counted
        link_input_in_flight:int link_output_lost:counted link_output_in_flight:int
        """
    ),
    "queues": _table_schema(
        """
        CELL device:text interface:text queue:int threshold:int time_s:float time_error_s:float enqueued:int
        dropped:int
        """
    ),
    "conversations": _table_schema(
        """
        CELL device:text interface:text conversation:int traffic:text time_s:float time_error_s:float depth_packets:int
        weight:int drops:int
        """
    ),
    "health": _table_schema(
        """
        CELL device:text received:int transmitted:int lost_input:int lateness_p50_ns:float lateness_p99_ns:float
        lateness_p999_ns:float lateness_max_ns:float late_over_budget:int behind_ns:int budget_ns:int
        """
    ),
    "averages": _table_schema(
        """
        title:text arm:text each:text condition:text metric:text unit:text statistic:text published:float value:float
        low:float high:float over:text cells:int excluded:int unmeasured:int lowest:float lowest_cell:text
        highest:float highest_cell:text tolerance:text reason:text verdict:text reproduction:text explanation:text
        """
    ),
    "pairs": _table_schema(
        """
        title:text arm:text metric:text unit:text parameter:text first:text second:text cell:text first_value:float
        second_value:float difference:float low:float high:float winner:text first_folder:text second_folder:text
        published:text
        """
    ),
    "metrics": _table_schema("CELL metric:text unit:text value:float error:float missing:text"),
}
"""Columns of the tables. In `metrics`, `error` is the maximum error of a value from readings with instants or bytes
that are not known exactly, and `missing` the reason of a missing value if the metric applies.
"""


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


def column_unit(column: str) -> str:
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
        if unit := _parameter_unit(cells, column.removeprefix(PARAMETER)) if of_parameter else column_unit(column):
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
    return concatenate_parts(name, [arrow(name, rows)] if rows else [])


def concatenate_parts(name: str, parts: Sequence[pa.Table]) -> pd.DataFrame:
    """Return the rows of all parts in order, as a data frame."""
    table = pa.concat_tables([SCHEMAS[name].empty_table(), *parts], promote_options="default")
    found: pd.DataFrame = table.to_pandas(types_mapper=None if name in NEVER_NULL else _nullable)
    return found


def plain(name: str, rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Return rows as NumPy columns. `arrow` must accept the rows."""
    return Columns.from_rows(rows, _kinds(name))


def make_frame(name: str, rows: Columns) -> pd.DataFrame:
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
    own = len(_CELL.split())
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
    folder.replace(table_path(name), parquet(name, table))


def table_path(name: str) -> str:
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
    with _open_table(path, name) as file:
        found: pd.DataFrame = _read(path, file).to_pandas(types_mapper=_nullable)
    return found


def read_arrow_table(label: str, name: str, content: bytes) -> pa.Table:
    """Return the table in the content of a file, in Arrow's form; `label` names the file in messages."""
    with _open_table(label, name, pa.BufferReader(content)) as file:
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
    with _open_table(path, name) as file:
        file.schema_arrow.empty_table().to_pandas(types_mapper=_nullable)
        texts = 0
        for column in file.schema_arrow.names:
            rows = 0
            for batch in file.iter_batches(BATCH, columns=[column], use_threads=False):
                batch.validate(full=True)
                rows += batch.num_rows
                _check_texts(path, texts := texts + _text_bytes(batch.column(0)))
            if rows != file.metadata.num_rows:
                raise _table_error(path, f"found {rows} rows of {column}, expected {file.metadata.num_rows}")


@contextmanager
def _open_table(path: Path | str, name: str, content: pa.BufferReader | None = None) -> Iterator[pq.ParquetFile]:
    """Open a table's file with a declared schema; any error within the block becomes a `UserError`."""
    try:
        size = Path(path).stat().st_size if content is None else content.size()
        if size > FILE_MOST:
            raise _table_error(path, f"found {size} bytes, expected at most {FILE_MOST}")
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
        raise _table_error(path, f"cannot be read: {str(error).partition(chr(10))[0]}") from error


def _check_shape(path: Path | str, name: str, file: pq.ParquetFile) -> None:
    """Raise `UserError` if a table has undeclared or missing columns, or is larger than tables of qoslab."""
    about = file.metadata
    if (values := about.num_rows * about.num_columns) > VALUES_MOST:
        raise _table_error(path, f"found {about.num_rows} rows, expected at most {VALUES_MOST // about.num_columns}")
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    if (size := max((chunk.total_uncompressed_size for chunk in chunks), default=0)) > CHUNK_MOST:
        raise _table_error(path, f"found {size} bytes in a part of a column, expected at most {CHUNK_MOST}")
    if (rows := sum(group.num_rows for group in groups)) != about.num_rows or values < 0:
        raise _table_error(path, f"found {rows} rows in its parts, expected {about.num_rows}")
    found = {field.name: _plain(field.type) for field in file.schema_arrow}
    if len(found) != len(file.schema_arrow):
        raise _table_error(path, "found a column twice")
    for column, kind in found.items():
        if column not in SCHEMAS[name].names and not (column.startswith(PARAMETER) and kind in _PARAMETER_KINDS):
            raise _table_error(path, f"found {kind} for the column {column}, expected a column of this format")
    for field in SCHEMAS[name]:
        if found.get(field.name) != field.type:
            raise _table_error(
                path, f"found {found.get(field.name) or 'nothing'} for the column {field.name}, expected {field.type}"
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
        raise _table_error(path, f"found {size} bytes of text, expected at most {TEXT_MOST}")


def _table_error(path: Path | str, problem: str) -> UserError:
    return UserError(f"{path}: {problem}", hint=AGAIN)
