"""Content of the report, before its layout by `reports/report.html.j2`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from qoslab import __version__
from qoslab.analysis.expected_comparison import reproduction_sentence
from qoslab.analysis.run_analysis import Outcome
from qoslab.analysis.statistics import effect_size
from qoslab.analysis.verdicts import LOOSE, OUTSIDE, UNDECIDED, WITHIN
from qoslab.lab_kinds import lab_kind
from qoslab.model.comparison import PublishedValue, Trace, ValueColumn, ValueTable
from qoslab.model.experiment import Experiment
from qoslab.model.instants import traffic_time
from qoslab.model.matrix import Scalar, matches
from qoslab.model.metrics import Reference
from qoslab.report import text
from qoslab.report.arms import ArmPage, Graph, arm_page, arm_title, cell_title
from qoslab.report.averages import AverageRow, PairSection, average_rows, failed_average_texts, pair_sections
from qoslab.report.cells import CellTable, cell_table
from qoslab.report.drawing import svg
from qoslab.report.headline_chart import headline_graph
from qoslab.report.kernel_fidelity import KernelFidelity, kernel_fidelity
from qoslab.report.notes import NoteText, notes
from qoslab.report.sweep import SweepSection, sweep_sections
from qoslab.report.title_answer import AnswerText, answer
from qoslab.results import CellRecord, CellSummary, Manifest, RunFolder, tables
from qoslab.results.changes import RouterChanges, read_changes
from qoslab.results.folder import OpenRun


@dataclass(frozen=True)
class Verdict:
    """Verdict at the top of the report."""

    kind: str
    """Class of the verdict's colour: `within`, `outside`, `invalid` or `informative`."""
    sign: str
    word: str
    sentence: str
    details: list[str]


@dataclass(frozen=True)
class ValueRow:
    """A row of the table of values."""

    description: str
    metric: str
    where: str
    """Description of the cells of the arm; empty for all."""
    reason: str
    """Reason of the expectation."""
    predicted: str
    """Prediction of the model; `–` if it gives bounds only."""
    published: str
    source: str
    measured: str
    interval: str
    """Interval under the measured value, with the number of measurements and the size of the effect."""
    difference: str
    tolerance: str
    verdict: str
    """Verdict on the router."""
    reproduction: str
    """Verdict on the publication; empty if it or the model has no value."""
    explanation: str
    """Explanation of a contradiction, or of a fitted part."""

    @property
    def passed(self) -> bool:
        """True if the row is within its tolerance and needs no attention."""
        return self.verdict in (WITHIN, LOOSE)


@dataclass(frozen=True)
class ValueGroup:
    """Rows of one arm."""

    title: str
    rows: list[ValueRow]

    @property
    def summary(self) -> str:
        """Describe the number of rows that passed."""
        within, loose = (sum(row.verdict == verdict for row in self.rows) for verdict in (WITHIN, LOOSE))
        parts = [f"{within} within tolerance"] if within or not loose else []
        return ", ".join([*parts, *([f"{loose} within loose bounds, not counted"] if loose else [])])


@dataclass(frozen=True)
class PublishedTable:
    """A table of the publication, with measured values next to the published ones."""

    title: str
    head: list[str]
    rows: list[tuple[str, list[tuple[str, str]]]]
    """Subject of each row, and its pairs of published and measured values, one for each column."""


@dataclass(frozen=True)
class Trust:
    """Evidence for and against the validity of the values."""

    sentence: str
    routers: list[dict[str, Any]]
    senders: list[dict[str, Any]]
    captures: list[dict[str, str]]
    steps: list[dict[str, str]]


@dataclass(frozen=True)
class RouterChange:
    """Changes of a run on a real router."""

    router: str
    sentence: str
    """State of the router after the run."""
    differences: list[tuple[str, str]]
    """Title, and removed and added lines: for each arm, and for the remaining differences."""


