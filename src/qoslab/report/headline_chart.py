"""The picture that a report begins with: what answers its title, all arms over one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from qoslab.analysis import charts, series
from qoslab.analysis.packets import ALL
from qoslab.model.experiment import Arm, Experiment, Flow
from qoslab.report import text
from qoslab.report.arms import Graph
from qoslab.report.sweep import SweepSection
from qoslab.results import CellFiles

ANCHOR = "lead"


def lead_graph(
    experiment: Experiment, cells: Sequence[CellFiles], found: dict[str, pd.DataFrame], sweep: Sequence[SweepSection]
) -> Graph | None:
    """The first curve that the experiment asks for; else what the receivers of each arm got over time.

    Traffic in the background is left out where an arm has other; of several cells of an arm the first is drawn. None
    with fewer than two arms that have anything to show.
    """
    for section in sweep:
        if section.curves:
            return section.curves[0]
    lines: dict[str, pd.Series] = {}
    for arm in experiment.arms:
        cell = next((each for each in cells if each.arm == arm.name), None)
        if cell is None:
            continue
        drawn = _received(experiment, cell, found)
        if drawn is not None:
            lines[arm.title or arm.name] = drawn
    if len(lines) < 2:
        return None
    left_out = sorted({flow.name for arm in experiment.arms for flow in _background(experiment, arm)})
    several = any(sum(each.arm == arm.name for each in cells) > 1 for arm in experiment.arms)
    title = "Goodput over time, by arm"
    return overlaid(f"{title} (the first cell of each)" if several else title, lines, left_out)


def overlaid(title: str, lines: Mapping[str, pd.Series], left_out: Sequence[str] = ()) -> Graph:
    """Payload over time (bits per second by `time_s`) of several, at least one, on one axis.

    `left_out` are the names of traffic that is not in the lines.
    """
    means = [f"{name} {text.rate(float(line.mean()))}" for name, line in lines.items()]
    greatest = max(float(line.max()) for line in lines.values())
    without = f" without the background traffic {', '.join(left_out)}" if left_out else ""
    return Graph(
        ANCHOR,
        title,
        f"Payload{without}, mean from first start to last end: {'; '.join(means)}.",
        charts.unit_of(greatest)[1],
        charts.overlay_graph(lines),
    )


def stream_graphs(
    experiment: Experiment, arms: Sequence[str], cells: Sequence[CellFiles], found: Mapping[str, pd.DataFrame]
) -> Iterator[Graph]:
    """The throughput of each stream in the first cell of each of these arms, with a linear axis of its own."""
    for arm in experiment.arms:
        cell = next((each for each in cells if each.arm == arm.name), None)
        if arm.name not in arms or cell is None:
            continue
        flows, intervals = (found[name][found[name]["cell"] == cell.name] for name in ("flows", "intervals"))
        curves = {} if intervals.empty else series.reported_throughput(intervals, flows)
        every = curves.pop(ALL, None)
        if every is None:
            continue
        yield Graph(
            f"answer-{arm.name}",
            arm.title or arm.name,
            f"Payload of each stream; together {text.rate(float(every.mean()))}.",
            charts.unit_of(max(float(line.max()) for line in curves.values()))[1],
            charts.overlay_graph(curves, linear=True, height=260),
        )


def _background(experiment: Experiment, arm: Arm) -> list[Flow]:
    """Traffic of an arm that its line leaves out: what is in the background, where other traffic is not."""
    mine = experiment.flows_of(arm)
    return [flow for flow in mine if flow.background] if not all(flow.background for flow in mine) else []


def _received(experiment: Experiment, cell: CellFiles, found: dict[str, pd.DataFrame]) -> pd.Series | None:
    """Payload in bits per second by time, of all streams together; None if nothing was received."""
    flows, intervals = (found[name][found[name]["cell"] == cell.name] for name in ("flows", "intervals"))
    without = [flow.name for flow in _background(experiment, experiment.arm(cell.arm))]
    flows = flows[~flows["traffic"].isin(without)]
    return None if intervals.empty else series.reported_throughput(intervals, flows).get(ALL)
