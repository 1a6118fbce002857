"""Runs on hosts of a lab reached by SSH alone whose settings differ from those of the virtual lab."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from commands import run
from test_external import EXPERIMENT_OF_IT, agent, state, wait_until_clean
from test_iosd import session
from test_run import EXPERIMENT

from qoslab.cli import main
from qoslab.errors import MachineError
from qoslab.model.inventory import Isolation
from qoslab.plan import make_plan
from qoslab.platforms import tcp
from qoslab.run.devices.collector import CollectorProcess
from qoslab.run.workers.external.preflight_command import check_lab
from qoslab.schema import load_sweep
from qoslab.virtual_lab import Lab
from verdicts import newest_run, reasons_except_lateness, status_of
from waiting import wait_until

pytestmark = pytest.mark.lab

IPV6 = Path(__file__).parents[2] / "experiments/ipv6-policing.yml"


def settled_state(lab: Lab, host: str) -> str:
    """Return the state of a host whose kernel has given each NIC its link-local address, which takes a short time.

    The address itself is checked: its route may exist earlier.
    """

    def found() -> str:
        shown = state(lab, host)
        cards = re.findall(r"/ipv6/conf/(?!all|default|lo)\w+/disable_ipv6:0", shown)
        return shown if shown.count(" inet6 fe80:") == len(cards) > 0 else ""

    return wait_until(found, f"each card of {host} has its link-local address", report=lambda: state(lab, host))


@pytest.mark.long
@pytest.mark.parametrize("together", [False, True], ids=["in place", "namespace"])
def test_ipv6_runs_on_hosts_reached_by_ssh_only(
    clean: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "here.yml"
    way = ["--single-host"] if together else []
    assert main(["lab", "up", str(IPV6), "--name", name, "--expose", str(file), *way]) == 0
    lab = Lab.find(name)
    try:
        # All of them are one machine, with the name of the first.
        hosts = ["client"] if together else ["client", "server"]
        before = {host: settled_state(lab, host) for host in hosts}
        cell = ("--only", "family=6", "--only", "payload=1400 B", "--duration", "3s", "--attempts", "1")
        status, output, errors = run(clean, "run", str(IPV6), "--lab", str(file), *cell)
        assert status == status_of(newest_run(clean)), errors + output
        (kept,) = newest_run(clean).glob("cells/**/cell.json")
        # The lateness of this machine as a host is not checked here; traffic in bursts loses more packets in a policer.
        record = json.loads(kept.read_text())
        assert not reasons_except_lateness(record), errors
        values = json.loads((newest_run(clean) / "comparison.json").read_text())
        (goodput,) = (row["measured"] for row in values if row["metric"] == "goodput.steady")
        assert record["lateness"] or 900_000 < goodput < 1_000_000, goodput
        wait_until_clean(lab, before)
    finally:
        lab.down()


KEPT = """
ip addr flush dev eth0; ip link set eth0 down; ip link set eth0 up
sysctl -q net.ipv6.conf.eth0.disable_ipv6=0 net.ipv6.conf.eth0.accept_dad=1 net.ipv4.conf.eth0.rp_filter=2
sysctl -q net.ipv4.neigh.eth0.base_reachable_time_ms=40000
ip addr add 192.168.10.2/24 dev eth0 noprefixroute label eth0:x valid_lft 3000 preferred_lft 2000
ip addr add 192.168.10.77/24 dev eth0 noprefixroute
ip addr add 192.168.99.1 peer 192.168.99.2/32 dev eth0 noprefixroute
ip addr add 2001:db8:10::2/64 dev eth0 noprefixroute nodad
ip addr add 2001:db8:10::77/64 dev eth0 noprefixroute valid_lft 3000 preferred_lft 0 nodad
ip route add 192.168.10.0/24 dev eth0 proto kernel scope link src 192.168.10.2 metric 100
ip route add 192.168.20.0/24 via 192.168.10.1 proto dhcp src 192.168.10.2 metric 100
ip route add 192.168.20.0/24 via 192.168.10.1 metric 600
ip route add 192.168.30.0/24 via 192.168.10.1 table 77
ip -6 route add 2001:db8:10::/64 dev eth0 proto ra metric 100 expires 3000
ip -6 route add 2001:db8:20::/64 via 2001:db8:10::1 proto static metric 101
tc qdisc del dev eth0 root
"""
"""State of a NIC managed by NetworkManager: addresses with separate routes and a separate metric, some with a
lifetime.
"""


@pytest.mark.parametrize("way", ["in place", "namespace"])
def test_nic_with_metrics_flags_and_lifetimes_is_restored(exposed: tuple[Lab, Path], way: Isolation) -> None:
    lab, file = exposed
    lab.run("client", ["ip", "route", "del", "default"], check=True)
    lab.run("client", ["sh", "-e", "-c", KEPT], check=True)
    before = state(lab, "client")
    assert before.count("metric 100") == 3 and "eth0:x" in before and "peer 192.168.99.2/32" in before
    metrics = tcp.route_words(EXPERIMENT_OF_IT.arm_tcp_profile(EXPERIMENT_OF_IT.arms[0]))
    routes = [
        {"prefix": "192.168.10.0/24", "via": "", "source": "192.168.10.2"},
        {"prefix": "192.168.20.0/24", "via": "192.168.10.1", "source": ""},
        {"prefix": "192.168.40.0/24", "via": "192.168.10.1", "source": ""},
        {"prefix": "2001:db8:10::/64", "via": "", "source": "2001:db8:10::2"},
        {"prefix": "2001:db8:20::/64", "via": "2001:db8:10::1", "source": ""},
        {"prefix": "2001:db8:40::/64", "via": "2001:db8:10::1", "source": ""},
    ]
    wanted = [{**route, "device": "eth0", "metrics": metrics} for route in routes]
    addresses = ["192.168.10.2/24", "192.168.10.9/24", "2001:db8:10::2/64", "2001:db8:10::9/64"]
    host = agent(file, "client", way)
    host.ask("isolate", way=way, interfaces=[{"device": "eth0", "addresses": addresses}])
    for _ in range(2):
        reply = host.ask("apply", sysctls={"net.ipv4.tcp_sack": "0"}, routes=wanted, far={})["settings"]
        assert all("congctl reno" in reply[f"route {route['prefix']}"] for route in routes), reply
    if way == "in place":
        assert state(lab, "client").count("congctl reno") == len(routes)
    else:
        quiet = [f"/proc/sys/net/ipv6/conf/eth0/{name}" for name in ("accept_ra", "accept_dad", "autoconf")]
        assert host.read(*quiet).split() == ["0", "0", "0"], "as in the virtual lab"
    assert host.close() == []
    assert state(lab, "client") == before


def python_behind_sudo(folder: Path, connection: str = "") -> str:
    """Return a Python that is started like sudo would, by a login with the given SSH_CONNECTION or the current one."""
    login, sudo = folder / "login", folder / "sudo"
    given = f'SSH_CONNECTION="{connection}" ' if connection else ""
    login.write_text(f'#!/bin/sh\n{given}exec {shlex.quote(str(sudo))} "$@"\n')
    sudo.write_text(f'#!/bin/sh\nenv -i PATH="$PATH" {sys.executable} "$@"\nexit $?\n')
    for each in (login, sudo):
        each.chmod(0o755)
    return str(login)


def test_management_nic_is_not_moved_behind_sudo(exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    lab.run("client", ["ip", "route", "del", "default"], check=True)
    lab.run("client", ["tc", "qdisc", "del", "dev", "eth0", "root"], check=True)
    before = state(lab, "client")
    host = agent(file, "client", "namespace", python=python_behind_sudo(file.parent))
    reply = host.ask("facts", programs=[], far=[])["facts"]["management"]
    host.close()
    assert reply == {"address": "127.0.0.1", "device": "lo"}, "as reported by the lab's server"
    for connection in ("192.168.10.1 50000 192.168.10.2 22", "192.168.10.1 50000 192.0.2.7 22"):
        host = agent(file, "client", "namespace", python=python_behind_sudo(file.parent, connection))
        assert host.ask("facts", programs=[], far=[])["facts"]["management"]["device"] == "eth0"
        with pytest.raises(MachineError, match="this SSH connection uses eth0: the interface is not moved"):
            host.isolate()
        host.close()
        assert state(lab, "client") == before


@pytest.mark.long
def test_run_works_on_hosts_without_changes(clean: Path, exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    file.write_text(file.read_text().replace("qoslab_isolate: in place", "qoslab_isolate: as it is"))
    # As on a PC: the kernel's default values, and only a default route to the far network. The default congestion
    # control depends on this machine.
    for host, via in (("client", "192.168.10.1"), ("server", "192.168.20.1")):
        lab.run(host, ["ip", "route", "replace", "default", "via", via, "congctl", "cubic"], check=True)
    before = {host: state(lab, host) for host in ("client", "server")}
    assert "192.168.20.0/24" not in before["client"] and "initcwnd" not in before["client"].partition("192.168.10.0")[0]
    command = ("run", str(EXPERIMENT), "--lab", str(file), "--duration", "3s", "--arm")
    status, output, errors = run(clean, *command, "policed-cubic")
    assert status == status_of(newest_run(clean)), errors + output
    record = json.loads((newest_run(clean) / "cells/policed-cubic/1/cell.json").read_text())
    # The lateness of this machine as a host is not checked here.
    assert not reasons_except_lateness(record), errors
    assert record["captures"]["server"]["received"] > 50
    wait_until_clean(lab, before)
    status, output, errors = run(clean, *command, "policed")
    assert status == 2, errors + output
    for reported in (
        'client: found net.ipv4.tcp_timestamps 1, expected 0; sysctl -w net.ipv4.tcp_timestamps="0", or let ',
        "server: found congctl to 192.168.10.2 cubic, expected reno; give its route there `congctl reno` (ip route",
        "client: found rto_min to 192.168.20.2 200, expected 300; give its route there `rto_min 300ms`",
    ):
        assert reported in errors, errors
    (printed,) = (newest_run(clean) / "transcripts").rglob("*R1*")
    assert "show running-config" in printed.read_text() and "configure terminal" not in printed.read_text()
    # The targets of its routes count, under any name.
    for host, via in (("client", "192.168.10.1"), ("server", "192.168.20.1")):
        reported = "initcwnd 2 rto_min 300ms congctl reno"
        lab.run(host, ["ip", "route", "replace", "default", "via", via, *reported.split()], check=True)
        old = ("sack=1", "timestamps=0", "recovery=0", "early_retrans=0", "frto=0")
        lab.run(host, ["sysctl", "-q", *(f"net.ipv4.tcp_{each}" for each in old)], check=True)
    status, output, errors = run(clean, "lab", "check", str(file), str(EXPERIMENT))
    assert status == 2 and "client: found initcwnd to 192.168.20.2 2, expected 10; " in errors, errors
    assert "expected 300" not in errors and "expected reno" not in errors, errors


@pytest.mark.sample(2)
@pytest.mark.parametrize("who", ["host", "router"])
def test_check_sends_nothing_on_links_of_a_running_run(exposed: tuple[Lab, Path], who: str) -> None:
    lab, file = exposed

    def sent() -> list[str]:
        count = ["cat", "/proc/net/dev"]
        return [re.findall(r"eth0:.*", lab.run(host, count).stdout)[0] for host in ("client", "server")]

    plan = make_plan(load_sweep(EXPERIMENT, {}))
    run_of = f"the run of alice, with a {who}"
    agents = []
    if who == "host":
        agents = [agent(file, "client", "as it is", run_of)]
        agents[0].isolate()
        reported = f"client: found eth0 locked by {run_of}, expected no lock"
    else:
        session(lab, "configure terminal", f"alias exec qoslab {run_of}", "end")
        reported = f"R1: found the run lock of another run, {run_of}, expected none"
    with CollectorProcess() as collector:
        before = sent()
        checked = check_lab(file, plan, collector)
        assert sent() == before
        assert checked.description == [] and [str(each).partition(";")[0] for each in checked.found] == [reported]
        for each in agents:
            each.close()
        session(lab, "configure terminal", "no alias exec qoslab", "end")
        checked = check_lab(file, plan, collector)
        assert sent() != before and checked.description


@pytest.mark.long
def test_nic_that_is_down_is_up_during_the_run(clean: Path, exposed: tuple[Lab, Path]) -> None:
    lab, file = exposed
    lab.run("client", ["sh", "-e", "-c", "ip addr flush dev eth0; ip link set eth0 down"], check=True)
    before = {host: state(lab, host) for host in ("client", "server")}
    assert "192.168" not in before["client"]
    command = ("run", str(EXPERIMENT), "--lab", str(file), "--duration", "3s", "--arm", "policed")
    status, output, errors = run(clean, *command)
    assert status == status_of(newest_run(clean)), errors + output
    # The lateness of this machine as a host is not checked here.
    assert not reasons_except_lateness(json.loads((newest_run(clean) / "cells/policed/1/cell.json").read_text())), (
        errors
    )
    links = json.loads((newest_run(clean) / "manifest.json").read_text())["machine"]["lab"]["links"]
    assert links["lan"]["cabling"] == "proven", "it is looked at again once it is up"
    wait_until_clean(lab, before)
