"""Raw results to tables, tables to metrics, metrics to verdicts."""

from __future__ import annotations

import csv
import json
import math
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import sample_run
from hypothesis import given
from hypothesis import strategies as st

from qoslab.analysis import analyse, figures, raw, series
from qoslab.analysis import compare as comparing
from qoslab.analysis.class_metrics import class_figures
from qoslab.analysis.classes import Line, class_drops
from qoslab.analysis.goodput import goodput_figures, jain
from qoslab.analysis.metrics import Circumstances, metrics
from qoslab.analysis.observed import observed_class_rows
from qoslab.analysis.packets import bin_packets
from qoslab.analysis.policers import bucket_figures, police_figures
from qoslab.analysis.registry import CellFacts, MetricFunction, Selection, registered
from qoslab.analysis.shapers import shape_figures
from qoslab.analysis.steady import steady_figures
from qoslab.capture.pcapng import Packets, read_packets
from qoslab.errors import ExitStatus
from qoslab.model.comparison import Expectation, PublishedFigure
from qoslab.model.metrics import METRICS, ClassSelector, Reference, SelectorError
from qoslab.results import RunFolder, tables

PCAPNG = sample_run.RECORDED / "capture" / "four-streams.pcapng"


def flows_table(*streams: tuple[str, float, int]) -> pd.DataFrame:
    """Rows of (traffic, seconds, bytes)."""
    return tables.frame(
        "flows",
        [
            {
                "arm": "a",
                "repetition": 1,
                "traffic": traffic,
                "stream": number,
                "seconds": seconds,
                "bytes": count,
                "goodput_bps": count * 8 / seconds,
            }
            for number, (traffic, seconds, count) in enumerate(streams, start=1)
        ],
    )


class TestGoodput:
    def test_sum_is_all_bytes_over_the_longest_time(self) -> None:
        figures = dict(goodput_figures(flows_table(("x", 10.0, 1000), ("x", 20.0, 3000))))
        assert figures["goodput.sum"] == pytest.approx(4000 * 8 / 20)
        assert figures["goodput.flow.min"] == pytest.approx(800)
        assert figures["goodput.flow.max"] == pytest.approx(1200)
        assert figures["goodput.spread"] == pytest.approx(1.5)

    def test_traffics_add_up(self) -> None:
        figures = dict(goodput_figures(flows_table(("x", 10.0, 1000), ("y", 20.0, 1000))))
        assert figures["goodput.sum"] == pytest.approx(800 + 400)

    def test_traffic_that_comes_and_goes_counts_over_the_time_of_all(self) -> None:
        flows = flows_table(("x", 20.0, 2000), ("y", 5.0, 500), ("z", 5.0, 500)).assign(offset_s=[0.0, 5.0, 17.0])
        assert dict(goodput_figures(flows))["goodput.sum"] == pytest.approx(3000 * 8 / 22)

    def test_its_steady_goodput_is_that_of_all_too(self) -> None:
        rows = [("x", 0.0, second, 1250 if 5 <= second < 10 else 2500) for second in range(20)]
        rows += [("y", 5.0, second, 1250) for second in range(5)]
        table = pd.DataFrame(rows, columns=["traffic", "offset_s", "start_s", "bytes"])
        table = table.assign(stream=1, end_s=table["start_s"] + 1.0)
        assert dict(steady_figures(table))["goodput.steady"] == pytest.approx(20_000)

    def test_a_starved_flow_is_zero_and_not_left_out(self) -> None:
        figures = dict(goodput_figures(flows_table(("x", 10.0, 0), ("x", 10.0, 1000))))
        assert figures["goodput.flow.min"] == 0
        assert figures["goodput.spread"] == math.inf
        assert figures["fairness.jain"] == pytest.approx(0.5)

    def test_nothing_received_has_no_fairness(self) -> None:
        figures = dict(goodput_figures(flows_table(("x", 10.0, 0))))
        assert figures["goodput.sum"] == 0
        assert "fairness.jain" not in figures

    @given(st.lists(st.floats(1, 1e9), min_size=1, max_size=50), st.floats(0.001, 1000))
    def test_jain_is_between_one_flow_and_all_and_has_no_unit(self, goodputs: list[float], factor: float) -> None:
        index = jain(pd.Series(goodputs))
        assert 1 / len(goodputs) - 1e-9 <= index <= 1 + 1e-9
        assert jain(pd.Series(goodputs) * factor) == pytest.approx(index)
        assert jain(pd.Series([goodputs[0]] * 3)) == pytest.approx(1)