@dataclass(frozen=True)
class Page:
    """The whole report."""

    version: str
    title: str
    description: str
    when: str
    remark: str
    """Remark on the lab's values; empty if there is none."""
    found: str
    """Verb for the lab's values, such as measured."""
    article: str
    """Name of the publication; empty if there is none."""
    repetitions: int
    verdict: Verdict
    warnings: list[str]
    """Inactive parts of the run: they do not change the verdict, but it may cover less than it seems to."""
    answer: AnswerText | None
    """The answer to the title's question, if the experiment has one."""
    lead: Graph | None
    """Chart before all tables, if the answer has none."""
    predicted: bool
    """True if the model predicts any value; otherwise the column is left out."""
    figures: list[ValueGroup]
    reproduced: str
    """Sentence on reproduced and not reproduced published values; empty if there are none."""
    unexpected: list[PublishedValue]
    """Published values without a measured equivalent or an expectation, with the reason."""
    published_tables: list[PublishedTable]
    averages: list[AverageRow]
    pairs: list[PairSection]
    cells: CellTable | None
    notes: list[NoteText]
    topology: str
    """Drawing of the topology, SVG."""
    sweep: list[SweepSection]
    arms: list[ArmPage]
    fidelity: list[KernelFidelity]
    """Deviations of kernels from the IOS policies that they implement."""
    trust: Trust
    changes: list[RouterChange]
    """Changes on real routers; empty for virtual ones."""
    provenance: list[dict[str, str]]
    provenance_tables: list[dict[str, Any]]
    experiment_file: str

    @property
    def graphs(self) -> list[Graph]:
        """All graphs, of the sweep and of all arms."""
        of_sweep = [graph for section in self.sweep for graph in section.curves]
        of_answer = self.answer.graphs if self.answer else []
        of_arms = [graph for arm in self.arms for graph in arm.graphs]
        every = [*of_answer, *([self.lead] if self.lead else []), *of_sweep, *of_arms]
        return list({graph.id: graph for graph in every}.values())


TRACED = 8
"""Maximum number of cells in a trace."""
CELLS_IN_FULL = 24
"""Maximum number of cells with a section of graphs each; a run with more cells has a table of them."""


def build_page(folder: RunFolder, outcome: Outcome) -> Page:
    """Build the report of an analysed run."""
    run = outcome.run
    manifest, cells = run.manifest, run.cells
    experiment = manifest.experiment
    shown_tables = ("flows", "intervals", "classes", "packets_io", "queues", "metrics")
    found = {name: tables.read_table(folder, name) for name in shown_tables}
    arms = []
    traced = traced_cells(experiment.traces, manifest.cells)
    shown = [cell for cell in cells if len(cells) <= CELLS_IN_FULL or cell.name in traced]
    why: dict[str, str] = {}
    for reason in outcome.reasons:
        name, _, rest = reason.partition(": ")
        why.setdefault(name, rest)
    invalid = {cell.name for cell in cells if cell.name in why}
    drawn = [each for each in cells if each.name not in invalid] or cells
    answered = answer(experiment, found, invalid, drawn, outcome.comparison)
    measured = found["metrics"]
    sweep = sweep_sections(manifest, cells, measured) if experiment.graphs else []
    for cell in shown:
        name = f"{cell.name}: "
        problems = [reason.removeprefix(name) for reason in outcome.reasons if reason.startswith(name)]
        arms.append(arm_page(experiment.repetitions, cell, found, problems, traced.get(cell.name, "")))
    return Page(
        version=__version__,
        title=experiment.title,
        description=experiment.description.strip(),
        when=_run_sentence(manifest),
        remark=lab_kind(manifest.lab).remark,
        found=lab_kind(manifest.lab).value_label,
        article=_article(experiment),
        repetitions=experiment.repetitions,
        verdict=verdict(outcome, experiment),
        warnings=_first_reasons(outcome.warnings),
        answer=answered,
        lead=None
        if answered and (answered.graphs or answered.bars)
        else headline_graph(experiment, drawn, found, sweep),
        predicted=bool(outcome.comparison["predicted"].notna().any()),
        figures=value_groups(outcome.comparison, manifest, outcome.untrusted),
        reproduced=reproduction_sentence(outcome.comparison),
        unexpected=[each for each in manifest.published if each.remark],
        published_tables=published_tables(outcome.comparison, experiment),
        averages=average_rows(outcome.averages),
        pairs=pair_sections(experiment, outcome.pairs, manifest.cells),
        cells=cell_table(manifest, measured, why),
        notes=notes(experiment, measured, invalid, manifest.cells),
        topology=svg(experiment.topology, f"Topology of {experiment.title}"),
        sweep=sweep,
        arms=arms,
        fidelity=kernel_fidelity(cells, experiment),
        trust=_trust(run, outcome, folder.path),
        changes=router_changes(read_changes(folder), experiment),
        provenance=_provenance(folder, manifest),
        provenance_tables=_provenance_tables(manifest),
        experiment_file=run.experiment_text,
    )


