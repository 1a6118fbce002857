"""Import of routers: running configurations and counters become a topology, policies and an experiment."""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address
from pathlib import Path

import pandas as pd
import pytest

from levels import value_by_level
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.exchange.readers import detect_format
from qoslab.exchange.routers import ImportChoices, import_routers
from qoslab.exchange.routers.anonymous import Anonymiser
from qoslab.exchange.routers.effects import ENCRYPTED, MARKS, NO_EFFECT, NOT_IP, PATH, effect_of_block
from qoslab.exchange.routers.import_result import ImportResult
from qoslab.exchange.routers.show_values import read_interfaces, read_policies, read_routes, read_version
from qoslab.exchange.routers.terminal_text import split_outputs
from qoslab.platforms.startup import startup_config
from qoslab.schema import load_sweep
from qoslab.schema.document import read_document
from qoslab.schema.topology import load_topology
from qoslab.simulation.check import simulation_problems
from router_configs import CONFIGS, SECRETS, addressed_port, router_config
from router_configs_odd import ODD

POLICIES = """\
 GigabitEthernet0/0/0

  Service-policy output: PARENT

    Class-map: class-default (match-any)
      900000 packets, 630000000 bytes
      5 minute offered rate 12000000 bps, drop rate 0000 bps
      Match: any

      Service-policy : CHILD

        Class-map: REALTIME (match-any)
          100000 packets, 21400000 bytes
          5 minute offered rate 856000 bps, drop rate 0000 bps
          Match:  dscp cs5 (40) ef (46)
        Class-map: VIDEO (match-any)
          100000 packets, 101400000 bytes
          5 minute offered rate 4056000 bps, drop rate 0000 bps
        Class-map: class-default (match-any)
          700000 packets, 499800000 bytes
          5 minute offered rate 7140 kbps, drop rate 0 bps
          Match: any
"""
INTERFACES = """\
GigabitEthernet0/0/0 is up, line protocol is up
  Hardware is ISR4331-3x1GE, address is 0000.0c07.ac01 (bia 0000.0c07.ac01)
  Internet address is 203.0.113.66/30
  MTU 1500 bytes, BW 50000 Kbit/sec, DLY 10 usec,
  Full Duplex, 100Mbps, link type is auto, media type is RJ45
  5 minute input rate 9000000 bits/sec, 1500 packets/sec
  5 minute output rate 12000000 bits/sec, 2100 packets/sec
GigabitEthernet0/0/1 is up, line protocol is up
  Internet address is 10.43.31.1/24
  MTU 1500 bytes, BW 1000000 Kbit/sec, DLY 10 usec,
  Full Duplex, 1000Mbps, link type is auto, media type is RJ45
  5 minute input rate 12000000 bits/sec, 2100 packets/sec
  5 minute output rate 9000000 bits/sec, 1500 packets/sec
GigabitEthernet0/0/2 is administratively down, line protocol is down
"""
VERSION = """\
Cisco IOS XE Software, Version 16.09.05
Cisco IOS Software [Fuji], ISR Software (X86_64_LINUX_IOSD-UNIVERSALK9-M), Version 16.9.5, RELEASE SOFTWARE (fc1)
ROM: IOS-XE ROMMON
cisco ISR4331/K9 (1RU) processor with 1795979K/6147K bytes of memory.
"""


def import_texts(
    folder: Path, texts: dict[str, str], choices: ImportChoices | None = None, to: str = "to"
) -> ImportResult:
    files = []
    for name, text in texts.items():
        files.append(folder / name)
        files[-1].write_text(text, encoding="utf-8")
    return import_routers(files, folder / to, choices or ImportChoices())


def write_files(folder: Path) -> str:
    return "".join(each.read_text(encoding="utf-8") for each in sorted(folder.rglob("*")) if each.is_file())


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", CONFIGS)
def test_whole_configuration_becomes_a_valid_experiment(tmp_path: Path, name: str) -> None:
    made = import_texts(tmp_path, {f"{name}.txt": CONFIGS[name]})
    assert detect_format(tmp_path / f"{name}.txt") == "router"
    document = read_document(made.experiment)
    experiment = load_sweep(made.experiment, {}).experiment
    assert not simulation_problems(experiment, document, made.experiment)
    load_topology(made.folder / "topology.yml")
    assert len(made.network.hosts) >= 2 and made.offered.flows
    assert all(each.could_change and each.text and each.first > 0 for each in made.left)
    assert not any(secret in write_files(made.folder) for secret in SECRETS)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", CONFIGS)
