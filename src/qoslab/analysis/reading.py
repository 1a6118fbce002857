"""What the files of cells say, and the metrics of each: a cell at a time, also while others are still running."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from qoslab.analysis import raw
from qoslab.analysis.classes import Line, Lines
from qoslab.analysis.conservation import UNCOUNTED, HostCount, disagreements
from qoslab.analysis.metrics import Circumstances, metrics, of_all_cells
from qoslab.analysis.observed import COMMAND, observed_class_rows
from qoslab.analysis.packets import ALL, bin_packets, shifted
from qoslab.analysis.paths import paths_of
from qoslab.analysis.show_readings import instants, reading_rows
from qoslab.capture import CaptureError
from qoslab.capture.pcapng import read_packets
from qoslab.errors import QoslabError
from qoslab.labs import lab_kind
from qoslab.model.comparison import PublishedFigure
from qoslab.model.experiment import Experiment
from qoslab.model.framing import COUNTED_HEADER, extra_bytes
from qoslab.model.metrics import Reference
from qoslab.model.moments import DURING, traffic_time
from qoslab.platforms import routers_of
from qoslab.results import Cell, CellRecord, FileSeal, tables
from qoslab.traffic import TrafficError

STRAY_S = 600.0
"""How long before a cell's traffic, and after it, something may be stamped that belongs to it. Graphs have a value for
each tenth of a second from the first to the last, so that a stamp of another year would take all memory."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TABLES = ("flows", "intervals", "hosts", "probes", "classes", "interfaces", "queues", "health")
"""Those of rows that are read from a cell's files."""


@dataclass(frozen=True)
class Reading:
    """What one cell's files say."""

    tables: dict[str, pd.DataFrame]
    """Its rows of each table, `metrics` among them."""
    problems: tuple[str, ...]
    """Why the cell is invalid; empty where it is valid."""


@dataclass(frozen=True)
class Gathered:
    """What some cells came to."""

    tables: dict[str, pd.DataFrame]
    problems: dict[str, tuple[str, ...]]
    """Why a cell is invalid, by its name; those that are valid are not in it."""


class Readings:
    """The cells that were read so far. Not safe for threads by itself.

    What was read of a cell counts as long as its record has the same seal, which has those of all its files: whether
    the files are still what was written is for whoever asks (`qoslab.results.RunFolder.cells`).
    """

    def __init__(self, wanted: Iterable[Reference], *, captures: bool = True) -> None:
        """`wanted` are the metrics that are named anywhere; without `captures` these are not read."""
        self._wanted = tuple(wanted)
        self._captures = captures
        self._known: dict[Path, tuple[FileSeal | None, Reading]] = {}
        self._experiments: dict[bytes, Experiment] = {}

    def of(self, cell: Cell) -> Reading:
        """What the cell's files say; they are read where that was not done before."""
        seal = cell.record_seal()
        known = self._known.get(cell.path)
        if known is None or known[0] != seal:
            self._known[cell.path] = known = (seal, self._read(cell))
        return known[1]

    def gather(self, cells: Iterable[Cell]) -> Gathered:
        """The tables of several cells, in their order."""
        found = {cell.name: self.of(cell) for cell in cells}
        parts = [each.tables for each in found.values()]
        gathered = {name: _joined(name, [part[name] for part in parts]) for name in TABLES}
        packets = [part["packets_io"] for part in parts] if self._captures else []
        gathered["packets_io"] = _joined("packets_io", packets)
        gathered["metrics"] = of_all_cells([part["metrics"] for part in parts])
        return Gathered(gathered, {name: each.problems for name, each in found.items() if each.problems})

    def _read(self, cell: Cell) -> Reading:
        record = cell.record()
        own = self._experiment(cell)
        keys: dict[str, object] = {"arm": cell.arm, "repetition": cell.repetition, "cell": cell.name}
        rows: dict[str, list[dict[str, object]]] = {name: [] for name in TABLES}
        problems = _collect(cell, record, own, lambda name, row: rows[name].append(keys | row))
        read = {name: tables.frame(name, content) for name, content in rows.items()}
        if self._captures:
            table, unreadable = _packets(cell, record, own)
            problems += unreadable
            read["packets_io"] = table.assign(arm=cell.arm, repetition=cell.repetition, cell=cell.name)
        problems += _disagreements(cell, own, read)
        if not record.valid:
            # What could not be read follows from what went wrong in the run.
            problems = list(record.reasons) or ["its record gives no reason"]
        name = cell.name
        around = Circumstances({name: own.duration.seconds}, {name: _lines(own)}, {name: paths_of(own)})
        read["metrics"] = metrics(read, around, self._wanted)
        return Reading(read, tuple(dict.fromkeys(problems)))

    def _experiment(self, cell: Cell) -> Experiment:
        """The experiment that the cell is. Those of many cells are alike, and reading each is the dearest part of a
        small cell."""
        content = cell.experiment_file.read_bytes() if cell.experiment_file.exists() else b""
        if content not in self._experiments:
            self._experiments[content] = cell.experiment()
        return self._experiments[content]


