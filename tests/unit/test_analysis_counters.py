"""Counters of classes to metrics: a data plane's, and those in a router's output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sample_run
from analysis_tables import classes_table, columns, flows_table, metrics

from qoslab.analysis import analyse, class_metrics
from qoslab.analysis.class_lines import Line
from qoslab.analysis.class_metrics import EachClass, class_values
from qoslab.analysis.classes import class_drops
from qoslab.analysis.missing import Missing
from qoslab.analysis.policers import bucket_values, policer_values
from qoslab.analysis.series import class_rates
from qoslab.analysis.shapers import shaper_values
from qoslab.analysis.show_policy_rows import observed_class_rows
from qoslab.model.metrics import ClassSelector, Reference, SelectorError
from qoslab.results import tables
from qoslab.results.columns import Columns


class TestCounters:
    def test_police_values_come_from_the_last_counters(self) -> None:
        table = classes_table(*(sample_run.counters_reply(second, "P", police=True) for second in range(5)))
        values = dict(policer_values(columns(table)))
        assert values["police.bc"] == 31250
        assert values["police.conformed_packets"] + values["police.exceeded_packets"] == 500
        assert values["police.exceed_share"] == pytest.approx(166 / 500)
        assert dict(shaper_values(columns(table), 4)) == {}

    def test_policers_add_up_and_a_differing_burst_is_left_out(self) -> None:
        one, other = (sample_run.counters_reply(4, "P", police=True) for _ in range(2))
        other["interfaces"] = {"FastEthernet0/0": other["interfaces"]["FastEthernet0/1"]}
        other["interfaces"]["FastEthernet0/0"]["policy_output"]["classes"][0]["police"]["bc_bytes"] = 1500
        values = dict(policer_values(columns(classes_table(one, other))))
        assert "police.bc" not in values
        assert values["police.exceeded_packets"] == 2 * 166

    def test_policer_without_packets_has_no_share(self) -> None:
        values = dict(policer_values(columns(classes_table(sample_run.counters_reply(0, "P", police=True)))))
        assert values["police.exceeded_packets"] == 0
        assert "police.exceed_share" not in values

    def test_shape_values_are_read_two_thirds_into_the_traffic(self) -> None:
        replies = [sample_run.counters_reply(second, "S", shape=True) for second in range(-1, 10)]
        depth = {4: 17, 6: 23}
        for second, packets in depth.items():
            replies[second + 1]["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"][0]["queue"][
                "depth_packets"
            ] = packets
        values = dict(shaper_values(columns(classes_table(*replies)), 9.0))
        assert values == {
            "shape.byte_limit": 6250,
            "shape.sustain_bits": 25000,
            "shape.excess_bits": 25000,
            "shape.interval_ms": 25,
            "shape.increment_bytes": 3125,
            "shape.sent_packets": 1085,
            "shape.sent_bytes": 1642690,
            "shape.delayed_packets": 1085,
            "shape.delayed_bytes": 1642690,
            "shape.queue_depth.during": 23,
            "shape.active.during": 1,
        }

    def test_single_printed_depth_includes_the_ring(self) -> None:
        replies = [sample_run.counters_reply(second, "S", shape=True) for second in range(-1, 10)]
        queue = replies[7]["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"][0]["queue"]
        queue |= {"depth_packets": 23, "in_ring_packets": 2}
        table = classes_table(*replies)
        assert dict(shaper_values(columns(table), 9.0))["shape.queue_depth.during"] == 25
        found = dict(class_values(EachClass(columns(table), 9.0), ClassSelector("class-default")))
        assert found["class.queue_depth.during"] == 25
        drawn = class_rates(table).set_index("time_s")["queue_packets"]
        assert drawn[6.0] == 25

    def test_class_without_samples_during_traffic_has_only_settings(self) -> None:
        values = dict(shaper_values(columns(classes_table(sample_run.counters_reply(-1, "S", shape=True))), 9.0))
        assert "shape.byte_limit" in values and "shape.queue_depth.during" not in values

    def test_drops_by_class_add_up(self) -> None:
        table = class_drops(classes_table(*(sample_run.counters_reply(second, "S", shape=True) for second in range(5))))
        row = table.iloc[0]
        assert (row["offered"], row["sent"], row["queued"]) == (500, 460, 40)
        row = class_drops(classes_table(sample_run.counters_reply(4, "P", police=True))).iloc[0]
        assert (row["offered"], row["sent"], row["police"], row["tail"], row["flow"]) == (500, 334, 166, 0, 0)
        assert pd.isna(row["queued"])

    def test_nested_classes_are_named_by_their_path(self) -> None:
        reply = sample_run.counters_reply(1, "Parent", shape=True)
        parent = reply["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"][0]
        parent["child"] = {
            "policy": "Child",
            "classes": [sample_run.class_counters(1, police=True) | {"name": "voice"}],
        }
        table = classes_table(reply)
        assert list(table["class"]) == ["class-default", "class-default/voice"]
        assert list(table["police_bc_bytes"].notna()) == [False, True]


def queueing_counters(second: float, **rates: tuple[float, float, int]) -> dict[str, Any]:
    """Return the counters of a policy whose classes are offered and drop so many packets per second, with so many
    waiting.
    """
    reply = sample_run.counters_reply(second, "P", police=True)
    classes = []
    for name, (offered, lost, waiting) in rates.items():
        count = sample_run.counted_value
        entry = sample_run.class_counters(second, shape=True)
        entry |= {
            "name": name,
            **count(round(offered * max(second, 0))),
            "offered_rate_bps": offered * 1514 * 8,
            "drop_rate_bps": lost * 1514 * 8,
            "drops": entry["drops"] | {"flow": count(round(lost * max(second, 0)))},
        }
        queue = entry["queue"] | {"depth_packets": waiting, "depth_bytes": waiting * 1514}
        classes.append(entry | {"queue": queue, "shape": None})
    reply["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"] = classes
    return reply


class TestClasses:
    """Tests of class values: rates from counters over a window, and as the router prints them."""

    table = classes_table(
        *(
            queueing_counters(
                second, A=(40, 10, 7 if second < 4 else 17), B=(100, 30, 0), **{"class-default": (0, 0, 0)}
            )
            for second in range(-1, 12)
        )
    )

    def values(self, selector: str | None) -> dict[str, float]:
        return dict(
            class_values(
                EachClass(columns(self.table), 9.0), ClassSelector.parse(selector, {"R1": ("FastEthernet0/1",)})
            )
        )

    def test_rates_over_the_last_two_thirds_use_counted_bytes(self) -> None:
        found = self.values("A")
        assert found["class.offered"] == pytest.approx(40 * 1514 * 8)
        assert found["class.dropped"] == pytest.approx(10 * 1514 * 8)
        # Queued packets have not passed: ten packets more at the end of the six seconds.
        assert found["class.passed"] == pytest.approx((30 - 10 / 6) * 1514 * 8)
        assert found["class.share"] == pytest.approx((30 - 10 / 6) / (30 - 10 / 6 + 70))
        assert found["class.drops"] == 11 * 10

    def test_share_of_the_line_includes_uncounted_bytes(self) -> None:
        line = Line(rate_bps=10e6, extra_bytes=24)
        found = dict(
            class_values(EachClass(columns(self.table), 9.0, {("R1", "FastEthernet0/1"): line}), ClassSelector("A"))
        )
        assert found["class.line_share"] == pytest.approx((30 - 10 / 6) * (1514 + 24) * 8 / 10e6)
        assert "class.line_share" not in self.values("A")

    def test_printed_rates_are_rounded_and_taken_during_traffic(self) -> None:
        found = self.values("B")
        assert (found["class.offered.during"], found["class.dropped.during"]) == (1_211_000, 363_000)
        assert found["class.passed.during"] == 848_000
        assert found["class.drops.during"] == 6 * 30
        assert found["class.queue_depth.during"] == 0
        assert found["class.share.during"] == pytest.approx(848 / (848 + 484 - 121))

    def test_selector_without_a_class_covers_the_outermost_policies(self) -> None:
        assert self.values(None) == self.values("*") == self.values("R1 FastEthernet0/1 output *")
        total = self.values(None)
        assert total["class.passed"] == pytest.approx(self.values("A")["class.passed"] + 70 * 1514 * 8)
        assert total["class.share"] == 1

    def test_missing_class_has_no_values(self) -> None:
        for selector in ("C", "input A", "A/B"):
            assert self.values(selector) == {}

    def test_each_class_is_computed_once_for_any_selection(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Compute shares: every class has a share of all classes of its policy, which are not computed again for
        each.
        """
        own, computed = class_metrics._window_rates, []

        def replaced_readings(readings: Columns, *rest: Any) -> dict[str, Any]:
            computed.append(readings["class"][0])
            return own(readings, *rest)

        monkeypatch.setattr(class_metrics, "_window_rates", replaced_readings)
        found = metrics({"classes": self.table.assign(cell="a/1")}, 9.0)
        shares = found[found["metric"].str.startswith("class.share(")]
        assert len(shares) == 3 and shares["value"].sum() == pytest.approx(1.0)
        assert sorted(computed) == ["A", "B", "class-default"]

    def test_window_with_a_new_policy_has_no_rates(self) -> None:
        replies = [queueing_counters(second, A=(40, 10, 0)) for second in (1, 4, 6, 7)]
        replies[-1]["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"][0]["bytes"] = 5
        found = dict(class_values(EachClass(columns(classes_table(*replies)), 9.0), ClassSelector("A")))
        assert "class.passed" not in found and "class.passed.during" in found

    def test_drops_and_depth_of_a_class_without_packets_are_missing(self) -> None:
        replies = [queueing_counters(second, A=(0, 0, 0), B=(40, 10, 0)) for second in range(10)]
        classes = EachClass(columns(classes_table(*replies)), 9.0)
        idle, busy = (dict(class_values(classes, ClassSelector(name))) for name in "AB")
        assert (idle["class.packets"], idle["class.offered"]) == (0, 0)
        for name in ("class.drops", "class.dropped", "class.queue_depth.during"):
            assert idle[name] == Missing("R1 FastEthernet0/1 output A: no packet matched the class")
            assert not isinstance(busy[name], Missing)

    def test_children_are_named_by_their_path_and_not_counted_twice(self) -> None:
        replies = [queueing_counters(second, A=(40, 10, 0)) for second in range(10)]
        for reply in replies:
            parent = reply["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"][0]
            parent["child"] = {"policy": "Child", "classes": [parent | {"name": "inner"}]}
        table = classes_table(*replies)
        every, inner = (
            dict(class_values(EachClass(columns(table), 9.0), ClassSelector(path))) for path in ("*", "A/inner")
        )
        assert every["class.offered"] == inner["class.offered"] == pytest.approx(40 * 1514 * 8)
        assert inner["class.share"] == 1

    def test_table_has_every_class_and_the_requested_columns(self) -> None:
        flows = flows_table(("x", 1.0, 100), ("y", 1.0, 300))
        wanted = [Reference.parse("class.passed(R1 FastEthernet0/1 A)"), Reference.parse("police.bc(nowhere A)")]
        flows, classes = flows.assign(cell="a/1"), self.table.assign(cell="a/1")
        found = metrics({"flows": flows, "classes": classes}, 9.0, wanted).set_index("metric")["value"]
        assert found["goodput.sum(y)"] == 2400 and found["goodput.sum"] == 3200
        assert found["class.passed(A)"] == found["class.passed(R1 FastEthernet0/1 A)"]
        assert not any("nowhere" in name for name in found.index)

    @pytest.mark.parametrize(("text", "word"), [("R2 A", "R2"), ("R1 R1 A", "R1"), ("Serial0/0 A", "Serial0/0")])
    def test_unknown_selectors_are_refused(self, text: str, word: str) -> None:
        with pytest.raises(SelectorError, match=word):
            ClassSelector.parse(text, {"R1": ("FastEthernet0/1",)})


