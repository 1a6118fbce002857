"""IEEE 802.1Q subinterfaces: typed and refused lines, the data plane's configuration, output, both ends of a link."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ios_configured import running_lines
from test_ios_refusals import check_refusal

from experiment_files import experiment_file
from ios_strategies import hardware
from qoslab.errors import ExperimentError
from qoslab.genie.show_parser import parse
from qoslab.ios.compile import compile_device
from qoslab.ios.config import ConfigSession
from qoslab.ios.environment import PortState
from qoslab.ios.model.device import Device, Generation
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from qoslab.ios.show.interfaces import show_ip_interface_brief, unwired_counters
from qoslab.ios.show.policy_interface import show_policy_map_interface
from qoslab.ios.show.subinterfaces import show_subinterface, show_vlans
from qoslab.lab_kinds import lab_kind
from qoslab.model.instants import MeasurementDemand
from qoslab.platforms import MODELS
from qoslab.schema import configuration_text, load_experiment, load_sweep
from qoslab.simulation.scenario import build_scenario, configured_routers
from rollback_lines import undo_lines

EXPERIMENTS = Path(__file__).parents[2] / "experiments"

BASE = """\
class-map match-any Voice
 match dscp ef
class-map match-any Vlans
 match vlan 100 200-299
 match cos 5
policy-map Child
 class Voice
  priority percent 20
policy-map Plain
 class class-default
  service-policy Child
policy-map Mark
 class Voice
  set cos 5
policy-map Shape
 class class-default
  shape average 1000000
  service-policy Child
interface FastEthernet0/0.100
 description one
 encapsulation dot1Q 100
 ip address 10.1.0.1 255.255.255.0
 service-policy input Mark
 service-policy output Shape
interface FastEthernet0/0.20
 bandwidth 5000
 encapsulation dot1Q 7 native
