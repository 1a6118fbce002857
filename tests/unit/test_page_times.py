"""Times of pages of which some were unfinished at the end of a trial."""

from __future__ import annotations

from typing import Any, cast

from qoslab.trial.outcome import PageTimes

MS = 1_000_000


def flow_report(histogram: list[tuple[int, int]], unfinished: int) -> Any:
    finished = sum(count for _, count in histogram)
    writes = {"packets": finished, "histogram": [(time * MS, count) for time, count in histogram]} if finished else None
    return cast("Any", {"writes": writes, "unfinished_writes": unfinished})


def test_unfinished_pages_count_as_longer_than_all_others() -> None:
    histogram = [(100, 3), (200, 3), (900, 1)]
    assert PageTimes.of_flow(flow_report(histogram, 0)) == PageTimes(7, 0, 200.0, 900.0, 900.0)
    assert PageTimes.of_flow(flow_report(histogram, 5)) == PageTimes(7, 5, 200.0, None, None)
    assert PageTimes.of_flow(flow_report(histogram, 6)) == PageTimes(7, 6, 900.0, None, None)
    assert PageTimes.of_flow(flow_report(histogram, 8)) == PageTimes(7, 8, None, None, None)


def test_flow_without_a_finished_page_has_no_time() -> None:
    assert PageTimes.of_flow(flow_report([], 4)) == PageTimes(0, 4, None, None, None)
    assert PageTimes.of_flow(flow_report([], 0)) is None
