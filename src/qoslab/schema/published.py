"""Published figures: a CSV file with the columns arm, metric, unit, value, source, and any of the parameters."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from qoslab.errors import ExperimentError, Finding
from qoslab.model.comparison import PublishedFigure
from qoslab.model.matrix import Scalar, as_scalar
from qoslab.model.metrics import Reference
from qoslab.schema.document import Place
from qoslab.schema.files import FileRefusedError, read_text, roots, tidy
from qoslab.schema.near import clipped, did_you_mean, one_of
from qoslab.schema.selectors import Selectors, unknown_metric
from qoslab.units import QuantityError

COLUMNS = ("arm", "metric", "unit", "value", "source")


def load_published(
    experiment_file: Path,
    published: str,
    arms: Collection[str],
    selectors: Selectors | None = None,
    parameters: Collection[str] = (),
) -> tuple[PublishedFigure, ...]:
    """Read and check a published table against the experiment. `ExperimentError` lists all findings.

    Further columns are named as parameters; a value says which cells the figure is about, none means all.

    Selectors of metrics are checked where `selectors` knows what they may name.

    Values are in the metric's own unit; of a ratio of two arms (`A/B`) in `ratio`.
    """
    path = tidy(experiment_file.parent / published)
    file = str(path)
    try:
        text = read_text(path, roots(experiment_file))
    except FileRefusedError as error:
        finding = Place(file).finding("", f"cannot read the published figures: {error.message}")
        raise ExperimentError(findings=[finding]) from error
    lines = csv.reader(text.splitlines())
    try:
        return _figures(lines, file, arms, selectors, parameters)
    except csv.Error as error:
        finding = Place(file, lines.line_num, 1).finding("", f"not a CSV file: {error}")
        raise ExperimentError(findings=[finding]) from error


def _figures(
    lines: Any, file: str, arms: Collection[str], selectors: Selectors | None, parameters: Collection[str]
) -> tuple[PublishedFigure, ...]:
    head: list[str] = next(lines, [])
    further = head[len(COLUMNS) :]
    if tuple(head[: len(COLUMNS)]) != COLUMNS or len(set(further)) < len(further) or not {*further} <= {*parameters}:
        found = clipped(",".join(head)) or "nothing"
        also = f", then any of the parameters {', '.join(parameters)}" if parameters else ""
        finding = Place(file, 1, 1).finding("", f"found the columns {found}, expected {','.join(COLUMNS)}{also}")
        raise ExperimentError(findings=[finding])
    figures: list[PublishedFigure] = []
    findings: list[Finding] = []
    seen: dict[tuple[str, str, str], int] = {}
    for row in lines:
        place = Place(file, lines.line_num, 1)
        if not row:
            continue
        checked = _row(row, place, arms, selectors, further)
        if isinstance(checked, Finding):
            findings.append(checked)
            continue
        first = seen.setdefault((checked.arm, checked.metric, checked.selection), lines.line_num)
        if first != lines.line_num:
            found = f"found {checked.metric} of {checked.arm} a second time"
            findings.append(place.finding("metric", f"{found}, expected it once; the first is at {file}:{first}"))
        figures.append(checked)
    if findings:
        raise ExperimentError(findings=findings)
    return tuple(figures)


def _row(
    row: list[str], place: Place, arms: Collection[str], selectors: Selectors | None, parameters: Sequence[str]
) -> PublishedFigure | Finding:
    if len(row) != len(COLUMNS) + len(parameters):
        return place.finding("", f"found {len(row)} columns, expected {len(COLUMNS) + len(parameters)}")
    arm, metric, unit, value, source, *values = (cell.strip() for cell in row)
    for part in arm.split("/"):
        if part not in arms:
            return place.finding("arm", f'found "{part}", expected {one_of(arms)}', did_you_mean(part, arms))
    if arm.count("/") > 1:
        return place.finding("arm", f'found "{arm}", expected an arm or A/B')
    try:
        reference = Reference.parse(metric)
    except KeyError:
        unknown = unknown_metric(metric, "a metric")
        return place.finding("metric", unknown.message, unknown.hint)
    for problem in selectors.problems(reference, arm.split("/")) if selectors else ():
        return place.finding("metric", problem.message, problem.hint)
    expected = "ratio" if "/" in arm else reference.metric.unit
    if unit != expected:
        return place.finding("unit", f'found "{unit}", expected "{expected}" for {metric} of {arm}')
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        return place.finding("value", f'found "{value}", expected a number')
    where: dict[str, Scalar] = {}
    for name, text in zip(parameters, values, strict=True):
        if text:
            try:
                where[name] = as_scalar(text)
            except QuantityError as error:
                return place.finding(name, error.message, error.hint)
    return PublishedFigure(arm, str(reference), expected, number, source, where)
