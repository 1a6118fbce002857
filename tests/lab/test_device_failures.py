"""Mishaps of the routers and hosts of an inventory during a run: the run survives or names them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import RUN_S, Command, run
from kills import run_processes
from test_external import EXPERIMENT_OF_IT, hosts, iperf3_runs, programs, wait_until_clean
from test_iosd import Login, connection, session
from test_run import EXPERIMENT, latest

from misbehaving import MisbehavingRelay
from qoslab.results import RunFolder
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from verdicts import newest_run, reasons_except_lateness, status_of
from waiting import PATIENCE_S, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.slow]

LEAVES_S = 5.0
"""Time until a run ends that its user has interrupted twice."""
SILENT_S = 400.0
"""Time until a run ends after a router stops answering: a command, a login and the rollback each wait as long as a slow
router may take.
"""
AHEAD_NS = 250_000_000
CLOCK = """
import os, sys, time
wall = time.time_ns
time.time_ns = lambda: wall() + ({ahead} if os.path.exists("{mark}") else 0)
exec(sys.argv[-1])
"""
"""Python for agents that sets the host's clock while a file exists."""
BANNER = "banner motd ^Authorised>^"
"""Banner that looks like a prompt."""
PUSHED = "> policy-map Police\n", "> service-policy output Police\n"
"""First and last lines of a push in a transcript."""


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path]]:
    """Provide a lab and its inventory; each test leaves it unchanged."""
    file = tmp_path_factory.mktemp("rack") / "here.yml"
    with Lab.up(EXPERIMENT_OF_IT.topology, name=f"mishaps-{os.getpid()}") as lab:
        expose_lab(lab, file)
        yield lab, file


@pytest.fixture(autouse=True)
def use_empty_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def running_configuration(lab: Lab) -> list[str]:
    """Return the configuration of R1."""
    text = session(lab, "terminal length 0", "show running-config", "show startup-config")
    return [line for line in text.splitlines() if "show " not in line and "Current configuration" not in line]


@contextmanager
def inventory_behind_relay(lab: Lab, file: Path, folder: Path) -> Iterator[tuple[MisbehavingRelay, Path]]:
    """Return an inventory in which R1 is reached through a relay."""
    login = lab.ssh("R1")
    with MisbehavingRelay(login.port) as relay:
        known = folder / "known_hosts"
        known.write_text(file.with_suffix(".known_hosts").read_text() + f"[127.0.0.1]:{relay.port} {lab.host_key}\n")
        text, found = re.subn(rf"ansible_port: {login.port}\b", f"ansible_port: {relay.port}", file.read_text())
        assert found == 1
        mine = folder / "mine.yml"
        mine.write_text(text.replace(str(file.with_suffix(".known_hosts")), str(known)))
        yield relay, mine


async def end_renamed_router(lab: Lab, command: Command) -> tuple[int, str, str]:
    """Return the end of a run during which R1 has another hostname."""
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
    """Restart R1 without saving."""
    async with connection(lab) as client:
        login = await Login.enabled(lab, client)
        await login.send("reload", "[yes/no]: ")
        await login.send("no", "[confirm]")
        login._process.stdin.write("\r")
        async with asyncio.timeout(PATIENCE_S):
            await login._process.wait_closed()


def arguments(file: Path, *more: str) -> tuple[str, ...]:
    return ("run", str(EXPERIMENT), "--lab", str(file), "--attempts", "1", *more)


@contextmanager
def started_run(clean: Path, *words: str, started: bool = False) -> Iterator[Command]:
    """Yield a run, which ends with the block also if a test fails."""
    command = Command(clean, *words, started=started)
    try:
        yield command
    finally:
        command.process.kill()


def cell(clean: Path, arm: str, attempt: str = "1") -> dict[str, Any]:
    record: dict[str, Any] = json.loads((latest(clean) / f"cells/{arm}/{attempt}/cell.json").read_text())
    return record


def transcripts(clean: Path) -> list[str]:
    """Return the transcripts of all logins on R1 so far."""
    # `latest` points to the same folder.
    return [each.read_text() for each in {each.resolve() for each in clean.glob("runs/*/*/transcripts/*/R1.*.txt")}]


def wait_until_sent(clean: Path, words: str) -> None:
    """Wait until these words are sent to R1, or by it."""
    # A shorter wait than usual: a push takes only an instant.
    wait_until(
        lambda: any(words in each for each in transcripts(clean)),
        f"{words!r} is in a transcript of R1",
        RUN_S,
        lambda: str(transcripts(clean)),
        step_s=0.002,
    )


def assert_survived_fault(clean: Path, ended: tuple[int, str, str], attempt: str = "1") -> dict[str, Any]:
    """Return the record of a cell without faults."""
    status, output, errors = ended
    assert status == status_of(newest_run(clean)), errors + output
    record = cell(clean, "policed", attempt)
    # The lateness of this machine as a host is not checked here.
    assert not reasons_except_lateness(record), record["reasons"]
    return record