def _joined(name: str, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return tables.conform(name, pd.concat(parts, ignore_index=True)) if parts else tables.frame(name, [])


def references(experiment: Experiment, published: Iterable[PublishedFigure]) -> list[Reference]:
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
    origin_ns = 0 if record.traffic_started is None else _ns(record.traffic_started)
    counted, lines = cell.devices_with_counters(), _lines(experiment)
    for device in counted:
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
        if entry.command.startswith(COMMAND) and entry.device not in counted:
            parsed = cell.parsed(entry.device, entry.moment, entry.command)
            times: raw.Row = {"time_s": moments[entry.moment]}
            if entry.before is not None and entry.after is not None:
                times = instants(_ns(entry.before), _ns(entry.after), origin_ns)
            for row in observed_class_rows(entry.device, parsed or {}, 0.0):
                add("classes", row | times)
    for device in cell.devices_with_readings():
        try:
            for name, row in reading_rows(device, cell.read_readings(device), origin_ns, lines):
                add(name, row)
        except (LookupError, TypeError, ValueError, AttributeError):
            problems.append(f"the readings of {device} are damaged")
    for device, health in record.health.items():
        add("health", raw.health_row(device, health))
    return problems


def _disagreements(cell: Cell, experiment: Experiment, read: Mapping[str, pd.DataFrame]) -> list[str]:
    """Who of hosts and routers does not count the same."""
    try:
        cards = cards_of(cell)
    except (LookupError, TypeError, ValueError, RecursionError):
        return ["what the interfaces of hosts counted is damaged"]
    uncounted = _uncounted(cell, experiment)
    return list(disagreements(experiment.topology, cards, read["interfaces"], read["classes"], uncounted))


def cards_of(cell: Cell) -> dict[str, dict[str, HostCount]]:
    """What hosts counted over the traffic time, by interface."""
    found = {}
    for host in cell.hosts_with_cards():
        counted = json.loads(cell.text(cell.host_cards(host)))
        before, after = counted["before"], counted["after"]
        found[host] = {
            name: HostCount(
                *(each[key] - before[name][key] for key in ("sent_packets", "received_packets", "sent_bytes"))
            )
            for name, each in after.items()
        }
    return found


def _uncounted(cell: Cell, experiment: Experiment) -> list[str]:
    """Routers that drop what nothing of what was read counts, by their configurations."""
    found, told = [], cell.devices_with_counters()
    for router in routers_of(experiment.topology):
        files = (cell.configuration(f"{router}.{each}") for each in ("ios", "before.ios", "running.ios"))
        text = "".join(cell.text(file) for file in files if file.exists())
        words = UNCOUNTED if router not in told else ("rate-limit",)
        if any(word in text for word in words):
            found.append(router)
    return found


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
            origin = None if record.traffic_started is None else _ns(record.traffic_started)
            table = bin_packets(shifted(read_packets(file), record.host_clocks.get(point.node)), origin)
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


def _ns(moment: datetime) -> int:
    """Nanoseconds since 1970, exactly."""
    gone = moment - _EPOCH
    return (gone.days * 86_400 + gone.seconds) * 10**9 + gone.microseconds * 1000