def classes_table(*replies: dict[str, object]) -> pd.DataFrame:
    origin = int(sample_run.STARTED.timestamp() * 10**9)
    return tables.frame(
        "classes", [{"arm": "a", "repetition": 1} | row for row in raw.class_rows("R1", replies, origin)]
    )


class TestCounters:
    def test_police_figures_are_the_last_counters(self) -> None:
        table = classes_table(*(sample_run.counters_reply(second, "P", police=True) for second in range(5)))
        figures = dict(police_figures(table))
        assert figures["police.bc"] == 31250
        assert figures["police.conformed_packets"] + figures["police.exceeded_packets"] == 500
        assert figures["police.exceed_share"] == pytest.approx(166 / 500)
        assert dict(shape_figures(table, 4)) == {}

    def test_policers_add_up_and_a_differing_burst_is_left_out(self) -> None:
        one, other = (sample_run.counters_reply(4, "P", police=True) for _ in range(2))
        other["interfaces"] = {"FastEthernet0/0": other["interfaces"]["FastEthernet0/1"]}
        other["interfaces"]["FastEthernet0/0"]["policy_output"]["classes"][0]["police"]["bc_bytes"] = 1500
        figures = dict(police_figures(classes_table(one, other)))
        assert "police.bc" not in figures
        assert figures["police.exceeded_packets"] == 2 * 166

    def test_a_policer_that_saw_nothing_has_no_share(self) -> None:
        figures = dict(police_figures(classes_table(sample_run.counters_reply(0, "P", police=True))))
        assert figures["police.exceeded_packets"] == 0
        assert "police.exceed_share" not in figures

    def test_shape_figures_are_read_two_thirds_into_the_traffic(self) -> None:
        replies = [sample_run.counters_reply(second, "S", shape=True) for second in range(-1, 10)]
        depth = {4: 17, 6: 23}
        for second, packets in depth.items():
            replies[second + 1]["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"][0]["queue"][
                "depth_packets"
            ] = packets
        figures = dict(shape_figures(classes_table(*replies), 9.0))
        assert figures == {
            "shape.byte_limit": 6250,
            "shape.sustain_bits": 25000,
            "shape.excess_bits": 25000,
            "shape.interval_ms": 25,
            "shape.increment_bytes": 3125,
            "shape.queue_depth.during": 23,
            "shape.active.during": 1,
        }

    def test_no_sample_during_the_traffic_gives_settings_only(self) -> None:
        figures = dict(shape_figures(classes_table(sample_run.counters_reply(-1, "S", shape=True)), 9.0))
        assert "shape.byte_limit" in figures and "shape.queue_depth.during" not in figures

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