def test_cut_during_a_push_costs_one_attempt(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    before, kept = running_configuration(lab), hosts(lab)
    with (
        inventory_behind_relay(lab, file, clean) as (relay, mine),
        started_run(clean, *arguments(mine, "--duration", "3s", "--arm", "policed", "--attempts", "3")) as command,
    ):
        wait_until_sent(clean, PUSHED[0])
        relay.cut()
        ended = command.end()
    # The first push was interrupted; a second login sent everything again.
    output = transcripts(clean)
    (cut,) = (each for each in output if PUSHED[0] in each and PUSHED[1] not in each)
    assert "= the device hung up" in cut, cut
    assert any(PUSHED[0] in each and PUSHED[1] in each for each in output), output
    lost = "R1: hung up: the connection to R1 was lost; the last commands may not have been executed"
    assert cell(clean, "policed")["reasons"] == [f"{lost} (in the step: configure the routers)"]
    record = assert_survived_fault(clean, ended, attempt="1.2")
    assert not [each for each in record["warnings"] if "another user changed" in each]
    assert running_configuration(lab) == before
    wait_until_clean(lab, kept)


@pytest.mark.long
def test_logins_lost_during_a_push_delay_no_host(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    before, kept = running_configuration(lab), hosts(lab)
    with started_run(clean, *arguments(file, "--duration", "3s", "--arm", "policed"), started=True) as command:
        wait_until_sent(clean, PUSHED[0])
        (proxy_process,) = run_processes(command, ("qoslab.run.real.access.proxy_process",))
        os.kill(proxy_process, signal.SIGKILL)
        wait_until_clean(lab, kept)
        status, output, errors = command.end()
    assert status == 3 and "Traceback" not in errors, errors + output
    (reason,) = cell(clean, "policed")["reasons"]
    killed = "the access proxy of the routers was killed by SIGKILL"
    lost = f"the lab stopped:  no router can be reached any more: {killed}"
    assert reason == f"{lost} (in the step: configure the routers)"
    assert f"routers may not be restored; try again: qoslab lab rescue {file}" in errors
    status, output, errors = run(clean, "lab", "rescue", str(file))
    assert status == 0, errors + output
    assert running_configuration(lab) == before


@pytest.mark.long
def test_banner_that_looks_like_a_prompt_is_accepted(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    session(lab, "configure terminal", BANNER, "end")
    before, kept = running_configuration(lab), hosts(lab)
    try:
        assert_survived_fault(clean, run(clean, *arguments(file, "--duration", "3s", "--arm", "policed")))
        assert any("Authorised>" in each for each in transcripts(clean))
        assert running_configuration(lab) == before
    finally:
        session(lab, "configure terminal", "no banner motd", "end")
    wait_until_clean(lab, kept)


@pytest.mark.long
def test_router_renamed_during_the_run_is_reported(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    before, kept = running_configuration(lab), hosts(lab)
    with started_run(clean, *arguments(file, "--duration", "6s", "--arm", "policed")) as command:
        iperf3_runs(lab, command)
        ended = asyncio.run(end_renamed_router(lab, command))
    record = assert_survived_fault(clean, ended)
    (reported,) = (each for each in record["warnings"] if "another user changed the configuration of R1" in each)
    assert "hostname elsewhere" in reported
    assert running_configuration(lab) == before
    wait_until_clean(lab, kept)


def test_router_restart_invalidates_its_cell(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    session(lab, "write memory")
    before, kept = running_configuration(lab), hosts(lab)
    with started_run(clean, *arguments(file, "--duration", "6s", "--arm", "policed")) as command:
        iperf3_runs(lab, command)
        asyncio.run(restart(lab))
        status, output, errors = command.end()
    record = cell(clean, "policed")
    assert status == 3, errors + output
    lost = "R1 has lost its configuration during this cell: configured `policy-map Police`, but no such line is active"
    assert any(each.startswith(lost) for each in record["reasons"]), record["reasons"]
    assert running_configuration(lab) == before
    wait_until_clean(lab, kept)
    # In the meantime another router was connected there.
    folder = RunFolder(latest(clean))
    manifest = folder.manifest()
    manifest.machine["lab"]["devices"]["R1"]["serial number"] = "FTX0000A0AA"
    folder.write_manifest(manifest)
    status, output, errors = run(clean, *arguments(file, "--duration", "6s", "--arm", "policed", "--resume"))
    message = r"R1: found serial number \w+, expected the device at the start of the run, serial number FTX0000A0AA"
    assert status == 2 and re.search(message, errors), errors
    wait_until_clean(lab, kept)


def mounts(lab: Lab, *argv: str) -> None:
    """Run a command in the lab's mount namespace, with a capability that no program of a lab has."""
    own = Path(f"/proc/{lab.pid}/ns/user").samefile("/proc/self/ns/user")
    user = [] if own else ["--user", "--preserve-credentials"]
    subprocess.run(["nsenter", f"--target={lab.pid}", "--mount", "--pid", *user, "--", *argv], check=True)


@pytest.mark.long
def test_full_disk_invalidates_its_cell(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    before, kept = running_configuration(lab), hosts(lab)
    small, python = clean / "small", clean / "python"
    small.mkdir()
    mounts(lab, "mount", "-t", "tmpfs", "-o", "size=80m,huge=never", "tmpfs", str(small))
    python.write_text(f'#!/bin/sh\nTMPDIR={small} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    mine = clean / "mine.yml"
    text, found = re.subn(
        r"^( +)server:\n", rf"\g<0>\1  ansible_python_interpreter: {python}\n", file.read_text(), flags=re.M
    )
    assert found == 1
    mine.write_text(text)
    try:
        # Long enough for a machine that is short of memory, which may take seconds to fill this much.
        with started_run(clean, *arguments(mine, "--duration", "15s", "--arm", "shaped")) as command:
            iperf3_runs(lab, command)
            # iperf3 needs memory when it starts.
            time.sleep(1.0)
            filled = lab.run("server", ["dd", "if=/dev/zero", f"of={small}/full", "bs=1M"], check=False)
            left = os.statvfs(f"/proc/{lab.pid}/root{small}").f_bavail
            status, output, errors = command.end()
    finally:
        mounts(lab, "umount", "-l", str(small))
    # Otherwise the following checks would prove nothing.
    assert "No space left" in filled.stderr and left == 0, (filled.stderr, left)
    full = cell(clean, "shaped")
    assert status == 3, errors + output
    assert any("no space left" in each.lower() for each in full["reasons"]), full["reasons"]
    assert running_configuration(lab) == before
    wait_until_clean(lab, kept)


@pytest.mark.long
def test_clock_change_on_a_host_invalidates_its_cell(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    before, kept = running_configuration(lab), hosts(lab)
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
    with started_run(clean, *arguments(mine, "--duration", "4s", "--arm", "policed", "--arm", "shaped")) as command:
        command.wait_for("policed/1: traffic")
        iperf3_runs(lab, command)
        mark.touch()
        status, output, errors = command.end()
    assert status == 3, errors + output
    reported = {arm: [each for each in cell(clean, arm)["reasons"] if "clock" in each] for arm in ("policed", "shaped")}
    assert reported == {"policed": ["server's clock was stepped by +250 ms during the cell"], "shaped": []}
    assert "server's clock was stepped by +250 ms during the cell" in errors + output
    assert running_configuration(lab) == before
    wait_until_clean(lab, kept)


@pytest.mark.long
def test_second_ctrl_c_abandons_an_unresponsive_router(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    before, kept = running_configuration(lab), hosts(lab)
    with (
        inventory_behind_relay(lab, file, clean) as (relay, mine),
        started_run(clean, *arguments(mine, "--duration", "30s", "--arm", "policed"), started=True) as command,
    ):
        iperf3_runs(lab, command)
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
        wait_until_clean(lab, kept)
        assert any("service-policy output Police" in line for line in running_configuration(lab))
        relay.flow()
        status, output, errors = run(clean, "lab", "rescue", str(mine))
        assert status == 0, errors + output
    assert running_configuration(lab) == before


@pytest.mark.long
def test_silent_router_invalidates_its_cell(rack: tuple[Lab, Path], clean: Path) -> None:
    lab, file = rack
    before, kept = running_configuration(lab), hosts(lab)
    with (
        inventory_behind_relay(lab, file, clean) as (relay, mine),
        started_run(clean, *arguments(mine, "--duration", "6s", "--arm", "policed"), started=True) as command,
    ):
        iperf3_runs(lab, command)
        relay.stall()
        output, errors = command.process.communicate(timeout=SILENT_S)
        assert command.process.returncode == 3 and "Traceback" not in errors, errors + output
        assert not programs(lab) and hosts(lab) == kept
        record = cell(clean, "policed")
        (reason,) = record["reasons"]
        assert record["fault"] and not record["valid"]
        assert reason.startswith("R1 cannot be reached: ") and reason.endswith(" (in the step: traffic)"), reason
        assert f"routers may not be restored; try again: qoslab lab rescue {mine}" in errors
        assert any("service-policy output Police" in line for line in running_configuration(lab))
        relay.flow()
        status, output, errors = run(clean, "lab", "rescue", str(mine))
        assert status == 0, errors + output
    assert running_configuration(lab) == before
