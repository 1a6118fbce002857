"""Report sections for each arm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import pandas as pd

from qoslab.analysis import charts, series
from qoslab.analysis.classes import class_drops
from qoslab.analysis.packets import ALL
from qoslab.analysis.queues import busy_ports, queue_counts, queue_rates
from qoslab.lab_kinds import lab_kind
from qoslab.model.experiment import Arm, Experiment
from qoslab.model.instants import traffic_time
from qoslab.model.matrix import parameters_text
from qoslab.report import text
from qoslab.results import CellFiles, CellRecord

_CLASS = ["device", "interface", "direction", "policy", "class"]
_LONG_S = 5
"""Traffic time in seconds from which graphs start with bins of half a second: with bins of 0.1 s, bursts
hide a trend.
"""


@dataclass(frozen=True)
class Graph:
    """A Plotly chart and its texts."""

    id: str
    title: str
    summary: str
    unit: str
    figure: charts.Figure
    binned: int | None = None
    """Number of 0.1 s bins joined at first; None if the graph has no bins."""


@dataclass(frozen=True)
class Stream:
    """A row of the stream table."""

    name: str
    port: str
    goodput: str
    share: float
    """Percent of the fastest stream."""
    colour: str
    received: str
    time: str
    loss: str


@dataclass(frozen=True)
class Total:
    """Last row of the stream table."""

    label: str
    goodput: str
    remark: str


@dataclass(frozen=True)
class Part:
    """A collapsible text."""

    title: str
    text: str
    open: bool


@dataclass(frozen=True)
class Observed:
    """Output of a show command at each of its times."""

    device: str
    command: str
    moments: list[Part]


@dataclass(frozen=True)
class Drops:
    """Packets of a class: offered, sent, dropped by reason, and queued."""

    name: str
    cells: list[str]


@dataclass(frozen=True)
class ArmPage:
    """Section of one cell of an arm."""

    anchor: str
    title: str
    subtitle: str
    settings: str
    problems: list[str]
    warnings: list[str]
    io_graphs: list[Graph] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    total: Total | None = None
    loss_title: str = "Retransmitted"
    class_graphs: list[Graph] = field(default_factory=list)
    fates: list[str] = field(default_factory=list)
    """Headings of the columns of `drops`."""
    drops: list[Drops] = field(default_factory=list)
    queues: list[Drops] = field(default_factory=list)
    """Frames enqueued and dropped, and their share, by egress queue and threshold of a switch."""
    observations: list[Observed] = field(default_factory=list)
    configurations: list[Part] = field(default_factory=list)

    @property
    def graphs(self) -> list[Graph]:
        """All graphs."""
        return [*self.io_graphs, *self.class_graphs]


def arm_title(experiment: Experiment, arm: str) -> str:
    """Return an arm's title; for `A/B` both titles."""
    titles = {each.name: each.title or each.name for each in experiment.arms}
    return " over ".join(titles.get(name, name) for name in arm.split("/"))


def cell_title(cell: CellFiles) -> str:
    """Return a cell's title in a table of cells."""
    parts = [cell.arm, parameters_text(cell.parameters)]
    return ", ".join(filter(None, [*parts, f"repetition {cell.repetition}" if cell.repetition > 1 else ""]))


