"""Run folder → its tables, metrics and comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pandas as pd

from qoslab.analysis import compare as comparing
from qoslab.analysis import raw
from qoslab.analysis.averages import averages_table, pairs_table
from qoslab.analysis.classes import Line, Lines
from qoslab.analysis.metrics import Circumstances, metrics
from qoslab.analysis.observed import COMMAND, observed_class_rows
from qoslab.analysis.packets import ALL, bin_packets
from qoslab.analysis.paths import Paths, paths_of
from qoslab.analysis.statistics import estimate
from qoslab.analysis.verdicts import OUTSIDE
from qoslab.capture import CaptureError
from qoslab.capture.pcapng import read_packets
from qoslab.errors import ExitStatus, QoslabError
from qoslab.labs import lab_kind
from qoslab.model.comparison import PublishedFigure
from qoslab.model.experiment import Enough, Experiment
from qoslab.model.framing import COUNTED_HEADER, extra_bytes
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.metrics import Reference
from qoslab.model.moments import DURING, traffic_time
from qoslab.results import Cell, CellRecord, CellSummary, RunFolder, tables
from qoslab.traffic import TrafficError

STRAY_S = 600.0
"""How long before a cell's traffic, and after it, something may be stamped that belongs to it. Graphs have a value for
each tenth of a second from the first to the last, so that a stamp of another year would take all memory."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    valid: bool
    reasons: tuple[str, ...]
    """Why it is invalid, with the cell's name."""
    untrusted: frozenset[str]
    """Arms without a valid cell: their figures are shown and decide nothing."""
    comparison: pd.DataFrame
    """See `qoslab.analysis.compare.compare`."""
    averages: pd.DataFrame
    """See `qoslab.analysis.averages.averages_table`."""
    pairs: pd.DataFrame
    """See `qoslab.analysis.averages.pairs_table`."""
    lab: str = DEFAULT_LAB
    """The kind of lab that the figures come from."""

    @property
    def outside(self) -> int:
        """How many expectations and averages are not met."""
        return sum(int((table["verdict"] == OUTSIDE).sum()) for table in (self.comparison, self.averages))

    @property
    def exit_status(self) -> ExitStatus:
        """Of `qoslab run`."""
        if not self.valid:
            return ExitStatus.RUN_INVALID
        return ExitStatus.OUTSIDE if self.outside else ExitStatus.WITHIN


def analyse(folder: RunFolder) -> Outcome:
    """Compute the tables, `comparison.csv` and `comparison.json` of a run from its raw results, and write them.

    Cells that are invalid keep their rows in the tables. The comparison takes them only for arms that have no valid
    one, as figures that decide nothing. Of cells whose files are not what was written nothing is taken. Arms that the
    run was told to leave out are not compared.
    """
    manifest = folder.manifest()
    experiment = manifest.experiment
    measured = folder.cells()
    gathered = _gather(measured, _references(experiment, manifest.published))
    found = gathered.tables
    invalid = set(gathered.problems)
    reasons = [f"{name}: {problem}" for name, each in gathered.problems.items() for problem in each]
    recorded = {cell.name for cell in measured}
    damaged = folder.damaged()
    for summary in manifest.cells:
        if summary.name not in recorded and not summary.spared:
            why = damaged.get(summary.name) or summary.reasons or ("it was not run to the end",)
            reasons += [f"{summary.name}: {reason}" for reason in why]
    if not manifest.cells:
        reasons.append("no cell was run")

    parameters = {summary.name: summary.values for summary in manifest.cells}
    for name, table in found.items():
        found[name] = tables.with_parameters(table, parameters)
        tables.write_table(folder, name, found[name])

    trusted = recorded - invalid
    arms = {summary.arm for summary in manifest.cells}
    untrusted = frozenset(arms - {summary.arm for summary in manifest.cells if summary.name in trusted})
    # What its own record says may be overruled by outputs that cannot be read.
    cells = [each.model_copy(update={"valid": each.valid and each.name in trusted}) for each in manifest.cells]
    judged = judge(experiment, manifest.published, found["metrics"], cells, manifest.lab)
    reasons += comparing.impossible(judged.comparison)
    folder.replace("comparison.csv", comparing.to_csv(judged.comparison))
    folder.replace("comparison.json", comparing.to_json(judged.comparison))
    for name, table in (("averages", judged.averages), ("pairs", judged.pairs)):
        tables.write_table(folder, name, table)
    return Outcome(
        not reasons, tuple(reasons), untrusted, judged.comparison, judged.averages, judged.pairs, manifest.lab
    )


@dataclass(frozen=True)
class Judged:
    """What is said of the metrics of a run's cells; see `Outcome`."""

    comparison: pd.DataFrame
    averages: pd.DataFrame
    pairs: pd.DataFrame


