"""Comparison of measured with published values, with a verdict."""

from __future__ import annotations

import csv
import json
import math
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from qoslab.analysis import expected_comparison as comparing
from qoslab.analysis import measured_values
from qoslab.analysis.result_files import to_json
from qoslab.analysis.statistics import average, ratio
from qoslab.model.comparison import Comparison, PublishedValue
from qoslab.model.expectations import Expectation
from qoslab.model.units import Duration, Rate
from qoslab.results import CellSummary, tables


def expectation(**keys: object) -> Expectation:
    return Expectation.model_validate_json(json.dumps(keys))


def summary(arm: str, **parameters: str | int) -> CellSummary:
    return CellSummary(arm=arm, parameters=parameters, repetition=1, valid=True)


def metrics_table(*values: tuple[str, int, str, float]) -> pd.DataFrame:
    return tables.frame(
        "metrics",
        [
            {"arm": arm, "repetition": repetition, "metric": metric, "unit": "b/s", "value": value}
            for arm, repetition, metric, value in values
        ],
    ).assign(valid=True)


NAN = pytest.approx(math.nan, nan_ok=True)


def cells_table(*rows: tuple[str, int, int | None, float | None, bool, str | None]) -> pd.DataFrame:
    """Return cells of `rtt.max`: arm, repetition, the parameter `ring` or none, value, validity, reason of a missing
    value.
    """
    table = tables.frame(
        "metrics",
        [
            {"arm": arm, "repetition": number, "cell": f"{place}", "metric": "rtt.max", "unit": "ms"}
            | {"value": value, "missing": missing}
            for place, (arm, number, _, value, _, missing) in enumerate(rows)
        ],
    )
    rings = {f"{place}": {} if row[2] is None else {"ring": row[2]} for place, row in enumerate(rows)}
    return tables.with_parameters(table, rings).assign(valid=[row[4] for row in rows])