interface FastEthernet0/0.300
"""


def device(generation: Generation = "hqf") -> Device:
    return parse_config(BASE, hardware(generation))


def test_running_configuration_lists_subinterfaces_after_their_port() -> None:
    lines = running_lines(device())
    start = lines.index("interface FastEthernet0/0")
    assert lines[start : lines.index("interface FastEthernet0/1")] == [
        "interface FastEthernet0/0",
        "no ip address",
        "duplex auto",
        "speed auto",
        "!",
        "interface FastEthernet0/0.20",
        "encapsulation dot1Q 7 native",
        "bandwidth 5000",
        "no ip address",
        "!",
        "interface FastEthernet0/0.100",
        "description one",
        "encapsulation dot1Q 100",
        "ip address 10.1.0.1 255.255.255.0",
        "service-policy input Mark",
        "service-policy output Shape",
        "!",
        "interface FastEthernet0/0.300",
        "no ip address",
        "!",
    ]
    assert "match vlan 100 200-299" in lines
    again = parse_config(render(device()), hardware("hqf"))
    assert again == device()


def test_data_plane_has_tagged_subinterfaces_below_their_port() -> None:
    config = compile_device(device())
    assert "FastEthernet0/0.100" not in config["interfaces"]
    none = {"service_policy_input": None, "service_policy_output": None}
    assert config["interfaces"]["FastEthernet0/0"]["subinterfaces"] == {
        "FastEthernet0/0.20": {"enabled": True, "vlan": 7, "native": True, "bandwidth_kbps": 5_000, **none},
        "FastEthernet0/0.100": {
            "enabled": True,
            "vlan": 100,
            "native": False,
            "bandwidth_kbps": 100_000,
            "service_policy_input": "Mark",
            "service_policy_output": "Shape",
        },
    }
    assert "subinterfaces" not in config["interfaces"]["FastEthernet0/1"]
    assert config["class_maps"]["Vlans"]["criteria"][0] == {
        "type": "vlan",
        "negate": False,
        "ranges": [[100, 100], [200, 299]],
    }


REFUSALS: list[tuple[str, str]] = [
    (
        "interface Fa0/0.300\nip address 10.3.0.1 255.255.255.0",
        "% Configuring IP routing on a LAN subinterface is only",
    ),
    ("interface Fa0/0.300\nencapsulation dot1q 100", "%Configuration of multiple subinterfaces of the same main"),
    (
        "interface Fa0/0.300\nencapsulation dot1q 8 native",
        "% The native VLAN is already configured on FastEthernet0/0.20",
    ),
    ("interface Fa0/0.300\nencapsulation dot1q 4095", "@20"),
    ("interface Fa0/0.300\nencapsulation ppp", "@14"),
    ("interface Fa0/0.300\nspeed 100", "@0"),
    ("interface Fa0/0.300\ntx-ring-limit 3", "% Not supported: hold queue and transmit ring belong to the port"),
    ("interface Fa0/0.300\nservice-policy output Child", "CBWFQ : Not supported on subinterfaces"),
    ("interface Fa0/0\nservice-policy output Shape", "Attaching service policy to main and sub-interface concurrently"),
    ("interface Fa0/0\nservice-policy input Mark", "Attaching service policy to main and sub-interface concurrently"),
    ("interface Fa0/0\nencapsulation dot1q 5", "@14"),
    ("interface Serial0/0.1", "% Not supported: subinterfaces of serial lines are Frame Relay circuits"),
    ("interface Fa0/7.1", "@10"),
    ("no interface Fa0/0", "% Removal of physical interfaces is not permitted"),
    ("no interface Fa0/1.1", "@13"),
    ("policy-map Shape\nclass class-default\nno shape", "CBWFQ : Hierarchy supported only if shaping is configured"),
    ("policy-map Shape\nclass Voice\nbandwidth 64", "CBWFQ : Not supported on subinterfaces"),
    ("class-map match-any Vlans\nmatch vlan 300-299", "@11"),
    (
        "class-map match-any Vlans\nmatch input-interface Fa0/0.100",
        "% match input-interface does not accept a subinterface here",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSALS, ids=[text.replace("\n", "; ") for text, _ in REFUSALS])
def test_refused_commands_name_the_reason(text: str, message: str) -> None:
    check_refusal(device(), text, message)


def test_child_needs_a_shaper_above() -> None:
    check_refusal(
        device(),
        "interface Fa0/1.1\nservice-policy output Plain",
        "CBWFQ : Hierarchy supported only if shaping is configured in this class",
    )


def test_help_spells_dot1q_like_the_device() -> None:
    session = ConfigSession(device())
    session.execute("interface Fa0/0.300")
    assert session.prompt == "(config-subif)"
    for line, words in (("encapsulation ", ["dot1Q"]), ("encapsulation dot1q 5 ", ["native", "<cr>"])):
        assert [item.word for item in session.help(line) if not item.text.startswith("Not supported")] == words


def test_subinterface_without_vlan_has_no_address() -> None:
    changed = device()
    apply_config(changed, "interface Fa0/0.100\nno encapsulation dot1Q 100")
    interface = changed.interfaces["FastEthernet0/0.100"]
    assert (interface.vlan, interface.address, interface.service_policy_output) == (None, None, "Shape")


@pytest.mark.parametrize(
    "text",
    [
        "no interface Fa0/0.100",
        "interface Fa0/1.5\nencapsulation dot1q 5\nip address 10.5.0.1 255.255.255.0\nservice-policy output Shape",
        "interface Fa0/0.100\nencapsulation dot1q 101",
        # Two names that are exchanged.
        "interface Fa0/0.100\nencapsulation dot1q 9\ninterface Fa0/0.20\nencapsulation dot1q 100 native\n"
        "interface Fa0/0.100\nencapsulation dot1q 7",
        "interface Fa0/0.100\nno service-policy output Shape\nno service-policy input Mark\n"
        "interface Fa0/0\nservice-policy output Shape",
    ],
)
def test_every_subinterface_change_is_undone(text: str) -> None:
    before = device()
    after = before.copy()
    apply_config(after, text)
    assert after != before
    restored = after.copy()
    apply_config(restored, "\n".join(undo_lines(render(before), render(after), before.hardware)))
    assert restored == before


def test_removed_subinterface_removes_its_routes() -> None:
    changed = device()
    apply_config(changed, "ip route 10.9.0.0 255.255.0.0 Fa0/0.100\nno interface Fa0/0.100")
    assert (changed.routes, "FastEthernet0/0.100" in changed.interfaces) == ([], False)


# Prints.


def counters(router: Device) -> dict[str, Any]:
    chassis = MODELS["3725"]
    return {
        name: unwired_counters(each, chassis, router.subinterfaces(name))
        for name, each in router.interfaces.items()
        if each.parent is None and not each.is_serial
    }


def test_genie_parses_show_interfaces_of_a_subinterface() -> None:
    router = device()
    port = PortState(mac="02:00:00:00:00:01", carrier=True, mtu=1500)
    shown = show_subinterface(
        router, router.interfaces["FastEthernet0/0.100"], MODELS["3725"], port, "never", "Kbit/sec"
    )
    assert shown == (
        "FastEthernet0/0.100 is up, line protocol is up \n"
        "  Hardware is Gt96k FE, address is 0200.0000.0001 (bia 0200.0000.0001)\n"
        "  Description: one\n"
        "  Internet address is 10.1.0.1/24\n"
        "  MTU 1500 bytes, BW 100000 Kbit/sec, DLY 100 usec, \n"
        "     reliability 255/255, txload 1/255, rxload 1/255\n"
        "  Encapsulation 802.1Q Virtual LAN, Vlan ID  100.\n"
        "  ARP type: ARPA, ARP Timeout 04:00:00\n"
        "  Keepalive set (10 sec)\n"
        '  Last clearing of "show interface" counters never\n'
    )
    parsed = parse("ios", "show interfaces", shown).parsed
    assert parsed is not None
    found = parsed["FastEthernet0/0.100"]
    assert found["encapsulations"] == {"encapsulation": "dot1q", "first_dot1q": "100"}
    assert (found["oper_status"], found["bandwidth"], list(found["ipv4"])) == ("up", 100000, ["10.1.0.1/24"])


def test_subinterface_is_down_with_its_port() -> None:
    router = device()
    router.interfaces["FastEthernet0/0"].shutdown = True
    port = PortState(mac="02:00:00:00:00:01", carrier=True, mtu=1500)
    shown = show_ip_interface_brief(router, {"FastEthernet0/0": port}, ())
    parsed = parse("ios", "show ip interface brief", shown).parsed
    assert parsed is not None
    found = parsed["interface"]["FastEthernet0/0.100"]
    assert (found["ip_address"], found["status"], found["protocol"]) == ("10.1.0.1", "administratively down", "down")


def test_qoslab_parses_show_vlans() -> None:
    router = device()
    counted = counters(router)
    counted["FastEthernet0/0"]["subinterfaces"]["FastEthernet0/0.100"] |= {
        "input": {"packets": 3, "bytes": 354},
        "output": {"packets": 11, "bytes": 1298},
    }
    shown = show_vlans(router, counted)
    nothing = {"packets": 0, "bytes": 0}
    assert parse("ios", "show vlans", shown).parsed == {
        "7": {
            "interfaces": ["FastEthernet0/0.20"],
            "native": ["FastEthernet0/0.20"],
            "counters": {"FastEthernet0/0.20": {"input": nothing, "output": nothing}},
        },
        "100": {
            "interfaces": ["FastEthernet0/0.100"],
            "native": [],
            "addresses": ["10.1.0.1"],
            "counters": {
                "FastEthernet0/0.100": {
                    "input": {"packets": 3, "bytes": 354},
                    "output": {"packets": 11, "bytes": 1298},
                }
            },
        },
    }
    assert show_vlans(router, counted, 7).count("Virtual LAN ID") == 1


def test_policies_of_subinterfaces_are_shown_and_parsed() -> None:
    router = device()
    counted = counters(router)
    policy = {"policy": "Mark", "classes": [], "priority_queues": []}
    counted["FastEthernet0/0"]["subinterfaces"]["FastEthernet0/0.100"]["policy_input"] = policy
    reply: Any = {"time_ns": 0, "uptime_ns": 0, "interfaces": counted, "access_lists": {}, "switch": None}
    config = compile_device(router)
    shown = show_policy_map_interface(config, reply)
    assert shown.splitlines()[:3] == [" FastEthernet0/0.100 ", "", "  Service-policy input: Mark"]
    assert show_policy_map_interface(config, reply, interface="FastEthernet0/0.100") == shown
    assert show_policy_map_interface(config, reply, interface="FastEthernet0/0") == ""


# Both ends of a link.


def text() -> str:
    return (EXPERIMENTS / "dot1q-subinterfaces.yml").read_text()


CORE = """\
interface FastEthernet0/0.100
 encapsulation dot1Q 100{native}
 ip address 10.0.100.2 255.255.255.252
