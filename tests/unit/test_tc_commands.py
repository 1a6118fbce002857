"""Templates of tc commands: their units, mistakes with their places, and the resulting trees of queues."""

from __future__ import annotations

from typing import Any

import pytest

from qoslab.errors import IosError
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Hardware
from qoslab.ios.parse import parse_config
from qoslab.tc.commands import TcError, compile_commands, is_tc, parse
from qoslab.tc.commands.kinds import KINDS
from qoslab.tc.commands.router_template import apply_template
from qoslab.tc.commands.tc_units import UnitError, parse_rate, parse_size, parse_time

PORTS = ("Ethernet0", "Ethernet1")


def compile_text(*lines: str) -> Any:
    return compile_commands(parse("\n".join(lines), source="r.tc"), PORTS, source="r.tc")


def tree(*lines: str) -> Any:
    return compile_text(*lines).queueing["Ethernet0"]


def queue(options: str) -> Any:
    (node,) = tree(f"tc qdisc add dev eth0 root {options}")["nodes"]
    return node["queue"] | ({"shape": node["shape"]} if node["shape"] else {})


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (parse_rate, "20mbit", 20_000_000),
        (parse_rate, "20Mbit", 20_000_000),
        (parse_rate, "1.5kbit", 1_500),
        (parse_rate, "64kbps", 512_000),
        (parse_rate, "1mibit", 1 << 20),
        (parse_rate, "9600", 9_600),
        (parse_size, "1600b", 1_600),
        (parse_size, "32k", 32_768),
        (parse_size, "4mb", 4 << 20),
        (parse_size, "8kbit", 1_024),
        (parse_time, "5ms", 5_000),
        (parse_time, "100us", 100),
        (parse_time, "1.5s", 1_500_000),
        (parse_time, "250", 250),
    ],
)
def test_units_equal_those_of_tc(read: Any, text: str, value: int) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text"), [(parse_rate, "20 m"), (parse_rate, "fast"), (parse_size, "-1"), (parse_time, "5min")]
)
def test_unknown_tc_units_are_refused(read: Any, text: str) -> None:
    with pytest.raises(UnitError):
        read(text)


def test_defaults_equal_those_of_linux() -> None:
    assert queue("fq_codel") == {
        "kind": "fq_codel",
        "limit": 10_240,
        "flows": 1_024,
        "quantum": 1_514,
        "target_us": 5_000,
        "interval_us": 100_000,
        "ce_threshold_us": None,
        "memory_limit": 32 << 20,
        "drop_batch": 64,
        "ecn": True,
    }
    assert (queue("codel")["limit"], queue("codel")["ecn"]) == (1_000, False)
    found = queue("pie")
    assert [found[name] for name in ("limit", "target_us", "tupdate_us", "alpha", "beta", "ecn")] == [
        1_000,
        15_000,
        15_000,
        2,
        20,
        False,
    ]


def test_cake_has_its_shaper_and_keywords() -> None:
    found = queue("cake bandwidth 20mbit")
    assert found["shape"] == {
        "rate_bps": 20_000_000,
        "burst_bytes": 0,
        "deficit": True,
        "account": {"offset_bytes": 0, "least_bytes": 0, "carrier": "frames"},
    }
    assert (found["diffserv"], found["isolation"], found["rtt_us"], found["target_us"]) == (
        "diffserv3",
        "triple_isolate",
        100_000,
        5_000,
    )
    found = queue("cake bandwidth 1mbit diffserv4 dual-dsthost pppoe-ptm mpu 68 metro wash")
    assert found["shape"]["account"] == {"offset_bytes": 16, "least_bytes": 68, "carrier": "ptm"}
    assert (found["diffserv"], found["isolation"], found["target_us"], found["wash"]) == (
        "diffserv4",
        "dual_dsthost",
        500,
        True,
    )
    assert "shape" not in queue("cake besteffort")


def test_tbf_shapes_the_qdisc_below_it() -> None:
    nodes = tree(
        "tc qdisc add dev eth0 root handle 1: tbf rate 2mbit burst 1600b limit 10mb",
        "tc qdisc add dev eth0 parent 1: handle 10: fq_codel limit 600 target 8ms noecn",
    )["nodes"]
    assert [(node["name"], node["parent"]) for node in nodes] == [("1:", None), ("10:", "1:")]
    assert nodes[0]["shape"] == {"rate_bps": 2_000_000, "burst_bytes": 1_600}
    assert (nodes[1]["queue"]["limit"], nodes[1]["queue"]["target_us"], nodes[1]["queue"]["ecn"]) == (600, 8_000, False)
    alone = queue("tbf rate 8mbit burst 10k latency 50ms")
    assert (alone["kind"], alone["limit"]) == ("bfifo", 50_000 + 10_240)