class TestMeasured:
    """Tests of values of an arm, or of one over another."""

    rings = cells_table(
        ("a", 1, 2, 20.0, True, None),
        ("a", 2, 2, 23.1, True, None),
        ("a", 3, 2, 21.7, True, None),
        ("a", 1, 1, 10.0, True, None),
        ("a", 2, 1, 10.2, True, None),
        ("a", 3, 1, 19.4, True, None),
        ("a", 1, None, 5.0, True, None),
        ("a", 1, 3, 90.0, False, None),
        ("a", 2, 3, None, True, "R1 was not read"),
        ("a", 1, 4, None, True, "R2 was not read"),
        ("b", 1, 1, 5.0, True, None),
        ("b", 2, 1, 4.0, True, None),
        ("b", 1, 2, 8.0, False, None),
        ("b", 2, 2, 8.5, False, None),
        ("c", 1, 1, 8.0, False, None),
        ("c", 1, 2, None, False, "R1 was not read"),
        ("d", 1, 1, 0.0, True, "nothing was sent"),
        ("d", 2, 1, 1.0, False, None),
        ("e", 1, 1, math.inf, True, None),
        ("e", 2, 1, 3.0, True, None),
    )

    def measured(self, arm: str, **where: int | tuple[int, ...]) -> measured_values.Measured:
        return measured_values.measured_value(self.rings, arm, "rtt.max", where)

    def test_value_is_the_mean_of_medians_by_cell(self) -> None:
        groups = [[20.0, 23.1, 21.7], [10.0, 10.2, 19.4], [5.0]]
        assert self.measured("a") == measured_values.Measured(
            average(groups), trusted=True, excluded=1, missing="R1 was not read; R2 was not read", effect=NAN
        )
        assert self.measured("a").value == pytest.approx((21.7 + 10.2 + 5.0) / 3)

    def test_interval_does_not_depend_on_the_order_of_the_cells(self) -> None:
        late, early = np.random.default_rng(5).exponential(1.0, (2, 20)).tolist()
        rows = [("a", 1, ring, each, True, None) for ring, cell in ((2, late), (1, early)) for each in cell]
        found = measured_values.measured_value(cells_table(*rows), "a", "rtt.max").estimate
        assert found == average([late, early]) == average([early, late])

    def test_parameter_values_select_the_cells(self) -> None:
        assert self.measured("a", ring=1) == measured_values.Measured(
            average([[10.0, 10.2, 19.4]]), True, 0, effect=NAN
        )
        assert self.measured("a", ring=(1, 2)).value == pytest.approx((21.7 + 10.2) / 2)
        assert self.measured("a", ring=9) == measured_values.Measured(None, trusted=False, excluded=0, effect=NAN)
        assert self.measured("a", bucket=1) == measured_values.Measured(None, trusted=False, excluded=0, effect=NAN)
        assert math.isnan(self.measured("a", bucket=1).value)

    def test_invalid_cells_are_shown_if_none_is_valid(self) -> None:
        expected = measured_values.Measured(average([[8.0]]), False, 0, "R1 was not read", math.nan)
        assert str(self.measured("c")) == str(expected)

    def test_table_without_parameters_has_one_cell(self) -> None:
        table = self.rings.drop(columns="matrix.ring")
        assert measured_values.measured_value(table, "b", "rtt.max") == measured_values.Measured(
            average([[5.0, 4.0]]), trusted=True, excluded=2, effect=NAN
        )
        none = table[table["value"].isna()]
        assert measured_values.measured_value(none, "c", "rtt.max") == measured_values.Measured(
            None, trusted=False, excluded=0, missing="R1 was not read", effect=NAN
        )

    def test_table_without_reasons_gives_no_reason(self) -> None:
        found = measured_values.measured_value(self.rings.drop(columns="missing"), "c", "rtt.max")
        expected = measured_values.Measured(average([[8.0]]), False, 0, "1 of 2 cells lack this value", math.nan)
        assert str(found) == str(expected)

    def test_ratio_uses_the_cells_of_both_arms(self) -> None:
        found = self.measured("a/b", ring=(1, 2))
        missing = "only 2 of 6 pairs of cells have this value"
        # As texts: from Python 3.13 on, two estimates with the same nan are not equal.
        assert str(found) == str(
            measured_values.Measured(ratio([[10.0, 10.2]], [[5.0, 4.0]]), True, 2, missing, effect=1.0)
        )
        assert found.value == pytest.approx(10.1 / 4.5)
        assert (found.counted, found.planned, found.is_undecided) == (2, 6, True)

    def test_ratio_is_missing_if_either_arm_lacks_the_value(self) -> None:
        both = "R1 was not read; R2 was not read"
        assert self.measured("a/c").trusted is self.measured("c/a").trusted is False
        assert (self.measured("a/d").missing, self.measured("d/a").missing) == (
            f"{both}; nothing was sent; only 1 of 10 pairs of cells have this value",
            f"nothing was sent; {both}; only 1 of 10 pairs of cells have this value",
        )
        assert self.measured("c/c").missing == "R1 was not read; only 1 of 2 pairs of cells have this value", (
            "a reason stands once"
        )
        assert (self.measured("a/d").excluded, self.measured("a/a").excluded) == (2, 2)

    def test_ratio_without_both_values_or_over_zero_is_missing(self) -> None:
        lacking = measured_values.Measured(None, False, 2, "only 0 of 4 pairs of cells have this value", NAN)
        assert self.measured("b/none") == lacking
        assert self.measured("none/b") == lacking
        few = "nothing was sent; only 1 of 4 pairs of cells have this value"
        assert self.measured("b/d", ring=1) == measured_values.Measured(None, True, 1, few.replace("4", "2"), NAN)
        assert self.measured("b/d") == measured_values.Measured(None, True, 3, few, NAN)
        none = "R1 was not read; only 0 of 2 pairs of cells have this value"
        assert self.measured("c/none") == measured_values.Measured(None, False, 0, none, NAN)

    def test_effect_needs_two_finite_values_of_each_arm(self) -> None:
        assert self.measured("b/a", ring=1).effect == -1.0
        one = measured_values.Measured(
            ratio([[5.0]], [[8.0]]), False, 0, "only 1 of 2 pairs of cells have this value", math.nan
        )
        assert str(self.measured("b/c", ring=1)) == str(one)
        assert self.measured("c/b", ring=1).effect == NAN
        assert (self.measured("e/b", ring=1).effect, self.measured("b/e", ring=1).effect) == (NAN, NAN)

    def test_measured_value_has_the_comparison_columns(self) -> None:
        found = self.measured("b")
        assert comparing.measured_columns(found) == {
            "measured": 4.5,
            # Student's t of one degree of freedom, 12.7062, times the standard error 0.5.
            "low": pytest.approx(4.5 - 6.35310, abs=1e-5),
            "high": pytest.approx(4.5 + 6.35310, abs=1e-5),
            "n": 2,
            "over": "repetitions",
            "excluded": 2,
            "missing": "",
            "effect": NAN,
        }
        assert comparing.measured_columns(self.measured("c", ring=2)) == {
            "measured": NAN,
            "low": NAN,
            "high": NAN,
            "n": 0,
            "over": "",
            "excluded": 0,
            "missing": "R1 was not read",
            "effect": NAN,
        }


