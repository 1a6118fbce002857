"""Raw results to tables, tables to metrics, a whole run to its outcome."""

from __future__ import annotations

import functools
import json
import math
import re
import shutil
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sample_run
from analysis_tables import CREDIT, columns, flows_table, metrics, reported_flows
from hypothesis import given
from hypothesis import strategies as st

from qoslab.analysis import analyse
from qoslab.analysis.goodput import goodput_values, jain, share_values
from qoslab.analysis.metric_functions import CellFacts, MetricFunction, Selection, registered_names
from qoslab.analysis.missing import NOT_TOGETHER, Missing
from qoslab.analysis.steady import first_drop_s, simultaneous_goodput, steady_values
from qoslab.errors import ExitStatus
from qoslab.lab_kinds import lab_kind
from qoslab.model.metrics import METRICS
from qoslab.results import tables


class TestGoodput:
    def test_goodput_sum_is_all_bytes_over_the_longest_time(self) -> None:
        values = dict(goodput_values(columns(flows_table(("x", 10.0, 1000), ("x", 20.0, 3000)))))
        assert values["goodput.sum"] == pytest.approx(4000 * 8 / 20)
        assert values["goodput.flow.min"] == pytest.approx(800)
        assert values["goodput.flow.max"] == pytest.approx(1200)
        assert values["goodput.spread"] == pytest.approx(1.5)

    def test_flows_are_selected_by_order(self) -> None:
        flows = flows_table(*(("x", 10.0, size) for size in (5000, 1250, 3750, 2500)))
        values = dict(goodput_values(columns(flows)))
        names = ("min", "second_min", "median", "second_max", "max")
        assert [values[f"goodput.flow.{name}"] for name in names] == [1000, 2000, 2500, 3000, 4000]
        alone = dict(goodput_values(columns(flows.head(1))))
        assert alone["goodput.flow.median"] == 4000
        assert not {"goodput.flow.second_min", "goodput.flow.second_max"} & alone.keys()

    def test_share_is_relative_to_all_traffic(self) -> None:
        flows = flows_table(("x", 10.0, 1000), ("y", 20.0, 6000))
        assert dict(share_values(columns(flows[flows["traffic"] == "x"]), columns(flows))) == {
            "goodput.share": pytest.approx(1 / 7)
        }
        assert dict(share_values(columns(flows), columns(flows))) == {"goodput.share": 1}
        nothing = flows.assign(bytes=0)
        assert dict(share_values(columns(nothing), columns(nothing))) == {}

    def test_goodput_of_traffic_entries_adds_up(self) -> None:
        values = dict(goodput_values(columns(flows_table(("x", 10.0, 1000), ("y", 20.0, 1000)))))
        assert values["goodput.sum"] == pytest.approx(16_000 / 20)

    def test_intermittent_traffic_counts_over_the_total_time(self) -> None:
        flows = flows_table(("x", 20.0, 2000), ("y", 5.0, 500), ("z", 5.0, 500)).assign(offset_s=[0.0, 5.0, 17.0])
        assert dict(goodput_values(columns(flows)))["goodput.sum"] == pytest.approx(3000 * 8 / 22)

    def test_steady_goodput_of_intermittent_traffic_uses_the_total_time(self) -> None:
        rows = [("x", 0.0, second, 1250 if 5 <= second < 10 else 2500) for second in range(20)]
        rows += [("y", 5.0, second, 1250) for second in range(5)]
        table = pd.DataFrame(rows, columns=["traffic", "offset_s", "start_s", "bytes"])
        table = table.assign(stream=1, end_s=table["start_s"] + 1.0)
        assert dict(steady_values(columns(table), flows=columns(reported_flows(table))))[
            "goodput.steady"
        ] == pytest.approx(20_000)

    @pytest.mark.parametrize(("policed", "steady"), [(False, 777.35), (True, 763.4)])
    def test_full_bucket_does_not_raise_steady_goodput(self, policed: bool, steady: float) -> None:
        table = pd.DataFrame(
            {"start_s": [float(second) for second in range(10)], "bytes": [each * 125 for each in CREDIT]}
        )
        table = table.assign(traffic="x", stream=1, offset_s=0.0, end_s=table["start_s"] + 1.0)
        values = dict(steady_values(columns(table), flows=columns(reported_flows(table)), policed=policed))
        assert values["goodput.steady"] == pytest.approx(steady * 1000, abs=10)
        assert values["goodput.warm_up"] == (1000 if policed else 0)

    def test_starved_flow_counts_as_zero(self) -> None:
        values = dict(goodput_values(columns(flows_table(("x", 10.0, 0), ("x", 10.0, 1000)))))
        assert values["goodput.flow.min"] == 0
        assert values["goodput.spread"] == math.inf
        assert values["fairness.jain"] == pytest.approx(0.5)

    def test_fairness_is_missing_without_received_bytes(self) -> None:
        values = dict(goodput_values(columns(flows_table(("x", 10.0, 0)))))
        assert values["goodput.sum"] == 0
        assert "fairness.jain" not in values

    @given(st.lists(st.floats(1, 1e9), min_size=1, max_size=50), st.floats(0.001, 1000))
    def test_jain_index_lies_between_one_flow_and_all_without_a_unit(
        self, goodputs: list[float], factor: float
    ) -> None:
        index = jain(np.array(goodputs))
        assert 1 / len(goodputs) - 1e-9 <= index <= 1 + 1e-9
        assert jain(np.array(goodputs) * factor) == pytest.approx(index)
        assert jain(np.array([goodputs[0]] * 3)) == pytest.approx(1)


