"""Files of current versions of other tools, read by `qoslab import`: the values must be those that the tool reports."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from other_tools import TOP, OtherTools, TestedTool, qoslab

RECORDED = TOP / "tests/recorded/capture/four-streams.pcapng"


PING = """\
DESCRIPTION = "ICMP alone: flent's own test of pings needs netperf"
AGGREGATOR = "timeseries"
TOTAL_LENGTH = LENGTH
DEFAULTS = {"PLOT": "ping"}
ICMP = {"ip_version": IP_VERSION, "interval": STEP_SIZE, "length": LENGTH, "host": HOST, "runner": "ping"}
ICMP["units"] = "ms"
DATA_SETS = o([("Ping (ms) ICMP", ICMP)])
PLOTS = o([("ping", {"type": "timeseries", "description": "Ping", "series": [{"data": "Ping (ms) ICMP"}]})])
"""


def import_with_qoslab(file: Path, table: str) -> pd.DataFrame:
    """Return a table of the import of a file."""
    folder = file.parent / f"made-of-{file.name}"
    qoslab("import", file, "--to", folder, folder=file.parent)
    assert (folder / "report.html").stat().st_size > 1000
    return pq.read_table(folder / f"tables/{table}.parquet").to_pandas()


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> str:
    with socket.socket(socket.AF_INET, kind) as own:
        own.bind(("127.0.0.1", 0))
        return str(own.getsockname()[1])


@contextmanager
def server(*argv: str) -> Iterator[None]:
    """Yield a server on loopback."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        yield
    finally:
        process.terminate()
        process.wait()


def iperf3_values(tools: OtherTools, *more: str) -> str:
    port = free_port()
    with server(tools.path("iperf3"), "-s", "-B", "127.0.0.1", "-p", port):
        return tools.run("iperf3", "-c", "127.0.0.1", "-p", port, "-t", "3", "-b", "20M", "-P", "2", *more)


def test_import_of_iperf3_json_equals_its_output(
    tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path
) -> None:
    """Two streams on loopback: bytes of each, and their rates in each interval, equal those in its JSON."""
    file = tmp_path / "mine.json"
    file.write_text(iperf3_values(tools, "-J"))
    document = json.loads(file.read_text())
    flows = import_with_qoslab(file, "flows")
    assert flows["bytes"].tolist() == [each["receiver"]["bytes"] for each in document["end"]["streams"]]
    intervals = pq.read_table(tmp_path / "made-of-mine.json/tables/intervals.parquet").to_pandas()
    rates = [rows.sort_values("start_s")["bps"].tolist() for _, rows in intervals.groupby("stream")]
    reported_rates = [[each["bits_per_second"] for each in interval["streams"]] for interval in document["intervals"]]
    assert rates == [pytest.approx(list(stream)) for stream in zip(*reported_rates, strict=True)]
    record_tested_tool("iperf3 JSON in", "iperf3", tools.version("iperf3"))


def test_import_of_iperf3_text_equals_its_sums(
    tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path
) -> None:
    """Two streams on loopback: the rates of their receivers add up to its line [SUM]."""
    file = tmp_path / "mine.txt"
    file.write_text(iperf3_values(tools, "-f", "k"))
    output = re.findall(r"^\[SUM\].* ([0-9.]+) Kbits/sec\s+receiver", file.read_text(), re.MULTILINE)
    assert import_with_qoslab(file, "flows")["goodput_bps"].sum() / 1e3 == pytest.approx(float(output[0]), rel=0.01)
    record_tested_tool("iperf3 text in", "iperf3", tools.version("iperf3"))


def test_import_of_iperf_text_equals_its_sums(
    tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path
) -> None:
    """Two streams on loopback: their rates add up to its line [SUM]."""
    port, file = free_port(), tmp_path / "mine.txt"
    words = ("-c", "127.0.0.1", "-p", port, "-t", "3", "-i", "1", "-b", "20M", "-P", "2", "-f", "k")
    with server(tools.path("iperf"), "-s", "-p", port):
        file.write_text(tools.run("iperf", *words))
    output = re.findall(r"^\[SUM\]\s+0\.0+-\s*3\.\d+ sec.* ([0-9.]+) Kbits/sec", file.read_text(), re.MULTILINE)
    assert import_with_qoslab(file, "flows")["goodput_bps"].sum() / 1e3 == pytest.approx(float(output[-1]), rel=0.02)
    record_tested_tool("iperf text in", "iperf 2", tools.version("iperf"))


def test_import_of_irtt_json_equals_its_output(
    tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path
) -> None:
    """One second of packets every 20 ms on loopback: number and median of the round trips equal its output."""
    port, file = free_port(socket.SOCK_DGRAM), tmp_path / "mine.json"
    with server(tools.path("irtt"), "server", "-b", f"127.0.0.1:{port}"):
        tools.run("irtt", "client", "-i", "20ms", "-d", "1s", "-o", file, f"127.0.0.1:{port}")
    document = json.loads(file.read_text())["stats"]
    samples = import_with_qoslab(file, "samples")
    trips = samples[samples["series"] == "round trip"]
    assert len(trips) == document["packets_received"]
    assert trips["value"].median() * 1e6 == pytest.approx(document["rtt"]["median"], rel=1e-3)
    record_tested_tool("irtt JSON in", "irtt", tools.version("irtt", "version"))


