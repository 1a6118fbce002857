"""Virtual Catalyst 3750G in a lab: real Ansible, Unicon and Genie; marks, VLANs and statistics of its data plane."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import ping, topology

from qoslab.platforms import MODELS
from qoslab.run.devices.ansible.playbooks import AnsibleSession, PlaybookOutcome, RouterError
from qoslab.run.devices.ansible_inventory import write_inventory
from qoslab.run.devices.collector import CollectorProcess
from qoslab.run.workers.virtual.access import lab_router_access
from qoslab.virtual_lab import Lab
from rollback_lines import undo_lines

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("switch")]

PORT = "GigabitEthernet1/0/15"
TOPOLOGY = topology(client="host", server="host", left="host", right="host", SW={"platform": "ios", "model": "3750G"})(
    "client eth0 10.1.0.2/24 - SW GigabitEthernet1/0/1 10.1.0.1/24",
    f"server eth0 10.2.0.2/24 - SW {PORT} 10.2.0.1/24",
    "left eth0 10.3.0.1/24 - SW GigabitEthernet1/0/2",
    "right eth0 10.3.0.2/24 - SW GigabitEthernet1/0/3",
)
FIX = f"""\
mls qos queue-set output 2 threshold 1 400 400 100 400
mls qos queue-set output 2 buffers 30 50 10 10
mls qos
!
interface GigabitEthernet1/0/1
 mls qos trust dscp
!
interface {PORT}
 srr-queue bandwidth share 30 70 1 1
 srr-queue bandwidth shape  0  0  0  0
 srr-queue bandwidth limit 70
 queue-set 2
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.up(TOPOLOGY, name=f"test-switch-{os.getpid()}") as lab:
        yield lab


@pytest.fixture(scope="module")
def collector(lab: Lab) -> Iterator[CollectorProcess]:
    with CollectorProcess() as collector:
        collector.connect(lab_router_access(lab), known_hosts=lab.known_hosts(), wait=False)
        yield collector


@pytest.fixture(scope="module")
def session(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AnsibleSession, Path]]:
    folder = tmp_path_factory.mktemp("switch")
    inventory = folder / "inventory.json"
    with AnsibleSession(inventory, before=folder / "before") as session:
        write_inventory(inventory, lab_router_access(lab))
        session.execute(["prepare"])
        yield session, folder


def intend(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "SW.ios").write_text(text)
    return folder


def port_numbers(collector: CollectorProcess, screen: str) -> dict[str, object]:
    parsed = collector.observe("SW", f"show mls qos interface {PORT} {screen}").parsed
    assert parsed is not None
    numbers: dict[str, object] = parsed["interface"][PORT]
    return numbers


SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[2]) << 2)
for _ in range(int(sys.argv[3])):
    s.sendto(bytes(100), (sys.argv[1], 9))
"""
RECEIVE = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
s.bind(("", 9))
s.settimeout(5)
print("ready", flush=True)
print(s.recvmsg(200, 64)[1][0][2][0] >> 2)
"""


def received_dscp(lab: Lab, dscp: int) -> int:
    """Return the code point of a datagram of the client when it arrives at the server."""
    with lab.popen("server", ["python3", "-c", RECEIVE], text=True, stdout=subprocess.PIPE) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        lab.run("client", ["python3", "-c", SEND, "10.2.0.2", str(dscp), "1"], check=True)
        return int(receiver.stdout.read())


def restore_port(session: tuple[AnsibleSession, Path], outcome: PlaybookOutcome) -> None:
    """Leave the switch as the session found it; `outcome` is that of the push before."""
    ansible, folder = session
    before = (folder / "before" / "SW.before.ios").read_text()
    lines = undo_lines(before, outcome.answers("SW")["show running-config"], MODELS["3750G"].hardware())
    restore = folder / "restore"
    restore.mkdir(exist_ok=True)
    (restore / "SW.restore.ios").write_text("\n".join(lines) + "\n")
    ansible.execute(["restore"], restore=restore)


def test_configuration_is_pushed_and_removed(
    lab: Lab, session: tuple[AnsibleSession, Path], collector: CollectorProcess
) -> None:
    ansible, folder = session
    assert received_dscp(lab, 46) == 46, "QoS off: marks are left alone"
    intended = intend(folder / "fix", FIX)
    outcome = ansible.execute(["apply", "verify"], intended=intended)
    assert outcome.changed_routers == {"SW"}
    # The article's output, read over ssh, as Genie parses it.
    queueing = port_numbers(collector, "queueing")
    assert (queueing["shape"], queueing["share"]) == ([0, 0, 0, 0], [30, 70, 1, 1])
    assert (queueing["limit_percent"], queueing["operational_percent"]) == (70, 70.38)
    # A second push changes nothing, although Ansible compares line by line.
    assert ansible.execute(["apply", "verify"], intended=intended).changed_routers == frozenset()

    assert received_dscp(lab, 46) == 46, "trusted"
    lab.run("client", ["python3", "-c", SEND, "10.2.0.2", "46", "20"], check=True)
    statistics = port_numbers(collector, "statistics")
    assert statistics["dscp"]["outgoing"]["46"] >= 21  # type: ignore[index]
    assert statistics["output_queues"]["enqueued"]["queue"]["0"]["threshold"]["1"] >= 21  # type: ignore[index]
    drops = collector.observe("SW", f"show platform port-asic stats drop {PORT}").parsed
    assert drops is not None
    assert set(drops["interface"][PORT]["queue"]) == {"0", "1", "2", "3"}

    restore_port(session, outcome)
    assert port_numbers(collector, "queueing")["limit_percent"] == 100
    # `no mls qos` clears the statistics.
    assert port_numbers(collector, "statistics")["dscp"]["outgoing"]["46"] == 0  # type: ignore[index]


def test_untrusted_port_clears_marks(lab: Lab, session: tuple[AnsibleSession, Path]) -> None:
    ansible, folder = session
    outcome = ansible.execute(["apply", "verify"], intended=intend(folder / "untrusted", "mls qos\n"))
    assert received_dscp(lab, 46) == 0
    restore_port(session, outcome)


def test_lines_that_were_not_pushed_are_reported(session: tuple[AnsibleSession, Path]) -> None:
    ansible, folder = session
    text = f"interface {PORT}\n queue-set 2\n"
    with pytest.raises(RouterError, match="queue-set 2"):
        ansible.execute(["verify"], intended=intend(folder / "missing", text))


def test_refused_command_leaves_nothing(session: tuple[AnsibleSession, Path], collector: CollectorProcess) -> None:
    ansible, folder = session
    text = "mls qos queue-set output 2 buffers 30 50 10 20\n"
    with pytest.raises(RouterError, match="Command rejected: buffers sum to 110 percent"):
        ansible.execute(["apply"], intended=intend(folder / "refused", text))
    sets = collector.observe("SW", "show mls qos queue-set 2").parsed
    assert sets is not None
    assert sets["queue_set"]["2"]["queue"]["1"]["buffers"] == 25


def test_switched_ports_of_a_vlan_reach_each_other(lab: Lab, session: tuple[AnsibleSession, Path]) -> None:
    assert ping(lab, "left", "10.3.0.2") == 64, "bridged, not routed"
    ansible, folder = session
    text = "vlan 30\n!\ninterface GigabitEthernet1/0/2\n switchport access vlan 30\n"
    outcome = ansible.execute(["apply", "verify"], intended=intend(folder / "vlan", text))
    assert ping(lab, "left", "10.3.0.2", 0.5) is None, "in different VLANs"
    restore_port(session, outcome)