class TestCompare:
    measured = metrics_table(
        ("shaped", 1, "goodput.sum", 950_000.0),
        ("shaped", 2, "goodput.sum", 970_000.0),
        ("policed", 1, "goodput.sum", 800_000.0),
    )
    published = (
        PublishedValue("shaped", "goodput.sum", "b/s", 962_000.0, ""),
        PublishedValue("policed", "goodput.sum", "b/s", 841_000.0, ""),
    )

    def test_verdicts_follow_from_expected_values(self) -> None:
        table = comparing.compare(
            "The article",
            self.measured,
            self.published,
            [
                expectation(arm="shaped", metric="goodput.sum", between=["960 kb/s", "970 kb/s"]),
                expectation(arm="shaped", metric="goodput.sum", at_most="959 kb/s"),
                expectation(arm="shaped/policed", metric="goodput.sum", equals=1.1875),
                expectation(arm="policed", metric="police.bc", equals="31250 B"),
            ],
        )
        assert list(table["verdict"]) == ["within", "outside", "within", "outside", "informative"]
        assert list(table["measured"])[:3] == pytest.approx([960_000, 960_000, 950 / 800])
        assert math.isnan(table["measured"][3]), "what was not measured is not met"
        assert math.isnan(table["published"][2]) and table["published"][0] == 962_000
        assert table["tolerance"][0] == "960 kb/s to 970 kb/s"
        assert table.iloc[4][["arm", "verdict", "tolerance"]].tolist() == ["policed", "informative", ""]

    def test_shown_values_are_informative_unless_expected_or_published(self) -> None:
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

    def rows(self, *args: object, **keys: object) -> list[dict[str, object]]:
        return comparing.compare("A", self.measured, *args, **keys).to_dict("records")  # type: ignore[arg-type]

    def test_published_value_without_expectation_has_a_row(self) -> None:
        value = PublishedValue("shaped/policed", "goodput.sum", "ratio", 1.25, "", remark="Of another line.")
        assert self.rows([value], [], lab="simulated") == [
            {
                "article": "A",
                "lab": "simulated",
                "arm": "shaped/policed",
                "where": "",
                "metric": "goodput.sum",
                "unit": "ratio",
                "predicted": NAN,
                "published": 1.25,
                "measured": 950 / 800,
                "low": NAN,
                "high": NAN,
                "n": 1,
                "over": "",
                "excluded": 0,
                "missing": "only 1 of 2 pairs of cells have this value",
                "effect": NAN,
                "tolerance": "",
                "reason": "",
                "verdict": "informative",
                "reproduction": "",
                "explanation": "Of another line.",
            }
        ]

    def test_expectation_without_a_published_value_has_a_row(self) -> None:
        wanted = expectation(
            arm="policed", metric="goodput.sum", at_least="1 b/s", reason="It passes.", fitted="The bucket."
        )
        (row,) = self.rows([], [wanted])
        texts = ("unit", "tolerance", "reason", "verdict", "reproduction", "explanation")
        assert [row[text] for text in texts] == ["b/s", "at least 1 b/s", "It passes.", "within", "", "The bucket."]
        assert (row["predicted"], row["published"], row["measured"]) == (NAN, NAN, 800_000)
        assert isinstance(row["predicted"], float)
        (row,) = self.rows([], [], show={"policed": ["goodput.sum"]})
        assert [row[text] for text in texts] == ["b/s", "", "", "informative", "", ""]

    def test_remark_is_omitted_if_there_is_an_expectation(self) -> None:
        value = PublishedValue("policed", "goodput.sum", "b/s", 841_000.0, "", remark="Nothing is expected.")
        (row,) = self.rows([value], [expectation(arm="policed", metric="goodput.sum", at_least="1 b/s")])
        assert (row["reproduction"], row["explanation"]) == ("as predicted", "")

    def test_published_value_applies_to_its_named_cells(self) -> None:
        value = PublishedValue("b", "rtt.max", "ms", 7.0, "", {"ring": 1})
        table = comparing.compare("", TestMeasured.rings, [value], [])
        assert table[["where", "measured", "excluded"]].values.tolist() == [["ring = 1", 4.5, 0]]

    def test_own_reference_is_reported_but_not_counted_as_published(self) -> None:
        own = PublishedValue("policed", "goodput.sum", "b/s", 812_000.0, "", kind="own reference")
        (row,) = self.rows([own], [expectation(arm="policed", metric="goodput.sum", at_least="900 kb/s")])
        assert (row["published"], row["verdict"], row["reproduction"]) == (NAN, "outside", "own reference")
        assert row["explanation"] == "Reference measurement, not published: 812 kb/s."

    def test_rows_are_in_the_order_of_the_arms_and_ratios_last(self) -> None:
        names = ["shaped/policed", "policed", "shaped"]
        wanted = [
            expectation(arm=arm, metric="goodput.sum", at_least=least)
            for arm, least in zip(names, (1, "1 b/s", "1 b/s"), strict=True)
        ]
        assert [row["arm"] for row in self.rows([], wanted)] == names
        ordered = self.rows([], wanted, arms=["shaped", "policed"])
        assert [row["arm"] for row in ordered] == ["shaped", "policed", "shaped/policed"]

    def test_json_is_indented_and_keeps_non_ascii_letters(self) -> None:
        table = pd.DataFrame([{"article": "Größe", "n": 1, "low": math.nan, "high": math.inf, "effect": 0.5}])
        assert to_json(table) == (
            '[\n  {\n    "article": "Größe",\n    "n": 1,\n    "low": null,\n    "high": null,\n'
            '    "effect": 0.5\n  }\n]\n'
        )

    def test_files_have_the_columns_and_no_nan(self) -> None:
        table = comparing.compare(
            "A, b", self.measured, self.published, [expectation(arm="policed", metric="police.bc", equals="31250 B")]
        )
        rows = list(csv.DictReader(StringIO(table.to_csv(index=False))))
        assert list(rows[0]) == comparing.COLUMNS
        assert rows[0]["measured"] == "" and rows[0]["article"] == "A, b"
        objects = json.loads(to_json(table), parse_constant=pytest.fail)
        assert objects[0]["measured"] is None and objects[1]["measured"] == 960_000


