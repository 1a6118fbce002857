"""Calculations of metrics and verdicts, checked by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from qoslab.analysis import (
    averages,
    expected_comparison,
    goodput,
    idle,
    measured_values,
    series,
    statistics,
    timeline,
)
from qoslab.analysis.line_limit import impossible_value_messages
from qoslab.analysis.packets import ALL
from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.model.comparison import Average, Pair
from qoslab.model.expectations import Expectation
from qoslab.model.experiment import Experiment
from qoslab.results import CellSummary, tables
from qoslab.results.columns import Columns

NODES = {"A": {"platform": "host"}, "R": {"platform": "ios", "model": "3725"}, "B": {"platform": "host"}}
LAN = [{"node": "A", "interface": "eth0", "address": "10.0.1.2/24"}]
LAN += [{"node": "R", "interface": "FastEthernet0/0", "address": "10.0.1.1/24"}]
WAN = [{"node": "R", "interface": "FastEthernet0/1", "address": "10.0.2.1/24"}]
WAN += [{"node": "B", "interface": "eth0", "address": "10.0.2.2/24"}]
LINE_BPS = 10e6 * 972 / 1038
"""Payload rate of datagrams of 1000 bytes on a line of 10 Mb/s."""


def experiment(*names: str) -> Experiment:
    flood = {"tool": "flood", "protocol": "udp", "from": "A", "to": "B", "rate": "12 Mb/s", "size": "1000 B"}
    links = [{"name": "lan", "rate": "100 Mb/s", "ends": LAN}, {"name": "wan", "rate": "10 Mb/s", "ends": WAN}]
    content = {
        "name": "two",
        "title": "Two",
        "topology": {"nodes": NODES, "links": links},
        "duration": "10 s",
        "traffic": [{"name": name, "port": 5001 + place, **flood} for place, name in enumerate(names)],
        "arms": [{"name": "free"}],
    }
    return Experiment.model_validate_json(json.dumps(content))


def flows(*rows: tuple[str, float, float, float]) -> pd.DataFrame:
    """Return flows by traffic, start, seconds and bits per second."""
    return tables.frame(
        "flows",
        [
            {"arm": "free", "repetition": 1, "cell": "free/1", "traffic": traffic, "offset_s": start, "stream": 1}
            | {"seconds": seconds, "bytes": round(bps * seconds / 8), "goodput_bps": bps, "protocol": "udp"}
            for traffic, start, seconds, bps in rows
        ],
    )


def reports(table: pd.DataFrame, step: float = 1.0) -> pd.DataFrame:
    rows = [
        {"arm": "free", "repetition": 1, "cell": "free/1", "traffic": row["traffic"], "offset_s": row["offset_s"]}
        | {"stream": 1, "start_s": low, "end_s": low + step, "bytes": round(row["goodput_bps"] * step / 8)}
        for row in table.to_dict("records")
        for low in np.arange(0, row["seconds"], step)
    ]
    return tables.frame("intervals", rows)


ENDS = flows(("long", 0, 10, 8.67e6), ("short", 0, 2, 3.37e6))
STAGGERED = flows(("a", 0, 6, 4e6), ("b", 4, 6, 4e6))


def metric(name: str, value: float) -> dict[str, object]:
    return {"arm": "free", "repetition": 1, "cell": "free/1", "metric": name, "unit": "b/s", "value": value}


def text(table: pd.DataFrame, *rows: dict[str, object]) -> list[str]:
    """Return the findings on values of flows behind the line."""
    found = {"flows": table, "intervals": reports(table), "classes": tables.frame("classes", [])}
    return list(
        impossible_value_messages(
            experiment(*table["traffic"]),
            "free",
            {name: Columns.from_frame(each) for name, each in found.items()},
            rows,
        )
    )


def cells(*rows: tuple[str, int, int, float | None, bool]) -> tuple[pd.DataFrame, list[CellSummary]]:
    """Return cells of `goodput.sum`: arm, parameter, repetition, value, validity."""
    summaries = [
        CellSummary(arm=arm, parameters={"load": load}, repetition=number, valid=valid)
        for arm, load, number, _, valid in rows
    ]
    table = tables.frame(
        "metrics",
        [
            {"arm": each.arm, "repetition": each.repetition, "cell": each.name, "metric": "goodput.sum", "unit": "b/s"}
            | {"value": row[3]}
            for each, row in zip(summaries, rows, strict=True)
        ],
    )
    table = tables.with_parameters(table, {each.name: each.values for each in summaries})
    return table.assign(valid=[row[4] for row in rows]), summaries


def expected_labels(table: pd.DataFrame, summaries: list[CellSummary], **keys: object) -> dict[str, object]:
    wanted = Expectation.model_validate_json(json.dumps({"metric": "goodput.sum", **keys}))
    planned = measured_values.Planned(summaries)
    row: dict[str, object] = expected_comparison.compare("", table, [], [wanted], planned=planned).to_dict("records")[0]
    return row


def test_total_goodput_of_flows_at_different_times() -> None:
    assert goodput.total_bps(Columns.from_frame(ENDS)) == pytest.approx((86.7e6 + 6.74e6) / 10, rel=1e-6)
    assert goodput.total_bps(Columns.from_frame(STAGGERED)) == pytest.approx(4.8e6)


def test_curve_has_the_mean_of_its_flows() -> None:
    for table in (ENDS, STAGGERED):
        lost = reports(table).iloc[2:-1]
        for intervals in (reports(table), lost):
            curve = series.reported_throughput(intervals, table)[ALL]
            assert curve.mean() == pytest.approx((table["bytes"].sum() * 8) / _length(table), rel=1e-4)
            assert curve.max() < 12.1e6


def _length(table: pd.DataFrame) -> float:
    return float((table["offset_s"] + table["seconds"]).max() - table["offset_s"].min())


def test_bytes_without_a_report_are_spread_over_their_gap() -> None:
    table = flows(("a", 0, 10, 1e6))
    lost = reports(table).drop(index=[3, 4, 5])
    assert timeline.Timeline.from_flows(Columns.from_frame(table), Columns.from_frame(lost)).bits_between(
        3, 6
    ) == pytest.approx(3e6)


def test_fairness_compares_flows_while_all_run() -> None:
    """Check fairness: both flows have the same rate while both run."""
    table = flows(("long", 0, 10, 9e6), ("short", 0, 2, 5e6))
    intervals = reports(table)
    intervals.loc[intervals["traffic"] == "long", "bytes"] = [625_000] * 2 + [1_250_000] * 8
    assert goodput.fairness(Columns.from_frame(table), Columns.from_frame(intervals)) == pytest.approx(1, abs=1e-3)


def test_value_above_the_line_rate_is_reported() -> None:
    right = [metric("goodput.sum", goodput.total_bps(Columns.from_frame(ENDS))), metric("goodput.sum(short)", 3.37e6)]
    assert text(ENDS, *right) == []
    (message,) = text(ENDS, metric("goodput.sum", 12.04e6))
    assert message.startswith("goodput.sum: found 12.04 Mb/s, expected at most ")
    (message,) = text(flows(("a", 0, 10, 9.6e6)), metric("goodput.sum", 9.6e6))
    assert "goodput.sum: found 9.6 Mb/s" in message
    assert text(flows(("a", 0, 10, LINE_BPS)), metric("goodput.sum", LINE_BPS)) == []


def test_ratio_has_paired_cells_only() -> None:
    rows = [(arm, load, 1, load * share) for arm, share in (("shaped", 0.8e6), ("policed", 1e6)) for load in (1, 10)]
    table, summaries = cells(*((*row, row[:2] != ("policed", 10)) for row in rows))
    row = expected_labels(table, summaries, arm="shaped/policed", at_least=1.0)
    assert (row["measured"], row["n"], row["verdict"]) == (pytest.approx(0.8), 1, "outside")
    assert row["missing"] == "only 1 of 2 pairs of cells have this value"
    other, kept = cells(("a", 1, 1, 5.0, True), ("a", 1, 2, 9.0, True), ("b", 1, 2, 3.0, True), ("b", 1, 3, 9.0, True))
    assert expected_labels(other, kept, arm="a/b", at_least=1.0)["measured"] == pytest.approx(3.0)
    apart, few = cells(("a", 1, 1, 5.0, True), ("a", 2, 1, 5.0, False), ("b", 1, 1, 5.0, False), ("b", 2, 1, 5.0, True))
    none = expected_labels(apart, few, arm="a/b", at_least=0.1)
    assert math.isnan(float(str(none["measured"]))) and none["verdict"] == "undecided"
    assert none["missing"] == "only 0 of 2 pairs of cells have this value"


def test_missing_cells_make_an_expectation_undecided() -> None:
    table, summaries = cells(*(("a", load, 1, 1e6 if load == 1 else None, True) for load in (1, 2, 3, 4)))
    assert expected_labels(table, summaries, arm="a", at_most="2 Mb/s")["verdict"] == "undecided"
    table, summaries = cells(*(("a", 1, number, 1e6, number == 1) for number in (1, 2, 3)))
    assert expected_labels(table, summaries, arm="a", at_most="2 Mb/s")["verdict"] == "undecided"
    table, summaries = cells(*(("a", 1, number, 1e6, number < 3) for number in (1, 2, 3)))
    assert expected_labels(table, summaries, arm="a", at_most="2 Mb/s")["verdict"] == "within"


def test_average_with_unmeasured_cells_is_undecided_or_outside() -> None:
    wanted = Average.model_validate_json(
        json.dumps({"title": "T", "arm": "a", "metric": "goodput.sum", "at_most": "2 Mb/s", "worst_at_most": "2 Mb/s"})
    )
    table, summaries = cells(*(("a", load, 1, 1e6 if load else None, True) for load in range(4)))
    row = averages.averages_table([wanted], table, summaries).iloc[0]
    assert (row["verdict"], row["unmeasured"]) == ("outside", 1)
    table, summaries = cells(*(("a", load, 1, 1e6, load == 0) for load in range(4)))
    assert averages.averages_table([wanted], table, summaries).iloc[0]["verdict"] == "undecided"


def test_values_of_a_parameter_are_paired_by_repetition() -> None:
    """Check pairs: the second repetition of one value and the first of the other are no pair."""
    pair = Pair.model_validate_json(
        json.dumps({"title": "T", "arm": "a", "metric": "goodput.sum", "parameter": "load", "values": [1, 2]})
    )
    rows = [("a", 1, 1, 1e6, True), ("a", 1, 2, 9e6, True), ("a", 2, 1, 1e6, True), ("a", 2, 2, 9e6, False)]
    table, summaries = cells(*rows)
    (difference,) = averages.pairs_table([pair], table, summaries)["difference"]
    assert difference == pytest.approx(0)


def test_parameter_that_distinguishes_the_arms_pairs_no_cells() -> None:
    """Check arms: a parameter with one value in each arm is their difference, and pairs no cells; a varying one
    does.
    """
    table, summaries = cells(("a", 1, 1, 4e6, True), ("a", 1, 2, 6e6, True), ("b", 9, 1, 2e6, True))
    assert (
        measured_values.measured_value(table, "a/b", "goodput.sum", planned=measured_values.Planned(summaries)).value
        == 2
    )
    rows = [("a", 1, 1, 4e6, True), ("a", 2, 1, None, False), ("b", 1, 1, None, False), ("b", 2, 1, 2e6, True)]
    table, summaries = cells(*rows)
    found = measured_values.measured_value(table, "a/b", "goodput.sum", planned=measured_values.Planned(summaries))
    assert found.counted == 0 and "0 of 2 pairs" in found.missing
    # Cells without a row in the run are planned too.
    found = measured_values.measured_value(
        table[table["valid"]], "a/b", "goodput.sum", planned=measured_values.Planned(summaries)
    )
    assert found.counted == 0


def test_confidence_interval_covers_the_mean() -> None:
    generator = np.random.default_rng(5)
    for count in (2, 3, 4):
        samples = generator.normal(10, 1, (300, count))
        hits = sum(found.low <= 10 <= found.high for found in map(statistics.estimate, samples))
        assert hits >= 0.92 * 300


def test_first_report_of_a_late_flow_counts_at_its_time() -> None:
    """Check reports: a flow that starts later received everything in the first of its reported seconds."""
    table = flows(("late", 4, 6, 4e6))
    intervals = reports(table)
    intervals["bytes"] = [3_000_000] + [0] * 5
    assert timeline.Timeline.from_flows(Columns.from_frame(table), Columns.from_frame(intervals)).bits_between(
        4, 5
    ) == pytest.approx(24e6)


def test_shares_of_all_flows_add_up_to_one() -> None:
    ends = Columns.from_frame(ENDS)
    shares = [dict(goodput.share_values(ends.select_values("traffic", [name]), ends)) for name in ("long", "short")]
    assert sum(each["goodput.share"] for each in shares) == pytest.approx(1)
    assert goodput.jain(np.array([3.0, 3.0])) == pytest.approx(1)


def test_interval_follows_the_t_distribution() -> None:
    """Check intervals: Student's t with one degree of freedom at 97.5 % is 12.706."""
    found = statistics.estimate([9.0, 11.0])
    assert found.high - found.value == pytest.approx(12.706, rel=1e-3)
    alone = statistics.estimate([9.0])
    assert math.isnan(alone.low) and math.isnan(alone.high)


