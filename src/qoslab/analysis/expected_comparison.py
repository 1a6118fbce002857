"""Comparison of measured values with expected and published ones, with a verdict. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import pandas as pd

from qoslab.analysis.measured_values import Measured, MetricRows, Planned, measured_value
from qoslab.analysis.missing import needs_longer_traffic
from qoslab.analysis.verdicts import (
    AS_PREDICTED,
    FITTED,
    IMPOSSIBLE,
    INFORMATIVE,
    LOOSE,
    NOT_MEASURED,
    NOT_REPRODUCED,
    OUTSIDE,
    OWN_REFERENCE,
    UNDECIDED,
    WITHIN,
)
from qoslab.model.comparison import PublishedValue
from qoslab.model.expectations import Expectation, selection_text
from qoslab.model.experiment import Arm, Experiment
from qoslab.model.labs import DEFAULT_LAB
from qoslab.model.matrix import Scalar
from qoslab.model.metrics import Reference, Selector, format_value
from qoslab.results import CellSummary

COLUMNS = [
    *("article", "lab", "arm", "where", "metric", "unit", "predicted", "published"),
    *("measured", "low", "high", "n", "over", "excluded", "missing", "effect"),
    *("tolerance", "reason", "verdict", "reproduction", "explanation"),
]
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

_Key = tuple[str, str, str]
"""Key of a row: arm, metric, and a description of the cells."""


def compare(
    article: str,
    metrics: pd.DataFrame,
    published: Sequence[PublishedValue],
    expectations: Iterable[Expectation],
    *,
    arms: Sequence[str] = (),
    show: Mapping[str, Sequence[str]] | None = None,
    lab: str = DEFAULT_LAB,
    planned: Planned | None = None,
    shortened: bool = False,
) -> pd.DataFrame:
    """Return one row for each expectation, then for each other published value, and for each of `show`, arm by arm.

    `lab` is the kind of lab that the measured values come from.

    Rows without an expectation are `informative`. `where` describes the cells of the arm that count; it is empty for
    all.

    `predicted` is the model's value, for the `reason`. `verdict` shows whether the router behaves accordingly;
    `reproduction` whether the published value is within the same bounds, regardless of the measured value: `as
    predicted`, `not reproduced` with a possible cause as `explanation`, or `fitted` if the bounds depend on it.

    `predicted`, `published` and `measured` are nan if there is none; `low` and `high` are the ends of the 95 %
    interval, `n` the number of cells behind it (for `A/B` of pairs of cells), `excluded` the number of cells that are
    not valid, `missing` the reason why others lack it, and `effect` Cliff's delta of `A/B`. An expectation with a value
    that was not measured is not met. `planned` are the cells of the run: an expectation is `undecided` if most of its
    cells are not valid or lack the value. `arms` is the order of the rows, with ratios of arms last. Values without a
    valid cell are shown as `informative`. In a `shortened` run, values that longer traffic may have are not measured.
    """
    values: dict[_Key, PublishedValue] = {
        (each.arm, each.metric, each.selection): each for each in published if each.metric
    }
    wanted: list[tuple[_Key, Expectation | None]] = [
        ((each.arm, each.metric, each.selection), each) for each in expectations
    ]
    expected = {key for key, _ in wanted}
    shown: list[_Key] = [(arm, metric, "") for arm, names in (show or {}).items() for metric in names]
    wanted += [(key, None) for key in dict.fromkeys((*values, *shown)) if key not in expected]
    units = ["ratio" if "/" in arm else Reference.parse(metric).metric.unit for (arm, metric, _), _ in wanted]
    known = MetricRows(metrics)
    measured = []
    for key, expectation in wanted:
        selecting = expectation or values.get(key)
        measured.append(measured_value(known, *key[:2], selecting.where if selecting else None, planned))
    rows = []
    for (key, expectation), unit, found in zip(wanted, units, measured, strict=True):
        row = _row(key, unit, values.get(key), found)
        if expectation is not None:
            row |= {
                "predicted": math.nan if expectation.prediction is None else expectation.prediction,
                "tolerance": expectation.tolerance,
                "reason": expectation.reason,
                "verdict": _verdict(expectation, found, shortened=shortened),
            } | _reproduction(expectation, values.get(key))
        rows.append(row)
    place = {arm: number for number, arm in enumerate(arms)}
    rows.sort(key=lambda row: place.get(str(row["arm"]), len(place)))
    return pd.DataFrame([{"article": article, "lab": lab, **row} for row in rows], columns=COLUMNS)


def _row(key: _Key, unit: str, published: PublishedValue | None, measured: Measured) -> dict[str, object]:
    """Return an informative row; columns that it lacks become nan."""
    arm, metric, selection = key
    return {
        "arm": arm,
        "where": selection,
        "metric": metric,
        "unit": unit,
        "published": math.nan if published is None or not published.is_published else published.value,
        **measured_columns(measured),
        "tolerance": "",
        "reason": "",
        "verdict": INFORMATIVE,
        "reproduction": "",
        "explanation": "" if published is None else published.remark,
    }


def measured_columns(measured: Measured) -> dict[str, object]:
    """Return the columns of the comparison."""
    found = measured.estimate
    return {
        "measured": measured.value,
        "low": math.nan if found is None else found.low,
        "high": math.nan if found is None else found.high,
        "n": measured.counted,
        "over": "" if found is None else found.over,
        "excluded": measured.excluded,
        "missing": measured.missing,
        "effect": measured.effect,
    }


def _reproduction(expectation: Expectation, published: PublishedValue | None) -> dict[str, str]:
    """Return whether the publication agrees with the prediction, and if not, the explanation."""
    if published is None:
        return {"explanation": expectation.fitted}
    if not published.is_published:
        reference = format_value(published.value, expectation.unit)
        return {"reproduction": OWN_REFERENCE, "explanation": f"Reference measurement, not published: {reference}."}
    if not expectation.is_within_bounds(published.value, uncertain=published.resolution / 2):
        return {"reproduction": NOT_REPRODUCED, "explanation": expectation.explained}
    if expectation.fitted:
        return {"reproduction": FITTED, "explanation": expectation.fitted}
    return {"reproduction": AS_PREDICTED, "explanation": ""}


def unexpected_values(
    experiment: Experiment, metrics: pd.DataFrame, cells: Sequence[CellSummary], lab: str = DEFAULT_LAB
) -> pd.DataFrame:
    """Return rows of `expected_comparison.compare` without a verdict; `metrics` has a column `valid`."""
    known = MetricRows(metrics)
    rows = (
        {"article": "", "lab": lab, "arm": arm.name, "where": selection_text(where), "metric": metric}
        | {"unit": Reference.parse(metric).metric.unit, **measured_columns(measured), "verdict": INFORMATIVE}
        | dict.fromkeys(("tolerance", "reason", "reproduction", "explanation"), "")
        for arm in experiment.arms
        for names in [_informative_metrics(experiment, arm, metrics, len(cells))]
        for where in _combinations(arm, cells)
        for metric in names
        if (measured := measured_value(known, arm.name, metric, where)).estimate is not None
    )
    return pd.DataFrame(list(islice(rows, MOST_ROWS)), columns=COLUMNS)


def _combinations(arm: Arm, cells: Sequence[CellSummary]) -> list[Mapping[str, Scalar]]:
    """Return the distinct parameter combinations of an arm's cells; none for an arm that was not run."""
    found = {tuple(cell.values.items()): cell.parameters for cell in cells if cell.arm == arm.name}
    return list(found.values())