def scheduled(second: float, **rates: tuple[float, float, int]) -> dict[str, Any]:
    """Counters of a policy whose classes are offered and drop so many packets a second, with so many waiting."""
    reply = sample_run.counters_reply(second, "P", police=True)
    classes = []
    for name, (offered, lost, waiting) in rates.items():
        count = sample_run.counted
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
    """Figures of classes: rates from counters over a window, and as the router prints them."""

    table = classes_table(
        *(
            scheduled(second, A=(40, 10, 7 if second < 4 else 17), B=(100, 30, 0), **{"class-default": (0, 0, 0)})
            for second in range(-1, 12)
        )
    )

    def figures(self, selector: str | None) -> dict[str, float]:
        return dict(class_figures(self.table, ClassSelector.parse(selector, {"R1": ("FastEthernet0/1",)}), 9.0))

    def test_rates_over_the_last_two_thirds_are_counted_bytes(self) -> None:
        found = self.figures("A")
        assert found["class.offered"] == pytest.approx(40 * 1514 * 8)
        assert found["class.dropped"] == pytest.approx(10 * 1514 * 8)
        # What stays in the queue has not passed: ten packets more at the end of the six seconds.
        assert found["class.passed"] == pytest.approx((30 - 10 / 6) * 1514 * 8)
        assert found["class.share"] == pytest.approx((30 - 10 / 6) / (30 - 10 / 6 + 70))
        assert found["class.drops"] == 11 * 10

    def test_share_of_the_line_counts_what_no_counter_has(self) -> None:
        line = Line(rate_bps=10e6, extra_bytes=24)
        found = dict(class_figures(self.table, ClassSelector("A"), 9.0, {("R1", "FastEthernet0/1"): line}))
        assert found["class.line_share"] == pytest.approx((30 - 10 / 6) * (1514 + 24) * 8 / 10e6)
        assert "class.line_share" not in self.figures("A")

    def test_printed_rates_are_rounded_and_taken_at_the_moment_of_during(self) -> None:
        found = self.figures("B")
        assert (found["class.offered.during"], found["class.dropped.during"]) == (1_211_000, 363_000)
        assert found["class.passed.during"] == 848_000
        assert found["class.drops.during"] == 6 * 30
        assert found["class.queue_depth.during"] == 0
        assert found["class.share.during"] == pytest.approx(848 / (848 + 484 - 121))

    def test_without_a_class_it_is_all_of_the_outermost_policies(self) -> None:
        assert self.figures(None) == self.figures("*") == self.figures("R1 FastEthernet0/1 output *")
        total = self.figures(None)
        assert total["class.passed"] == pytest.approx(self.figures("A")["class.passed"] + 70 * 1514 * 8)
        assert total["class.share"] == 1

    def test_a_class_that_is_not_there_has_no_figures(self) -> None:
        for selector in ("C", "input A", "A/B"):
            assert self.figures(selector) == {}

    def test_a_window_with_a_new_policy_in_it_has_no_rates(self) -> None:
        replies = [scheduled(second, A=(40, 10, 0)) for second in (1, 4, 6, 7)]
        replies[-1]["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"][0]["bytes"] = 5
        found = dict(class_figures(classes_table(*replies), ClassSelector("A"), 9.0))
        assert "class.passed" not in found and "class.passed.during" in found

    def test_children_are_named_by_their_path_and_not_counted_twice(self) -> None:
        replies = [scheduled(second, A=(40, 10, 0)) for second in range(10)]
        for reply in replies:
            parent = reply["interfaces"]["FastEthernet0/1"]["policy_output"]["classes"][0]
            parent["child"] = {"policy": "Child", "classes": [parent | {"name": "inner"}]}
        table = classes_table(*replies)
        every, inner = (dict(class_figures(table, ClassSelector(path), 9.0)) for path in ("*", "A/inner"))
        assert every["class.offered"] == inner["class.offered"] == pytest.approx(40 * 1514 * 8)
        assert inner["class.share"] == 1

    def test_the_table_names_every_class_and_what_is_wanted(self) -> None:
        flows = flows_table(("x", 1.0, 100), ("y", 1.0, 300))
        wanted = [Reference.parse("class.passed(R1 FastEthernet0/1 A)"), Reference.parse("police.bc(nowhere A)")]
        seconds = {"a/1": 9.0}
        flows, classes = flows.assign(cell="a/1"), self.table.assign(cell="a/1")
        found = metrics({"flows": flows, "classes": classes}, Circumstances(seconds, {}, {}), wanted).set_index(
            "metric"
        )["value"]
        assert found["goodput.sum(y)"] == 2400 and found["goodput.sum"] == 3200
        assert found["class.passed(A)"] == found["class.passed(R1 FastEthernet0/1 A)"]
        assert not any("nowhere" in name for name in found.index)

    @pytest.mark.parametrize(("text", "word"), [("R2 A", "R2"), ("R1 R1 A", "R1"), ("Serial0/0 A", "Serial0/0")])
    def test_words_that_mean_nothing(self, text: str, word: str) -> None:
        with pytest.raises(SelectorError, match=word):
            ClassSelector.parse(text, {"R1": ("FastEthernet0/1",)})


