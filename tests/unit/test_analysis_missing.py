"""Missing output: every dependent value is missing, with the reason; it never counts as 0."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from analysis_tables import columns, metrics

from qoslab.analysis.class_metrics import EachClass, class_values
from qoslab.analysis.classes import class_drops
from qoslab.analysis.expected_comparison import compare
from qoslab.analysis.goodput import goodput_values
from qoslab.analysis.host_metrics import host_values
from qoslab.analysis.missing import Missing
from qoslab.analysis.policers import policer_values
from qoslab.analysis.queues import interface_values, select_objects
from qoslab.analysis.series import class_rates
from qoslab.analysis.shapers import shaper_values
from qoslab.analysis.show_policy_rows import observed_class_rows
from qoslab.model.comparison import PublishedValue
from qoslab.model.drops import DROP_REASONS
from qoslab.model.metrics import ClassSelector
from qoslab.results import tables

CELL = {"arm": "a", "repetition": 1, "cell": "a/1"}
TRAFFIC_S = 9.0


def printed_counters(time_s: float, entry: dict[str, Any], **policy: Any) -> list[dict[str, object]]:
    """Return a reading of class A, parsed from a router's show output."""
    classes = {"class_map": {"A": entry, **policy.pop("others", {})}, **policy}
    parsed = {"Serial0/0": {"service_policy": {"output": {"policy_name": {"P": classes}}}}}
    return [CELL | row for row in observed_class_rows("R1", parsed, time_s)]


def queueing_counters(packets: int, **counters: Any) -> dict[str, Any]:
    return {"packets": packets, "bytes": packets * 100, "bandwidth_kbps": 400, "queue_depth": 0} | counters


def metric_values(*readings: list[dict[str, object]]) -> dict[str, float | Missing]:
    table = tables.frame("classes", [row for reading in readings for row in reading])
    return dict(class_values(EachClass(columns(table), TRAFFIC_S), ClassSelector("A")))


class TestPrintedDrops:
    def test_without_printed_bytes_there_is_no_passed_rate(self) -> None:
        found = metric_values(
            printed_counters(4.0, queueing_counters(100, total_drops=10)),
            printed_counters(8.0, queueing_counters(500, total_drops=210)),
        )
        assert found["class.offered"] == 400 * 100 * 8 / 4
        assert found["class.drops"] == 210
        for name in ("class.passed", "class.dropped", "class.share"):
            assert isinstance(found[name], Missing) and "R1 Serial0/0 output A" in str(found[name])

    def test_zero_drops_mean_zero_dropped_bytes(self) -> None:
        found = metric_values(
            printed_counters(4.0, queueing_counters(100, total_drops=0)),
            printed_counters(8.0, queueing_counters(500, total_drops=0)),
        )
        assert found["class.passed"] == found["class.offered"] == 400 * 100 * 8 / 4
        assert found["class.share"] == 1

    def test_passed_rate_uses_printed_bytes(self) -> None:
        found = metric_values(
            printed_counters(4.0, queueing_counters(100, total_drops=10, bytes_drops=1000)),
            printed_counters(8.0, queueing_counters(500, total_drops=210, bytes_drops=21000)),
        )
        assert found["class.dropped"] == 20000 * 8 / 4
        assert found["class.passed"] == (40000 - 20000) * 8 / 4

    def test_queue_of_packets_without_bytes_is_not_empty(self) -> None:
        found = metric_values(
            printed_counters(4.0, queueing_counters(100, total_drops=0)),
            printed_counters(8.0, queueing_counters(500, total_drops=0, queue_depth=64)),
        )
        assert found["class.dropped"] == 0
        assert isinstance(found["class.passed"], Missing)

    def test_queue_without_printed_drops_has_no_drops(self) -> None:
        shaped = {"packets": 9, "bytes": 900, "shape_type": "average", "traffic_shaping": {"queue_depth": 3}}
        table = tables.frame("classes", printed_counters(6.0, shaped))
        assert isinstance(
            dict(class_values(EachClass(columns(table), TRAFFIC_S), ClassSelector("A")))["class.drops"], Missing
        )
        row = class_drops(table).iloc[0]
        assert (row["offered"], row["queued"], row["police"]) == (9, 3, 0)
        assert pd.isna(row["tail"]) and pd.isna(row["sent"])

    def test_class_default_next_to_queues_has_an_unprinted_queue(self) -> None:
        rest = {"packets": 7, "bytes": 700}
        with_queues = printed_counters(6.0, queueing_counters(5, total_drops=0), others={"class-default": rest})
        alone = printed_counters(6.0, {"packets": 5, "bytes": 500}, others={"class-default": rest})
        sent = [class_drops(tables.frame("classes", rows)).set_index("class")["sent"] for rows in (with_queues, alone)]
        assert pd.isna(sent[0]["class-default"]) and sent[0]["A"] == 5
        assert sent[1].to_dict() == {"A": 5, "class-default": 7}

    def test_priority_class_without_a_shared_queue_has_a_reason(self) -> None:
        urgent = {"packets": 50, "bytes": 500, "priority": {"kbps": 64, "exceed_drops": 4}}
        shared = {"queue_stats_for_all_priority_classes": {"priority_level": {"default": {"total_drops": 0}}}}
        assert isinstance(metric_values(printed_counters(6.0, urgent))["class.drops"], Missing)
        assert metric_values(printed_counters(6.0, urgent, **shared))["class.drops"] == 4

    def test_unprinted_policed_packets_are_missing(self) -> None:
        def policer(**exceeded: Any) -> dict[str, Any]:
            conformed = {"packets": 80, "bytes": 8000, "actions": {"transmit": True}}
            entry = {"cir_bps": 8000, "conformed": conformed, "exceeded": {"actions": {"drop": True}, **exceeded}}
            return {"packets": 100, "bytes": 10000, "police": entry}

        reported = tables.frame("classes", printed_counters(6.0, policer(packets=20, bytes=2000)))
        assert dict(policer_values(columns(reported)))["police.exceed_share"] == 0.2
        untold = tables.frame("classes", printed_counters(6.0, policer(bytes=2000)))
        found = dict(policer_values(columns(untold)))
        assert found["police.conformed_packets"] == 80
        assert isinstance(found["police.exceed_share"], Missing)
        assert isinstance(
            dict(class_values(EachClass(columns(untold), TRAFFIC_S), ClassSelector("A")))["class.drops"], Missing
        )