class TestObserved:
    """Tests of a router without counters over time: its parsed show output gives the same metrics."""

    @staticmethod
    def table(arm: str, time_s: float = 6.0) -> pd.DataFrame:
        parsed = json.loads((sample_run.RECORDED / "observed" / f"{arm}.json").read_text())
        return tables.frame(
            "classes", [{"arm": arm, "repetition": 1} | row for row in observed_class_rows("R1", parsed, time_s)]
        )

    def test_police_metrics_are_read_from_the_counters(self) -> None:
        table = self.table("policed")
        assert dict(policer_values(columns(table))) == {
            "police.bc": 31250,
            "police.conformed_packets": 414,
            "police.exceeded_packets": 174,
            "police.conformed_bytes": 597983,
            "police.exceeded_bytes": 263436,
            "police.conformed_rate": 13000,
            "police.exceeded_rate": 6000,
            "police.exceed_share": 174 / 588,
            "police.violate_share": 0,
            "police.without_tokens_share": 174 / 588,
        }
        assert list(table["drops_police_packets"]) == [174]
        found = dict(class_values(EachClass(columns(table), 9.0), ClassSelector.parse(None)))
        assert (found["class.packets"], found["class.bytes"]) == (588, 861419)

    def test_shape_metrics_are_read_from_the_counters(self) -> None:
        assert dict(shaper_values(columns(self.table("shaped")), 9.0)) == {
            "shape.byte_limit": 6250,
            "shape.sustain_bits": 25000,
            "shape.excess_bits": 25000,
            "shape.interval_ms": 25,
            "shape.increment_bytes": 3125,
            "shape.sent_packets": 477,
            "shape.sent_bytes": 691577,
            "shape.delayed_packets": 454,
            "shape.delayed_bytes": 684108,
            "shape.queue_depth.during": 50,
            "shape.active.during": 1,
        }

    def test_drops_by_reason_of_a_queueing_class(self) -> None:
        entry = {
            "packets": 100,
            "bytes": 1000,
            "queue_depth": 0,
            "total_drops": 20,
            "flow_drops": 12,
            "random_detect": {"class": {str(n): {"random_drop_packets": "1"} for n in range(3)}},
            "bandwidth_percent": 20,
            "bandwidth_kbps": 400,
        }
        urgent = {"packets": 50, "bytes": 500, "priority": {"kbps": 64, "exceed_drops": 4}}
        shared = {"priority_level": {"default": {"queue_depth": 0, "total_drops": 0}}}
        policy = {"class_map": {"web": entry, "echo": urgent}, "queue_stats_for_all_priority_classes": shared}
        parsed = {"Serial0/1/0": {"service_policy": {"output": {"policy_name": {"P": policy}}}}}
        table = tables.frame(
            "classes", [{"arm": "a", "repetition": 1} | row for row in observed_class_rows("R1", parsed, 6.0)]
        )
        found = class_drops(table).set_index("class")
        assert found.loc["web", ["tail", "flow", "random", "sent"]].tolist() == [5, 12, 3, 80]
        assert found.loc["echo", ["priority", "sent"]].tolist() == [4, 46]
        assert table["bandwidth_kbps"].tolist()[0] == 400

    def test_nested_policies_are_read_from_the_later_output(self) -> None:
        child = {
            "class_map": {"voice": {"packets": 3, "bytes": 300, "police": {"cir_bps": 8000, "cir_bc_bytes": 1500}}}
        }
        parent = {
            "packets": 5,
            "bytes": 500,
            "shape_type": "average",
            "shape_cir_bps": 1_000_000,
            "shape_bc_bps": 4000,
            "shape_be_bps": 4000,
            "queue_depth": 7,
            "child_policy_name": {"Child": child},
        }
        parsed = {"Gi1": {"service_policy": {"output": {"policy_name": {"P": {"class_map": {"all": parent}}}}}}}
        rows = list(observed_class_rows("R1", parsed, 1.0))
        assert [row["class"] for row in rows] == ["all", "all/voice"]
        assert rows[0]["shape_bc_bits"] == 4000 and rows[0]["queue_depth_packets"] == 7
        assert rows[1]["police_bc_bytes"] == 1500

    def test_run_of_a_router_without_counters_has_its_metrics(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        for arm in ("policed", "shaped"):
            cell = run.cell(arm)
            cell.counters("R1").unlink()
            base = cell.observation("R1", "during", "show policy-map interface")
            parsed = (sample_run.RECORDED / "observed" / f"{arm}.json").read_text()
            base.with_name(base.name + ".json").write_text(parsed)
        sample_run.reseal(run.path)
        assert analyse(run).valid
        figures_ = tables.read_table(run, "metrics").set_index(["arm", "metric"])["value"]
        assert figures_["policed", "police.exceed_share"] == pytest.approx(174 / 588)
        assert figures_["shaped", "shape.queue_depth.during"] == 50


def test_dynamic_bucket_is_described() -> None:
    sizes = [15000, 30000, 22000, 20000, 20000, 21000]
    rows: list[dict[str, object]] = [
        {
            "device": "R1",
            "interface": "Fa0/0",
            "direction": "input",
            "policy": "P",
            "class": "class-default",
            "time_s": float(time),
            "police_cir_bps": 1e6,
            "police_dynamic_bucket_bytes": size,
            "police_dynamic_growths": time,
            "police_dynamic_shrinks": 2 * time,
        }
        for time, size in enumerate(sizes)
    ]
    found = dict(bucket_values(columns(tables.frame("classes", rows)), 5.0))
    assert found["police.bucket.final"] == 21000
    assert found["police.bucket.final_ms"] == 168
    assert found["police.bucket.mean"] == pytest.approx(sum(sizes) / 6)
    assert (found["police.bucket.growths"], found["police.bucket.shrinks"]) == (5, 10)
    assert found["police.bucket.late"] == pytest.approx(61000 / 3)
    # 22 000 is the first size within a fifth of the later 20 333.
    assert found["police.bucket.settled"] == 2000
    assert not dict(bucket_values(columns(tables.frame("classes", rows + rows)), 5.0))