class TestPackets:
    def test_bins_hold_every_packet_once(self) -> None:
        whole = bin_packets(read_packets(PCAPNG))
        every = whole[whole["flow"] == "all"]
        rest = whole[whole["flow"] != "all"]
        with (PCAPNG.parent / "four-streams.csv").open() as handle:
            rows = list(csv.DictReader(handle))
        assert every["packets"].sum() == rest["packets"].sum() == len(rows)
        assert every["bytes"].sum() == rest["bytes"].sum() == sum(int(row["frame.len"]) for row in rows)
        one = rest[rest["flow"] == "192.168.10.2:40001 > 192.168.20.2:5201"]
        expected = [row for row in rows if row["tcp.srcport"] == "40001"]
        assert one["bytes"].sum() == sum(int(row["frame.len"]) for row in expected)
        assert one["time_s"].min() == pytest.approx(
            math.floor((float(expected[0]["frame.time_epoch"]) - float(rows[0]["frame.time_epoch"])) * 10) / 10
        )

    @pytest.mark.parametrize("piece", [1, 7, 40])
    def test_pieces_do_not_matter(self, piece: int) -> None:
        def table(size: int) -> pd.DataFrame:
            return bin_packets(read_packets(PCAPNG, piece=size)).sort_values(["flow", "time_s"]).reset_index(drop=True)

        pd.testing.assert_frame_equal(table(piece), table(10**6))

    def test_packets_before_the_origin_have_negative_times(self) -> None:
        def field(*values: int) -> np.ndarray:
            return np.array(values, dtype=np.int64)

        packets = Packets(
            time_ns=field(-150_000_000, 0, 99_999_999, 100_000_000),
            bytes=field(1, 2, 3, 4),
            source=field(-1, -1, 0x0A000001, 0x0A000001),
            destination=field(-1, -1, 0x0A000002, 0x0A000002),
            protocol=field(-1, -1, 1, 17),
            source_port=field(-1, -1, -1, 53),
            destination_port=field(-1, -1, -1, 1053),
        )
        table = bin_packets([packets], 0)
        every = table[table["flow"] == "all"].sort_values("time_s")
        assert list(every["time_s"]) == pytest.approx([-0.2, 0.0, 0.1])
        assert list(every["bytes"]) == [1, 5, 4]
        assert set(table["flow"]) == {
            "all",
            "not IPv4",
            "10.0.0.1 > 10.0.0.2 protocol 1",
            "10.0.0.1:53 > 10.0.0.2:1053",
        }

    def test_no_packets_no_rows(self) -> None:
        assert bin_packets([]).empty


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