def traced_cells(traces: Sequence[Trace], cells: Sequence[CellSummary]) -> dict[str, str]:
    """Return the cells of a sweep with graphs over time in the report: name, and title of the trace."""
    found: dict[str, str] = {}
    for trace in traces:
        chosen: dict[tuple[tuple[str, Scalar], ...], str] = {}
        for cell in cells:
            if cell.valid and cell.arm == trace.arm and matches(cell.values, trace.where):
                chosen.setdefault(tuple(cell.parameters.items()), cell.name)
        for name in list(chosen.values())[:TRACED]:
            found.setdefault(name, trace.title)
    return found


def _article(experiment: Experiment) -> str:
    article = None if experiment.compare is None else experiment.compare.article
    return "" if article is None else f"Published values: {article}."


def _run_sentence(manifest: Manifest) -> str:
    where = lab_kind(manifest.lab).title
    ran = f"Run on {text.moment(manifest.started)} in {where}; {_traffic(manifest)}."
    return " ".join(filter(None, (ran, text.part(manifest.overrides))))


def _traffic(manifest: Manifest) -> str:
    """Return the traffic time of the arms that were run."""
    experiment = manifest.experiment
    run = {cell.arm for cell in manifest.cells}
    lengths = sorted(
        {traffic_time(experiment, arm) for arm in experiment.arms if arm.name in run}, key=lambda each: each.ns
    )
    if len(lengths) > 1:
        return f"{lengths[0]} to {lengths[-1]} of traffic, by the arm"
    return f"{lengths[0] if lengths else experiment.duration} of traffic in each arm"


def verdict(outcome: Outcome, experiment: Experiment) -> Verdict:
    """Return the verdict: one sentence, and the values or reasons behind it."""
    total = outcome.expected
    if not outcome.valid:
        return Verdict(
            "invalid", "✕", "Invalid", "The values of this run must not be trusted.", _first_reasons(outcome.reasons)
        )
    if total == 0:
        why = "All expectations have loose bounds" if outcome.loose else "No expectations were set"
        return Verdict("informative", "–", "No verdict", f"{why}; the values are below.", [])
    late = [] if not outcome.not_measured else [_too_short(outcome, experiment)]
    if outcome.undecided:
        return _undecided_verdict(outcome, experiment, total)
    if outcome.outside == 0 and outcome.not_measured == total:
        return Verdict("informative", "–", "Not measured", "No expected value was measured.", late)
    if outcome.outside == 0:
        met = total - outcome.not_measured
        sentence = (
            f"All {met} expected values are within tolerance."
            if total > 1
            else "The expected value is within tolerance."
        )
        if late:
            sentence = f"{met} of {total} expected values are within tolerance, the others were not measured."
        if outcome.loose:
            sentence += f" {outcome.loose} more are within loose bounds and not counted."
        return Verdict("within", "✓", "Within tolerance", sentence, late)
    details = [*_failure_texts(outcome, experiment), *late]
    verb = "is" if outcome.outside == 1 else "are"
    return Verdict(
        "outside",
        "!",
        "Outside tolerance",
        f"{outcome.outside} of {total} expected values {verb} out of tolerance.",
        details,
    )


