"""The command `policy`: values and findings of pasted configurations."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from levels import every_nth, example_count
from qoslab.cli import command_group, main
from qoslab.errors import ExitStatus, UserError
from qoslab.ios.compile import compile_device
from qoslab.policy.answer import answer_policy, class_differences
from qoslab.policy.class_values import ClassValues
from qoslab.policy.pasted_configuration import read_configuration
from qoslab.policy.pasted_text import configuration_text
from qoslab.policy.rate import Rate
from qoslab.policy.render import answer_text
from qoslab.system.programs import SIMULATOR, find_own_program

TOP = Path(__file__).parents[2]
GOLDENS = TOP / "tests" / "goldens" / "policy"
CONFIGURATIONS = sorted(GOLDENS.glob("*.ios"))
FRAGMENTS = sorted((TOP / "tests" / "fragments").glob("*.ios"))
WIDEST = 100
TIGHT = 90
"""Columns of the table of classes: readable on a terminal of 80 columns although slightly wider."""
SECRETS = ("hx5rVt7rPNoS4wqbXKX7m0", "0822455D0A16", "s3cr3t", "045802150C2E", "Topsecret1")
VERSIONS = {"classic": "version 12.3\n", "hqf": "version 15.1\n"}


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_text_output_equals_the_golden(path: Path, golden: Callable[[Path, str], None]) -> None:
    golden(path.with_suffix(".txt"), answer_text(answer_policy(read(path), source=path.name)))


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_text_fits_100_columns_and_has_no_secret(path: Path) -> None:
    text = answer_text(answer_policy(read(path), rate_bps=1_500_000, rtt_s=0.1))
    assert max(map(len, text.splitlines())) <= WIDEST
    assert [secret for secret in SECRETS if secret in text] == []
    tables = [line for line in text.splitlines() if "longest wait" in line]
    assert all(len(line) <= TIGHT for line in tables)


def test_page_shows_the_answer_to_its_configuration() -> None:
    page = (TOP / "docs" / "policies.md").read_text(encoding="utf-8")
    configuration = re.search(r"```ios\n(.*?)```", page, re.DOTALL)
    shown_answer = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert configuration and shown_answer
    assert answer_text(answer_policy(configuration[1])) == shown_answer[1]


def values(text: str, *path: str, version: str = "hqf", **options: int | None) -> ClassValues:
    found = answer_policy(VERSIONS[version] + text, rate_bps=options.get("rate_bps")).policies
    return next(each for policy in found for each in policy.classes if each.path == path)


CLASSES = "class-map match-any A\n match dscp af11\nclass-map match-any B\n match dscp af21\n"
WAN = "interface Serial0/0\n bandwidth 2000\n service-policy output P\n"


THREE = CLASSES + "class-map match-any V\n match dscp ef\n"
LINE = "interface FastEthernet0/1\n bandwidth 2000\n ip address 10.0.1.1 255.255.255.0\n service-policy output P\n"
LINE_BPS = 2_000_000
BUSY = {
    "bandwidth": "policy-map P\n class V\n    priority 300\n class A\n    bandwidth 400\n class B\n    bandwidth 600\n",
    "remaining percent": (
        "policy-map P\n class V\n    priority 300\n class A\n    bandwidth remaining percent 20\n"
        " class B\n    bandwidth remaining percent 30\n"
    ),
    "remaining ratio": (
        "policy-map P\n class A\n    bandwidth remaining ratio 3\n class B\n    bandwidth remaining ratio 5\n"
    ),
    "shaped": "policy-map P\n class A\n    shape average 200000\n class B\n    bandwidth 600\n",
    "policed priority": (
        "policy-map P\n class V\n    priority\n    police 300000\n class A\n    bandwidth 400\n"
        " class B\n    bandwidth 600\n"
    ),
    "child": (
        "policy-map C\n class V\n    priority percent 20\n class A\n    bandwidth percent 30\npolicy-map P\n"
        " class class-default\n    shape average 1000000\n  service-policy C\n"
    ),
    "child of a peak shaper": (
        "policy-map C\n class V\n    priority percent 20\n class A\n    bandwidth percent 30\npolicy-map P\n"
        " class class-default\n    shape peak 700000 7000 3500\n  service-policy C\n"
    ),
    "child of bandwidth": (
        "policy-map C\n class A\n    bandwidth percent 30\npolicy-map P\n class V\n    bandwidth percent 25\n"
        " class class-default\n    bandwidth percent 50\n  service-policy C\n"
    ),
}
ON_THE_LINE = 1514 / 1538
"""Share of the counted bytes of a full Ethernet frame, including preamble and gap."""


def simulate_policy(text: str) -> dict[tuple[str, ...], float]:
    """Return the rate of each class in the engine while UDP flows fill all classes, b/s by path."""
    device = read_configuration(text + "interface FastEthernet0/0\n ip address 10.0.2.1 255.255.255.0\n").device
    hosts = {"A": ("FastEthernet0/1", "10.0.1", LINE_BPS), "B": ("FastEthernet0/0", "10.0.2", 100_000_000)}
    routes = {name: [{"prefix": "0.0.0.0/0", "via": f"{net}.1"}] for name, (_, net, _) in hosts.items()}
    nodes: dict[str, Any] = {name: {"kind": "host", "routes": route} for name, route in routes.items()}
    flow = {"protocol": "udp", "duration_ns": 11 * 10**9, "rate_bps": LINE_BPS, "payload_bytes": 1472}
    scenario = {
        "format": 1,
        "nodes": {"R1": {"kind": "router", "configuration": compile_device(device)}, **nodes},
        "links": [
            {
                "name": name,
                "rate_bps": rate,
                "framing": "ethernet",
                "ends": [
                    {"node": "R1", "interface": port, "address": f"{net}.1/24"},
                    {"node": name, "interface": "eth0", "address": f"{net}.2/24"},
                ],
            }
            for name, (port, net, rate) in hosts.items()
        ],
        "flows": [
            {"name": f"dscp-{dscp}", "dscp": dscp, "source": "B", "destination": "A", **flow}
            for dscp in (46, 10, 18, 0)
        ],
        "sample_ns": 10**9,
    }
    program = [str(find_own_program(SIMULATOR)), "run"]
    done = subprocess.run(program, input=json.dumps(scenario), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    samples = json.loads(done.stdout)["routers"]["R1"]["samples"]
    first, last = (
        dict(passed_bytes(sample["interfaces"]["FastEthernet0/1"]["policy_output"])) for sample in samples[3:11:7]
    )
    return {path: (last[path] - first[path]) * 8 / 7 for path in last}


def passed_bytes(policy: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    for each in policy["classes"]:
        path = (*above, each["name"])
        yield path, each["bytes"] - sum(count["bytes"] for count in each["drops"].values())
        if each["child"]:
            yield from passed_bytes(each["child"], path)


@pytest.mark.parametrize("name", BUSY)
def test_computed_shares_equal_those_of_the_engine(name: str) -> None:
    text = f"version 15.1\n{THREE}{BUSY[name]}{LINE}"
    sent = simulate_policy(text)
    for policy in answer_policy(text, rate_bps=LINE_BPS).policies:
        for each in policy.classes:
            if each.joins_default:
                continue
            assert each.busy is not None
            # Shapers and policers count what the line adds to nothing.
            assert ON_THE_LINE * 0.99 < sent[each.path] / each.busy.bps < 1.01, each.path


def test_hqf_shares_equal_the_published_shares() -> None:
    # The published result of experiment hqf-classes: 400, 600 and 1000 kb/s of 2 Mb/s.
    text = f"{CLASSES}policy-map P\n class A\n    bandwidth percent 20\n class B\n    bandwidth percent 30\n{WAN}"
    rates = [values(text, name).busy for name in ("A", "B", "class-default")]
    assert rates == [Rate(400e3), Rate(600e3), Rate(1e6)]


def test_remaining_percent_divides_the_bandwidth_left_by_priority() -> None:
    text = f"{CLASSES}policy-map P\n class A\n    priority 500\n class B\n    bandwidth remaining percent 40\n{WAN}"
    assert [values(text, name).busy for name in ("A", "B", "class-default")] == [Rate(500e3), Rate(600e3), Rate(900e3)]


def test_unused_share_of_a_shaped_class_goes_to_the_others() -> None:
    text = f"{CLASSES}policy-map P\n class A\n    shape average 100000\n class B\n    bandwidth percent 10\n{WAN}"
    assert values(text, "A").busy == Rate(100e3)
    rates = (values(text, name).busy for name in ("A", "B", "class-default"))
    assert sum((each.bps for each in rates if each), 0.0) == pytest.approx(2e6)


def test_children_share_the_rate_of_their_parent() -> None:
    text = (
        f"{CLASSES}policy-map C\n class A\n    bandwidth percent 25\npolicy-map P\n class class-default\n"
        f"    shape average 1000000\n  service-policy C\n{WAN}"
    )
    assert values(text, "class-default", "A").guaranteed == Rate(250e3)
    assert values(text, "class-default", "class-default").busy == Rate(750e3)


@pytest.mark.parametrize(
    ("version", "line", "expected"),
    [
        ("classic", "shape average 1000000", (25_000, 25_000, 25.0)),
        ("hqf", "shape average 1000000", (4_000, 4_000, 4.0)),
        ("hqf", "shape average 1000000 20000 0", (20_000, 0, 20.0)),
        ("hqf", "shape average percent 50", (4_000, 4_000, 4.0)),
    ],
)
def test_shaper_has_the_bursts_of_its_generation(version: str, line: str, expected: tuple[int, int, float]) -> None:
    shape = values(f"policy-map P\n class class-default\n    {line}\n{WAN}", "class-default", version=version).shape
    assert shape is not None
    assert (shape.bc_bits, shape.be_bits, shape.tc_ms) == expected


@pytest.mark.parametrize(
    ("line", "bc", "be"),
    [
        ("police 1000000", 31_250, None),
        ("police 8000", 1_500, None),
        ("police cir 1000000 bc 8000", 8_000, None),
        ("police cir 1000000 pir 2000000", 31_250, 62_500),
        ("police cir percent 50", 31_250, None),
    ],
)
def test_policer_has_default_bursts(line: str, bc: int, be: int | None) -> None:
    police = values(f"policy-map P\n class class-default\n    {line}\n{WAN}", "class-default").police
    assert police is not None
    assert (police.bc_bytes, police.be_bytes) == (bc, be)
    assert police.default_burst == ("bc" not in line)


def test_queue_has_its_length_in_packets_bytes_and_milliseconds() -> None:
    text = f"{CLASSES}policy-map P\n class A\n    bandwidth percent 20\n    queue-limit 100\n{WAN}"
    queue = values(text, "A").queue
    assert queue is not None
    # 1500 bytes of IP and 4 of HDLC.
    assert (queue.packets, queue.bytes, queue.ms, queue.default) == (100, 150_400, 3008.0, False)


def test_values_without_a_line_are_relative_and_absolute_with_rate() -> None:
    text = f"{CLASSES}policy-map P\n class A\n    priority percent 10\n class B\n    bandwidth percent 30\n"
    assert str(values(text, "B").guaranteed) == "30 % of line"
    assert str(values(text, "class-default").busy) == "60 % of line"
    assert str(values(text, "B", rate_bps=20_000_000).guaranteed) == "6 Mb/s"


@pytest.mark.parametrize(
    ("lines", "rate"),
    [
        ("interface GigabitEthernet0/0\n speed 100\n", 100e6),
        ("interface GigabitEthernet0/0\n", 1e9),
        ("interface FastEthernet0/0\n speed 10\n", 10e6),
        ("interface Serial0/0\n bandwidth 128\n clock rate 512000\n", 512e3),
        ("interface GigabitEthernet0/0\n speed 100\ninterface Tunnel0\n bandwidth 5000\n tunnel source Gi0/0\n", 100e6),
        (
            "interface GigabitEthernet0/0\n speed 100\n pppoe-client dial-pool-number 3\ninterface Dialer0\n"
            " bandwidth 900\n dialer pool 3\n",
            100e6,
        ),
        (
            "interface ATM0.1 point-to-point\n pvc 8/35\n  vbr-nrt 1024 1024\n  encapsulation aal5mux ppp dialer\n"
            "  dialer pool-member 1\ninterface Dialer0\n dialer pool 1\n",
            1.024e6,
        ),
        (
            "interface Serial0/0\n clock rate 512000\n ppp multilink group 1\ninterface Serial0/1\n"
            " clock rate 256000\n ppp multilink group 1\ninterface Multilink1\n ppp multilink group 1\n",
            768e3,
        ),
    ],
)
def test_line_has_the_rate_of_its_interface(lines: str, rate: float) -> None:
    text = f"policy-map P\n class class-default\n    shape average 64000\n{lines} service-policy output P\n"
    assert answer_policy(text).policies[0].line == Rate(rate)


FIND = """class-map match-any VOICE
 match dscp ef