class TestPredictions:
    """Tests of predicted, published and measured values, with a verdict on each of the last two."""

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

    def table(self, *published: PublishedValue, **changes: object) -> pd.DataFrame:
        first, *rest = self.wanted.expectations
        wanted = self.wanted.model_copy(update={"expectations": (first.model_copy(update=changes), *rest)})
        expectations = measured_values.Planned(self.cells).expand_expectations_of_cells(wanted, Duration.parse("30 s"))
        return comparing.compare("", self.measured, published, expectations)

    def test_expectation_has_a_row_for_each_parameter_combination(self) -> None:
        table = self.table()
        assert list(table["where"]) == ["line = 128 kb/s, ring = 1", "line = 128 kb/s, ring = 2", ""]
        assert list(table["predicted"][:2]) == pytest.approx([32.875, 45.8125])
        assert list(table["tolerance"][:2]) == ["30.88 ms to 34.88 ms", "43.81 ms to 47.81 ms"]
        assert list(table["verdict"]) == ["within", "outside", "informative"], "of the last nothing was measured"
        assert list(table["reproduction"]) == ["", "", ""]

    def test_published_value_is_compared_with_the_prediction(self) -> None:
        where = {"line": "128 kb/s", "ring": 2}
        table = self.table(PublishedValue("cbr", "rtt.max", "ms", 47.0, "", where))
        assert table.iloc[1][["verdict", "reproduction", "explanation"]].tolist() == ["outside", "as predicted", ""]
        table = self.table(PublishedValue("cbr", "rtt.max", "ms", 52.0, "", where))
        assert table.iloc[1][["reproduction", "explanation"]].tolist() == ["not reproduced", "Slow routers."]
        table = self.table(PublishedValue("cbr", "rtt.max", "ms", 47.0, "", where), fitted="The router's time.")
        assert table.iloc[1][["reproduction", "explanation"]].tolist() == ["fitted", "The router's time."]

    def test_printed_value_is_exact_to_its_last_digit(self) -> None:
        where = {"line": "128 kb/s", "ring": 2}
        assert (
            self.table(PublishedValue("cbr", "rtt.max", "ms", 48.0, "", where))["reproduction"][1] == "not reproduced"
        )
        # 47.8125 ms is the maximum: 48 may be that value if it is known to half of 0.375, but not if it is known more
        # precisely.
        for resolution, text in ((0.5, "as predicted"), (0.375, "as predicted"), (0.374, "not reproduced")):
            value = PublishedValue("cbr", "rtt.max", "ms", 48.0, "", where, resolution=resolution)
            assert self.table(value)["reproduction"][1] == text

    def test_expectation_of_an_unplanned_cell_is_omitted(self) -> None:
        planned = measured_values.Planned(self.cells)
        assert planned.has(["cbr", "other"], {}) and planned.has(["cbr"], {"ring": (2, 3)})
        assert not planned.has(["cbr", "absent"], {}) and not planned.has(["cbr"], {"ring": 3})
        absent = Comparison(expectations=(expectation(arm="absent", metric="rtt.max", at_most="1 s"),))
        assert list(planned.expand_expectations_of_cells(absent, Duration.parse("30 s"))) == []

    def test_expressions_take_the_traffic_time(self) -> None:
        wanted = Comparison(expectations=(expectation(arm="other", metric="rtt.max", at_most="$(duration / 10)"),))
        (found,) = measured_values.Planned(self.cells).expand_expectations_of_cells(wanted, Duration.parse("30 s"))
        assert found.at_most == Duration.parse("3 s")

    def test_impossible_value_is_an_error_of_the_analysis(self) -> None:
        table = self.table(possible=("$(wait)", "$(wait + 8 ms)"))
        assert list(table["verdict"]) == ["within", "impossible", "informative"]
        assert comparing.impossible(table) == [
            "cbr: rtt.max with line = 128 kb/s, ring = 2 came out as 52 ms, an impossible value: an error in the "
            "analysis or in a measurement"
        ]
        everywhere = expectation(arm="cbr", metric="rtt.max", at_most="1 s", possible=["0 ms", "41 ms"])
        assert comparing.impossible(comparing.compare("", self.measured, [], [everywhere])) == [
            "cbr: rtt.max came out as 42 ms, an impossible value: an error in the analysis or in a measurement"
        ]

    def test_reproduced_values_are_counted(self) -> None:
        values = [
            PublishedValue("cbr", "rtt.max", "ms", value, "", {"line": "128 kb/s", "ring": ring})
            for ring, value in ((1, 34.0), (2, 47.0))
        ]
        table = self.table(*values, PublishedValue("other", "rtt.min", "ms", 1.0, ""))
        assert comparing.reproduction_sentence(table) == (
            "1 of 3 published values reproduced; 1 agrees with the prediction, but not with this run; "
            "1 without a prediction."
        )

    @pytest.mark.parametrize(
        ("kinds", "message"),
        [
            ("", ""),
            ("m", "1 of 1 published values reproduced."),
            ("mm", "2 of 2 published values reproduced."),
            ("n", "0 of 1 published values reproduced; 1 contradicts the prediction."),
            ("nn", "0 of 2 published values reproduced; 2 contradict the prediction."),
            ("oi", "0 of 2 published values reproduced; 2 agree with the prediction, but not with this run."),
            ("u", "0 of 1 published values reproduced; 1 could not be decided by this run."),
            ("uu", "0 of 2 published values reproduced; 2 could not be decided by this run."),
            ("f", "0 of 1 published values reproduced; 1 depends on a fitted constant."),
            ("ff", "0 of 2 published values reproduced; 2 depend on a fitted constant."),
            (
                "mmnouf-",
                "2 of 7 published values reproduced; 1 contradicts the prediction; "
                "1 agrees with the prediction, but not with this run; "
                "1 could not be decided by this run; 1 depends on a fitted constant; "
                "1 without a prediction.",
            ),
        ],
    )
    def test_reproduced_values_are_summarized_in_a_sentence(self, kinds: str, message: str) -> None:
        became = {
            "m": ("as predicted", "within"),
            "o": ("as predicted", "outside"),
            "i": ("as predicted", "impossible"),
            "u": ("as predicted", "informative"),
            "n": ("not reproduced", "within"),
            "f": ("fitted", "within"),
            "-": ("", "informative"),
        }
        rows = [(1.0, *became[kind]) for kind in kinds]
        # Unpublished values do not count.
        rows += [(math.nan, *each) for each in became.values()]
        assert (
            comparing.reproduction_sentence(pd.DataFrame(rows, columns=["published", "reproduction", "verdict"]))
            == message
        )