def test_anonymous_import_changes_only_names(tmp_path: Path, name: str) -> None:
    plain = import_texts(tmp_path, {f"{name}.txt": CONFIGS[name]}, to="plain")
    other = import_texts(tmp_path, {f"{name}.txt": CONFIGS[name]}, ImportChoices(anonymous=True), to="other")
    assert [each.could_change for each in plain.left] == [each.could_change for each in other.left]
    one, two = (sorted((each.bps, each.dscp, each.protocol) for each in made.offered.flows) for made in (plain, other))
    assert one == two
    text = write_files(other.folder)
    hostname = re.search(r"hostname (\S+)", CONFIGS[name])
    assert hostname is not None
    for word in (
        hostname[1],
        "WAN-EDGE",
        "PARENT",
        "VOICE",
        "example.net",
        "Rack 7",
        "description to MPLS",
        "user@isp",
    ):
        assert not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ODD)
def test_unusual_pasted_input_becomes_a_valid_experiment(tmp_path: Path, name: str) -> None:
    made = import_texts(tmp_path, {"a.txt": ODD[name]})
    experiment = load_sweep(made.experiment, {}).experiment
    assert not simulation_problems(experiment, read_document(made.experiment), made.experiment)
    assert len(made.network.hosts) >= 2 and made.offered.flows
    assert not any(each.at.port == "GigabitEthernet9/9" for each in made.network.hosts)
    assert not any(secret in write_files(made.folder) for secret in SECRETS)
    has_policy = "service-policy" in ODD[name]
    assert ("service-policy" in "".join(each.read_text() for each in made.folder.glob("templates/*"))) == has_policy


def test_ipv6_addresses_and_routes_are_in_the_topology(tmp_path: Path) -> None:
    first = (
        "hostname A\nversion 15.2\ninterface GigabitEthernet0/0\n ip address 10.0.0.1 255.255.255.252\n"
        " ipv6 address FE80::1 link-local\n ipv6 address 2001:db8::1/64\n"
        "interface GigabitEthernet0/1\n ipv6 address 2001:db8:a::1/64\n ipv6 ospf 1 area 0\n"
        "interface Serial0/0/0\n ip address 10.9.0.1 255.255.255.252\n ipv6 address 2001:db8:9::1/64\n"
    )
    second = (
        "hostname B\nversion 15.2\ninterface GigabitEthernet0/0\n ip address 10.0.0.2 255.255.255.252\n"
        " ipv6 address 2001:db8::2/64\ninterface GigabitEthernet0/1\n ip address 10.2.0.1 255.255.255.0\n"
        " ipv6 address 2001:db8:b::1/127\n"
    )
    made = import_texts(tmp_path, {"a.txt": first, "b.txt": second})
    topology = load_sweep(made.experiment, {}).experiment.topology
    own = {(end.node, end.interface): str(end.ipv6_address) for link in topology.links for end in link.ends}
    assert own["A", "GigabitEthernet0/0"] == "2001:db8::1/64"
    assert own["A-Gi0-1", "eth0"] == "2001:db8:a::2/64"
    assert own["B-Gi0-1", "eth0"] == "2001:db8:b::/127"
    # The router at the other end of a serial line only has IPv4.
    assert own["A", "Serial0/0/0"] == "None"
    routes = {name: {(str(each.prefix), str(each.via)) for each in topology.nodes[name].routes} for name in "AB"}
    assert ("2001:db8:b::/127", "2001:db8::2") in routes["A"]
    assert ("2001:db8:a::/64", "2001:db8::1") in routes["B"]
    ignored = [each.text for each in made.left]
    assert "ipv6 ospf 1 area 0" in ignored and "ipv6 address 2001:db8::1/64" not in ignored
    assert "ipv6 address 2001:db8:9::1/64" in ignored


def test_overlapping_subnets_of_vrfs_keep_their_policies(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"a.txt": ODD["mpls pe"]})
    (router,) = made.network.routers.values()
    blue = router.find_attached_interface("GigabitEthernet0/2.200")
    assert blue is not None and str(blue.address) == "192.0.2.1/30"
    assert any("of VRF BLUE, used in another VRF" in note for note in router.notes)