class TestRun:
    def test_run_gives_tables_and_a_comparison(self, tmp_path: Path) -> None:
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
        values = tables.read_table(run, "metrics").set_index(["arm", "metric"])["value"]
        assert values["policed", "goodput.sum"] == pytest.approx(end["sum_received"]["bits_per_second"])
        assert values["shaped", "shape.active.during"] == 1
        packets = tables.read_table(run, "packets_io")
        assert set(packets["capture"]) == {"server"} and set(packets["arm"]) == {"policed", "shaped"}
        assert 0 <= packets["time_s"].min() < 0.5, "times count from the start of the traffic"
        assert len(tables.read_table(run, "health")) == 2
        assert len(tables.read_table(run, "interfaces")) == 2 * 13

    def test_flow_counts_from_the_time_of_its_connections(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        began = {"began": (sample_run.STARTED + timedelta(seconds=1.25)).isoformat()}
        sample_run.change_json(run.cell("policed").record_file, lambda record: record["flows"][0].update(began))
        sample_run.reseal(run.path)
        analyse(run)
        for name in ("flows", "intervals"):
            offsets = tables.read_table(run, name).groupby("arm")["offset_s"].unique()
            assert (offsets["policed"].tolist(), offsets["shaped"].tolist()) == ([1.25], [0.0])

    def test_analysis_can_be_repeated(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        analyse(run)
        before = (run.path / "comparison.csv").read_bytes()
        analyse(run)
        assert (run.path / "comparison.csv").read_bytes() == before

    def test_values_of_an_invalid_arm_are_shown_without_a_verdict(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path, valid=False)
        outcome = analyse(run)
        assert not outcome.valid and outcome.exit_status == ExitStatus.RUN_INVALID
        assert outcome.reasons == ("policed/1: R1: the kernel dropped 7 frames",)
        policed = outcome.comparison[outcome.comparison["arm"] == "policed"]
        assert set(policed["verdict"]) == {"informative"} and policed["measured"].notna().all()
        ratio = outcome.comparison[outcome.comparison["arm"] == "shaped/policed"]
        assert list(ratio["verdict"]) == ["informative"], "one side of it is not to be trusted"
        assert outcome.untrusted == {"policed"} and outcome.outside == 0

    def test_invalid_repetition_is_not_averaged(self, tmp_path: Path) -> None:
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
        sample_run.reseal(run.path)
        outcome = analyse(run)
        assert not outcome.valid and outcome.untrusted == frozenset()
        burst = outcome.comparison[outcome.comparison["metric"] == "police.bc"].iloc[0]
        assert burst["measured"] == 1500 and burst["verdict"] == "outside"

    def test_broken_tool_output_makes_the_run_invalid(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        file = run.cell("shaped").traffic("transfer", "server", "json")
        file.write_text(file.read_text()[:-100])
        sample_run.reseal(run.path)
        outcome = analyse(run)
        assert not outcome.valid
        assert len(outcome.reasons) == 1 and "iperf3 server" in outcome.reasons[0]

    def test_missing_cell_makes_the_run_invalid(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        (run.cell("shaped").path / "cell.json").unlink()
        (reason,) = analyse(run).reasons
        assert re.fullmatch(r"shaped/1: cell\.json is missing; its recorded size is \d+ lines \(\d+ bytes\)", reason)

    def test_values_of_omitted_arms_are_not_compared(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path)
        manifest = json.loads((run.path / "manifest.json").read_text())
        manifest["cells"] = manifest["cells"][:1]
        (run.path / "manifest.json").write_text(json.dumps(manifest))
        (run.cell("shaped").path / "cell.json").unlink()
        sample_run.reseal(run.path)
        outcome = analyse(run)
        assert outcome.valid
        assert set(outcome.comparison["arm"]) == {"policed"}


@pytest.mark.parametrize("side", ["client", "server"])
def test_flow_with_the_output_of_one_end_has_no_result(side: str, tmp_path: Path) -> None:
    run = sample_run.make_run(tmp_path)
    cell, experiment, kind = run.cell("policed"), run.manifest().experiment, lab_kind("virtual")
    (flow,) = experiment.arm_flows(experiment.arms[0])
    assert kind.flow(cell.files(), flow, experiment.duration) is not None
    cell.traffic(flow.name, side, "json").unlink()
    assert kind.flow(cell.files(), flow, experiment.duration) is None


def test_metrics_are_computed_by_cell() -> None:
    flows = pd.concat([flows_table(("x", 1.0, 100)).assign(repetition=number, cell=f"a/{number}") for number in (1, 2)])
    table = metrics({"flows": flows}, 1.0)
    assert list(table[table["metric"] == "goodput.sum"]["repetition"]) == [1, 2]


def test_each_metric_is_yielded_by_one_function() -> None:
    assert sorted(registered_names()) == sorted(METRICS)


def test_metric_function_yields_its_registered_metrics() -> None:
    rogue = MetricFunction("flows", frozenset({"goodput.sum"}), lambda selection: iter([("police.bc", 1.0)]))
    empty = Selection(tables.plain("flows", []), tables.plain("flows", []), None, CellFacts({}, 1.0, {}, {}))
    with pytest.raises(ValueError, match=r"found the metric police\.bc, expected one of goodput\.sum"):
        list(rogue.values(empty))


def test_goodput_while_all_traffic_runs() -> None:
    """Start the entry 5.5 s earlier than the other flow; only its bytes during the other's time count."""
    alone = [{"traffic": "flood", "start_s": n, "end_s": n + 1.0, "bytes": 1000, "offset_s": 0.0} for n in range(5)]
    overlapping = [
        {"traffic": "flood", "start_s": n, "end_s": n + 1.0, "bytes": 100, "offset_s": 0.0} for n in range(5, 9)
    ]
    other = [{"traffic": "session", "start_s": n, "end_s": n + 1.0, "bytes": 10, "offset_s": 5.0} for n in range(3)]
    # The receiver counted for a second, and the session sent for at most half of it.
    broken = {"traffic": "session", "start_s": 3.0, "end_s": 4.0, "bytes": 5, "offset_s": 5.0}
    whole = pd.DataFrame([*alone, *overlapping, *other, broken]).assign(stream=1)
    of = {
        name: dict(simultaneous_goodput(columns(rows), columns(whole), columns(reported_flows(rows))))
        for name, rows in whole.groupby("traffic")
    }
    assert of["flood"]["goodput.together"] == pytest.approx(800)
    assert of["session"]["goodput.together"] == pytest.approx(80)
    apart = whole.assign(offset_s=whole["offset_s"] * 100)
    assert dict(simultaneous_goodput(columns(apart), columns(apart), columns(reported_flows(apart)))) == {
        "goodput.together": Missing(NOT_TOGETHER)
    }
    # With one interval each, only their ends remain, here 9 s; streams have separate intervals.
    single = pd.DataFrame([{"start_s": 0.0, "end_s": 9.0, "bytes": 900, "offset_s": 0.0}] * 2)
    single = single.assign(traffic=["flood", "session"], stream=[1, 2])
    assert dict(
        simultaneous_goodput(columns(single.iloc[:1]), columns(single), columns(reported_flows(single.iloc[:1])))
    ) == {"goodput.together": pytest.approx(800)}


def test_initial_credit_of_a_bucket_counts_as_warm_up() -> None:
    """Use 1.5 s of credit late, as a sender that reaches its rate late; after that no more than the rate can arrive."""
    bits = [300_000.0, 500_000.0, 900_000.0, 1_600_000.0, 1_500_000.0, *[963_000.0] * 15]
    table = pd.DataFrame({"start_s": [float(second) for second in range(20)], "bytes": [each / 8 for each in bits]})
    table = table.assign(traffic="x", stream=1, offset_s=0.0, end_s=table["start_s"] + 1.0)
    found = dict(
        steady_values(columns(table), 1e6, flows=columns(reported_flows(table)), policed=True, bucket_bytes=187_500.0)
    )
    assert found["goodput.steady"] == pytest.approx(963_000)
    assert found["goodput.warm_up"] == 5000
    assert found["goodput.of_pir.steady"] <= 1448 / 1500
    # If the bucket ended earlier, its traffic consists of initial tokens as well as of the rate.
    soon = dict(
        steady_values(
            columns(table.iloc[:4]),
            1e6,
            flows=columns(reported_flows(table.iloc[:4])),
            policed=True,
            bucket_bytes=187_500.0,
        )
    )
    assert soon == dict.fromkeys(found, Missing("the policer's bucket was full at the start and never ran empty"))
    # If the policer had no tokens for a packet, none were left at that time, regardless of the bytes received by then.
    first = table.iloc[:8]
    large = functools.partial(
        steady_values,
        columns(first),
        1e6,
        flows=columns(reported_flows(first)),
        policed=True,
        bucket_bytes=500_000.0,
    )
    assert dict(large()) == soon
    reported = dict(large(dropped=lambda: 3.5))
    assert (reported["goodput.steady"], reported["goodput.warm_up"]) == (
        pytest.approx((1_500_000 + 3 * 963_000) / 4),
        4000,
    )
    # A drop in the last interval proves nothing about the earlier intervals.
    assert dict(large(dropped=lambda: 7.5)) == soon
    # A stream that was never faster than the rate used none of the bucket.
    slow = table.assign(bytes=table["bytes"] / 2)
    assert (
        dict(
            steady_values(columns(slow), 1e6, flows=columns(reported_flows(slow)), policed=True, bucket_bytes=187_500.0)
        )["goodput.of_pir.steady"]
        < 0.5
    )


def test_first_time_without_tokens_is_found() -> None:
    def policed(*readings: tuple[float, int, int | None]) -> pd.DataFrame:
        of = {"device": "R1", "interface": "Fa0/0", "direction": "output", "policy": "p", "class": "c"}
        rows = [
            of | {"time_s": time_s, "police_exceeded_packets": exceeded, "police_violated_packets": violated}
            for time_s, exceeded, violated in readings
        ]
        return tables.frame("classes", rows)

    assert first_drop_s(columns(policed((-1.0, 5, None), (1.0, 5, None), (2.0, 6, None), (3.0, 9, None)))) == 2.0
    assert first_drop_s(columns(policed((-1.0, 0, 0), (1.0, 0, 1)))) == 1.0
    assert first_drop_s(columns(policed((-1.0, 5, None), (1.0, 5, None)))) is None
    assert first_drop_s(columns(policed((1.0, 5, None)).iloc[:0])) is None
    other = policed((-1.0, 0, None), (1.0, 0, None)).assign(device="R2")
    assert first_drop_s(columns(pd.concat([policed((-1.0, 9, None), (1.0, 9, None)), other]))) is None
