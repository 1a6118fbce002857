"""ATM interfaces and overhead accounting: accepted, printed, refused and compiled lines."""

from __future__ import annotations

from ipaddress import IPv4Interface

import pytest
from fake_router import FakeRouter, class_counters, interface_counters, type_lines

from qoslab.errors import IosError
from qoslab.genie.show_parser import parse
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Device, Generation
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render, render_interface
from qoslab.model.experiment import Link, LinkEnd, Node, Topology
from qoslab.model.framing import COUNTED_HEADER, MEDIUM, Framing, line_bytes
from qoslab.model.units import Rate
from qoslab.platforms import MODELS, node_platform
from qoslab.platforms.startup import startup_config
from rollback_lines import undo_lines

LOGIN = {"user": "lab", "password": "secret", "enable": "secret"}


def router(text: str, generation: Generation = "classic") -> Device:
    return parse_config(text, MODELS["7206VXR"].hardware(generation))


CIRCUIT = """\
policy-map P
 class class-default
  police cir 500000
interface ATM1/0
 ip address 10.0.0.1 255.255.255.252
 pvc 0/33
  vbr-nrt 2000 1000 100
  tx-ring-limit 3
  encapsulation aal5mux ip
  service-policy output P
"""


def test_circuit_is_printed_below_its_interface_and_compiled_into_the_port() -> None:
    device = router(CIRCUIT)
    assert render_interface(device, "ATM1/0") == (
        "interface ATM1/0\n"
        " ip address 10.0.0.1 255.255.255.252\n"
        " pvc 0/33\n"
        "  vbr-nrt 2000 1000 100\n"
        "  tx-ring-limit 3\n"
        "  encapsulation aal5mux ip\n"
        "  service-policy output P\n"
    )
    assert parse_config(render(device), device.hardware) == device
    port = compile_device(device)["interfaces"]["ATM1/0"]
    assert (port["encapsulation"], port["bandwidth_kbps"], port["tx_ring_limit"]) == ("aal5mux", 1000, 3)
    assert port["virtual_circuit"] == {"peak_bps": 2_000_000, "sustainable_bps": 1_000_000, "burst_cells": 100}
    assert port["service_policy_output"] == "P"
    assert port["enabled"] is True


def test_circuit_of_a_subinterface_belongs_to_the_port() -> None:
    text = CIRCUIT.replace("interface ATM1/0\n", "interface ATM1/0.1 point-to-point\n")
    device = router(text)
    port = compile_device(device)["interfaces"]["ATM1/0"]
    assert (port["encapsulation"], port["service_policy_output"]) == ("aal5mux", "P")
    owner = dict(device.carriers())["ATM1/0"]
    assert (owner.name, owner.address) == ("ATM1/0.1", IPv4Interface("10.0.0.1/30"))
    assert "ATM1/0.1" not in dict(device.carriers())
    assert "interface ATM1/0.1 point-to-point\n" in render(device)


def test_port_without_a_circuit_sends_nothing() -> None:
    assert compile_device(router(""))["interfaces"]["ATM1/0"]["enabled"] is False


@pytest.mark.parametrize(
    ("typed", "contract"),
    [
        ("ubr 512", {"peak_bps": 512_000, "sustainable_bps": None, "burst_cells": None}),
        ("cbr 512", {"peak_bps": 512_000, "sustainable_bps": None, "burst_cells": None}),
        ("vbr-nrt 512 256", {"peak_bps": 512_000, "sustainable_bps": 256_000, "burst_cells": None}),
        ("vbr-nrt 512 256\nno vbr-nrt", None),
    ],
)
def test_circuit_contracts_are_compiled(typed: str, contract: object) -> None:
    lines = "\n  ".join(typed.splitlines())
    device = router(f"interface ATM1/0\n pvc 0/33\n  {lines}")
    assert compile_device(device)["interfaces"]["ATM1/0"]["virtual_circuit"] == contract


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("interface FastEthernet0/0\n pvc 0/33", "% Invalid input"),
        ("interface ATM0/0/0", "% Invalid input"),
        ("interface ATM1/0\n tx-ring-limit 3", "% Invalid input"),
        ("interface ATM1/0\n duplex full", "% Invalid input"),
        ("interface ATM1/0\n clock rate 64000", "% Invalid input"),
        ("interface ATM1/0\n encapsulation ppp", "% Invalid input"),
        ("interface ATM1/0 point-to-point", "% Invalid input"),
        ("interface FastEthernet0/0.1 point-to-point", "% Invalid input"),
        ("interface ATM1/0.1\n encapsulation dot1Q 5", "% Invalid input"),
        ("interface ATM1/0\n pvc 0/33\n  vbr-nrt 256 512", "% Invalid input"),
        ("interface ATM1/0\n pvc 0/33\n pvc 0/34", "a port has one circuit, and ATM1/0 already has 0/33"),
        (
            "interface ATM1/0\n pvc 0/33\ninterface ATM1/0.1\n pvc 0/34",
            "a port has one circuit, and ATM1/0 already has 0/33",
        ),
        ("policy-map P\ninterface ATM1/0\n service-policy output P", "a policy is attached to a circuit"),
        ("interface ATM1/0\n pvc 0/33\n  pppoe-client dial-pool-number 1", "no session is set up"),
        ("interface ATM1/0\n pvc 0/33\n  dialer pool-member 1", "no session is set up"),
    ],
)
def test_invalid_atm_configuration_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(IosError) as refused:
        router(text)
    assert refusal in refused.value.message


