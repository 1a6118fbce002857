"""Averages over some cells of a sweep, and two values of a parameter against each other: values, text, report."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from sample_run import EXPERIMENT, STARTED, make_run

from qoslab.analysis import Outcome, analyse
from qoslab.analysis.averages import averages_table, cell_count_text, claim_text, pairs_table, scores_table
from qoslab.analysis.expected_comparison import compare
from qoslab.analysis.statistics import average, difference
from qoslab.cli.result_table import print_outcome
from qoslab.errors import ExperimentError
from qoslab.model.comparison import Average, Comparison, Pair
from qoslab.model.experiment import Experiment
from qoslab.report.averages import average_rows, pair_sections
from qoslab.report.html import to_html
from qoslab.report.notes import notes
from qoslab.report.page import build_page, verdict
from qoslab.results import CellSummary, RunFolder
from qoslab.schema import load_sweep

LINKS, PIRS = ("2 Mb/s", "10 Mb/s"), ("1 Mb/s", "2 Mb/s", "5 Mb/s")
FIGURES = {"dynamic": 0.95, "default": 0.9}


def sweep_tables(*, repetitions: int = 1, invalid: str = "") -> tuple[pd.DataFrame, list[CellSummary]]:
    """Return six scenarios for each of two policers; the dynamic one is worse if the PIR is 1 Mb/s."""
    cells, rows = [], []
    for policer, share in FIGURES.items():
        for link in LINKS:
            for pir in PIRS:
                for repetition in range(1, repetitions + 1):
                    cell = CellSummary(
                        arm="grid",
                        parameters={"policer": policer, "link": link, "pir": pir},
                        repetition=repetition,
                        valid=True,
                    )
                    cell = cell.model_copy(
                        update={"folder": f"cells/{cell.name}", "valid": not invalid or invalid not in cell.name}
                    )
                    cells.append(cell)
                    value = share - (0.1 if policer == "dynamic" and pir == "1 Mb/s" else 0.0) + repetition / 1000
                    value = 0.3 if (link, pir) == ("2 Mb/s", "5 Mb/s") else value
                    row = {"arm": "grid", "cell": cell.name, "repetition": repetition, "metric": "goodput.of_pir"}
                    rows.append(row | {"value": value})
    return pd.DataFrame(rows), cells


def make_average(**keys: object) -> Average:
    entry = {"title": "T", "arm": "grid", "metric": "goodput.of_pir", **keys}
    return Average.model_validate_json(json.dumps(entry))


def make_pair(**keys: object) -> Pair:
    entry = {
        "title": "Static or dynamic",
        "arm": "grid",
        "metric": "goodput.of_pir",
        "parameter": "policer",
        "values": ["dynamic", "default"],
        **keys,
    }
    return Pair.model_validate_json(json.dumps(entry))


class TestAverages:
    def test_average_per_policer_uses_the_selected_cells(self) -> None:
        wanted = [make_average(each=["policer"]), make_average(condition="pir <= link", each=["policer"])]
        found = averages_table(wanted, *sweep_tables())
        assert list(found["each"]) == ["policer = dynamic", "policer = default"] * 2
        assert list(found["cells"]) == [6, 6, 5, 5]
        assert list(found["value"]) == pytest.approx([4.855 / 6, 4.805 / 6, 0.911, 0.901])
        assert set(found["verdict"]) == {"informative"}
        assert found["lowest_cell"].iloc[2] == "link = 2 Mb/s, pir = 1 Mb/s"

    def test_verdict_follows_bounds_of_average_and_worst_cell(self) -> None:
        condition = "pir <= link and policer == 'dynamic'"
        wanted = [
            make_average(condition=condition, at_least="91 %", published="92 %"),
            make_average(condition=condition, at_least="92 %"),
            make_average(condition=condition, at_least="91 %", worst_at_least="86 %"),
            make_average(condition=condition, at_most="92 %", worst_at_most="95.1 %"),
        ]
        found = averages_table(wanted, *sweep_tables())
        assert list(found["verdict"]) == ["within", "outside", "outside", "within"]
        assert found["published"].iloc[0] == 0.92
        assert found["tolerance"].iloc[2] == "at least 91 %, each cell at least 86 %"

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"at_least": "90 %"}, ("", "")),
            ({"at_least": "90 %", "fitted": "Our constants."}, ("", "Our constants.")),
            ({"published": "92 %"}, ("", "")),
            ({"published": "92 %", "fitted": "Our constants."}, ("fitted", "Our constants.")),
            ({"published": "92 %", "at_least": "91 %", "worst_at_least": "95 %"}, ("as predicted", "")),
            ({"published": "92 %", "at_most": "93 %", "worst_at_most": "91 %"}, ("as predicted", "")),
            ({"published": "92 %", "at_least": "91 %", "fitted": "Our constants."}, ("fitted", "Our constants.")),
            ({"published": "92 %", "at_least": "93 %", "explained": "Why."}, ("not reproduced", "Why.")),
        ],
    )
    def test_published_average_is_compared_with_the_prediction(
        self, keys: dict[str, str], message: tuple[str, str]
    ) -> None:
        found = averages_table([make_average(**keys)], *sweep_tables()).iloc[0]
        assert (found["reproduction"], found["explanation"]) == message

    def test_invalid_cells_are_omitted_and_counted(self) -> None:
        metrics, cells = sweep_tables(invalid="policer=default,link=2Mbps,pir=5Mbps")
        found = averages_table([make_average(condition="policer == 'default'", at_least="90 %")], metrics, cells)
        assert (found["cells"].iloc[0], found["excluded"].iloc[0]) == (5, 1)
        assert found["value"].iloc[0] == pytest.approx(0.901)
        metrics, cells = sweep_tables(invalid="grid")
        found = averages_table([make_average(at_least="90 %")], metrics, cells)
        assert found["verdict"].iloc[0] == "informative" and found["excluded"].iloc[0] == 12
        assert pd.isna(found["value"].iloc[0])

    def test_interval_is_over_repetitions_if_there_are_any(self) -> None:
        wanted = [make_average(condition="pir <= link")]
        assert averages_table(wanted, *sweep_tables())["over"].iloc[0] == "cells"
        found = averages_table(wanted, *sweep_tables(repetitions=3)).iloc[0]
        assert found["over"] == "repetitions"
        assert found["low"] <= found["value"] <= found["high"] and found["high"] - found["low"] < 0.003

    @pytest.mark.parametrize("statistic", ["mean", "median"])
    def test_average_can_be_the_median(self, statistic: str) -> None:
        found = averages_table(
            [make_average(statistic=statistic, condition="policer == 'default'")], *sweep_tables()
        ).iloc[0]
        assert found["value"] == pytest.approx({"mean": (0.901 * 5 + 0.3) / 6, "median": 0.901}[statistic])
        assert found["low"] <= found["value"] <= found["high"]

    def test_median_over_repeated_groups_has_an_interval(self) -> None:
        found = average([[1.0, 2.0, 3.0], [10.0], [4.0, 6.0, 8.0]], statistic="median")
        # Of the middle group: Student's t with two degrees of freedom, times the standard error of its median.
        half = 4.302653 * (4 * math.pi / 2 / 3.47) ** 0.5
        assert (found.value, found.low, found.high) == pytest.approx((6, 6 - half, 6 + half), rel=1e-5)


class TestPairs:
    def test_pairs_differ_in_one_parameter_only(self) -> None:
        found = pairs_table([make_pair(condition="pir < link")], *sweep_tables())
        assert list(found["cell"]) == [
            f"link = {link}, pir = {pir}"
            for link in LINKS
            for pir in PIRS
            if (link, pir) in (("2 Mb/s", "1 Mb/s"),) or link == "10 Mb/s"
        ]
        assert list(found["winner"]) == ["second", "second", "first", "first"]
        assert list(pairs_table([make_pair(better="lower")], *sweep_tables())["winner"])[:3] == [
            "first",
            "second",
            "equal",
        ]

    def test_small_difference_is_a_draw(self) -> None:
        found = pairs_table([make_pair(equal_within="6 %")], *sweep_tables())
        assert set(found["winner"]) == {"equal"}

    def test_difference_within_its_interval_is_a_draw(self) -> None:
        metrics, cells = sweep_tables(repetitions=3)
        noisy = metrics["cell"].str.contains("10Mbps,pir=2Mbps") & metrics["cell"].str.endswith("/3")
        metrics.loc[noisy, "value"] += [-0.4, 0.3]
        found = pairs_table([make_pair()], metrics, cells).set_index("cell")
        assert found.loc["link = 10 Mb/s, pir = 2 Mb/s", "winner"] == "equal"
        assert found.loc["link = 10 Mb/s, pir = 5 Mb/s", "winner"] == "first"

    def test_cell_without_a_counterpart_has_no_pair(self) -> None:
        metrics, cells = sweep_tables()
        assert pairs_table([make_pair()], metrics, [cell for cell in cells if "dynamic" in cell.name]).empty
        assert len(pairs_table([make_pair()], *sweep_tables(invalid="policer=default,link=2Mbps"))) == 3


class TestJudgedPairs:
    @pytest.mark.parametrize(
        ("keys", "value", "verdict"),
        [
            ({"not_worse_at_least": "60 %"}, 4 / 6, "within"),
            ({"not_worse_at_least": "70 %"}, 4 / 6, "outside"),
            ({"better_at_least": "50 %"}, 3 / 6, "within"),
            ({"better_at_least": "51 %"}, 3 / 6, "outside"),
            ({"better_at_least": "30 %", "better": "lower"}, 2 / 6, "within"),
        ],
    )
    def test_verdict_can_follow_from_the_share_of_pairs(self, keys: dict[str, str], value: float, verdict: str) -> None:
        row = averages_table((), *sweep_tables(), [make_pair(**keys, reason="R")]).iloc[0]
        assert (row["value"], row["verdict"]) == (pytest.approx(value), verdict)
        assert (row["cells"], row["excluded"], row["unit"], row["reason"]) == (6, 0, "fraction", "R")

    def test_each_bound_has_a_row(self) -> None:
        both = make_pair(not_worse_at_least="60 %", better_at_least="60 %")
        found = averages_table((), *sweep_tables(), [both, make_pair()])
        assert list(found["title"]) == ["Static or dynamic: share not worse", "Static or dynamic: share better"]
        assert list(found["verdict"]) == ["within", "outside"]

    def test_missing_cells_count_but_unplanned_cells_do_not(self) -> None:
        wanted = [make_pair(not_worse_at_least="60 %")]
        metrics, cells = sweep_tables()
        assert averages_table((), metrics, [cell for cell in cells if "dynamic" in cell.name], wanted).empty
        without = metrics[~metrics["cell"].str.contains("policer=default")]
        row = averages_table((), without, cells, wanted).iloc[0]
        assert (row["cells"], row["excluded"], row["unmeasured"], row["verdict"]) == (0, 0, 6, "outside")
        row = averages_table((), *sweep_tables(invalid="policer=default"), wanted).iloc[0]
        assert (row["cells"], row["excluded"], row["verdict"]) == (0, 6, "informative")

    @pytest.mark.parametrize(
        ("published", "message"),
        [
            ("first", "published: dynamic is better, as found"),
            ("second", "published: default is better, not reproduced"),
            ("equal", "published: both are equal, not reproduced"),
            (None, ""),
        ],
    )
    def test_published_average_is_shown(self, published: str | None, message: str) -> None:
        assert claim_text(pairs_table([make_pair(published=published)], *sweep_tables())) == message


@pytest.mark.parametrize(
    ("winners", "holds"),
    [
        (("first",), {"first"}),
        (("second",), {"second"}),
        (("equal",), {"equal"}),
        (("first", "second"), set()),
        (("first", "second", "equal"), set()),
        (("first", "equal"), {"first"}),
        (("second", "equal"), {"second"}),
        (("first", "equal", "equal"), {"first", "equal"}),
    ],
)
def test_published_claim_is_judged_by_the_majority(winners: tuple[str, ...], holds: set[str]) -> None:
    for published in ("first", "second", "equal"):
        rows = [{"published": published, "first": "dynamic", "second": "default", "winner": each} for each in winners]
        assert claim_text(pd.DataFrame(rows)).endswith(", as found") == (published in holds), published


def static_burst_sizes() -> tuple[pd.DataFrame, list[CellSummary]]:
    """Return a bucket of 12 kB that adapts its size, with three round trips, and static ones of four sizes for the
    first two.
    """
    cells, rows = [], []
    for rtt, goodput in (("10 ms", 0.95), ("50 ms", 0.97), ("90 ms", 0.97)):
        found = [("grid", "12 kB", goodput, 12000.0)]
        if rtt != "90 ms":
            found += [("size", f"{size} kB", share, math.nan) for size, share in STATIC]
        for arm, bucket, share, size in found:
            cell = CellSummary(arm=arm, parameters={"rtt": rtt, "bucket": bucket}, repetition=1, valid=True)
            cells.append(cell)
            rows += [
                {"arm": arm, "cell": cell.name, "metric": name, "value": value}
                for name, value in (("goodput.steady", share), ("police.bucket.late", size))
            ]
    return pd.DataFrame(rows), cells


STATIC = ((3, 0.5), (6, 0.945), (8, 0.96), (24, 0.97))


def over_minimum_size(**keys: object) -> Average:
    least = {"arm": "size", "parameter": "bucket", "metric": "goodput.steady", "same": ["rtt"], **keys}
    return make_average(metric="police.bucket.late", least=least, each=["rtt"], at_most=1.9, at_least=1)


class TestLeast:
    def test_smallest_equivalent_parameter_is_the_result(self) -> None:
        found = averages_table([over_minimum_size()], *static_burst_sizes())
        assert list(found["each"]) == ["rtt = 10 ms", "rtt = 50 ms", "rtt = 90 ms"]
        # 6 kB are within 1 % of 0.95, 24 kB of 0.97, but 8 kB are not; nothing is known about 90 ms.
        assert list(found["value"])[:2] == [2.0, 0.5] and pd.isna(found["value"].iloc[2])
        assert list(found["verdict"]) == ["outside", "outside", "outside"]
        assert set(found["unit"]) == {"ratio"} and set(found["metric"]) == {"police.bucket.late / least bucket of size"}
        assert list(found["excluded"]) == [0, 0, 0] and list(found["unmeasured"]) == [0, 0, 1]
        assert cell_count_text(found.iloc[2]) == "0, 1 without the value"

    def test_comparison_without_the_other_arm_has_no_verdict(self) -> None:
        metrics, cells = static_burst_sizes()
        alone = [cell for cell in cells if cell.arm != "size"]
        found = averages_table([over_minimum_size()], metrics, alone)
        assert list(found["verdict"]) == ["informative"] * 3 and list(found["unmeasured"]) == [1, 1, 1]

    def test_equal_within_and_better_define_equivalent_values(self) -> None:
        found = averages_table([over_minimum_size(equal_within="2 %")], *static_burst_sizes())
        assert list(found["value"])[:2] == [2.0, 1.5] and list(found["verdict"])[:2] == ["outside", "within"]
        found = averages_table([over_minimum_size(better="lower")], *static_burst_sizes())
        assert list(found["value"])[:2] == [4.0, 4.0], "where less is good the smallest does better"

    def test_value_above_the_whole_curve_is_omitted(self) -> None:
        metrics, cells = static_burst_sizes()
        better = metrics["cell"].str.startswith("grid") & (metrics["metric"] == "goodput.steady")
        metrics.loc[better, "value"] = 1.0
        assert averages_table([over_minimum_size()], metrics, cells)["value"].isna().all()


WANTED = [
    make_average(title="All scenarios", each=["policer"], published="92 %", reason="Slides: average good put 92 %."),
    make_average(
        title="The policer at work",
        condition="pir < link",
        each=["policer"],
        published="92 %",
        at_least="92 %",
        worst_at_least="85 %",
        fitted="The bucket's constants.",
    ),
]


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    metrics, cells = sweep_tables(invalid="policer=default,link=2Mbps,pir=1Mbps")
    return Outcome(
        make_run(tmp_path).open(),
        True,
        (),
        frozenset(),
        compare("", metrics.assign(valid=True, repetition=1), (), ()),
        averages_table(WANTED, metrics, cells),
        pairs_table([make_pair()], metrics, cells),
    )


def two_values(first: list[float], second: list[float], links: int = 1) -> tuple[pd.DataFrame, list[CellSummary]]:
    """Return repetitions of a dynamic and a default policer, on each of some links."""
    cells, rows = [], []
    for policer, values in (("dynamic", first), ("default", second)):
        for link in LINKS[:links]:
            for repetition, value in enumerate(values, 1):
                parameters = {"policer": policer, "link": link}
                cell = CellSummary(arm="grid", parameters=parameters, repetition=repetition, valid=True)
                cells.append(cell.model_copy(update={"folder": f"cells/{cell.name}"}))
                rows.append({"arm": "grid", "cell": cell.name, "metric": "goodput.of_pir", "value": value})
    return pd.DataFrame(rows), cells


def test_pair_can_require_all_cells() -> None:
    first, second = [1.0, 1.2, 1.1], [0.5, 0.65, 0.6]
    (row,) = pairs_table([make_pair(published="first")], *two_values(first, second)).to_dict("records")
    apart = difference(first, second)
    assert row == {
        "title": "Static or dynamic",
        "arm": "grid",
        "metric": "goodput.of_pir",
        "unit": "fraction",
        "parameter": "policer",
        "first": "dynamic",
        "second": "default",
        "cell": "",
        "first_value": 1.1,
        "second_value": 0.6,
        "difference": pytest.approx(0.5 / 0.6),
        "low": pytest.approx(apart.low / 0.6),
        "high": pytest.approx(apart.high / 0.6),
        "winner": "first",
        "first_folder": "cells/grid/policer=dynamic,link=2Mbps/1",
        "second_folder": "cells/grid/policer=default,link=2Mbps/1",
        "published": "first",
    }


@pytest.mark.parametrize(
    ("first", "second", "share", "winner"),
    [
        ([1.5], [1.0], 0.5, "equal"),
        ([1.75], [1.0], 0.75, "first"),
        ([0.25], [1.0], -0.75, "second"),
        ([0.0], [0.0], 0.0, "equal"),
        ([0.1], [0.0], math.inf, "first"),
        # The uncertainty of a value that was not repeated is unknown.
        ([1.75, 1.75], [1.0], 0.75, "first"),
        ([1.75], [1.0, 1.0], 0.75, "first"),
        ([math.inf, math.inf], [1.0, 1.0], math.inf, "first"),
        ([0.1, 0.2], [0.0, 0.0], math.inf, "first"),
    ],
)
def test_winner_of_a_pair_is_found(first: list[float], second: list[float], share: float, winner: str) -> None:
    cells = two_values(first, second)
    (row,) = pairs_table([make_pair(equal_within="50 %")], *cells).to_dict("records")
    assert (row["difference"], row["winner"]) == (share, winner) and math.isnan(row["low"]) and math.isnan(row["high"])
    (row,) = pairs_table([make_pair(equal_within="50 %", better="lower")], *cells).to_dict("records")
    assert row["winner"] == {"first": "second", "second": "first"}.get(winner, winner) and row["published"] == ""


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ([1.2, 1.2], [1.1, 1.1], "first"),
        # Zero inside the interval, at its upper end, and at its lower end.
        ([1.0, 1.4], [0.9, 1.3], "equal"),
        ([1.0, 1.2], [1.2, 1.4], "equal"),
        ([1.2, 1.4], [1.0, 1.2], "equal"),
    ],
)
def test_insignificant_difference_is_a_draw(first: list[float], second: list[float], winner: str) -> None:
    (row,) = pairs_table([make_pair()], *two_values(first, second)).to_dict("records")
    assert row["winner"] == winner and row["low"] <= row["high"]


def test_bound_on_pairs_can_require_all_pairs() -> None:
    metrics, cells = two_values([1.0], [0.5], links=2)
    metrics = metrics[metrics["cell"] != "grid/policer=dynamic,link=10Mbps/1"]
    wanted = make_pair(better_at_least="60 %", not_worse_at_least="30 %", reason="Why.", fitted="Ours.")
    other = cells[0].model_copy(update={"arm": "other"})
    found = averages_table([], metrics, [*cells, other], [wanted]).dropna(axis="columns", how="all")
    common = {
        "arm": "grid",
        "each": "",
        "condition": "",
        "metric": "goodput.of_pir",
        "unit": "fraction",
        "value": 1.0,
        "reason": "Why.",
        "cells": 1,
        "excluded": 0,
        "unmeasured": 1,
        "verdict": "within",
        "reproduction": "",
        "explanation": "Ours.",
    }
    assert found.to_dict("records") == [
        common | {"title": f"{wanted.title}: {statistic}", "statistic": statistic, "tolerance": f"at least {bound}"}
        for statistic, bound in (("share not worse", "30 %"), ("share better", "60 %"))
    ]


def test_condition_selects_the_judged_pairs() -> None:
    metrics, cells = two_values([1.0], [0.5], links=2)
    others = [cell.model_copy(update={"arm": "other"}) for cell in cells]
    metrics = metrics[~metrics["cell"].str.contains("10Mbps")]
    wanted = make_pair(better_at_least="60 %", condition="link == 2 Mb/s")
    (row,) = averages_table([], metrics, [*cells, *others], [wanted]).to_dict("records")
    assert (row["cells"], row["excluded"], row["unmeasured"], row["verdict"]) == (1, 0, 0, "within")


def test_wins_of_each_value_are_counted() -> None:
    first, second = make_pair(title="B"), make_pair(title="A", better="lower")
    pairs = pairs_table([first, second], *two_values([1.0], [0.5], links=2))
    common = {"arm": "grid", "metric": "goodput.of_pir", "parameter": "policer", "first": "dynamic"}
    assert scores_table(pairs).to_dict("records") == [
        {"title": "B", **common, "second": "default", "won": 2, "equal": 0, "lost": 0},
        {"title": "A", **common, "second": "default", "won": 0, "equal": 0, "lost": 2},
    ]
    assert list(scores_table(pairs.iloc[:1])["won"]) == [1]


def test_average_without_measurements_fails_any_bound() -> None:
    metrics, cells = two_values([1.0], [0.5])
    bounds = ({"worst_at_least": "90 %"}, {"worst_at_most": "99 %"}, {"at_least": "1 %"})
    wanted = [make_average(**each) for each in bounds]
    nothing = averages_table([*wanted, make_average()], metrics.iloc[:0], cells)
    assert list(nothing["verdict"]) == ["outside"] * 3 + ["informative"]


def test_average_shows_its_reason_and_its_worst_cells() -> None:
    row = averages_table(
        [make_average(condition="arm == 'grid'", reason="Why.")], *two_values([1.0], [0.5], links=2)
    ).iloc[0]
    assert (row["reason"], row["lowest"], row["highest"]) == ("Why.", 0.5, 1.0)
    assert (row["lowest_cell"], row["highest_cell"]) == (
        "policer = default, link = 2 Mb/s",
        "policer = dynamic, link = 2 Mb/s",
    )
    assert averages_table([make_average(condition="arm == 'other'")], *two_values([1.0], [0.5])).empty


def test_terminal_shows_averages(
    outcome: Outcome,
    tmp_path: Path,
    golden: Callable[[Path, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    folder = RunFolder.create(tmp_path, "grid", STARTED)
    print_outcome(outcome, folder, as_json=False)
    shown = capsys.readouterr().out.rpartition("Report: ")[0]
    golden(Path(__file__).parents[1] / "goldens" / "averages.txt", shown)


def test_report_shows_averages(outcome: Outcome, tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    run = make_run(tmp_path)
    page = build_page(run, analyse(run))
    _, cells = sweep_tables()
    compared = Comparison.model_validate_json(json.dumps({"article": "A", "published": "p.csv"}))
    experiment = Experiment.model_validate_json(json.dumps(EXPERIMENT)).model_copy(
        update={"compare": compared.model_copy(update={"averages": tuple(WANTED), "pairs": (make_pair(),)})}
    )
    reported = verdict(outcome, experiment)
    assert reported.kind == "outside" and "The policer at work" in reported.details[0] and "2 of 2" in reported.sentence
    html = to_html(
        dataclasses.replace(
            page,
            averages=average_rows(outcome.averages),
            pairs=pair_sections(experiment, outcome.pairs, tuple(cells)),
        )
    )
    part = html.partition('<section id="averages">')[2].partition('<section id="topology"')[0]
    golden(Path(__file__).parents[1] / "goldens" / "averages.html", part)


def test_notes_show_values_of_selected_cells() -> None:
    metrics, cells = sweep_tables()
    parameters = pd.DataFrame([{f"matrix.{name}": value for name, value in cell.parameters.items()} for cell in cells])
    parameters["matrix.link"] = [int(cell.values["link"]) for cell in cells]
    parameters["matrix.pir"] = [int(cell.values["pir"]) for cell in cells]
    note = {
        "title": "N",
        "text": "{grid goodput.of_pir where policer = default, pir = 1 Mb/s} against {grid goodput.of_pir}.",
        "table": {"arms": ["grid"], "metrics": ["goodput.of_pir"], "each": ["policer"]},
    }
    experiment = Experiment.model_validate_json(
        json.dumps(EXPERIMENT | {"arms": [{"name": "grid"}], "compare": None, "notes": [note]})
    )
    (found,) = notes(experiment, pd.concat([metrics, parameters], axis=1), (), cells)
    assert found.paragraphs[0].startswith("90.1\u00a0% against ")
    assert [name for name, _ in found.rows] == ["grid, policer = dynamic", "grid, policer = default"]
    assert found.rows[1][1] == ["80.1\u00a0%"]


def test_invalid_averages_are_reported(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "experiments"
    shutil.copytree(source / "templates", tmp_path / "templates")
    text = (source / "tcp-friendly-policer-more.yml").read_text()
    (tmp_path / "p.csv").write_text("arm,metric,unit,value,source\n")
    text = (
        text.partition("\ngraphs:")[0]
        + """
