"""Wiring of a topology: pure, no namespaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qoslab.errors import ExperimentError, UserError
from qoslab.ios.model.device import Device
from qoslab.model.experiment import Topology
from qoslab.platforms import MODELS
from qoslab.platforms.startup import startup_config
from qoslab.virtual_lab.data_planes import lab_config, process_name
from qoslab.virtual_lab.ios_routers import RouterLogins, startup_with_inert_lines
from qoslab.virtual_lab.virtual_router import load_configuration
from qoslab.virtual_lab.wiring import TokenBucket, wire


def topology(nodes: dict[str, Any], *links: dict[str, Any]) -> Topology:
    return Topology.model_validate_json(
        json.dumps(
            {"nodes": nodes, "links": [{"name": f"l{n}", "rate": "100 Mb/s", **link} for n, link in enumerate(links)]}
        )
    )


def end(node: str, interface: str, address: str | None = None) -> dict[str, Any]:
    return {"node": node, "interface": interface, "address": address}


ROUTED = topology(
    {
        "client": {"platform": "host"},
        "R1": {"platform": "ios", "model": "2811", "routes": [{"prefix": "10.3.0.0/16", "via": "10.2.0.2"}]},
        "R2": {"platform": "engine", "routes": [{"prefix": "10.1.0.0/16", "via": "10.2.0.1"}]},
    },
    {"ends": [end("client", "eth0", "10.1.0.2/24"), end("R1", "FastEthernet0/0", "10.1.0.1/24")]},
    {
        "rate": "512 kb/s",
        "delay": "5 ms",
        "framing": "ppp",
        "ends": [end("R1", "Serial0/1/0", "10.2.0.1/30"), end("R2", "Serial0/1/0", "10.2.0.2/30")],
    },
)


def test_ports_match_the_control_protocol() -> None:
    wiring = wire(ROUTED)
    plain = {"jitter": None, "loss": None}
    lan, wan = (wiring.ports["R1"][port]["link"].pop("seed") for port in ("FastEthernet0/0", "Serial0/1/0"))
    assert wiring.ports["R2"]["Serial0/1/0"]["link"]["seed"] not in (lan, wan)
    assert wiring.ports["R1"] == {
        "FastEthernet0/0": {
            "inside": "Fa0-0.in",
            "wire": "Fa0-0",
            "link": {"rate_bps": 100_000_000, "framing": "ethernet", "delay_ns": 0, **plain},
            "paced_by_peer": False,
        },
        "Serial0/1/0": {
            "inside": "Se0-1-0.in",
            "wire": "Se0-1-0",
            "link": {"rate_bps": 512_000, "framing": "ppp", "delay_ns": 5_000_000, **plain},
            "paced_by_peer": True,
        },
    }
    assert list(wiring.namespaces) == ["client", "R1", "R1.dp", "R2", "R2.dp"]
    assert "client" not in wiring.ports


def test_only_nodes_without_ios_are_configured() -> None:
    wiring = wire(ROUTED)
    by_place = {(each.namespace, each.name): each for each in wiring.interfaces()}
    assert [*map(str, by_place["client", "eth0"].addresses)] == ["10.1.0.2/24"]
    assert by_place["client", "eth0"].shaper is not None
    assert [*map(str, by_place["R2", "Se0-1-0"].addresses)] == ["10.2.0.2/30"]
    for name in ("Fa0-0", "Se0-1-0"):
        assert by_place["R1", name].addresses == ()
        assert not by_place["R1", name].up
        assert by_place["R1.dp", name].up and by_place["R1.dp", name + ".in"].up
    assert [each.shaper is not None for each in wiring.interfaces()].count(True) == 1


def test_host_on_one_link_has_the_router_as_its_gateway() -> None:
    wiring = wire(ROUTED)
    assert [(each.namespace, str(each.prefix), str(each.via)) for each in wiring.routes] == [
        ("client", "0.0.0.0/0", "10.1.0.1"),
        ("R2", "10.1.0.0/16", "10.2.0.1"),
    ]


def test_arp_entries_name_the_remote_end_with_the_address() -> None:
    wiring = wire(ROUTED)
    macs = {(each.namespace, each.name): each.mac for each in wiring.interfaces()}
    assert all(int(mac[:2], 16) & 0b11 == 0b10 for mac in macs.values())  # unicast, locally administered
    entries = {(each.namespace, str(each.address), each.booted): each.mac for each in wiring.neighbours}
    assert entries == {
        ("client", "10.1.0.1", False): macs["R1", "Fa0-0"],
        ("R1", "10.1.0.2", True): macs["client", "eth0"],
    }


DUAL = Topology.model_validate_json("""{
    "nodes": {"client": {"platform": "host"}, "server": {"platform": "host"}, "R1": {"platform": "engine"}},
    "links": [
        {"name": "a", "rate": "100 Mb/s", "ends": [
            {"node": "client", "interface": "eth0", "address": "10.1.0.2/24", "ipv6_address": "2001:db8:1::2/64"},
            {"node": "R1", "interface": "FastEthernet0/0", "address": "10.1.0.1/24", "ipv6_address": "2001:db8:1::1/64"}
        ]},
        {"name": "b", "rate": "100 Mb/s", "ends": [
            {"node": "R1", "interface": "FastEthernet0/1", "ipv6_address": "2001:db8:2::1/64"},
            {"node": "server", "interface": "eth0", "ipv6_address": "2001:db8:2::2/64"}
        ]}
    ]}""")


def test_both_families_have_their_addresses_gateways_and_neighbours() -> None:
    wiring = wire(DUAL)
    by_place = {(each.namespace, each.name): each for each in wiring.interfaces()}
    assert [*map(str, by_place["client", "eth0"].addresses)] == ["10.1.0.2/24", "2001:db8:1::2/64"]
    assert [*map(str, by_place["R1", "Fa0-1"].addresses)] == ["2001:db8:2::1/64"]
    assert [(each.namespace, str(each.prefix), str(each.via)) for each in wiring.routes] == [
        ("client", "0.0.0.0/0", "10.1.0.1"),
        ("client", "::/0", "2001:db8:1::1"),
        ("server", "::/0", "2001:db8:2::1"),
    ]
    assert {(each.namespace, str(each.address)) for each in wiring.neighbours} == {
        *(("client", "10.1.0.1"), ("client", "2001:db8:1::1"), ("R1", "10.1.0.2"), ("R1", "2001:db8:1::2")),
        *(("R1", "2001:db8:2::2"), ("server", "2001:db8:2::1")),
    }


def test_ipv6_is_enabled_only_with_addresses_and_nothing_is_learnt() -> None:
    wiring = wire(DUAL)
    assert wiring.ipv6_settings("client") == {"net.ipv6.conf.eth0.disable_ipv6": 0}
    assert wiring.ipv6_settings("R1.dp") == {}
    assert wire(ROUTED).ipv6_settings("client") == {}
    for namespace, settings in wiring.namespaces.items():
        for name in ("accept_ra", "accept_dad", "autoconf", "router_solicitations"):
            assert settings[f"net.ipv6.conf.default.{name}"] == settings[f"net.ipv6.conf.all.{name}"] == 0
        assert settings["net.ipv6.conf.default.disable_ipv6"] == 1
        assert settings["net.ipv6.conf.all.forwarding"] == (1 if namespace == "R1" else 0)


def test_serial_line_has_no_arp_and_one_address_for_both_ends() -> None:
    interfaces = list(wire(ROUTED).interfaces())
    line = [each for each in interfaces if not each.arp]
    assert [(each.namespace, each.name) for each in line] == [("R1", "Se0-1-0"), ("R2", "Se0-1-0")]
    assert len({each.mac for each in line}) == 1
    others = [each.mac for each in interfaces if each.arp]
    assert len(set(others)) == len(others) == len(interfaces) - 2


def test_interface_indices_are_unique_in_each_namespace() -> None:
    places = [(each.namespace, each.index) for each in wire(ROUTED).interfaces()]
    assert len(set(places)) == len(places)
    assert min(index for _, index in places) == 2


@given(st.integers(min_value=1_000, max_value=10**10))
def test_token_bucket_holds_two_frames_and_five_milliseconds(rate: int) -> None:
    bucket = TokenBucket.for_link(rate)
    assert bucket.burst_bytes >= 2 * 1538
    assert bucket.burst_bytes >= int(rate * 0.005 / 8)
    assert bucket.burst_bytes <= max(2 * 1538, rate * 0.005 / 8)


def test_jitter_and_loss_match_the_control_protocol() -> None:
    impaired = topology(
        {"client": {"platform": "host"}, "R1": {"platform": "engine"}},
        {
            "delay": "20 ms",
            "jitter": {"size": "2 ms", "distribution": "normal", "correlation": "25 %", "reorder": True},
            "loss": {"model": "gilbert-elliott", "p": "0.5 %", "r": "20 %"},
            "ends": [end("client", "eth0", "10.1.0.2/24"), end("R1", "FastEthernet0/0", "10.1.0.1/24")],
        },
    )
    link = wire(impaired, seed=3).ports["R1"]["FastEthernet0/0"]["link"]
    assert link["jitter"] == {"distribution": "normal", "ns": 2_000_000, "correlation": 0.25, "reorder": True}
    assert link["loss"] == {"model": "gilbert_elliott", "p": 0.005, "r": 0.2, "loss_good": 0.0, "loss_bad": 1.0}
    assert wire(impaired, seed=3).ports["R1"]["FastEthernet0/0"]["link"] == link
    assert wire(impaired, seed=4).ports["R1"]["FastEthernet0/0"]["link"]["seed"] != link["seed"]


def test_emulated_link_between_hosts_has_a_data_plane() -> None:
    ends = [end("a", "eth0", "10.0.0.1/24"), end("b", "eth0", "10.0.0.2/24")]
    wired = wire(
        topology(
            {"a": HOST, "b": HOST}, {"delay": "5 ms", "loss": {"model": "random", "probability": "1 %"}, "ends": ends}
        ),
        3,
    )
    assert wired.lines == ("l0.line",)
    near, far = wired.ports["l0.line"]["near"], wired.ports["l0.line"]["far"]
    assert (near["inside"], near["wire"], far["inside"], far["wire"]) == ("far", "near", "near", "far")
    assert not near["paced_by_peer"] and near["link"]["delay_ns"] == far["link"]["delay_ns"] == 5_000_000
    assert near["link"]["seed"] != far["link"]["seed"], "what is lost one way has nothing to do with the other"
    assert [(one.namespace, other.namespace, other.name) for one, other in wired.pairs] == [
        ("a", "l0.line", "near"),
        ("b", "l0.line", "far"),
    ]
    # ARP entries are those of the hosts: nothing between them is visible.
    macs = {interface.namespace: interface.mac for interface in wired.interfaces() if interface.namespace in "ab"}
    assert {(entry.namespace, entry.mac) for entry in wired.neighbours} == {("a", macs["b"]), ("b", macs["a"])}
    plain = wire(topology({"a": HOST, "b": HOST}, {"ends": ends}))
    assert plain.lines == () and plain.ports == {} and len(plain.pairs) == 1


HOST = {"platform": "host"}
SECOND = {"a": HOST, "b": HOST, "c": HOST}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            topology(
                {"a": HOST, "b": HOST, "l0.line": HOST}, {"delay": "1 ms", "ends": [end("a", "eth0"), end("b", "eth0")]}
            ),
            "namespace l0.line",
        ),
        (topology({"a": HOST}, {"ends": [end("a", "eth0"), end("z", "eth0")]}), "ends at z"),
        (topology({"a": HOST, "b": HOST}, {"framing": "ppp", "ends": [end("a", "e0"), end("b", "e0")]}), "ppp framing"),
        (
            topology(SECOND, {"ends": [end("a", "e0"), end("b", "e0")]}, {"ends": [end("a", "e0"), end("c", "e0")]}),
            "interface e0 of a is used by two links, l1 the second",
        ),
        (topology({"R1": {"platform": "engine"}, "R1.dp": HOST}), "namespace R1.dp"),
    ],
)
def test_impossible_wiring_is_refused(bad: Topology, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        wire(bad)


def test_inert_lines_are_added_to_their_blocks_or_refused() -> None:
    text = startup_config(ROUTED, "R1", {"user": "lab", "password": "word", "enable": "secret"})
    theirs = "hostname R9\nrouter ospf 7\n network 10.0.0.0 0.255.255.255 area 0\n"
    theirs += "interface FastEthernet0/0\n ip address 10.9.0.1 255.255.255.0\n ip nat inside\n"
    theirs += "interface GigabitEthernet0/7\n ip nat outside\n"
    head = "!\nrouter ospf 7\n network 10.0.0.0 0.255.255.255 area 0\ninterface GigabitEthernet0/7\n ip nat outside\n"
    wanted = head + text.replace("FastEthernet0/0\n", "FastEthernet0/0\n ip nat inside\n")
    assert startup_with_inert_lines(text, ROUTED, "R1", RouterLogins(clutter=theirs)) == wanted
    assert startup_with_inert_lines(text, ROUTED, "R1", RouterLogins()) == text
    with pytest.raises(UserError, match="found only lines that R1 implements"):
        startup_with_inert_lines(text, ROUTED, "R1", RouterLogins(clutter="hostname R9\n"))


def test_startup_configuration_has_each_line_once() -> None:
    login = {"user": "lab", "password": "word", "enable": "secret"}
    text = startup_config(ROUTED, "R1", login)
    assert text.splitlines() == [
        "hostname R1",
        "enable secret 0 secret",
        "username lab privilege 1 secret 0 word",
        "!",
        "interface FastEthernet0/0",
        " ip address 10.1.0.1 255.255.255.0",
        " no shutdown",
        "!",
        "interface Serial0/1/0",
        " bandwidth 512",
        " ip address 10.2.0.1 255.255.255.252",
        " encapsulation ppp",
        " clock rate 512000",
        " no shutdown",
        "!",
        "ip route 10.3.0.0 255.255.0.0 10.2.0.2",
        "!",
        "end",
    ]
    device, refused = load_configuration(Device(MODELS["2811"].hardware()), text)
    assert refused == []
    assert str(device.interfaces["Serial0/1/0"].address) == "10.2.0.1/30"
    assert not device.interfaces["FastEthernet0/0"].shutdown


def test_router_process_gets_places_and_memory_links() -> None:
    wiring = wire(ROUTED)
    handles = {name: number for number, name in enumerate(wiring.namespaces, 5)}
    config = lab_config(wiring, handles, Path("/run/qoslab"))
    assert config["links"] == [
        {"ends": [{"router": "R1", "port": "Serial0/1/0"}, {"router": "R2", "port": "Serial0/1/0"}]}
    ]
    assert list(config["routers"]) == ["R1", "R2"]
    assert config["routers"]["R1"] == {
        "wiring": {"ports": wiring.ports["R1"]},
        "control": "/run/qoslab/R1/control.sock",
        "netns": f"/proc/1/fd/{handles['R1.dp']}",
        "kernel_netns": f"/proc/1/fd/{handles['R1']}",
    }


def test_line_between_hosts_has_a_namespace_and_no_kernel() -> None:
    ends = [end("a", "eth0", "10.0.0.1/24"), end("b", "eth0", "10.0.0.2/24")]
    slow = {"name": "slow", "rate": "10 Mb/s", "delay": "10 ms", "ends": ends}
    wiring = wire(topology({"a": HOST, "b": HOST}, slow))
    handles = {name: number for number, name in enumerate(wiring.namespaces)}
    config = lab_config(wiring, handles, Path("/run/qoslab"))
    place = config["routers"]["slow.line"]
    assert (place["netns"], place["kernel_netns"]) == (f"/proc/1/fd/{handles['slow.line']}", None)
    assert config["links"] == []


def test_process_of_many_routers_has_a_short_name() -> None:
    assert process_name(["R1"]) == "R1"
    assert process_name(["R1", "R2", "R3", "R4"]) == "R1, R2, R3, R4"
    assert process_name(["R1", "R2", "R3", "R4", "R5"]) == "R1 and 4 more"
