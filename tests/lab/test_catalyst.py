"""`qos-router` as a Catalyst 3750: routed and switched ports; no loss in the voice queue while the machine stalls."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from catalyst import (
    ARTICLE,
    FLOOD,
    IN,
    OUT,
    configuration,
    counters,
    last_phase,
    set_up,
    spawn_flood,
    switch,
    wait_until_passed,
)
from dataplane import BINARY, CLIENT, SERVER, DataPlaneLab, missing_tools, ping

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("catalyst")]


@pytest.fixture(scope="module")
def shared_lab() -> Iterator[DataPlaneLab]:
    """Return the rate of the shared queues, from 1 Gb/s to 100 Mb/s."""
    for program in (BINARY, FLOOD):
        assert program.exists(), f"{program} is missing: run cargo build --release"
    assert not missing_tools(), f"install {missing_tools()}"
    with DataPlaneLab(rates_bps=(1_000_000_000, 100_000_000)) as lab:
        # One network for both hosts: switched ports have no router between them.
        lab.run("client", "ip address add 10.0.30.10/24 dev eth0")
        lab.run("server", "ip address add 10.0.30.20/24 dev eth0")
        yield lab


def test_routed_ports_trust_label_and_rewrite(shared_lab: DataPlaneLab) -> None:
    set_up(shared_lab, switch(), Fa0_0={"trust": "dscp"})
    flood(shared_lab, dscp=46, kbps=1_000, size=500, seconds=0.2)
    trusted, sent = counters(shared_lab, OUT), counters(shared_lab, IN)["dscp_in"][46]
    assert sent > 0
    assert (trusted["dscp_out"][46], trusted["enqueued"][0][0]) == (sent, sent)
    # Without trust the label is 0, and so is the code point on the wire.
    set_up(shared_lab, switch())
    flood(shared_lab, dscp=46, kbps=1_000, size=500, seconds=0.2)
    untrusted = counters(shared_lab, OUT)
    assert untrusted["dscp_out"][46] == untrusted["enqueued"][0][0] == 0
    assert untrusted["dscp_out"][0] == counters(shared_lab, IN)["dscp_in"][46] > 0
    assert len(ping(shared_lab, "client", SERVER, 3)) == 3
    assert len(ping(shared_lab, "client", "10.0.10.1", 3)) == 3


def test_access_ports_switch_in_their_vlan(shared_lab: DataPlaneLab) -> None:
    def access(vlan: int) -> dict[str, Any]:
        return {"switchport": {"mode": "access", "vlan": vlan}}

    set_up(shared_lab, switch(), Fa0_0=access(10), Fa0_1=access(10))
    # Address resolution starts from an empty table, so the switch forwards it too.
    assert len(ping(shared_lab, "client", "10.0.30.20", 3)) == 3
    # Nothing is routed, and the switch has no address in this network.
    assert ping(shared_lab, "client", SERVER, 2, wait=0.5) == []
    set_up(shared_lab, switch(), Fa0_0=access(10), Fa0_1=access(20))
    assert ping(shared_lab, "client", "10.0.30.20", 2, wait=0.5) == []
    assert counters(shared_lab, OUT)["enqueued"] == [[0, 0, 0]] * 4


SEND_TAGGED = """import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for vlan in (10, 20):
    addresses = b"\\xff" * 6 + b"\\x02\\0\\0\\0\\0\\x01"
    s.send(addresses + b"\\x81\\0" + (5 << 13 | vlan).to_bytes(2, "big") + b"\\x88\\xb5" + b"." * 1500)
"""
TAKE = """import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5))
s.bind(("eth0", 0x88b5))
print(flush=True)
print(s.recv(2000)[12:16].hex(), flush=True)
"""


def test_trunk_frames_lose_their_tag_on_an_access_port(shared_lab: DataPlaneLab) -> None:
    trunk = {"switchport": {"mode": "trunk", "vlan": 1}, "trust": "cos"}
    set_up(shared_lab, switch(), Fa0_0=trunk, Fa0_1={"switchport": {"mode": "access", "vlan": 10}})
    taker = shared_lab.spawn("server", [sys.executable, "-c", TAKE])
    assert taker.stdout is not None
    taker.stdout.readline()
    shared_lab.python("client", SEND_TAGGED)
    # EtherType and payload follow the addresses: no tag.
    assert taker.communicate(timeout=60)[0].decode().split() == ["88b52e2e"]
    out = counters(shared_lab, OUT)
    # The class of service put it into queue 1; the frame of the other VLAN was not forwarded.
    assert (out["enqueued"][0][0], out["cos_out"][5]) == (1, 1)
    assert counters(shared_lab, IN)["cos_in"][5] == 2


def flood(lab: DataPlaneLab, *, dscp: int, kbps: int, size: int, seconds: float) -> None:
    """Send a flood and wait until it has passed."""
    sent = json.loads(spawn_flood(lab, dscp, kbps, size, seconds).communicate(timeout=60)[0])
    wait_until_passed(lab, sent["packets"])


@pytest.mark.sample(2)
@pytest.mark.quiet
@pytest.mark.parametrize(("stalls", "hogs"), [(True, 0), (False, 4)], ids=["stopped", "busy"])
def test_voice_queue_loses_nothing_while_the_machine_stalls(shared_lab: DataPlaneLab, stalls: bool, hogs: int) -> None:
    values, health = last_phase(shared_lab, 2.0, stalls, hogs)
    # The data plane itself lost nothing. (How much the senders could send depends on the machine.)
    assert (health["lost_input"], health["malformed"]) == (0, 0)
    assert values["received"][46] > 0
    assert values["dropped"][0] == [0, 0, 0]
    assert values["dscp_out"][46] == values["enqueued"][0][0] == values["received"][46]
    # Only queue 2 overflows, and only at its first threshold.
    assert [sum(queue) for queue in values["dropped"]] == [0, values["dropped"][1][0], 0, 0]


def test_command_refused_by_a_switch_changes_nothing(shared_lab: DataPlaneLab) -> None:
    set_up(shared_lab, switch(), Fa0_1=ARTICLE)
    before = shared_lab.ask("config")["config"]
    wrong = configuration(switch(), Fa0_1={**ARTICLE, "share": [0, 1, 1, 1]})
    reply = json.loads(shared_lab.talk(json.dumps({"op": "configure", "config": wrong}).encode() + b"\n"))
    assert reply["error"]["code"] == "bad_config"
    assert "FastEthernet0/1.switch.share[0]" in reply["error"]["message"]
    assert shared_lab.ask("config")["config"] == before
    assert counters(shared_lab, OUT)["operational_bandwidth_percent"] == 70.38
    assert len(ping(shared_lab, "client", SERVER, 2)) == 2
    assert len(ping(shared_lab, "server", CLIENT, 2)) == 2
