"""Captures and counters to series over time, and to figures."""

from __future__ import annotations

import csv
import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import pytest
import sample_run
from analysis_tables import classes_table

from qoslab.analysis import analyse, charts, series
from qoslab.analysis.packets import ALL, bin_packets
from qoslab.capture.packet_tables import read_packets
from qoslab.results import RunFolder, tables

PCAPNG = sample_run.RECORDED / "capture" / "four-streams.pcapng"


def packet_field(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def packet_batch(**fields: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in fields.items()})


class TestPackets:
    def test_every_packet_is_in_exactly_one_bin(self) -> None:
        whole = bin_packets(read_packets(PCAPNG)).to_pandas()
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
    def test_chunk_size_does_not_affect_the_result(self, piece: int) -> None:
        def table(size: int) -> pd.DataFrame:
            found = bin_packets(read_packets(PCAPNG, piece=size)).to_pandas()
            return found.sort_values(["flow", "time_s"]).reset_index(drop=True)

        pd.testing.assert_frame_equal(table(piece), table(10**6))

    def test_packets_before_the_origin_have_negative_times(self) -> None:
        packets = packet_batch(
            time_ns=packet_field(-150_000_000, 0, 99_999_999, 100_000_000),
            bytes=packet_field(1, 2, 3, 4),
            version=packet_field(-1, -1, 4, 4),
            source=packet_field(-1, -1, 0x0A000001, 0x0A000001),
            source_high=packet_field(-1, -1, 0, 0),
            destination=packet_field(-1, -1, 0x0A000002, 0x0A000002),
            destination_high=packet_field(-1, -1, 0, 0),
            protocol=packet_field(-1, -1, 1, 17),
            source_port=packet_field(-1, -1, -1, 53),
            destination_port=packet_field(-1, -1, -1, 1053),
            payload=packet_field(-1, -1, -1, 0),
            sequence=packet_field(-1, -1, -1, -1),
        )
        table = bin_packets([packets], 0).to_pandas()
        every = table[table["flow"] == "all"].sort_values("time_s")
        assert list(every["time_s"]) == pytest.approx([-0.2, 0.0, 0.1])
        assert list(every["bytes"]) == [1, 5, 4]
        assert set(table["flow"]) == {
            "all",
            "not IP",
            "10.0.0.1 > 10.0.0.2 protocol 1",
            "10.0.0.1:53 > 10.0.0.2:1053",
        }

    def test_flows_of_ipv6_are_named_with_brackets(self) -> None:
        # Halves with and without the highest bit, the sign of a signed number.
        high, low = 0x20010DB8_00100000, 0xFFFFFFFF_FFFFFFFE - (1 << 64)
        packets = packet_batch(
            time_ns=packet_field(0, 1),
            bytes=packet_field(100, 200),
            version=packet_field(6, 6),
            source=packet_field(low, 2),
            source_high=packet_field(high, high),
            destination=packet_field(2, low),
            destination_high=packet_field(high, high),
            protocol=packet_field(6, 58),
            source_port=packet_field(40_000, -1),
            destination_port=packet_field(5201, -1),
            payload=packet_field(0, -1),
            sequence=packet_field(0, -1),
        )
        assert set(bin_packets([packets], 0)["flow"].to_pylist()) == {
            "all",
            "[2001:db8:10:0:ffff:ffff:ffff:fffe]:40000 > [2001:db8:10::2]:5201",
            "2001:db8:10::2 > 2001:db8:10:0:ffff:ffff:ffff:fffe protocol 58",
        }

    def test_empty_capture_has_no_rows(self) -> None:
        assert len(bin_packets([])) == 0


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = sample_run.make_run(tmp_path_factory.mktemp("runs"))
    analyse(run)
    return run


@pytest.fixture(scope="module")
def policed_tables(sample: RunFolder) -> dict[str, pd.DataFrame]:
    found = {name: tables.read_table(sample, name) for name in ("packets_io", "flows", "classes")}
    return {name: table[table["arm"] == "policed"] for name, table in found.items()}


