"""Published values: a CSV file with the columns arm, metric, unit, value, source, some of `FURTHER`, and any of the
parameters.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from qoslab.errors import ExperimentError, Finding, clip_text, did_you_mean, format_alternatives
from qoslab.model.comparison import KINDS, PublishedValue
from qoslab.model.experiment import Experiment
from qoslab.model.matrix import Scalar, as_scalar
from qoslab.model.metrics import Reference
from qoslab.model.units import QuantityError
from qoslab.schema.document import Place
from qoslab.schema.expectations import parameters_of
from qoslab.schema.named_files import FileRefusedError, allowed_folders, normalise_path, read_text
from qoslab.schema.selectors import Selectors, unknown_metric

COLUMNS = ("arm", "metric", "unit", "value", "source")
FURTHER = ("resolution", "kind", "moment", "place", "remark", "compared")
"""Optional columns of a table: resolution of the last digit, in the metric's unit; kind of value; time and place of the
measurement; reason for the absence of an expectation; other comparisons of the value.
"""


def published_values(
    file: Path, experiment: Experiment, selectors: Selectors | None = None
) -> tuple[PublishedValue, ...]:
    """Return the published values that an experiment file names; empty if it names none. Raise `ExperimentError` if
    they are invalid.

    `selectors` is as in `load_published`.
    """
    if experiment.compare is None or experiment.compare.published is None:
        return ()
    arms = [arm.name for arm in experiment.arms]
    return load_published(file, experiment.compare.published, arms, selectors, parameters_of(experiment))


def load_published(
    experiment_file: Path,
    published: str,
    arms: Collection[str],
    selectors: Selectors | None = None,
    parameters: Collection[str] = (),
) -> tuple[PublishedValue, ...]:
    """Read and check a published table against the experiment. Raise `ExperimentError`, which lists all findings.

    Further columns are those of `FURTHER`, or named after parameters: their values select the cells of the published
    value; none means all. A row without arm and metric has a value that is not measured; `remark` has the reason.

    Selectors of metrics are checked if `selectors` has the names of the experiment.

    Values are in the metric's own unit; for a ratio of two arms (`A/B`) in `ratio`.
    """
    path = normalise_path(experiment_file.parent / published)
    file = str(path)
    try:
        text = read_text(path, allowed_folders(experiment_file))
    except FileRefusedError as error:
        finding = Place(file).finding("", f"cannot read the published values: {error.message}")
        raise ExperimentError(findings=[finding]) from error
    lines = csv.reader(text.splitlines())
    try:
        return _parse_values(lines, file, arms, selectors, parameters)
    except csv.Error as error:
        finding = Place(file, lines.line_num, 1).finding("", f"not a CSV file: {error}")
        raise ExperimentError(findings=[finding]) from error


def _parse_values(
    lines: Any, file: str, arms: Collection[str], selectors: Selectors | None, parameters: Collection[str]
) -> tuple[PublishedValue, ...]:
    head: list[str] = next(lines, [])
    further, known = head[len(COLUMNS) :], {*FURTHER, *parameters}
    if tuple(head[: len(COLUMNS)]) != COLUMNS or len(set(further)) < len(further) or not {*further} <= known:
        found = clip_text(",".join(head)) or "nothing"
        also = f", then any of {', '.join((*FURTHER, *parameters))}"
        finding = Place(file, 1, 1).finding("", f"found the columns {found}, expected {','.join(COLUMNS)}{also}")
        raise ExperimentError(findings=[finding])
    values: list[PublishedValue] = []
    findings: list[Finding] = []
    seen: dict[tuple[str, str, str], int] = {}
    for row in lines:
        place = Place(file, lines.line_num, 1)
        if not row:
            continue
        checked = _parse_row(row, place, arms, selectors, further)
        if isinstance(checked, Finding):
            findings.append(checked)
            continue
        if not checked.metric:
            values.append(checked)
            continue
        first = seen.setdefault((checked.arm, checked.metric, checked.selection), lines.line_num)
        if first != lines.line_num:
            found = f"found {checked.metric} of {checked.arm} a second time"
            findings.append(place.finding("metric", f"{found}, expected it once; the first is at {file}:{first}"))
        values.append(checked)
    if findings:
        raise ExperimentError(findings=findings)
    return tuple(values)


def _parse_row(
    row: list[str], place: Place, arms: Collection[str], selectors: Selectors | None, further: Sequence[str]
) -> PublishedValue | Finding:
    if len(row) != len(COLUMNS) + len(further):
        return place.finding("", f"found {len(row)} columns, expected {len(COLUMNS) + len(further)}")
    arm, metric, unit, value, source, *rest = (cell.strip() for cell in row)
    more = dict(zip(further, rest, strict=True))
    kind = more.get("kind", "")
    if kind and kind not in KINDS:
        return place.finding(
            "kind", f'found "{kind}", expected {format_alternatives(KINDS)}', did_you_mean(kind, KINDS)
        )
    resolution = _parse_number(more.get("resolution") or "0")
    if resolution is None or resolution < 0:
        return place.finding("resolution", f'found "{more["resolution"]}", expected a number of at least 0')
    number = _parse_number(value)
    if number is None:
        return place.finding("value", f'found "{value}", expected a number')
    about = {name: more[name] for name in ("kind", "moment", "place", "remark", "compared") if name in more}
    if not metric:
        if not about.get("remark"):
            return place.finding("metric", "found no metric, expected one, or a remark that explains its absence")
        return PublishedValue(arm, "", unit, number, source, {}, resolution, **about)
    checked = _parse_reference(arm, metric, unit, place, arms, selectors)
    if isinstance(checked, Finding):
        return checked
    where: dict[str, Scalar] = {}
    for name, text in more.items():
        if text and name not in FURTHER:
            try:
                where[name] = as_scalar(text)
            except QuantityError as error:
                return place.finding(name, error.message, error.hint)
    return PublishedValue(arm, str(checked), unit, number, source, where, resolution, **about)


def _parse_reference(
    arm: str, metric: str, unit: str, place: Place, arms: Collection[str], selectors: Selectors | None
) -> Reference | Finding:
    """Return the metric, or a finding if it does not fit the arms or the unit."""
    for part in arm.split("/"):
        if part not in arms:
            return place.finding(
                "arm", f'found "{part}", expected {format_alternatives(arms)}', did_you_mean(part, arms)
            )
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
    return reference


def _parse_number(text: str) -> float | None:
    """Parse a finite number; return None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