def cell_anchor(cell: CellFiles) -> str:
    """Return the cell's anchor within the page."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", cell.name.removesuffix("/1"))


def arm_page(
    repetitions: int, cell: CellFiles, found: dict[str, pd.DataFrame], problems: list[str], title: str = ""
) -> ArmPage:
    """Return the section of a cell from the run's tables (`found`) and its raw files; `title` replaces the arm's title.

    `repetitions` is the number of repetitions that the experiment asks for.
    """
    experiment = cell.experiment()
    arm = experiment.arm(cell.arm)
    record = cell.record()
    anchor = cell_anchor(cell)
    own = {name: table[table["cell"] == cell.name] for name, table in found.items()}
    streams, total = _streams(own["flows"], own["metrics"])
    fates, drops = _drops(own["classes"])
    udp = bool((own["flows"]["protocol"] == "udp").any())
    return ArmPage(
        anchor=anchor,
        title=title or arm.title or arm.name,
        subtitle=", ".join(
            filter(None, [parameters_text(cell.parameters), f"repetition {cell.repetition}" if repetitions > 1 else ""])
        ),
        settings=_settings(experiment, arm, record.lab),
        problems=problems,
        warnings=list(record.warnings),
        io_graphs=_io_graphs(experiment, arm, own, record, anchor),
        streams=streams,
        total=total,
        loss_title="Lost" if udp else "Retransmitted",
        class_graphs=[*_class_graphs(own["classes"], anchor), *_queue_graphs(own["queues"], anchor)],
        fates=fates,
        drops=drops,
        queues=_queues(own["queues"]),
        observations=_observations(cell, record),
        configurations=_configurations(cell, record.lab),
    )


def _settings(experiment: Experiment, arm: Arm, lab: str) -> str:
    profile = experiment.arm_tcp_profile(arm)
    words = []
    for flow in experiment.arm_flows(arm):
        parts = [f"{flow.streams} {'stream' if flow.streams == 1 else 'streams'} of {flow.protocol.upper()}"]
        if flow.rate is not None:
            parts.append(f"at {flow.rate} each" if flow.streams > 1 else f"at {flow.rate}")
        if flow.delay is not None:
            parts.append(f"every {flow.delay}")
        if flow.size is not None:
            parts.append(f"of {flow.size}")
        if flow.random:
            parts.append(f"with random {' and '.join(flow.random)}")
        if flow.window is not None:
            parts.append(f"with socket buffers of {flow.window}")
        if flow.dscp is not None:
            parts.append(f"with DSCP {flow.dscp}")
        duration = experiment.flow_duration(arm, flow)
        by = lab_kind(lab).traffic_source_text(flow)
        words.append(f"{flow.name}: {' '.join(parts)}, {flow.source} to {flow.destination}, {duration}, {by}")
    tcp = (
        f"TCP {profile.congestion_control}, SACK {'on' if profile.sack else 'off'}, "
        f"timestamps {'on' if profile.timestamps else 'off'}, RACK {'on' if profile.recovery & 1 else 'off'}, "
        f"F-RTO {'on' if profile.frto else 'off'}, "
        f"ECN {'on' if profile.ecn else 'off'}, "
        f"initial window {profile.initcwnd} segments, minimum RTO {profile.rto_min}"
    )
    return ". ".join([*words, tcp]) + "."


def _io_graphs(
    experiment: Experiment, arm: Arm, own: dict[str, pd.DataFrame], record: CellRecord, anchor: str
) -> list[Graph]:
    graphs = []
    traffic_s = traffic_time(experiment, arm).seconds
    for point in experiment.captures:
        packets = own["packets_io"][own["packets_io"]["capture"] == point.name]
        table = series.flow_throughput(packets, own["flows"], record.flows)
        if table.empty:
            continue
        means = series.means_until(table, traffic_s)
        mean = means.pop(ALL)
        flows = [f"{name} {text.rate(each)}" for name, each in means.items()]
        if len(flows) > 8:
            flows = [f"{len(flows)} flows"]
        _, unit = charts.axis_rate_unit(float(table[ALL].max()))
        graphs.append(
            Graph(
                f"io-{anchor}-{point.name}",
                f"Throughput at {point.node} {point.interface}, by flow",
                f"Mean over the traffic time of {traffic_s:g} s: all flows {text.rate(mean)}"
                + (f"; {', '.join(flows)}" if flows else "")
                + ". Bits of whole Ethernet frames, with headers and retransmissions but without FCS.",
                unit,
                charts.io_graph(table),
                binned=5 if traffic_s >= _LONG_S else 1,
            )
        )
    if not graphs and not own["intervals"].empty:
        graphs += _reported_graph(own, anchor)
    return graphs


def _reported_graph(own: dict[str, pd.DataFrame], anchor: str) -> Iterator[Graph]:
    """Return a graph of reported throughput, for cells without a capture; none if no flow lasted."""
    curves = series.reported_throughput(own["intervals"], own["flows"])
    if ALL not in curves:
        return
    every = curves[ALL]
    greatest = float(every.max())
    yield Graph(
        f"io-{anchor}-reported",
        "Throughput reported by the receivers",
        f"Payload of all flows, mean from first start to last end: {text.rate(float(every.mean()))}; individual "
        f"values {text.rate(float(every.min()))} to {text.rate(greatest)}.",
        charts.axis_rate_unit(greatest)[1],
        charts.io_graph(curves, "payload"),
    )


def _streams(flows: pd.DataFrame, metrics: pd.DataFrame) -> tuple[list[Stream], Total | None]:
    if flows.empty:
        return [], None
    labels = series.stream_labels(flows)
    fastest = float(flows["goodput_bps"].max())
    rows = []
    listed = [row for _, table in flows.groupby("traffic", sort=False) for row in _ranked_stream_rows(table)]
    for number, (rank, row) in enumerate(listed):
        loss = text.NONE
        if row["protocol"] == "udp":
            if not pd.isna(row["lost"]) and row["datagrams"]:
                loss = f"{text.count(int(row['lost']))} of {text.count(int(row['datagrams']))}"
        elif not pd.isna(row["retransmits"]):
            loss = text.count(int(row["retransmits"]))
        rows.append(
            Stream(
                name=labels[str(row["traffic"]), int(row["stream"])] + rank,
                port=text.NONE if pd.isna(row["local_port"]) else str(int(row["local_port"])),
                goodput=text.rate(row["goodput_bps"]),
                share=round(100 * row["goodput_bps"] / fastest, 1) if fastest else 0,
                colour=charts.COLOURS[number % len(charts.COLOURS)],
                received=text.size(row["bytes"]),
                time=f"{row['seconds']:.2f} s",
                loss=loss,
            )
        )
    found = dict(zip(metrics["metric"], metrics["value"], strict=True))
    fair = f"Jain's fairness index {found['fairness.jain']:.3f}" if len(flows) > 1 and "fairness.jain" in found else ""
    return rows, Total("Sum", text.rate(found["goodput.sum"]), fair)


_RANKS = ((0.0, "slowest"), (0.1, "10 %"), (0.5, "median"), (0.9, "90 %"), (1.0, "fastest"))


def _ranked_stream_rows(table: pd.DataFrame) -> list[tuple[str, dict[Any, Any]]]:
    """Return rows for the streams of one traffic; of many streams, those at some ranks by goodput, with the rank in the
    name.
    """
    rows = table.to_dict("records")
    if len(rows) <= series.MANY:
        return [("", row) for row in rows]
    by_goodput = sorted(rows, key=lambda row: float(row["goodput_bps"]))
    return [
        (f", {rank} of {text.count(len(rows))}", by_goodput[round(share * (len(rows) - 1))]) for share, rank in _RANKS
    ]


def _class_name(row: dict[Any, Any], several: bool) -> str:
    where = f"{row['device']} {row['interface']} {row['direction']}"
    return f"{where}, policy {row['policy']}, class {row['class']}" if several else f"{where}, class {row['class']}"


def _class_graphs(classes: pd.DataFrame, anchor: str) -> list[Graph]:
    graphs = []
    for number, (_, table) in enumerate(classes.groupby(_CLASS, sort=False)):
        rates = series.class_rates(table)
        if rates.empty:
            continue
        peaks = series.class_peaks(rates)
        if peaks.offered_bps == 0:
            continue
        summary = (
            f"Highest between two readings: offered {text.rate(peaks.offered_bps)}, sent {text.rate(peaks.sent_bps)}"
        )
        summary += f", dropped {text.rate(peaks.dropped_bps)}" if peaks.dropped_bps else ", nothing dropped"
        if peaks.bucket_bytes is not None:
            least, greatest, last = map(text.size, peaks.bucket_bytes)
            summary += f"; bucket {least} to {greatest}, at the end {last}"
        if peaks.queue_packets is not None:
            summary += f"; queue at most {peaks.queue_packets} packets"
        name = _class_name(table.iloc[0].to_dict(), True)
        graphs.append(
            Graph(
                f"class-{anchor}-{number}",
                f"Router counters: {name}",
                summary + ". Bits as counted by the router: IP packet and layer-2 header.",
                charts.axis_rate_unit(peaks.offered_bps)[1],
                charts.class_graph(rates),
            )
        )
    return graphs


def _drops(classes: pd.DataFrame) -> tuple[list[str], list[Drops]]:
    """Return headings and rows of the table of packets by class; unused optional reasons are left out."""
    table = class_drops(classes)
    shown = [name for name in FATES if name not in _RARE or (name in table and table[name].sum() > 0)]
    rows = [
        Drops(
            _class_name(row, False), [text.NONE if pd.isna(row[name]) else text.count(int(row[name])) for name in shown]
        )
        for row in table.to_dict("records")
    ]
    return [FATES[name] for name in shown], rows


def _queue_graphs(queues: pd.DataFrame, anchor: str) -> list[Graph]:
    graphs = []
    for number, (device, interface) in enumerate(busy_ports(queues)):
        rates = queue_rates(queues, device, interface)
        if rates.empty:
            continue
        summary = "; ".join(
            f"queue {queue}: at most {text.count(round(table['enqueued'].max()))} frames a second enqueued,"
            f" {text.count(round(table['dropped'].max()))} dropped"
            for queue, table in rates.groupby("queue")
        )
        title = f"Switch counters: egress queues of {device} {interface}"
        graph = charts.queue_graph(rates)
        graphs.append(Graph(f"queues-{anchor}-{number}", title, f"{summary}.", "frames/s", graph))
    return graphs


def _queues(queues: pd.DataFrame) -> list[Drops]:
    """Return rows of the table of frames by egress queue and threshold."""
    rows = []
    for row in queue_counts(queues).to_dict("records"):
        enqueued, dropped = int(row["enqueued"]), int(row["dropped"])
        name = f"{row['device']} {row['interface']}, queue {row['queue']}, threshold {row['threshold']}"
        share = f"{100 * dropped / (enqueued + dropped):.3g} %"
        rows.append(Drops(name, [text.count(enqueued), text.count(dropped), share]))
    return rows


FATES = {
    "offered": "Offered",
    "sent": "Sent",
    "police": "Dropped by policer",
    "priority": "Dropped by the priority policer",
    "tail": "Tail drop",
    "flow": "Flow queue full",
    "random": "Random early drop",
    "random_tail": "Early drop above the maximum threshold",
    "aqm": "Dropped by active queue management",
    "purged": "Purged",
    "queued": "Still queued",
}
_RARE = ("priority", "random", "random_tail", "aqm", "purged")
SHOWN_MOST = 2**20
"""Maximum number of characters of a file in a report."""
SILENT = "(the router printed nothing)"


def _observations(cell: CellFiles, record: CellRecord) -> list[Observed]:
    titles = {"before": "Before the traffic", "during": "During the traffic", "after": "After the traffic"}
    order = {"before": 0, "after": 2}
    groups: dict[tuple[str, str], list[Part]] = {}
    for entry in sorted(record.observed, key=lambda entry: order.get(entry.moment, 1)):
        file = f"{entry.file}.txt"
        if not cell.has(file):
            continue
        title = titles.get(entry.moment, f"At {entry.moment}")
        part = Part(title, _truncated_file_text(cell, file).strip("\n") or SILENT, entry.moment not in order)
        groups.setdefault((entry.device, entry.command), []).append(part)
    found = []
    for (device, command), moments in groups.items():
        if not any(part.open for part in moments):
            moments[-1] = Part(moments[-1].title, moments[-1].text, len(moments[-1].text.splitlines()) < 40)
        found.append(Observed(device, command, moments))
    return found


def _truncated_file_text(cell: CellFiles, file: str) -> str:
    """Return the text of one of the cell's files, truncated to `SHOWN_MOST` characters."""
    content = cell.text(file)
    if len(content) <= SHOWN_MOST:
        return content
    return f"{content[:SHOWN_MOST]}\n({len(content) - SHOWN_MOST} more characters are in {PurePosixPath(file).name})"


def _indent_json(content: str) -> str:
    """Format JSON with line breaks; unchanged if it is damaged."""
    try:
        return json.dumps(json.loads(content), indent=1)
    except (ValueError, RecursionError):
        return content or "(the file is empty)"


def _configurations(cell: CellFiles, lab: str) -> list[Part]:
    names = {
        ".ios": f"{{}}: {lab_kind(lab).configuration_title}",
        ".tc": f"{{}}: {lab_kind(lab).configuration_title}",
        ".running.ios": "{}: running configuration after it was applied",
        ".engine.json": "{}: active data-plane configuration",
        ".tc.json": "{}: active tc commands, with their lines",
        ".before.ios": "{}: running configuration before the run",
        ".after.ios": "{}: running configuration after it was restored",
    }
    parts = []
    for device in cell.configured_devices():
        for suffix, title in names.items():
            file = f"config/{device}{suffix}"
            if cell.has(file):
                content = _truncated_file_text(cell, file)
                if suffix.endswith("json"):
                    content = _indent_json(content)
                parts.append(Part(title.format(device), content.strip("\n"), suffix in (".ios", ".tc")))
    return parts
