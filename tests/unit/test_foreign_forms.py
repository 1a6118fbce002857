"""Foreign files: sub-series of flent, CSV of iperf 2, byte order marks, negative losses, limits, malformed numbers."""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from analysis_tables import columns

from qoslab.analysis.goodput import total_bps
from qoslab.analysis.series import reported_throughput
from qoslab.analysis.steady import simultaneous_goodput
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.exchange.file_import import import_files
from qoslab.exchange.readers import base, detect_format, read_foreign
from qoslab.results import RunFolder, tables

RECORDED = Path(__file__).parents[1] / "recorded"
UDP_SERVER = RECORDED / "traffic/iperf3-udp.server.json"


def flent_file(
    path: Path, results: dict[str, Sequence[float | None]], meta: dict[str, Any] | None = None, step: float = 0.2
) -> Path:
    """Return a data file of flent with these series."""
    count = len(next(iter(results.values())))
    about = {"NAME": "rrul", "TITLE": "", "STEP_SIZE": step, "FLENT_VERSION": "2.1.1"}
    document = {
        "metadata": {**about, "SERIES_META": meta if meta is not None else {}},
        "results": results,
        "version": 4,
        "x_values": [step * place for place in range(count)],
    }
    path.write_bytes(gzip.compress(json.dumps(document, sort_keys=True).encode()))
    return path


MBITS = {"UNITS": "Mbits/s"}
KEYS = ("tcp_cwnd", "tcp_rtt", "tcp_rtt_var", "tcp_delivery_rate", "tcp_pacing_rate", "tcp_unacked", "retransmits")


@pytest.mark.sample(4)
@pytest.mark.parametrize("stream", ["TCP upload", "TCP download BE2", "TCP upload::1", "TCP download EF::12"])
@pytest.mark.parametrize("units", [{}, MBITS], ids=["no unit", "a rate"])
def test_sub_series_of_flent_are_samples(tmp_path: Path, stream: str, units: dict[str, str]) -> None:
    series: dict[str, Sequence[float | None]] = {stream: [2.0] * 5}
    series |= {f"{stream}::{key}": [106.0] * 5 for key in KEYS}
    meta = {stream: MBITS} | ({f"{stream}::{key}": units for key in KEYS} if units else {})
    folder = import_files([flent_file(tmp_path / "a.flent.gz", series, meta)], tmp_path / "made")
    metrics = tables.read_table(RunFolder(folder), "metrics").set_index("metric")["value"]
    assert metrics["goodput.sum"] == pytest.approx(2e6)
    found = read_foreign(tmp_path / "a.flent.gz")
    assert len(found.rows["flows"]) == 1
    assert {row["series"] for row in found.samples} == {f"{stream}::{key}" for key in KEYS}


@pytest.mark.parametrize("computed", ["TCP upload sum", "TCP upload::sum", "TCP upload::avg", "TCP totals"])
def test_values_computed_by_flent_are_not_streams(tmp_path: Path, computed: str) -> None:
    series: dict[str, Sequence[float | None]] = {"TCP upload::1": [1.0], "TCP upload::2": [1.0], computed: [2.0]}
    found = read_foreign(flent_file(tmp_path / "a.flent.gz", series, dict.fromkeys(series, MBITS)))
    assert len(found.rows["flows"]) == 2 and not found.samples


def test_units_of_sub_series_are_those_of_the_kernel(tmp_path: Path) -> None:
    series: dict[str, Sequence[float | None]] = {f"TCP upload::{key}": [1.0] for key in KEYS}
    found = read_foreign(flent_file(tmp_path / "a.flent.gz", series, {"TCP upload": MBITS}))
    units = {str(row["series"]).rpartition("::")[2]: row["unit"] for row in found.samples}
    assert units["tcp_rtt"] == units["tcp_rtt_var"] == "ms"
    assert units["tcp_cwnd"] == "segments" and units["tcp_delivery_rate"] == "Mbits/s"
    assert "flows" not in found.rows