def test_loose_bounds_have_a_separate_verdict() -> None:
    table, summaries = cells(("a", 1, 1, 5e6, True))
    assert expected_labels(table, summaries, arm="a", at_least="1 Mb/s", at_most="9 Mb/s")["verdict"] == "loose bounds"
    assert expected_labels(table, summaries, arm="a", at_least="4 Mb/s", at_most="6 Mb/s")["verdict"] == "within"
    always = (
        ("datagrams.loss", {"at_most": "100 %"}),
        ("fairness.jain", {"between": [0, 1]}),
        ("goodput.sum", {"at_least": "0 b/s"}),
        ("voice.mos", {"at_most": 4.5}),
    )
    never = (("datagrams.loss", {"at_most": "99 %"}), ("fairness.jain", {"equals": 1}))
    for metric, bounds in (*always, *never):
        expectation = Expectation.model_validate_json(json.dumps({"arm": "a", "metric": metric, **bounds}))
        assert expectation.has_loose_bounds == ((metric, bounds) in always), (metric, bounds)
    unproven = expected_labels(table, summaries, arm="a", at_least="4 Mb/s", at_most="6 Mb/s", unproven=True)
    assert unproven["verdict"] == "loose bounds"


def test_worst_cell_decides_an_average() -> None:
    wanted = Average.model_validate_json(
        json.dumps({"title": "T", "arm": "a", "metric": "goodput.sum", "worst_at_most": "2 Mb/s"})
    )
    table, summaries = cells(("a", 1, 1, 1e6, True), ("a", 2, 1, 3e6, True))
    assert averages.averages_table([wanted], table, summaries).iloc[0]["verdict"] == "outside"


def test_class_without_packets_is_reported() -> None:
    rows = [
        {"arm": "free", "repetition": 1, "cell": "free/1", "device": "R", "interface": "FastEthernet0/1"}
        | {"direction": "output", "policy": "P", "class": name, "time_s": 9.0, "packets": packets}
        for name, packets in (("VOICE", 0), ("class-default", 400))
    ]
    found = idle._idle_classes(tables.frame("classes", rows), {})
    assert [each.message for each in found] == ["R FastEthernet0/1 output: class VOICE matched 0 of 400 packets"]


def test_circuits_of_an_interface_are_parsed_separately() -> None:
    lines = "  Service-policy output: P\n    Class-map: class-default (match-any)\n      {} packets, 700 bytes\n"
    heads = [" Serial4/1: DLCI 16 -", " Serial4/1: DLCI 17 -", " Serial0/0"]
    text = "\n".join(f"{head}\n\n{lines.format(7 + place)}" for place, head in enumerate(heads))
    found = parse_policy_map_interface(text)
    assert list(found) == ["Serial4/1: DLCI 16", "Serial4/1: DLCI 17", "Serial0/0"]
