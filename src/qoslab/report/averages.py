"""Report sections for averages over cells and for comparisons of two parameter values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from qoslab.analysis.averages import cell_count_text, claim_text, score
from qoslab.analysis.statistics import average
from qoslab.analysis.verdicts import OUTSIDE
from qoslab.model.comparison import Pair
from qoslab.model.experiment import Experiment
from qoslab.model.expressions import show_value
from qoslab.model.metrics import Unit
from qoslab.report import text
from qoslab.results import CellSummary


@dataclass(frozen=True)
class AverageRow:
    """An average over some cells."""

    title: str
    about: str
    """Arm, statistic, metric, and description of the cells."""
    reason: str
    cells: str
    published: str
    measured: str
    interval: str
    difference: str
    lowest: str
    highest: str
    tolerance: str
    verdict: str
    reproduction: str
    explanation: str


@dataclass(frozen=True)
class PairRow:
    """Result for a value of another parameter, or for a pair of cells."""

    name: str
    counts: list[str]
    """Pairs won, tied and lost; for a single pair its result."""
    first: str
    second: str
    difference: str
    folders: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class PairSection:
    """Comparison of two values of a parameter."""

    anchor: str
    title: str
    sentence: str
    first: str
    second: str
    tables: list[tuple[str, list[PairRow]]]
    """Tables by varying parameter."""
    pairs: list[PairRow]


def average_rows(averages: pd.DataFrame) -> list[AverageRow]:
    """Return the rows of the table `averages`."""
    return [_average_row(row) for row in averages.to_dict("records")]


def _average_row(row: dict[Any, Any]) -> AverageRow:
    unit = row["unit"]
    about = f"{row['arm']}: {row['statistic']} of {row['metric']}"
    about += "".join(f", {words}" for words in (row["each"], row["condition"]) if words)

    def value_of(key: str) -> str:
        return text.value_text(_number(row[key]), unit)

    def extreme(name: str) -> str:
        if math.isnan(_number(row[name])):
            return text.NONE
        return value_of(name) + (f" ({text.bind_unit(row[name + '_cell'])})" if row[name + "_cell"] else "")

    interval = ""
    if not math.isnan(_number(row["low"])):
        interval = f"95 % interval {value_of('low')} to {value_of('high')} over {row['over']}"
    return AverageRow(
        title=row["title"],
        about=text.bind_unit(about),
        reason=row["reason"],
        cells=cell_count_text(row),
        published=value_of("published"),
        measured=value_of("value"),
        interval=interval,
        difference=text.difference(_number(row["value"]), _number(row["published"]), unit),
        lowest=extreme("lowest"),
        highest=extreme("highest"),
        tolerance=text.bind_unit(row["tolerance"]),
        verdict=row["verdict"],
        reproduction=row["reproduction"] or "",
        explanation=row["explanation"] or "",
    )


def _number(value: Any) -> float:
    return math.nan if pd.isna(value) else float(value)


def failed_average_texts(averages: pd.DataFrame) -> list[str]:
    """Return descriptions of averages out of bounds."""
    return [
        f"{row.title} ({row.about}): {row.measured}, lowest cell {row.lowest}, highest {row.highest}, "
        f"expected {row.tolerance}"
        for row in average_rows(averages[averages["verdict"] == OUTSIDE])
    ]


def pair_sections(experiment: Experiment, pairs: pd.DataFrame, cells: tuple[CellSummary, ...]) -> list[PairSection]:
    """Return a section for each pair of values with comparable cells."""
    wanted = experiment.compare.pairs if experiment.compare else ()
    sections = []
    for number, pair in enumerate(wanted, start=1):
        mine = pairs[pairs["title"] == pair.title]
        if len(mine):
            sections.append(_pair_section(pair, mine, cells, f"pair-{number}"))
    return sections


def _pair_section(pair: Pair, pairs: pd.DataFrame, cells: tuple[CellSummary, ...], anchor: str) -> PairSection:
    unit = pair.unit
    first, second = str(pairs["first"].iloc[0]), str(pairs["second"].iloc[0])
    won, equal, lost = score(pairs)
    sentence = (
        f"By {pair.metric} ({pair.better} is better) {first} won {won}, lost {lost} and drew {equal} "
        f"of {len(pairs)} comparisons with {second}, in pairs of otherwise identical cells. A draw is a difference "
        f"of at most {pair.equal_within}, or one with a 95 % interval that contains 0."
    )
    if statement := claim_text(pairs):
        sentence += f" {statement[0].upper()}{statement[1:]}."
    sentence += f" Fitted: {pair.fitted}" if pair.fitted else ""
    by_folder = {cell.folder: cell.values for cell in cells}
    values = [by_folder.get(folder, {}) for folder in pairs["first_folder"]]
    tables = []
    for name in dict.fromkeys(name for each in values for name in each if name != pair.parameter):
        own = pd.Series([show_value(each[name]) if name in each else "" for each in values], index=pairs.index)
        if own.nunique() > 1:
            tables.append((name, [_score_row(str(value), pairs[own == value], unit) for value in own.unique()]))
    words = {"first": f"{first} won", "second": f"{second} won", "equal": "equal"}
    listed = [
        PairRow(
            text.bind_unit(row["cell"]),
            [words[row["winner"]]],
            text.value_text(row["first_value"], unit),
            text.value_text(row["second_value"], unit),
            _share(row["difference"]),
            (row["first_folder"], row["second_folder"]),
        )
        for row in pairs.sort_values("difference").to_dict("records")
    ]
    return PairSection(anchor, pair.title, sentence, first, second, tables, listed)


def _score_row(value: str, pairs: pd.DataFrame, unit: Unit) -> PairRow:
    above, below = (average([[each] for each in pairs[name]]).value for name in ("first_value", "second_value"))
    counts = [str(count) for count in score(pairs)]
    share = above / below - 1 if below else math.nan
    return PairRow(
        text.bind_unit(value), counts, text.value_text(above, unit), text.value_text(below, unit), _share(share)
    )


def _share(share: float) -> str:
    if not math.isfinite(share):
        return text.NONE
    return f"{share * 100:+.1f}".replace("-", "\N{MINUS SIGN}") + "\N{NO-BREAK SPACE}%"