def _failure_texts(outcome: Outcome, experiment: Experiment) -> list[str]:
    """Return descriptions of values out of tolerance."""
    rows = outcome.comparison[outcome.comparison["verdict"] == OUTSIDE].to_dict("records")
    return [
        f"{arm_title(experiment, row['arm'])}{_cells(row['where'])}: {Reference.parse(row['metric']).description} is "
        f"{_measured_phrase(row)}, expected {text.bind_unit(row['tolerance'])}"
        for row in rows
    ] + failed_average_texts(outcome.averages)


def _undecided_verdict(outcome: Outcome, experiment: Experiment, total: int) -> Verdict:
    """Return the verdict of a run with expectations that have too few valid cells."""
    rows = outcome.comparison[outcome.comparison["verdict"] == UNDECIDED].to_dict("records")
    details = [
        f"{arm_title(experiment, row['arm'])}{_cells(row['where'])}: {Reference.parse(row['metric']).description} is "
        f"undecided: {row['n']} cells have a value, {row['excluded']} are invalid"
        for row in rows
    ]
    details += [
        f"{row['title']} {row['each']}".strip() + " is undecided"
        for row in outcome.averages.to_dict("records")
        if row["verdict"] == UNDECIDED
    ]
    sentence = (
        f"{outcome.undecided} of {total} expected values are undecided: most of their cells are invalid or lack the "
        "value."
    )
    return Verdict("invalid", "?", "Undecided", sentence, details + _failure_texts(outcome, experiment))


def _too_short(outcome: Outcome, experiment: Experiment) -> str:
    late = outcome.not_measured
    return (
        f"{late} expected value{'s were' if late > 1 else ' was'} not measured: {experiment.duration} of traffic is "
        "too short for them, and less than in the experiment file. With --strict they fail."
    )


def _cells(where: str) -> str:
    """Describe the cells of an arm."""
    return f" ({where})" if where else ""


def _measured_phrase(row: dict[Any, Any]) -> str:
    if math.isnan(row["measured"]):
        return f"not measured ({row['missing']})" if row["missing"] else "not measured"
    return text.value_text(row["measured"], row["unit"])


def published_tables(comparison: pd.DataFrame, experiment: Experiment) -> list[PublishedTable]:
    """Return the tables of the experiment; `–` stands for a value that was not published or not measured.

    Rows of cells that the run did not plan are left out, and so are tables without any other rows.
    """
    if experiment.compare is None:
        return []
    known = {(row["arm"], row["where"], row["metric"]): row for row in comparison.to_dict("records")}

    def column_text(column: ValueColumn, selection: str, kind: str) -> str:
        found = [known.get((column.arm, selection, metric), {}).get(kind, math.nan) for metric in column.metrics]
        return "/".join("–" if math.isnan(each) else f"{each:.4g}" for each in found)

    def rows(table: ValueTable) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        for value in table.values:
            cells = table.selection(value)
            if any((each.arm, cells, metric) in known for each in table.columns for metric in each.metrics):
                both = [
                    [column_text(each, cells, kind) for each in table.columns] for kind in ("published", "measured")
                ]
                yield str(value), list(zip(*both, strict=True))

    found = [
        PublishedTable(table.title, [table.by, *(column.title for column in table.columns)], list(rows(table)))
        for table in experiment.compare.tables
    ]
    return [table for table in found if table.rows]