class-map match-any DATA
 match dscp af21
policy-map P
 class VOICE
    priority percent 10
 class DATA
    bandwidth percent 40
"""
ATTACH = "interface FastEthernet0/0\n service-policy output P\n"


def policy(*lines: str, name: str = "class-default", attach: str = ATTACH) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{CLASSES}policy-map P\n class {name}\n{body}{attach}"


def maps(*matches: str, mode: str = "match-all") -> str:
    body = "".join(f" match {each}\n" for each in matches)
    return f"class-map {mode} A\n{body}policy-map P\n class A\n    bandwidth percent 5\n{ATTACH}"


SHAPED_PORT = """\
version 17.6
policy-map SUB
 class class-default
  shape average 50000000
policy-map PORT
 class class-default
  shape average 120000000
interface GigabitEthernet0/0/0
{port}interface GigabitEthernet0/0/0.10
 encapsulation dot1Q 10
 service-policy output SUB
"""


def switch(*lines: str, qos: str = "mls qos\n", port: str = "") -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return (
        f"version 12.2\n{qos}class-map match-all A\n match ip dscp ef\npolicy-map P\n class A\n{body}"
        f"interface GigabitEthernet1/0/1\n{port} srr-queue bandwidth share 1 2 3 4\n service-policy input P\n"
    )


BELOW_TUNNEL = (
    "policy-map P\n class class-default\n    shape average 1000000\n"
    "interface GigabitEthernet0/0\n ip address 192.0.2.1 255.255.255.0\n{port}"
    "interface Tunnel1\n tunnel source GigabitEthernet0/0\n tunnel destination 192.0.2.9\n service-policy output P\n"
)
BUNDLE = (
    "version 17.6\npolicy-map P\n class class-default\n  shape average 1000000\n"
    "interface Port-channel1\n service-policy output P\n"
)
PPP_OVER_ATM = (
    "version 15.1\npolicy-map P\n class class-default\n  fair-queue\n"
    "interface ATM0\n pvc 0/38\n  encapsulation aal5mux ppp dialer\n  dialer pool-member 1\n  vbr-nrt 1000 1000\n"
    "interface Dialer0\n encapsulation ppp\n dialer pool 1\n service-policy output P\n"
)
NESTED = (
    f"{CLASSES}policy-map CHILD\n class B\n    police cir percent 10\npolicy-map P\n class A\n    {{}}\n"
    f"    service-policy CHILD\n{ATTACH}"
)
HALF = f"{CLASSES}policy-map P\n class A\n    bandwidth {{}}\n class B\n    priority {{}}\n{ATTACH}"
FINDINGS: dict[str, tuple[str, str]] = {
    "oversubscribed": (HALF.format("percent 70", "percent 40"), HALF.format("percent 59", "percent 40")),
    "oversubscribed in kb/s": (HALF.format("70000", "40000"), HALF.format("59000", "40000")),
    "burst-below-mtu": (policy("police 64000 1000"), policy("police 64000 4000")),
    "burst-below-rtt": (policy("police 10000000 8000"), policy("police 10000000 500000")),
    "policer-before-shaper": (
        policy("police 64000", "shape average 128000"),
        policy("shape average 128000"),
    ),
    "class-matches-nothing": (maps("dscp ef", "dscp af41"), maps("dscp ef", "protocol udp")),
    "class-matches-nothing without match": (maps(), maps("dscp ef", "dscp af41", mode="match-any")),
    "class-matches-nothing by precedence": (maps("dscp ef", "precedence 3"), maps("dscp ef", "precedence 5")),
    "class-matches-nothing by access list": (
        "access-list 101 permit udp any any\n" + maps("access-group 101", "protocol tcp"),
        maps("access-group 101", "protocol tcp"),
    ),
    "class-map-missing": (FIND.replace("class-map match-any VOICE\n match dscp ef\n", "") + ATTACH, FIND + ATTACH),
    "policy-map-missing": (
        policy("shape average 1000000", "service-policy NONE"),
        policy("shape average 1000000"),
    ),
    "class-shadowed": (
        "class-map match-any A\n match dscp af11 af12\nclass-map match-all B\n match dscp "
        "af12\npolicy-map P\n class A\n"
        f"    bandwidth 64\n class B\n    bandwidth 64\n{ATTACH}",
        FIND + ATTACH,
    ),
    "class-shadowed by any": (
        f"class-map match-any A\n match any\nclass-map match-all B\n match access-group 101\npolicy-map P\n class A\n"
        f"    bandwidth 64\n class B\n    bandwidth 64\n{ATTACH}",
        f"class-map match-any A\n match ip dscp af11\nclass-map match-all B\n match dscp af11\npolicy-map P\n class A\n"
        f"    bandwidth 64\n class B\n    bandwidth 64\n{ATTACH}",
    ),
    "access-list-missing": (
        "access-list 102 permit udp any any\n" + maps("access-group 101"),
        "access-list 101 permit udp any any\n" + maps("access-group 101"),
    ),
    "shaper-of-port": (SHAPED_PORT.format(port=" service-policy output PORT\n"), SHAPED_PORT.format(port="")),
    "shaper-of-port below a tunnel": (
        BELOW_TUNNEL.format(port=" service-policy output P\n"),
        BELOW_TUNNEL.format(port=""),
    ),
    "percent-of-default-bandwidth of a tunnel": (
        BELOW_TUNNEL.format(port="").replace("average 1000000", "average percent 50"),
        BELOW_TUNNEL.format(port="")
        .replace("average 1000000", "average percent 50")
        .replace("Tunnel1\n", "Tunnel1\n bandwidth 5000\n"),
    ),
    "port-channel-without-aggregate": (BUNDLE, "platform qos port-channel-aggregate 1\n" + BUNDLE),
    "port-channel-without-aggregate by VLAN": (
        BUNDLE.replace("channel1", "channel1.7\n encapsulation dot1Q 7"),
        "port-channel load-balancing vlan-manual\n" + BUNDLE.replace("channel1", "channel1.7\n encapsulation dot1Q 7"),
    ),
    "shaper-above-line": (policy("shape average 200000000"), policy("shape average 20000000")),
    "long-queue": (
        policy("bandwidth 64", "queue-limit 200", name="A"),
        policy("bandwidth percent 50", name="A"),
    ),
    "remaining-without-base": (
        policy("bandwidth remaining percent 40", name="A", attach=""),
        policy("bandwidth remaining percent 40", name="A"),
    ),
    "queues-without-shaper": (
        policy("bandwidth percent 40", name="A", attach="interface Tunnel1\n service-policy output P\n"),
        policy("shape average 1000000", attach="interface Tunnel1\n service-policy output P\n"),
    ),
    "queues-without-shaper on PPP over ATM": (PPP_OVER_ATM.replace("  vbr-nrt 1000 1000\n", ""), PPP_OVER_ATM),
    "base-of-nested-policer": (NESTED.format("police 2000000"), NESTED.format("shape average 2000000")),
    "base-of-nested-policer below bandwidth": (NESTED.format("bandwidth percent 50"), NESTED.format("set dscp ef")),
    "queueing-on-input": (
        policy("shape average 64000", attach=ATTACH.replace("output", "input")),
        policy("police 64000", attach=ATTACH.replace("output", "input")),
    ),
    "untrusted-marks": (switch("police 128000 8000"), switch("trust dscp", "police 128000 8000")),
    "mls-qos-off": (switch("trust dscp", qos=""), switch("trust dscp")),
    "ef-without-priority": (FIND.replace("priority", "bandwidth") + ATTACH, FIND + ATTACH),
    "priority-without-limit": (
        FIND.replace("priority percent 10", "priority") + ATTACH,
        FIND.replace("priority percent 10", "priority\n    police cir percent 10") + ATTACH,
    ),
    "percent-of-default-bandwidth": (
        FIND + "interface Serial0/0\n clock rate 512000\n service-policy output P\n",
        FIND + "interface Serial0/0\n bandwidth 512\n clock rate 512000\n service-policy output P\n",
    ),
    "class-default-starves": (
        "version 12.3\n" + FIND + ATTACH,
        "version 12.3\n" + FIND + " class class-default\n  bandwidth percent 20\n" + ATTACH,
    ),
    "policy-not-attached": (FIND + ATTACH + "policy-map LEFT\n class class-default\n    police 64000\n", FIND + ATTACH),
    "other-limits": (
        policy("shape average 64000")
        + " rate-limit output 1000000 187500 375000 conform-action transmit exceed-action drop\n",
        policy("shape average 64000"),
    ),
    "refused": (policy("random-detect", name="A"), policy("bandwidth 64", "random-detect", name="A")),
}


def codes(text: str) -> list[str]:
    return [each.code for each in answer_policy(text, rtt_s=0.1).findings]


@pytest.mark.parametrize("name", FINDINGS)
def test_each_finding_is_reported_only_if_it_applies(name: str) -> None:
    bad, good = FINDINGS[name]
    code = name.partition(" ")[0]
    assert code in codes(bad)
    assert code not in codes(good)


@pytest.mark.parametrize("name", FINDINGS)
def test_finding_names_a_line_of_the_input(name: str) -> None:
    text = FINDINGS[name][0]
    for each in answer_policy(text, rtt_s=0.1).findings:
        assert 0 <= each.line <= len(text.splitlines())
        assert each.message and each.source


def test_class_map_without_a_policy_is_no_error() -> None:
    unused = "class-map match-all UNUSED\n match access-group name NONE\nclass-map match-all EMPTY\n"
    found = answer_policy(f"access-list 101 permit ip any any\n{unused}{FIND}{ATTACH}").findings
    assert [(each.severity, each.code) for each in found] == [
        ("note", "access-list-missing"),
        ("note", "class-matches-nothing"),
    ]


def test_policy_is_shown_at_each_place() -> None:
    map_class = "map-class frame-relay FR\n frame-relay cir 512000\n service-policy output P\n"
    serial = "interface Serial0/1\n frame-relay traffic-shaping\n frame-relay interface-dlci 100\n  class FR\n"
    found = answer_policy(f"version 12.4\n{FIND}{ATTACH}{serial}{map_class}")
    assert "class FR" in [each.text for each in found.ignored]
    assert [(each.interface, each.place) for each in found.policies] == [
        ("FastEthernet0/0", ""),
        ("", "map-class frame-relay FR"),
    ]


@pytest.mark.parametrize(
    ("lines", "effect"),
    [
        ("ip nbar port-map http tcp 80 8080\n", "the packets of classes with `match protocol`"),
        ("interface FastEthernet0/1\n ip rsvp bandwidth 1000\n", "the share and the delay of the class"),
        (
            "interface FastEthernet0/1\n ip policy route-map R\nroute-map R permit 10\n set ip precedence critical\n",
            "the marks of packets, and the classes that they match later",
        ),
    ],
)
def test_lines_elsewhere_that_change_classes_are_listed(lines: str, effect: str) -> None:
    found = answer_policy(f"version 15.1\n{FIND}{ATTACH}{lines}").ignored
    assert [each.could_change for each in found] == [effect]


def test_ignored_lines_of_one_reason_share_a_paragraph() -> None:
    maps = "".join(f"class-map match-all E{n}\n match mpls experimental topmost {n}\n" for n in range(4))
    text = " ".join(answer_text(answer_policy(maps + FIND + ATTACH)).split())
    assert "line 2: match mpls experimental topmost 0 (class-map E0), and 3 more in lines 4, 6, 8: lab packets" in text


def test_port_without_trust_is_reported() -> None:
    text = switch("trust dscp") + "interface GigabitEthernet1/0/2\n switchport mode access\n"
    assert "untrusted-port" in codes(text)
    assert "untrusted-port" not in codes(text + " mls qos trust dscp\n")


BARE = "policy-map P\n class VOICE\n  priority 128\n class class-default\n  shape average 1000000\n"


def prompts(text: str) -> str:
    modes = {0: "config", 1: "config-pmap", 2: "config-pmap-c"}
    lines = (f"R1({modes[len(line) - len(line.lstrip())]})#{line.strip()}" for line in text.splitlines())
    return "R1#configure terminal\nEnter configuration commands, one per line.  End with CNTL/Z.\n" + "\n".join(lines)


PASTES: dict[str, Callable[[str], str]] = {
    "prompts": prompts,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "quoted mail": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "indented": lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
    "no indentation": lambda text: "".join(f"{line.strip()}\n" for line in text.splitlines()),
    "line numbers": lambda text: "".join(f"{n:4}  {line}\n" for n, line in enumerate(text.splitlines(), 1)),
    "fence": lambda text: f"```\n{text}```\n",
    "tabs": lambda text: text.replace("  ", "\t\t").replace("\n ", "\n\t"),
    "escapes": lambda text: text.replace("class", "\x1b[1mclass\x1b[0m"),
    "paging with backspaces": lambda text: text.replace(
        " class class", " --More-- " + "\b" * 9 + " " * 8 + "\b" * 9 + " class class"
    ),
    "paging without backspaces": lambda text: text.replace(" class class", " --More--          class class"),
    "paging with a carriage return": lambda text: text.replace(
        " class class", "<--- More --->\r              \r class class"
    ),
    "log": lambda text: text.replace(" class class", "*Mar  1 00:00:01.003: %SYS-5-CONFIG_I: x\n class class"),
    "banner": lambda text: f"banner motd ^C\npolicy-map P\n class class-default\n  police 64000\n^C\n{text}",
    "byte order mark": lambda text: "\ufeff" + text,
    "no-break spaces": lambda text: text.replace(" ", "\xa0"),
}


@pytest.mark.parametrize("name", PASTES)
def test_pasted_configuration_gives_the_same_values(name: str) -> None:
    def finding_texts(text: str) -> list[ClassValues]:
        return [each for policy in answer_policy(text, generation="hqf").policies for each in policy.classes]

    assert finding_texts(PASTES[name](BARE)) == finding_texts(BARE)


@pytest.mark.parametrize("name", sorted({*PASTES} - {"prompts", "no indentation", "fence", "tabs", "log", "banner"}))
def test_pasted_configuration_keeps_its_line_numbers(name: str) -> None:
    assert configuration_text(PASTES[name](BARE)).rstrip() == BARE.rstrip()


def test_wrapped_line_is_joined() -> None:
    line = "  police cir 1000000 bc 31250 conform-action transmit exceed-action set-dscp-transmit af11"
    text = f"policy-map P\n class class-default\n{line[:80]}\n{line[80:]}\n"
    assert line in configuration_text(text)
    found = answer_policy(text, generation="hqf").policies[0].classes[0].police
    assert found is not None
    assert found.exceed == "set-dscp-transmit af11"


def test_long_description_hides_no_line_of_its_interface() -> None:
    description = " description " + "x" * 67
    text = policy("shape average 64000") + f"{description}\n speed 10\n"
    assert len(description) == 80
    assert answer_policy(text).policies[0].line == Rate(10e6)


def test_order_of_objects_does_not_affect_the_result() -> None:
    classes, parent = (
        "class-map match-all A\n match dscp ef\n",
        "policy-map T\n class class-default\n    shape average 64000\n  service-policy C\n",
    )
    child, port = "policy-map C\n class A\n    bandwidth percent 5\n", "interface Serial0/0\n service-policy output T\n"
    one, other = answer_policy(classes + child + parent + port), answer_policy(port + parent + child + classes)
    assert one.policies[0].classes == other.policies[0].classes
    assert one.findings == () or [each.code for each in one.findings] == [each.code for each in other.findings]


def test_line_numbers_are_those_of_the_input() -> None:
    text = "R1#show run\r\n\r\n" + policy("police 64000 1000").replace("\n", "\r\n")
    finding = next(each for each in answer_policy(text).findings if each.code == "burst-below-mtu")
    assert text.splitlines()[finding.line - 1].strip() == "police 64000 1000"


def test_ignored_lines_are_listed() -> None:
    text = policy("shape average 64000", "frobnicate 3") + " qos pre-classify\n"
    found = {each.text: each for each in answer_policy(text).ignored}
    lines = text.splitlines()
    assert set(found) == {"frobnicate 3", "qos pre-classify"}
    assert all(lines[each.line - 1].strip() == name for name, each in found.items())
    assert all(each.could_change for each in found.values())


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "no text"),
        (" \n\n", "no text"),
        ("hostname R1\ninterface Serial0/0\n", "no policy-map"),
        ("set class-of-service schedulers x transmit-rate 1m\n", "Junos"),
        ("class-of-service {\n schedulers {\n", "Junos"),
        ("traffic classifier c1\n if-match dscp ef\n", "Huawei"),
        ("policy-map P\n class A\n  police rate 1 mbps\n !\nend-policy-map\n", "IOS XR"),
        ("policy-map type queuing P\n class type queuing c-out-q1\n", "NX-OS"),
        ("tc qdisc add dev eth0 root tbf rate 1mbit\n", "Linux tc"),
        ("  Service-policy output: P\n\n    Class-map: A (match-all)\n", "show policy-map interface"),
    ],
)
def test_unsupported_input_is_refused_with_one_sentence(
    text: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError) as caught:
        answer_policy(text, source="standard input")
    assert named in caught.value.message
    assert "\n" not in caught.value.message and "expected" in caught.value.message


def test_switch_is_refused_as_a_router(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sw.txt"
    file.write_text(switch("trust dscp"))
    assert main(["policy", str(file), "--model", "3725"]) == ExitStatus.USER_MISTAKE
    assert "found a Catalyst switch configuration" in capsys.readouterr().err
    assert main(["policy", str(file), "--model", "3750G"]) != ExitStatus.USER_MISTAKE


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], ExitStatus.WITHIN),
        (["--rate", "20m"], ExitStatus.WITHIN),
        (["--rate", "1.5 Mb/s", "--rtt", "50 ms"], ExitStatus.WITHIN),
        (["--rate", "0"], ExitStatus.USER_MISTAKE),
        (["--rate", "fast"], ExitStatus.USER_MISTAKE),
        (["--rtt", "soon"], ExitStatus.USER_MISTAKE),
        (["--model", "9999"], ExitStatus.USER_MISTAKE),
        (["--model", "classic"], ExitStatus.WITHIN),
    ],
)
def test_invalid_options_are_refused(
    arguments: list[str], status: ExitStatus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r1.txt"
    file.write_text(BARE)
    assert main(["policy", str(file), *arguments]) == status


def test_status_is_1_with_an_error_and_input_may_be_standard_input() -> None:
    runner = CliRunner()
    done = runner.invoke(command_group, ["policy", "--json"], input=policy("police 64000 1000"), standalone_mode=False)
    assert done.return_value == ExitStatus.OUTSIDE
    found = json.loads(done.stdout)
    assert found["errors"] == 1
    assert found["policies"][0]["classes"][0]["police"]["bc_bytes"] == 1000


def test_difference_names_the_values_that_changed() -> None:
    old, new = policy("shape average 64000"), policy("shape average 128000")
    assert class_differences(answer_policy(old), answer_policy(old)) == []
    found = class_differences(answer_policy(old), answer_policy(new))
    assert any("maximum rate: 64 kb/s -> 128 kb/s" in each for each in found)
    assert any("shaper bc bits: 256 -> 512" in each for each in found)
    assert all(each.startswith("FastEthernet0/0 output, class-default") for each in found)


def test_difference_names_added_and_removed_lines() -> None:
    old, new = policy("shape average 64000"), policy("police 64000")
    found = class_differences(answer_policy(old), answer_policy(new))
    assert any("shaper rate: 64 kb/s -> -" in each for each in found)
    assert any("policer cir: - -> 64 kb/s" in each for each in found)
    assert any(
        "A: added" in each
        for each in class_differences(answer_policy(old), answer_policy(policy("bandwidth 64", name="A")))
    )


def test_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "/nonexistent/r1.txt"]) == ExitStatus.USER_MISTAKE
    assert "/nonexistent/r1.txt" in capsys.readouterr().err


def fragments() -> list[str]:
    texts = [part for path in FRAGMENTS for part in re.split(r"(?m)^=== .*\n", path.read_text(encoding="utf-8"))]
    return [text for text in texts if text.strip()]


LINES = sorted({line for text in fragments() for line in text.splitlines()})


def shown_policies(text: str) -> None:
    """Answer and print; a UserError is an answer too."""
    try:
        found = answer_policy(text, rate_bps=2_000_000, rtt_s=0.05)
    except UserError:
        return
    assert max(map(len, answer_text(found).splitlines())) <= max(WIDEST, max(map(len, text.splitlines())) + 60)


def test_every_fragment_is_analysed() -> None:
    for text in list(fragments())[:: every_nth(3)]:
        shown_policies(text)
        shown_policies("policy-map LOST\n class class-default\n" + text)


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=40), st.booleans())
@settings(max_examples=example_count(150))
def test_known_lines_in_any_order_are_analysed(lines: list[str], indented: bool) -> None:
    text = "\n".join(line if indented else line.strip() for line in lines)
    shown_policies("policy-map P\n class class-default\n" + text)


@given(st.text(max_size=300))
@settings(max_examples=example_count(100))
def test_any_text_is_analysed_or_refused(text: str) -> None:
    shown_policies("policy-map P\n class class-default\n  " + text)


def findings(text: str, **options: Any) -> list[tuple[str, str]]:
    return [(each.severity, each.code) for each in answer_policy(text, **options).findings]


def test_short_burst_of_a_policer_is_a_note_without_a_round_trip() -> None:
    text = "policy-map P\n class class-default\n  police {}\ninterface GigabitEthernet0/0\n service-policy input P\n"
    assert findings(text.format("5000000 15000")) == [("note", "short-burst")]
    assert findings(text.format("5000000 15000"), rtt_s=0.05) == [("warning", "burst-below-rtt")]
    assert findings(text.format("5000000 156250")) == findings(text.format("5000000")) == []


def test_bandwidth_below_the_line_without_a_shaper_is_a_finding() -> None:
    classes = "class-map match-any A\n match dscp af11\npolicy-map Q\n class A\n  bandwidth percent 30\n"
    port = "interface GigabitEthernet0/0\n bandwidth 10000\n service-policy output {}\n"
    assert findings(classes + port.format("Q")) == [("warning", "bandwidth-below-line")]
    shaper = "policy-map S\n class class-default\n  shape average 10000000\n  service-policy Q\n"
    assert findings(classes + shaper + port.format("S")) == []


def test_paste_with_leading_counters_is_read() -> None:
    text = (
        "R1#show policy-map interface gi0/0\n GigabitEthernet0/0 \n\n  Service-policy output: S\n\n"
        "    Class-map: class-default (match-any)  \n      12 packets, 800 bytes\n      Match: any \n"
        "R1#show running-config | section policy\npolicy-map S\n class class-default\n  shape average 10000000\n"
        " service-policy output S\n"
    )
    found = answer_policy(text)
    assert [each.interface for each in found.policies] == [""]
    assert [each.reason for each in found.ignored] == ["its interface is not in the input"]


def test_policies_of_other_interfaces_are_listed() -> None:
    text = (
        "policy-map COPP\n class class-default\n  police rate 200 pps\n   conform-action transmit\n"
        "control-plane\n service-policy input COPP\n"
    )
    found = answer_policy("version 17.3\n" + text)
    (policy,) = found.policies
    assert (policy.place, policy.direction) == ("control-plane", "input")
    assert policy.classes[0].without_effect == ("police rate 200 pps",)
    assert any("it is below `police rate 200 pps`" in each.reason for each in found.ignored)
    assert "control-plane input (not modelled): policy-map COPP" in answer_text(found)


def test_port_channel_has_the_rate_of_its_members() -> None:
    text = (
        "version 16.12\ninterface Port-channel1\n service-policy output P\n"
        "interface GigabitEthernet0/0/0\n channel-group 1 mode active\n"
        "interface GigabitEthernet0/0/1\n channel-group 1\ninterface GigabitEthernet0/0/2\n channel-group 11\n"
        "policy-map P\n class class-default\n  shape average percent 10\n"
    )
    (policy,) = answer_policy(text).policies
    assert (policy.base.bps, policy.base_source) == (2_000_000_000, "2 member ports")


@pytest.mark.parametrize(
    ("port", "lines", "expected"),
    [
        ("Port-channel1", " shutdown\n", (1_000_000_000, "1 member port")),
        ("Port-channel1.100", "", (2_000_000_000, "2 member ports")),
        ("Port-channel1.100", "interface Port-channel1\n bandwidth 500000\n", (5e8, "bandwidth of Port-channel1")),
    ],
    ids=["shutdown", "subinterface", "bandwidth of the bundle"],
)
def test_port_channel_has_the_rate_of_its_active_members(port: str, lines: str, expected: tuple[float, str]) -> None:
    text = (
        f"version 16.12\npolicy-map P\n class class-default\n  shape average percent 10\n"
        "interface GigabitEthernet0/0/0\n channel-group 1 mode active\n"
        f"interface GigabitEthernet0/0/1\n channel-group 1 mode active\n{lines}"
        f"interface {port}\n service-policy output P\n"
    )
    (policy,) = answer_policy(text).policies
    assert (policy.base.bps, policy.base_source) == expected


@pytest.mark.parametrize("name", ["FOR-MORE-THAN-ONE-SITE", "A--MORE--B", "L" * 205])
def test_names_keep_their_parts_and_length(name: str) -> None:
    text = f"version 17.9\npolicy-map {name}\n class class-default\n  shape average 1000000\n"
    (policy,) = answer_policy(text).policies
    assert policy.policy == name


def test_older_releases_have_names_of_at_most_40_characters() -> None:
    text = "version 15.7\npolicy-map {}\n class class-default\n  shape average 1000000\n"
    assert answer_policy(text.format("L" * 40)).policies and not answer_policy(text.format("L" * 41)).policies


def test_input_interface_may_be_missing_in_the_input() -> None:
    text = "version 17.9\nclass-map match-any IN\n match input-interface GigabitEthernet0/0/1\n"
    found = answer_policy(f"{text}policy-map P\n class IN\n  set dscp ef\n")
    assert found.ignored == () and not [each for each in found.findings if each.code == "class-matches-nothing"]


@pytest.mark.parametrize(
    ("release", "police", "be"),
    [
        ("17.9", "8000 9216 0 conform-action transmit exceed-action drop violate-action drop", 0),
        ("17.9", "cir percent 5 bc 2 ms be 0 ms conform-action transmit exceed-action drop violate-action drop", 0),
        ("17.9", "8000 9216 999", None),
        ("17.9", "cir 8000 pir 16000 be 0", None),
        ("12.3", "8000 9216 0", None),
    ],
)
def test_zero_excess_burst_selects_a_later_release(release: str, police: str, be: int | None) -> None:
    text = f"version {release}\npolicy-map P\n class class-default\n  police {police}\n"
    (policy,) = answer_policy(text, rate_bps=10_000_000).policies
    (found,) = (each.police for each in policy.classes)
    assert (None if found is None else found.be_bytes) == be


CHANNELS = """\
version 15.7
controller T1 0/1/0
 channel-group 0 timeslots 1-24
