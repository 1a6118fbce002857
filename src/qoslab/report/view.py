"""Views of a run for notebooks: the result of every method displays itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import pandas as pd
import plotly.graph_objects as go  # type: ignore[import-untyped]

from qoslab.analysis import Outcome, analyse, charts, series
from qoslab.analysis.averages import score
from qoslab.analysis.queues import busy_ports, queue_rates
from qoslab.errors import UserError
from qoslab.lab_kinds import lab_kind
from qoslab.model.matrix import Scalar, matches, parameters_text
from qoslab.model.partial_runs import partial_options
from qoslab.report.arms import Graph
from qoslab.report.page import Page, Verdict, build_page, value_groups, verdict
from qoslab.report.sweep import SweepSection, sweep_sections
from qoslab.results import CellFiles, Manifest, RunFolder, find_run, tables
from qoslab.results.cell_files import observation_file

RUN_VARIABLE = "QOSLAB_RUN"
"""Environment variable: the folder of the run to show."""


class Text(str):
    """Text that a notebook shows as plain text, not as a Python literal."""

    def _repr_pretty_(self, printer: object, cycle: bool) -> None:
        printer.text(self)  # type: ignore[attr-defined]


def open_run(experiment: str, root: Path | None = None) -> RunView:
    """Return a view of the run that `QOSLAB_RUN` names, of a run folder, or of the latest run of an experiment in
    `root`.

    Without `root`, search `runs` in the working directory and in its parent.
    """
    given = os.environ.get(RUN_VARIABLE)
    if root is None:
        root = next((path for path in (Path("runs"), Path("../runs")) if path.is_dir()), Path("runs"))
    return RunView(find_run(root, given or experiment))


class RunView:
    """A finished run. `arm` is an arm's name; for an arm with several repetitions, values are those of the first."""

    def __init__(self, folder: RunFolder, where: Mapping[str, Scalar] = MappingProxyType({})) -> None:
        self.folder = folder
        self._where = where

    def where(self, **parameters: Scalar) -> RunView:
        """Return the same run, restricted to cells with these parameter values: an arm's values and graphs are of its
        first such cell.
        """
        view = copy(self)  # with the outcome, if it has been computed
        view._where = {**self._where, **parameters}
        return view

    def __repr__(self) -> str:
        return f"{self.manifest.experiment.title}, run {self.folder.path.name}"

    @cached_property
    def manifest(self) -> Manifest:
        """Return the run's manifest."""
        return self.folder.manifest()

    @cached_property
    def outcome(self) -> Outcome:
        """Validity and comparison, computed from the raw results."""
        return analyse(self.folder)

    @property
    def verdict(self) -> Verdict:
        """Verdict of the report."""
        return verdict(self.outcome, self.manifest.experiment)

    @property
    def sentence(self) -> Text:
        """Verdict in words, after any remark on the lab's values."""
        found = self.verdict
        remark = lab_kind(self.manifest.lab).remark
        lines = [f"{found.word}: {found.sentence}", *(f"- {detail}" for detail in found.details)]
        return Text("\n".join([*([remark] if remark else []), *lines]))

    def tables(self) -> list[str]:
        """Names of the run's tables; docs/internals/architecture.md lists their columns."""
        return list(tables.SCHEMAS)

    def table(self, name: str) -> pd.DataFrame:
        """Return a tidy table of all cells, computed again; `attrs["units"]` has the units of the columns with a unit.

        Raise `UserError` for a name that is not in `tables`.
        """
        if name not in tables.SCHEMAS:
            raise UserError(f'found table "{name}", expected one of {", ".join(tables.SCHEMAS)}')
        _ = self.outcome
        found = tables.read_table(self.folder, name)
        found.attrs["units"] = tables.column_units(self.manifest.cells, found)
        return found

    def graphs(self) -> dict[str, str]:
        """Graphs of the report: the names for `graph`, with titles."""
        return {graph.id: graph.title for graph in self._page.graphs}

    def graph(self, name: str) -> go.Figure:
        """Return a graph of the report. Raise `UserError` for a name that is not in `graphs`."""
        return go.Figure(self.report_graph(name).figure)

    def report_graph(self, name: str) -> Graph:
        """Return the same graph with its texts in the report."""
        for graph in self._page.graphs:
            if graph.id == name:
                return graph
        raise UserError(f'found graph "{name}", expected one of {", ".join(self.graphs()) or "none"}')

    @cached_property
    def _page(self) -> Page:
        return build_page(self.folder, self.outcome)

    def figures(self, arm: str | None = None) -> pd.DataFrame:
        """Return measured next to published values of one arm (or ratio `A/B`), or of all arms."""
        comparison = self.outcome.comparison
        chosen = comparison if arm is None else comparison[comparison["arm"] == arm]
        rows = [
            {
                "arm": group.title,
                "figure": row.metric,
                "predicted": row.predicted,
                "published": row.published,
                "measured": row.measured,
                "difference": row.difference,
                "tolerance": row.tolerance,
                "verdict": row.verdict,
                "reproduction": row.reproduction,
            }
            for group in value_groups(chosen, self.manifest, self.outcome.untrusted)
            for row in group.rows
        ]
        return pd.DataFrame(rows).set_index(["arm", "figure"]) if rows else pd.DataFrame()

    def averages(self) -> pd.DataFrame:
        """Return the experiment's averages over cells next to the published ones, with intervals and the
        lowest cells.
        """
        table = self.outcome.averages
        return table[
            [
                "title",
                "each",
                "condition",
                "metric",
                "cells",
                "excluded",
                "unmeasured",
                "published",
                "value",
                "low",
                "high",
                "lowest",
                "lowest_cell",
                "verdict",
                "reproduction",
            ]
        ].set_index(["title", "each"])

    def scores(self) -> pd.DataFrame:
        """Return the comparisons of two parameter values: pairs of cells that the first value won, lost or tied."""
        rows: list[dict[str, object]] = []
        for title, pairs in self.outcome.pairs.groupby("title", sort=False):
            won, equal, lost = score(pairs)
            rows.append({"title": title, "won": won, "equal": equal, "lost": lost, "pairs": len(pairs)})
        return pd.DataFrame(rows, columns=["title", "won", "equal", "lost", "pairs"]).set_index("title")

    def sweep_graph(self, title: str) -> go.Figure:
        """Return the curves of an entry of `graphs`."""
        return go.Figure(self._sweep(title, "curves").curves[0].figure)

    def sweep_map(self, title: str) -> pd.DataFrame:
        """Return the heat map of an entry of `graphs` for its first arm: values as text, by row and
        column parameters.
        """
        shown = self._sweep(title, "a map").maps[0]
        head = [[name for name, span in line for _ in range(span)] for line in shown.head]
        index = pd.MultiIndex.from_tuples([tuple(names) for names, _ in shown.rows], names=shown.row_names)
        content = [[cell.text for cell in cells] for _, cells in shown.rows]
        return pd.DataFrame(content, index=index, columns=pd.MultiIndex.from_arrays(head))

    def _sweep(self, title: str, form: str) -> SweepSection:
        cells = self.outcome.run.cells
        sections = sweep_sections(self.manifest, cells, tables.read_table(self.folder, "metrics"))
        known = [section.title for section in sections if (section.curves if form == "curves" else section.maps)]
        for section in sections:
            if section.title == title and title in known:
                return section
        raise UserError(f'found no {form} called "{title}", expected one of: {"; ".join(known) or "none"}')

    def streams(self, arm: str) -> pd.DataFrame:
        """Return the goodput in kb/s, received bytes, seconds and retransmissions of each stream."""
        table = self._table("flows", arm)
        labels = series.stream_labels(table)
        table = table.assign(
            stream=[labels[str(row["traffic"]), int(row["stream"])] for row in table.to_dict("records")],
            goodput_kbps=(table["goodput_bps"] / 1e3).round(1),
        )
        return table[["stream", "local_port", "goodput_kbps", "bytes", "seconds", "retransmits"]].set_index("stream")

    def io_graph(self, arm: str, capture: str | None = None) -> go.Figure:
        """Return a graph of the throughput of all flows over time, in the style of the article."""
        packets = self._table("packets_io", arm)
        points = list(dict.fromkeys(packets["capture"]))
        if not points:
            raise UserError(
                f'arm "{arm}" has no capture', hint="the key captures of the experiment defines capture points"
            )
        chosen = packets[packets["capture"] == (capture or points[0])]
        table = series.flow_throughput(chosen, self._table("flows", arm), self._cell(arm).record().flows)
        return go.Figure(charts.io_graph(table))

    def class_graph(self, arm: str) -> go.Figure:
        """Return a graph of the counters of a router's policy over time, for the class with the most
        offered traffic.
        """
        classes = self._table("classes", arm)
        if classes.empty:
            raise UserError(
                f'arm "{arm}" has no counters of a policy', hint="only virtual routers report counters over time"
            )
        keys = ["device", "interface", "direction", "policy", "class"]
        busiest = max((table for _, table in classes.groupby(keys)), key=lambda table: int(table["packets"].max()))
        return go.Figure(charts.class_graph(series.class_rates(busiest)))

    def queue_graph(self, arm: str) -> go.Figure:
        """Return a graph of the egress queues of a switch port over time, for the port with the most drops."""
        queues = self._table("queues", arm)
        ports = busy_ports(queues)
        if not ports:
            raise UserError(
                f'arm "{arm}" has no counters of a switch', hint="only virtual switches report them over time"
            )
        return go.Figure(charts.queue_graph(queue_rates(queues, *ports[0])))

    def output(self, arm: str, device: str, command: str, moment: str = "during") -> Text:
        """Return the output of a router; `moment` is the trigger in words, as in `cell.json`."""
        cell = self._cell(arm)
        return Text(cell.text(f"{observation_file(device, moment, command)}.txt").strip("\n"))

    def configuration(self, arm: str, device: str) -> Text:
        """Return the configuration pushed to a router."""
        return Text(self._cell(arm).given_configuration(device).strip("\n"))

    def _cell(self, arm: str) -> CellFiles:
        cells = self.outcome.run.cells
        for cell in cells:
            if cell.arm == arm and matches(cell.parameters, self._where):
                return cell
        known = ", ".join(dict.fromkeys(cell.arm for cell in cells))
        part = partial_options(self.manifest.overrides)
        part_text = f"; the run covers only part of its file: {part}" if part else ""
        if arm in known.split(", "):
            raise UserError(f'arm "{arm}" has no cell with {parameters_text(dict(self._where))}{part_text}')
        raise UserError(f'found arm "{arm}", expected one of {known}{part_text}')

    def _table(self, name: str, arm: str) -> pd.DataFrame:
        cell = self._cell(arm)
        table = tables.read_table(self.folder, name)
        return table[table["cell"] == cell.name]