def value_groups(comparison: pd.DataFrame, manifest: Manifest, untrusted: Collection[str] = ()) -> list[ValueGroup]:
    """Return the comparison by arm. Values of `untrusted` arms are marked `not valid`."""
    experiment = manifest.experiment
    sources = {(value.arm, value.metric, value.selection): value.origin for value in manifest.published}
    groups = []
    for arm in dict.fromkeys(comparison["arm"]):
        doubtful = bool(set(untrusted).intersection(arm.split("/")))
        rows = []
        for row in comparison[comparison["arm"] == arm].to_dict("records"):
            key = (row["arm"], row["metric"], row["where"])
            rows.append(
                ValueRow(
                    description=Reference.parse(row["metric"]).description,
                    metric=row["metric"],
                    where=row["where"],
                    reason=row["reason"],
                    predicted=text.value_text(row["predicted"], row["unit"]),
                    published=text.value_text(row["published"], row["unit"]),
                    source=sources.get(key, ""),
                    measured=text.value_text(row["measured"], row["unit"]),
                    interval=_interval(row),
                    difference=text.difference(row["measured"], row["published"], row["unit"]),
                    tolerance=text.bind_unit(row["tolerance"]),
                    verdict="not valid" if doubtful else row["verdict"],
                    reproduction=row["reproduction"],
                    explanation=row["explanation"],
                )
            )
        groups.append(ValueGroup(arm_title(experiment, arm), rows))
    return groups


def _interval(row: dict[Any, Any]) -> str:
    parts = []
    if not math.isnan(row["low"]):
        ends = f"{text.value_text(row['low'], row['unit'])} to {text.value_text(row['high'], row['unit'])}"
        parts.append(f"95 % interval {ends} over {row['n']} {row['over']}")
    if not math.isnan(row["effect"]):
        parts.append(f"{effect_size(row['effect'])} effect (Cliff's delta {row['effect']:.2f})")
    if row["excluded"]:
        parts.append(f"{row['excluded']} invalid, left out")
    if row["missing"]:
        parts.append(f"missing: {row['missing']}")
    return "; ".join(parts)


def _trust(run: OpenRun, outcome: Outcome, top: Path) -> Trust:
    routers: list[dict[str, Any]] = []
    senders: list[dict[str, Any]] = []
    captures: list[dict[str, str]] = []
    steps: list[dict[str, str]] = []
    every = run.cells
    few = len(every) <= CELLS_IN_FULL
    records = [(cell, cell.record()) for cell in every]
    if not few:
        records = sorted(records, key=lambda each: -_lateness(each[1]))[:CELLS_IN_FULL]
    for cell, record in records:
        name = cell_title(cell)
        for device, health in record.health.items():
            late = health.lateness_ns
            cells = [
                text.count(health.received),
                text.count(health.lost_input),
                *(text.lateness(value) for value in (late.p50, late.p99, late.p999, late.max)),
                text.count(health.late_over_budget),
                text.lateness(health.budget_ns),
            ]
            routers.append({"arm": name, "device": device, "cells": cells})
        paced = record.senders | {f"probe {probe}": sender for probe, sender in record.probe_senders.items()}
        for traffic, sender in paced.items():
            times = (sender.late_p99_ms, sender.late_max_ms)
            shown = [text.NONE if each is None else text.lateness(each * 1e6) for each in times]
            left_out = text.value_text(sender.shortfall, "fraction")
            senders.append({"arm": name, "traffic": traffic, "cells": [left_out, *shown]})
        for point, capture in record.captures.items():
            captures.append(
                {
                    "arm": name,
                    "point": point,
                    "received": text.count(capture.received),
                    "dropped": text.count(capture.dropped),
                    "file": cell.capture(point).relative_to(top).as_posix(),
                }
            )
        for step in record.steps if few else ():
            took = f"{(step.ended - step.started).total_seconds():.2f} s" if step.ended else "not finished"
            steps.append(
                {"arm": name, "name": step.name, "started": step.started.strftime("%H:%M:%S.%f")[:-3], "took": took}
            )
    if outcome.valid:
        sentence = lab_kind(run.manifest.lab).no_lateness_text
        if routers:
            sentence = (
                "Yes: every cell was completed, no router lost a frame, and at least 99 % of the packets left within "
                "the budget."
            )
    else:
        sentence = "No: " + "; ".join(_first_reasons(outcome.reasons)) + "."
    if not few:
        listed = f" Only the {CELLS_IN_FULL} of {len(every)} cells with the latest packets are listed."
        sentence += listed if routers else f" Only the first {CELLS_IN_FULL} of {len(every)} cells are listed."
    return Trust(sentence, routers, senders, captures, steps)