def test_policy_of_one_spoke_represents_the_tunnel_of_a_hub(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"a.txt": ODD["dmvpn hub"]})
    template = (made.folder / "templates/HUB.ios.j2").read_text()
    assert "interface GigabitEthernet0/0/0\n service-policy output SPOKE-10M" in template
    record = json.loads((made.folder / "import.json").read_text())
    assert any("the policy SPOKE-10M of a spoke in group" in note for note in record["routers"][0]["notes"])
    assert any("map group SPOKE-50M" in each.text for each in made.left)


def test_fast_serial_lines_have_a_separate_clock_rate(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"a.txt": ODD["t3"]})
    topology = load_sweep(made.experiment, {}).experiment.topology
    assert {link.rate.bps for link in topology.links if link.framing == "hdlc"} == {44_210_000}
    assert "clock rate" not in startup_config(topology, "T3", {"user": "u", "password": "p", "enable": "e"})


UNMARKED = CONFIGS["isr4331-edge"].replace(" service-policy input LAN-IN\n", "")


def test_load_has_the_rates_of_the_classes(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"a.txt": UNMARKED, "b.txt": POLICIES, "c.txt": VERSION})
    router = made.network.routers["EDGE4331"]
    assert router.chassis.model == "ISR4331" and router.chassis.release == "16.9.5"
    flows = {each.name: each for each in made.offered.flows}
    assert set(flows) == {"REALTIME", "VIDEO", "class-default"}
    assert {name: each.bps for name, each in flows.items()} == {
        "REALTIME": 856000 * 200 // 214,
        "VIDEO": 4056000 * 1000 // 1014,
        "class-default": 7140000 * 700 // 714,
    }
    assert (flows["REALTIME"].dscp, flows["VIDEO"].dscp, flows["REALTIME"].size) == (40, 34, 200)


def test_load_remarked_by_an_input_policy_is_omitted(tmp_path: Path) -> None:
    """Import loads: LAN-IN sets DSCP 0 except for voice and web, so no packet from there is in VIDEO."""
    made = import_texts(tmp_path, {"a.txt": CONFIGS["isr4331-edge"], "b.txt": POLICIES})
    flows = {each.name: each.dscp for each in made.offered.flows}
    assert flows == {"REALTIME": 46, "class-default": 0}
    assert made.offered.idle == {"VIDEO"} and "4.056 Mb/s of class class-default/VIDEO" in made.offered.notes[0]


def test_load_of_other_interfaces_equals_their_rate(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"a.txt": CONFIGS["isr4331-edge"], "b.txt": POLICIES + INTERFACES})
    back = [each for each in made.offered.flows if each.destination.at.carrier == "GigabitEthernet0/0/1"]
    assert [each.bps for each in back] == [9000000 * 736 // 750]
    assert {str(each.rate) for each in made.network.routers["EDGE4331"].attached} == {"100 Mb/s", "1 Gb/s"}


@pytest.mark.long
def test_simulated_classes_have_the_rates_of_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = import_texts(tmp_path, {"a.txt": UNMARKED, "b.txt": POLICIES})
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(made.experiment), "--lab", "simulated", "--duration", "4s"]) == 0
    (table,) = (tmp_path / "runs").glob("*/2*/tables/metrics.parquet")
    metrics = pd.read_parquet(table)
    passed = metrics[metrics["metric"].str.startswith("class.passed(class-default/")].set_index("metric")["value"]
    assert passed["class.passed(class-default/VIDEO)"] == pytest.approx(4_056_000, rel=0.01)
    assert passed["class.passed(class-default/class-default)"] == pytest.approx(7_140_000, rel=0.01)
    # The measured call belongs to the class too: 50 packets of 214 bytes per second.
    assert passed["class.passed(class-default/REALTIME)"] == pytest.approx(856_000 + 85_600, rel=0.01)


def test_assumed_load_is_stated_without_counters(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"a.txt": CONFIGS["881-pppoe"]})
    assert [each.bps for each in made.offered.flows] == [1_250_000, 1_250_000]
    assert "no counters in the input: the load is 50% of the rate" in made.offered.notes[-1]


def paste_files(*outputs: tuple[str, str]) -> str:
    return "".join(f"EDGE4331#show {command}\n{text}" for command, text in outputs) + "EDGE4331#\n"


