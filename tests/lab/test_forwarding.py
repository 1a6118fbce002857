"""Forwarding by `qos-router` with the routes of the router's kernel, or by that kernel if necessary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from dataplane import (
    SERVER,
    DataPlaneLab,
    configuration,
    ping,
    send_udp,
    spawn_sink,
    spawn_udp,
    with_sink,
)

from waiting import wait_until

pytestmark = pytest.mark.lab

OUT = "FastEthernet0/1"


@pytest.fixture(scope="module")
def shared_lab() -> Iterator[DataPlaneLab]:
    with with_sink() as lab:
        yield lab


@pytest.fixture
def lab(shared_lab: DataPlaneLab) -> DataPlaneLab:
    """Provide the shared lab with default configuration, cleared counters and resolved addresses."""
    shared_lab.ask("configure", config=configuration())
    wait_for(shared_lab, lambda forwarding: forwarding["through_kernel"] is None)
    assert len(ping(shared_lab, "client", SERVER, 3)) == 3
    shared_lab.ask("clear")
    return shared_lab


def forwarding(lab: DataPlaneLab) -> dict[str, Any]:
    found = lab.ask("health")["forwarding"]
    assert isinstance(found, dict)
    return found


def wait_for(lab: DataPlaneLab, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    def found() -> dict[str, Any]:
        now = forwarding(lab)
        return now if holds(now) else {}

    return wait_until(found, "the daemon forwards as expected", report=lambda: str(forwarding(lab)))


def counted_packets(lab: DataPlaneLab, node: str, what: str) -> int:
    """Return the IP counters of a node's kernel."""
    lines = lab.run(node, "cat /proc/net/snmp").splitlines()
    head, values = (line.split() for line in lines if line.startswith("Ip:"))
    return int(values[head.index(what)])


def test_transit_packets_bypass_the_kernel(lab: DataPlaneLab) -> None:
    before = counted_packets(lab, "R1", "ForwDatagrams")
    send_udp(lab, 500, 200, 2e6)
    assert len(ping(lab, "client", SERVER, 5)) == 5
    found = forwarding(lab)
    assert found["forwarded"] == 210
    assert counted_packets(lab, "R1", "ForwDatagrams") == before
    # The router itself answers.
    assert len(ping(lab, "client", "10.0.10.1", 5)) == 5
    assert forwarding(lab)["handed_to_kernel"] >= found["handed_to_kernel"] + 5


def test_qos_group_of_the_input_policy_stays_with_the_frame(lab: DataPlaneLab) -> None:
    marked = {"classes": [{"name": "class-default", "set": [{"field": "qos_group", "value": 7}]}]}
    drops = {"classes": [{"name": "SEVEN", "police": no_packets()}]}
    config = configuration(
        {"MARK": marked, "DROP": drops},
        Fa0_0={"service_policy_input": "MARK"},
        Fa0_1={"service_policy_output": "DROP"},
    )
    config["class_maps"] = {"SEVEN": {"match": "all", "criteria": [{"type": "qos_group", "value": 7}]}}
    lab.ask("configure", config=config)
    lab.ask("clear")
    assert ping(lab, "client", SERVER, 4, wait=0.5) == []
    assert forwarding(lab)["forwarded"] == 4


def no_packets() -> dict[str, Any]:
    """Return a policer that drops all packets."""
    drop = [{"action": "drop"}]
    return {"cir": {"bps": 8000}, "bc": None, "pir": None, "be": None, "conform": drop, "exceed": drop, "violate": None}


@pytest.mark.parametrize(
    ("undo", "do", "named"),
    [
        ("ip rule del from 10.0.10.10 table 7", "ip rule add from 10.0.10.10 table 7", "policy routing rules"),
        ("tc qdisc del dev Fa0-1 root", "tc qdisc add dev Fa0-1 root pfifo limit 100", "traffic control (pfifo)"),
    ],
)
def test_packets_of_unknown_protocols_go_through_the_kernel(lab: DataPlaneLab, undo: str, do: str, named: str) -> None:
    lab.run("R1", do)
    try:
        assert named in wait_for(lab, lambda found: found["through_kernel"] is not None)["through_kernel"]
        lab.ask("clear")
        assert len(ping(lab, "client", SERVER, 4)) == 4
        found = forwarding(lab)
        assert (found["forwarded"], found["handed_to_kernel"]) == (0, 8)
    finally:
        lab.run("R1", undo)
    wait_for(lab, lambda found: found["through_kernel"] is None)


TABLE = """
import sys
from pyroute2.nftables.main import NFTables
with NFTables(nfgen_family=2) as nft:
    nft.table(sys.argv[1], name="lab")
"""


def test_nftables_rules_are_applied(lab: DataPlaneLab) -> None:
    lab.python("R1", TABLE, "add")
    try:
        assert wait_for(lab, lambda found: found["through_kernel"] is not None)["through_kernel"] == "nftables"
        assert len(ping(lab, "client", SERVER, 2)) == 2
    finally:
        lab.python("R1", TABLE, "del")
    wait_for(lab, lambda found: found["through_kernel"] is None)


