"""Cells in virtual time, by the real simulator: one in a worker, a sweep in worker processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import RUN_S, Command, run
from test_sweep import GRID, manifest

from experiment_files import experiment_file
from qoslab.genie.ip_sla import parse_statistics
from qoslab.lab_kinds import lab_kind
from qoslab.lab_kinds.simulated import SimulatedKind
from qoslab.live.watched_run import WatchedCell, WatchedRun
from qoslab.plan import Options, make_plan
from qoslab.results import CellRecord, RunFolder, tables
from qoslab.run.cluster import remote_worker as cluster_worker
from qoslab.run.cluster.remote import serialise_task, store
from qoslab.run.task import make_task
from qoslab.run.workers import lab_machinery, simulated
from qoslab.schema import load_sweep
from qoslab.system.programs import SIMULATOR, find_own_program, program_variable
from verdicts import newest_run
from waiting import wait_until

pytestmark = pytest.mark.lab

FLOOD = GRID.replace(
    "{name: transfer, tool: iperf3,", "{name: transfer, tool: iperf3, protocol: udp, rate: 90 Mb/s,"
).replace("rate: 10 Mb/s", "rate: 100 Mb/s")
"""Flood that gives each cell enough packets to be observed during its computation."""
OBSERVED = """\
observe:
  - {node: R1, command: show policy-map interface, when: [before, during, after]}
captures:
  - {name: receiver, node: server, interface: eth0, filter: tcp}
"""


def test_repeated_cell_has_identical_files(tmp_path: Path) -> None:
    """Run a cell in a worker of a cluster and in one of this machine: all files are identical, and in the places of the
    virtual lab.
    """
    file = experiment_file(tmp_path, "grid.yml", GRID.replace("platform: engine", "platform: ios") + OBSERVED)
    kind = lab_kind(SimulatedKind.name)
    cell = make_plan(load_sweep(file, {"duration": "3s"}, kind.check), Options(lab=SimulatedKind.name)).cells[0]
    folder = RunFolder.create(tmp_path / "runs", "grid")
    contents: list[dict[str, bytes]] = []
    for attempt in (1, 2):
        task = make_task(cell, lab_machinery(kind).versions("", cell.experiment), attempt)
        place = folder.cell_folder(task.identity, attempt)
        answer = cluster_worker.run_cell(serialise_task(task, place if attempt == 2 else None))
        assert place.draft.exists() == (answer["files"] is None) == (attempt == 2)
        record = CellRecord.model_validate_json(answer["record"])
        store(answer["files"], record, place)
        assert (
            record.valid and record.lab == SimulatedKind.name and record.virtual_s is not None and record.virtual_s >= 3
        )
        assert [entry.moment for entry in record.observed] == ["before", "during", "after"]
        assert record.captures["receiver"].received > 100
        contents.append({str(each.relative_to(place.path)): each.read_bytes() for each in place.path.rglob("*.*")})
        assert place.files().devices_with_counters() == ["R1"]
        times = [reply["time_ns"] for reply in place.files().counter_replies("R1")]
        assert len(times) >= 4 and times[1] - times[0] == 10**9
        assert "police:" in place.files().text(f"{record.observed[1].file}.txt")
    first, second = contents
    assert first.keys() == second.keys()
    changing = {"cell.json"}  # has the time of day
    assert all(first[name] == second[name] for name in first.keys() - changing)


ELSEWHERE = """\
import builtins, errno, io, os, sys, time
from qoslab.cli import main
from qoslab.system import priority