def router_changes(changes: Mapping[str, RouterChanges], experiment: Experiment) -> list[RouterChange]:
    """Return the changes on each router, arm by arm, and the differences left after the run."""
    found = []
    for router, each in changes.items():
        differences = [(arm_title(experiment, arm), "\n".join(lines)) for arm, lines in each.arms.items()]
        if each.left is None:
            sentence = f"It may differ from the state before the run: {each.why}"
        elif each.left:
            sentence = "All changes of the run were rolled back; these lines differ from the state before it:"
            differences.insert(0, ("After the run", "\n".join(each.left)))
        else:
            sentence = "It is in the state before the run."
        found.append(RouterChange(router, sentence, differences))
    return found


REASONS_SHOWN = 12


def _first_reasons(reasons: Sequence[str]) -> list[str]:
    """Return the first reasons, and the number of the others."""
    more = len(reasons) - REASONS_SHOWN
    return [*reasons[:REASONS_SHOWN], *([f"and {more} more"] if more > 0 else [])]


def _lateness(record: CellRecord) -> float:
    """Describe the lateness of the worst router."""
    return max((health.behind_ns for health in record.health.values()), default=0)


def _provenance(folder: RunFolder, manifest: Manifest) -> list[dict[str, str]]:
    machine = manifest.machine
    facts: list[tuple[str, object]] = [
        ("Run", folder.path.name),
        ("Experiment", manifest.experiment.name),
        ("Lab", manifest.lab),
        ("Started", text.moment(manifest.started)),
        ("Ended", text.moment(manifest.ended)),
        ("Changed on the command line", ", ".join(manifest.overrides) or "nothing"),
        (
            "qoslab",
            manifest.versions.get("qoslab", __version__) + (f", commit {manifest.commit}" if manifest.commit else ""),
        ),
        ("Kernel", machine.get("kernel")),
        ("Processor", _processor(machine)),
        ("Seeds", ", ".join(f"{name} {seed}" for name, seed in manifest.seeds.items())),
    ]
    return [{"name": name, "value": str(value)} for name, value in facts if value]


def _processor(machine: dict[str, Any]) -> str:
    parts = [machine.get("cpu"), f"{machine['cpus']} cores" if machine.get("cpus") else None]
    return ", ".join(str(part) for part in parts if part)


def _provenance_tables(manifest: Manifest) -> list[dict[str, Any]]:
    def table(title: str, rows: Iterable[tuple[str, object]]) -> dict[str, Any]:
        return {"title": title, "rows": [(name, str(value)) for name, value in rows]}

    found = [
        table("Versions of packages and tools", manifest.versions.items()),
        table("Machine", manifest.machine.items()),
        table("SHA-256 of the rendered configurations", manifest.configurations.items()),
        table(
            "Kernel settings of the nodes",
            ((f"{node} {name}", value) for node, each in manifest.sysctls.items() for name, value in each.items()),
        ),
        table(
            "Offloads of the interfaces",
            (
                (port, ", ".join(f"{name} {'on' if on else 'off'}" for name, on in each.items()))
                for port, each in manifest.offloads.items()
            ),
        ),
    ]
    return [each for each in found if each["rows"]]
