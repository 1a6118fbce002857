"""Chart at the top of a report: the answer to its title, with all arms on one axis."""

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


def headline_graph(
    experiment: Experiment, cells: Sequence[CellFiles], found: dict[str, pd.DataFrame], sweep: Sequence[SweepSection]
) -> Graph | None:
    """Return the first curve that the experiment asks for, or else the goodput of each arm over time.

    Background traffic of an arm is left out if the arm has other traffic. Of several cells of an arm, the first is
    drawn. Return None if fewer than two arms have a line.
    """
    for section in sweep:
        if section.curves:
            return section.curves[0]
    lines: dict[str, pd.Series] = {}
    for arm in experiment.arms:
        cell = next((each for each in cells if each.arm == arm.name), None)
        if cell is None:
            continue
        drawn = _received_payload(experiment, cell, found)
        if drawn is not None:
            lines[arm.title or arm.name] = drawn
    if len(lines) < 2:
        return None
    left_out = sorted({flow.name for arm in experiment.arms for flow in _background_flows(experiment, arm)})
    several = any(sum(each.arm == arm.name for each in cells) > 1 for arm in experiment.arms)
    title = "Goodput over time, by arm"
    return overlaid(f"{title} (the first cell of each)" if several else title, lines, left_out)


def overlaid(title: str, lines: Mapping[str, pd.Series], left_out: Sequence[str] = ()) -> Graph:
    """Draw payload over time (bits per second by `time_s`) as one or more lines on one axis.

    `left_out` are the names of traffic that the lines do not include.
    """
    means = [f"{name} {text.rate(float(line.mean()))}" for name, line in lines.items()]
    greatest = max(float(line.max()) for line in lines.values())
    without = f" without the background traffic {', '.join(left_out)}" if left_out else ""
    return Graph(
        ANCHOR,
        title,
        f"Payload{without}, mean from first start to last end: {'; '.join(means)}.",
        charts.axis_rate_unit(greatest)[1],
        charts.overlay_graph(lines),
    )


def stream_graphs(
    experiment: Experiment, arms: Sequence[str], cells: Sequence[CellFiles], found: Mapping[str, pd.DataFrame]
) -> Iterator[Graph]:
    """Yield the throughput graph of the streams in the first cell of each of these arms, each with its
    own linear axis.
    """
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
            charts.axis_rate_unit(max(float(line.max()) for line in curves.values()))[1],
            charts.overlay_graph(curves, linear=True, height=260),
        )


def _background_flows(experiment: Experiment, arm: Arm) -> list[Flow]:
    """Return the background traffic of an arm, which its line leaves out; none if all of its traffic is in the
    background.
    """
    mine = experiment.arm_flows(arm)
    return [flow for flow in mine if flow.background] if not all(flow.background for flow in mine) else []


def _received_payload(experiment: Experiment, cell: CellFiles, found: dict[str, pd.DataFrame]) -> pd.Series | None:
    """Return payload in bits per second by time, summed over all streams; None if nothing was received."""
    flows, intervals = (found[name][found[name]["cell"] == cell.name] for name in ("flows", "intervals"))
    without = [flow.name for flow in _background_flows(experiment, experiment.arm(cell.arm))]
    flows = flows[~flows["traffic"].isin(without)]
    return None if intervals.empty else series.reported_throughput(intervals, flows).get(ALL)
