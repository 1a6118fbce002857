"""Run in a lab that only SSH reaches: counters from show commands against the data plane's, hosts whose clocks are
wrong.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import run
from ruamel.yaml import YAML
from test_run import EXPERIMENT, latest

from qoslab.analysis import raw
from qoslab.analysis.conservation import disagreements
from qoslab.analysis.counter_files import HostCount, host_nic_counters
from qoslab.analysis.packets import shift_clock
from qoslab.capture.packet_tables import column_array, read_packets
from qoslab.live.counter_rates import ClassKey, ClassPoint
from qoslab.live.watched_run import WatchedRun
from qoslab.model.experiment import Topology
from qoslab.model.steps import TRAFFIC
from qoslab.results import Cell, CellFiles, CellRecord, RunFolder
from qoslab.results.progress import PROGRESS
from qoslab.schema import CellIdentity, load_sweep
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from verdicts import newest_run, runs_of, status_of

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("counters")]

SHORT_S, LONG_S = 9, 30
"""Durations of the traffic."""
TOLERANCE = 0.01
"""Greatest difference of a rate over a window from that of the data plane."""
CLOCK_OFFSET_NS, DRIFT_PPM = 3_700_000_000, 50
"""Offset and drift of the hosts' clocks."""
SERIES_NS = 2_000_000
"""Greatest difference of a packet's time from that of correct clocks."""

SKEW = """
START_NS, AHEAD_NS, DRIFT_PPM = {start}, {ahead}, {drift}
def drifted(ns):
    return (ns - START_NS) * DRIFT_PPM // 10**6
"""
AGENT = """
import sys, time
wall, any_clock = time.time_ns, time.clock_gettime_ns
time.time_ns = lambda: wall() + AHEAD_NS + drifted(wall())
time.clock_gettime_ns = lambda clock: any_clock(clock) + drifted(wall())
exec(sys.argv[-1])
"""
DUMPCAP = """
import shutil, signal, struct, subprocess, sys
dumpcap = subprocess.Popen(["{dumpcap}", *sys.argv[1:]])
signal.signal(signal.SIGINT, lambda *_: None)
status = dumpcap.wait()
if "-w" not in sys.argv:
    sys.exit(status)
file = sys.argv[sys.argv.index("-w") + 1]
shutil.copy(file, "{kept}")
content, at, second = bytearray(open(file, "rb").read()), 0, 10**6
while at < len(content):
    kind, length = struct.unpack_from("<II", content, at)
    if kind == 1:
        option = at + 16
        while struct.unpack_from("<HH", content, option) != (0, 0):
            code, size = struct.unpack_from("<HH", content, option)
            if code == 9:
                second = 10 ** content[option + 4]
            option += 4 + (size + 3) // 4 * 4
    if kind == 6:
        high, low = struct.unpack_from("<II", content, at + 12)
        ns = (high << 32 | low) * (10**9 // second)
        ticks = (ns + AHEAD_NS + drifted(ns)) // (10**9 // second)
        struct.pack_into("<II", content, at + 12, ticks >> 32, ticks & 0xFFFFFFFF)
    at += length
open(file, "wb").write(content)
sys.exit(status)
"""


@dataclass(frozen=True)
class FinishedRun:
    """The finished run."""

    folder: Path
    arm: str
    """Only arm of the run."""
    replies: list[dict[str, Any]]
    """Replies of R1's data plane, twenty a second."""
    unshifted: Path
    """Capture with its original time stamps."""
    seen: dict[ClassKey, list[ClassPoint]]
    """Class rates that a watcher of the run saw during its traffic."""

    @property
    def cell(self) -> Path:
        """Return the only cell."""
        return self.folder / f"cells/{self.arm}/1"

    @property
    def record(self) -> CellRecord:
        """Record of the cell."""
        return Cell(self.cell, CellIdentity(self.arm, (), 1)).files().record()

    def table(self, name: str) -> pd.DataFrame:
        """Return one of the run's tables."""
        return pd.read_parquet(self.folder / f"tables/{name}.parquet")


@pytest.fixture(scope="module")
def tcp_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedRun]:
    """Provide a run on the exposed lab with a reading every 3 s, on hosts with wrong and drifting clocks."""
    yield from _make_run(tmp_path_factory.mktemp("ran"), SHORT_S, "policed")


@pytest.fixture(scope="module")
def long_tcp_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedRun]:
    """Provide a longer, shaped run: with smooth traffic no burst falls between a request and its reply."""
    yield from _make_run(tmp_path_factory.mktemp("long"), LONG_S, "shaped")


