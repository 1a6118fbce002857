"""Outputs of a run for CI gates: JUnit, Markdown, and annotations at lines of files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import pandas as pd

from qoslab.analysis import Outcome
from qoslab.analysis.charts import LOG_RATIO
from qoslab.analysis.verdicts import INFORMATIVE, NOT_MEASURED, OUTSIDE, UNDECIDED
from qoslab.errors import ExperimentError
from qoslab.lab_kinds import lab_kind
from qoslab.model.metrics import format_value
from qoslab.model.run_values import Key, RunValue
from qoslab.overview import RunSummary
from qoslab.report import text
from qoslab.report.arms import Graph
from qoslab.report.page import verdict
from qoslab.results import Manifest
from qoslab.results.file_access import convert_write_errors, replace
from qoslab.schema.document import parse_document

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
_POINTS = 40
"""Points of a line in a chart."""
_NAMED = 20
"""Maximum number of removed or new values that are named; the others are only counted."""
_PALETTE = (("blue", "#0072b2"), ("orange", "#d55e00"), ("green", "#009e73"), ("pink", "#cc79a7"), ("ochre", "#b8860b"))


@dataclass(frozen=True)
class Expected:
    """An expected value, or an average over cells."""

    arm: str
    key: str
    """Metric, or title of the average, as in the experiment's file."""
    name: str
    """Name with the cells."""
    measured: str
    tolerance: str
    reason: str
    met: bool
    measurable: bool = True
    """False for a value that a shortened run did not reach: it neither passes nor fails."""


def expected(outcome: Outcome) -> Iterator[Expected]:
    """Return all expectations that count for the verdict."""
    for row in chain(_rows(outcome.comparison), _rows(outcome.averages)):
        key, where = row.get("title") or row["metric"], row.get("where") or row.get("each") or ""
        value = row["measured"] if "measured" in row else row["value"]
        measured = "not measured" if pd.isna(value) else format_value(value, row["unit"])
        name = f"{key} ({where})" if where else key
        met, measurable = row["verdict"] not in (OUTSIDE, UNDECIDED), row["verdict"] != NOT_MEASURED
        yield Expected(row["arm"], key, name, measured, row["tolerance"], row["reason"], met, measurable)


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): value for name, value in row.items()}
        for row in table[table["verdict"] != INFORMATIVE].to_dict("records")
    ]