def judge(
    experiment: Experiment,
    published: Sequence[PublishedFigure],
    metrics: pd.DataFrame,
    cells: Sequence[CellSummary],
    lab: str = DEFAULT_LAB,
) -> Judged:
    """Compare the metrics of cells, of which each says whether it is valid, with what was published and is expected."""
    wanted = experiment.compare
    planned = comparing.Planned(cells)
    arms = {cell.arm for cell in cells}
    trusted = [cell.name for cell in cells if cell.valid]
    comparison = comparing.compare(
        (wanted.article or "") if wanted else "",
        metrics.assign(valid=metrics["cell"].isin(trusted)),
        [each for each in published if each.metric and planned.has(each.arm.split("/"), each.where)],
        planned.expected(wanted, experiment.duration) if wanted else (),
        arms=[arm.name for arm in experiment.arms],
        show={arm: names for arm, names in wanted.show.items() if arm in arms} if wanted else {},
        lab=lab,
    )
    averages = averages_table(wanted.averages if wanted else (), metrics, cells)
    return Judged(comparison, averages, pairs_table(wanted.pairs if wanted else (), metrics, cells))


def metrics_of_cells(
    experiment: Experiment, published: Iterable[PublishedFigure], cells: Sequence[Cell]
) -> tuple[pd.DataFrame, dict[str, tuple[str, ...]]]:
    """Every metric that the comparison names of some cells, and why which of them are invalid."""
    found = _gather(cells, _references(experiment, published), captures=False)
    parameters = {cell.name: cell.parameters for cell in cells}
    return tables.with_parameters(found.tables["metrics"], parameters), found.problems


@dataclass(frozen=True)
class _Gathered:
    """What some cells came to."""

    tables: dict[str, pd.DataFrame]
    problems: dict[str, tuple[str, ...]]
    """Why a cell is invalid, by its name; those that are valid are not in it."""


def _gather(cells: Iterable[Cell], references: Iterable[Reference], *, captures: bool = True) -> _Gathered:
    """Read cells into tables, and compute their metrics."""
    rows: dict[str, list[dict[str, object]]] = {
        name: [] for name in ("flows", "intervals", "hosts", "probes", "classes", "interfaces", "queues", "health")
    }
    packets: list[pd.DataFrame] = []
    found: dict[str, tuple[str, ...]] = {}
    experiments = _Experiments()
    seconds: dict[str, float] = {}
    lines: dict[str, Lines] = {}
    paths: dict[str, Paths] = {}
    for cell in cells:
        record = cell.record()
        own = experiments.of(cell)
        seconds[cell.name] = own.duration.seconds
        lines[cell.name] = _lines(own)
        paths[cell.name] = paths_of(own)
        keys: dict[str, object] = {"arm": cell.arm, "repetition": cell.repetition, "cell": cell.name}
        problems = _collect(cell, record, own, lambda name, row, keys=keys: rows[name].append(keys | row))  # type: ignore[misc]
        if captures:
            table, unreadable = _packets(cell, record, own)
            problems += unreadable
            packets.append(table.assign(arm=cell.arm, repetition=cell.repetition, cell=cell.name))
        if not record.valid:
            # What could not be read follows from what went wrong in the run.
            problems = list(record.reasons) or ["its record gives no reason"]
        if problems:
            found[cell.name] = tuple(dict.fromkeys(problems))
    read = {name: tables.frame(name, content) for name, content in rows.items()}
    read["packets_io"] = (
        tables.conform("packets_io", pd.concat(packets, ignore_index=True))
        if packets
        else tables.frame("packets_io", [])
    )
    read["metrics"] = metrics(read, Circumstances(seconds, lines, paths), references)
    return _Gathered(read, found)


def enough(wanted: Enough, cells: Sequence[Cell]) -> str:
    """Why a cell needs no more repetitions than these; empty where it does.

    Repetitions that are not valid do not count.
    """
    valid = [cell for cell in cells if cell.record().valid]
    if len(valid) < wanted.at_least:
        return ""
    found = _gather(valid, [Reference.parse(wanted.metric)], captures=False)
    rows = found.tables["metrics"]
    good = (rows["metric"] == wanted.metric) & ~rows["cell"].isin(list(found.problems)) & rows["value"].notna()
    values = rows[good]["value"].astype(float).to_numpy()
    if len(values) < wanted.at_least:
        return ""
    width = estimate(values).half_width
    if not width <= wanted.interval.fraction:
        return ""
    return (
        f"the interval of {wanted.metric} is ±{width:.1%} after {len(values)} repetitions, which is within "
        f"{wanted.interval}"
    )


def _references(experiment: Experiment, published: Iterable[PublishedFigure]) -> list[Reference]:
    """Every metric that the comparison and the notes name."""
    names = [figure.metric for figure in published if figure.metric]
    if experiment.compare is not None:
        names += [expectation.metric for expectation in experiment.compare.expectations]
        names += [name for shown in experiment.compare.show.values() for name in shown]
        names += [average.metric for average in experiment.compare.averages]
        names += [pair.metric for pair in experiment.compare.pairs]
    names += [graph.metric for graph in experiment.graphs]
    names += [figure.metric for note in experiment.notes for figure in note.figures]
    return [Reference.parse(name) for name in dict.fromkeys(names)]