@pytest.fixture(scope="module")
def constant_rate_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedRun]:
    """Provide a run of the same length, with a class that drops two of three packets at a constant rate instead of TCP
    with its bursts.
    """
    folder = tmp_path_factory.mktemp("even")
    yaml = YAML(typ="safe")
    experiment = yaml.load(EXPERIMENT.read_text())
    del experiment["compare"]
    experiment["traffic"] = [
        {"name": "load", "tool": "flood", "protocol": "udp", "from": "client", "to": "server", "rate": "3 Mb/s"}
        | {"size": "500 B", "port": 5001}
    ]
    experiment["captures"][0]["filter"] = "udp"
    shutil.copytree(EXPERIMENT.parent / "templates", folder / "templates")
    file = folder / "even.yml"
    with file.open("w") as out:
        yaml.dump(experiment, out)
    yield from _make_run(folder, LONG_S, "policed", file)


def _make_run(folder: Path, length_s: int, arm: str, experiment: Path = EXPERIMENT) -> Iterator[FinishedRun]:
    topology = load_sweep(experiment, {}).experiment.topology
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        yield from _run_experiment(folder, experiment, topology, length_s, arm)


def _run_experiment(
    folder: Path, experiment: Path, topology: Topology, length_s: int, arm: str
) -> Iterator[FinishedRun]:
    with Lab.up(topology, name=f"test-{os.getpid()}-counters-{length_s}-{arm}") as lab:
        file = folder / "here.yml"
        expose_lab(lab, file)
        text = re.sub(r"( +)qoslab_rollback: none\n", r"\g<0>\1qoslab_show_every: 3 s\n", file.read_text())
        python = f"        ansible_python_interpreter: {_skew_clocks(folder)}\n"
        file.write_text(text.replace("      hosts:\n", python + "      hosts:\n", 1))
        with data_plane(lab, "R1") as replies, watched_values(folder) as seen:
            words = ("--lab", str(file), "--duration", f"{length_s}s", "--arm", arm)
            status, output, errors = run(folder, "run", str(experiment), *words)
        assert status == status_of(newest_run(folder)), errors + output
        yield FinishedRun(latest(folder), arm, replies, folder / "unshifted.pcapng", seen)


def _skew_clocks(folder: Path) -> Path:
    """Return a Python for agents whose clock is wrong, with a dumpcap that uses that clock."""
    there = folder / "bin"
    there.mkdir()
    dumpcap = shutil.which("dumpcap", path=os.environ["PATH"] + ":/usr/sbin:/usr/bin")
    assert dumpcap is not None
    skew = SKEW.format(start=time.time_ns(), ahead=CLOCK_OFFSET_NS, drift=DRIFT_PPM)
    (there / "agent.py").write_text(skew + AGENT)
    body = skew + DUMPCAP.format(dumpcap=dumpcap, kept=folder / "unshifted.pcapng")
    (there / "dumpcap").write_text(f"#!{sys.executable}\n{body}")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPATH={there}:$PATH exec {sys.executable} -I -S {there}/agent.py "$@"\n')
    for program in (python, there / "dumpcap"):
        program.chmod(0o755)
    return python


@contextmanager
def data_plane(lab: Lab, router: str) -> Iterator[list[dict[str, Any]]]:
    """Collect the replies of a router's data plane while the block runs."""
    found: list[dict[str, Any]] = []
    over = threading.Event()

    async def ask() -> None:
        async with lab.control(router) as client:
            while not over.is_set():
                found.append(dict(await client.counters()))
                await asyncio.sleep(0.05)

    thread = threading.Thread(target=lambda: asyncio.run(ask()))
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


@contextmanager
def watched_values(folder: Path) -> Iterator[dict[ClassKey, list[ClassPoint]]]:
    """Yield the observations of the run that begins in the block during its traffic, class by class."""
    seen: dict[ClassKey, list[ClassPoint]] = {}
    over = threading.Event()

    def look() -> None:
        while not (found := [run for run in runs_of(folder) if (run / PROGRESS).exists()]):
            if over.wait(0.1):
                return
        run = WatchedRun(RunFolder(found[-1]))
        while not over.wait(0.1):
            run.read_new_data()
            for cell in run.running_cells():
                if cell.name in run.doing and run.doing[cell.name].step == TRAFFIC:
                    seen.update({key: list(points) for key, points in cell.rates.classes.items()})

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def test_cost_of_reading_counters_is_reported(tcp_run: FinishedRun) -> None:
    (polling,) = tcp_run.record.polling.values()
    assert polling.every_s == 3 and polling.readings >= 2
    assert 0 < polling.took_mean_s <= polling.took_max_s
    # The router prints its load.
    assert polling.busy_max_percent is not None
    interfaces = tuple(f"show interfaces FastEthernet0/{number}" for number in (0, 1))
    assert polling.commands[:3] == ("show policy-map interface", *interfaces)


