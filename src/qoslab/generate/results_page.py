"""Tables of docs/reference/results.md, from the saved baselines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from qoslab.generate.outdated import find_outdated, update_remarks
from qoslab.model.metrics import Unit, format_value
from qoslab.model.run_values import Key, RunValue
from qoslab.results.baselines import Baseline, experiment_baselines

WIDTH = 120
BEGIN, END = "<!-- baseline: {} -->", "<!-- end of baseline -->"
_BLOCK = re.compile(r"<!-- baseline: (\S+) -->\n.*?<!-- end of baseline -->", re.DOTALL)
_INFORMATIVE, _WITHIN, _LOOSE = "informative", "within", "loose bounds"
_NOT_REPRODUCED, _FITTED, _OWN_REFERENCE = "not reproduced", "fitted", "own reference"


def results_document(present: str, top: Path) -> str:
    """Return the document with the table of each experiment between its marks, and the rest unchanged."""

    def block(found: re.Match[str]) -> str:
        name = found[1]
        file = top / "experiments" / f"{name}.yml"
        lines = [BEGIN.format(name), "", *_experiment_section(name, experiment_baselines(top, name), file), "", END]
        return "\n".join(lines)

    return _BLOCK.sub(block, present)


def _experiment_section(name: str, baselines: Mapping[str, Baseline], file: Path) -> Iterator[str]:
    if not baselines:
        yield f"No run of `{name}` is saved."
        return
    # Values are from the run; texts may have been rewritten since.
    baselines = {lab: update_remarks(baseline, file) for lab, baseline in baselines.items()}
    for lab, baseline in baselines.items():
        yield f"- {lab}: {_run(baseline)}"
        if changes := "; ".join(find_outdated(baseline, file)):
            text = f"- of an earlier version of the file: {changes}"
            yield from (f"  {line}" for line in textwrap.wrap(text, WIDTH - 2, subsequent_indent="  "))
    yield ""
    yield f"| metric | predicted | published | {' | '.join(baselines)} |"
    yield "|---" * (3 + len(baselines)) + "|"
    by_lab = {lab: {row.key: row for row in baseline.rows} for lab, baseline in baselines.items()}
    shown = [row for baseline in baselines.values() for row in baseline.rows if _is_shown(row)]
    first: dict[Key, RunValue] = {}
    for row in shown:
        first.setdefault(row.key, row)
    for key, row in first.items():
        yield _row_line(row, [by_lab[lab].get(key) for lab in baselines])
    yield from _remark_lines(first.values())
    yield from _score_lines(baselines)


def _score_lines(baselines: Mapping[str, Baseline]) -> Iterator[str]:
    """Yield the frequencies of one of two values of a parameter being better, for each kind of lab."""
    by_lab = {lab: {score.title: score for score in baseline.scores} for lab, baseline in baselines.items()}
    titles = dict.fromkeys(title for scores in by_lab.values() for title in scores)
    if not titles:
        return
    yield ""
    yield f"| won, equal, lost | of | {' | '.join(baselines)} |"
    yield "|---" * (2 + len(baselines)) + "|"
    for title in titles:
        found = [by_lab[lab].get(title) for lab in baselines]
        metric = next(f"`{score.metric}`" for score in found if score)
        counts = ("" if score is None else f"{score.won}, {score.equal}, {score.lost}" for score in found)
        yield f"| {title} | {metric} | {' | '.join(counts)} |"


def _remark_lines(rows: Iterable[RunValue]) -> Iterator[str]:
    """Yield the explanations of values that are not reproduced, and the parts of the model that were fitted to them."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.explanation and (kind := _remark_text(row)):
            found.setdefault((kind, row.explanation), []).append(f"{_row_place(row)}: `{row.metric}`")
    for (kind, why), named in found.items():
        text = f"{kind[0].upper()}{kind[1:]} ({'; '.join(named)}): {why}"
        yield ""
        yield from textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _remark_text(row: RunValue) -> str:
    if row.reproduction == _NOT_REPRODUCED:
        return _NOT_REPRODUCED
    # Without a published value, the explanation of an expectation describes the fitted part.
    unpublished = row.published is None and row.verdict != _INFORMATIVE and row.reproduction != _OWN_REFERENCE
    return _FITTED if row.reproduction == _FITTED or unpublished else ""


def _is_shown(row: RunValue) -> bool:
    return row.verdict != _INFORMATIVE or row.published is not None


def _run(baseline: Baseline) -> str:
    manifest = baseline.manifest
    took = "" if manifest.took_s is None else f", {manifest.took_s:.0f} s"
    cells = "1 cell" if len(manifest.cells) == 1 else f"{len(manifest.cells)} cells"
    repetitions = max((each.repetition for each in manifest.cells), default=1)
    cells += f", {repetitions} repetitions each (medians, 95 % intervals)" if repetitions > 1 else ""
    judged = [row for row in baseline.rows if row.verdict not in (_INFORMATIVE, _LOOSE)]
    within = sum(row.verdict == _WITHIN for row in judged)
    return f"{manifest.started:%Y-%m-%d}, {cells}{took}; {within} of {len(judged)} expectations within"


def _row_place(row: RunValue) -> str:
    return f"{row.arm} ({row.where})" if row.where else row.arm


def _row_line(row: RunValue, measured: Sequence[RunValue | None]) -> str:
    predicted = _value_text(row.predicted, row) or row.tolerance
    published = _value_text(row.published, row)
    if published and (kind := _remark_text(row)):
        published += f", {kind}"
    named = f"{row.metric} (`{row.subject}`)" if row.subject else f"`{row.metric}`"
    cells = [f"{_row_place(row)}: {named}", predicted, published, *map(_measured_text, measured)]
    return f"| {' | '.join(cells)} |"


def _measured_text(row: RunValue | None) -> str:
    if row is None:
        return ""
    text = _value_text(row.measured, row) or "not measured"
    low, high = _value_text(row.low, row), _value_text(row.high, row)
    text += f" ({low} to {high})" if low != high else ""
    text += f"; lowest {row.lowest}" if row.lowest else ""
    return text if row.verdict in (_WITHIN, _LOOSE, _INFORMATIVE) else f"**{text}, {row.verdict}**"


def _value_text(value: float | None, row: RunValue) -> str:
    return "" if value is None else format_value(value, cast(Unit, row.unit))