controller E1 0/1/1
 channel-group 3 timeslots 1,5-8 speed 56
controller T1 0/1/2
policy-map P
 class class-default
  shape average percent 50
"""
IN_BUNDLE = " encapsulation ppp\n ppp multilink\n ppp multilink group 1\n"
BUNDLE = "interface Multilink1\n ppp multilink group 1\n service-policy output P\n"


@pytest.mark.parametrize(
    ("interfaces", "rate", "source"),
    [
        ("interface Serial0/1/0:0\n service-policy output P\n", 1_536_000, "24 timeslots"),
        ("interface Serial0/1/1:3\n service-policy output P\n", 280_000, "5 timeslots"),
        ("interface Serial0/1/0:0\n bandwidth 1024\n service-policy output P\n", 1_024_000, "bandwidth"),
        (
            f"{BUNDLE}interface Serial0/1/0:0\n{IN_BUNDLE}interface Serial0/0/0\n{IN_BUNDLE}",
            3_080_000,
            "2 member links",
        ),
        (f"{BUNDLE}interface Serial0/0/0\n bandwidth 2048\n multilink-group 1\n", 2_048_000, "1 member link"),
        (f"{BUNDLE}interface Serial0/1/2:0\n{IN_BUNDLE}interface Serial0/0/0\n{IN_BUNDLE}", None, "not known"),
        (f"{BUNDLE}interface Serial0/0/0\n ppp multilink group 11\n", None, "not known"),
    ],
    ids=["T1", "E1", "bandwidth", "bundle", "bandwidth of a member", "unknown member", "other bundle"],
)
def test_channel_or_bundle_has_the_rate_of_its_members(interfaces: str, rate: int | None, source: str) -> None:
    (policy,) = answer_policy(CHANNELS + interfaces).policies
    assert (policy.base.bps if policy.base.is_absolute else None, policy.base_source) == (rate, source)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("int g0/0", "interface g0/0"),
        ("inter Serial 0/0", "interface Serial 0/0"),
        (" service-policy out WAN", " service-policy output WAN"),
        (" no service-policy in WAN", " no service-policy input WAN"),
        (" service-policy output WAN", " service-policy output WAN"),
        (" service-policy input", " service-policy input"),
        (" description int g0/0 service-policy out WAN", " description int g0/0 service-policy out WAN"),
    ],
)
def test_abbreviations_are_expanded(typed: str, read: str) -> None:
    assert configuration_text(f"hostname R1\n{typed}\n").splitlines()[1] == read


@pytest.mark.parametrize(
    "text",
    [
        "banner motd ^C\npolicy-map FAKE\n^C\n",
        "banner login #policy-map FAKE\ninterface Fake0/0 #\n",
        "R1(config)#banner exec @\npolicy-map FAKE\n@\n",
        "macro name M\npolicy-map FAKE\n@\n",
    ],
)
def test_banner_and_macro_texts_are_not_parsed_as_configuration(text: str) -> None:
    found = configuration_text(f"{text}policy-map REAL\n class class-default\n")
    assert "FAKE" not in found
    assert found.splitlines().index("policy-map REAL") == len(text.splitlines())


def test_unterminated_banner_hides_nothing() -> None:
    assert "policy-map P" in configuration_text("banner motd #\npolicy-map P\n class class-default\n")


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["random-detect", "queue-limit 20"], [("warning", "red-above-limit")]),
        (["random-detect", "queue-limit 40"], []),
        (["random-detect", "random-detect precedence 0 50 80"], [("warning", "red-above-limit")]),
        (["random-detect", "random-detect precedence 0 50 80", "queue-limit 100"], []),
        (["random-detect"], []),
    ],
)
def test_thresholds_above_the_queue_limit_are_a_finding(lines: list[str], found: list[tuple[str, str]]) -> None:
    text = "version 15.2\npolicy-map P\n class class-default\n  shape average 2000000\n"
    text += "".join(f"  {line}\n" for line in lines) + "interface GigabitEthernet0/0\n service-policy output P\n"
    assert findings(text) == found


def test_values_of_a_subinterface_below_a_shaped_port_count_its_tag() -> None:
    port, sub = answer_policy(SHAPED_PORT.format(port=" service-policy output PORT\n")).policies
    assert (port.interface, port.header_bytes) == ("GigabitEthernet0/0/0", 14)
    assert (sub.interface, sub.header_bytes, sub.refused) == ("GigabitEthernet0/0/0.10", 18, "")
    both = SHAPED_PORT.format(port="").replace("dot1Q 10", "dot1Q 10 second-dot1q 20")
    native = SHAPED_PORT.format(port="").replace("dot1Q 10", "dot1Q 10 native")
    assert [answer_policy(each).policies[0].header_bytes for each in (both, native)] == [22, 14]
    queues = SHAPED_PORT.format(port=" service-policy output PORT\n").replace("120000000", "120000000\n  fair-queue")
    assert any("concurrently is not allowed" in each.refused for each in answer_policy(queues).policies)


def test_policy_below_a_shaped_port_is_explained_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SHAPED_PORT.format(port=" service-policy output PORT\n").replace(
        "dot1Q 10\n", "dot1Q 10\n ip address 10.1.0.1 255.255.255.0\n"
    )
    (tmp_path / "r1.txt").write_text(text)
    assert main(["explain", str(tmp_path / "r1.txt"), "udp 10.0.0.9:4000 > 10.1.0.2:5000 200 B"]) == ExitStatus.WITHIN
    shown = " ".join(capsys.readouterr().out.split())
    assert "policy-map SUB" in shown and "the shaper of the port of GigabitEthernet0/0/0.10 is not modelled" in shown


@pytest.mark.parametrize(
    ("interface", "header"),
    [
        ("Serial0/0/0:0\n encapsulation ppp", 4),
        ("Serial0/0/0:0", 4),
        ("Serial0/0/0:0\n encapsulation frame-relay", None),
        ("Serial0/0/0:0\n encapsulation ppp\n ppp multilink", None),
        ("Port-channel1", 14),
        ("Port-channel2.200\n encapsulation dot1Q 200 primary GigabitEthernet0/0/2", 18),
        ("Port-channel2.200\n encapsulation dot1Q 20 second-dot1q 200", 22),
        ("Dialer1\n encapsulation ppp", None),
    ],
)
def test_layer_2_of_interfaces_that_are_not_modelled_is_counted_if_known(interface: str, header: int | None) -> None:
    text = f"version 17.3\npolicy-map P\n class class-default\n  shape average 1000000\ninterface {interface}\n"
    [found] = answer_policy(text + " bandwidth 2000\n service-policy output P\n").policies
    assert found.header_bytes == header


def test_lines_that_change_the_order_of_a_bundle_are_listed() -> None:
    text = (
        "version 12.4\npolicy-map P\n class class-default\n  fair-queue\ninterface Multilink1\n bandwidth 768\n"
        " ppp multilink\n ppp multilink fragment delay 10\n ppp multilink interleave\n"
        " ip rtp header-compression iphc-format\n service-policy output P\n"
    )
    listed = [each.text for each in answer_policy(text).ignored]
    expected = ["ppp multilink fragment delay 10", "ppp multilink interleave", "ip rtp header-compression iphc-format"]
    assert listed == expected


def test_an_unread_size_of_packets_is_listed() -> None:
    text = "version 17.6\npolicy-map P\n class class-default\n  shape average 90000000\n"
    port = "interface TenGigabitEthernet0/0/0\n mtu 9216\n service-policy output P\n"
    assert [each.text for each in answer_policy(text + port).ignored] == ["mtu 9216"]