@pytest.mark.parametrize("lacking", [f"drops_{reason}_bytes" for reason in DROP_REASONS])
def test_counter_without_one_of_its_drop_reasons_is_missing(lacking: str) -> None:
    whole = {f"drops_{reason}_{unit}": 0 for reason in DROP_REASONS for unit in ("packets", "bytes")}
    place = {"device": "R1", "interface": "Serial0/0", "direction": "output", "policy": "P", "class": "A"}
    rows = [CELL | place | whole | {"time_s": float(n), "packets": 100 * n, "bytes": 1000 * n} for n in (4, 8)]
    complete = tables.frame("classes", rows)
    assert dict(class_values(EachClass(columns(complete), TRAFFIC_S), ClassSelector("A")))["class.passed"] == 8000
    table = tables.frame("classes", [{name: value for name, value in row.items() if name != lacking} for row in rows])
    found = dict(class_values(EachClass(columns(table), TRAFFIC_S), ClassSelector("A")))
    assert isinstance(found["class.passed"], Missing) and found["class.drops"] == 0
    assert class_rates(complete)["sent_bps"].tolist() == [8000.0]
    assert class_rates(table)["sent_bps"].isna().all()


class TestPlaces:
    @staticmethod
    def drops(*readings: tuple[float, int | None]) -> object:
        rows = [
            CELL | {"device": "R1", "interface": "Serial0/0", "time_s": time_s, "output_drops": count}
            for time_s, count in readings
        ]
        return dict(interface_values(select_objects(columns(tables.frame("interfaces", rows)), None)))[
            "interface.drops"
        ]

    def test_counters_of_the_traffic_time_need_two_readings(self) -> None:
        assert self.drops((-1.0, 5), (9.0, 12)) == 7
        assert "read only once" in str(self.drops((9.0, 12)))
        assert "decreased" in str(self.drops((-1.0, 12), (9.0, 5)))
        # A reading that lacks the counter does not take the value of the previous one.
        assert isinstance(self.drops((-1.0, 5), (8.0, 12), (9.0, None)), Missing)


def flow_record(**known: Any) -> dict[str, object]:
    row = {"traffic": "x", "offset_s": 0.0, "protocol": "udp", "seconds": 1.0, "bytes": 1000, "goodput_bps": 8000.0}
    return CELL | row | known


def test_losses_and_jitters_missing_from_a_tool_have_reasons() -> None:
    known = flow_record(stream=1, datagrams=10, lost=1, jitter_ms=0.5)
    whole = dict(
        goodput_values(
            columns(tables.frame("flows", [known, flow_record(stream=2, datagrams=10, lost=3, jitter_ms=1.5)]))
        )
    )
    assert (whole["datagrams.lost"], whole["datagrams.loss"], whole["datagrams.jitter"]) == (4, 0.2, 1.5)
    found = dict(goodput_values(columns(tables.frame("flows", [known, flow_record(stream=2, datagrams=10)]))))
    assert all(isinstance(found[f"datagrams.{name}"], Missing) for name in ("lost", "loss", "jitter"))
    # A stream without received packets has no jitter, and none is missing.
    found = dict(goodput_values(columns(tables.frame("flows", [known, flow_record(stream=2, datagrams=10, lost=10)]))))
    assert (found["datagrams.lost"], found["datagrams.jitter"]) == (11, 0.5)


