"""Times of pages of which some were unfinished at the end of the traffic."""

from __future__ import annotations

from qoslab.traffic.page_times import PageTimes

MS = 1_000_000
HISTOGRAM = [(100 * MS, 3), (200 * MS, 3), (900 * MS, 1)]


def test_unfinished_pages_count_as_longer_than_all_others() -> None:
    assert PageTimes.from_histogram(HISTOGRAM, 0) == PageTimes(7, 0, 200.0, 900.0, 900.0)
    assert PageTimes.from_histogram(HISTOGRAM, 5) == PageTimes(7, 5, 200.0, None, None)
    assert PageTimes.from_histogram(HISTOGRAM, 6) == PageTimes(7, 6, 900.0, None, None)
    assert PageTimes.from_histogram(HISTOGRAM, 8) == PageTimes(7, 8, None, None, None)


def test_flow_without_a_finished_page_has_no_time() -> None:
    assert PageTimes.from_histogram([], 4) == PageTimes(0, 4, None, None, None)
    assert PageTimes.from_histogram([], 0) is None