def _informative_metrics(experiment: Experiment, arm: Arm, metrics: pd.DataFrame, cells: int) -> list[str]:
    """Return the most informative metrics of an arm: those of its graphs, then those measured by default."""
    graphs = [graph.metric for graph in experiment.graphs if not graph.arms or arm.name in graph.arms]
    own = [str(name) for name in metrics[metrics["arm"] == arm.name]["metric"].unique()]
    found = [] if graphs and cells * len(own) > MOST_ROWS else list(_default_metrics(experiment, arm, own))
    return list(dict.fromkeys([*graphs, *found]))


def _default_metrics(experiment: Experiment, arm: Arm, known: Sequence[str]) -> Iterator[str]:
    tcp = {flow.name for flow in experiment.arm_flows(arm) if flow.protocol == "tcp"}
    parsed = [each for each in map(Reference.parse, known) if each.selector is not None and each.at is None]
    for selector, names in OF_SELECTOR.items():
        each_of = dict.fromkeys(each.selector for each in parsed if each.metric.selector == selector)
        for one in each_of:
            wanted = [name for name in names if not (name in DATAGRAMS and one in tcp)]
            yield from (f"{name}({one})" for name in wanted if f"{name}({one})" in known)


def impossible(comparison: pd.DataFrame) -> list[str]:
    """Return descriptions of impossible values, each of which is a bug of the analysis."""
    rows = comparison[comparison["verdict"] == IMPOSSIBLE].to_dict("records")
    return [
        f"{row['arm']}: {row['metric']}{' with ' + row['where'] if row['where'] else ''} came out as "
        f"{format_value(row['measured'], row['unit'])}, an impossible value: an error in the analysis or in a "
        f"measurement"
        for row in rows
    ]


def reproduction_sentence(comparison: pd.DataFrame) -> str:
    """Return a sentence such as `21 of 30 published values reproduced; 5 contradict the prediction.`

    A value is reproduced if prediction, publication and this run agree.
    """
    published = comparison[comparison["published"].notna()]
    if published.empty:
        return ""
    kinds, verdicts = published["reproduction"], published["verdict"]
    agreed = kinds == AS_PREDICTED
    met, failed = (
        int((agreed & verdicts.isin([WITHIN, LOOSE])).sum()),
        int((agreed & verdicts.isin([OUTSIDE, IMPOSSIBLE])).sum()),
    )
    fitted, other, nothing = (int((kinds == kind).sum()) for kind in (FITTED, NOT_REPRODUCED, ""))
    undecided = int(agreed.sum()) - met - failed
    parts = [f"{met} of {len(published)} published values reproduced"]
    parts += [f"{other} contradict{_verb_ending(other)} the prediction"] if other else []
    parts += [f"{failed} agree{_verb_ending(failed)} with the prediction, but not with this run"] if failed else []
    parts += [f"{undecided} could not be decided by this run"] if undecided else []
    parts += [f"{fitted} depend{_verb_ending(fitted)} on a fitted constant"] if fitted else []
    parts += [f"{nothing} without a prediction"] if nothing else []
    return f"{'; '.join(parts)}."


def _verb_ending(count: int) -> str:
    """Return the ending of a verb for this count: `s` for 1."""
    return "s" if count == 1 else ""


def _verdict(expectation: Expectation, measured: Measured, *, shortened: bool) -> str:
    if not measured.trusted:
        return INFORMATIVE
    if measured.estimate is None:
        if shortened and needs_longer_traffic(measured.missing):
            return NOT_MEASURED
        return UNDECIDED if measured.excluded else OUTSIDE
    if not expectation.is_possible(measured.estimate.value):
        return IMPOSSIBLE
    if measured.is_undecided:
        return UNDECIDED
    if not expectation.is_within_bounds(measured.estimate.value):
        return OUTSIDE
    return LOOSE if expectation.has_loose_bounds else WITHIN
