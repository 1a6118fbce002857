"""Files of other tools as tables."""

from __future__ import annotations

import gzip
import json
import re
import struct
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from browser import open_browser
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.exchange.file_import import import_files
from qoslab.exchange.readers import read_foreign
from qoslab.results import RunFolder, tables

RECORDED = Path(__file__).parents[1] / "recorded"


def recorded_file(name: str) -> bytes:
    """Return a recorded file of another tool."""
    return (RECORDED / "foreign" / name).read_bytes()


IRTT = recorded_file("irtt.json")
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
IRTT_VERSION = b'{"version": {"irtt": "0.9.0", "json_format": 1}'
NO_VALUE = b'{"metadata": {"NAME": "rrul"}, "results": {}, "version": 4, "x_values": []}'
CUT_CAPTURE = (RECORDED / "capture/four-streams.pcapng").read_bytes()[:-7]
NO_STREAM = (
    b'{"start": {"connected": [], "version": "iperf 3.12", "test_start": {"protocol": "TCP"}},'
    b' "intervals": [], "end": {"streams": []}}'
)
ONE, OTHER = (recorded_file(f"iperf3-{name}.client.json") for name in ("omitted", "omitted-within"))
IDLE = (
    b'{"start": {"connected": [], "version": "iperf 3.12"}, "intervals": [], "end": {},'
    b' "error": "interrupt - the server has terminated"}'
)


def iperf3_events(content: bytes) -> list[str]:
    """Return the output of `--json-stream` (iperf3 from 3.17 on: https://github.com/esnet/iperf/pull/1098)."""
    document = json.loads(content)
    parts = [("start", document["start"]), *(("interval", each) for each in document["intervals"])]
    return [json.dumps({"event": event, "data": data}) + "\n" for event, data in (*parts, ("end", document["end"]))]


EVENTS = iperf3_events(ONE)
CUT_LATER = recorded_file("iperf3-tcp.client.txt").partition(
    b"[  7]   0.00-3.00   sec  7.25 MBytes  20.3 Mbits/sec    0"
)[0]
UNEQUAL = b"""\
[  1] local 127.0.0.1 port 5391 connected with 127.0.0.1 port 51852
[  2] local 127.0.0.1 port 5391 connected with 127.0.0.1 port 51868
[  1] 0.0000-5.0001 sec  4224 KBytes  17286 Kbits/sec
[  2] 0.0000-1.0003 sec  4224 KBytes  17300 Kbits/sec
"""
CSV = "time_s,video_kbps,rtt_ms\n1,800,10\n2,900,12.5\n3,1000,\n"


