"""IPv6 in the virtual lab: a dual stack of hosts and IOS routers, by Ethernet and a serial line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from commands import run
from labs import ping
from test_iosd import session

from qoslab.model.experiment import Flow, Topology
from qoslab.model.units import Duration
from qoslab.results import Cell
from qoslab.run.cell.flows import FlowLocation, RunningFlow, run_flows
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.schema import CellIdentity
from qoslab.virtual_lab import Lab
from verdicts import newest_run, reasons_except_lateness, status_of

pytestmark = pytest.mark.lab


def link_end(node: str, interface: str, subnet: int, host: int) -> dict[str, str]:
    return {
        "node": node,
        "interface": interface,
        "address": f"10.{subnet}.0.{host}/24",
        "ipv6_address": f"2001:db8:{subnet}::{host}/64",
    }


def router(routes: dict[str, str]) -> dict[str, object]:
    return {
        "platform": "ios",
        "model": "2811",
        "routes": [{"prefix": prefix, "via": via} for prefix, via in routes.items()],
    }


STACKS = {
    "nodes": {
        "client": {"platform": "host"},
        "R1": router({"10.3.0.0/24": "10.2.0.2", "2001:db8:3::/64": "2001:db8:2::2"}),
        "R2": router({"10.1.0.0/24": "10.2.0.1", "2001:db8:1::/64": "2001:db8:2::1"}),
        "server": {"platform": "host"},
    },
    "links": [
        {
            "name": "lan",
            "rate": "100 Mb/s",
            "ends": [link_end("client", "eth0", 1, 2), link_end("R1", "FastEthernet0/0", 1, 1)],
        },
        {
            "name": "wan",
            "rate": "2 Mb/s",
            "framing": "ppp",
            "ends": [link_end("R1", "Serial0/1/0", 2, 1), link_end("R2", "Serial0/1/0", 2, 2)],
        },
        {
            "name": "far",
            "rate": "100 Mb/s",
            "ends": [link_end("R2", "FastEthernet0/0", 3, 1), link_end("server", "eth0", 3, 2)],
        },
    ],
}
DUAL = Topology.model_validate_json(json.dumps(STACKS))

ECHO = """
import select, socket, struct, sys
with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as s:
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, int(sys.argv[2]) << 2)
    s.sendto(struct.pack("!BBHHH", 128, 0, 0, 7, 1), (sys.argv[1], 0))
    while select.select([s], [], [], float(sys.argv[3]))[0]:
        packet, extra, _, _ = s.recvmsg(2048, 64)
        if packet[0] == 129:
            print(next(struct.unpack("i", data)[0] for _, kind, data in extra if kind == socket.IPV6_HOPLIMIT))
            sys.exit(0)
