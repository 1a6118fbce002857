"""Measured beside published figures, with a verdict."""

from __future__ import annotations

import csv
import json
import math
from io import StringIO

import pandas as pd
import pytest

from qoslab.analysis import compare as comparing
from qoslab.model.comparison import Comparison, PublishedFigure
from qoslab.model.expectations import Expectation
from qoslab.results import CellSummary, tables
from qoslab.units import Duration, Rate


def expectation(**keys: object) -> Expectation:
    return Expectation.model_validate_json(json.dumps(keys))


def summary(arm: str, **parameters: str | int) -> CellSummary:
    return CellSummary(arm=arm, parameters=parameters, repetition=1, valid=True)


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


class TestPredictions:
    """Predicted, published and measured, with a verdict on each of the last two."""

    cells = [summary("cbr", line="128 kb/s", ring=ring) for ring in (1, 2)] + [summary("other")]
    measured = tables.with_parameters(
        metrics_table(("cbr", 1, "rtt.max", 32.0), ("cbr", 1, "rtt.max", 52.0)).assign(cell=["one", "two"]),
        {"one": {"line": Rate(128_000), "ring": 1}, "two": {"line": Rate(128_000), "ring": 2}},
    )
    wanted = Comparison.model_validate_json(
        json.dumps(
            {
                "quantities": {"packet": "207 B", "wait": "$((ring + 1) * packet / line)"},
                "expectations": [
                    {
                        "arm": "cbr",
                        "metric": "rtt.max",
                        "each": ["line"],
                        "predicted": "$(wait + 7 ms)",
                        "within": "2 ms",
                        "reason": "The ring and the packet on the line.",
                        "explained": "Slow routers.",
                    },
                    {"arm": "other", "metric": "rtt.max", "at_most": "1 s"},
                ],
            }
        )
    )

    def table(self, *published: PublishedFigure, **changes: object) -> pd.DataFrame:
        first, *rest = self.wanted.expectations
        wanted = self.wanted.model_copy(update={"expectations": (first.model_copy(update=changes), *rest)})
        expectations = comparing.Planned(self.cells).expected(wanted, Duration.parse("30 s"))
        return comparing.compare("", self.measured, published, expectations)

    def test_one_for_each_combination_that_its_expression_takes(self) -> None:
        table = self.table()
        assert list(table["where"]) == ["line = 128 kb/s, ring = 1", "line = 128 kb/s, ring = 2", ""]
        assert list(table["predicted"][:2]) == pytest.approx([32.875, 45.8125])
        assert list(table["tolerance"][:2]) == ["30.88 ms to 34.88 ms", "43.81 ms to 47.81 ms"]
        assert list(table["verdict"]) == ["within", "outside", "informative"], "of the last nothing was measured"
        assert list(table["publication"]) == ["", "", ""]

    def test_the_publication_is_judged_by_the_prediction_and_not_by_what_was_measured(self) -> None:
        where = {"line": "128 kb/s", "ring": 2}
        table = self.table(PublishedFigure("cbr", "rtt.max", "ms", 47.0, "", where))
        assert table.iloc[1][["verdict", "publication", "explanation"]].tolist() == ["outside", "as predicted", ""]
        table = self.table(PublishedFigure("cbr", "rtt.max", "ms", 52.0, "", where))
        assert table.iloc[1][["publication", "explanation"]].tolist() == ["not reproduced", "Slow routers."]
        table = self.table(PublishedFigure("cbr", "rtt.max", "ms", 47.0, "", where), fitted="The router's time.")
        assert table.iloc[1][["publication", "explanation"]].tolist() == ["fitted", "The router's time."]

    def test_a_print_is_known_to_its_last_digit(self) -> None:
        where = {"line": "128 kb/s", "ring": 2}
        assert (
            self.table(PublishedFigure("cbr", "rtt.max", "ms", 48.0, "", where))["publication"][1] == "not reproduced"
        )
        coarse = PublishedFigure("cbr", "rtt.max", "ms", 48.0, "", where, resolution=1.0)
        assert self.table(coarse)["publication"][1] == "as predicted"

    def test_what_cannot_be_is_a_mistake_of_the_analysis(self) -> None:
        table = self.table(possible=("$(wait)", "$(wait + 8 ms)"))
        assert list(table["verdict"]) == ["within", "impossible", "informative"]
        assert comparing.impossible(table) == [
            "cbr: rtt.max with line = 128 kb/s, ring = 2 came out as 52 ms, which cannot be: a mistake of the analysis "
            "or of a measurement"
        ]

    def test_how_many_are_reproduced(self) -> None:
        figures = [
            PublishedFigure("cbr", "rtt.max", "ms", value, "", {"line": "128 kb/s", "ring": ring})
            for ring, value in ((1, 34.0), (2, 47.0))
        ]
        table = self.table(*figures, PublishedFigure("other", "rtt.min", "ms", 1.0, ""))
        said = "Of 3 published figures 1 is reproduced, 1 is as predicted but not met here, of 1 nothing is predicted."
        assert comparing.reproduced(table) == said