def test_pasted_session_gives_the_same_result_as_files(tmp_path: Path) -> None:
    parts = {"a.txt": CONFIGS["isr4331-edge"], "b.txt": POLICIES, "c.txt": INTERFACES, "d.txt": VERSION}
    commands = ("running-config", "policy-map interface", "interfaces", "version")
    whole = paste_files(*zip(commands, parts.values(), strict=True)).replace("\n", "\r\n")
    whole = whole.replace("license boot", "\b\b --More-- \b\b\b\b\b\b\b\b\b         \b\b\b\b\b\b\b\b\blicense boot")
    one = import_texts(tmp_path, parts, to="one")
    other = import_texts(tmp_path, {"whole.txt": whole}, to="other")
    assert one.offered.flows == other.offered.flows
    templates = [made.folder / "templates/EDGE4331.ios.j2" for made in (one, other)]
    assert templates[0].read_text() == templates[1].read_text()


ACCESS = router_config(
    "15.7",
    "ACCESS",
    addressed_port("GigabitEthernet0/0", "10.0.12.1", "255.255.255.252"),
    addressed_port("GigabitEthernet0/1", "10.1.0.1", "255.255.255.0"),
    "ip route 0.0.0.0 0.0.0.0 10.0.12.2\n",
)
CORE = router_config(
    "15.7",
    "CORE",
    addressed_port("GigabitEthernet0/0", "10.0.12.2", "255.255.255.252"),
    addressed_port("GigabitEthernet0/1", "10.2.0.1", "255.255.255.0"),
    "ip route 10.1.0.0 255.255.255.0 10.0.12.1\n",
)


def test_routers_are_joined_by_their_subnet(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"access.txt": ACCESS, "core.txt": CORE})
    ends = [{(end.router, end.carrier) for end in link.ends} for link in made.network.joined]
    assert ends == [{("ACCESS", "GigabitEthernet0/0"), ("CORE", "GigabitEthernet0/0")}]
    assert {str(each.address.network) for each in made.network.hosts} == {"10.1.0.0/24", "10.2.0.0/24"}
    routes = {name: {str(prefix): str(via) for prefix, via in own.items()} for name, own in made.network.routes.items()}
    assert routes == {"ACCESS": {"10.2.0.0/24": "10.0.12.2"}, "CORE": {"10.1.0.0/24": "10.0.12.1"}}


def test_anonymous_counters_give_the_same_load(tmp_path: Path) -> None:
    texts = {"EDGE4331.txt": UNMARKED, "b.txt": POLICIES + INTERFACES, "c.txt": VERSION}
    plain = import_texts(tmp_path, texts, to="plain")
    other = import_texts(tmp_path, texts, ImportChoices(anonymous=True), to="other")
    one, two = (sorted((each.bps, each.dscp, each.size) for each in made.offered.flows) for made in (plain, other))
    assert one == two and len(one) == 4
    assert set(other.network.routers) == {"R1"} and other.network.routers["R1"].chassis.model == "ISR4331"
    text = write_files(other.folder)
    assert not any(word in text for word in ("EDGE4331", "REALTIME", "PARENT", "b.txt", "sha256"))


def test_third_router_of_a_subnet_is_omitted(tmp_path: Path) -> None:
    third = router_config("15.7", "THIRD", addressed_port("GigabitEthernet0/0", "10.0.12.3", "255.255.255.252"))
    third = third.replace("10.0.12.3", "10.1.0.3").replace("255.255.255.252", "255.255.255.0")
    other = third.replace("hostname THIRD", "hostname FOURTH").replace("10.1.0.3", "10.1.0.4")
    made = import_texts(tmp_path, {"a.txt": ACCESS, "b.txt": third, "c.txt": other})
    assert made.network.routers["FOURTH"].left_out == {
        "GigabitEthernet0/0": "10.1.0.0/24 joins ACCESS and THIRD already: a link has two ends"
    }
    load_sweep(made.experiment, {})


ROUTES = """\
Gateway of last resort is not set
      10.0.0.0/8 is variably subnetted, 3 subnets, 2 masks
O        10.2.0.0/24 [110/2] via 10.0.13.2, 00:01:02, GigabitEthernet0/2
"""


