"""Filters, fragments and TCP segment sizes at the interfaces of a virtual router, with real packets."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator

import pytest
from labs import ping, topology
from test_iosd import session

from qoslab.virtual_lab import Lab
from waiting import wait_until

pytestmark = pytest.mark.lab

ROUTER = {
    "platform": "ios",
    "model": "2811",
    "generation": "hqf",
}
EDGES = topology(client="host", R1=ROUTER, server="host")(
    "client eth0 10.1.0.2/24 - R1 FastEthernet0/0 10.1.0.1/24",
    "R1 FastEthernet0/1 10.2.0.1/24 - server eth0 10.2.0.2/24",
)

DATAGRAM = """
import socket, sys
size, fragment = int(sys.argv[1]), sys.argv[2] == "may"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.setsockopt(socket.IPPROTO_IP, 10, 0 if fragment else 2)
    s.connect(("10.2.0.2", 9000))
    s.settimeout(2)
    s.send(bytes(size))
    try:
        print(len(s.recv(2048)))
    except OSError as error:
        # The path MTU reported by the router (IP_MTU).
        print(type(error).__name__, s.getsockopt(socket.IPPROTO_IP, 14))
"""
ECHO = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind(("10.2.0.2", 9000))
    while True:
        data, peer = s.recvfrom(2048)
        s.sendto(data, peer)
"""
SEGMENTS = """
import socket
with socket.socket() as s:
    s.bind(("10.2.0.2", 9001))
    s.listen()
    while True:
        peer, _ = s.accept()
        peer.sendall(b"%d" % peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
        peer.close()
"""
CONNECT = """
import socket
with socket.create_connection(("10.2.0.2", 9001), 30) as s:
    print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG), s.recv(99).decode())
"""
TIMESTAMPS = 12
"""Size of TCP timestamps in each segment, in bytes (RFC 7323)."""


def await_listener(lab: Lab, option: str, port: str) -> None:
    wait_until(lambda: port in lab.run("server", ["ss", option], check=True).stdout, f"the server listens at {port}")


@pytest.fixture(scope="module")
def edges() -> Iterator[Lab]:
    with (
        Lab.up(EDGES, name=f"test-edges-{os.getpid()}") as lab,
        lab.popen("server", ["python3", "-c", ECHO]) as echo,
        lab.popen("server", ["python3", "-c", SEGMENTS]) as tcp,
    ):
        for option, port in (("-lun", ":9000"), ("-ltn", ":9001")):
            await_listener(lab, option, port)
        yield lab
        echo.kill()
        tcp.kill()


async def denied_packets(lab: Lab) -> int:
    """Return the number of packets towards the server that access lists of the router denied."""
    async with lab.control("R1") as client:
        counters = await client.counters()
    return counters["interfaces"]["FastEthernet0/1"]["denied_output"]["packets"]


def configure(lab: Lab, *lines: str) -> str:
    return session(lab, "configure terminal", *lines, "end").replace("\r", "")


def sent_packets(lab: Lab, size: int, fragment: str = "may") -> str:
    return lab.run("client", ["python3", "-c", DATAGRAM, str(size), fragment], check=True).stdout.strip()


def test_output_list_filters_transit_and_not_packets_of_the_router(edges: Lab) -> None:
    configure(
        edges,
        *("object-group service PINGS", "icmp echo", "exit", "object-group network SERVERS", "host 10.2.0.2", "exit"),
        *("ip access-list extended OUT", "deny object-group PINGS any object-group SERVERS", "permit ip any any"),
        *("interface FastEthernet0/1", "ip access-group OUT out"),
    )
    try:
        assert ping(edges, "client", "10.2.0.2", 0.5) is None
        assert sent_packets(edges, 100) == "100"
        assert "Success rate is 100 percent (2/2)" in session(edges, "ping 10.2.0.2 repeat 2")
        shown = session(edges, "show access-lists OUT").replace("\r", "")
        assert "    10 deny object-group PINGS any object-group SERVERS (1 match)\n" in shown
        drops = session(edges, "show interfaces FastEthernet0/1")
        assert "Total output drops: 0" in drops
        assert asyncio.run(denied_packets(edges)) == 1
    finally:
        configure(edges, "interface FastEthernet0/1", "no ip access-group OUT out")
    assert ping(edges, "client", "10.2.0.2") == 63


