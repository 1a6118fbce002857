"""Runs in a lab that is reached by SSH alone, and the remains on its hosts, for every end of a run."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import getpass
import json
import os
import platform
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from commands import RUN_S, Command, run
from labs import agents_folder, run_inside
from test_run import EXPERIMENT, latest

from older_python import OLDEST_VERSION, oldest_python
from process_alive import is_alive
from qoslab.cli import main
from qoslab.errors import MachineError
from qoslab.model.experiment import TCP_PROFILES
from qoslab.model.inventory import ISOLATIONS, HostSettings, Isolation
from qoslab.run.devices.ansible_inventory import read_lab
from qoslab.run.devices.old_ssh import OLD_CIPHERS, OLD_KEY_EXCHANGES, OLD_MACS, OLD_SIGNATURES
from qoslab.run.real.channel import AgentChannel
from qoslab.run.real.nodes import ExternalHost, HostPlace
from qoslab.schema import load_sweep
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from qoslab.virtual_lab.ios_routers import RouterLogins
from verdicts import reasons_except_lateness, status_of
from waiting import wait_until

pytestmark = pytest.mark.lab

UNSEEN = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Command prefix that hides the processes of the lab."""
CLEAN_S = 60.0
"""Time until a host is restored after its connection is lost: seconds, and far more on a busy machine."""
EXPERIMENT_OF_IT = load_sweep(EXPERIMENT, {}).experiment
LOOK = {"others": ["192.168.20.1"], "count": 2, "burst": 0, "within_s": 1.0}
"""Arguments of a cable check."""


@pytest.fixture
def exposed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lab, Path]]:
    """Provide the lab of an experiment, and its inventory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "here.yml"
    # A server whose SSH version Ansible does not support.
    with Lab.up(EXPERIMENT_OF_IT.topology, name=name, ways=RouterLogins(old_ssh=True)) as lab:
        expose_lab(lab, file)
        yield lab, file


def state(lab: Lab, host: str) -> str:
    """Return the settings that a run may change on a host, and its files, including those of the lab's other hosts."""
    return "\n".join([settings(lab, host), *agents_folders(lab)])


def agents_folders(lab: Lab) -> list[str]:
    """Return the folders of agents on all hosts, which share one place for them."""
    return sorted(map(str, agents_folder(lab).glob("qoslab-agent-*")))


def settings(lab: Lab, host: str) -> str:
    """Return the settings that a run may change on a host."""
    kernel = "cat /proc/sys/net/ipv4/tcp_{sack,timestamps,recovery,rmem}"
    # The state of duplicate address detection depends on the age of the lab, and, for a second, on whether the kernel
    # has noticed that the other end is up; lifetimes decrease by themselves.
    momentary = "s/ tentative//; s/NO-CARRIER,//; s/ state (UP|DOWN|UNKNOWN) / /; s/[0-9]+sec/LEFT/g"
    look = f"{{ ip addr; ip route; ip -6 route; }} | sed -E '{momentary}'; ip neigh show nud permanent; tc qdisc | sort"
    look += f"; grep -rs . /proc/sys/net/ipv[46]/conf /proc/sys/net/ipv[46]/neigh | sort; {kernel}"
    shown = lab.run(host, ["bash", "-c", look])
    assert "lo:" in shown.stdout and "/conf/lo/forwarding" in shown.stdout
    return shown.stdout


def programs(lab: Lab) -> dict[int, str]:
    """Return the processes in the lab except its daemons, by number."""
    found = {}
    for pid in run_inside(lab):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if (
            words
            and is_alive(pid)
            and not any(each in words for each in ("supervisor", "qos-router", "qoslab.virtual_lab."))
        ):
            found[pid] = words[:200]
    return found


def wait_until_clean(lab: Lab, before: dict[str, str]) -> None:
    """Wait until a host is restored; fail if it takes too long."""

    def clean() -> bool:
        return not programs(lab) and all(state(lab, host) == shown for host, shown in before.items())

    def left() -> str:
        return "\n".join([*programs(lab).values(), *_changes(lab, before)])

    wait_until(clean, "hosts are as they were", CLEAN_S, left)