def test_import_of_flent_equals_its_csv(tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path) -> None:
    """Three-second ping test on loopback: the values equal those in its CSV."""
    tools.path("fping")
    (tmp_path / "icmp.conf").write_text(PING)
    tools.run("flent", tmp_path / "icmp", "-H", "127.0.0.1", "-l", "3", "-s", "0.2", "-D", tmp_path, folder=tmp_path)
    file = next(tmp_path.glob("*.flent.gz"))
    lines = tools.run("flent", "-i", file, "-f", "csv").splitlines()
    rows = [line.split(",") for line in lines if line.count(",")]
    place = rows[0].index("Ping (ms) ICMP")
    reported = [float(row[place]) for row in rows[1:] if row[place]]
    samples = import_with_qoslab(file, "samples")
    found = samples[samples["series"] == "Ping (ms) ICMP"]
    assert len(reported) > 5 and found["value"].tolist() == pytest.approx(reported)
    assert set(found["unit"]) == {"ms"}
    record_tested_tool("flent in", "flent", tools.version("flent"))


def test_flent_converts_its_older_formats(tools: OtherTools, tmp_path: Path) -> None:
    old, new = tmp_path / "old.flent", tmp_path / "new.flent.gz"
    document = json.loads(gzip.decompress((TOP / "tests/recorded/foreign/tcp_2up.flent.gz").read_bytes()))
    old.write_text(json.dumps({**document, "version": 3}))
    argv = [sys.executable, "-m", "qoslab", "import", str(old), "--to", str(tmp_path / "made")]
    output = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    command = re.search(r'-c "(.+)"', output.stderr)
    assert output.returncode == 2 and command is not None, output.stderr
    code = command[1].replace("'OLD'", repr(str(old))).replace("'NEW.flent.gz'", repr(str(new)))
    tools.path("flent")
    tools.run("python", "-c", code)
    plain = Path(shutil.copy(TOP / "tests/recorded/foreign/tcp_2up.flent.gz", tmp_path))
    assert sorted(import_with_qoslab(new, "flows")["bytes"]) == sorted(import_with_qoslab(plain, "flows")["bytes"])


def count_packets(tools: OtherTools, file: Path) -> tuple[int, int]:
    """Return the frames and bytes that tshark reads."""
    lines = tools.run("tshark", "-r", file, "-T", "fields", "-e", "frame.len").split()
    return len(lines), sum(map(int, lines))


@pytest.mark.parametrize("form", ["pcap", "nsecpcap", "pcapng"])
def test_import_of_captures_equals_tshark(
    tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path, form: str
) -> None:
    """Captures written by Wireshark's editcap: frames and bytes equal those that tshark reads."""
    file = tmp_path / f"mine.{form}"
    tools.run("editcap", "-F", form, RECORDED, file)
    packets = import_with_qoslab(file, "packets_io")
    every = packets[packets["flow"] == "all"]
    assert (every["packets"].sum(), every["bytes"].sum()) == count_packets(tools, file)
    record_tested_tool("pcapng in" if form == "pcapng" else "pcap in", "tshark", tools.version("tshark"))


def test_import_of_a_compressed_capture_equals_the_original(
    tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path
) -> None:
    """Capture compressed by gzip: the result equals that of the uncompressed one."""
    plain = tmp_path / "mine.pcapng"
    shutil.copy(RECORDED, plain)
    tools.run("gzip", "-k", plain)
    packed = tmp_path / "mine.pcapng.gz"
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    pd.testing.assert_frame_equal(import_with_qoslab(plain, "packets_io"), import_with_qoslab(packed, "packets_io"))
    record_tested_tool("gzip in", "gzip", tools.version("gzip"))


def test_import_of_csv_equals_sqlite(tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path) -> None:
    """Rows with its line ends and empty fields: mean and samples equal those that it computes."""
    file, base = tmp_path / "mine.csv", tmp_path / "mine.db"
    tools.run("sqlite3", base, "create table t (time_s real, video_kbps real, rtt_ms real)")
    tools.run("sqlite3", base, "insert into t values (1, 800, 10), (2, 900, 12.5), (3, 1000, null)")
    file.write_bytes(tools.run("sqlite3", "-csv", "-header", base, "select * from t").replace("\n", "\r\n").encode())
    mean = float(tools.run("sqlite3", base, "select avg(video_kbps) from t"))
    assert import_with_qoslab(file, "flows")["goodput_bps"].tolist() == pytest.approx([mean * 1e3])
    samples = pq.read_table(tmp_path / "made-of-mine.csv/tables/samples.parquet").to_pandas()
    output = [float(each) for each in tools.run("sqlite3", base, "select rtt_ms from t where rtt_ms notnull").split()]
    assert samples["value"].tolist() == output
    record_tested_tool("CSV in", "sqlite3", tools.version("sqlite3"))
