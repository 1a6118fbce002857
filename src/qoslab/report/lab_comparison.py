"""Page on one experiment in several labs, before its layout by `reports/across.html.j2`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from qoslab import __version__
from qoslab.analysis.equivalence import APART, DIFFERENT, EQUIVALENT, NEAR, OPEN, SAME, Agreement, Margin
from qoslab.analysis.lab_comparison import ComparedValue, Fidelity, LabComparison, LabRun, LabValue
from qoslab.analysis.verdicts import OUTSIDE
from qoslab.lab_kinds import LABS
from qoslab.model.metrics import Reference, Unit
from qoslab.report import text
from qoslab.report.page import Verdict
from qoslab.results import RunFolder

KINDS = {
    SAME: "within",
    EQUIVALENT: "within",
    NEAR: "informative",
    OPEN: "informative",
    APART: "outside",
    DIFFERENT: "outside",
}
"""Colours of agreements."""
MEANINGS = (
    (SAME, "every repetition in both labs has the same value"),
    (EQUIVALENT, "equivalent within the margin (5 % significance)"),
    (DIFFERENT, "they differ by more than the margin (5 % significance), or in a value without randomness"),
    (OPEN, "the repetitions neither show equivalence nor a difference"),
    (NEAR, "too few repetitions for a test; the values differ by no more than the margin"),
    (APART, "too few repetitions for a test; the values differ by more than the margin"),
)
_WIDTH, _HEIGHT, _EDGE, _SPAN = 120, 20, 4, 2.0
"""Size of the chart of a difference in pixels, and its range in margins on either side."""


@dataclass(frozen=True)
class LabComparisonRun:
    """A run in the head of the page."""

    lab: str
    title: str
    when: str
    href: str
    """Link to the run's report, relative to the page; empty if there is none."""
    version: str
    repetitions: int
    cells: str
    overrides: str
    left_out: list[str]
    """Cells that are not valid, with the reason."""


@dataclass(frozen=True)
class Measurement:
    """A value in a lab."""

    lab: str
    figure: str
    interval: str
    outside: bool
    measured: bool


@dataclass(frozen=True)
class Distance:
    """Difference of a lab's value from the first lab's."""

    lab: str
    word: str
    kind: str
    difference: str
    detail: str
    """The test, or the reason for its absence."""
    dot: float | None
    """Position in the chart; None if there is no margin to draw."""


@dataclass(frozen=True)
class LabComparisonRow:
    """A value in all labs."""

    name: str
    metric: str
    where: str
    reason: str
    predicted: str
    published: str
    tolerance: str
    labs: list[Measurement]
    margin: str
    basis: str
    distances: list[Distance]
    expected: bool


@dataclass(frozen=True)
class LabComparisonGroup:
    """Values of an arm."""

    title: str
    rows: list[LabComparisonRow]


@dataclass(frozen=True)
class FidelityRow:
    """Fidelity of the labs in a metric."""

    metric: str
    description: str
    lab: str
    median: str
    greatest: str
    greatest_of: str
    figures: int


@dataclass(frozen=True)
class LabComparisonPage:
    """Content of the page."""

    version: str
    title: str
    name: str
    verdict: Verdict
    labs: list[str]
    against: str
    runs: list[LabComparisonRun]
    passed: list[str]
    groups: list[LabComparisonGroup]
    informative: list[LabComparisonGroup]
    """Values without an expectation."""
    fidelity: list[FidelityRow]
    """Fidelity of metrics with an expectation."""
    more_fidelity: list[FidelityRow]
    """Fidelity of the other metrics."""
    meanings: Sequence[tuple[str, str]]
    kinds: dict[str, str]


def build_across(
    found: LabComparison, folders: Sequence[RunFolder], passed: Sequence[str], place: Path
) -> LabComparisonPage:
    """Build the page for the folder `place`."""
    experiment = max(found.runs, key=lambda run: run.manifest.started).manifest.experiment
    titles = {arm.name: arm.title or arm.name for arm in experiment.arms}
    return LabComparisonPage(
        version=__version__,
        title=experiment.title,
        name=experiment.name,
        verdict=comparison_verdict(found),
        labs=[run.lab for run in found.runs],
        against=found.runs[0].lab,
        runs=[_run(run, folder, place) for run, folder in zip(found.runs, folders, strict=True)],
        passed=list(passed),
        groups=_groups([each for each in found.values if each.expected], titles),
        informative=_groups([each for each in found.values if not each.expected], titles),
        fidelity=[_fidelity(each) for each in found.fidelity if each.metric in found.expected_metrics],
        more_fidelity=[_fidelity(each) for each in found.fidelity if each.metric not in found.expected_metrics],
        meanings=MEANINGS,
        kinds=KINDS,
    )