@pytest.fixture(scope="module")
def throughput(sample: RunFolder, policed_tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    records = sample.cell("policed").files().record().flows
    return series.flow_throughput(policed_tables["packets_io"], policed_tables["flows"], records)


class TestSeries:
    """Tests of the IO graph and the counters over time, from a real capture and the output of its tool."""

    def test_aggregate_is_the_sum_of_the_streams(self, throughput: pd.DataFrame) -> None:
        assert list(throughput.columns) == ["all", "stream 1", "stream 2", "stream 3", "stream 4"]
        rest = throughput["all"] - throughput.drop(columns="all").sum(axis=1)
        assert (rest >= -1e-6).all()
        # The rest is the tool's control connection.
        assert 0 < rest.sum() < 0.02 * throughput["all"].sum()

    def test_frames_contain_the_payload_counted_by_the_tool(
        self, throughput: pd.DataFrame, policed_tables: dict[str, pd.DataFrame]
    ) -> None:
        octets = throughput.drop(columns="all").sum() * series.BIN_S / 8
        goodput = policed_tables["flows"].set_index("stream")["bytes"]
        for stream, payload in goodput.items():
            # 66 bytes of headers for each 1448 bytes of payload; the last segments may arrive after the tool's end.
            assert octets[f"stream {stream}"] == pytest.approx(payload * 1514 / 1448, rel=0.12)
            assert octets[f"stream {stream}"] > payload

    def test_series_has_no_gaps(self, throughput: pd.DataFrame) -> None:
        assert np.diff(np.array(throughput.index)) == pytest.approx(0.1)

    def test_aggregate_has_all_packets_without_a_known_flow(self, policed_tables: dict[str, pd.DataFrame]) -> None:
        table = series.flow_throughput(policed_tables["packets_io"], policed_tables["flows"], ())
        packets = policed_tables["packets_io"]
        assert list(table.columns) == ["all"]
        assert table["all"].sum() * series.BIN_S / 8 == pytest.approx(packets[packets["flow"] == "all"]["bytes"].sum())

    def test_offered_packets_are_sent_plus_dropped(self, policed_tables: dict[str, pd.DataFrame]) -> None:
        rates = series.class_rates(policed_tables["classes"])
        assert rates["offered_bps"].to_numpy() == pytest.approx((rates["sent_bps"] + rates["dropped_bps"]).to_numpy())
        assert rates["offered_bps"].max() == pytest.approx(125 * 1514 * 8, rel=0.02)
        assert rates["queue_packets"].isna().all()

    def test_restarted_counters_give_no_negative_rate(self) -> None:
        seconds = (1, 2, 3, 1, 2)
        replies = [sample_run.counters_reply(second, "P", police=True) for second in seconds]
        for number, reply in enumerate(replies):
            reply["time_ns"] += number * 10**10
        rates = series.class_rates(classes_table(*replies))
        assert len(rates) == 3 and (rates["offered_bps"] >= 0).all()

    def test_reading_soon_after_another_makes_no_peak(self) -> None:
        replies = [sample_run.counters_reply(second, "P", police=True) for second in (0, 1, 2, 3, 3.05)]
        replies[-1]["interfaces"] = sample_run.counters_reply(3.5, "P", police=True)["interfaces"]
        rates = series.class_rates(classes_table(*replies))
        assert list(rates["time_s"]) == [1, 2, 3]
        assert rates["offered_bps"].to_numpy() == pytest.approx(125 * 1514 * 8)

    def test_chart_has_a_line_for_each_column(self, throughput: pd.DataFrame) -> None:
        metric_value = charts.io_graph(throughput)
        lines = metric_value["data"]
        assert [line["name"] for line in lines] == ["all flows", "stream 1", "stream 2", "stream 3", "stream 4"]
        assert lines[0]["line"]["color"] == charts.BLACK
        assert len({(line["line"]["color"], line["line"]["dash"]) for line in lines}) == 5
        assert metric_value["layout"]["yaxis"]["title"]["text"] == "frames, kb/s"
        assert not np.isnan([value for line in lines for value in line["y"]]).any()

    def test_plotly_accepts_the_charts(self, throughput: pd.DataFrame, sample: RunFolder) -> None:
        classes = tables.read_table(sample, "classes")
        shaped = series.class_rates(classes[classes["arm"] == "shaped"])
        assert len(go.Figure(charts.io_graph(throughput)).data) == 5
        drawn = go.Figure(charts.class_graph(shaped))
        assert [line.name for line in drawn.data] == ["offered", "sent", "dropped", "queue"]
        assert drawn.data[3].yaxis == "y2"

    @pytest.mark.parametrize(
        ("greatest", "unit"), [(0, "b/s"), (900, "b/s"), (3e6, "kb/s"), (97e6, "Mb/s"), (2e10, "Gb/s")]
    )
    def test_axes_have_units(self, greatest: float, unit: str) -> None:
        assert charts.axis_rate_unit(greatest)[1] == unit


def test_short_last_interval_of_a_server_makes_no_peak() -> None:
    sizes = [30_000, 31_250, 1_500]
    flows = pd.DataFrame(
        {
            "traffic": ["transfer"],
            "stream": [1],
            "local_port": [40000],
            "peer_port": [5201],
            "offset_s": [0.0],
            "seconds": [2.0015],
            "bytes": [sum(sizes)],
        }
    )
    intervals = pd.DataFrame(
        {
            "traffic": "transfer",
            "stream": 1,
            "offset_s": 0.0,
            "start_s": [0.0, 1.0, 2.0],
            "end_s": [1.0, 2.0, 2.0015],
            "bytes": sizes,
            "bps": [240e3, 250e3, 8e6],
        }
    )
    curve = series.reported_throughput(intervals, flows)[ALL]
    assert len(curve) == 2 and curve.max() < 262e3
    assert curve.mean() == pytest.approx(sum(sizes) * 8 / 2.0015)