sys.exit(1)
"""


def ping6(lab: Lab, node: str, address: str, *, dscp: int = 0, timeout: float = 2) -> int | None:
    """Return the hop limit of the answer to an echo request; None without one."""
    done = lab.run(node, ["python3", "-c", ECHO, address, str(dscp), str(timeout)])
    return int(done.stdout) if done.returncode == 0 else None


BUCKET_BITS = 31_250 * 8
"""Initial burst of the policer."""


@pytest.mark.parametrize("lab", ["simulated", pytest.param("virtual", marks=[pytest.mark.quiet, pytest.mark.long])])
def test_longer_ipv6_header_lowers_goodput_through_a_policer(clean: Path, lab: str) -> None:
    # In real time six are enough: a bucket of a quarter of a megabit adds at most 4.2 %, and counting the header of the
    # other IP version would change 200 bytes of payload by 8 %.
    seconds = 10 if lab == "simulated" else 6
    status, output, errors = run(clean, "run", "ipv6-policing", "--lab", lab, "--duration", f"{seconds}s")
    # In real time a start with a full bucket is not always detected as warm-up; its bytes then count as goodput.
    assert status in ((0,) if lab == "simulated" else (0, 1)), output + errors
    table = pd.read_csv(clean / "runs/ipv6-policing/latest/comparison.csv")
    headers = {4: 14 + 20 + 8, 6: 14 + 40 + 8}
    shares = [payload / (payload + headers[family]) for payload in (200, 1400) for family in (4, 6)]
    credit = 0 if lab == "simulated" else BUCKET_BITS / seconds
    for share, measured in zip(shares, table["measured"], strict=True):
        assert 0.995 * share * 1e6 < measured < share * (1.005e6 + credit)


@pytest.fixture(scope="module")
def dual_stack_lab() -> Iterator[Lab]:
    with Lab.up(DUAL, name=f"test-ipv6-{os.getpid()}") as lab:
        yield lab


def test_both_families_are_routed(dual_stack_lab: Lab) -> None:
    assert ping(dual_stack_lab, "client", "10.3.0.2") == 62
    assert ping6(dual_stack_lab, "client", "2001:db8:3::2") == 62
    assert ping6(dual_stack_lab, "server", "2001:db8:1::2") == 62


def test_ipv6_settings_are_recorded_and_never_learnt(dual_stack_lab: Lab) -> None:
    settings = dual_stack_lab.describe()["sysctls"]
    for node, forwarding in (("client", "0"), ("R1", "1")):
        assert settings[node]["net.ipv6.conf.all.forwarding"] == forwarding
        assert settings[node]["net.ipv6.conf.default.accept_ra"] == "0"
        assert settings[node]["net.ipv6.conf.default.accept_dad"] == "0"
    assert settings["client"]["net.ipv6.conf.eth0.disable_ipv6"] == "0"
    routes = json.loads(dual_stack_lab.run("client", ["ip", "-6", "-j", "route"], check=True).stdout)
    found = {(each["dst"], each.get("gateway"), each.get("protocol")) for each in routes if each["dst"] != "fe80::/64"}
    assert found == {("2001:db8:1::/64", None, "kernel"), ("default", "2001:db8:1::1", "static")}
    # Nothing on the data plane's side uses IPv6.
    assert dual_stack_lab.run("R1.dp", ["ip", "-6", "-j", "addr"], check=True).stdout.strip() == "[]"


def test_router_pings_over_ipv6(dual_stack_lab: Lab) -> None:
    output = session(
        dual_stack_lab, "ping 2001:db8:3::2 repeat 3", "ping ipv6 2001:db8:3::9 repeat 1 timeout 1 source 2001:db8:2::1"
    )
    assert "Sending 3, 100-byte ICMP Echos to 2001:DB8:3::2, timeout is 2 seconds:" in output
    assert "Success rate is 100 percent (3/3)" in output
    # No host has that address; R2 reports it only after its timeout.
    assert "Packet sent with a source address of 2001:DB8:2::1" in output
    assert "Success rate is 0 percent (0/1)" in output


class _Output:
    def __init__(self, text: str) -> None:
        self.text = text

    def execute(self, command: str) -> str:
        return self.text


def test_genie_parses_the_ipv6_show_commands(dual_stack_lab: Lab) -> None:
    from genie.libs.parser.iosxe.show_ipv6 import ShowIpv6InterfaceBrief
    from genie.libs.parser.iosxe.show_routing import ShowIpv6RouteDistributor

    text = session(dual_stack_lab, "show ipv6 interface brief").replace("\r", "")
    interfaces = ShowIpv6InterfaceBrief(device=_Output(text)).cli(output=text)["interface"]
    assert interfaces["Serial0/1/0"]["ipv6_addresses"] == ["2001:DB8:2::1"]
    assert interfaces["FastEthernet0/0"]["ipv6_addresses"] == ["2001:DB8:1::1"]
    # A serial line has no hardware address: its link-local address is derived from the first Ethernet port's.
    assert re.fullmatch(r"FE80::[0-9A-F:]+", interfaces["Serial0/1/0"]["link_local_address"])
    text = session(dual_stack_lab, "show ipv6 route").replace("\r", "")
    table = ShowIpv6RouteDistributor(device=_Output(text)).cli(output=text)
    routes = table["vrf"]["default"]["address_family"]["ipv6"]["routes"]
    assert set(routes) == {
        *("2001:DB8:1::/64", "2001:DB8:1::1/128", "2001:DB8:2::/64", "2001:DB8:2::1/128", "2001:DB8:3::/64"),
        "FF00::/8",
    }
    assert routes["2001:DB8:3::/64"]["next_hop"]["next_hop_list"][1]["next_hop"] == "2001:DB8:2::2"


def test_ipv6_access_list_and_dscp_of_both_families_classify(dual_stack_lab: Lab) -> None:
    from genie.libs.parser.iosxe.show_acl import ShowIpv6AccessLists

    session(
        dual_stack_lab,
        *("configure terminal", "ipv6 access-list Echoes", "permit icmp any host 2001:db8:3::2 echo-request"),
        *("class-map match-all Six", "match access-group name Echoes", "match dscp af31"),
        *("class-map match-all Four", "match ip dscp af31"),
        *("class-map match-all Version6", "match protocol ipv6"),
        *("policy-map In", "class Six", "set dscp ef", "class Four", "set dscp ef", "class Version6", "set dscp cs1"),
        *("interface FastEthernet0/0", "service-policy input In", "end", "clear counters"),
    )
    try:
        assert ping6(dual_stack_lab, "client", "2001:db8:3::2", dscp=26) == 62
        assert ping6(dual_stack_lab, "client", "2001:db8:3::2", dscp=26) == 62
        assert ping6(dual_stack_lab, "client", "2001:db8:3::2") == 62
        assert ping(dual_stack_lab, "client", "10.3.0.2") == 62
        policy = session(dual_stack_lab, "show policy-map interface FastEthernet0/0").replace("\r", "")
        packets = dict(re.findall(r"Class-map: (\S+) .*\n +(\d+) packets", policy))
        # Two marked IPv6 echoes; one IPv4 echo that only the last class matches; one unmarked echo, and the hosts'
        # neighbour solicitations.
        assert (packets["Six"], packets["Four"]) == ("2", "0"), policy
        assert 1 <= int(packets["Version6"]) <= 4, policy
        text = session(dual_stack_lab, "show ipv6 access-list").replace("\r", "")
        aces = ShowIpv6AccessLists(device=_Output(text)).cli(output=text)["Echoes"]["aces"]
        # The third echo was checked too: it has another code point, which is matched after the list.
        assert aces["10"]["statistics"]["matched_packets"] == 3
    finally:
        session(
            dual_stack_lab,
            *("configure terminal", "interface FastEthernet0/0", "no service-policy input In", "end"),
        )


BURST = """
import socket, sys
with socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM) as s:
    for _ in range(200):
        s.sendto(bytes(200), (sys.argv[1], 9))