def test_htb_has_classes_filters_and_default() -> None:
    made = compile_text(
        "tc qdisc add dev eth0 root handle 1: htb default 30  # bulk",
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit",
        "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit quantum 1514",
        "tc class add dev eth0 parent 1:1 classid 1:30 htb rate 8mbit ceil 10mbit",
        "tc qdisc add dev eth0 parent 1:10 handle 10: \\",
        "  fq_codel",
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff flowid 1:10",
        "tc filter add dev eth0 parent 1: prio 2 protocol ip \\",
        "  flower ip_proto tcp dst_port 22 ip_tos 0xb8/0xfc classid 1:10",
    )
    found = made.queueing["Ethernet0"]
    assert [node["name"] for node in found["nodes"]] == ["1:1", "1:10", "1:30"]
    assert [node.get("minimum_bps") for node in found["nodes"]] == [10_000_000, 2_000_000, 8_000_000]
    # 8 Mb/s divided by r2q is more than 100 000 bytes; quantum has at most 200 000.
    assert [node["weight"] for node in found["nodes"]] == [125_000, 1_514, 100_000]
    assert (found["nodes"][1]["queue"]["kind"], found["nodes"][2]["queue"]) == (
        "fq_codel",
        {"kind": "pfifo", "limit": 1_000},
    )
    assert found["default"] == 2
    assert [rule["queue"] for rule in found["rules"]] == [1, 1]
    first, second = made.access_lists.values()
    assert [(each["protocol"], each["destination_port"]) for each in first] == [
        (6, {"op": "eq", "ports": [5060]}),
        (17, {"op": "eq", "ports": [5060]}),
    ]
    assert [(each["protocol"], each["dscp"]) for each in second] == [(6, 46)]


def test_red_weight_equals_that_of_tc() -> None:
    # The example of tc-red(8): 32 * (1 - (31/32)**55) = 26.4 is the first above 55 + 1 - 30000/1000.
    found = queue("red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02")
    assert found == {
        "kind": "red",
        "limit": 400_000,
        "min": 30_000,
        "max": 90_000,
        "exponential_weight": 5,
        "denominator": 50,
        "ecn": False,
    }


@pytest.mark.parametrize(
    ("lines", "place", "message", "hint"),
    [
        (
            ["tc qdisc add dev eth0 root fq_codl"],
            "1:28",
            'found "fq_codl", expected a qdisc',
            'did you mean "fq_codel"?',
        ),
        (["tc qdisc add dev eth0 root fq_codel targt 5ms"], "1:37", 'found "targt"', 'did you mean "target"?'),
        (["tc qdisc add dev eth0 root fq_codel target fast"], "1:44", 'found target "fast", expected a time', ""),
        (["tc qdisc add dev eth0 root fq_codel target"], "1:37", "expected the value of target", ""),
        (["", "tc qdisc add dev eth7 root pie"], "2:18", 'found dev "eth7", expected an interface', ""),
        (["tc qdisc del dev eth0 root"], "1:10", 'found "del", expected a command for a qdisc', ""),
        (["tc qdisc add root pie"], "1:14", "expected dev INTERFACE", ""),
        (["tc qdisc add dev eth0 root cake ingress"], "1:33", "the engine queues output only", ""),
        (["tc qdisc add dev eth0 root tbf rate 1mbit"], "1:37", "found no burst", ""),
        (
            ["tc qdisc add dev eth0 root pie", "tc qdisc add dev eth0 root pie"],
            "2:23",
            "found a second qdisc at root",
            "",
        ),
        (["tc qdisc add dev eth0 parent 1:5 pie"], "1:18", "without a qdisc at its root", ""),
        (
            ["tc qdisc add dev eth0 root handle 1: pie", "tc qdisc add dev eth0 parent 2: pie"],
            "2:33",
            "found a qdisc at parent 2:",
            "",
        ),
        (["tc qdisc add dev eth0 root handle 1: htb default 1"], "1:38", "found htb without classes", ""),
        (
            ["tc qdisc add dev eth0 root handle 1: htb", "tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit"],
            "1:38",
            "found htb without default",
            "",
        ),
        (["interface Ethernet0"], "1:1", 'found "interface", expected a command of tc', ""),
        (["tc qdisc add dev eth0 root red limit 1000"], "1:38", "found no avpkt", ""),
    ],
)
def test_tc_command_errors_have_a_position(lines: list[str], place: str, message: str, hint: str) -> None:
    with pytest.raises(TcError) as caught:
        compile_text(*lines)
    assert str(caught.value).startswith(f"r.tc:{place}: ")
    assert message in str(caught.value)
    assert caught.value.near == hint


def test_every_qdisc_kind_parses_its_options() -> None:
    for kind in KINDS.values():
        with pytest.raises(TcError, match=f"expected a parameter of {kind.name}"):
            compile_text(f"tc qdisc add dev eth0 root {kind.name} nonsense")


def test_only_kernel_routers_accept_tc_commands() -> None:
    text = "# a comment\n\ntc qdisc add dev eth0 root fq_codel\n"
    assert is_tc(text)
    assert not is_tc("interface Ethernet0\n bandwidth 100\n")
    device = parse_config("", Hardware("Linux", PORTS, generation="hqf"))
    with pytest.raises(IosError):
        apply_template(device, text, tc=False)
    apply_template(device, text, tc=True)
    found = compile_device(device)["interfaces"]["Ethernet0"]
    assert (found["queueing"]["type"], found["tx_ring_limit"]) == ("tree", 1)
    assert "queueing" not in compile_device(device)["interfaces"]["Ethernet1"]


@pytest.mark.parametrize("line", ["ip link set Ethernet0 up", "ethtool -K Ethernet0 gro off"])
def test_commands_of_other_linux_programs_are_refused_as_such(line: str) -> None:
    text = f"{line}\ntc qdisc add dev Ethernet0 root cake bandwidth 20mbit\n"
    assert is_tc(text) and is_tc(line)
    assert not is_tc("bridge irb\ninterface Ethernet0\n ip addr 10.0.0.1 255.0.0.0\n ip address 10.0.0.1 255.0.0.0\n")
    with pytest.raises(TcError, match=r'configuration:1:1: found "(ip|ethtool)", expected a command of tc') as refused:
        parse(text)
    assert refused.value.near.startswith("remove the line: links, addresses and routes")