ip route 10.1.0.0 255.255.255.0 10.0.100.1
"""


@pytest.mark.parametrize(
    ("core", "found"),
    [
        (
            CORE.format(native=""),
            "found VLAN 200 on FastEthernet0/0.200 of edge in arm shaped, expected it on a subinterface "
            "of FastEthernet0/0 of core too",
        ),
        (
            CORE.format(native=" native"),
            "found VLAN 100 on FastEthernet0/0.100 of edge in arm shaped, expected FastEthernet0/0.100 "
            "of core to agree that it is not native",
        ),
        (
            CORE.format(native="") + "interface FastEthernet0/1.5\n encapsulation dot1Q 5\n",
            "found VLAN 5 on FastEthernet0/1.5 of core in arm shaped, expected no tags on a link to the host gold",
        ),
    ],
)
def test_tags_unknown_to_the_other_end_are_found(tmp_path: Path, core: str, found: str) -> None:
    templates = tmp_path / "templates"
    templates.mkdir()
    (templates / "core.ios.j2").write_text(core)
    (templates / "dot1q-edge.ios.j2").write_text((EXPERIMENTS / "templates/dot1q-edge.ios.j2").read_text())
    start = text().replace("dot1q-core.ios.j2", "core.ios.j2")
    without_answer = re.sub(r"(?ms)^answer:.*?(?=^\w)", "", start)
    file = experiment_file(tmp_path, "tags.yml", without_answer[: without_answer.index("compare:")])
    with pytest.raises(ExperimentError) as caught:
        load_experiment(file)
    assert found in [each.message for each in caught.value.findings]


def test_simulation_has_the_vlans_of_both_ends() -> None:
    sweep = load_sweep(EXPERIMENTS / "dot1q-subinterfaces.yml", None, lab_kind("simulated").check)
    experiment = sweep.experiment
    texts = configuration_text(EXPERIMENTS / "dot1q-subinterfaces.yml", experiment, experiment.arms[0])
    scenario = build_scenario(experiment, configured_routers(experiment, texts), 1, MeasurementDemand())
    trunk = next(link for link in scenario["links"] if link["name"] == "trunk")
    assert ["address" in end for end in trunk["ends"]] == [False, False]
    assert trunk["vlans"] == [
        {
            "vlan": vlan,
            "native": False,
            "ends": [
                {"interface": f"FastEthernet0/0.{vlan}", "address": f"10.0.{vlan}.1/30"},
                {"interface": f"FastEthernet0/0.{vlan}", "address": f"10.0.{vlan}.2/30"},
            ],
        }
        for vlan in (100, 200)
    ]
    assert json.loads(json.dumps(scenario)) == scenario