def test_model_without_atm_refuses_atm_interfaces() -> None:
    with pytest.raises(IosError, match="Invalid input"):
        parse_config("interface ATM1/0", MODELS["2811"].hardware())
    assert (
        node_platform(Node(platform="ios", model="2811")).interface_problem(
            Node(platform="ios", model="2811"), "ATM1/0", "aal5snap"
        )
        == "one of FastEthernet0/0, FastEthernet0/1, Serial0/1/0, Serial0/1/1, which a 2811 has"
    )


def test_moved_circuit_is_removed_first() -> None:
    hardware = MODELS["7206VXR"].hardware()
    on_port = render(router(CIRCUIT))
    on_subinterface = render(router(CIRCUIT.replace("interface ATM1/0\n", "interface ATM1/0.1 point-to-point\n")))
    for before, after in ((on_port, on_subinterface), (on_subinterface, on_port)):
        device = parse_config(after, hardware)
        apply_config(device, "\n".join(undo_lines(before, after, hardware)))
        assert render(device) == before


# Show


def type_configuration(text: str) -> FakeRouter:
    router = FakeRouter("7206VXR")
    type_lines(router, f"configure terminal\n{text}\nend\n")
    return router


def test_show_interfaces_prints_an_atm_port() -> None:
    router = type_configuration("interface ATM1/0\nip address 10.0.0.1 255.255.255.252\npvc 0/33")
    printed = type_lines(router, "show interfaces ATM1/0\n")
    assert (
        "  Hardware is ENHANCED ATM PA\n"
        "  Internet address is 10.0.0.1/30\n"
        "  MTU 1500 bytes, sub MTU 1500, BW 44209 Kbit, DLY 190 usec, \n"
        "     reliability 255/255, txload 1/255, rxload 1/255\n"
        "  Encapsulation ATM, loopback not set, keepalive not set\n"
        "  Encapsulation(s): AAL5\n"
        "  4096 maximum active VCs, 1 current VCCs\n"
    ) in printed
    assert "Full-duplex" not in printed
    parsed = parse("ios", "show interfaces ATM1/0", printed.partition("\n")[2])
    assert parsed.parsed is not None, parsed.reason


def test_policy_of_a_circuit_is_shown_with_it() -> None:
    router = type_configuration("interface ATM1/0.1 point-to-point\npvc 0/33")
    policy = {"policy": "P", "classes": [class_counters()], "priority_queues": []}
    router.config["policy_maps"] = {"P": {"classes": [{"name": "class-default"}]}}
    router.interfaces["ATM1/0"] = interface_counters(policy_output=policy)
    for command in ("show policy-map interface", "show policy-map interface ATM1/0.1"):
        assert " ATM1/0.1: VC 0/33 - \n\n  Service-policy output: P\n" in type_lines(router, f"{command}\n")
    assert "ATM1/0.1                   unassigned" in type_lines(router, "show ip interface brief\n")


def test_circuit_is_shown_with_its_contract_and_ring() -> None:
    router = type_configuration(
        "interface ATM1/0.1 point-to-point\npvc 8/35\nvbr-nrt 2000 1000\ntx-ring-limit 6\nencapsulation aal5mux ip"
    )
    sent = {"packets": 7, "bytes": 700, "rate_bps": 0.0, "rate_pps": 0.0, "drops": 2}
    router.interfaces["ATM1/0"] = interface_counters(output=sent)
    printed = type_lines(router, "terminal length 0\nshow atm pvc 8/35\n").partition("show atm pvc 8/35\n")[2]
    assert printed.startswith(
        "ATM1/0.1: VCD: 1, VPI: 8, VCI: 35\n"
        "VBR-NRT, PeakRate: 2000, Average Rate: 1000, Burst Cells: 94\n"
        "AAL5-MUX, etype:0x0, Flags: 0x20, VCmode: 0x0\n"
    )
    assert parse("ios", "show atm pvc 8/35", printed).parsed == {
        "ATM1/0.1": {
            "8/35": {
                "vcd": 1,
                "category": "VBR-NRT",
                "peak_kbps": 2000,
                "sustainable_kbps": 1000,
                "burst_cells": 94,
                "encapsulation": "AAL5-MUX",
                "tx_ring_limit": 6,
                "in_packets": 0,
                "out_packets": 7,
                "in_bytes": 0,
                "out_bytes": 700,
                "in_drops": 0,
                "out_drops": 2,
                "status": "UP",
            }
        }
    }
    assert "VCD" not in type_lines(router, "show atm pvc 0/33\n")


# Links


def link_routers(framing: Framing, **address: IPv4Interface) -> Topology:
    ends = tuple(LinkEnd(node=node, interface="ATM1/0", **address) for node in ("R1", "R2"))
    link = Link(name="line", rate=Rate(2_000_000), framing=framing, ends=ends)
    node = Node(platform="ios", model="7206VXR")
    return Topology(nodes={"R1": node, "R2": node}, links=(link,))


