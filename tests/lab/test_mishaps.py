"""What happens to the routers and hosts of an inventory while a run is under way: it is borne, or named."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import Command, run
from test_external import CLEAN_S, EXPERIMENT_OF_IT, hosts, iperf3_runs, programs, wait_until_clean
from test_iosd import Login, connection, session
from test_run import EXPERIMENT, latest

from misbehaving import Misbehaving
from qoslab.lab import Lab
from qoslab.lab.expose import expose
from qoslab.results import RunFolder
from verdicts import beside_lateness, newest_run, status_of

pytestmark = [pytest.mark.lab, pytest.mark.slow]

LEAVES_S = 5.0
"""Until a run is over whose user has interrupted it twice."""
AHEAD_NS = 250_000_000
CLOCK = """
import os, sys, time
wall = time.time_ns
time.time_ns = lambda: wall() + ({ahead} if os.path.exists("{mark}") else 0)
exec(sys.argv[-1])
"""
"""A Python for agents: the host's clock is set while a file is there."""
BANNER = "banner motd ^Authorised>^"
"""As a prompt, to whoever looks for one."""


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path]]:
    """A lab and its inventory; each test leaves it as it was."""
    file = tmp_path_factory.mktemp("rack") / "here.yml"
    with Lab.up(EXPERIMENT_OF_IT.topology, name=f"mishaps-{os.getpid()}") as lab:
        expose(lab, file)
        yield lab, file


@pytest.fixture(autouse=True)
def no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def running(lab: Lab) -> list[str]:
    """R1's configuration."""
    text = session(lab, "terminal length 0", "show running-config", "show startup-config")
    return [line for line in text.splitlines() if "show " not in line and "Current configuration" not in line]


@contextmanager
def behind(lab: Lab, file: Path, folder: Path) -> Iterator[tuple[Misbehaving, Path]]:
    """An inventory in which R1 is reached through a relay."""
    login = lab.ssh("R1")
    with Misbehaving(login.port) as relay:
        known = folder / "known_hosts"
        known.write_text(file.with_suffix(".known_hosts").read_text() + f"[127.0.0.1]:{relay.port} {lab.host_key}\n")
        text, found = re.subn(rf"ansible_port: {login.port}\b", f"ansible_port: {relay.port}", file.read_text())
        assert found == 1
        mine = folder / "mine.yml"
        mine.write_text(text.replace(str(file.with_suffix(".known_hosts")), str(known)))
        yield relay, mine


async def ended_under_another_name(lab: Lab, command: Command) -> tuple[int, str, str]:
    """The end of a run, until when R1 is called otherwise."""
    async with connection(lab) as client:
        login = await Login.enabled(lab, client)
        for line in ("configure terminal", "hostname elsewhere", "end"):
            await login.send(line)
        try:
            return await asyncio.to_thread(command.end)
        finally:
            for line in ("configure terminal", "hostname R1", "end"):
                await login.send(line)


async def restart(lab: Lab) -> None:
    """R1 restarts, and nothing is saved."""
    async with connection(lab) as client:
        login = await Login.enabled(lab, client)
        await login.send("reload", "[yes/no]: ")
        await login.send("no", "[confirm]")
        login._process.stdin.write("\r")
        async with asyncio.timeout(10):
            await login._process.wait_closed()


def arguments(file: Path, *more: str) -> tuple[str, ...]:
    return ("run", str(EXPERIMENT), "--lab", str(file), "--attempts", "1", *more)


@contextmanager
def begun(clean: Path, *words: str, started: bool = False) -> Iterator[Command]:
    """A run, which ends with the block also where a test fails."""
    command = Command(clean, *words, started=started)
    try:
        yield command
    finally:
        command.process.kill()