def test_value_after_a_gap_covers_the_gap(tmp_path: Path) -> None:
    series = {
        "TCP upload::1": [1.0, None, None, None, 1.0, None, None, 1.0, None, None],
        "TCP upload::2": [None, None, 4.0, 4.0, 4.0, 4.0, None, None, None, None],
        "Ping (ms) ICMP": [None, 10.0, None, 12.0, None, None, None, None, None, 14.0],
    }
    found = read_foreign(flent_file(tmp_path / "a.flent.gz", series, step=0.5))
    first, second = found.rows["flows"]
    assert (first["seconds"], first["bytes"], first["goodput_bps"]) == (4.0, 500_000, 1e6)
    assert (second["seconds"], second["bytes"], second["goodput_bps"]) == (2.0, 1_000_000, 4e6)
    parts = [(row["start_s"], row["end_s"]) for row in found.rows["intervals"] if row["stream"] == 1]
    assert parts == [(0.0, 0.25), (0.25, 2.25), (2.25, 3.75)]
    assert [(row["time_s"], row["value"]) for row in found.samples] == [(0.5, 10), (1.5, 12), (4.5, 14)]
    assert any("stream 1 has 2 gaps" in note for note in found.notes)
    assert not any("stream 2 has" in note for note in found.notes)


def test_late_stream_keeps_its_times(tmp_path: Path) -> None:
    """Import a late stream: at the start it would add to a stream that had ended, and the sum would be flat."""
    series: dict[str, Sequence[float | None]] = {
        "TCP upload::1": [4.0] * 10 + [None] * 10,
        "TCP upload::2": [None] * 10 + [6.0] * 10,
    }
    found = read_foreign(flent_file(tmp_path / "a.flent.gz", series, step=1.0))
    flows, intervals = (pd.DataFrame(found.rows[name]) for name in ("flows", "intervals"))
    assert flows["offset_s"].tolist() == [0, 9.5] and flows["seconds"].tolist() == [10, 10]
    curve = reported_throughput(intervals, flows)["all"]
    assert curve.iloc[1:9].to_numpy() == pytest.approx(4e6) and curve.iloc[11:18].to_numpy() == pytest.approx(6e6)
    assert curve.mean() == pytest.approx(total_bps(columns(flows)))


def test_curve_of_a_constant_rate_is_constant(tmp_path: Path) -> None:
    """Import a constant rate: flent's first value is at time 0, so that half of its step would be before the start."""
    found = read_foreign(flent_file(tmp_path / "a.flent.gz", {"TCP upload": [1.0] * 20}, step=0.2))
    flows, intervals = (pd.DataFrame(found.rows[name]) for name in ("flows", "intervals"))
    assert reported_throughput(intervals, flows)["all"].to_numpy() == pytest.approx(1e6)
    assert dict(simultaneous_goodput(columns(intervals), columns(intervals), columns(flows)))[
        "goodput.together"
    ] == pytest.approx(1e6)


def test_netperf_totals_belong_to_the_stream(tmp_path: Path) -> None:
    meta = {"TCP upload": {**MBITS, "BYTES_RECVD": 1_600_000, "ELAPSED_TIME": 64.0}}
    found = read_foreign(flent_file(tmp_path / "a.flent.gz", {"TCP upload": [0.2, None, None, 0.2]}, meta))
    (flow,) = found.rows["flows"]
    assert (flow["seconds"], flow["bytes"], flow["goodput_bps"]) == (64.0, 1_600_000, 200_000)


# From iperf 2.1.8, with shortened bytes; that of 2.0 by its format strings.
PAIR = "127.0.0.1,44664,127.0.0.1,5999"
TCP = f"""\
20261128171855,{PAIR},2,0.0-1.0,262204,2097632
20261128171856,{PAIR},2,1.0-2.0,262144,2097152
20261128171856,{PAIR},2,0.0-2.0,655420,2606070
"""
PARALLEL = TCP + TCP.replace("44664", "44662").replace(",2,", ",1,")
SUMS = PARALLEL.replace(
    TCP.splitlines()[2],
    f"{TCP.splitlines()[2]}\n20261128171856,127.0.0.1,0,127.0.0.1,5999,-1,0.0-2.0,1310840,5212113",
)
NO_ADDRESS = f"{PARALLEL}20261128171856,,,,,-1,0.0-2.0,1310840,5212113\n"
BOTH = TCP + TCP.replace(PAIR, "127.0.0.1,5999,::,0").replace("2606070", "2097162")
UDP = """\
20261128171859,10.0.0.2,5998,10.0.0.1,41143,1,0.0-1.0,263130,2105040,0.007,1,179,0.559,0
20261128171900,10.0.0.2,5998,10.0.0.1,41143,1,1.0-2.0,261660,2093280,0.008,2,178,1.124,0
20261128171900,10.0.0.2,5998,10.0.0.1,41143,1,0.0-2.0,529200,2104460,0.008,3,360,0.833,0
"""
SENDER = """\
20130101120001,10.0.0.1,40000,10.0.0.2,5001,3,0.0-1.0,131082,1048656
20130101120002,10.0.0.1,40000,10.0.0.2,5001,3,1.0-2.0,131000,1048000
20130101120002,10.0.0.1,40000,10.0.0.2,5001,3,0.0-2.0,262082,1048328
20130101120002,10.0.0.2,5001,10.0.0.1,40000,3,0.0-2.0,260000,1040000,0.021,4,182,2.198,0
"""
UNCOUNTED = UDP.replace("0.008,3,360,0.833,0", "0.000,0,-1,-0.000,0")
ENHANCED = """\
time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed,writecnt,writeerr,tcpretry,tcpcwnd
+0000:20250605191028.955,10.2.0.4,43380,10.2.0.9,6789,1,0.0,1.0,1000000,8000000,8,0,4,70
+0000:20250605191029.955,10.2.0.4,43380,10.2.0.9,6789,1,1.0,2.0,1000000,8000000,8,0,1,70
+0000:20250605191029.955,10.2.0.4,43380,10.2.0.9,6789,1,0.0,2.0,2000000,8000000,16,0,5,70
"""
FLOW = ("protocol", "seconds", "bytes", "goodput_bps", "local_port", "datagrams", "lost", "retransmits")
ONE = ("tcp", 2.0, 655420, 2606070.0, 44664, None, None, None)
OTHER = ("tcp", 2.0, 655420, 2606070.0, 44662, None, None, None)