@pytest.mark.parametrize("framing", [framing for framing, medium in MEDIUM.items() if medium == "atm"])
def test_startup_circuit_uses_the_framing_of_the_link(framing: Framing) -> None:
    topology = link_routers(framing, address=IPv4Interface("10.0.0.1/30"))
    device = router(startup_config(topology, "R1", LOGIN))
    port = compile_device(device)["interfaces"]["ATM1/0"]
    assert (port["enabled"], port["bandwidth_kbps"]) == (True, 2000)
    assert port["encapsulation"] == (framing if framing in ("aal5mux", "pppoa-mux") else "aal5snap")


def test_end_without_an_address_uses_the_configured_circuit() -> None:
    assert "pvc" not in startup_config(link_routers("aal5snap"), "R1", LOGIN)


@pytest.mark.parametrize(
    ("framing", "ip_bytes", "counted", "line"),
    [
        # The same values as in the tests of crates/qos-core/src/wire/framing.rs.
        ("ethernet", 40, 54, 84),
        ("ppp", 40, 44, 47),
        ("pppoe", 1492, 1514, 1538),
        ("aal5snap", 40, 52, 106),
        ("aal5mux", 40, 44, 53),
        ("aal5mux", 41, 45, 106),
        ("pppoa-mux", 1500, 1506, 32 * 53),
        ("pppoa-snap", 40, 50, 106),
        ("pppoeoa-snap", 1492, 1528, 32 * 53),
        ("pppoeoa-snap", 1497, 1533, 33 * 53),
    ],
)
def test_packet_has_counted_and_line_bytes_by_framing(framing: Framing, ip_bytes: int, counted: int, line: int) -> None:
    assert (ip_bytes + COUNTED_HEADER[framing], line_bytes(framing, ip_bytes)) == (counted, line)


# Overhead accounting

ACCOUNTED = """\
policy-map CHILD
 class class-default
  bandwidth remaining percent 90 account {child}
policy-map PARENT
 class class-default
  shape average 8000000 account {parent}
  service-policy CHILD
interface FastEthernet0/0
 service-policy output PARENT
"""


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("user-defined 24", {"user_defined": {"offset": 24, "atm": False}}),
        ("user-defined -14 atm", {"user_defined": {"offset": -14, "atm": True}}),
        ("qinq aal5 snap-dot1q-rbe", {"aal5": {"access": "qinq", "subscriber": "snap-dot1q-rbe"}}),
        ("dot1q aal5 mux-1483routed", {"aal5": {"access": "dot1q", "subscriber": "mux-1483routed"}}),
    ],
)
def test_accounting_is_printed_and_compiled(text: str, config: object) -> None:
    device = router(ACCOUNTED.format(child=text, parent=text), "hqf")
    printed = render(device)
    assert f"bandwidth remaining percent 90 account {text}\n" in printed
    assert f"shape average 8000000 account {text}\n" in printed
    assert parse_config(printed, device.hardware) == device
    compiled = compile_device(device)["policy_maps"]
    assert [compiled[name]["classes"][0]["account"] for name in ("CHILD", "PARENT")] == [config, config]


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (ACCOUNTED.format(child="user-defined 20", parent="user-defined 24"), "has to be that of class"),
        (ACCOUNTED.format(child="user-defined 20", parent="").replace(" account \n", "\n"), "has to be that of class"),
        (
            "class-map A\n match ip precedence 1\npolicy-map P\n class A\n  bandwidth 100 account user-defined 4\n"
            " class class-default\n  bandwidth 100\ninterface FastEthernet0/0\n service-policy output P",
            "the same in all classes of policy-map P",
        ),
        (
            "policy-map P\n class class-default\n  shape average 1m account user-defined 0 atm\n"
            "interface ATM1/0\n pvc 0/33\n  service-policy output P",
            "supported on Ethernet interfaces only",
        ),
        ("policy-map P\n class class-default\n  shape average 1m account user-defined 64", "% Invalid input"),
    ],
)
def test_invalid_overhead_accounting_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(IosError) as refused:
        router(text, "hqf")
    assert refusal in refused.value.message


def test_classic_generation_has_no_accounting() -> None:
    with pytest.raises(IosError, match="introduced with HQF"):
        router("policy-map P\n class class-default\n  shape average 1000000 account user-defined 4")


def test_child_policies_of_ios_xe_inherit_accounting() -> None:
    text = ACCOUNTED.format(child="", parent="user-defined 24").replace(" account \n", "\n")
    with pytest.raises(IosError, match="has to be that of class"):
        router(text, "hqf")
    hardware = MODELS["ISR4451"].hardware("ios-xe")
    device = parse_config(text.replace("FastEthernet0/0", "GigabitEthernet0/0/0"), hardware)
    compiled = compile_device(device)["policy_maps"]
    assert compiled["CHILD"]["classes"][0]["account"] == {"user_defined": {"offset": 24, "atm": False}}
    assert "percent 90\n" in render(device)