def cell(clean: Path, arm: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((latest(clean) / f"cells/{arm}/1/cell.json").read_text())
    return record


def test_a_cut_during_a_push_a_banner_and_another_name_are_borne(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    session(lab, "configure terminal", BANNER, "end")
    before, kept = running(lab), hosts(lab)
    with (
        behind(lab, file, clean) as (relay, mine),
        begun(clean, *arguments(mine, "--duration", "6s", "--arm", "policed")) as command,
    ):
        command.wait_for("configure the routers")
        time.sleep(0.5)
        relay.cut()
        iperf3_runs(lab)
        status, output, errors = asyncio.run(ended_under_another_name(lab, command))
    assert status == status_of(newest_run(clean)), errors + output
    record = cell(clean, "policed")
    # How punctual this machine was as a host is not asked here.
    assert not beside_lateness(record), record["reasons"]
    (told,) = (each for each in record["warnings"] if "somebody changed the configuration of R1" in each)
    assert "hostname elsewhere" in told
    assert running(lab) == before
    session(lab, "configure terminal", "no banner motd", "end")
    wait_until_clean(lab, kept)


def test_a_router_that_restarts_and_a_disk_that_is_full_cost_their_cells(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    session(lab, "write memory")
    before, kept = running(lab), hosts(lab)
    small, python = clean / "small", clean / "python"
    small.mkdir()
    lab.run("server", ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(small)], check=True)
    python.write_text(f'#!/bin/sh\nTMPDIR={small} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    mine = clean / "mine.yml"
    text, found = re.subn(
        r"^( +)server:\n", rf"\g<0>\1  ansible_python_interpreter: {python}\n", file.read_text(), flags=re.M
    )
    assert found == 1
    mine.write_text(text)
    words = arguments(mine, "--duration", "8s", "--arm", "policed", "--arm", "shaped")
    try:
        with begun(clean, *words) as command:
            iperf3_runs(lab)
            time.sleep(1.0)
            asyncio.run(restart(lab))
            command.wait_for("shaped/1: traffic")
            iperf3_runs(lab)
            # iperf3 itself wants room there when it begins.
            time.sleep(1.0)
            lab.run("server", ["dd", "if=/dev/zero", f"of={small}/full", "bs=1M"], check=False)
            status, output, errors = command.end()
    finally:
        lab.run("server", ["umount", "-l", str(small)], check=True)
    restarted, full = (cell(clean, arm) for arm in ("policed", "shaped"))
    assert status == 3, errors + output
    lost = "R1 has lost its configuration during this cell: asked for `policy-map Police`, nothing like it is in force"
    assert any(each.startswith(lost) for each in restarted["reasons"]), restarted["reasons"]
    assert any("no space left" in each.lower() for each in full["reasons"]), full["reasons"]
    assert running(lab) == before
    wait_until_clean(lab, kept)
    # Meanwhile somebody has put another router there.
    folder = RunFolder(latest(clean))
    manifest = folder.manifest()
    manifest.machine["lab"]["devices"]["R1"]["serial number"] = "FTX0000A0AA"
    folder.write_manifest(manifest)
    status, output, errors = run(clean, "run", "--resume")
    assert status == 2 and re.search(r"R1: found serial number \w+, expected serial number FTX0000A0AA, on", errors), (
        errors
    )
    wait_until_clean(lab, kept)


def test_a_host_whose_clock_is_set_while_traffic_runs_costs_its_cell(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    before, kept = running(lab), hosts(lab)
    mark, python = clean / "set", clean / "python"
    (clean / "agent.py").write_text(CLOCK.format(ahead=AHEAD_NS, mark=mark))
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {clean}/agent.py "$@"\n')
    python.chmod(0o755)
    mine = clean / "mine.yml"
    text, found = re.subn(
        r"^( +)server:\n", rf"\g<0>\1  ansible_python_interpreter: {python}\n", file.read_text(), flags=re.M
    )
    assert found == 1
    mine.write_text(text)
    with begun(clean, *arguments(mine, "--duration", "4s", "--arm", "policed", "--arm", "shaped")) as command:
        command.wait_for("policed/1: traffic")
        iperf3_runs(lab)
        mark.touch()
        status, output, errors = command.end()
    assert status == 3, errors + output
    told = {arm: [each for each in cell(clean, arm)["reasons"] if "clock" in each] for arm in ("policed", "shaped")}
    assert told == {"policed": ["server's clock was set by +250 ms within the cell"], "shaped": []}
    assert "server's clock was set by +250 ms within the cell" in errors + output
    assert running(lab) == before
    wait_until_clean(lab, kept)


def test_a_router_that_never_answers_is_left_at_the_second_ctrl_c(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    before, kept = running(lab), hosts(lab)
    with (
        behind(lab, file, clean) as (relay, mine),
        begun(clean, *arguments(mine, "--duration", "30s", "--arm", "policed"), started=True) as command,
    ):
        iperf3_runs(lab)
        relay.stall()
        os.kill(command.process.pid, signal.SIGINT)
        command.wait_for("interrupted: restoring the routers")
        time.sleep(0.5)
        os.kill(command.process.pid, signal.SIGINT)
        began = time.monotonic()
        status, output, errors = command.end()
        assert time.monotonic() < began + LEAVES_S, errors
        assert status == 130 and "Traceback" not in errors, errors + output
        assert f"restore them: qoslab lab rescue {mine}" in errors
        while programs(lab) or hosts(lab) != kept:
            assert time.monotonic() < began + LEAVES_S + CLEAN_S, programs(lab)
            time.sleep(0.05)
        assert any("service-policy output Police" in line for line in running(lab))
        relay.flow()
        status, output, errors = run(clean, "lab", "rescue", str(mine))
        assert status == 0, errors + output
    assert running(lab) == before