traces:
  - {title: T, arm: start-small, where: {pirr: 1 Mb/s}}
notes:
  - {title: N, text: "{cost interface.drops where link = 2 Mb/s, bukket = 3000 B}"}
compare:
  article: A
  published: p.csv
  averages:
    - {title: a, arm: coupled, metric: goodput.of_pir, condition: pir <= linkk}
    - {title: b, arm: coupled, metric: goodput.of_pir, condition: pir <= rtt}
    - {title: c, arm: coupled, metric: goodput.of_pir, condition: pir > link}
    - {title: d, arm: coupled, metric: goodput.of_pir, each: [policy], at_least: 900 kb/s}
    - title: l
      arm: coupled
      metric: police.bucket.late
      least: {arm: cost, parameter: pir, metric: goodput.steadily, same: [linkage]}
      at_most: 2 B
  pairs:
    - {title: e, arm: coupled, metric: goodput.of_pir, parameter: policer, values: [dynamic, dynamic]}
"""
    )
    file = tmp_path / "wrong.yml"
    file.write_text(text)
    with pytest.raises(ExperimentError) as raised:
        load_sweep(file)
    reported = [finding.message for finding in raised.value.findings]
    for words in (
        'found "pirr", expected a parameter of arm "start-small"',
        'found "bukket", expected a parameter of arm "cost"',
        'found "linkk", expected a parameter, ',
        "pir <= rtt: found a rate <= a duration",
        'found "pir > link", true in no cell of arm "coupled"',
        'found "policy", expected a parameter of arm "coupled"',
        'found "900 kb/s", expected a percentage',
        "found dynamic twice, expected two values",
        'found "goodput.steadily", expected',
        'found "linkage", expected a parameter of arm "coupled"',
        'pir: found "1 Mb/s", expected a size such as',
        'found "2 B", expected a plain number (ratio)',
    ):
        assert any(words in each for each in reported), (words, reported)