@pytest.mark.long
@pytest.mark.quiet
def test_metrics_at_a_trigger_are_measured(long_tcp_run: FinishedRun) -> None:
    """Measure values at a trigger: readings every 3 s alone are too far apart."""
    found = long_tcp_run.table("metrics").set_index("metric")
    moment = [name for name in found.index if name.endswith("@ time 5.7 s")]
    assert len(moment) >= 8 and found.loc[moment, "value"].notna().all(), found.loc[moment]
    times = long_tcp_run.table("classes")["time_s"]
    assert all(((times - due).abs() < 0.4).any() for due in (5.2, 6.2)), times.tolist()


def test_class_rates_arrive_during_the_traffic(tcp_run: FinishedRun) -> None:
    ((key, points),) = tcp_run.seen.items()
    assert key.title == "R1 FastEthernet0/1 output, policy Police, class class-default"
    # A reading every 3 s; the last one may follow the end of the traffic.
    times = [each.time_s for each in points]
    assert points and times == sorted(times)
    sent = [each for each in points if each.sent_bps]
    assert sent and all(each.offered_bps >= (each.sent_bps or 0) for each in sent)
    assert sum(each.dropped_bps or 0 for each in points) > 0
    # They are the readings in the final table of the cell.
    read = tcp_run.table("classes")
    assert {each.offered_bytes for each in points} <= {*read["bytes"]}


COUNTED: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    (
        "classes",
        {"class": "class-default"},
        ("packets", "bytes", "police_conformed_bytes", "police_exceeded_bytes", "drops_police_bytes"),
    ),
    ("interfaces", {"interface": "FastEthernet0/1"}, ("output_packets", "output_bytes")),
    ("interfaces", {"interface": "FastEthernet0/0"}, ("input_packets", "input_bytes")),
)
"""Compared tables, rows and columns."""