def _changes(lab: Lab, before: dict[str, str]) -> Iterator[str]:
    for host, shown in before.items():
        yield from difflib.unified_diff(shown.splitlines(), state(lab, host).splitlines(), host, n=0, lineterm="")


def hosts(lab: Lab) -> dict[str, str]:
    return {host: state(lab, host) for host in ("client", "server")}


def is_client_sending(lab: Lab) -> bool:
    """Return whether the client's iperf3 runs."""
    return any("iperf3" in each and "192.168.20.2" in each for each in programs(lab).values())


def iperf3_runs(lab: Lab, command: Command) -> None:
    """Wait until the client of a run sends."""

    def sends() -> bool:
        if command.process.poll() is not None:
            raise AssertionError(f"the run ended before its traffic: {command.end()}")
        return is_client_sending(lab)

    wait_until(sends, "the client's iperf3 runs", RUN_S, lambda: str(programs(lab)))


def test_experiment_runs_on_hosts_reached_by_ssh_only(clean: Path, exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    before = hosts(lab)
    if os.geteuid() != 0:
        # In the test's namespace root's files seem to belong to nobody, and ssh refuses them as system settings.
        text, count = re.subn(
            r"^( +)(?=ansible_ssh_private_key_file:)",
            r"\1ansible_ssh_common_args: -F none\n\1",
            file.read_text(),
            flags=re.M,
        )
        assert count == 1
        file.write_text(text)
    arguments = ("run", str(EXPERIMENT), "--lab", str(file), "--duration", "3s", "--arm", "policed")
    status, output, errors = Command(clean, *arguments, prefix=UNSEEN).end()
    cell = latest(clean) / "cells/policed/1"
    assert (cell / "cell.json").exists(), errors + output
    record = json.loads((cell / "cell.json").read_text())
    # The lateness of this machine as a host is not checked here.
    assert not reasons_except_lateness(record)
    assert status == status_of(latest(clean)), errors + output
    assert record["lab"] == "external" and record["health"] == {}
    assert latest(clean).stat().st_mode & 0o777 == 0o700, "its routers' configurations are somebody's"
    assert record["captures"]["server"]["received"] > 50 and (cell / "captures/server.pcapng").stat().st_size > 5000
    assert record["cpu_s"] > 0
    assert not [each for each in record["warnings"] if "another user changed" in each]
    # Values that a router with only a command line does not report are missing.
    assert not (cell / "counters").exists() and not (cell / "config/R1.engine.json").exists()
    values = {row["metric"]: row["measured"] for row in json.loads((latest(clean) / "comparison.json").read_text())}
    assert values["police.bc"] == 31250 and 400_000 < values["goodput.sum"] < 1_300_000
    described = json.loads((latest(clean) / "manifest.json").read_text())
    assert set(described["machine"]["lab"]["hosts"]) == {"client", "server"}
    assert abs(described["machine"]["lab"]["hosts"]["client"]["clock_ahead_ms"]) < 50
    wait_until_clean(lab, before)
    assert not list((file.parent / "state").rglob("*.ios"))
    # No secret is saved or printed; the commands sent to the router are saved.
    kept = {path: path.read_bytes() for path in latest(clean).rglob("*") if path.is_file()}
    kept[Path("terminal")] = (output + errors).encode()
    login = lab.ssh("R1")
    secrets = [each.encode() for each in (login.password, login.enable, "$1$")]
    assert not [path for path, content in kept.items() for secret in secrets if secret in content]
    transcripts = b"".join(content for path, content in kept.items() if path.parent.parent.name == "transcripts")
    assert b"> <enable secret>" in transcripts and b"service-policy output" in transcripts
    # The report lists the changes to the router, and their restoration.
    (file,) = latest(clean).glob("restore/*/changes.json")
    changes = json.loads(file.read_text())["R1"]
    assert "+policy-map Police" in changes["arms"]["policed"] and changes["left"] == [], changes
    assert "It is in the state before the run." in (latest(clean) / "report.html").read_text()
    shown = lab.run("client", ["true"])
    assert shown.returncode == 0 and lab.is_alive()


@pytest.mark.long
def test_two_hosts_can_share_a_machine_with_one_nic_each(
    clean: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "here.yml"
    assert main(["lab", "up", str(EXPERIMENT), "--name", name, "--single-host"]) == 2
    assert "found --single-host without --expose" in capsys.readouterr().err
    assert main(["lab", "up", str(EXPERIMENT), "--name", name, "--expose", str(file), "--single-host"]) == 0
    lab = Lab.find(name)
    try:
        before = state(lab, "client")
        assert "card0" in before and "card1" in before and "192.168" not in before
        status, output, errors = run(
            clean, "run", str(EXPERIMENT), "--lab", str(file), "--duration", "3s", "--arm", "policed"
        )
        assert (latest(clean) / "cells/policed/1/cell.json").exists(), errors + output
        record = json.loads((latest(clean) / "cells/policed/1/cell.json").read_text())
        # The lateness of this machine as a host is not checked here.
        assert not reasons_except_lateness(record), errors
        assert status == status_of(latest(clean)), errors + output
        assert record["captures"]["server"]["received"] > 50
        links = json.loads((latest(clean) / "manifest.json").read_text())["machine"]["lab"]["links"]
        assert {name: link["cabling"] for name, link in links.items()} == {"lan": "proven", "wan": "proven"}
        wait_until_clean(lab, {"client": before})
    finally:
        lab.down()


def test_host_with_a_cut_connection_is_cleaned_and_named(clean: Path, exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    before = hosts(lab)
    command = Command(
        clean, "run", str(EXPERIMENT), "--lab", str(file), "--duration", "30s", "--arm", "policed", "--attempts", "1"
    )
    iperf3_runs(lab, command)
    assert hosts(lab) != before
    # The port distinguishes the ssh processes of the client.
    port = str(read_lab(file).hosts["client"].port)
    (ssh,) = (
        int(process.name)
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and _words(process)[:2] == ["ssh", "-T"] and port in _words(process)
    )
    os.kill(ssh, signal.SIGKILL)
    wait_until(
        lambda: not is_client_sending(lab) and state(lab, "client") == before["client"],
        "the client is as it was",
        CLEAN_S,
        lambda: "\n".join([*programs(lab).values(), *_changes(lab, {"client": before["client"]})]),
    )
    status, output, errors = command.end()
    assert status == 3, errors + output
    record = json.loads((latest(clean) / "cells/policed/1/cell.json").read_text())
    assert record["fault"] and not record["valid"]
    assert record["reasons"][0].startswith("the lab stopped:  the host client is out of reach: "), record["reasons"]
    assert record["reasons"][0].endswith("(in the step: traffic)")
    wait_until_clean(lab, before)
    assert "Police" not in _running_configuration(lab, file), "the router is restored although a host is gone"


def _words(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _running_configuration(lab: Lab, file: Path) -> str:
    """Return the configuration of R1."""

    async def ask() -> str:
        login = lab.ssh("R1")
        known = str(file.with_suffix(".known_hosts"))
        old: Any = {"kex_algs": OLD_KEY_EXCHANGES, "encryption_algs": OLD_CIPHERS, "mac_algs": OLD_MACS}
        way = old | {
            "server_host_key_algs": OLD_SIGNATURES,
            "port": login.port,
            "username": login.user,
            "password": login.password,
            "known_hosts": known,
        }
        async with (
            asyncssh.connect(login.host, **way) as connection,
            connection.create_process(term_type="vt100") as process,
        ):
            process.stdin.write(f"enable\n{login.enable}\nterminal length 0\nshow running-config\nexit\n")
            return str(await process.stdout.read())

    return asyncio.run(ask())


@pytest.mark.long
def test_hosts_are_clean_after_sigkill_of_the_run(
    clean: Path, exposed: tuple[Lab, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, file = exposed
    whose = f"the run of policing-vs-shaping by {getpass.getuser()} on {platform.node()}, since "
    before = hosts(lab)
    command = Command(clean, "run", str(EXPERIMENT), "--lab", str(file), "--duration", "30s", "--arm", "policed")
    iperf3_runs(lab, command)
    # A second user has a separate inventory and home folder.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "bob"))
    others = shutil.copy(file, file.with_name("bob.yml"))
    status, _, errors = run(clean, "run", str(EXPERIMENT), "--lab", str(others), "--duration", "1s", "--arm", "policed")
    assert status == 2, errors
    assert f"eth0 is locked by {whose}" in errors
    assert f"alias exec qoslab {whose}" in _running_configuration(lab, file)
    status, _, errors = run(clean, "lab", "check", str(others), str(EXPERIMENT))
    assert status == 2 and f"R1: found the run lock of another run, {whose}" in errors, errors
    command.process.kill()
    wait_until_clean(lab, before)
    command.end()
    # The hosts are free, and the router has its earlier configuration.
    status, _, errors = run(clean, "run", str(EXPERIMENT), "--lab", str(others), "--duration", "1s", "--arm", "policed")
    assert status == 2 and f"R1 is locked by another run: {whose}" in errors, errors
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # The router could not be restored; the next run reports it, and a later rescue works.
    status, _, errors = run(clean, "run", str(EXPERIMENT), "--lab", str(file), "--duration", "1s", "--arm", "policed")
    assert status == 2 and f"Restore them: qoslab lab rescue {file}" in errors, errors
    assert "Police" in _running_configuration(lab, file)
    status, _, errors = run(clean, "lab", "rescue", str(file))
    assert status == 0, errors
    assert "Police" not in _running_configuration(lab, file) and "alias exec" not in _running_configuration(lab, file)


def test_missing_program_of_a_host_is_reported(clean: Path, exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    before = hosts(lab)
    python = _python_without_iperf3(clean)
    file.write_text(
        file.read_text().replace("      hosts:\n", f"        ansible_python_interpreter: {python}\n      hosts:\n", 1)
    )
    status, output, errors = run(
        clean, "run", str(EXPERIMENT), "--lab", str(file), "--duration", "2s", "--arm", "policed"
    )
    assert status == 2, errors + output
    assert "server: found no program iperf3 in " in errors
    wait_until_clean(lab, before)
    assert "Police" not in _running_configuration(lab, file)


def _python_without_iperf3(folder: Path) -> Path:
    """Return a Python whose path has the programs of a host, except iperf3."""
    there = folder / "bin"
    there.mkdir()
    for name in ("ip", "tc", "nsenter", "dumpcap"):
        found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
        assert found is not None
        (there / name).symlink_to(found)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec /usr/bin/env -i PATH={there} {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


def agent(file: Path, host: str, isolate: Isolation, who: str = "a test", python: str = "") -> ExternalHost:
    """Return a host of the experiment with an agent, which runs in this Python, or in the inventory's."""
    access = read_lab(file).hosts[host]
    place = HostPlace(EXPERIMENT_OF_IT.topology, host, HostSettings(isolate=isolate))
    return ExternalHost(AgentChannel(host, replace(access, python=python or access.python), who), place)


def test_oldest_python_of_a_host_sets_and_restores(exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    lab.run("client", ["ip", "route", "del", "default"], check=True)
    lab.run("client", ["tc", "qdisc", "del", "dev", "eth0", "root"], check=True)
    before = state(lab, "client")
    for way in ISOLATIONS:
        host = agent(file, "client", way, python=oldest_python())
        assert host.reply["python"].startswith(OLDEST_VERSION)
        assert host.isolate() == []
        if way != "as it is":
            host.apply_tcp(EXPERIMENT_OF_IT.arm_tcp_profile(EXPERIMENT_OF_IT.arms[0]))
            assert state(lab, "client") != before
        reply = host.ask("cable", device="eth0", sender="192.168.10.2", far="192.168.10.1", **LOOK)["cable"]
        assert len(reply["macs"]["192.168.10.1"]) == 1 and len(reply["took_ms"]) == 2, reply
        assert host.close() == []
        assert state(lab, "client") == before


def test_nic_in_a_namespace_is_restored(exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    with pytest.raises(MachineError, match="eth0 has this machine's default route"):
        _is_isolated(agent(file, "client", "namespace"))
    lab.run("client", ["ip", "route", "del", "default"], check=True)
    # It belongs to the lab and not to a NIC, so a namespace would lose it.
    with pytest.raises(MachineError, match="eth0 has the queueing discipline tbf"):
        _is_isolated(agent(file, "client", "namespace"))
    lab.run("client", ["tc", "qdisc", "del", "dev", "eth0", "root"], check=True)
    lab.run("client", ["ip", "route", "add", "192.168.20.0/24", "via", "192.168.10.1", "rto_min", "250ms"], check=True)
    before = state(lab, "client")
    assert "192.168" in before
    for way in ("goodbye", "agent killed"):
        host = agent(file, "client", "namespace")
        host.isolate()
        host.apply_tcp(EXPERIMENT_OF_IT.arm_tcp_profile(EXPERIMENT_OF_IT.arms[0]))
        assert "eth0" not in lab.run("client", ["ip", "-o", "link"]).stdout
        assert "eth0" in host.read("/proc/net/dev") and "congctl" not in lab.run("client", ["ip", "route"]).stdout
        if way == "goodbye":
            assert host.close() == []
        else:
            _kill(lab, "qoslab-agent", keepers=False)
        wait_until(
            lambda: state(lab, "client") == before,
            "the client is as it was",
            CLEAN_S,
            lambda: "\n".join(_changes(lab, {"client": before})),
        )
        host.close()


def _is_isolated(host: ExternalHost) -> None:
    try:
        host.isolate()
    finally:
        host.close()


def _kill(lab: Lab, word: str, *, keepers: bool) -> None:
    """Kill agents; with `keepers` also the processes that would restore the host after them."""
    found = [pid for pid in run_inside(lab) if word in " ".join(_words(Path(f"/proc/{pid}")))]
    # A watchdog leads its own session.
    chosen = [pid for pid in found if keepers or os.getsid(pid) != pid or _parent(pid) not in found]
    assert len(chosen) >= 1
    # None of them does anything else while the others are killed.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_next_agent_restores_settings_that_the_watchdog_left(exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    before = state(lab, "client")
    first = agent(file, "client", "in place")
    first.isolate()
    first.apply_tcp(EXPERIMENT_OF_IT.arm_tcp_profile(EXPERIMENT_OF_IT.arms[0]))
    assert state(lab, "client") != before
    _kill(lab, "qoslab-agent", keepers=True)
    first.close()
    assert "congctl reno" in state(lab, "client"), "nobody can have put it back"
    second = agent(file, "client", "in place")
    assert second.isolate() == []
    assert "congctl reno" not in lab.run("client", ["ip", "route"]).stdout
    assert second.close() == []
    (left,) = agents_folder(lab).glob("qoslab-agent-*")
    shutil.rmtree(left)
    assert state(lab, "client") == before


def test_interface_is_locked_by_one_run_until_its_end(exposed: tuple[Lab, Path]) -> None:
    _, file = exposed
    first = agent(file, "client", "in place", "the run of alice")
    first.isolate()
    with pytest.raises(MachineError, match="client: eth0 is locked by the run of alice"):
        _is_isolated(agent(file, "client", "in place"))
    first.close()
    _is_isolated(agent(file, "client", "in place"))


@pytest.mark.long
def test_host_without_changes_is_also_locked(clean: Path, exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    first = agent(file, "client", "as it is", "the run of alice, since 10:20")
    first.isolate()
    for way in ISOLATIONS:
        with pytest.raises(MachineError, match="client: eth0 is locked by the run of alice, since 10:20"):
            _is_isolated(agent(file, "client", way))
    status, _, errors = run(clean, "run", str(EXPERIMENT), "--lab", str(file), "--duration", "1s", "--arm", "policed")
    assert status == 2 and "eth0 is locked by the run of alice, since 10:20" in errors, errors
    _kill(lab, "qoslab-agent", keepers=False)
    second = agent(file, "client", "as it is")
    second.isolate()
    assert second.close() == []
    first.close()


def test_host_without_changes_is_only_compared(exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    before = state(lab, "client")
    host = agent(file, "client", "as it is")
    host.isolate()
    with pytest.raises(MachineError, match=r"client: net\.ipv4\.tcp_sack is 1, not 0"):
        host.apply_tcp(TCP_PROFILES["modern"].model_copy(update={"sack": False}))
    host.close()
    assert state(lab, "client") == before
