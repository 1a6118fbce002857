"""VLAN policies on a virtual Catalyst 3750, pasted over SSH: treatment of a burst at each port, and parsed output."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from labs import topology
from test_iosd import session
from test_switch import RECEIVE

from qoslab.genie.show_parser import parse
from qoslab.virtual_lab import Lab
from waiting import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("switch_vlans")]

TOPOLOGY = topology(left="host", middle="host", right="host", SW={"platform": "ios", "model": "3750G"})(
    "left eth0 10.3.0.1/24 - SW GigabitEthernet1/0/2",
    "middle eth0 10.3.0.3/24 - SW GigabitEthernet1/0/3",
    "right eth0 10.3.0.2/24 - SW GigabitEthernet1/0/4",
)
VLAN_POLICY = """\
mls qos
!
access-list 101 permit udp any any
!
class-map match-all UDP
 match access-group 101
class-map match-all FLOOR
 match input-interface  GigabitEthernet1/0/2 - GigabitEthernet1/0/3
!
policy-map PORTS
 class FLOOR
  police 1000000 8000 exceed-action drop
policy-map VLAN
 class UDP
  set dscp af41
  service-policy PORTS
!
vlan 30
!
interface GigabitEthernet1/0/2
 switchport access vlan 30
 mls qos vlan-based
interface GigabitEthernet1/0/3
 switchport access vlan 30
 mls qos vlan-based
interface GigabitEthernet1/0/4
 switchport access vlan 30
 mls qos vlan-based
!
interface Vlan30
 service-policy input VLAN
"""
BURST = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(80):
    s.sendto(bytes(1000), ("10.3.0.2", 9))
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.up(TOPOLOGY, name=f"test-switch-vlans-{os.getpid()}") as lab:
        assert "%" not in session(lab, "configure terminal", *VLAN_POLICY.splitlines(), "end", router="SW")
        yield lab


def show_output(lab: Lab, command: str) -> object:
    text = session(lab, command, router="SW").split(command + "\n", 1)[1].rpartition("SW#")[0]
    return parse("ios", command, text).parsed


def profile(lab: Lab, port: int, *, frames: int) -> tuple[int, int]:
    """Return the in-profile and out-of-profile frames of a port's policers once all have arrived: the sender finishes
    earlier.
    """
    name = f"GigabitEthernet1/0/{port}"

    def arrived() -> dict[str, int]:
        parsed = show_output(lab, f"show mls qos interface {name} statistics")
        assert isinstance(parsed, dict)
        found: dict[str, int] = parsed["interface"][name]["policer"]
        return found if found["in_profile"] + found["out_of_profile"] >= frames else {}

    found = wait_until(arrived, f"the policer of {name} has counted {frames} frames")
    return found["in_profile"], found["out_of_profile"]


def police(lab: Lab, exceed: str) -> None:
    """Set the action of the ports' policers for exceeding packets, and clear their counters."""
    output = session(
        lab,
        *("configure terminal", "interface Vlan30", "no service-policy input VLAN"),
        *("policy-map PORTS", "class FLOOR", "no police", f"police 1000000 8000 exceed-action {exceed}"),
        *("interface Vlan30", "service-policy input VLAN", "end", "clear mls qos interface statistics"),
        router="SW",
    )
    assert "%" not in output and "rejected" not in output, output


def test_vlan_is_policed_by_port(lab: Lab) -> None:
    police(lab, "drop")
    assert show_output(lab, "show mls qos vlan 30") == {"vlan": {"30": {"policy_map": "VLAN"}}}
    with lab.popen("right", ["python3", "-c", RECEIVE], text=True, stdout=subprocess.PIPE) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        lab.run("left", ["python3", "-c", BURST], check=True)
        assert int(receiver.stdout.read()) == 34, "marked by the VLAN's class"
    lab.run("middle", ["python3", "-c", BURST], check=True)
    for port in (2, 3):
        conforming, exceeding = profile(lab, port, frames=80)
        # Eighty frames of 1046 bytes, 6.8 ms at 100 Mb/s: of 8000 bytes of burst each port passes 7, and 1 Mb/s adds
        # 850 bytes, another one. A machine that stretches the burst adds one more in 8.4 ms. More than 90 frames may
        # not find room in a kernel's buffer while the data plane has to wait for a processor.
        assert conforming + exceeding == 80
        assert 8 <= conforming < 30
    assert profile(lab, 4, frames=0) == (0, 0), "the receiver's port is in no range, and sent nothing"


def test_packet_marked_down_keeps_its_queue(lab: Lab) -> None:
    mapped = session(lab, "configure terminal", "mls qos map policed-dscp 34 to 8", "end", router="SW")
    assert "%" not in mapped
    police(lab, "policed-dscp-transmit")
    lab.run("left", ["python3", "-c", BURST], check=True)
    conforming, exceeding = profile(lab, 2, frames=80)
    assert conforming + exceeding == 80
    assert conforming < 30
    name = "GigabitEthernet1/0/4"
    parsed = show_output(lab, f"show mls qos interface {name} statistics")
    assert isinstance(parsed, dict)
    outgoing = parsed["interface"][name]["dscp"]["outgoing"]
    assert (outgoing["34"], outgoing["8"]) == (conforming, exceeding)
    # Code point 34 has the fourth queue (Queue 3 there), 8 the second. Without a drop, since the line is as fast.
    queues = parsed["interface"][name]["output_queues"]["enqueued"]["queue"]
    assert queues["3"]["threshold"]["1"] == 80