def paired_readings(tcp_run: FinishedRun, table: str, place: dict[str, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of the data plane and of show commands with the same subject, in order of time."""
    started = tcp_run.record.traffic_start
    assert started is not None
    rows_of = raw.class_rows if table == "classes" else raw.interface_rows
    rows = rows_of("R1", tcp_run.replies, pd.Timestamp(started).value)
    truth = pd.DataFrame([row for row in rows if place.items() <= row.items()])
    read = tcp_run.table(table).sort_values("time_s")
    return truth, read[(read[list(place)] == pd.Series(place)).all(axis=1)]


@pytest.mark.parametrize(("table", "place", "columns"), COUNTED)
def test_window_rates_from_show_commands_are_those_of_the_data_plane(
    tcp_run: FinishedRun, table: str, place: dict[str, str], columns: tuple[str, ...]
) -> None:
    truth, read = paired_readings(tcp_run, table, place)
    assert read["time_error_s"].between(0, 1, inclusive="neither").all()
    assert read["time_s"].iloc[0] < 0 and read["time_s"].iloc[-1] > SHORT_S
    # Rates of classes end with the traffic; the counters of interfaces are from the last reading, after the traffic.
    inside = read[(read["time_s"] >= SHORT_S / 3) & (read["time_s"] <= (SHORT_S if table == "classes" else 60))]
    ends = inside.iloc[[0, -1]]
    assert len(inside) >= 2
    asked = truth["time_s"].astype(float).to_numpy()
    # A reading has an instant between question and answer, and the data plane is read only at intervals.
    first, last = (
        (asked.searchsorted(time_s - error_s) - 1, asked.searchsorted(time_s + error_s))
        for time_s, error_s in ends[["time_s", "time_error_s"]].astype(float).itertuples(index=False)
    )
    for name in columns:
        counted, grown = truth[name].to_numpy(), ends[name].iloc[1] - ends[name].iloc[0]
        least, most = counted[last[0]] - counted[first[1]], counted[last[1]] - counted[first[0]]
        # On a busy machine, question and answer may be too far apart for a precise check.
        assert (1 - TOLERANCE) * least <= grown <= (1 + TOLERANCE) * most, (name, least, grown, most)


@pytest.mark.long
@pytest.mark.quiet
@pytest.mark.parametrize(
    ("table", "place", "columns"),
    [("classes", {"class": "class-default"}, ("packets", "bytes")), *COUNTED[1:]],
)
def test_rates_over_a_long_window_are_within_one_percent_of_the_data_planes(
    long_tcp_run: FinishedRun, table: str, place: dict[str, str], columns: tuple[str, ...]
) -> None:
    _check_rates(long_tcp_run, table, place, columns)


@pytest.mark.long
@pytest.mark.quiet
@pytest.mark.parametrize(("table", "place", "columns"), COUNTED)
def test_rates_of_an_evenly_dropping_class_are_within_one_percent(
    constant_rate_run: FinishedRun, table: str, place: dict[str, str], columns: tuple[str, ...]
) -> None:
    _check_rates(constant_rate_run, table, place, columns)
    dropped = paired_readings(constant_rate_run, "classes", {"class": "class-default"})[0]["drops_police_packets"]
    assert dropped.iloc[-1] > 10_000


def _check_rates(tcp_run: FinishedRun, table: str, place: dict[str, str], columns: tuple[str, ...]) -> None:
    """Check that rates between the readings at the ends of the window equal those of the data plane."""
    truth, read = paired_readings(tcp_run, table, place)
    inside = read[(read["time_s"] >= LONG_S / 3) & (read["time_s"] <= LONG_S)]
    ends = inside.iloc[[0, -1]]["time_s"].astype(float).to_numpy()
    assert len(inside) >= 6 and ends[1] - ends[0] > LONG_S / 2
    asked = truth["time_s"].astype(float).to_numpy()
    assert asked[0] < ends[0] and asked[-1] > ends[1]
    for name in columns:
        rate = float(inside[name].iloc[-1] - inside[name].iloc[0]) / (ends[1] - ends[0])
        counted = np.interp(ends, asked, truth[name].astype(float).to_numpy())
        true = float(counted[1] - counted[0]) / (ends[1] - ends[0])
        assert true > 0 and abs(rate / true - 1) < TOLERANCE, (name, rate, true)


def test_rate_from_readings_has_an_error_or_is_omitted(tcp_run: FinishedRun) -> None:
    passed = tcp_run.table("metrics").set_index("metric").loc["class.passed(class-default)"]
    read = tcp_run.table("classes").sort_values("time_s")
    ends = read[(read["time_s"] >= 3) & (read["time_s"] <= 9)].iloc[[0, -1]]
    apart = float(ends["time_error_s"].sum() / (ends["time_s"].iloc[1] - ends["time_s"].iloc[0]))
    if apart > 0.05:
        assert pd.isna(passed["value"]) and "the readings only show a value between" in passed["missing"]
    else:
        assert passed["value"] > 0
        assert passed["error"] == pytest.approx(apart * passed["value"])


def test_wrong_and_drifting_host_clocks_do_not_shift_series(tcp_run: FinishedRun) -> None:
    clock = tcp_run.record.host_clocks["server"]
    assert abs(clock.ahead_ns[0] - CLOCK_OFFSET_NS) < 10 * 10**6
    # The capture itself keeps the time stamps of its host.
    file = tcp_run.cell / "captures/server.pcapng"
    (stamped,), (unshifted,) = list(read_packets(file)), list(read_packets(tcp_run.unshifted))
    true = column_array(unshifted, "time_ns")
    assert len(true) > 500 and (column_array(stamped, "time_ns") - true > CLOCK_OFFSET_NS).all()
    (found,) = shift_clock([stamped], clock)
    assert np.abs(column_array(found, "time_ns") - true).max() < SERIES_NS
    started = tcp_run.record.traffic_start
    assert started is not None
    series = tcp_run.table("packets_io")
    bins = series[series["flow"] == "all"]
    first, last = ((each - pd.Timestamp(started).value) / 1e9 for each in (true.min(), true.max()))
    assert bins["time_s"].min() == pytest.approx(first, abs=0.11)
    assert bins["time_s"].max() == pytest.approx(last, abs=0.11)
    assert not [each for each in tcp_run.record.reasons if "clock" in each or "stamped" in each]


def test_router_counts_the_packets_sent_by_hosts(tcp_run: FinishedRun) -> None:
    hosts = host_nic_counters(CellFiles(tcp_run.cell, CellIdentity("policed", (), 1)))
    assert hosts["client"]["eth0"].sent > 500 and hosts["server"]["eth0"].received > 300
    topology = load_sweep(EXPERIMENT, {}).experiment.topology
    interfaces, classes = (
        [
            {key: value for key, value in row.items() if pd.notna(value)}
            for row in table.astype(object).to_dict("records")
        ]
        for table in (tcp_run.table("interfaces"), tcp_run.table("classes"))
    )
    assert list(disagreements(topology, hosts, interfaces, classes)) == []
    assert not [reason for reason in tcp_run.record.reasons if "counts" in reason or "counters" in reason]
    # The same readings show that a tenth of the client's packets took another path.
    sent = hosts["client"]["eth0"]
    more = {"client": {"eth0": HostCount(sent.sent + sent.sent // 10, sent.received, sent.sent_bytes)}}
    (reported,) = disagreements(topology, more, interfaces, classes)
    assert "client sent" in reported and "R1 counts" in reported


def test_each_host_reports_its_lateness(tcp_run: FinishedRun) -> None:
    stalls = tcp_run.record.stalls
    assert set(stalls) == {"client", "server"}
    for each in stalls.values():
        assert each.watched_ns > 9 * 10**9 and each.wakes > 100
    assert "iperf3" in stalls["client"].waited_ns
