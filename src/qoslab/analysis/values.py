"""Values of a run without expectations: those of each arm, and of each combination of its parameters. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import pandas as pd

from qoslab.analysis.expected_comparison import COLUMNS, measured_figure
from qoslab.analysis.metric_rows import MetricRows
from qoslab.analysis.verdicts import INFORMATIVE
from qoslab.model.expectations import selection_text
from qoslab.model.experiment import Arm, Experiment
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.matrix import Scalar
from qoslab.model.metrics import Reference, Selector
from qoslab.results import CellSummary

MOST_ROWS = 400
"""Maximum number of rows; for a large sweep only the metrics of its graphs are shown."""
OF_SELECTOR: Mapping[Selector, tuple[str, ...]] = {
    "traffic": ("goodput.sum", "datagrams.loss", "datagrams.jitter"),
    "probe": ("rtt.avg", "rtt.max", "jitter.avg"),
    "class": ("class.passed", "class.drops"),
    "interface": ("interface.delay.p99",),
}
"""Metrics that are shown for each single traffic, probe, class and interface."""
DATAGRAMS = ("datagrams.loss", "datagrams.jitter")


def unexpected_values(
    experiment: Experiment, metrics: pd.DataFrame, cells: Sequence[CellSummary], lab: str = DEFAULT_LAB
) -> pd.DataFrame:
    """Return rows of `expected_comparison.compare` without a verdict; `metrics` has a column `valid`."""
    known = MetricRows(metrics)
    rows = (
        {"article": "", "lab": lab, "arm": arm.name, "where": selection_text(where), "metric": metric}
        | {"unit": Reference.parse(metric).metric.unit, **measured.columns(), "verdict": INFORMATIVE}
        | dict.fromkeys(("tolerance", "reason", "reproduction", "explanation"), "")
        for arm in experiment.arms
        for names in [_named(experiment, arm, metrics, len(cells))]
        for where in _combinations(arm, cells)
        for metric in names
        if (measured := measured_figure(known, arm.name, metric, where)).estimate is not None
    )
    return pd.DataFrame(list(islice(rows, MOST_ROWS)), columns=COLUMNS)


def _combinations(arm: Arm, cells: Sequence[CellSummary]) -> list[Mapping[str, Scalar]]:
    """Return the distinct parameter combinations of an arm's cells; none for an arm that was not run."""
    found = {tuple(cell.values.items()): cell.parameters for cell in cells if cell.arm == arm.name}
    return list(found.values())


def _named(experiment: Experiment, arm: Arm, metrics: pd.DataFrame, cells: int) -> list[str]:
    """Return the most informative metrics of an arm: those of its graphs, then those measured by default."""
    graphs = [graph.metric for graph in experiment.graphs if not graph.arms or arm.name in graph.arms]
    own = [str(name) for name in metrics[metrics["arm"] == arm.name]["metric"].unique()]
    found = [] if graphs and cells * len(own) > MOST_ROWS else list(_by_itself(experiment, arm, own))
    return list(dict.fromkeys([*graphs, *found]))


def _by_itself(experiment: Experiment, arm: Arm, known: Sequence[str]) -> Iterator[str]:
    tcp = {flow.name for flow in experiment.flows_of(arm) if flow.protocol == "tcp"}
    parsed = [each for each in map(Reference.parse, known) if each.selector is not None and each.at is None]
    for selector, names in OF_SELECTOR.items():
        each_of = dict.fromkeys(each.selector for each in parsed if each.metric.selector == selector)
        for one in each_of:
            wanted = [name for name in names if not (name in DATAGRAMS and one in tcp)]
            yield from (f"{name}({one})" for name in wanted if f"{name}({one})" in known)