def test_parts_of_a_configuration_are_joined(tmp_path: Path) -> None:
    text = (
        "R7#show running-config | section class-map|policy-map\nclass-map match-any V\n match dscp ef\n"
        "policy-map LLQ\n class V\n  priority 512\nR7#show running-config interface gi0/0\n"
        "Building configuration...\n\n"
        "Current configuration : 99 bytes\n!\ninterface GigabitEthernet0/0\n ip address 10.0.0.1 255.255.255.0\n"
        " service-policy output LLQ\nend\n\nR7#show running-config interface gi0/1\nBuilding configuration...\n\n"
        "interface GigabitEthernet0/1\n ip address 10.1.0.1 255.255.255.0\nend\n\nR7#\n"
    )
    made = import_texts(tmp_path, {"a.txt": text})
    assert {each.at.port for each in made.network.hosts} == {"GigabitEthernet0/0", "GigabitEthernet0/1"}
    assert "service-policy output LLQ" in (made.folder / "templates/R7.ios.j2").read_text()


@pytest.mark.parametrize("prompts", [True, False])
def test_one_file_may_have_several_routers(tmp_path: Path, *, prompts: bool) -> None:
    text = f"ACCESS#sh run\n{ACCESS}ACCESS#\nCORE#sh run\n{CORE}CORE#\n" if prompts else ACCESS + CORE
    made = import_texts(tmp_path, {"both.txt": text})
    assert set(made.network.routers) == {"ACCESS", "CORE"} and len(made.network.joined) == 1


def test_routes_of_the_input_override_shortest_paths(tmp_path: Path) -> None:
    """Import two lines between the routers: `show ip route` says which one carries the packets."""
    second = [addressed_port("GigabitEthernet0/2", f"10.0.13.{number}", "255.255.255.252") for number in (1, 2)]
    texts = {
        "a.txt": ACCESS.replace("interface GigabitEthernet0/1", f"{second[0]}interface GigabitEthernet0/1"),
        "b.txt": CORE.replace("interface GigabitEthernet0/1", f"{second[1]}interface GigabitEthernet0/1"),
    }
    plain = import_texts(tmp_path, texts, to="plain")
    routed = import_texts(tmp_path, texts | {"c.txt": f"ACCESS#show ip route\n{ROUTES}ACCESS#\n"}, to="routed")
    vias = [
        {str(prefix): str(via) for prefix, via in made.network.routes["ACCESS"].items()}["10.2.0.0/24"]
        for made in (plain, routed)
    ]
    assert vias == ["10.0.12.2", "10.0.13.2"]


def test_anonymous_routers_are_still_joined(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"access.txt": ACCESS, "core.txt": CORE}, ImportChoices(anonymous=True))
    assert len(made.network.joined) == 1 and set(made.network.routers) == {"R1", "R2"}
    text = write_files(made.folder)
    assert "10.0.12." not in text and "access.txt" not in text


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("ip address 8.8.4.1 255.255.255.0", "ip route 8.8.4.0 255.255.255.0 Null0", 24),
        ("ip address 8.8.4.1 255.255.255.0", "neighbor 8.8.5.9 remote-as 65000", 23),
        ("permit ip 9.1.0.0 0.0.255.255 any", "network 9.1.2.0 mask 255.255.255.0", 16),
    ],
)
def test_anonymous_addresses_keep_their_prefixes(first: str, second: str, shared: int) -> None:
    names = Anonymiser(b"key")
    one, two = (
        IPv4Address(re.findall(r"\d+\.\d+\.\d+\.\d+", names.anonymise_line(line))[0]) for line in (first, second)
    )
    assert 32 - (int(one) ^ int(two)).bit_length() >= shared
    assert str(one) not in first and str(two) not in second


def test_anonymous_masks_and_special_addresses_stay() -> None:
    names = Anonymiser(b"key")
    line = "ip route 0.0.0.0 0.0.0.0 203.0.113.9"
    assert names.anonymise_line(line) == line
    assert names.anonymise_line("permit ip 9.1.0.0 0.0.255.255 any").endswith(".0.0 0.0.255.255 any")
    for special in ("10.0.0.1", "192.168.7.7", "224.0.0.5", "127.0.0.1"):
        assert str(names.substitute_address(IPv4Address(special))).split(".")[0] == special.split(".")[0]