def comparison_verdict(found: LabComparison) -> Verdict:
    """Return the verdict: whether the labs contradict each other, and in which values."""
    labs = text.join_items([LABS[run.lab].title if run.lab in LABS else run.lab for run in found.runs])
    counted = [(each, found.count(each)) for each, _ in MEANINGS]
    total = sum(count for _, count in counted)
    if not total:
        sentence = f"No value with an expectation was measured in all of {labs}."
        return Verdict("informative", "–", "Nothing to compare", sentence, [])
    summary = ", ".join(f"{count} {word}" for word, count in counted if count)
    rest = (
        f"; {found.single_lab_count} more {'is' if found.single_lab_count == 1 else 'are'} not in two labs"
        if found.single_lab_count
        else ""
    )
    sentence = f"{labs[0].upper()}{labs[1:]}: of {total} values with an expectation {summary}{rest}."
    if not found.contradiction_count:
        return Verdict("within", "✓", "No contradiction", sentence, [])
    details = [
        f"{value.arm}{f' ({value.where})' if value.where else ''}: {value.metric}: "
        f"{', '.join(f'{each.lab} {_figure(each, value.unit)}' for each in value.labs)}"
        for value in found.values
        if value.expected and value.is_contradiction
    ]
    return Verdict("outside", "!", "Labs differ", sentence, details)


def _run(run: LabRun, folder: RunFolder, place: Path) -> LabComparisonRun:
    manifest = run.manifest
    commit = f", commit {manifest.commit}" if manifest.commit else ""
    invalid = [reason for reason in run.outcome.reasons if reason.partition(": ")[0] in run.outcome.invalid]
    counted = sum(not each.spared for each in manifest.cells)
    relative = Path(os.path.relpath(folder.report, place)).as_posix()
    return LabComparisonRun(
        lab=run.lab,
        title=LABS[run.lab].title if run.lab in LABS else run.lab,
        when=text.moment(manifest.started),
        href=f"./{quote(relative)}" if folder.report.exists() else "",
        version=f"{manifest.versions.get('qoslab', '')}{commit}",
        repetitions=max((each.repetition for each in manifest.cells), default=1),
        cells=f"{counted - len(run.outcome.invalid)} of {counted} valid",
        overrides=", ".join(manifest.overrides) or "nothing",
        left_out=invalid,
    )


def _groups(values: Sequence[ComparedValue], titles: dict[str, str]) -> list[LabComparisonGroup]:
    groups: dict[str, list[LabComparisonRow]] = {}
    for value in values:
        groups.setdefault(value.arm, []).append(_row(value))
    return [
        LabComparisonGroup(" over ".join(titles.get(name, name) for name in arm.split("/")), rows)
        for arm, rows in groups.items()
    ]


def _row(value: ComparedValue) -> LabComparisonRow:
    unit, margin = value.unit, value.margin
    return LabComparisonRow(
        name=Reference.parse(value.metric).description,
        metric=value.metric,
        where=text.bind_unit(value.where),
        reason=value.reason,
        predicted=text.value_text(value.predicted, unit),
        published=text.value_text(value.published, unit),
        tolerance=text.bind_unit(value.tolerance),
        labs=[
            Measurement(
                each.lab, _figure(each, unit), _interval(each, unit), each.verdict == OUTSIDE, each.estimate is not None
            )
            for each in value.labs
        ],
        margin="" if margin is None else text.margin(margin.value, unit),
        basis="" if margin is None else margin.basis,
        distances=[
            _distance(each.lab, each.agreement, margin, unit)
            for each in value.labs
            if each.agreement is not None and margin is not None
        ],
        expected=value.expected,
    )


def _figure(each: LabValue, unit: Unit) -> str:
    return "not measured" if each.estimate is None else text.value_text(each.estimate.value, unit)


def _interval(each: LabValue, unit: Unit) -> str:
    found = each.estimate
    if found is None or math.isnan(found.low):
        return ""
    return f"{text.value_text(found.low, unit)} to {text.value_text(found.high, unit)}, {found.n} {found.over}"


def _distance(lab: str, agreed: Agreement, margin: Margin, unit: Unit) -> Distance:
    tested = "" if math.isnan(agreed.p_value) else f"p = {agreed.p_value:.2g}"
    return Distance(
        lab=lab,
        word=agreed.word,
        kind=KINDS[agreed.word],
        difference="" if agreed.word == SAME else text.signed_difference(agreed.difference, unit),
        detail=tested or agreed.untested,
        dot=_chart_position(agreed.difference / margin.value)
        if margin.value and math.isfinite(agreed.difference)
        else None,
    )


def _chart_position(margins: float) -> float:
    """Return the position in the chart of a difference in margins, limited to the ends of the chart."""
    inside = max(-_SPAN, min(_SPAN, margins))
    return round(_WIDTH / 2 + inside / _SPAN * (_WIDTH / 2 - _EDGE), 1)


def _fidelity(each: Fidelity) -> FidelityRow:
    return FidelityRow(
        metric=each.metric,
        description=Reference.parse(each.metric).metric.description,
        lab=each.lab,
        median=text.share(each.median),
        greatest=text.share(each.greatest),
        greatest_of=each.greatest_of,
        figures=each.figures,
    )