class TestRun:
    def test_tables_and_comparison_from_a_run(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        outcome = analyse(run)
        assert outcome.valid and outcome.reasons == ()
        assert {row.metric: row.verdict for row in outcome.comparison.itertuples() if row.arm == "policed"} == {
            "police.bc": "within",
            "police.exceed_share": "within",
            "goodput.spread": "outside",
            "goodput.sum": "informative",
        }
        assert outcome.exit_status == ExitStatus.OUTSIDE
        flows = tables.read_table(run, "flows")
        assert len(flows) == 8
        end = json.loads((run.cell("policed").path / "traffic/transfer.server.json").read_text())["end"]
        policed = flows[flows["arm"] == "policed"]
        assert policed["bytes"].sum() == end["sum_received"]["bytes"]
        figures = tables.read_table(run, "metrics").set_index(["arm", "metric"])["value"]
        assert figures["policed", "goodput.sum"] == pytest.approx(end["sum_received"]["bits_per_second"])
        assert figures["shaped", "shape.active.during"] == 1
        packets = tables.read_table(run, "packets_io")
        assert set(packets["capture"]) == {"server"} and set(packets["arm"]) == {"policed", "shaped"}
        assert 0 <= packets["time_s"].min() < 0.5, "times count from the start of the traffic"
        assert len(tables.read_table(run, "health")) == 2
        assert len(tables.read_table(run, "interfaces")) == 2 * 13

    def test_it_can_be_computed_again(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        analyse(run)
        before = (run.path / "comparison.csv").read_bytes()
        analyse(run)
        assert (run.path / "comparison.csv").read_bytes() == before

    def test_figures_of_an_invalid_arm_are_shown_and_decide_nothing(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path, valid=False)
        outcome = analyse(run)
        assert not outcome.valid and outcome.exit_status == ExitStatus.RUN_INVALID
        assert outcome.reasons == ("policed/1: R1: the kernel dropped 7 frames",)
        policed = outcome.comparison[outcome.comparison["arm"] == "policed"]
        assert set(policed["verdict"]) == {"informative"} and policed["measured"].notna().all()
        ratio = outcome.comparison[outcome.comparison["arm"] == "shaped/policed"]
        assert list(ratio["verdict"]) == ["informative"], "one side of it is not to be trusted"
        assert outcome.untrusted == {"policed"} and outcome.outside == 0

    def test_an_invalid_repetition_is_not_averaged_in(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path, valid=False)
        again = run.cell("policed", 2)
        shutil.copytree(run.cell("policed").path, again.path)
        record = json.loads((again.path / "cell.json").read_text())
        record |= {"repetition": 2, "valid": True, "reasons": []}
        (again.path / "cell.json").write_text(json.dumps(record))
        counters = again.counters("R1")
        counters.write_text(counters.read_text().replace('"bc_bytes":31250', '"bc_bytes":1500'))
        manifest = json.loads((run.path / "manifest.json").read_text())
        manifest["cells"].append({"arm": "policed", "repetition": 2, "valid": True})
        (run.path / "manifest.json").write_text(json.dumps(manifest))
        outcome = analyse(run)
        assert not outcome.valid and outcome.untrusted == frozenset()
        burst = outcome.comparison[outcome.comparison["metric"] == "police.bc"].iloc[0]
        assert burst["measured"] == 1500 and burst["verdict"] == "outside"

    def test_broken_tool_output_makes_the_run_invalid(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        file = run.cell("shaped").traffic("transfer", "server", "json")
        file.write_text(file.read_text()[:-100])
        outcome = analyse(run)
        assert not outcome.valid
        assert len(outcome.reasons) == 1 and "iperf3 server" in outcome.reasons[0]

    def test_a_missing_cell_makes_the_run_invalid(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        (run.cell("shaped").path / "cell.json").unlink()
        assert analyse(run).reasons == ("shaped/1: it was not run to the end",)

    def test_figures_of_arms_that_were_left_out_are_not_compared(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        manifest = json.loads((run.path / "manifest.json").read_text())
        manifest["cells"] = manifest["cells"][:1]
        (run.path / "manifest.json").write_text(json.dumps(manifest))
        (run.cell("shaped").path / "cell.json").unlink()
        outcome = analyse(run)
        assert outcome.valid
        assert set(outcome.comparison["arm"]) == {"policed"}


def test_metrics_are_by_cell() -> None:
    flows = pd.concat([flows_table(("x", 1.0, 100)).assign(repetition=number, cell=f"a/{number}") for number in (1, 2)])
    table = metrics({"flows": flows}, Circumstances({"a/1": 1.0, "a/2": 1.0}, {}, {}))
    assert list(table[table["metric"] == "goodput.sum"]["repetition"]) == [1, 2]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = sample_run.make_run(tmp_path_factory.mktemp("runs"))
    analyse(run)
    return run


@pytest.fixture(scope="module")
def policed(sample: RunFolder) -> dict[str, pd.DataFrame]:
    found = {name: tables.read_table(sample, name) for name in ("packets_io", "flows", "classes")}
    return {name: table[table["arm"] == "policed"] for name, table in found.items()}


@pytest.fixture(scope="module")
def throughput(sample: RunFolder, policed: dict[str, pd.DataFrame]) -> pd.DataFrame:
    records = sample.cell("policed").record().flows
    return series.flow_throughput(policed["packets_io"], policed["flows"], records)


class TestSeries:
    """The IO graph and the counters over time, from one real capture and its own tool output."""

    def test_each_stream_has_its_line_and_the_aggregate_holds_them(self, throughput: pd.DataFrame) -> None:
        assert list(throughput.columns) == ["all", "stream 1", "stream 2", "stream 3", "stream 4"]
        rest = throughput["all"] - throughput.drop(columns="all").sum(axis=1)
        assert (rest >= -1e-6).all()
        # What remains is the tool's control connection.
        assert 0 < rest.sum() < 0.02 * throughput["all"].sum()

    def test_frames_carry_the_payload_that_the_tool_counted(
        self, throughput: pd.DataFrame, policed: dict[str, pd.DataFrame]
    ) -> None:
        octets = throughput.drop(columns="all").sum() * series.BIN_S / 8
        goodput = policed["flows"].set_index("stream")["bytes"]
        for stream, payload in goodput.items():
            # 66 bytes of headers for each 1448 bytes of payload; the last segments may come after the tool's end.
            assert octets[f"stream {stream}"] == pytest.approx(payload * 1514 / 1448, rel=0.12)
            assert octets[f"stream {stream}"] > payload

    def test_time_has_no_gaps(self, throughput: pd.DataFrame) -> None:
        assert np.diff(np.array(throughput.index)) == pytest.approx(0.1)

    def test_without_a_known_flow_the_aggregate_is_all_packets(self, policed: dict[str, pd.DataFrame]) -> None:
        table = series.flow_throughput(policed["packets_io"], policed["flows"], ())
        packets = policed["packets_io"]
        assert list(table.columns) == ["all"]
        assert table["all"].sum() * series.BIN_S / 8 == pytest.approx(packets[packets["flow"] == "all"]["bytes"].sum())

    def test_offered_is_sent_and_dropped(self, policed: dict[str, pd.DataFrame]) -> None:
        rates = series.class_rates(policed["classes"])
        assert rates["offered_bps"].to_numpy() == pytest.approx((rates["sent_bps"] + rates["dropped_bps"]).to_numpy())
        assert rates["offered_bps"].max() == pytest.approx(125 * 1514 * 8, rel=0.02)
        assert rates["queue_packets"].isna().all()

    def test_counters_that_start_over_are_no_negative_rate(self) -> None:
        seconds = (1, 2, 3, 1, 2)
        replies = [sample_run.counters_reply(second, "P", police=True) for second in seconds]
        for number, reply in enumerate(replies):
            reply["time_ns"] += number * 10**10
        rates = series.class_rates(classes_table(*replies))
        assert len(rates) == 3 and (rates["offered_bps"] >= 0).all()

    def test_a_reading_soon_after_another_makes_no_peak(self) -> None:
        replies = [sample_run.counters_reply(second, "P", police=True) for second in (0, 1, 2, 3, 3.05)]
        replies[-1]["interfaces"] = sample_run.counters_reply(3.5, "P", police=True)["interfaces"]
        rates = series.class_rates(classes_table(*replies))
        assert list(rates["time_s"]) == [1, 2, 3]
        assert rates["offered_bps"].to_numpy() == pytest.approx(125 * 1514 * 8)

    def test_figures_have_a_line_for_each_column(self, throughput: pd.DataFrame) -> None:
        figure = figures.io_graph(throughput)
        lines = figure["data"]
        assert [line["name"] for line in lines] == ["all flows", "stream 1", "stream 2", "stream 3", "stream 4"]
        assert lines[0]["line"]["color"] == figures.BLACK
        assert len({(line["line"]["color"], line["line"]["dash"]) for line in lines}) == 5
        assert figure["layout"]["yaxis"]["title"]["text"] == "frames, kb/s"
        assert not np.isnan([value for line in lines for value in line["y"]]).any()

    def test_plotly_takes_the_figures(self, throughput: pd.DataFrame, sample: RunFolder) -> None:
        classes = tables.read_table(sample, "classes")
        shaped = series.class_rates(classes[classes["arm"] == "shaped"])
        assert len(go.Figure(figures.io_graph(throughput)).data) == 5
        drawn = go.Figure(figures.class_graph(shaped))
        assert [line.name for line in drawn.data] == ["offered", "sent", "dropped", "queue"]
        assert drawn.data[3].yaxis == "y2"

    @pytest.mark.parametrize(
        ("greatest", "unit"), [(0, "b/s"), (900, "b/s"), (3e6, "kb/s"), (97e6, "Mb/s"), (2e10, "Gb/s")]
    )
    def test_axis_units(self, greatest: float, unit: str) -> None:
        assert figures.unit_of(greatest)[1] == unit


class TestObserved:
    """A router without counters over time: its parsed show output gives the same metrics."""

    @staticmethod
    def table(arm: str, time_s: float = 6.0) -> pd.DataFrame:
        parsed = json.loads((sample_run.RECORDED / "observed" / f"{arm}.json").read_text())
        return tables.frame(
            "classes", [{"arm": arm, "repetition": 1} | row for row in observed_class_rows("R1", parsed, time_s)]
        )

    def test_police_metrics(self) -> None:
        table = self.table("policed")
        assert dict(police_figures(table)) == {
            "police.bc": 31250,
            "police.conformed_packets": 414,
            "police.exceeded_packets": 174,
            "police.exceed_share": 174 / 588,
        }
        assert list(table["drops_police_packets"]) == [174]

    def test_shape_metrics(self) -> None:
        assert dict(shape_figures(self.table("shaped"), 9.0)) == {
            "shape.byte_limit": 6250,
            "shape.sustain_bits": 25000,
            "shape.excess_bits": 25000,
            "shape.interval_ms": 25,
            "shape.increment_bytes": 3125,
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

    def test_nested_policies_and_the_later_print(self) -> None:
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

    def test_a_run_of_a_router_without_counters_has_its_metrics(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        for arm in ("policed", "shaped"):
            cell = run.cell(arm)
            cell.counters("R1").unlink()
            base = cell.observation("R1", "during", "show policy-map interface")
            parsed = (sample_run.RECORDED / "observed" / f"{arm}.json").read_text()
            base.with_name(base.name + ".json").write_text(parsed)
        assert analyse(run).valid
        figures_ = tables.read_table(run, "metrics").set_index(["arm", "metric"])["value"]
        assert figures_["policed", "police.exceed_share"] == pytest.approx(174 / 588)
        assert figures_["shaped", "shape.queue_depth.during"] == 50


def test_a_dynamic_bucket_is_described() -> None:
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
    found = dict(bucket_figures(tables.frame("classes", rows), 5.0))
    assert found["police.bucket.final"] == 21000
    assert found["police.bucket.final_ms"] == 168
    assert found["police.bucket.mean"] == pytest.approx(sum(sizes) / 6)
    assert (found["police.bucket.growths"], found["police.bucket.shrinks"]) == (5, 10)
    assert found["police.bucket.late"] == pytest.approx(61000 / 3)
    # 22 000 is the first size within a fifth of the later 20 333.
    assert found["police.bucket.settled"] == 2000
    assert not dict(bucket_figures(tables.frame("classes", rows + rows), 5.0))


def test_each_metric_is_yielded_by_one_function() -> None:
    assert sorted(registered()) == sorted(METRICS)


def test_a_function_yields_what_it_is_registered_with() -> None:
    rogue = MetricFunction("flows", frozenset({"goodput.sum"}), lambda selection: iter([("police.bc", 1.0)]))
    empty = Selection(pd.DataFrame(), pd.DataFrame(), None, CellFacts({}, 1.0, {}, {}))
    with pytest.raises(ValueError, match=r"found the metric police\.bc, expected one of goodput\.sum"):
        list(rogue.figures(empty))