def test_flapping_routes_under_load_lose_no_packet(lab: DataPlaneLab) -> None:
    """Add and remove other routes during a flood, including a more specific one to the server with the same next
    hop.
    """

    def sent() -> int:
        return int(lab.ask("counters")["interfaces"][OUT]["output"]["packets"])

    sender = spawn_udp(lab, 500, 4000, 8e6)
    changes = "".join(
        f"route {verb} 10.9{n}.0.0/16 via {SERVER}\nroute {verb} {SERVER}/32 dev Fa0-1\n"
        for n in range(9)
        for verb in ("add", "del")
    )
    batch = lab.folder / "batch"
    batch.write_text(changes * 20)
    # The output is larger than a pipe's buffer.
    with ThreadPoolExecutor(1) as reader:
        printed = reader.submit(sender.communicate)
        while not printed.done():
            lab.run("R1", ["ip", "-batch", str(batch)])
    # The last packet is in transit.
    wait_until(lambda: sent() >= 4000, "all packets are sent", report=lambda: f"sent: {sent()}")
    assert sent() == 4000
    found = forwarding(lab)
    assert found["forwarded"] + found["handed_to_kernel"] >= 4000
    assert found["overruns"] == 0
    assert found["forwarded"] > 3000


def test_disappearing_neighbour_under_load_loses_no_packet(lab: DataPlaneLab) -> None:
    """Remove a neighbour during a flood: the kernel resolves it again, and queues the packets during that time."""
    before = counted_packets(lab, "server", "InReceives")
    sender = spawn_udp(lab, 500, 2000, 4e6)
    times = 5
    for _ in range(times):
        wait_until(
            lambda: "lladdr" in lab.run("R1", f"ip neighbour show {SERVER} dev Fa0-1"), "the kernel knows the neighbour"
        )
        lab.run("R1", f"ip neighbour del {SERVER} dev Fa0-1")
    sender.communicate()

    def received() -> int:
        return counted_packets(lab, "server", "InReceives") - before

    wait_until(lambda: received() >= 2000, "all packets are received", report=lambda: f"received: {received()}")
    found = forwarding(lab)
    assert received() == 2000
    # Without a neighbour entry the kernel handles the packet; with one the router forwards packets again.
    assert found["handed_to_kernel"] >= times
    assert found["forwarded"] > 1000
    assert found["overruns"] == 0


def test_kernel_handles_a_missing_neighbour_until_it_returns(lab: DataPlaneLab) -> None:
    lab.run("server", "ip link set eth0 down")
    try:
        lab.run("R1", f"ip neighbour del {SERVER} dev Fa0-1")
        wait_until_quiet(lab)
        lab.ask("clear")
        assert ping(lab, "client", SERVER, 2, wait=0.5) == []
        assert (forwarding(lab)["forwarded"], len(ping(lab, "client", "10.0.20.1", 2))) == (0, 2)
    finally:
        lab.run("server", "ip link set eth0 up")
        lab.run("server", "ip route replace default via 10.0.20.1")
    wait_until(lambda: len(ping(lab, "client", SERVER, 2)) == 2, "the server answers again")
    before = forwarding(lab)["forwarded"]
    assert len(ping(lab, "client", SERVER, 3)) == 3
    assert forwarding(lab)["forwarded"] == before + 6


def wait_until_quiet(lab: DataPlaneLab) -> None:
    """Wait until the daemon has applied the changes of its kernel: it answers a request after them."""
    for _ in range(2):
        forwarding(lab)


def test_kernel_interface_recovers_from_down_under_load(lab: DataPlaneLab) -> None:
    sender = spawn_udp(lab, 500, 3000, 4e6)
    wait_for(lab, lambda found: found["forwarded"] > 50)
    lab.run("R1", "ip link set Fa0-1 down")
    handed = forwarding(lab)["handed_to_kernel"]
    stopped = wait_for(lab, lambda found: found["handed_to_kernel"] > handed + 20)
    later = wait_for(lab, lambda found: found["handed_to_kernel"] > stopped["handed_to_kernel"] + 100)
    assert later["forwarded"] == stopped["forwarded"]
    lab.run("R1", "ip link set Fa0-1 up")
    wait_for(lab, lambda found: found["forwarded"] > stopped["forwarded"] + 100)
    sender.communicate()
    assert len(ping(lab, "client", SERVER, 3)) == 3


def test_without_the_kernels_namespace_the_kernel_forwards() -> None:
    with DataPlaneLab(follow=False) as lab:
        spawn_sink(lab)
        lab.ask("configure", config=configuration())
        assert len(ping(lab, "client", SERVER, 3)) == 3
        found = forwarding(lab)
        assert "--kernel-netns" in found["through_kernel"]
        assert found["forwarded"] == 0
        assert found["handed_to_kernel"] >= 6