def test_files_of_all_tools_become_tables(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(CSV)
    files = [
        RECORDED / "traffic/iperf3-tcp.client.json",
        RECORDED / "traffic/iperf3-udp.server.json",
        RECORDED / "traffic/iperf-tcp.server.txt",
        RECORDED / "traffic/iperf-udp.server.txt",
        RECORDED / "foreign/irtt.json",
        RECORDED / "foreign/tcp_2up.flent.gz",
        RECORDED / "capture/four-streams.pcapng",
        tmp_path / "mine.csv",
    ]
    folder = import_files(files, tmp_path / "made")
    record = json.loads((folder / "import.json").read_text())
    forms = [each["form"].split()[0] for each in record["files"]]
    assert forms == ["iperf3", "iperf3", "iperf", "iperf", "irtt", "flent", "capture", "CSV"]
    assert all(len(each["sha256"]) == 64 for each in record["files"])
    made = RunFolder(folder)
    flows = tables.read_table(made, "flows").set_index(["cell", "stream"])
    client = json.loads(files[0].read_text())
    sums = flows.loc["iperf3-tcp.client"]["bytes"].sum()
    assert sums == sum(each["receiver"]["bytes"] for each in client["end"]["streams"])
    metrics = tables.read_table(made, "metrics")
    measured = metrics[(metrics["cell"] == "mine") & (metrics["metric"] == "goodput.sum")]["value"]
    assert measured.tolist() == pytest.approx([900e3])
    samples = pq.read_table(folder / "tables/samples.parquet").to_pandas()
    assert samples[samples["arm"] == "mine"]["value"].tolist() == [10, 12.5]
    assert set(samples[samples["arm"] == "irtt"]["series"]) >= {"round trip"}
    packets = tables.read_table(made, "packets_io")
    by_tshark = (RECORDED / "capture/four-streams.csv").read_text().splitlines()[1:]
    assert packets[packets["flow"] == "all"]["packets"].sum() == len(by_tshark)
    page = (folder / "report.html").read_text()
    assert "Throughput reported by the tools, by file" in page and "Traffic in the capture" in page


FLOW = ("traffic", "protocol", "seconds", "bytes", "goodput_bps", "sender_bps", "retransmits", "datagrams", "lost")
MIB = 2**20


@pytest.mark.parametrize(
    "file, flows, count",
    [
        ("iperf3-tcp.client", [("", "tcp", 3.0, round(7.25 * MIB), 20.3e6, 20.3e6, 0, None, None)] * 2, 6),
        ("iperf3-tcp.server", [("", "tcp", 3.0, round(7.25 * MIB), 20.3e6, None, None, None, None)] * 2, 6),
        ("iperf3-udp.client", [("", "udp", 2.01, 405 * MIB, 1.69e9, 3e9, None, 83261, 36054)], 2),
        ("iperf3-udp.server", [("", "udp", 2.01, 405 * MIB, 1.69e9, None, None, 83261, 36054)], 2),
        (
            "iperf3-reverse-mbytes.client",
            [("", "tcp", 2.0, round(9.62 * MIB), 4.81 * MIB * 8, 4.81 * MIB * 8, 0, None, None)],
            2,
        ),
        (
            "iperf3-both-ways.client",
            [(way, "tcp", 2.0, round(2.5 * MIB), 10.5e6, 10.5e6, 0, None, None) for way in (" TX-C", " RX-C")],
            4,
        ),
        (
            "iperf3-server-output.client",
            [
                (" TX-C", "tcp", 1.0, round(1.25 * MIB), 10.5e6, 10.5e6, 0, None, None),
                (" RX-C", "tcp", 1.0, round(1.25 * MIB), 10.5e6, 10.5e6, 1, None, None),
            ],
            2,
        ),
        (
            "iperf3-stamps.client",
            [("", "tcp", 2.0, round(2.38 * MIB), 9951e3, 10485e3, 0, None, None)],
            4,
        ),
        ("iperf3-omitted.client", [("", "tcp", 2.0, round(2.38 * MIB), 9.95e6, 9.96e6, 0, None, None)], 2),
        ("iperf-mbytes.server", [("", "tcp", 2.0112, round(4.13 * MIB), 2.05 * MIB * 8, None, None, None, None)], 2),
        ("iperf-kbytes.client", [("", "tcp", 2.0193, 4224 * 1024, 2092 * 1024 * 8, None, None, None, None)], 2),
        ("iperf-bytes.server", [("", "tcp", 2.0005, 4325436, 2162143 * 8, None, None, None, None)], 2),
        ("iperf-udp-kbytes.server", [("", "udp", 2.0023, 1029 * 1024, 514 * 1024 * 8, None, None, 717, 0)], 2),
    ],
)
def test_text_output_of_iperf_is_read(file: str, flows: list[tuple[object, ...]], count: int) -> None:
    found = read_foreign(RECORDED / f"foreign/{file}.txt")
    assert found.form.split()[0] == file.split("-")[0]
    given = [tuple(row.get(key) for key in FLOW) for row in found.rows["flows"]]
    assert given == [(file + way, *rest) for way, *rest in flows]
    assert len(found.rows["intervals"]) == count
    # Sums over intervals equal the total, as far as rounded values allow.
    whole, parts = (sum(int(str(row["bytes"])) for row in found.rows[name]) for name in ("flows", "intervals"))
    assert parts == pytest.approx(whole, rel=0.06) or found.name == "iperf3-udp.client"


@pytest.mark.parametrize(
    "file, parts",
    [
        ("omitted.client.json", [(0.0, 1.000114, 9), (1.000114, 2.000005, 10), (2.000005, 3.000198, 9)]),
        # An interval of two seconds, the first of which had to be omitted.
        ("omitted-within.client.json", [(0.0, 2.000066, 19), (2.000066, 2.99999, 10)]),
        ("omitted-within.client.txt", [(0.0, 2.0, 19), (2.0, 3.0, 10)]),
    ],
)
def test_parts_that_iperf3_omits_are_left_out(file: str, parts: list[tuple[float, float, int]]) -> None:
    found = read_foreign(RECORDED / f"foreign/iperf3-{file}")
    reported = [(row["start_s"], row["end_s"], row["bytes"]) for row in found.rows["intervals"]]
    # In 128 KiB blocks; the text has three digits.
    assert reported == [(begin, end, pytest.approx(blocks * 2**17, rel=3e-3)) for begin, end, blocks in parts]
    rates = [float(str(row["bps"])) for row in found.rows["intervals"]]
    assert rates == pytest.approx([blocks * 2**20 / (end - begin) for begin, end, blocks in parts], rel=3e-3)
    assert sum(row[2] for row in parts) * 2**17 == pytest.approx(found.rows["flows"][0]["bytes"], rel=3e-3)


@pytest.mark.parametrize(
    "content",
    [ONE + b"\n" + IDLE, b"\n" + ONE + b"\n\n", "".join(EVENTS).encode(), "\r\n".join(map(str.strip, EVENTS)).encode()],
    ids=["of a server", "with blank lines", "events", "events of Windows"],
)
def test_other_forms_of_iperf3_json_give_the_same_values(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "iperf3-omitted.client.json"
    file.write_bytes(content)
    assert read_foreign(file) == read_foreign(RECORDED / "foreign/iperf3-omitted.client.json")


@pytest.mark.parametrize(
    "file, side", [("both-ways.client", "C"), ("both-ways.server", "S"), ("udp-both-ways.client", "C")]
)
def test_both_directions_of_iperf3_json_are_named_as_in_its_text(file: str, side: str) -> None:
    found = read_foreign(RECORDED / f"foreign/iperf3-{file}.json")
    first, second = (f"iperf3-{file} {way}-{side}" for way in (("TX", "RX") if side == "C" else ("RX", "TX")))
    assert [(row["traffic"], row["stream"]) for row in found.rows["flows"]] == [(first, 1), (second, 2)]
    assert [row["traffic"] for row in found.rows["intervals"]] == [first, second] * 2
    if file == "both-ways.client":
        text = read_foreign(RECORDED / f"foreign/iperf3-{file}.txt")
        for table in ("flows", "intervals"):
            ours, theirs = ({(row["traffic"], row["stream"]) for row in each.rows[table]} for each in (found, text))
            assert ours == theirs


@pytest.mark.parametrize(
    "file, given",
    [
        ("foreign/iperf3-both-ways.client", [(20 * 2**17, 10485309), (20 * 2**17, 10485309)]),
        ("foreign/iperf3-both-ways.server", [(20 * 2**17, None), (20 * 2**17, 10484455)]),
        # Of 53504 datagrams of 1400 bytes, 49660 were lost; the rest is what the client's intervals show.
        ("foreign/iperf3-udp-both-ways.client", [(3844 * 1400, 299388278), (3570000 + 2980600, 299483404)]),
        ("foreign/iperf3-udp-both-ways.server", [(3182200 + 2199400, None), (53521 * 1400, 299411900)]),
        ("traffic/iperf3-udp.server", [((750 - 54) * 500, None), ((171 - 110) * 500, None)]),
    ],
)
def test_iperf3_json_counts_received_bytes(file: str, given: list[tuple[int, int | None]]) -> None:
    found = read_foreign(RECORDED / f"{file}.json")
    flows = [(row["bytes"], row["sender_bps"]) for row in found.rows["flows"]]
    assert flows == [(count, rate and pytest.approx(rate, abs=1)) for count, rate in given]
    # The server does not know the bytes received by the client.
    assert any("missing at the receiver" in note for note in found.notes) == ("both-ways.server" in file)


IPERF2 = [
    *(f"traffic/iperf-{name}.txt" for name in ("tcp.client", "tcp.server", "udp.client", "udp.server", "2.0-client")),
    *("traffic/iperf-server-killed.client.txt", "foreign/iperf-two-streams.client.txt"),
    *(f"foreign/iperf-{name}.txt" for name in ("bytes.server", "kbytes.client", "udp-kbytes.server")),
]


@pytest.mark.parametrize("name", IPERF2)
def test_truncated_iperf_text_is_refused(tmp_path: Path, name: str) -> None:
    content = (RECORDED / name).read_bytes()
    whole = read_foreign(RECORDED / name)
    assert not any("stops after an interval" in note for note in whole.notes)
    file = tmp_path / Path(name).name
    taken = []
    for end in (match.end() for match in re.finditer(rb"\n|(?<=/sec)|(?<=/\d\d)", content)):
        file.write_bytes(content[:end])
        try:
            found = read_foreign(file, "iperf")
        except UserError:
            continue
        if found.rows["flows"] != whole.rows["flows"]:
            taken.append(found)
    # A file that stops after the only stream's first interval may be complete, which is reported.
    assert len(taken) == (1 if len(whole.rows["flows"]) == 1 else 0)
    assert all(any("stops after an interval" in note for note in found.notes) for found in taken)


def test_streams_that_end_with_an_interval_are_refused(tmp_path: Path) -> None:
    text = recorded_file("iperf-two-streams.client.txt").decode()
    head, first, rest = text.partition("[SUM] 0.0000-1.0000 sec  4096 KBytes  33555 Kbits/sec\n")
    file = tmp_path / "mine.txt"
    for cut, answer in (
        (head, "found no \\[SUM\\] line for the whole test, expected one for 2 streams"),
        (head + first, "found 2 streams that all end after 1.0000 s, as intervals do"),
        (text[:-1], "mine.txt:13: found the row .* without a line end"),
        (head + first + "".join(rest.splitlines(keepends=True)[:1]), "found no summary line of stream \\[2\\]"),
    ):
        file.write_text(cut)
        with pytest.raises(UserError, match=answer):
            read_foreign(file)


def test_intervals_and_jitter_of_iperf3_equal_its_output() -> None:
    found = read_foreign(RECORDED / "foreign/iperf3-udp.server.txt")
    parts = [(row["start_s"], row["end_s"], row["bytes"], row["bps"]) for row in found.rows["intervals"]]
    assert parts == [(0.0, 1.0, 209 * MIB, 1.76e9), (1.0, 2.01, 196 * MIB, 1.63e9)]
    assert found.rows["flows"][0]["jitter_ms"] == 0.017
    sent = read_foreign(RECORDED / "foreign/iperf3-udp.client.txt")
    assert [row["bytes"] for row in sent.rows["intervals"]] == [357 * MIB] * 2
    assert any("passed to its kernel" in note for note in sent.notes)
    assert not any("passed to its kernel" in note for note in found.notes)


def test_terminated_iperf_server_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "server.txt"
    # The last test, and the message of Ctrl-C, which precedes the buffered output.
    file.write_bytes(
        b"Server listening on 5313 (test #4)" + recorded_file("iperf3-tests.server.txt").split(b"(test #4)")[1]
    )
    found = read_foreign(file)
    assert [(row["traffic"], row["retransmits"]) for row in found.rows["flows"]] == [
        ("server RX-S", None),
        ("server TX-S", 1),
    ]


def test_missing_answer_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "lost.json"
    document = json.loads(IRTT)
    for trip in document["round_trips"]:
        trip["lost"] = "true"
    file.write_text(json.dumps(document))
    assert main(["import", str(file), "--to", str(tmp_path / "made")]) == 0
    made = json.loads((tmp_path / "made/import.json").read_text())["files"][0]
    count = len(document["round_trips"])
    assert made["notes"] == [f"{count} of {count} packets had no answer"]
    assert not (tmp_path / "made/tables/samples.parquet").exists()


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("empty.json", b"", "found an empty file"),
        ("cut.json", (RECORDED / "traffic/iperf3-tcp.client.json").read_bytes()[:5000], "found incomplete JSON"),
        ("cut.gz", gzip.compress(b"time_s,a_kbps\n1,2\n" * 50, mtime=0)[:-12], "cannot be read"),
        ("odd.txt", b"hello\n", "found a file of an unknown form"),
        ("unit.csv", b"time_s,video\n1,2\n", 'found the column "video", expected a unit at its end'),
        ("semicolons.csv", b"time_s;a_kbps\n1;2,5\n", "semicolons.csv:1: found fields with semicolons between them"),
        ("tabs.csv", b"\xef\xbb\xbftime_s\ta_kbps\n1\t2\n", "tabs.csv:1: found fields with tabs between them"),
        ("back.csv", b"time_s,a_kbps\n2,2\n1,3\n", "expected one later than in the previous row"),
        (
            "stands.csv",
            b"time_s,a_kbps\n0,2\n0,3\n",
            "stands.csv:3: found the time 0, expected one later than in the previous row",
        ),
        (
            "untimed.csv",
            b"time_s,a_kbps\n1,2\n,3\n",
            "untimed.csv:3: found no time, expected one later than in the previous row",
        ),
        ("rate.csv", b"time_s,a_kbps\n1,2\n2,-3\n", 'found -3 in the column "a_kbps", expected 0 or more'),
        ("delay.csv", b"time_s,a_ms\n1,-0.1\n", 'delay.csv:2: found -0.1 in the column "a_ms", expected 0 or more'),
        ("lone.csv", b"time_s,a_kbps\n1764160000,2\n", 'found one value in the column "a_kbps", expected at least two'),
        ("milliseconds.csv", b"time_s,a_kbps\n1764160000000,2\n", "expected a number of at most 1e+11"),
        ("twice.csv", b"time_s,a_kbps,a_Mbps\n1,2,3\n2,2,3\n", 'twice.csv:1: found rates of "a" in two columns'),
        ("again.csv", b"time_s,a_ms,a_kbps,a_ms\n1,2,3,4\n", 'again.csv:1: found delays of "a" in two columns'),
        ("short.csv", b"time_s,a_kbps\n2\n", "unit.csv:2: found 1 fields".replace("unit", "short")),
        ("word.csv", b"time_s,a_kbps\n1,much\n", "word.csv:2: found 'much', expected a number"),
        ("quote.csv", b'time_s,a_kbps\n1,2\n2,"' + b"3\n" * 70000, "found invalid CSV: field larger than field limit"),
        ("blank-lines.csv", b"\n \n\ntime_s,video\n1,2\n", 'blank-lines.csv:4: found the column "video"'),
        (
            "great.csv",
            b"time_s,a_Gbps\n1,1e308\n2,1e308\n",
            "great.csv:2: found '1e308', expected a number of at most 1e+11",
        ),
        (
            "many.csv",
            b"time_s,a_Gbps\n1e9,1e11\n2e9,1e11\n",
            "found a number too large for a table: 1.25e+28 for bytes",
        ),
        (
            "great.json",
            ONE.replace(b"3670016", b"1" + b"0" * 19),
            "found a number too large for a table: 1e+19 for bytes",
        ),
        ("greatest.json", ONE.replace(b"3670016", b"1" + b"0" * 308), "found a number too large for a table: "),
        (
            "great.txt",
            recorded_file("iperf3-tcp.client.txt").replace(b" 7.25 M", b" " + b"7" * 20 + b" M"),
            "too large for a table",
        ),
        (
            "great2.txt",
            recorded_file("iperf-bytes.server.txt").replace(b"4325436", b"4" * 20),
            "too large for a table: 4.44e+19",
        ),
        (
            "digits2.txt",
            recorded_file("iperf-bytes.server.txt").replace(b"4325436", b"4" * 400),
            "found no summary line",
        ),
        (
            "points2.txt",
            recorded_file("iperf-udp-kbytes.server.txt").replace(b"0.001 ms 0/717", b"0..001 ms 0/717"),
            "found no summary line of stream [1]",
        ),
        ("new.flent", b'{"metadata": {}, "version": 5, "x_values": []}', "found format 5 of flent, expected 4"),
        (
            "old2.flent",
            b'{"metadata": {}, "version": 1, "x_values": []}',
            "ResultSet.load_file('OLD').dump_file('NEW.fl",
        ),
        ("old.flent", b'{"metadata": {}, "version": 3, "x_values": []}', "found format 3 of flent, expected 4"),
        ("other.flent", b'{"metadata": {}, "version": 4, "x_values": [1]}', "it is not output of flent"),
        ("other.json", b'{"start": {"version": "iperf 3.12"}}', "it is not output of iperf3"),
        ("failed.json", b'{"start": {"version": "iperf 3.12"}, "error": "no route"}', "ended with an error: no route"),
        ("odd.pcap", b"\xd4\xc3\xb2\xa1" + b"\0" * 10, "found 14 bytes, expected a pcap file"),
        ("none.pcap", PCAP_HEADER, "found a capture without packets"),
        (
            "cut.pcapng",
            CUT_CAPTURE,
            "the block at byte 67808 is malformed or truncated",
        ),
        ("head.csv", b"time_s,a_kbps\n", "found a header without values"),
        ("blank.csv", b"time_s,a_kbps\n1,\n2,\n", "found a header without values"),
        (
            "none.json",
            IRTT.replace(b'"json_format": 1', b'"json_format": 2'),
            "found format 2 of irtt's JSON, expected 1",
        ),
        ("old.json", b'{"irtt": {}, "round_trips": []}', "found format None of irtt's JSON, expected 1"),
        (
            "no-trips.json",
            IRTT_VERSION + b', "round_trips": []}',
            "found no round trip",
        ),
        (
            "trips.json",
            IRTT_VERSION + b"}",
            "it is not output of irtt: no 'round_trips'",
        ),
        (
            "none.flent",
            NO_VALUE,
            "found no value",
        ),
        ("two.json", ONE + OTHER + IDLE, "found 2 JSON documents, expected one document from one test"),
        ("two-cut.json", ONE + OTHER[:-9], "found incomplete JSON: Extra data"),
        ("two-events.json", "".join(EVENTS + EVENTS).encode(), 'two-events.json:8: found a second event "start"'),
        ("no-end.json", "".join(EVENTS[:-1]).encode(), 'found no event "end", expected one'),
        (
            "cut-event.json",
            "".join(EVENTS)[:-40].encode(),
            "cut-event.json:7: found an incomplete event, expected a JSON",
        ),
        ("error.json", (EVENTS[0] + '{"event":"error","data":"no route"}').encode(), "ended with an error: no route"),
        ("none3.json", NO_STREAM, "found no stream, expected at least one"),
        (
            "refused.txt",
            recorded_file("iperf3-refused.client.txt"),
            "an error: unable to connect to server: Connection",
        ),
        ("broken.txt", recorded_file("iperf3-interrupted.client.txt"), "error: interrupt - the client has terminated"),
        ("tests.txt", recorded_file("iperf3-tests.server.txt"), "found 4 tests, expected one"),
        ("appended.txt", 2 * recorded_file("iperf3-tcp.client.txt"), "found 2 tests, expected one"),
        (
            "appended2.txt",
            2
            * b"[  1] local 10.0.0.1 port 4 connected with 10.0.0.2 port 5\n[  1] 0.0-2.0 sec  2 MBytes  8 Mbits/sec\n",
            "appended2.txt:3: found stream [1] after the end of stream [1]",
        ),
        ("cut.txt", recorded_file("iperf3-tcp.client.txt")[:1200], "found no summary line of iperf3"),
        ("cut-later.txt", CUT_LATER, "found stream [7] with fewer summary lines than another"),
        ("cut2.txt", recorded_file("iperf-mbytes.server.txt")[:300], "found no iperf 2 line for the whole test"),
        (
            "tests2.txt",
            recorded_file("iperf-tests.server.txt"),
            "tests2.txt:17: found stream [3] after the end of stream [1]",
        ),
        ("ends.txt", UNEQUAL, "found stream [2] ending after 1.0003 s and [1] after 5.0001 s, expected streams of one"),
        ("unconnected.txt", UNEQUAL.partition(b"[  2] 0")[0], "found no summary line of stream [2]"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value and " " not in value else "",
)
def test_invalid_foreign_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    form = ["--format", "csv"] if name.endswith(".csv") else []
    assert main(["import", str(tmp_path / name), "--to", str(tmp_path / "made"), *form]) == 2
    output = capsys.readouterr().err
    assert message in output and name in output
    assert not (tmp_path / "made").exists() and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("text", [CSV, "\n\n" + CSV, CSV.replace("\n", "\r"), "\ufeff" + CSV.replace("\n", "\r\n\r\n")])
def test_csv_accepts_any_line_ends(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.csv").write_bytes(text.encode())
    found = read_foreign(tmp_path / "mine.csv", "csv")
    assert [row["bps"] for row in found.rows["intervals"]] == [800e3, 900e3, 1000e3]
    assert [row["value"] for row in found.samples] == [10, 12.5]


@pytest.mark.parametrize(
    "times, ends, message",
    [
        ((1, 2, 3), [1, 2, 3], []),
        ((0, 1, 2), [1, 2], ["the first rate of a, at 0 s, is left out: there is no earlier time"]),
        ((0.5, 0.6, 0.7), [0.1, 0.2, 0.3], ["times are relative to the start at 0.4 s"]),
        ((1, 6, 11), [1, 6, 11], []),
        ((1764160000, 1764160001, 1764160002), [1, 2, 3], ["times are relative to the start at 1764159999 s"]),
        (
            (-2, -1, 0),
            [1, 2],
            [
                "times are relative to the start at -2 s",
                "the first rate of a, at -2 s, is left out: there is no earlier time",
            ],
        ),
    ],
)
def test_csv_accepts_any_time_origin(
    tmp_path: Path, times: tuple[float, ...], ends: list[float], message: list[str]
) -> None:
    rows = [f"{time},{rate},{rate}" for time, rate in zip(times, (800, 900, 1000), strict=True)]
    (tmp_path / "mine.csv").write_text("\n".join(["time_s,a_kbps,b_ms", *rows, ""]))
    found = read_foreign(tmp_path / "mine.csv")
    assert [row["end_s"] for row in found.rows["intervals"]] == pytest.approx(ends)
    assert found.rows["intervals"][0]["start_s"] == 0 and found.seconds == pytest.approx(ends[-1])
    (flow,) = found.rows["flows"]
    assert flow["seconds"] == pytest.approx(ends[-1])
    assert flow["bytes"] == sum(int(str(row["bytes"])) for row in found.rows["intervals"])
    assert 800e3 <= float(str(flow["goodput_bps"])) <= 1000e3
    samples = [row["time_s"] for row in found.samples]
    assert len(samples) == 3 and samples[-2:] == pytest.approx(ends[-2:]) and found.notes == message


@pytest.mark.parametrize(
    "file", ["foreign/irtt.json", "traffic/iperf3-tcp.client.json", "traffic/iperf-tcp.server.txt"]
)
def test_compressed_file_has_the_same_arm_as_the_plain_one(tmp_path: Path, file: str) -> None:
    for plain in (RECORDED / file, tmp_path / "mine.csv"):
        (tmp_path / "mine.csv").write_text(CSV)
        packed = tmp_path / f"{plain.name}.gz"
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        assert read_foreign(packed).name == read_foreign(plain).name == plain.stem


def test_every_file_is_a_separate_arm(tmp_path: Path) -> None:
    """Import several files, also if a file has the name that a duplicate would get."""
    files = [tmp_path / name for name in ("x/a.csv", "y/a.csv", "a (2).csv", "z/a.csv")]
    for number, file in enumerate(files):
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"time_s,rtt_ms\n0,{number}\n1,{number}\n")
    folder = import_files(files, tmp_path / "made")
    record = json.loads((folder / "import.json").read_text())
    assert [each["arm"] for each in record["files"]] == ["a", "a (3)", "a (2)", "a (4)"]
    samples = pq.read_table(folder / "tables/samples.parquet").to_pylist()
    values = {(each["arm"], each["value"]) for each in samples}
    assert values == {("a", 0), ("a (3)", 1), ("a (2)", 2), ("a (4)", 3)}


def test_csv_columns_can_have_different_steps(tmp_path: Path) -> None:
    rows = ["time_s,late_kbps,seldom_kbps", "1,,", "2,,8", "3,80,", "4,80,8", "5,,"]
    (tmp_path / "mine.csv").write_text("\n".join(rows))
    found = read_foreign(tmp_path / "mine.csv")
    parts = [(row["traffic"], row["offset_s"], row["start_s"], row["end_s"]) for row in found.rows["intervals"]]
    assert parts == [("late", 2, 0, 1), ("late", 2, 1, 2), ("seldom", 0, 0, 2), ("seldom", 0, 2, 4)]
    assert [row["offset_s"] for row in found.rows["flows"]] == [2, 0] and found.seconds == 5


def test_markup_in_the_name_of_a_series_is_drawn_as_text(tmp_path: Path) -> None:
    name = '<a href="https://example.net/">click</a> & <b>bold</b>'
    document = {
        "metadata": {"NAME": "tcp_download", "SERIES_META": {}, "T0": "2026-01-01T00:00:00.000000Z"},
        "version": 4,
        "x_values": [0.0, 1.0, 2.0],
        "results": {name: [1.0, 2.0, 3.0]},
        "raw_values": {},
    }
    file = tmp_path / "a.flent"
    file.write_text(json.dumps(document))
    assert main(["import", str(file), "--to", str(tmp_path / "made")]) == 0
    with open_browser(tmp_path / "profile") as tab:
        tab.open((tmp_path / "made" / "report.html").as_uri())
        tab.wait("document.querySelector('.js-line') !== null")
        # Shown while the pointer is over a point: the graph has no other place for the name of a line.
        name_given = "document.querySelector('.js-plotly-plot').data[0].name"
        assert tab.tell(name_given) == name.replace("&", "&amp;").replace("<", "&lt;")
        assert tab.tell("document.querySelectorAll('.js-plotly-plot a').length") == 0
