"""Runs watched from their folders: messages, counters of cells, permitted clients, and bad input."""

from __future__ import annotations

import contextlib
import errno
import http.client
import io
import json
import os
import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sample_run
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from rich.console import Console

from browser import open_browser
from qoslab.analysis.raw import class_rows
from qoslab.analysis.series import class_rates
from qoslab.cli import main
from qoslab.cli.options import CellChoice
from qoslab.cli.places import open_sweep
from qoslab.cli.run import VALUES_INTERVAL_S, prepare_run
from qoslab.errors import UserError
from qoslab.live import tail as tails
from qoslab.live.counter_rates import CounterRates
from qoslab.live.page import page_content
from qoslab.live.screen import SPARKS, new_lines, render_screen, sparkline
from qoslab.live.server import HEADERS, LiveView
from qoslab.live.tail import FileTail
from qoslab.live.watched_run import INTERRUPTED, WatchedRun
from qoslab.model.units import Duration
from qoslab.results import Cell, RunFolder, RunOptions, tables
from qoslab.results.progress import PROGRESS, ProgressFile
from qoslab.run.cell.periodic_show import OFTEN_S, SELDOM_S

TOP = Path(__file__).parents[2]
ASKED = RunOptions(file="policing-vs-shaping.yml")

CLASS = "R1 FastEthernet0/1 output, policy Police, class class-default"


def counters_reply(second: float) -> dict[str, Any]:
    return sample_run.counters_reply(second, "Police", police=True)


def printed_counters(times: int) -> list[dict[str, Any]]:
    """Return a real router's output every two seconds, with 250 000 more bytes offered to the policer each time."""
    shown = (sample_run.RECORDED / "ios" / "police.classic.txt").read_text()
    packets = re.search(r"(\d+) packets, (\d+) bytes", shown)
    assert packets is not None
    found = []
    for number in range(times):
        later = f"{packets[1]} packets, {int(packets[2]) + 250_000 * number} bytes"
        at_ns = number * 2 * 10**9
        moment = {"before_ns": at_ns, "after_ns": at_ns + 10**8}
        found.append({"command": "show policy-map interface", **moment, "raw": shown.replace(packets[0], later, 1)})
    return found


@pytest.fixture
def run_in_progress(tmp_path: Path) -> Iterator[tuple[RunFolder, ProgressFile, Cell]]:
    """Provide a run with a cell that has traffic."""
    folder = RunFolder.create(tmp_path, "policing-vs-shaping")
    with folder.lock_run(ASKED):
        text = ProgressFile(folder.path)
        text.begin(title="Policing <versus> shaping", lab="virtual", cells=2, done=0)
        cell = folder.cell("policed")
        text.cell(cell.name, "cells/policed/1")
        text.step(cell.name, "traffic", 30)
        yield folder, text, cell