"""
"""200 datagrams of 200 bytes at once, which takes 4 ms at 100 Mb/s."""
OWN = 150
"""Greatest number of bytes that an idle host sends (RFC 3810, RFC 4861): group reports, solicitations."""


@pytest.mark.parametrize(
    ("address", "counted"), [("10.3.0.2", 200 + 8 + 20 + 14), ("2001:db8:3::2", 200 + 8 + 40 + 14)]
)
def test_full_bucket_passes_fewer_packets_with_the_longer_header(
    dual_stack_lab: Lab, address: str, counted: int
) -> None:
    # IP packet and 14 bytes of Ethernet (RFC 791, RFC 8200): 129 packets fit into 31250 bytes, or 119. New tokens are
    # added at 1 per ms, and the rest of the bucket lasts for a stall of 200 ms.
    session(
        dual_stack_lab,
        *("configure terminal", "policy-map Burst", "class class-default", "police cir 8000 bc 31250"),
        *("interface FastEthernet0/0", "service-policy input Burst", "end", "clear counters"),
    )
    try:
        dual_stack_lab.run("client", ["python3", "-c", BURST, address], check=True)
        shown = session(dual_stack_lab, "show policy-map interface FastEthernet0/0")
        came, conformed, exceeded = (
            [int(number) for number in re.search(rf"{words}(\d+) packets, (\d+) bytes", shown).groups()]  # type: ignore[union-attr]
            for words in ("", "conformed ", "exceeded ")
        )
        # The host may send other packets before or after them, which use other tokens.
        own = came[0] - 200
        assert 31250 - counted < conformed[1] <= 31250 + own * OWN, shown
        assert [sum(both) for both in zip(conformed, exceeded, strict=True)] == came, shown
        assert 0 <= own < 5 and 200 * counted <= came[1] <= 200 * counted + own * OWN, shown
    finally:
        session(
            dual_stack_lab, "configure terminal", "interface FastEthernet0/0", "no service-policy input Burst", "end"
        )


@pytest.mark.sample(3)
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("random_port", [False, True])
def test_equal_packet_sizes_count_equally_in_both_families(
    dual_stack_lab: Lab, tmp_path: Path, family: int, random_port: bool
) -> None:
    session(
        dual_stack_lab,
        *("configure terminal", "class-map match-all Marked", "match dscp af31", "policy-map Count", "class Marked"),
        *("set dscp ef", "interface FastEthernet0/0", "service-policy input Count", "end", "clear counters"),
    )
    try:
        ends = {"from": "client", "to": "server", "protocol": "udp", "family": family, "dscp": 26}
        pace = {"delay": "4 ms", "size": "500 B", "random": ["port"] if random_port else []}
        flow = Flow.model_validate_json(json.dumps({"name": "load", "tool": "flood", **ends, **pace}))
        place = FlowLocation(
            dual_stack_lab.topology, port=6001, seed=1, cell=Cell(tmp_path, CellIdentity("flooded", (), 1))
        )
        running = RunningFlow(VirtualLab(dual_stack_lab), flow, Duration(10**9), "cubic", place)
        (stream,) = run_flows([running], lambda: None, lambda: None)["load"].streams
        assert stream.datagrams is not None and stream.datagrams > 200
        assert stream.lost == 0
        assert stream.bytes == stream.datagrams * (500 - 8 - {4: 20, 6: 40}[family])
        shown = session(dual_stack_lab, "show policy-map interface FastEthernet0/0").replace("\r", "")
        counted = re.search(r"Class-map: Marked .*\n +(\d+) packets, (\d+) bytes", shown)
        assert counted is not None, shown
        assert (int(counted[1]), int(counted[2])) == (stream.datagrams, stream.datagrams * 514)
    finally:
        session(
            dual_stack_lab,
            *("configure terminal", "interface FastEthernet0/0", "no service-policy input Count", "exit"),
            *("no policy-map Count", "no class-map Marked", "end"),
        )


PROBES = [
    {"name": "hosts", "type": "udp-jitter", "from": "client", "to": "server", "port": 7000, "family": 6, "tos": 184},
    {"name": "hosts-4", "type": "udp-jitter", "from": "client", "to": "server", "port": 7002, "family": 4},
    {"name": "routers", "type": "udp-jitter", "from": "R1", "to": "R2", "port": 7001, "family": 6, "tos": 184},
    {"name": "single", "type": "udp-echo", "from": "server", "to": "R1", "port": 7003, "family": 6},
    {"name": "to-router", "type": "icmp-echo", "from": "client", "to": "R2", "family": 6},
    {"name": "to-host", "type": "icmp-echo", "from": "R1", "to": "server", "family": 6},
]


@pytest.mark.long
@pytest.mark.slow
def test_probes_of_hosts_and_routers_run_over_ipv6(clean: Path) -> None:
    file = clean / "probes-ipv6.yml"
    flow = {"name": "load", "tool": "iperf3", "protocol": "udp", "from": "client", "to": "server", "rate": "100 kb/s"}
    experiment = {
        "name": file.stem,
        "title": "Probes over IPv6",
        "topology": STACKS,
        "duration": "4 s",
        "traffic": [flow | {"size": "200 B"}],
        "arms": [{"name": "plain"}],
        "probes": [{**each, "frequency": "1 s", "timeout": "1 s"} for each in PROBES],
        "captures": [{"name": "server", "node": "server", "interface": "eth0", "filter": "udp port 7000"}],
    }
    file.write_text(json.dumps(experiment, indent=1))
    status, output, errors = run(clean, "run", str(file))
    assert status == status_of(newest_run(clean)), errors + output
    latest = (clean / "runs/probes-ipv6/latest").resolve()
    cell = latest / "cells/plain/1"
    # The lateness of the machine is not checked here.
    assert not reasons_except_lateness(json.loads((cell / "cell.json").read_text())), errors
    rows = pd.read_parquet(latest / "tables/probes.parquet").set_index("probe")
    assert set(rows.index) == {each["name"] for each in PROBES}
    for name, row in rows.iterrows():
        report = json.loads((cell / f"probes/{name}.samples.json").read_text())
        losses = [hour["statistics"]["losses"]["total"] for hour in report["hours"]]
        assert (row["rtt_count"] > 0, losses) == (True, [0]), name
        # Two frames of at least 84 bytes at 100 Mb/s, or more on the serial line: no answer can be faster.
        assert all(each["arrived_ns"] - each["sent_ns"] >= 2 * 6720 for each in report["samples"]), name
    answered = json.loads((cell / "probes/responder-server.json").read_text())
    assert answered["control_messages"] >= 4 and answered["errors"] == 0
    # IPv6 with the traffic class of expedited forwarding, then the flow label.
    assert re.search(rb"\x86\xdd\x6b[\x80-\x8f]", (cell / "captures/server.pcapng").read_bytes())
    operations = json.loads((cell / "config/R1.engine.json").read_text())["ip_sla"]["operations"]
    found = {(each["type"], each["target"], each.get("tos")) for each in operations.values()}
    assert found == {("udp-jitter", "2001:db8:2::2", 184), ("icmp-echo", "2001:db8:3::2", None)}


def test_forwarding_addresses_and_routes_follow_the_configuration(dual_stack_lab: Lab) -> None:
    for off, on in (
        (["no ipv6 unicast-routing"], ["ipv6 unicast-routing"]),
        (["no ipv6 route 2001:db8:3::/64 2001:db8:2::2"], ["ipv6 route 2001:db8:3::/64 Serial0/1/0 2001:db8:2::2"]),
        (
            ["interface Serial0/1/0", "no ipv6 address 2001:db8:2::1/64"],
            ["interface Serial0/1/0", "ipv6 address 2001:db8:2::1/64"],
        ),
    ):
        session(dual_stack_lab, "configure terminal", *off, "end")
        assert ping6(dual_stack_lab, "client", "2001:db8:3::2", timeout=0.3) is None, off
        assert ping(dual_stack_lab, "client", "10.3.0.2") == 62
        session(dual_stack_lab, "configure terminal", *on, "end")
        assert ping6(dual_stack_lab, "client", "2001:db8:3::2") == 62, on


def test_switch_bridges_ipv6() -> None:
    ends = [("left", 1), ("right", 2)]
    links = [
        {
            "name": host,
            "rate": "100 Mb/s",
            "ends": [
                {"node": host, "interface": "eth0", "ipv6_address": f"2001:db8:1::{number}/64"},
                {"node": "SW", "interface": f"GigabitEthernet1/0/{number}"},
            ],
        }
        for host, number in ends
    ]
    nodes = {"left": {"platform": "host"}, "right": {"platform": "host"}, "SW": {"platform": "ios", "model": "3750G"}}
    topology = Topology.model_validate_json(json.dumps({"nodes": nodes, "links": links}))
    with Lab.up(topology, name=f"test-ipv6-switch-{os.getpid()}") as lab:
        assert ping6(lab, "left", "2001:db8:1::2") == 64
