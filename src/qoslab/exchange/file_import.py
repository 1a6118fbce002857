"""Import of files of other tools to a folder with the tables and graphs of a run.

FOLDER/
  import.json            list of the input files, with SHA-256, and remarks on them
  tables/*.parquet       tables of a run, one arm per file; `samples` has values without a table of a run
  report.html            the graphs, and the metrics of the tables
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from qoslab import __version__
from qoslab.analysis import charts, series
from qoslab.analysis.metric_functions import CellFacts
from qoslab.analysis.metrics import metrics_of_cell, order_metrics
from qoslab.analysis.packets import ALL
from qoslab.analysis.readings import TABLES
from qoslab.exchange.base import write_atomically
from qoslab.exchange.readers import SAMPLES, ForeignResults, read_foreign
from qoslab.report import text
from qoslab.report.arms import Graph
from qoslab.report.headline_chart import overlaid
from qoslab.report.html import foreign_html
from qoslab.results import RunFolder, tables
from qoslab.results.sealed_files import compute_seal
from qoslab.system.printing import one_line

_MAX_FLOW_LINES = 12
"""Maximum number of flows of a capture that are drawn separately."""
_MAX_TRAFFIC_ENTRIES = 50
"""Maximum number of traffic entries of a file with separate metrics: each takes a tenth of a second."""


@dataclass(frozen=True)
class ImportedArm:
    """A file on the page."""

    name: str
    form: str
    file: str
    notes: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]
    graphs: tuple[Graph, ...]


@dataclass(frozen=True)
class ImportedPage:
    """The page of an import."""

    version: str
    title: str
    arms: tuple[ImportedArm, ...]
    lead: Graph | None
    """Throughput of all files in one graph; None with fewer than two files with throughput."""

    @property
    def graphs(self) -> list[Graph]:
        """All graphs of the page."""
        return [*([self.lead] if self.lead is not None else []), *(graph for arm in self.arms for graph in arm.graphs)]


def import_files(files: Sequence[Path], to: Path, form: str | None = None, interfaces: Sequence[str] = ()) -> Path:
    """Read files and write the folder `to`. Afterwards it is complete, or unchanged on failure. Raise `UserError` on
    failure.

    `interfaces` selects interfaces of captures that have several, by name or number.
    """
    with write_atomically(to) as draft:
        draft.mkdir()
        read = _name_arms([read_foreign(file, form, interfaces) for file in files])
        _write_page(RunFolder(draft), files, read, one_line(to.name))
    return to


def _name_arms(found: list[ForeignResults]) -> list[ForeignResults]:
    """Give the arms unique names."""
    own = {each.name for each in found}
    taken: set[str] = set()
    for each in found:
        name, number = each.name, 1
        # A numbered name may also be a file's real name, such as for browser downloads.
        while each.name in taken or (number > 1 and each.name in own):
            number += 1
            each.name = f"{name} ({number})"
        taken.add(each.name)
    return found


def _write_page(folder: RunFolder, files: Sequence[Path], found: list[ForeignResults], title: str) -> None:
    made = {name: _metric_table(name, found) for name in ("flows", "intervals")}
    packets = [
        each.packets.assign(arm=each.name, repetition=1, cell=each.name) for each in found if each.packets is not None
    ]
    made["packets_io"] = tables.conform("packets_io", pd.concat(packets)) if packets else tables.frame("packets_io", [])
    made["metrics"] = order_metrics(tables.frame("metrics", [row for each in found for row in _imported_metrics(each)]))
    for each in found:
        if (count := len({row["traffic"] for row in each.rows.get("flows", [])})) > _MAX_TRAFFIC_ENTRIES:
            each.notes.append(
                f"it has {count} rates; above {_MAX_TRAFFIC_ENTRIES}, metrics of individual rates are left out"
            )
    for name, table in made.items():
        if len(table):
            tables.write_table(folder, name, table)
    samples = [{"arm": each.name, **row} for each in found for row in each.samples]
    if samples:
        folder.tables.mkdir(exist_ok=True)
        pq.write_table(
            pa.Table.from_pylist(samples, schema=SAMPLES), folder.tables / "samples.parquet", compression="zstd"
        )
    record = {
        "qoslab": __version__,
        "files": [
            {
                "file": one_line(str(file)),
                "arm": each.name,
                "form": each.form,
                **compute_seal(file).model_dump(exclude={"lines"}),
                "notes": each.notes,
            }
            for file, each in zip(files, found, strict=True)
        ],
    }
    folder.replace("import.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    arms = tuple(
        _imported_arm(place, file, each, made) for place, (file, each) in enumerate(zip(files, found, strict=True))
    )
    page = ImportedPage(__version__, title, arms, _page_lead(found, made))
    folder.replace("report.html", foreign_html(page))


def _imported_metrics(of: ForeignResults) -> list[dict[str, object]]:
    own = {name: tables.plain(name, of.rows.get(name, [])) for name in TABLES}
    return metrics_of_cell((of.name, 1, of.name), CellFacts(own, of.seconds, {}, {}), most_each=_MAX_TRAFFIC_ENTRIES)


def _metric_table(name: str, found: Sequence[ForeignResults]) -> pd.DataFrame:
    rows = [
        {"arm": each.name, "repetition": 1, "cell": each.name, **row}
        for each in found
        for row in each.rows.get(name, [])
    ]
    return tables.frame(name, rows)


def _imported_arm(place: int, file: Path, each: ForeignResults, made: dict[str, pd.DataFrame]) -> ImportedArm:
    mine = {name: table[table["cell"] == each.name] for name, table in made.items()}
    found = mine["metrics"][mine["metrics"]["value"].notna()]
    if mine["flows"]["traffic"].nunique() < 2:
        # With one traffic entry, the metrics with its name have the same values.
        found = found[~found["metric"].str.contains("(", regex=False)]
    notes = tuple(
        (str(row["metric"]), text.value_text(float(row["value"]), row["unit"])) for row in found.to_dict("records")
    )
    graphs = [*_throughput_graph(place, mine), *_frame_graph(place, each), *_delay_graphs(place, each)]
    return ImportedArm(
        each.name, each.form, one_line(file.name), tuple(each.notes), (*notes, *_sample_summaries(each)), tuple(graphs)
    )


def _throughput_graph(place: int, mine: dict[str, pd.DataFrame]) -> list[Graph]:
    curves = series.reported_throughput(mine["intervals"], mine["flows"])
    if mine["intervals"].empty or ALL not in curves:
        return []
    mean = float(curves[ALL].mean())
    return [
        Graph(
            f"throughput-{place}",
            "Throughput reported by the tool",
            f"Payload, mean from first start to last end: {text.rate(mean)}.",
            charts.axis_rate_unit(float(curves[ALL].max()))[1],
            charts.io_graph(curves, "payload"),
        )
    ]


def _frame_graph(place: int, each: ForeignResults) -> list[Graph]:
    if each.packets is None or each.packets.empty:
        return []
    table = series.frames_of_flows(each.packets, _MAX_FLOW_LINES)
    count = int(each.packets[each.packets["flow"] == ALL]["bytes"].sum())
    return [
        Graph(
            f"frames-{place}",
            "Traffic in the capture",
            f"Whole frames in both directions: {text.size(count)} in {each.seconds:.1f} s; the {_MAX_FLOW_LINES} "
            "largest flows have separate lines.",
            charts.axis_rate_unit(float(table[ALL].max()))[1],
            charts.io_graph(table),
            binned=5 if each.seconds >= 5 else 1,
        )
    ]


def _delay_graphs(place: int, each: ForeignResults) -> list[Graph]:
    """Return one graph for each unit."""
    graphs = []
    samples = pd.DataFrame(each.samples, columns=["series", "unit", "time_s", "value"])
    for number, (_, table) in enumerate(samples.groupby("unit", sort=False)):
        unit = str(table["unit"].iloc[0])
        lines = {str(name): rows.set_index("time_s")["value"] for name, rows in table.groupby("series", sort=False)}
        medians = "; ".join(f"{name} {line.median():.4g} {unit}" for name, line in lines.items())
        graphs.append(
            Graph(
                f"samples-{place}-{number}",
                f"Samples in {unit}" if unit else "Samples",
                f"Medians: {medians}.",
                unit,
                charts.sample_graph(lines, unit),
            )
        )
    return graphs


def _sample_summaries(each: ForeignResults) -> list[tuple[str, str]]:
    """Return summaries of samples: median, 99 % and maximum."""
    samples = pd.DataFrame(each.samples, columns=["series", "unit", "time_s", "value"])
    return [
        (f"{rows['series'].iloc[0]}, {word}", text.bind_unit(f"{value:.4g} {rows['unit'].iloc[0]}".strip()))
        for _, rows in samples.groupby(["series", "unit"], sort=False)
        for word, value in (
            ("median", rows["value"].median()),
            ("99 %", rows["value"].quantile(0.99)),
            ("greatest", rows["value"].max()),
        )
    ]


def _page_lead(found: Sequence[ForeignResults], made: dict[str, pd.DataFrame]) -> Graph | None:
    """Return the throughput of all files in one graph; None with fewer than two."""
    lines = {}
    for each in found:
        flows, intervals = (made[name][made[name]["cell"] == each.name] for name in ("flows", "intervals"))
        curves = series.reported_throughput(intervals, flows)
        if len(intervals) and ALL in curves:
            lines[each.name] = curves[ALL]
    if len(lines) < 2:
        return None
    return overlaid("Throughput reported by the tools, by file", lines)