class TestTail:
    def test_incomplete_line_is_not_read(self, tmp_path: Path) -> None:
        file = tmp_path / "a.jsonl"
        tail = FileTail(file)
        assert tail.read() == []
        file.write_text('{"a": 1}\n{"a"')
        assert tail.read() == [{"a": 1}]
        with file.open("a") as more:
            more.write(': 2}\nrubbish\n[1]\n{"a": 3}\n')
        assert tail.read() == [{"a": 2}, {"a": 3}] and tail.left_out == 2

    def test_restarted_file_is_read_from_its_start(self, tmp_path: Path) -> None:
        file = tmp_path / "a.jsonl"
        tail = FileTail(file)
        file.write_text('{"a": 1}\n{"a": 2}\n')
        tail.read()
        file.write_text('{"a": 3}\n')
        assert tail.read() == [{"a": 3}]

    def test_endless_line_does_not_use_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tails, "MAX_LINE_BYTES", 10)
        monkeypatch.setattr(tails, "MAX_READ_BYTES", 4)
        file = tmp_path / "a.jsonl"
        file.write_text('{"a": "' + "x" * 100 + '"}\n{"b": 1}\n')
        tail = FileTail(file)
        assert [each for _ in range(40) for each in tail.read()] == [{"b": 1}] and tail.left_out == 1

    def test_links_and_pipes_are_not_followed(self, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text('{"a": 1}\n')
        (tmp_path / "link").symlink_to(secret)
        os.mkfifo(tmp_path / "pipe")
        assert [FileTail(tmp_path / name).read() for name in ("link", "pipe")] == [[], []]


class TestRates:
    @pytest.mark.parametrize("kind", ["police", "shape"])
    def test_live_values_equal_those_of_the_report(self, kind: str) -> None:
        replies = [sample_run.counters_reply(second, "P", **{kind: True}) for second in (0, 1, 2, 2.2, 3, 4)]
        rates = CounterRates()
        for each in replies:
            rates.add_counters("R1", each)
        (points,) = rates.classes.values()
        origin = replies[0]["time_ns"]
        expected = class_rates(tables.frame("classes", list(class_rows("R1", replies, origin))))
        names = ["time_s", "offered_bps", "sent_bps", "dropped_bps", "queue_packets"]
        found = pd.DataFrame([{name: getattr(point, name) for name in names} for point in points])
        pd.testing.assert_frame_equal(found.astype(float), expected[names].astype(float), check_index_type=False)

    def test_queue_delay_follows_from_the_sent_rate(self) -> None:
        rates = CounterRates()
        for second in (1, 2):
            rates.add_counters("R1", sample_run.counters_reply(second, "P", shape=True))
        ((point,),) = rates.classes.values()
        # 40 packets wait, and 125 are sent per second.
        assert point.queue_packets == 40 and point.wait_ms == pytest.approx(40 / 125 * 1000)

    def test_reattached_policy_starts_from_zero(self) -> None:
        rates = CounterRates()
        for number, second in enumerate((3, 4, 0.5, 1.5)):
            rates.add_counters("R1", {**counters_reply(second), "time_ns": number * 10**9})
        (points,) = rates.classes.values()
        assert [point.time_s for point in points] == [1.0, 3.0]

    def test_router_without_counters_is_read_by_its_output(self) -> None:
        rates = CounterRates()
        for each in printed_counters(2):
            rates.add_reading("R1", each)
        first = next(iter(rates.classes.values()))
        assert first[0].offered_bps == pytest.approx(1e6) and first[0].time_s == pytest.approx(2)


class TestWatchedRun:
    def test_live_page_follows_events_and_counters(self, run_in_progress: tuple[RunFolder, ProgressFile, Cell]) -> None:
        folder, answer, cell = run_in_progress
        run = WatchedRun(folder)
        run.read_new_data()
        assert run.shown_cells() == [] and run.doing["policed/1"].step == "traffic"
        for second in range(3):
            cell.append_counters("R1", counters_reply(second))
        run.read_new_data()
        (shown,) = page_content(run)["cells"]
        assert [each["title"] for each in shown["classes"]] == [CLASS]
        assert [len(line["x"]) for line in shown["graphs"][0]["data"]] == [2, 2, 2]
        cell.append_counters("R1", counters_reply(3))
        run.read_new_data()
        assert len(page_content(run)["cells"][0]["graphs"][0]["data"][0]["x"]) == 3
        answer.done(cell.name, valid=False, reasons=["a dog ate it"])
        answer.figures([{"arm": "policed", "metric": "goodput.sum", "measured": 8e5, "verdict": "within"}])
        answer.note("2 of 2")
        answer.end("finished")
        run.read_new_data()
        page = page_content(run)
        assert page["invalid"] == [{"name": "policed/1", "reasons": ["a dog ate it"]}]
        assert (page["state"], page["done"], page["notes"]) == ("finished", 1, ["2 of 2"])
        text = values_at(run, 160)
        assert "Policing <versus> shaping" in text and "goodput.sum" in text and "█" in text
        reported: dict[Any, float] = {}
        assert len(list(new_lines(run, reported))) == 3 and list(new_lines(run, reported)) == []

    def test_finished_cell_is_counted_once(self, run_in_progress: tuple[RunFolder, ProgressFile, Cell]) -> None:
        folder, text, cell = run_in_progress
        run = WatchedRun(folder)
        readings = printed_counters(3)
        for each in readings[:2]:
            cell.append_reading("R1", each)
        run.read_new_data()
        assert cell.incoming_folder.exists()
        cell.write_readings("R1", readings)
        cell.remove_incoming()
        text.done(cell.name, valid=True)
        run.read_new_data()
        points = next(iter(run.shown_cells()[0].rates.classes.values()))
        assert [point.time_s for point in points] == pytest.approx([2, 4])

    def test_killed_run_is_shown_as_interrupted(
        self, run_in_progress: tuple[RunFolder, ProgressFile, Cell], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("qoslab.live.watched_run.SILENT_S", 0.0)
        folder, _, _ = run_in_progress
        run = WatchedRun(folder)
        run.read_new_data()
        run.read_new_data()
        assert not run.is_over
        monkeypatch.setattr(folder, "is_in_progress", lambda: False)
        run.read_new_data()
        assert run.state == INTERRUPTED

    def test_run_lock_file_marks_a_run_in_progress(self, tmp_path: Path) -> None:
        folder = RunFolder.create(tmp_path, "a")
        assert not folder.is_in_progress()
        with folder.lock_run(ASKED):
            assert folder.is_in_progress()
        assert not folder.is_in_progress()

    def test_invalid_counters_are_reported(self, run_in_progress: tuple[RunFolder, ProgressFile, Cell]) -> None:
        folder, _, cell = run_in_progress
        run = WatchedRun(folder)
        cell.append_counters("R1", {"ok": False, "error": "no"})
        run.read_new_data()
        assert next(run.running_cells()).is_damaged

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ({"event": "begin", "format": 7}, "found format 7, expected 1"),
            ({"event": "cell", "name": "a", "folder": "../../.."}, "not in format 1"),
            ({"event": "done", "name": "a"}, "not in format 1"),
        ],
    )
    def test_lines_of_another_version_are_refused(self, tmp_path: Path, line: dict[str, Any], message: str) -> None:
        folder = RunFolder.create(tmp_path, "a")
        with folder.lock_run(ASKED):
            (folder.path / PROGRESS).write_text(json.dumps({"time": "", **line}) + "\n")
            with pytest.raises(UserError, match=message):
                WatchedRun(folder).read_new_data()

    def test_run_without_progress_lines_is_refused(self, tmp_path: Path) -> None:
        folder = RunFolder.create(tmp_path, "a")
        with folder.lock_run(ASKED), pytest.raises(UserError, match=r"found no progress\.jsonl"):
            WatchedRun(folder)