def test_policy_of_a_tunnel_is_on_the_port_that_carries_it_alone(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"a.txt": CONFIGS["2911-gre"]})
    record = json.loads((made.folder / "import.json").read_text())
    assert record["routers"][0]["policies"] == [
        {"interface": "GigabitEthernet0/0", "carried_by": "GigabitEthernet0/0", "direction": "output", "policy": "TUN"}
    ]
    assert any("`account user-defined 56` counts the bytes" in each for each in record["routers"][0]["notes"])
    (template,) = (made.folder / "templates").iterdir()
    assert "account user-defined 56" in template.read_text()


def test_classes_below_a_tunnel_are_noted_without_pre_classify(tmp_path: Path) -> None:
    policy = "class-map A\n match access-group name L\npolicy-map P\n class A\n  priority percent 10\n"
    tunnel = "interface Tunnel1\n ip address 10.1.1.1 255.255.255.252\n tunnel source GigabitEthernet0/0/0\n"
    port = "interface GigabitEthernet0/0/0\n ip address 192.0.2.1 255.255.255.252\n service-policy output P\n"
    rest = "ip access-list extended L\n permit udp any any eq 5004\n"
    for name, line in (("without", ""), ("with", " qos pre-classify\n")):
        text = f"version 17.6\nhostname R1\n{policy}{tunnel}{line}{port}{rest}"
        record = json.loads((import_texts(tmp_path, {f"{name}.txt": text}, to=name).folder / "import.json").read_text())
        noted = [each for each in record["routers"][0]["notes"] if "class A sees the packets of Tunnel1" in each]
        assert bool(noted) == (name == "without")


def test_tunnel_policy_is_omitted_if_the_port_has_other_packets(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"a.txt": CONFIGS["c8000v-cloud"]})
    record = json.loads((made.folder / "import.json").read_text())
    assert record["routers"][0]["policies"] == []
    assert any(
        "left out: GigabitEthernet1 also carries packets outside" in each for each in record["routers"][0]["notes"]
    )


def test_subinterfaces_of_a_port_become_ports(tmp_path: Path) -> None:
    made = import_texts(tmp_path, {"a.txt": CONFIGS["asr1001x-subif"]})
    (router,) = made.network.routers.values()
    carriers = {each.port: each.carrier for each in router.attached}
    assert len(set(carriers.values())) == 5 and carriers["TenGigabitEthernet0/0/0.101"] == "TenGigabitEthernet0/0/0"
    template = (made.folder / "templates/PE-ASR.ios.j2").read_text()
    assert template.count("service-policy output CUST-50M") == 4
    assert sum("shares the rate of TenGigabitEthernet0/0/0" in each for each in router.notes) == 3