def plain(function):
    def called(path, *more, **named):
        if not isinstance(path, int) and os.fsdecode(path).startswith("/proc"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return function(path, *more, **named)
    return called

for name in [name for name in dir(os) if name.startswith("sched_")] + ["pipe2", "fdatasync", "memfd_create", "eventfd"]:
    delattr(os, name)
del time.CLOCK_BOOTTIME
io.open, builtins.open, os.open, os.readlink = (plain(each) for each in (io.open, open, os.open, os.readlink))
del os.setpriority
priority.platform.system = lambda: "Darwin"
sys.exit(main(sys.argv[1:]))
"""
"""Names of Linux that other systems lack: /proc, sets of processors, priorities of threads."""


def test_simulated_run_needs_nothing_specific_to_linux(tmp_path: Path) -> None:
    asked = ("policing-vs-shaping", "--lab", "simulated", "--duration", "2s", "--arm", "policed")
    for words in (("run", *asked), ("watch",), ("report", "policing-vs-shaping")):
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        # Values of such a short run may be out of tolerance.
        assert done.returncode in ((0,) if words == ("watch",) else (0, 1)), done.stderr
    assert len(list(tmp_path.glob("runs/policing-vs-shaping/2*/report.html"))) == 1


PROBED = """\
probes:
  - {name: echo, type: icmp-jitter, from: R1, to: server, frequency: 2 s, timeout: 1 s, start_after: 500 ms}
  - {name: hosts, type: udp-jitter, from: client, to: server, port: 5000, frequency: 2 s, timeout: 1 s}
observe:
  - {node: R1, command: show ip sla statistics aggregated, when: [during]}
"""


def test_output_is_parsed_and_a_probe_has_the_printed_values(tmp_path: Path) -> None:
    file = experiment_file(tmp_path, "grid.yml", GRID.replace("platform: engine", "platform: ios") + PROBED)
    kind = lab_kind(SimulatedKind.name)
    cell = make_plan(load_sweep(file, {"duration": "4s"}, kind.check), Options(lab=SimulatedKind.name)).cells[0]
    task = make_task(cell, lab_machinery(kind).versions("", cell.experiment))
    reply = cluster_worker.run_cell(serialise_task(task))
    place = RunFolder.create(tmp_path / "runs", "grid").cell_folder(task.identity, 1)
    record = CellRecord.model_validate_json(reply["record"])
    store(reply["files"], record, place)
    assert record.valid, record.reasons
    values = {name: json.loads((place.path / f"probes/{name}.json").read_text()) for name in ("echo", "hosts")}
    print_ = parse_statistics((place.path / "probes/echo.txt").read_text())["operations"]["1"]["groups"][-1]
    assert values["echo"] == {name: print_[name] for name in values["echo"]}
    assert (values["echo"]["rtt_count"], values["hosts"]["rtt_count"]) == (20, 20)
    stamps = json.loads((place.path / "probes/echo.samples.json").read_text())["samples"]
    longest = max(each["arrived_ns"] - each["sent_ns"] for each in stamps) / 1e6
    assert abs(values["echo"]["rtt_ms"]["max"] - longest) < 1, "in whole milliseconds"
    (observed,) = record.observed
    parsed = json.loads((place.path / f"{observed.file}.json").read_text())
    (group,) = parsed["operations"]["1"]["groups"]
    assert 0 < group["rtt_count"] < print_["rtt_count"], "it was asked for before the probe was read"


def test_metric_at_a_trigger_equals_the_output_at_that_time(clean: Path) -> None:
    status, output, errors = run(clean, "run", "policing-vs-shaping", "--lab", "simulated", "--arm", "shaped")
    assert status == 0, errors + output
    (cell,) = RunFolder(newest_run(clean)).open().cells
    (entry,) = (each for each in cell.record().observed if each.moment == "time 5.7 s")
    printed = re.search(r"^ +- +(\d+) +(\d+) ", cell.text(f"{entry.file}.txt"), re.MULTILINE)
    assert printed is not None
    metrics = tables.read_table(RunFolder(newest_run(clean)), "metrics").set_index("metric")["value"]
    values = [metrics[f"shape.{name} @ time 5.7 s"] for name in ("queue_depth.during", "sent_packets")]
    assert values == [int(each) for each in printed.groups()] and values[0] > 0


def test_later_traffic_has_one_time_origin_in_all_tables(clean: Path) -> None:
    text = GRID.replace("to: server}", "to: server, start_after: 2 s}") + OBSERVED
    file = experiment_file(clean, "grid.yml", text.replace("platform: engine", "platform: ios"))
    # Metrics of one second may lack a value, but tables do not.
    words = ("--lab", "simulated", "--duration", "2s", "--only", "rtt=10 ms", "--only", "pir=1 Mb/s")
    status, output, errors = run(clean, "run", str(file), *words)
    assert status == 0, errors + output
    made = RunFolder(newest_run(clean))
    began = tables.read_table(made, "flows")["offset_s"].min()
    packets = tables.read_table(made, "packets_io")
    first = packets[packets["packets"] > 0]["time_s"].min()
    rows = tables.read_table(made, "interfaces")
    sent = rows[(rows["interface"] == "FastEthernet0/1") & (rows["output_bytes"] > 0)]["time_s"].min()
    assert began == 2 and 2 <= first < 2.2, "the connection takes some round trips of 10 ms"
    assert 2 < sent <= 3, "counted once a second"


def simulators(pid: int) -> dict[int, int]:
    """Return the simulators below a process, with their parents."""
    parents: dict[int, int] = {}
    simulating = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                name, *arguments = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            # A run also reads the simulator's version.
            if name.endswith(b"qos-sim") and b"serve" in arguments:
                simulating.append(int(process.name))

    def child_processes(process: int) -> bool:
        return process in parents and (parents[process] == pid or child_processes(parents[process]))

    return {process: parents[process] for process in simulating if child_processes(process)}


def wait_for_simulator(command: Command) -> int:
    """Return the process that computes a cell: the run, or one of its workers."""

    def found() -> list[int]:
        assert command.process.poll() is None, "the run has ended"
        return list(simulators(command.process.pid).values())

    return wait_until(found, "a simulator computes a cell", RUN_S, step_s=0.01)[0]


def wait_for_counters(clean: Path) -> WatchedCell:
    """Return a cell of the newest run during its computation, as a watcher sees it, with two seconds counted."""
    run = WatchedRun(RunFolder(newest_run(clean)))

    def found() -> list[WatchedCell]:
        run.read_new_data()
        cells = [cell for cell in run.running_cells() if any(len(each) >= 2 for each in cell.rates.interfaces.values())]
        assert cells or not run.is_over, "the run has ended"
        return cells

    return wait_until(found, "a cell has counters of two seconds", RUN_S, step_s=0.01)[0]


@pytest.mark.long
def test_few_cells_run_without_worker_processes(clean: Path) -> None:
    """Compute four cells on two processors: within the run itself, which can be interrupted and resumed."""
    file = experiment_file(clean, "grid.yml", FLOOD)
    command = Command(clean, "run", str(file), "--lab", "simulated", "--duration", "100s", "--jobs", "2")
    command.wait_for("2 cells at a time")
    assert wait_for_simulator(command) == command.process.pid
    assert not wait_for_counters(clean).is_finished
    os.kill(command.process.pid, signal.SIGINT)
    status, _, errors = command.end()
    assert status == 130 and "interrupted: ending the simulations" in errors
    assert list(clean.glob("tmp/*")) == []

    status, output, errors = Command(clean, "run", "--resume", "--duration", "2s").end()
    assert status == 0, errors + output
    assert "simulate" not in errors, "a step that takes no time is not announced"
    cells = manifest(clean)["cells"]
    assert len(cells) == 4 and all(cell["valid"] for cell in cells)
    assert not [cell for cell in cells if (newest_run(clean) / cell["folder"] / "coming").exists()]

    results = [*newest_run(clean).glob("tables/*.parquet"), *newest_run(clean).glob("comparison.*")]
    assert len(results) > 10, results
    made = {file.name: file.read_bytes() for file in results}
    assert Command(clean, "report", str(newest_run(clean))).end()[0] == 0
    assert made == {file.name: file.read_bytes() for file in results}, "it was read while other cells ran"


@pytest.mark.slow
def test_sweep_survives_interruption_resumption_and_a_killed_worker(clean: Path) -> None:
    file = experiment_file(clean, "grid.yml", FLOOD)
    command = Command(clean, "run", str(file), "--lab", "simulated", "--duration", "100s", "--repetitions", "4")
    command.wait_for("cells at a time")
    assert wait_for_simulator(command) != command.process.pid
    _, _, read_first = next(iter(wait_for_counters(clean)._tails))
    assert read_first.parts[-3:] == ("coming", "counters", "R1.jsonl")
    os.kill(command.process.pid, signal.SIGINT)
    status, _, errors = command.end()
    assert status == 130 and "interrupted: ending the simulations" in errors
    assert manifest(clean)["lab"] == SimulatedKind.name and list(clean.glob("tmp/*")) == []
    assert list(newest_run(clean).rglob("coming")) == [], "nothing is left of cells that were given up"

    command = Command(clean, "run", "--resume", "--repetitions", "1", "--scheduler", "local")
    killed = wait_for_simulator(command)
    os.kill(killed, signal.SIGKILL)
    status, output, errors = command.end()
    assert status == 0, errors + output
    assert "ended by SIGKILL" in errors
    cells = manifest(clean)["cells"]
    assert len(cells) == 4 and all(cell["valid"] for cell in cells)
    assert (
        output.startswith(SimulatedKind.remark)
        and SimulatedKind.remark in (newest_run(clean) / "report.html").read_text()
    )
    for name in clean.glob("tmp/*"):  # files that a killed process cannot remove
        subprocess.run(["rm", "-r", str(name)], check=True)

    flows = tables.read_table(RunFolder(newest_run(clean)), "flows")
    assert set(flows["tool"]) == {"qos-sim"} and len(flows) == 4


def test_cell_beyond_its_time_limit_is_ended_and_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (simulated.MIN_TIME_LIMIT_S, simulated.LIMIT_FACTOR) == (600.0, 60.0)
    endless = tmp_path / "endless"
    others = f'[ "$1" = serve ] || exec \'{find_own_program(SIMULATOR)}\' "$@"'
    endless.write_text(f"#!/bin/sh\n{others}\necho $$ >'{tmp_path}/number'\nexec sleep 60\n")
    endless.chmod(0o755)
    monkeypatch.setenv(program_variable(SIMULATOR), str(endless))
    monkeypatch.setattr(simulated, "MIN_TIME_LIMIT_S", 1.0)
    file = experiment_file(tmp_path, "grid.yml", GRID)
    kind = lab_kind(SimulatedKind.name)
    for factor, limit in ((0.5, 1), (1.5, 3)):  # of 2 s of traffic
        monkeypatch.setattr(simulated, "LIMIT_FACTOR", factor)
        cell = make_plan(load_sweep(file, {"duration": "2s"}, kind.check), Options(lab=SimulatedKind.name)).cells[0]
        task = make_task(cell, lab_machinery(kind).versions("", cell.experiment), 1)
        began = time.monotonic()
        record = CellRecord.model_validate_json(cluster_worker.run_cell(serialise_task(task))["record"])
        assert time.monotonic() - began >= limit
        reported = f"qos-sim did not finish within {limit} s (The scenario is in the cell's config/scenario.json.)"
        assert (record.valid, record.reasons) == (False, (reported,))
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "number").read_text()), 0)


def test_simulator_that_ends_costs_only_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next cell starts another process."""
    dying, real = tmp_path / "dying", find_own_program(SIMULATOR)
    once = f"[ \"$1\" = serve ] && mkdir '{tmp_path}/began' 2>/dev/null && echo no more memory >&2 && exit 7"
    dying.write_text(f"#!/bin/sh\n{once}\nexec '{real}' \"$@\"\n")
    dying.chmod(0o755)
    monkeypatch.setenv(program_variable(SIMULATOR), str(dying))
    kind = lab_kind(SimulatedKind.name)
    file = experiment_file(tmp_path, "grid.yml", GRID)
    cell = make_plan(load_sweep(file, {"duration": "1s"}, kind.check), Options(lab=SimulatedKind.name)).cells[0]
    task = make_task(cell, lab_machinery(kind).versions("", cell.experiment), 1)
    records = [
        CellRecord.model_validate_json(cluster_worker.run_cell(serialise_task(task))["record"]) for _ in range(2)
    ]
    assert [record.reasons for record in records] == [("qos-sim ended with status 7: no more memory",), ()]


@pytest.mark.long
def test_late_simulator_reads_its_complete_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the simulator late with a scenario longer than a pipe holds; the run checks for an interrupt before any of
    it is read.
    """
    late = tmp_path / "late"
    late.write_text(f'#!/bin/sh\nsleep 1\nexec "{find_own_program(SIMULATOR)}" "$@"\n')
    late.chmod(0o755)
    monkeypatch.setenv(program_variable(SIMULATOR), str(late))
    monkeypatch.setattr(simulated, "MIN_TIME_LIMIT_S", 20.0)
    monkeypatch.setattr(simulated, "LIMIT_FACTOR", 0.0)
    line = "  - {name: transfer, tool: iperf3, from: client, to: server}\n"
    flood = line.replace("from:", "protocol: udp, rate: 1 kb/s, from:")
    floods = "".join(flood.replace("transfer", f"flood-{number}") for number in range(200))
    file = experiment_file(tmp_path, "grid.yml", GRID.replace(line, floods))
    kind = lab_kind(SimulatedKind.name)
    cell = make_plan(load_sweep(file, {"duration": "1s"}, kind.check), Options(lab=SimulatedKind.name)).cells[0]
    task = make_task(cell, lab_machinery(kind).versions("", cell.experiment), 1)
    reply = cluster_worker.run_cell(serialise_task(task))
    record = CellRecord.model_validate_json(reply["record"])
    assert (record.valid, record.reasons) == (True, ())
    place = RunFolder.create(tmp_path / "runs", "grid").cell_folder(task.identity, 1)
    store(reply["files"], record, place)
    assert place.configuration("scenario.json").stat().st_size > 65_536