class _Experiments:
    """The experiments of cells. Those of many cells are alike, and reading each is the dearest part of a small cell."""

    def __init__(self) -> None:
        self._known: dict[bytes, Experiment] = {}

    def of(self, cell: Cell) -> Experiment:
        """The experiment that the cell is."""
        content = cell.experiment_file.read_bytes() if cell.experiment_file.exists() else b""
        if content not in self._known:
            self._known[content] = cell.experiment()
        return self._known[content]


def _collect(cell: Cell, record: CellRecord, experiment: Experiment, add: Callable[[str, raw.Row], None]) -> list[str]:
    """Add the rows of a cell; what could not be read is returned."""
    problems: list[str] = []
    problems += _collect_flows(cell, record, experiment, add)
    arm = experiment.arm(cell.arm)
    outputs = lab_kind(record.lab)
    senders = {flow.source for flow in experiment.flows_of(arm) if flow.protocol == "tcp"}
    try:
        for row in outputs.hosts(cell, senders):
            add("hosts", row)
    except QoslabError as error:
        problems.append(error.message)
    for probe in experiment.probes:
        file = cell.path / "probes" / f"{probe.name}.json"
        if not file.exists():
            problems.append(f'probe "{probe.name}" left no figures')
            continue
        try:
            row = raw.probe_row(probe.name, json.loads(cell.text(file)))
        except (ValueError, KeyError, TypeError, RecursionError):
            problems.append(f'the figures of probe "{probe.name}" are damaged')
            continue
        add("probes", row)
    origin_ns = _ns(record.traffic_started) or 0
    for device in cell.devices_with_counters():
        replies = list(cell.counter_replies(device))
        for row in raw.class_rows(device, replies, origin_ns):
            add("classes", row)
        for row in raw.interface_rows(device, replies, origin_ns):
            add("interfaces", row)
        for row in raw.queue_rows(device, replies, origin_ns):
            add("queues", row)
    seconds = experiment.duration.seconds
    moments = {"before": -1.0, "during": DURING * seconds, "after": seconds + 1.0}
    for entry in record.observed:
        if entry.command.startswith(COMMAND) and entry.device not in cell.devices_with_counters():
            parsed = cell.parsed(entry.device, entry.moment, entry.command)
            for row in observed_class_rows(entry.device, parsed or {}, moments[entry.moment]):
                add("classes", row)
    for device, health in record.health.items():
        add("health", raw.health_row(device, health))
    return problems


def _collect_flows(
    cell: Cell, record: CellRecord, experiment: Experiment, add: Callable[[str, raw.Row], None]
) -> list[str]:
    """Add the rows of a cell's traffic; what could not be read is returned."""
    problems: list[str] = []
    arm = experiment.arm(cell.arm)
    outputs = lab_kind(record.lab)
    for flow in experiment.flows_of(arm):
        try:
            result = outputs.flow(cell, flow, experiment.duration_of(arm, flow))
        except TrafficError as error:
            problems.append(error.message)
            continue
        if result is None:
            problems.append(f'traffic "{flow.name}" left no output')
            continue
        offset_s = flow.start_after.seconds
        for row in raw.flow_rows(flow.name, result, offset_s):
            add("flows", row)
        latest = experiment.duration_of(arm, flow).seconds + STRAY_S
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


def _lines(experiment: Experiment) -> Lines:
    return {
        (end.node, end.interface): Line(float(link.rate.bps), extra_bytes(link.framing), COUNTED_HEADER[link.framing])
        for link in experiment.topology.links
        for end in link.ends
    }


def _packets(cell: Cell, record: CellRecord, experiment: Experiment) -> tuple[pd.DataFrame, list[str]]:
    parts: list[pd.DataFrame] = []
    problems: list[str] = []
    latest = traffic_time(experiment, experiment.arm(cell.arm)).seconds + STRAY_S
    for point in experiment.captures:
        file = cell.capture(point.name)
        try:
            table = bin_packets(read_packets(file), _ns(record.traffic_started))
        except CaptureError as error:
            problems.append(error.message)
            continue
        stray = ~table["time_s"].between(-STRAY_S, latest)
        if stray.any():
            times = table[stray]["time_s"]
            problems.append(
                f"capture {point.name}: {int(table[stray & (table['flow'] == ALL)]['packets'].sum())} packets are "
                f"stamped {times.min():g} to {times.max():g} s from the start of the traffic, expected -{STRAY_S:g} to "
                f"{latest:g} s"
            )
        parts.append(table[~stray].assign(capture=point.name))
    columns = [name for name in tables.columns("packets_io") if name not in ("arm", "repetition", "cell")]
    return (pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)), problems


def _ns(moment: datetime | None) -> int | None:
    """Nanoseconds since 1970, exactly."""
    if moment is None:
        return None
    gone = moment - _EPOCH
    return (gone.days * 86_400 + gone.seconds) * 10**9 + gone.microseconds * 1000