def test_port_with_a_policy_and_without_an_address_has_a_substitute(tmp_path: Path) -> None:
    text = UNMARKED.replace("ip address 203.0.113.66 255.255.255.252", "ipv6 address 2001:db8::1/64")
    made = import_texts(tmp_path, {"a.txt": text})
    (router,) = made.network.routers.values()
    assert str(router.attached[0].address) == "192.0.2.1/30"
    assert "GigabitEthernet0/0/0: no IPv4 address: the topology uses 192.0.2.1/30 instead" in router.notes[0]
    assert "service-policy output PARENT" in (made.folder / "templates/EDGE4331.ios.j2").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found an empty file"),
        ("hello world\n", "found a file of an unknown form"),
        (
            "hostname SW1\nswitch 1 provision ws-c2960x-24ts-l\ninterface GigabitEthernet1/0/1\n",
            "Catalyst switch (ws-c2960x",
        ),
        (
            "hostname SW1\nswitch 1 provision ws-c3750g-24ts\nmls qos\ninterface GigabitEthernet1/0/1\n",
            "found the configuration of a Catalyst 3750",
        ),
        ("hostname R1\nversion 15.2\nservice pad\n", "a configuration without an interface"),
        ("set interfaces ge-0/0/0 unit 0 family inet address 10.0.0.1/24\n", "found a Junos configuration"),
        (
            "ASA Version 9.1(2)\nhostname FW\ninterface GigabitEthernet0/0\n nameif outside\n",
            "Cisco ASA or PIX firewall",
        ),
        ("!Command: show running-config\nhostname N9K\ninterface Ethernet1/1\n", "found an NX-OS configuration"),
        (
            "!! IOS XR Configuration 6.1.2\nhostname P1\ninterface GigabitEthernet0/0/0/0\n",
            "found an IOS XR configuration",
        ),
    ],
)
def test_unsupported_input_is_refused_with_a_clear_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "in.txt").write_text(text)
    assert main(["import", str(tmp_path / "in.txt"), "--to", str(tmp_path / "to")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(
    "lines",
    [
        "license udi pid C921-4P sn PSZ12345\n",
        "interface FastEthernet0/1/0\n mls qos trust cos\n switchport access vlan 2\nmls qos\n",
        "boot system flash:c2800nm-adventerprisek9-mz.124-24.T2.bin\n",
        "vtp mode transparent\ninterface Serial0/0\n" + "".join(f"interface FastEthernet1/{n}\n" for n in range(16)),
    ],
)
def test_router_with_switch_ports_is_not_a_switch(tmp_path: Path, lines: str) -> None:
    made = import_texts(tmp_path, {"a.txt": lines + CONFIGS["isr4221-no-qos"]})
    assert set(made.network.routers) == {"PLAIN4221"}


def test_import_of_counters_without_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="found no router configuration, expected the output of `show run"):
        import_texts(tmp_path, {"a.txt": POLICIES})


def test_truncated_configuration_is_read_up_to_its_end(tmp_path: Path) -> None:
    text = CONFIGS["isr4331-edge"]
    for place in range(1200, len(text), value_by_level(short=1500, long=97)):
        try:
            made = import_texts(tmp_path, {"a.txt": text[:place]}, to=f"to{place}")
        except UserError as error:
            assert "without an interface" in str(error)
        else:
            load_sweep(made.experiment, {})


def test_import_prints_models_load_and_ignored_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "edge.txt").write_text(paste_files(("run", CONFIGS["isr4331-edge"]), ("ver", VERSION)))
    assert main(["import", str(tmp_path / "edge.txt"), "--to", str(tmp_path / "edge")]) == 0
    output = capsys.readouterr().out
    assert "EDGE4331: ISR4331/K9, release 16.9.5: rules of IOS-XE" in output
    assert "GigabitEthernet0/0/0: output policy PARENT" in output
    effects = dict(re.findall(r"(?m)^  (\S.*) \(\d+ lines?\), such as\n((?: {4}.*\n)+)", output))
    assert "ip flow monitor NETFLOW input" in effects["the device's processing of a packet, not its queues"]
    assert main(["validate", str(tmp_path / "edge/edge.yml")]) == 0


def test_unknown_model_has_its_substitute_and_the_reason(tmp_path: Path) -> None:
    version = VERSION.replace("ISR4331/K9", "ISR4461/K9")
    made = import_texts(
        tmp_path, {"a.txt": CONFIGS["isr4221-no-qos"], "b.txt": paste_files(("ver", version))}, to="one"
    )
    (router,) = made.network.routers.values()
    assert (
        "unknown model, release 16.9" in router.chassis.description
        and "modelled as ISR4451" in router.chassis.description
    )
    assert any("output of EDGE4331 is left out" in each for each in made.notes)
    text = paste_files(("run", CONFIGS["isr4331-edge"].replace("license udi pid ISR4331/K9", "no")), ("ver", version))
    made = import_texts(tmp_path, {"b.txt": text}, to="other")
    (router,) = made.network.routers.values()
    assert router.chassis.description.startswith("ISR4461/K9, release 16.9.5")
    assert "modelled as ISR4451, the nearest model" in router.chassis.description


def test_options_of_tables_and_routers_conflict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.txt"
    file.write_text(CONFIGS["isr4221-no-qos"])
    assert main(["import", str(file), "--interface", "eth0"]) == 2
    assert "found --interface with router output" in capsys.readouterr().err
    table = tmp_path / "b.csv"
    table.write_text("time_s,a_bps\n1,2\n2,3\n")
    assert main(["import", str(table), "--anonymous"]) == 2
    assert main(["import", str(table), str(file)]) == 2
    assert "found router output and other files" in capsys.readouterr().err