@pytest.mark.parametrize(
    "text, flows, intervals",
    [
        (TCP, [ONE], 2),
        (TCP.rstrip(), [ONE], 2),
        (TCP.replace("\n", "\r\n"), [ONE], 2),
        (TCP.splitlines()[2] + "\n", [ONE], 0),
        (PARALLEL, [ONE, OTHER], 4),
        (SUMS, [ONE, OTHER], 4),
        (NO_ADDRESS, [ONE, OTHER], 4),
        (BOTH, [ONE, ("tcp", 2.0, 655420, 2097162.0, 5999, None, None, None)], 4),
        (UDP, [("udp", 2.0, 529200, 2104460.0, 5998, 360, 3, None)], 2),
        (SENDER, [("udp", 2.0, 260000, 1040000.0, 40000, 182, 4, None)], 2),
        (UNCOUNTED, [("udp", 2.0, 529200, 2104460.0, 5998, None, None, None)], 2),
        (ENHANCED, [("tcp", 2.0, 2000000, 8000000.0, 43380, None, None, 5)], 2),
        ("WARNING: option -i is not valid\n" + TCP, [ONE], 2),
    ],
    ids=[
        *("one stream", "no last line end", "other line ends", "no intervals", "parallel", "sums"),
        *("sums without address", "both ways", "datagrams", "server's report", "uncounted", "enhanced", "messages"),
    ],
)
def test_csv_of_iperf_2_becomes_streams(
    tmp_path: Path, text: str, flows: list[tuple[object, ...]], intervals: int
) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    found = read_foreign(tmp_path / "a.csv")
    assert [tuple(row.get(name) for name in FLOW) for row in found.rows["flows"]] == flows
    assert len(found.rows.get("intervals", [])) == intervals
    assert found.seconds == 2.0


@pytest.mark.parametrize("text, noted", [(BOTH, True), (PARALLEL, False), (UDP, False), (SENDER, False)])
def test_streams_of_both_directions_are_noted(tmp_path: Path, text: str, noted: bool) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert any("both directions" in note for note in read_foreign(tmp_path / "a.csv").notes) is noted


@pytest.mark.parametrize(
    "text, message",
    [
        ("".join(TCP.splitlines(keepends=True)[:2]), "a.csv: found no summary row of stream 2"),
        (TCP[:-45], "a.csv:3: "),
        (
            TCP + TCP.replace("2026112817", "2026112818").replace("44664", "50000"),
            "a.csv:4: found a test after the end",
        ),
        (TCP + TCP.replace("2026112817", "2026112818"), "a.csv:5: found an interval after the summary row"),
        (TCP.replace("262144,", "26x144,"), "a.csv:2: it is not a row of iperf -y C"),
        (UDP.replace("0.008,2", "1.2.3,2"), "a.csv:2: it is not a row of iperf -y C"),
        (TCP.replace("2606070", "9" * 5000), "a.csv:3: "),
        (TCP.replace("262144", "9" * 5000), "a.csv:2: it is not a row of iperf -y C: found a number of 5000 digits"),
    ],
    ids=["no total", "cut", "two tests", "the same ports", "letters", "points", "rate", "digits"],
)
def test_invalid_csv_of_iperf_2_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UserError) as refused:
        read_foreign(tmp_path / "a.csv")
    assert message in refused.value.message
    assert len(refused.value.message) < 500


