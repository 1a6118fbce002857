"""Two routers in series: the second takes the event times of the first, however late their process is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from commands import Command
from labs import data_planes

from experiment_files import experiment_file
from qoslab.capture.packet_tables import read_packets
from rerun_budget import RepeatedRunWarning

pytestmark = pytest.mark.lab

SERIES = """\
name: series
title: Two routers in series
topology:
  nodes:
    client: {platform: host}
    R1: {platform: engine, model: "2811", routes: [{prefix: 10.0.20.0/24, via: 10.0.1.2}]}
    R2: {platform: engine, model: "2811", routes: [{prefix: 10.0.10.0/24, via: 10.0.1.1}]}
    server: {platform: host}
  links:
    - name: lan
      rate: 100 Mb/s
      ends:
        - {node: client, interface: eth0, address: 10.0.10.10/24}
        - {node: R1, interface: FastEthernet0/0, address: 10.0.10.1/24}
    - name: wan
      rate: 10 Mb/s
      ends:
        - {node: R1, interface: FastEthernet0/1, address: 10.0.1.1/30}
        - {node: R2, interface: FastEthernet0/1, address: 10.0.1.2/30}
    - name: far
      rate: 100 Mb/s
      ends:
        - {node: R2, interface: FastEthernet0/0, address: 10.0.20.1/24}
        - {node: server, interface: eth0, address: 10.0.20.10/24}
duration: 6 s
traffic:
  - {name: flood, tool: flood, from: client, to: server, protocol: udp, port: 5002, rate: 12 Mb/s, size: 1000 B}
captures:
  - {name: left, node: R1, interface: FastEthernet0/1, filter: udp port 5002, snaplen: 94 B}
  - {name: came, node: R2, interface: FastEthernet0/1}
arms:
  - name: policed
    configure:
      R2: {template: templates/police-in.ios.j2}
"""
FRAME_NS = (1000 + 38) * 8 * 100
"""Time of a frame of the flood on the line, with Ethernet's 38 bytes in addition to the packet."""
POLICE = """\
policy-map Police
 class class-default
  police cir 10000000 bc 4000 conform-action transmit exceed-action drop
interface FastEthernet0/1
 service-policy input Police
"""
"""Policer of the flood: the line brings 9.7 Mb/s in counted bytes, so an exceeding packet would be late."""
STOPS, STOP_S = 20, 0.0045
ATTEMPTS = 3


def pause_repeatedly(pid: int) -> None:
    """Pause the data plane for less than its budget, spread over the traffic."""
    for _ in range(STOPS):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STOP_S)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.2)


def measure(folder: Path, *, stops: bool) -> dict[str, Any]:
    """Return the record of a run's cell."""
    command = Command(folder, "run", "series.yml", "--attempts", "1")
    command.wait_for("traffic")
    if stops:
        (lab,) = command.labs()
        time.sleep(0.5)
        (pid,) = data_planes(lab)
        stopping = threading.Thread(target=pause_repeatedly, args=(pid,))
        stopping.start()
        stopping.join()
        lab.close()
    command.end()
    newest = max(path for path in (folder / "runs/series").iterdir() if not path.is_symlink())
    record: dict[str, Any] = json.loads((newest / "cells/policed/1/cell.json").read_text())
    last = json.loads((newest / "cells/policed/1/counters/R2.jsonl").read_text().splitlines()[-1])
    counted = last["interfaces"]["FastEthernet0/1"]["policy_input"]["classes"][0]
    captures = newest / "cells/policed/1/captures"
    return record | {
        "dropped": counted["drops"]["police"]["packets"],
        "offered": counted["packets"],
        "left": flood_times(captures / "left.pcapng"),
        "came": flood_times(captures / "came.pcapng"),
    }


def flood_times(file: Path) -> list[int]:
    """Return the times of the flood's packets, in ns."""
    packets = pa.Table.from_batches(read_packets(file)).to_pandas()
    return [int(time) for time in packets.time_ns[packets.destination_port == 5002]]


@pytest.fixture
def series(clean: Path) -> Path:
    file = experiment_file(clean, "series.yml", SERIES)
    (clean / "templates/police-in.ios.j2").write_text(POLICE)
    assert file.exists()
    return clean


@pytest.mark.slow
def test_stalled_process_changes_no_decision_between_its_routers(series: Path) -> None:
    found = measure(series, stops=True)
    print(found["offered"], found["dropped"], found["reasons"], found["health"])
    # A burst as long as the stall would exceed the policer's bucket.
    assert found["offered"] > 1000 and found["dropped"] == 0
    assert found["health"]["R2"]["lateness_ns"]["max"] > STOP_S / 2 * 1e9
    assert not any("took them" in reason for reason in found["reasons"])
    # Captures at routers show nothing of it: the line is full, and frames are back to back.
    left, came = found["left"], found["came"]
    assert left == came and len(came) == found["captures"]["left"]["received"] == found["offered"]
    gaps = Counter(after - before for before, after in pairwise(came))
    assert gaps[FRAME_NS] > 0.99 * len(came) and min(gaps) == FRAME_NS, gaps.most_common(5)


@pytest.mark.long
def test_crash_of_one_router_is_reported_and_invalidates_the_cell(series: Path) -> None:
    """Let a router panic: the process continues with the other router, which is unaffected."""
    command = Command(series, "run", "series.yml", "--duration", "3s", "--attempts", "1")
    command.wait_for(": traffic (")
    (lab,) = command.labs()

    async def end_one() -> str:
        async with lab.control("R2") as client:
            await client.request("shutdown")
        async with lab.control("R1") as client:
            return str((await client.request("hello"))["router"])

    assert len(data_planes(lab)) == 1
    assert asyncio.run(end_one()) == "R1"
    lab.close()
    status, output, errors = command.end()
    assert status == 3, errors + output
    assert "Traceback" not in errors
    newest = max(path for path in (series / "runs/series").iterdir() if not path.is_symlink())
    cell = json.loads((newest / "cells/policed/1/cell.json").read_text())
    assert cell["fault"] and not cell["valid"]
    (reason,) = cell["reasons"]
    assert reason.startswith("the lab stopped:  R2: it was asked to stop") and reason in output


@pytest.mark.long
@pytest.mark.quiet
def test_punctual_routers_in_series_are_trusted(series: Path) -> None:
    for _ in range(ATTEMPTS):
        found = measure(series, stops=False)
        print(found["offered"], found["dropped"], found["reasons"], found["health"])
        assert found["dropped"] == 0
        if found["valid"]:
            break
        assert found["late"], found["reasons"]
        warnings.warn(RepeatedRunWarning(f"the cell says that the machine was busy: {found['reasons']}"), stacklevel=1)
    assert found["valid"]
