"""Measured beside published figures, with a verdict."""

from __future__ import annotations

import csv
import json
import math
from io import StringIO

import pandas as pd
import pytest

from qoslab.analysis import compare as comparing
from qoslab.model.comparison import Expectation, PublishedFigure
from qoslab.results import tables


def expectation(**keys: object) -> Expectation:
    return Expectation.model_validate_json(json.dumps(keys))


def metrics_table(*figures: tuple[str, int, str, float]) -> pd.DataFrame:
    return tables.frame(
        "metrics",
        [
            {"arm": arm, "repetition": repetition, "metric": metric, "unit": "b/s", "value": value}
            for arm, repetition, metric, value in figures
        ],
    ).assign(valid=True)


class TestCompare:
    measured = metrics_table(
        ("shaped", 1, "goodput.sum", 950_000.0),
        ("shaped", 2, "goodput.sum", 970_000.0),
        ("policed", 1, "goodput.sum", 800_000.0),
    )
    published = (
        PublishedFigure("shaped", "goodput.sum", "b/s", 962_000.0, ""),
        PublishedFigure("policed", "goodput.sum", "b/s", 841_000.0, ""),
    )

    def test_verdicts(self) -> None:
        table = comparing.compare(
            "The article",
            self.measured,
            self.published,
            [
                expectation(arm="shaped", metric="goodput.sum", between=["960 kb/s", "970 kb/s"]),
                expectation(arm="shaped", metric="goodput.sum", at_most="959 kb/s"),
                expectation(arm="shaped/policed", metric="goodput.sum", equals=1.2),
                expectation(arm="policed", metric="police.bc", equals="31250 B"),
            ],
        )
        assert list(table["verdict"]) == ["within", "outside", "within", "outside", "informative"]
        assert list(table["measured"])[:3] == pytest.approx([960_000, 960_000, 1.2])
        assert math.isnan(table["measured"][3]), "what was not measured is not met"
        assert math.isnan(table["published"][2]) and table["published"][0] == 962_000
        assert table["tolerance"][0] == "960 kb/s to 970 kb/s"
        assert table.iloc[4][["arm", "verdict", "tolerance"]].tolist() == ["policed", "informative", ""]

    def test_figures_to_show_are_informative_unless_expected_or_published(self) -> None:
        table = comparing.compare(
            "The article",
            self.measured,
            self.published[:1],
            [expectation(arm="shaped", metric="goodput.sum", at_least="1 b/s")],
            show={"shaped": ["goodput.sum"], "policed": ["goodput.sum", "police.bc"]},
        )
        rows = table[["arm", "metric", "unit", "verdict"]].values.tolist()
        assert rows == [
            ["shaped", "goodput.sum", "b/s", "within"],
            ["policed", "goodput.sum", "b/s", "informative"],
            ["policed", "police.bc", "B", "informative"],
        ]

    def test_files_have_the_columns_and_no_nan(self) -> None:
        table = comparing.compare(
            "A, b", self.measured, self.published, [expectation(arm="policed", metric="police.bc", equals="31250 B")]
        )
        rows = list(csv.DictReader(StringIO(comparing.to_csv(table))))
        assert list(rows[0]) == comparing.COLUMNS
        assert rows[0]["measured"] == "" and rows[0]["article"] == "A, b"
        objects = json.loads(comparing.to_json(table), parse_constant=pytest.fail)
        assert objects[0]["measured"] is None and objects[1]["measured"] == 960_000