MARKED = [
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (b"", "utf-16-le"),
    (b"", "utf-16-be"),
]


@pytest.mark.parametrize("mark, encoding", MARKED, ids=[f"{encoding}-{len(mark)}" for mark, encoding in MARKED])
@pytest.mark.parametrize(
    "file",
    ["traffic/iperf3-tcp.client.json", "foreign/iperf3-tcp.client.txt", "traffic/iperf-udp.server.txt", "csv", "-y"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_encoding_changes_nothing(tmp_path: Path, mark: bytes, encoding: str, file: str, packed: bool) -> None:
    texts = {"csv": "time_s,a_kbps\n1,800\n2,900\n", "-y": TCP}
    text = texts[file] if file in texts else (RECORDED / file).read_text()
    plain, marked = tmp_path / "plain" / "a.txt", tmp_path / "a.txt"
    plain.parent.mkdir()
    plain.write_text(text)
    content = mark + text.encode(encoding)
    marked.write_bytes(gzip.compress(content) if packed else content)
    assert read_foreign(marked) == read_foreign(plain)


def negative_losses(text: str, *, end: bool, interval: bool) -> str:
    """Return a JSON of iperf3 with negative losses."""
    document = json.loads(text)
    if end:
        document["end"]["streams"][0]["udp"]["lost_packets"] = -5
    if interval:
        document["intervals"][0]["streams"][0]["lost_packets"] = -3
    return json.dumps(document)


@pytest.mark.parametrize("end, interval", [(True, False), (False, True), (True, True)])
def test_negative_losses_of_iperf3_are_reported_and_left_out(tmp_path: Path, end: bool, interval: bool) -> None:
    path = tmp_path / "a.json"
    path.write_text(negative_losses(UDP_SERVER.read_text(), end=end, interval=interval))
    found = read_foreign(path)
    assert (found.rows["flows"][0]["lost"] is None) is end
    notes = " ".join(found.notes)
    assert ("found a negative loss, -5 datagrams" in notes) is end
    assert ("found a negative loss in 1 interval, the first of -3" in notes) is interval
    folder = import_files([path], tmp_path / "made")
    metrics = tables.read_table(RunFolder(folder), "metrics")
    lost = metrics[metrics["metric"].isin(("datagrams.lost", "datagrams.loss"))]["value"].dropna()
    assert (lost >= 0).all()
    assert bool(len(lost)) is not end


@pytest.mark.parametrize(
    "file, old, new",
    [
        ("foreign/iperf3-udp.server.txt", "36054/83261", "-36054/83261"),
        ("foreign/iperf-udp-kbytes.server.txt", "0/717", "-4/717"),
    ],
)
def test_negative_losses_of_texts_are_reported_and_left_out(tmp_path: Path, file: str, old: str, new: str) -> None:
    text = (RECORDED / file).read_text()
    assert old in text
    (tmp_path / "a.txt").write_text(text.replace(old, new))
    found = read_foreign(tmp_path / "a.txt")
    assert [row["lost"] for row in found.rows["flows"]] == [None]
    assert any("found a negative loss, -" in note for note in found.notes)


@pytest.mark.parametrize("lost", [24, 100])
def test_more_losses_than_datagrams_are_reported_and_left_out(tmp_path: Path, lost: int) -> None:
    document = json.loads(UDP_SERVER.read_text())
    document["end"]["streams"][0]["udp"].update(lost_packets=lost, packets=23)
    (tmp_path / "a.json").write_text(json.dumps(document))
    found = read_foreign(tmp_path / "a.json")
    assert found.rows["flows"][0]["lost"] is None and found.rows["flows"][0]["bytes"] >= 0
    assert any(f"found {lost} lost datagrams of 23, expected at most 23" in note for note in found.notes)


@pytest.mark.parametrize(
    "name, old, new, message",
    [
        ("a.json", '"bytes":\t89000', '"bytes":\t-89000', "for bytes of stream 1, expected 0 or more"),
        ("a.csv", "1.0-2.0,262144,", "1.0-2.0,-262144,", "a.csv:2: it is not a row of iperf -y C: found -262144"),
        ("a.flent", "4.0]", "-4.0]", "for bytes of stream 1, expected 0 or more"),
        ("a.flent", '"STEP_SIZE": 0.2', '"STEP_SIZE": -0.2', "times in x_values or STEP_SIZE are negative"),
    ],
)
def test_negative_amounts_are_refused(tmp_path: Path, name: str, old: str, new: str, message: str) -> None:
    path = tmp_path / name
    if name == "a.flent":
        flent_file(path, {"TCP upload": [1.0, 2.0, 4.0]})
        text = gzip.decompress(path.read_bytes()).decode()
    else:
        text = TCP if name == "a.csv" else UDP_SERVER.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as refused:
        read_foreign(path)
    assert message in refused.value.message


def test_series_of_flent_without_values_is_left_out(tmp_path: Path) -> None:
    found = read_foreign(flent_file(tmp_path / "a.flent", {"TCP upload::1": [1.0, 2.0], "TCP upload::2": [None, None]}))
    assert [row["bytes"] > 0 for row in found.rows["flows"]] == [True]
    assert "TCP upload::2 is left out: it has no value" in found.notes


@pytest.mark.parametrize(
    "head, what",
    [
        (b"\x28\xb5\x2f\xfd" + b"\0" * 40, "a file compressed by zstd"),
        (b"\x04\x22\x4d\x18" + b"\n!\n" * 40, "a file compressed by lz4"),
        (b"snoop\0\0\0" + b"\0" * 40, "a capture of snoop"),
        (b"MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET\n", "output of netperf"),
        (b"PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.\n", "output of ping"),
        (b"10:00:00.000001 IP 10.0.0.1.5 > 10.0.0.2.5: UDP, length 9\n", "packets printed by tcpdump"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_well_known_formats_that_are_not_read_are_reported(tmp_path: Path, head: bytes, what: str) -> None:
    (tmp_path / "a").write_bytes(head)
    with pytest.raises(UserError) as refused:
        detect_format(tmp_path / "a")
    assert f"found {what}, expected a format listed by" in refused.value.message and refused.value.hint


def test_csv_with_another_first_column_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Time,a_bps\n1,2\n2,3\n")
    with pytest.raises(UserError, match='found the column "Time", expected time_s first'):
        read_foreign(tmp_path / "a.txt")


@pytest.mark.parametrize("end, noted", [("\n", False), ("", True)])
def test_csv_without_a_last_line_end_is_noted(tmp_path: Path, end: str, noted: bool) -> None:
    (tmp_path / "a.csv").write_text(f"time_s,a_bps\n1,2000\n2,20{end}")
    assert any("line 3 has no line end" in note for note in read_foreign(tmp_path / "a.csv").notes) is noted


ROW = "[  5]   0.00-10.00  sec  1.00 MBytes  1.00 Mbits/sec  {}  receiver\n"


@pytest.mark.parametrize(
    "rest",
    ["1.2.3.4 ms  0/9 (0%)", "1..2 ms  0/9 (0%)", f"0.1 ms  {'9' * 5000}/9 (0%)", f"0.1 ms  0/{'9' * 5000} (0%)"],
)
def test_malformed_number_of_iperf3_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rest: str
) -> None:
    (tmp_path / "a.txt").write_text(f"iperf 3.12\n\n{ROW.format(rest)}")
    assert main(["import", str(tmp_path / "a.txt"), "--format", "iperf3", "--to", str(tmp_path / "made")]) == 2
    assert "a.txt:3: found a malformed number in" in capsys.readouterr().err


COARSE = {
    "iperf": """Client connecting to 127.0.0.1, TCP port 5001
[  3] local 127.0.0.1 port 54638 connected with 127.0.0.1 port 5001
[ ID] Interval       Transfer     Bandwidth
[  3]  0.0- 1.0 sec  4.00 MBytes  0.00 GBytes/sec
[  3]  1.0- 2.0 sec  4.00 MBytes  0.03 Gbits/sec
[  3]  0.0- 2.0 sec  8.00 MBytes  0.03 Gbits/sec
""",
    "iperf3": """Connecting to host 127.0.0.1, port 5201
[  5] local 127.0.0.1 port 54638 connected to 127.0.0.1 port 5201
[  5]   0.00-1.00   sec  4.00 MBytes  0.00 GBytes/sec    0    703 KBytes
[  5]   1.00-2.00   sec  4.00 MBytes  0.03 Gbits/sec    0    703 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-2.00   sec  8.00 MBytes  0.00 GBytes/sec    0             sender
[  5]   0.00-2.00   sec  8.00 MBytes  0.00 GBytes/sec                  receiver
""",
}


@pytest.mark.parametrize("tool", COARSE)
def test_rate_with_fewer_digits_than_the_bytes_is_computed_from_them(tmp_path: Path, tool: str) -> None:
    (tmp_path / "a.txt").write_text(COARSE[tool])
    found = read_foreign(tmp_path / "a.txt", tool)
    assert [row["goodput_bps"] for row in found.rows["flows"]] == [8 * 2**20 * 8 / 2]
    assert [row["bps"] for row in found.rows["intervals"]] == [4 * 2**20 * 8] * 2


def test_number_of_thousands_of_digits_in_json_is_refused_with_its_line(tmp_path: Path) -> None:
    text = '{"start": {"version": "iperf 3.12", "connected": []},\n"intervals": [],\n"end": ' + "9" * 5000 + "}"
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError, match=r"a\.json:3: found a number with thousands of digits"):
        read_foreign(tmp_path / "a.json")


def flent_lists(count: int) -> str:
    return '{"metadata": {}, "results": {}, "version": 4, "x_values": [' + "[]," * count + "[]]}"


def many_columns(count: int, rows: int = 2) -> str:
    names = ",".join(f"a{number}_bps" for number in range(count))
    return f"time_s,{names}\n" + "".join(f"{row},{'1,' * (count - 1)}1\n" for row in range(1, rows + 1))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "name, make_text, limit",
    [
        ("a.flent", lambda: flent_lists(base.MAX_VALUES), f"more than {base.MAX_VALUES} values"),
        (
            "a.json",
            lambda: '{"start":{"version":1}}' + "\n" * (base.MAX_LINES + 1),
            f"more than {base.MAX_LINES} lines",
        ),
        ("a.csv", lambda: many_columns(base.MAX_SERIES + 1), f"{base.MAX_SERIES + 1} columns of values"),
        (
            "a.txt",
            lambda: "".join(f"[{number}] 0.0000-2.0005 sec  100 Bytes  400 bits/sec\n" for number in range(3, 2500)),
            f"more than {base.MAX_SERIES} streams",
        ),
        ("c.csv", lambda: "time_s,a_ms\n1," + " " * (64 * 2**20), f"more than {64 * 2**20} characters"),
        (
            "b.csv",
            lambda: many_columns(1, base.MAX_POINTS + 1),
            f"more than {base.MAX_POINTS} fields below the header",
        ),
    ],
    ids=["values", "lines", "columns", "streams", "characters", "rows"],
)
def test_oversized_file_is_refused_with_the_limit(
    tmp_path: Path, name: str, make_text: Callable[[], str], limit: str
) -> None:
    (tmp_path / name).write_text(make_text())
    with pytest.raises(UserError) as refused:
        read_foreign(tmp_path / name)
    assert f"found {limit}, expected at most " in refused.value.message


def test_number_of_flent_series_is_limited(tmp_path: Path) -> None:
    series: dict[str, Sequence[float | None]] = {f"TCP upload::{place}": [1.0] for place in range(base.MAX_SERIES + 1)}
    with pytest.raises(UserError, match=f"found {base.MAX_SERIES + 1} series, expected at most {base.MAX_SERIES}"):
        read_foreign(flent_file(tmp_path / "a.flent.gz", series))


def test_many_columns_have_no_default_metrics(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(many_columns(60))
    folder = import_files([tmp_path / "a.csv"], tmp_path / "made")
    metrics = tables.read_table(RunFolder(folder), "metrics")
    assert not metrics["metric"].str.contains("(", regex=False).any()
    note = json.loads((folder / "import.json").read_text())["files"][0]["notes"][-1]
    assert note == "it has 60 rates; above 50, metrics of individual rates are left out"


@pytest.mark.parametrize("file", ["iperf3-tcp.client.txt", "iperf-mbytes.server.txt"])
def test_decimal_commas_of_iperf_are_read(tmp_path: Path, file: str) -> None:
    text = (RECORDED / "foreign" / file).read_text()
    plain, comma = tmp_path / "plain" / "a.txt", tmp_path / "a.txt"
    plain.parent.mkdir()
    plain.write_text(text)
    comma.write_text(
        "".join(row.replace(".", ",") if " sec " in row else row for row in text.splitlines(keepends=True))
    )
    assert read_foreign(comma) == read_foreign(plain)