class TestCommand:
    def test_watch_without_a_terminal_prints_lines_and_the_end(
        self,
        run_in_progress: tuple[RunFolder, ProgressFile, Cell],
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        stepped_back = []
        monkeypatch.setattr("qoslab.cli.watch.step_last", lambda: stepped_back.append(True))
        folder, text, cell = run_in_progress
        for second in range(2):
            cell.append_counters("R1", counters_reply(second))
        text.end("interrupted")
        assert main(["watch", str(folder.path)]) == 3
        first, last = capsys.readouterr().out.splitlines()
        assert first.startswith(f"policed/1 1 s: {CLASS}: offered 1.514 Mb/s, sent 1.017 Mb/s")
        assert last == "virtual lab, interrupted: 0 of 2 cells"
        assert main(["watch", str(folder.path), "--json"]) == 3
        assert json.loads(capsys.readouterr().out)["cells"][0]["classes"][0]["title"] == CLASS
        assert len(stepped_back) == 2


def test_imported_names_are_escaped(run_in_progress: tuple[RunFolder, ProgressFile, Cell]) -> None:
    folder, text, cell = run_in_progress
    text.cell("policed/1 [/x] \x1b[2J", "cells/policed/1")
    for second in range(2):
        cell.append_counters("R1", counters_reply(second))
    run = WatchedRun(folder)
    run.read_new_data()
    assert "policed/1 [/x] \\x1b[2J" in values_at(run, 60)


@pytest.mark.sample(5)
@pytest.mark.parametrize(("cells", "shown"), [(1, 1), (3, 2), (6, 2)])
@pytest.mark.parametrize(("width", "graph"), [(50, 0), (60, 0), (80, 16), (120, 40)])
def test_small_terminal_shows_complete_lines(
    run_in_progress: tuple[RunFolder, ProgressFile, Cell], width: int, graph: int, cells: int, shown: int
) -> None:
    folder, text, _ = run_in_progress
    row = {"arm": "policed", "measured": 8e5, "unit": "b/s", "tolerance": "795.3 kb/s to 839.5 kb/s"}
    verdicts = ["within"] * 19 + ["outside"]
    text.figures(
        [{"metric": f"class.passed.second_most({verdict})", "verdict": verdict, **row} for verdict in verdicts]
    )
    for number in range(1, cells + 1):
        cell = folder.cell("policed", number)
        text.cell(cell.name, f"cells/policed/{number}")
        for second in range(45):
            cell.append_counters("R1", counters_reply(second))
    run = WatchedRun(folder)
    run.read_new_data()
    reported = values_at(run, width).splitlines()
    assert len(reported) <= 24 and all(len(line) <= width for line in reported) and "…" not in "".join(reported)
    begins = [number for number, line in enumerate(reported) if line.startswith("policed/")]
    assert [reported[begin] for begin in begins[1:]] == [
        f"policed/{number}, after 44 s" for number in range(1, shown + 1)
    ]
    assert reported.count(f"cells that are not shown: {cells - shown}") == (cells > shown)
    # Above the cells, the results so far.
    values = " ".join(reported[: begins[1]])
    assert "results so far: 19 within, 1 outside" in values
    assert re.search(r"second_most\(outside\) +800 kb/s  795.3 kb/s to 839.5 kb/s  outside", values)
    for begin in begins[1:]:
        lines_of_cell = reported[begin : begin + 7]
        assert "R1 FastEthernet0/1 output, policy Police" in lines_of_cell
        rows = " ".join(lines_of_cell)
        found = re.search(r"class-default +1\.514 Mb/s +1\.005 Mb/s +[\d.]+ kb/s ", rows)
        assert found is not None and sum(each in SPARKS for each in rows) == graph
    assert values_at(run, width, whole=True).count("class-default") == min(cells, 4)


def values_at(run: WatchedRun, width: int, *, whole: bool = False) -> str:
    """Return the content of a terminal of 24 lines."""
    console = Console(file=io.StringIO(), width=width, height=24, color_system=None)
    console.print(render_screen(run, console, whole=whole))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_small_graphs_begin_at_zero() -> None:
    assert sparkline([0, 1, None, 4, 8]) == "▁▂ ▅█" and sparkline([0.0, None]) == "▁ "


@pytest.fixture
def view(run_in_progress: tuple[RunFolder, ProgressFile, Cell], monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveView]:
    monkeypatch.setattr("qoslab.live.server.FAREWELL_S", 0.0)
    folder, _, cell = run_in_progress
    for second in range(4):
        cell.append_counters("R1", counters_reply(second))
    with LiveView(metrics=0) as made:
        made.serve(WatchedRun(folder))
        with made.lock:
            made._run.read_new_data()
        yield made


def request_page(url: str, host: str | None = None) -> tuple[int, bytes, Any]:
    server, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(server, timeout=10)
    connection.request("GET", f"/{path}", headers={"Host": host or server})
    got = connection.getresponse()
    found = got.status, got.read(), got.headers
    connection.close()
    return found


class TestServer:
    def test_live_page_needs_no_external_resource(self, view: LiveView) -> None:
        for name in ("", "live.js", "plotly.js", "report.css"):
            status, content, headers = request_page(view.url + name)
            assert status == 200 and content
            assert {key: headers[key] for key in HEADERS} == HEADERS
            if name in ("", "live.js"):
                assert b"http" not in content.replace(b"http-equiv", b"")

    def test_live_counters_increase_during_traffic(
        self, view: LiveView, run_in_progress: tuple[RunFolder, ProgressFile, Cell]
    ) -> None:
        def drawn() -> int:
            return len(json.loads(request_page(view.url + "data.json")[1])["cells"][0]["graphs"][0]["data"][0]["x"])

        assert drawn() == 3
        run_in_progress[2].append_counters("R1", counters_reply(4))
        with view.lock:
            view._run.read_new_data()
        assert drawn() == 4

    def test_other_users_get_no_live_data(self, view: LiveView) -> None:
        port = view.url.split(":")[2].partition("/")[0]
        assert len(view.word) >= 20 and view.url.startswith("http://127.0.0.1:")
        for url in (f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}/data.json", view.url + "../report.html"):
            assert request_page(url)[0] == 404, url
        assert request_page(view.url.replace(view.word, view.word[:-1] + "é".encode().hex()) + "data.json")[0] == 404
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", ""):
            assert request_page(view.url + "data.json", host or "[::]")[0] == 421, host
        assert request_page(view.metrics_url, "evil.example")[0] == 421
        assert request_page(view.metrics_url.replace("/metrics", "/"))[0] == 404

    def test_metrics_are_openmetrics(self, view: LiveView) -> None:
        with urllib.request.urlopen(view.metrics_url, timeout=10) as got:
            assert got.headers["Content-Type"].startswith("application/openmetrics-text")
            families = {each.name: each for each in text_string_to_metric_families(got.read().decode())}
        (offered,) = families["qoslab_class_offered_bits_per_second"].samples
        assert offered.value == pytest.approx(125 * 1514 * 8)
        assert offered.labels == {
            "cell": "policed/1",
            "router": "R1",
            "interface": "FastEthernet0/1",
            "direction": "output",
            "policy": "Police",
            "class": "class-default",
        }
        # A policer has no queue, which differs from an empty queue.
        assert families["qoslab_class_queue_packets"].samples == []
        (counted,) = families["qoslab_class_offered_bytes"].samples
        assert counted.name == "qoslab_class_offered_bytes_total" and counted.value == 375 * 1514
        assert [each.value for each in families["qoslab_run_cells"].samples] == [2, 0, 0]

    def test_port_in_use_is_reported(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            with pytest.raises(UserError, match=f"--metrics {port}: cannot listen: Address already in use"):
                LiveView(metrics=port)
            with pytest.raises(UserError, match=f"--port {port}: cannot listen"):
                LiveView(port=port)

    @pytest.mark.parametrize(
        ("number", "hint"),
        [
            (errno.EADDRINUSE, "another program uses it; choose another port, or 0 for any free one"),
            (errno.EACCES, "ports below 1024 are for root; choose another port, or 0 for any free one"),
            (errno.ENOBUFS, "choose another port, or 0 for any free one"),
        ],
    )
    def test_reason_for_an_unavailable_port_is_reported(
        self, number: int, hint: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def bind(*_: Any) -> None:
            raise OSError(number, os.strerror(number))

        # Nothing is refused to root, which may use any port.
        monkeypatch.setattr(socket.socket, "bind", bind)
        with pytest.raises(UserError, match=f"--port 80: cannot listen: {os.strerror(number)}") as reported:
            LiveView(port=80)
        assert reported.value.hint == hint

    def test_ports_are_released_without_a_run(self) -> None:
        with LiveView() as view:
            pass
        with pytest.raises(ConnectionRefusedError):
            request_page(view.url)

    @pytest.mark.parametrize("command", [["watch"], ["run", "policing-vs-shaping", "--lab", "simulated"]])
    def test_port_without_live_is_refused(
        self, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for port in ("0", "8080"):
            assert main([*command, "--port", port, "--metrics", "0"]) == 2
            assert "found --port without --live, expected both" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("options", [["--metrics", "PORT"], ["--live", "--port", "PORT"]], ids=lambda each: each[0])
    def test_run_with_a_used_port_leaves_nothing(
        self,
        tmp_path: Path,
        options: list[str],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = str(other.getsockname()[1])
            words = [each.replace("PORT", port) for each in options]
            assert main(["run", "policing-vs-shaping", "--lab", "simulated", *words]) == 2
        assert f"{port}: cannot listen: Address already in use" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_closed_and_idle_browsers_do_not_disturb_others(self, view: LiveView) -> None:
        address = ("127.0.0.1", int(view.url.split(":")[2].partition("/")[0]))
        idle = [socket.create_connection(address) for _ in range(8)]
        for _ in range(8):
            with socket.create_connection(address) as gone:
                gone.sendall(f"GET /{view.word}/plotly.js HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\n\r\n".encode())
        for rubbish in (b"\0\n\n", b"GET " + b"a" * 70_000 + b"\r\n\r\n"):
            with socket.create_connection(address) as bad:
                bad.sendall(rubbish)
        assert request_page(view.url)[0] == 200
        for each in idle:
            each.close()

    def test_other_users_cannot_exhaust_the_connections_of_the_page(
        self, view: LiveView, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("qoslab.live.server.owner_of_peer", lambda connection: 65534)
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            request_page(view.url)
        assert request_page(view.metrics_url)[0] == 200, "a scraper may be another user's"
        monkeypatch.setattr("qoslab.live.server.owner_of_peer", lambda connection: 0)
        assert request_page(view.url)[0] == 200, "forwarders of ports may be root's"

    def test_slow_scraper_is_disconnected(self, view: LiveView, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("qoslab.live.server.IDLE_S", 0.3)
        address = ("127.0.0.1", int(view.metrics_url.split(":")[2].partition("/")[0]))
        with socket.create_connection(address, timeout=30) as slow:
            ended = threading.Event()

            def ask_slowly() -> None:
                with contextlib.suppress(OSError):
                    while not ended.wait(0.02):
                        slow.sendall(b"x")

            asking = threading.Thread(target=ask_slowly)
            asking.start()
            try:
                assert slow.recv(1) == b""
            finally:
                ended.set()
                asking.join()

    def test_error_of_the_live_server_is_reported(self, view: LiveView, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken() -> None:
            raise RuntimeError("no such thing")

        monkeypatch.setattr(view._run, "read_new_data", broken)
        for thread in [each for each in threading.enumerate() if each.name == "live"]:
            thread.join(10)
        assert "a bug in qoslab: RuntimeError: no such" in json.loads(request_page(view.url + "data.json")[1])["error"]

    def test_live_server_leaves_nothing_behind(self, run_in_progress: tuple[RunFolder, ProgressFile, Cell]) -> None:
        with LiveView() as view:
            view.serve(WatchedRun(run_in_progress[0]))
            assert request_page(view.url)[0] == 200
        with pytest.raises(ConnectionRefusedError):
            request_page(view.url)
        assert not [each for each in threading.enumerate() if each.name == "live-http"]


@pytest.mark.parametrize(
    "experiment, lab, message",
    [
        ("policing-vs-shaping", "virtual", True),
        ("tcp-friendly-policer", "virtual", False),
        pytest.param("tcp-friendly-policer", "simulated", True, marks=pytest.mark.long),
    ],
)
def test_values_so_far_are_shown_except_of_a_sweep_in_real_time(
    experiment: str, lab: str, message: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, sweep = open_sweep(experiment, (), lab)
    assert (prepare_run(file, sweep, CellChoice(lab=lab), ()).request.begin is not None) == message
    page = " ".join((TOP / "docs/reports.md").read_text().split())
    assert "for a sweep in real time only at its end" in page and "at most once a second." in page
    assert VALUES_INTERVAL_S == 1


def test_page_names_the_polling_interval() -> None:
    page = (TOP / "docs/reports.md").read_text()
    reported = re.search(r"at the interval `qoslab_show_every`, by default (.*?), or (.*?) if", page)
    assert reported is not None and [Duration.parse(each).seconds for each in reported.groups()] == [SELDOM_S, OFTEN_S]


def test_live_page_is_drawn_by_a_browser(view: LiveView, tmp_path: Path) -> None:
    with open_browser(tmp_path) as tab:
        tab.open(view.url)
        tab.wait("document.querySelector('.js-line') !== null")
        dom = tab.tell("document.documentElement.outerHTML")
    assert "Policing &lt;versus&gt; shaping" in dom and "running" in dom and "policed/1: traffic (30 s)" in dom
    # Three lines, each also in the legend.
    assert dom.count('class="trace scatter') == 3 and len(re.findall(r'class="js-line" d="M', dom)) == 6
    assert f'<th scope="row">{CLASS}</th><td class="number">1.514 Mb/s</td>' in dom
