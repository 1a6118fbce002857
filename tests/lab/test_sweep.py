"""Sweeps as a user runs them: a small grid, interrupted, resumed, with a full disk, with a late router."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from commands import Command, run

from experiment_files import experiment_file, two_links
from qoslab.results import RunFolder, tables
from qoslab.results.records import FORMAT
from qoslab.run.cell.sampling import read_health
from qoslab.run.workers.virtual.nodes import VirtualLab
from verdicts import newest_run, status_of
from waiting import wait_until

pytestmark = pytest.mark.lab

GRID = (
    """\
name: grid
title: A small grid
"""
    + two_links('engine, model: "3725"', delay="$(rtt / 2)")
    + """\
duration: 1 s
matrix:
  rtt: [10 ms, 50 ms]
  pir: [1 Mb/s, 2 Mb/s]
traffic:
  - {name: transfer, tool: iperf3, from: client, to: server}
arms:
  - name: policed
    configure:
      R1: {template: templates/police.ios.j2, variables: {interface: FastEthernet0/1, cir: $(pir in b/s)}}
"""
)
UNDER_WAY = 100
"""Number of packets that a router has sent if the traffic runs; setup traffic is less."""
JOBS = ("--jobs", "2", "--attempts", "1")


@pytest.fixture
def grid(clean: Path) -> Path:
    return experiment_file(clean, "grid.yml", GRID)


def manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the newest run."""
    content: dict[str, Any] = json.loads((newest_run(folder) / "manifest.json").read_text())
    return content


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """Return every record by its path."""
    cells = newest_run(folder) / "cells"
    return {str(file.parent.relative_to(cells)): json.loads(file.read_text()) for file in cells.rglob("cell.json")}


@pytest.mark.long
@pytest.mark.slow
def test_interrupted_grid_is_resumed(grid: Path, clean: Path) -> None:
    command = Command(clean, "run", str(grid), *JOBS)
    command.wait_for("1 of 4 cells")
    os.kill(command.process.pid, signal.SIGINT)
    status, output, errors = command.end()
    assert status == 130, errors + output
    before = records(clean)
    kept = {name for name, record in before.items() if record["valid"]}
    assert len(manifest(clean)["cells"]) == 4

    status, output, errors = run(clean, "run", "--resume", *JOBS)
    assert status == status_of(newest_run(clean)) in (0, 3), errors + output
    after = records(clean)
    assert {name: after[name] for name in before} == before, "results of before are as they were"
    reported = manifest(clean)
    assert len(reported["sessions"]) == 2 and len(reported["cells"]) == 4
    assert {name for name in kept if "." not in name.rpartition("/")[2]} <= {
        cell["folder"].removeprefix("cells/") for cell in reported["cells"]
    }, "what was valid was not run again"
    if kept:
        assert "cells are already complete" in errors
    assert all(cell["folder"] for cell in reported["cells"])

    folder = RunFolder(newest_run(clean))
    flows = tables.read_table(folder, "flows")
    assert set(tables.read_table(folder, "hosts")["host"]) == {"client", "server"}
    assert sorted(set(flows["matrix.rtt"])) == [10, 50] and sorted(set(flows["matrix.pir"])) == [1e6, 2e6]
    # Each cell had its own link and policer.
    for cell in folder.open().cells:
        engine = json.loads(cell.text("config/R1.engine.json"))
        (police,) = [each["police"] for each in engine["policy_maps"]["Police"]["classes"]]
        assert police["cir"]["bps"] == int(cell.parameters["pir"])
        assert int(cell.experiment().topology.links[1].delay) * 2 == int(cell.parameters["rtt"])


@pytest.mark.slow
def test_late_cell_is_retried_and_recorded(grid: Path, clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the processes of a data plane for a short time in the first attempt."""
    one = ("--only", "rtt=10 ms", "--only", "pir=1 Mb/s", "--duration", "2s")
    command = Command(clean, "run", str(grid), "--jobs", "1", "--attempts", "2", *one)
    command.wait_for("traffic")
    (lab,) = command.labs()
    wait_until(
        lambda: read_health(VirtualLab(lab), ["R1"])["R1"].transmitted >= UNDER_WAY, "R1 forwards traffic", step_s=0.01
    )
    with lab.run(None, ["pkill", "-STOP", "-x", "qos-router"]) and lab.popen(None, ["sleep", "0.3"]) as pause:
        pause.wait()
    lab.run(None, ["pkill", "-CONT", "-x", "qos-router"])
    lab.close()
    status, output, errors = command.end()
    assert status == status_of(newest_run(clean)) in (0, 3), errors + output
    found = records(clean)
    assert "re-running it" in errors
    assert set(found) == {"policed/rtt=10ms,pir=1Mbps/1", "policed/rtt=10ms,pir=1Mbps/1.2"}
    (cell,) = manifest(clean)["cells"]
    assert cell["folder"].endswith("1.2") and cell["earlier"][0]["folder"].endswith("/1")
    assert "got no CPU time" in cell["earlier"][0]["reasons"][0]


@pytest.mark.long
@pytest.mark.slow
def test_sweep_resumes_after_a_full_disk(grid: Path, clean: Path) -> None:
    """Put the run folder on a disk with space for one or two cells, then enlarge it."""
    small = (
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        "mkdir -p runs && mount -t tmpfs -o size=120k tmpfs runs && "
        # As root, Ansible would write to root's home instead of this user's.
        f'unshare --user --map-user={os.getuid()} --map-group={os.getgid()} "$@"; first=$?; '
        "mount --options-mode=ignore -o remount,size=64m tmpfs $PWD/runs && cp -a runs full && exit $first",
        "sh",
    )
    command = Command(clean, "run", str(grid), "--jobs", "1", "--attempts", "1", "--only", "rtt=10 ms", prefix=small)
    status, output, errors = command.end()
    assert "Traceback" not in errors
    assert "the disk is full" in errors + output, (status, errors + output)
    assert "--resume" in errors
    (clean / "runs").rmdir()
    (clean / "full").rename(clean / "runs")
    kept = records(clean)
    status, output, errors = run(clean, "run", "--resume", "--jobs", "1", "--only", "rtt=10 ms")
    assert status == status_of(newest_run(clean)) in (0, 3), errors + output
    assert {name: record for name, record in records(clean).items() if name in kept} == kept
    assert len(manifest(clean)["cells"]) == 2 and all(cell["folder"] for cell in manifest(clean)["cells"])


def test_run_of_an_older_format_is_refused(grid: Path, clean: Path) -> None:
    old = clean / "runs/grid/20260101T000000Z"
    old.mkdir(parents=True)
    (old / "manifest.json").write_text(json.dumps({"format": 1, "experiment": {}}))
    status, _, errors = run(clean, "run", "--resume")
    assert status == 2
    assert f"found format 1, expected {FORMAT}" in errors and "an older qoslab wrote it" in errors
