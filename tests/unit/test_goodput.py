"""Total goodput of flows: bytes of traffic that starts, ends and pauses at any time, on one time grid."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from analysis_tables import columns, reported_flows
from hypothesis import given
from hypothesis import strategies as st

from qoslab.analysis.goodput import fairness, jain, share_values, total_bps
from qoslab.analysis.missing import Missing
from qoslab.analysis.packets import ALL
from qoslab.analysis.series import reported_throughput
from qoslab.analysis.steady import simultaneous_goodput, steady_values, steps
from qoslab.analysis.timeline import Timeline


def flow(traffic: str, start: float, seconds: float, bps: float, stream: int = 1) -> dict[str, object]:
    size = round(bps * seconds / 8)
    row = {"traffic": traffic, "stream": stream, "offset_s": start, "seconds": seconds, "bytes": size}
    return row | {"goodput_bps": size * 8 / seconds, "local_port": 40000 + stream}


def reports(row: dict[str, object], step: float) -> list[dict[str, object]]:
    """Return intervals of a flow with a constant rate; the last one is shorter, or as long and extends beyond the
    end.
    """
    seconds, size = float(str(row["seconds"])), float(str(row["bytes"]))
    edges = np.append(np.arange(0, seconds, step), seconds)
    own = {name: row[name] for name in ("traffic", "stream", "offset_s")}
    return [
        own | {"start_s": low, "end_s": high, "bytes": size * (high - low) / seconds} for low, high in pairwise(edges)
    ]


def cell(*rows: tuple[dict[str, object], float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return flows and intervals of flows, each with the length of its reports."""
    return pd.DataFrame([row for row, _ in rows]), pd.DataFrame([each for row in rows for each in reports(*row)])


ENDS = cell((flow("long", 0, 10, 8.67e6), 0.5), (flow("short", 0, 2, 3.37e6), 0.5))
MIXED = cell(
    (flow("transfer", 0.25, 10, 1.84e6), 1.0), (flow("voice", 0, 9, 68_800), 0.4), (flow("late", 12, 3, 1e6), 1)
)


def test_flows_with_different_ends_do_not_exceed_the_line() -> None:
    flows, intervals = ENDS
    assert total_bps(columns(flows)) == pytest.approx((8.67e6 * 10 + 3.37e6 * 2) / 10)
    # The two seconds in which both flows send are warm-up.
    assert dict(steady_values(columns(intervals), flows=columns(flows)))["goodput.steady"] == pytest.approx(8.67e6)


def test_pause_between_flows_is_part_of_their_time() -> None:
    flows, intervals = cell((flow("a", 0, 2, 1e6), 1), (flow("b", 8, 2, 1e6), 1))
    assert total_bps(columns(flows)) == pytest.approx(4e6 / 10)
    assert list(reported_throughput(intervals, flows)[ALL]) == pytest.approx([1e6, 1e6, *[0] * 6, 1e6, 1e6])


def test_unreported_bytes_are_placed_in_the_unreported_time() -> None:
    flows, intervals = cell((flow("a", 0, 10, 1e6), 1))
    lost = intervals[(intervals["start_s"] < 3) | (intervals["start_s"] >= 6)]
    assert list(reported_throughput(lost, flows)[ALL]) == pytest.approx([1e6] * 10)
    assert Timeline.from_flows(columns(flows), columns(lost)).bits_between(3, 6) == pytest.approx(3e6)
    # If no time is left for the rest, it is spread over all of it.
    more = flows.assign(bytes=flows["bytes"] * 2)
    assert Timeline.from_flows(columns(more), columns(intervals)).bits_between(0, 5) == pytest.approx(10e6)


def test_report_beyond_the_end_of_its_flow_is_cut_there() -> None:
    flows, intervals = cell((flow("a", 0, 2.1, 1e6), 0.5))
    intervals.loc[intervals.index[-1], "end_s"] = 2.5
    assert Timeline.from_flows(columns(flows), columns(intervals)).bits_between(2.0, 2.1) == pytest.approx(1e5)


@pytest.mark.parametrize("given_cell", [ENDS, MIXED], ids=["other ends", "other intervals"])
def test_mean_of_each_curve_is_the_goodput_of_its_flows(given_cell: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    flows, intervals = given_cell
    curves = reported_throughput(intervals, flows)
    assert curves[ALL].mean() == pytest.approx(total_bps(columns(flows)))
    for name, table in flows.groupby("traffic"):
        assert curves[f"{name} 1"].mean() == pytest.approx(float(table["goodput_bps"].iloc[0]))


def test_shares_of_flows_at_different_times_add_up() -> None:
    flows, _ = cell((flow("first", 0, 10, 2e6), 1), (flow("second", 7, 3, 2e6), 1))
    parts = [
        dict(share_values(columns(table), columns(flows)))["goodput.share"] for _, table in flows.groupby("traffic")
    ]
    assert parts == [pytest.approx(20 / 26), pytest.approx(6 / 26)]


def test_fairness_covers_the_time_with_all_flows() -> None:
    """Compute fairness: the long flow has the line for itself for eight seconds, and shares it evenly for two."""
    flows, intervals = cell((flow("long", 0, 10, 9e6), 1), (flow("short", 0, 2, 5e6), 1))
    intervals.loc[intervals["traffic"] == "long", "bytes"] = [5e6 / 8] * 2 + [10e6 / 8] * 8
    assert fairness(columns(flows), columns(intervals)) == pytest.approx(1)
    apart = cell((flow("a", 0, 2, 1e6), 1), (flow("b", 8, 2, 1e6), 1))
    assert isinstance(fairness(*map(columns, apart)), Missing)


def test_shares_of_flows_add_up_to_the_total() -> None:
    flows, intervals = MIXED[0].iloc[:2], MIXED[1][MIXED[1]["traffic"] != "late"]
    every = dict(simultaneous_goodput(columns(intervals), columns(intervals), columns(flows)))["goodput.together"]
    each = [
        dict(
            simultaneous_goodput(columns(intervals[intervals["traffic"] == name]), columns(intervals), columns(table))
        )["goodput.together"]
        for name, table in flows.groupby("traffic")
    ]
    assert every == pytest.approx(sum(each)) == pytest.approx(1.84e6 + 68_800, rel=1e-4)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 12), st.integers(0, 1000), st.sampled_from([0.4, 1.0, 3.0])),
        min_size=1,
        max_size=6,
    )
)
def test_every_bit_is_in_one_step(rows: list[tuple[int, int, int, float]]) -> None:
    flows, intervals = cell(*((flow(str(place), *row[:3]), row[3]) for place, row in enumerate(rows)))
    timeline = Timeline.from_flows(columns(flows), columns(intervals))
    assert timeline.bits_between(-1, 99) == pytest.approx(float(flows["bytes"].sum()) * 8)
    bits, seconds = steps(columns(flows), columns(intervals))
    assert float(bits.sum()) <= float(flows["bytes"].sum()) * 8 + 1e-6 and (seconds > 0).all()


def test_imported_flows_have_their_reported_values() -> None:
    _, intervals = ENDS
    assert total_bps(columns(reported_flows(intervals))) == pytest.approx(total_bps(columns(ENDS[0])))


def test_fairness_index_follows_jain() -> None:
    assert jain(np.array([3.0, 3.0, 3.0])) == 1 and jain(np.array([5.0, 0.0])) == 0.5
    assert jain(np.array([1.0, 2.0, 3.0])) == pytest.approx(36 / (3 * 14))
    assert jain(np.array([0.1, 0.1])) == pytest.approx(1)
    assert math.isnan(jain(np.array([0.0, 0.0])))