def test_show_commands_are_imported() -> None:
    found = read_interfaces(INTERFACES.splitlines())
    assert [(each.name, each.up, each.line_bps) for each in found][:2] == [
        ("GigabitEthernet0/0/0", True, 100_000_000),
        ("GigabitEthernet0/0/1", True, 1_000_000_000),
    ]
    assert found[0].rates_bps == {"input": 9_000_000, "output": 12_000_000} and not found[2].up
    assert [each.path for each in read_policies(POLICIES.splitlines())] == [
        ("class-default",),
        ("class-default", "REALTIME"),
        ("class-default", "VIDEO"),
        ("class-default", "class-default"),
    ]
    assert read_version(VERSION.splitlines()).model == "ISR4331/K9"
    routes = "Gateway of last resort is 1.1.1.1 to network 0.0.0.0\nS*    0.0.0.0/0 [1/0] via 1.1.1.1\n"
    routes += "      10.0.0.0/24 is subnetted, 1 subnets\nO        10.9.8.0 [110/2] via 1.1.1.2, 00:01:02, Gi0/0\n"
    table = read_routes(routes.splitlines())
    assert {str(prefix): str(via) for prefix, via in table.items()} == {
        "0.0.0.0/0": "1.1.1.1",
        "10.9.8.0/24": "1.1.1.2",
    }


def test_outputs_are_separated_without_prompts() -> None:
    text = CONFIGS["isr4331-edge"] + POLICIES + INTERFACES + VERSION
    assert [each.kind for each in split_outputs("a", text)] == ["configuration", "policies", "interfaces", "version"]


@pytest.mark.parametrize(("lines", "rate"), [((" bandwidth 20000",), "20 Mb/s"), ((), "50 Mb/s")])
def test_cellular_interface_is_a_link_with_an_assumed_rate(tmp_path: Path, lines: tuple[str, ...], rate: str) -> None:
    policy = "policy-map P\n class class-default\n  bandwidth percent 50\n"
    cellular = "\n".join(
        ["interface Cellular0/1/0", *lines, " ip address negotiated", " dialer in-band", " service-policy output P", ""]
    )
    text = (
        "version 17.3\nhostname B\n"
        + policy
        + addressed_port("GigabitEthernet0/0/0", "10.1.1.1", "255.255.255.0")
        + cellular
    )
    file = tmp_path / "b.txt"
    file.write_text(text + "ip route 0.0.0.0 0.0.0.0 Cellular0/1/0\nend\n", encoding="utf-8")
    router = import_routers([file], tmp_path / "made", ImportChoices()).network.routers["B"]
    (note,) = (each for each in router.notes if each.startswith("Cellular0/1/0 is "))
    assert f"assumed line rate of {rate}" in note
    (link,) = (each for each in router.attached if each.port == "Cellular0/1/0")
    assert str(link.rate) == rate
    assert "service-policy output P" in (tmp_path / "made" / "templates" / "B.ios.j2").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("nls resp-timeout 5", NOT_IP),
        ("sdllc traddr 1111.2222.3333 1 2 3", NOT_IP),
        ("xns routing 0000.0c00.1111", NOT_IP),
        ("menu OPS text 1 Connect", NO_EFFECT),
        ("no ip routing", PATH),
        ("no ip domain lookup", NO_EFFECT),
        ("no qos rewrite ip dscp", MARKS),
        ("ip nbar port-map http tcp 80 8080", "the packets of classes with `match protocol`"),
        ("ip wccp web-cache redirect-list L", PATH),
        ("ip tcp synwait-time 5", NO_EFFECT),
        ("crypto isakmp policy 10", NO_EFFECT),
        ("crypto ipsec transform-set TS esp-aes", ENCRYPTED),
        ("multilink bundle-name authenticated", NO_EFFECT),
        ("platform hardware throughput level 300000", "the total rate of the device, which its license limits"),
    ],
)
def test_rare_commands_are_listed_with_their_effect(line: str, effect: str) -> None:
    assert effect_of_block(line) == effect


def test_line_above_10_gigabits_becomes_a_valid_experiment(tmp_path: Path) -> None:
    ports = "".join(f"interface TenGigabitEthernet0/0/{n}\n channel-group 1 mode active\n" for n in range(2))
    file = tmp_path / "a.txt"
    file.write_text(
        f"version 17.6\nhostname A\n{ports}interface Port-channel1\n ip address 10.1.0.1 255.255.255.252\nend\n",
        encoding="utf-8",
    )
    made = import_routers([file], tmp_path / "made", ImportChoices())
    assert " bandwidth 20000000\n" in startup_config(
        load_sweep(made.experiment, None).experiment.topology, "A", {"user": "u", "password": "p", "enable": "e"}
    )