def test_input_list_also_filters_packets_for_the_router(edges: Lab) -> None:
    configure(edges, "access-list 150 permit udp any any", "interface FastEthernet0/0", "ip access-group 150 in")
    try:
        assert ping(edges, "client", "10.1.0.1", 0.5) is None
        assert sent_packets(edges, 100) == "100"
        configure(edges, "no access-list 150")
        # An empty access list permits everything.
        assert ping(edges, "client", "10.1.0.1") is not None
    finally:
        configure(edges, "interface FastEthernet0/0", "no ip access-group 150 in")


def test_longer_packets_are_fragmented_or_reported(edges: Lab) -> None:
    configure(
        edges,
        *("class-map match-all Fragments", "match input-interface FastEthernet0/0"),
        *("policy-map Count", "class Fragments", "set dscp ef"),
        *("interface FastEthernet0/1", "ip mtu 600", "service-policy output Count", "end", "clear counters"),
    )
    try:
        # 1028 bytes of IP become 596 and 452: a fragment's payload, here 576 bytes, is a multiple of 8.
        assert sent_packets(edges, 1000) == "1000"
        shown = session(edges, "show policy-map interface FastEthernet0/1 output").replace("\r", "")
        found = re.search(r"Class-map: Fragments .*\n +(\d+) packets, (\d+) bytes", shown)
        assert found is not None and found.groups() == ("2", str(1028 + 20 + 2 * 14)), shown
        assert sent_packets(edges, 1000, "never").endswith(" 600")
        assert "Success rate is 0 percent" in session(edges, "ping 10.2.0.2 repeat 1 size 601 timeout 1 df-bit")
        assert "Success rate is 100 percent" in session(edges, "ping 10.2.0.2 repeat 1 size 600 timeout 1 df-bit")
    finally:
        configure(edges, "interface FastEthernet0/1", "no service-policy output Count", "no ip mtu")
        # The path MTUs reported by the router.
        for host in ("client", "server"):
            edges.run(host, ["ip", "route", "flush", "cache"], check=True)
    assert "Success rate is 100 percent" in session(edges, "ping 10.2.0.2 repeat 1 size 1500 timeout 1 df-bit")


@pytest.mark.parametrize("interface", ["FastEthernet0/0", "FastEthernet0/1"])
def test_both_tcp_ends_use_the_segment_size_of_the_router(edges: Lab, interface: str) -> None:
    def sizes() -> tuple[int, ...]:
        output = edges.run("client", ["python3", "-c", CONNECT], check=True).stdout.split()
        return tuple(map(int, output))

    assert sizes() == (1460 - TIMESTAMPS, 1460 - TIMESTAMPS)
    configure(edges, f"interface {interface}", "ip tcp adjust-mss 1360")
    try:
        assert sizes() == (1360 - TIMESTAMPS, 1360 - TIMESTAMPS)
    finally:
        configure(edges, f"interface {interface}", "no ip tcp adjust-mss")


@pytest.mark.long
def test_iperf3_uses_the_segment_size_of_the_router(edges: Lab) -> None:
    configure(edges, "interface FastEthernet0/1", "ip tcp adjust-mss 1000")
    try:
        with edges.popen("server", ["iperf3", "-s", "-1"]) as server:
            await_listener(edges, "-ltn", ":5201")
            done = edges.run("client", ["iperf3", "-c", "10.2.0.2", "-J", "-n", "100K"], check=True)
            server.wait(10)
    finally:
        configure(edges, "interface FastEthernet0/1", "no ip tcp adjust-mss")
    assert json.loads(done.stdout)["start"]["tcp_mss_default"] == 1000 - TIMESTAMPS