def test_delay_and_voice_score_come_from_the_worst_stream() -> None:
    delays = {"delay_p50_ms": 10.0, "delay_p99_ms": 20.0, "delay_max_ms": 21.0}
    good = flow_record(stream=1, datagrams=10, lost=0, voice_r=93.2, **delays)
    bad = flow_record(
        stream=2, datagrams=10, lost=0, voice_r=50.0, **{name: 2 * value for name, value in delays.items()}
    )
    found = dict(goodput_values(columns(tables.frame("flows", [good, bad]))))
    assert [found[f"datagrams.delay.{name}"] for name in ("p50", "p99", "max")] == [20, 40, 42]
    assert found["voice.r"] == 50
    assert round(float(found["voice.mos"]), 2) == 2.58
    found = dict(goodput_values(columns(tables.frame("flows", [flow_record(stream=1, datagrams=10, lost=0)]))))
    assert "simulated" in str(found["datagrams.delay.p99"])
    assert "voice.r" not in found


def test_page_times_are_those_of_all_pages() -> None:
    few = flow_record(stream=1, pages=1, pages_unfinished=0, page_p50_ms=400.0, page_mean_ms=400.0, page_max_ms=400.0)
    many = flow_record(stream=2, pages=3, pages_unfinished=0, page_p50_ms=200.0, page_mean_ms=200.0, page_max_ms=300.0)
    none = flow_record(stream=3, pages=0, pages_unfinished=0)
    found = dict(goodput_values(columns(tables.frame("flows", [few, many, none]))))
    assert [found[f"pages.{name}"] for name in ("complete", "unfinished")] == [4, 0]
    assert [found[f"pages.time.{name}"] for name in ("p50", "mean", "max")] == [400, 250, 400]
    found = dict(goodput_values(columns(tables.frame("flows", [none]))))
    assert found["pages.complete"] == 0 and "pages.time.mean" not in found
    found = dict(goodput_values(columns(tables.frame("flows", [flow_record(stream=1)]))))
    assert "pages.complete" not in found


def test_page_times_after_unfinished_pages_are_medians_only() -> None:
    cut = flow_record(stream=1, pages=3, pages_unfinished=1, page_p50_ms=300.0, page_mean_ms=200.0, page_max_ms=300.0)
    found = dict(goodput_values(columns(tables.frame("flows", [cut]))))
    assert (found["pages.unfinished"], found["pages.time.p50"]) == (1, 300)
    assert found["pages.time.mean"] == found["pages.time.max"] == "1 of 4 pages were unfinished at the end"
    slow = flow_record(stream=2, pages=0, pages_unfinished=2)
    found = dict(goodput_values(columns(tables.frame("flows", [cut, slow]))))
    assert found["pages.time.p50"] == "3 of 6 pages were unfinished at the end"


def test_missing_output_of_hosts_and_shapers_has_reasons() -> None:
    hosts = pd.DataFrame({"retransmitted_segments": [3, None], "timeouts": [1, 2]})
    found = dict(host_values(columns(hosts), 1448.0))
    assert isinstance(found["tcp.retransmitted"], Missing) and found["tcp.timeouts"] == 3
    place = {"device": "R1", "interface": "Serial0/0", "direction": "output", "policy": "P", "time_s": 6.0}
    shaper = CELL | place | {"shape_mode": "average", "queue_discipline": "fifo"}
    rows = [shaper | {"class": "A", "queue_depth_packets": 4, "shape_active": False}, shaper | {"class": "B"}]
    found = dict(shaper_values(columns(tables.frame("classes", rows)), TRAFFIC_S))
    assert isinstance(found["shape.queue_depth.during"], Missing)
    assert isinstance(found["shape.active.during"], Missing)


def test_reason_appears_in_the_comparison() -> None:
    rows = [
        *printed_counters(4.0, queueing_counters(100, total_drops=10)),
        *printed_counters(8.0, queueing_counters(500, total_drops=210)),
    ]
    flows = tables.frame("flows", [flow_record(stream=1)])
    table = metrics({"flows": flows, "classes": tables.frame("classes", rows)}, TRAFFIC_S)
    row = table.set_index("metric").loc["class.passed(A)"]
    assert pd.isna(row["value"]) and "R1 Serial0/0 output A" in row["missing"]
    value = PublishedValue(arm="a", metric="class.passed(A)", value=1000.0, unit="b/s", source="nowhere")
    compared = compare("", table.assign(valid=True), [value], []).iloc[0]
    assert pd.isna(compared["measured"]) and compared["missing"] == row["missing"] and compared["excluded"] == 0