def junit(outcome: Outcome, manifest: Manifest, file: str = "", experiment_file: str = "") -> bytes:
    """Return a JUnit report: a test case for each expected value, and one for the validity of the run.

    Each warning is a skipped test case with the warning as its message: it neither passes nor fails.

    `file` is the path of the experiment's file for the forge, `experiment_file` its text. Without a path the report has
    no line numbers.
    """
    name, cases = manifest.experiment.name, list(expected(outcome))
    seconds = f"{manifest.took_s or 0:.3f}"
    counts = {
        "tests": str(len(cases) + 1 + len(outcome.warnings)),
        "failures": str(sum(not case.met for case in cases)),
        "errors": str(int(not outcome.valid)),
    }
    skipped = str(len(outcome.warnings) + sum(not case.measurable for case in cases))
    top = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(top, "testsuite", {"name": name, **counts, "skipped": skipped, "time": seconds})
    suite.set("timestamp", manifest.started.strftime("%Y-%m-%dT%H:%M:%S"))
    trust = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": "the run is valid", "time": seconds})
    lines, places = _lines(experiment_file) if file else {}, [(trust, 1)]
    if not outcome.valid:
        reasons = _ILLEGAL.sub("?", "\n".join(outcome.reasons))
        ElementTree.SubElement(trust, "error", {"message": "its values must not be used"}).text = reasons
    for case in cases:
        named = {"classname": f"{name}.{case.arm}", "name": _ILLEGAL.sub("?", case.name), "time": "0"}
        element = ElementTree.SubElement(suite, "testcase", named)
        places.append((element, _value_line(case, lines)))
        if not case.met:
            message = _ILLEGAL.sub("?", f"{case.measured}, expected {case.tolerance}")
            ElementTree.SubElement(element, "failure", {"message": message}).text = _ILLEGAL.sub("?", case.reason)
        elif not case.measurable:
            message = "not measured: the traffic was shortened"
            ElementTree.SubElement(element, "skipped", {"message": message})
    for number, warning in enumerate(outcome.warnings, 1):
        named = {
            "classname": f"{name}.warnings",
            "name": f"warning {number}: {_ILLEGAL.sub('?', warning)}",
            "time": "0",
        }
        element = ElementTree.SubElement(suite, "testcase", named)
        ElementTree.SubElement(element, "skipped", {"message": _ILLEGAL.sub("?", warning)})
        places.append((element, 1))
    for element, line in places if file else ():
        element.set("file", _ILLEGAL.sub("?", file))
        element.set("line", str(line))
    ElementTree.indent(top)
    content: bytes = ElementTree.tostring(top, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def markdown(
    outcome: Outcome, manifest: Manifest, now: RunSummary, before: RunSummary | None, lead: Graph | None, link: str
) -> str:
    """Return a summary for a pull request: verdict, values that failed or moved, a chart, and a link to the report."""
    found, kind = verdict(outcome, manifest.experiment), lab_kind(manifest.lab)
    parts = [f"## {found.sign} {_plain(manifest.experiment.title)}: {found.word}", _plain(found.sentence)]
    parts += ["\n".join(f"- {_plain(detail)}" for detail in found.details)] if found.details else []
    parts += ["\n".join(f"- ⚠ {_plain(warning)}" for warning in outcome.warnings)] if outcome.warnings else []
    parts += [f"*{_plain(kind.remark)}*"] if kind.remark else []
    asked = text.part(manifest.overrides)
    parts += [_plain(asked)] if asked else []
    old = before.values_by_key if before is not None else {}
    if before is not None:
        moved = now.changed_values(before)
        which = f"`{before.experiment}/{before.folder.name}`"
        words = "1 value has changed" if len(moved) == 1 else f"{len(moved) or 'No'} values have changed"
        parts.append(f"### {words} since {which}")
        if (before.lab, before.overrides) != (now.lab, now.overrides):
            parts.append("That run used a different lab or different options.")
        if before.invalid:
            parts.append(f"That run was not valid ({before.invalid} of {before.cells} cells).")
        for there, word in ((now.missing_values(before), "gone"), (before.missing_values(now), "new")):
            parts += [_changes_sentence(there, word)] if there else []
        parts += [_table(moved, old)] if moved else []
    rest = [each for each in now.values if each.verdict != INFORMATIVE]
    if rest:
        parts.append(
            f"<details><summary>{len(rest)} values with an expectation</summary>\n\n{_table(rest, old)}\n\n</details>"
        )
    parts += [picture(lead)] if lead is not None else []
    parts.append(f"Report: `{now.folder / 'report.html'}`" + (f", [artifacts]({link})" if link else ""))
    return "\n\n".join(parts) + "\n"


def _changes_sentence(values: list[RunValue], word: str) -> str:
    """Return a sentence on removed or new values, with the first of them by name."""
    count = "1 value is" if len(values) == 1 else f"{len(values)} values are"
    more = f", and {len(values) - _NAMED} more" if len(values) > _NAMED else ""
    return f"{count} {word}: {', '.join(_plain(each.place) for each in values[:_NAMED])}{more}."


def _table(values: list[RunValue], old: Mapping[Key, RunValue]) -> str:
    heads = ["Arm", "Metric", *(["Before"] if old else []), "Now", "Expected", "Verdict"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for each in values:
        name = each.metric + (f" ({each.where})" if each.where else "")
        past = [text.run_value_text(old[each.key]) if each.key in old else text.NONE] if old else []
        cells = [each.arm, name, *past, text.run_value_text(each), each.tolerance, each.verdict]
        lines.append(f"| {' | '.join(map(_plain, cells))} |")
    return "\n".join(lines)


def _plain(words: str) -> str:
    """Return text with all Markdown and HTML syntax escaped."""
    return re.sub(r"([\\`*_\[\]|#~@$])", r"\\\1", " ".join(words.split())).replace("&", "&amp;").replace("<", "&lt;")


def picture(graph: Graph) -> str:
    """Return a graph of the report as a Mermaid chart, which forges draw; its axis cannot be logarithmic.

    Lines with a mean far above the lowest one are left out and named.
    """
    value = graph.figure
    lines = [(str(each["name"]), [y for y in each["y"] if y is not None], each["x"]) for each in value["data"]]
    means = {name: sum(ys) / len(ys) for name, ys, _ in lines if ys}
    least = min((mean for mean in means.values() if mean > 0), default=0.0)
    drawn = [line for line in lines if line[0] in means and means[line[0]] <= LOG_RATIO * least][: len(_PALETTE)]
    if not drawn or not all(isinstance(x, int | float) for _, _, xs in drawn for x in xs):
        return ""
    top = max(max(ys) for _, ys, _ in drawn) * 1.05
    start, end = min(min(xs) for *_, xs in drawn), max(max(xs) for *_, xs in drawn)
    axis = value["layout"]["xaxis"].get("title", {}).get("text", "")
    legend = [f"{colour}: {_plain(name)}" for (name, *_), (colour, _) in zip(drawn, _PALETTE, strict=False)]
    left = [
        f"{_plain(name)} (mean {mean:.4g} {graph.unit})" for name, mean in means.items() if mean > LOG_RATIO * least
    ]
    palette = ", ".join(colour for _, colour in _PALETTE)
    chart = [
        "```mermaid",
        f"%%{{init: {{'themeVariables': {{'xyChart': {{'plotColorPalette': '{palette}'}}}}}}}}%%",
        "xychart-beta",
        f'    x-axis "{_strip_markup(axis)}" {start:g} --> {end:g}',
        f'    y-axis "{_strip_markup(graph.unit)}" 0 --> {top:.4g}',
        *(f"    line [{', '.join(f'{y:.4g}' for y in _average_neighbours(ys))}]" for _, ys, _ in drawn),
        "```",
    ]
    words = f"{_plain(graph.title)}. {'; '.join(legend)}." + (f" Far above: {'; '.join(left)}." if left else "")
    return f"### Picture\n\n{words}\n\n" + "\n".join(chart)


def _strip_markup(words: str) -> str:
    return re.sub(r"[^\w ,./%()-]", " ", words)


def _average_neighbours(values: list[float]) -> list[float]:
    """Reduce values to a limited number of points by averaging neighbours."""
    width = -(-len(values) // _POINTS)
    groups = [values[at : at + width] for at in range(0, len(values), width)]
    return [sum(group) / len(group) for group in groups]


@dataclass(frozen=True)
class Note:
    """Annotation at a line of a file."""

    line: int
    title: str
    text: str
    level: Literal["error", "warning"] = "error"


def failure_annotations(outcome: Outcome, experiment_file: str) -> list[Note]:
    """Return the lines of the experiment's text with expectations that failed; reasons of an invalid run at its top."""
    lines = _lines(experiment_file)
    found = [Note(1, "The run is invalid", reason) for reason in ([] if outcome.valid else outcome.reasons)]
    found += [Note(1, "No packets", warning, "warning") for warning in outcome.warnings]
    for each in expected(outcome):
        if not each.met:
            words = f"{each.name} is {each.measured}, expected {each.tolerance}"
            found.append(Note(_value_line(each, lines), f"{each.arm}: outside tolerance", words))
    return found


def _value_line(value: Expected, lines: Mapping[tuple[str, str], int]) -> int:
    return lines.get((value.arm, value.key), lines.get(("", ""), 1))


def _lines(experiment_file: str) -> dict[tuple[str, str], int]:
    """Return the line numbers by arm and metric (or title, for an average), with `("", "")` for that of `compare`."""
    try:
        document = parse_document(experiment_file, "")
    except ExperimentError:
        return {}
    compare = document.data.get("compare") if isinstance(document.data, dict) else None
    if not isinstance(compare, dict):
        return {}
    found = {("", ""): document.key_place(("compare",)).line}
    for key, name in (("expectations", "metric"), ("averages", "title")):
        for index, entry in enumerate(compare.get(key) or ()):
            if isinstance(entry, dict):
                place = document.place(("compare", key, index))
                found.setdefault((str(entry.get("arm")), str(entry.get(name))), place.line)
    return found


def save_text(path: Path, content: bytes, *, more: bool) -> None:
    """Write or append to a file as a whole. Raise `UserError` if that fails; the previous content then stays."""
    with convert_write_errors(path, in_run=False):
        before = path.read_bytes() if more and path.is_file() else b""
    replace(path, before + content, in_run=False)
