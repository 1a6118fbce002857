"""Show output about queues: the reference's output, both generations, Genie's parsers and qoslab's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from fake_router import FakeRouter, class_counters, interface_counters, type_lines
from genie.libs.parser.ios.show_interface import ShowInterfaces
from genie.libs.parser.iosxe.show_policy_map import ShowPolicyMap, ShowPolicyMapInterface

from ios_strategies import hardware
from qoslab.analysis.show_policy_rows import observed_class_rows
from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.genie.policy_parsers import parse_policy_map
from qoslab.genie.show_parser import parse
from qoslab.ios.cli.output_filters import parse as parse_filter
from qoslab.ios.cli.output_filters import split
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Generation
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.show.policy_interface import show_policy_map_interface
from qoslab.ios.show.policy_map import show_policy_map

GOLDENS = Path(__file__).parent.parent / "goldens" / "ios"

CLASSES = (
    "ip access-list extended P5001\n permit tcp any any eq 5001\nclass-map Echo\n match protocol icmp\n"
    "class-map P5001\n match access-group name P5001\nclass-map High\n match ip precedence 5\n"
)
HQF = CLASSES + (
    "policy-map WAN\n class Echo\n  priority 64\n class P5001\n  bandwidth percent 20\n  fair-queue\n"
    " class class-default\n  fair-queue\n"
)
CLASSIC = CLASSES + (
    "policy-map WAN\n class Echo\n  priority 64\n class High\n  bandwidth percent 50\n"
    " class class-default\n  fair-queue\n"
)


def packets_and_bytes(packets: int, size: int) -> dict[str, int]:
    return {"packets": packets, "bytes": size}


def queue(depth: int = 0, output: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    empty = {
        "discipline": "fifo",
        "limit_packets": 64,
        "limit_bytes": None,
        "limit_ms": None,
        "depth_packets": depth,
        "depth_bytes": 0,
        "in_ring_packets": 0,
        "per_flow_limit": None,
        "flows": None,
        "max_flows": None,
        "output": output or packets_and_bytes(0, 0),
        "conversation": None,
        "congested": packets_and_bytes(0, 0),
    }
    return empty | more


def bandwidth_counters(**values: Any) -> dict[str, Any]:
    return dict.fromkeys(("kbps", "percent", "remaining_percent", "remaining_ratio")) | values


def priority_counters(**values: Any) -> dict[str, Any]:
    usual = {"unit": "kbps", "kbps": 64, "percent": None, "burst_bytes": 1600, "level": 1, "conversation": None}
    return usual | {"exceed_drops": packets_and_bytes(0, 0)} | values


def drop_counters(**reasons: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = class_counters()["drops"]
    return found | reasons


def printed_policy(
    text: str, generation: Generation, classes: list[dict[str, Any]], queues: list[dict[str, Any]], name: str = "WAN"
) -> str:
    config = compile_device(parse_config(text, hardware(generation)))
    policy = {"policy": name, "classes": classes, "priority_queues": queues}
    counters: Any = {"interfaces": {"Serial0/1/0": interface_counters(load_interval_s=30, policy_output=policy)}}
    return show_policy_map_interface(config, counters)


def hqf_print() -> str:
    """Provide the reference values of a 2 Mb/s line with a class for each of two flows and one for echoes."""
    echo = class_counters(
        "Echo", match="all", packets=870, bytes=38280, offered_rate_bps=1000.0, priority=priority_counters()
    )
    tcp = class_counters(
        "P5001",
        match="all",
        packets=303,
        bytes=367480,
        offered_rate_bps=409_000.0,
        drop_rate_bps=15_000.0,
        queue=queue(111, packets_and_bytes(303, 367480), discipline="fair_queue", per_flow_limit=16),
        bandwidth=bandwidth_counters(percent=20, kbps=400),
    )
    default = class_counters(
        packets=5097,
        bytes=1325220,
        offered_rate_bps=1_635_000.0,
        drop_rate_bps=733_000.0,
        queue=queue(18, packets_and_bytes(3496, 908540), discipline="fair_queue", per_flow_limit=16),
        drops=drop_counters(flow=packets_and_bytes(1605, 417300)),
    )
    shared = {
        "level": 1,
        "limit_packets": 64,
        "depth_packets": 0,
        "drops": packets_and_bytes(0, 0),
        "output": packets_and_bytes(870, 38280),
    }
    return printed_policy(HQF, "hqf", [echo, tcp, default], [shared])


def classic_print() -> str:
    """Provide the reference values of a 256 kb/s line with a priority class and one of 50 %."""
    echo = class_counters(
        "Echo", match="all", priority=priority_counters(conversation=136), queue=queue(), packets=10, bytes=640
    )
    high = class_counters(
        "High",
        match="all",
        packets=6000,
        bytes=3432000,
        queue=queue(4, conversation=137, congested=packets_and_bytes(5981, 3421234)),
        bandwidth=bandwidth_counters(percent=50, kbps=128),
    )
    default = class_counters(queue=queue(discipline="fair", max_flows=128))
    return printed_policy(CLASSIC, "classic", [echo, high, default], [])


def policy_classes(parsed: dict[str, Any], policy: str = "WAN") -> dict[str, Any]:
    found: dict[str, Any] = parsed["Serial0/1/0"]["service_policy"]["output"]["policy_name"][policy]["class_map"]
    return found


def test_output_of_the_later_generation_equals_the_reference(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDENS / "show_policy-map_interface.hqf.txt", hqf_print())


def test_filtered_output_of_the_later_generation_equals_the_article() -> None:
    """Compare with the article's output of `show policy-map interface serial 0/1/0 | include map|bps`, with its
    values.
    """
    rates = {"P5001": (394, 0, 20), "P5003": (2073, 1479, 30), "class-default": (1780, 790, None)}
    classes = [
        class_counters(
            name,
            match="any" if percent is None else "all",
            offered_rate_bps=offered * 1e3,
            drop_rate_bps=dropped * 1e3,
            queue=queue(),
            bandwidth=percent and bandwidth_counters(percent=percent, kbps=20 * percent),
        )
        for name, (offered, dropped, percent) in rates.items()
    ]
    text = CLASSES + "class-map P5003\n match access-group name P5001\n"
    text += "policy-map WAN\n class P5001\n  bandwidth percent 20\n class P5003\n  bandwidth percent 30\n"
    line = "show policy-map interface serial 0/1/0 | include map|bps"
    shown = split(line)[1]
    assert shown is not None
    kept = parse_filter(line, shown).apply(printed_policy(text, "hqf", classes, []))
    assert [each.rstrip() for each in kept.splitlines()] == [
        "    Class-map: P5001 (match-all)",
        "      30 second offered rate 394000 bps, drop rate 0 bps",
        "      bandwidth 20% (400 kbps)",
        "    Class-map: P5003 (match-all)",
        "      30 second offered rate 2073000 bps, drop rate 1479000 bps",
        "      bandwidth 30% (600 kbps)",
        "    Class-map: class-default (match-any)",
        "      30 second offered rate 1780000 bps, drop rate 790000 bps",
    ]


def test_output_of_the_earlier_generation_equals_the_reference(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDENS / "show_policy-map_interface.classic-queueing.txt", classic_print())


def test_genie_parses_the_later_generation() -> None:
    parsed = ShowPolicyMapInterface(device=Mock()).parse(output=hqf_print())
    shared = parsed["Serial0/1/0"]["service_policy"]["output"]["policy_name"]["WAN"][
        "queue_stats_for_all_priority_classes"
    ]
    (level,) = shared["priority_level"].values()
    assert (level["pkts_output"], level["bytes_output"]) == (870, 38280)
    tcp = policy_classes(parsed)["P5001"]
    assert (tcp["bandwidth_percent"], tcp["bandwidth_kbps"], tcp["fair_queue_limit_per_flow"]) == (20, 400, 16)
    assert (tcp["pkts_output"], tcp["rate"]["offered_rate_bps"]) == (303, 409000)


def test_qoslab_parses_all_output_of_the_later_generation() -> None:
    parsed = parse_policy_map_interface(hqf_print())
    assert "unrecognised" not in str(parsed)
    classes = policy_classes(parsed)
    assert classes["Echo"]["priority"] == {"kbps": 64, "burst_bytes": 1600, "exceed_drops": 0}
    default = classes["class-default"]
    assert (default["queue_depth"], default["total_drops"], default["flow_drops"]) == (18, 1605, 1605)


def test_qoslab_parses_all_output_of_the_earlier_generation() -> None:
    text = classic_print()
    parsed = parse_policy_map_interface(text)
    assert "unrecognised" not in str(parsed)
    classes = policy_classes(parsed)
    assert classes["Echo"]["priority"] == {"type": "Strict", "kbps": 64, "burst_bytes": 1600}
    assert (classes["Echo"]["output_queue"], classes["Echo"]["total_drops"]) == ("Conversation 136", 0)
    high = classes["High"]
    assert (high["bandwidth_percent"], high["bandwidth_kbps"], high["pkts_matched"]) == (50, 128, 5981)
    assert high["bandwidth_max_threshold_packets"] == 64
    assert classes["class-default"]["maximum_hashed_queues"] == 128
    # Genie's parser accepts it too, although it files some values elsewhere.
    assert ShowPolicyMapInterface(device=Mock()).parse(output=text)


RED = {
    "basis": "precedence",
    "exponential_weight": 9,
    "in_bytes": False,
    "mean_depth": 3.7,
    "ecn_mark": None,
    "classes": [
        {
            "value": value,
            "transmitted": packets_and_bytes(662, 67003) if value == 0 else packets_and_bytes(0, 0),
            "random_drop": packets_and_bytes(value, 100 * value),
            "tail_drop": packets_and_bytes(0, 0),
            "ecn_mark": packets_and_bytes(43, 5375) if value == 1 else packets_and_bytes(0, 0),
            "min": 20 + 2 * value,
            "max": 40,
            "denominator": 10,
        }
        for value in range(8)
    ],
}
DSCP = RED | {
    "basis": "dscp",
    "classes": [RED["classes"][0] | {"value": value} for value in (0, 10, 46)],  # type: ignore[index]
}


@pytest.mark.parametrize("generation", ["classic", "hqf"])
@pytest.mark.parametrize(("red", "names"), [(RED, [str(n) for n in range(8)]), (DSCP, ["default", "af11", "ef"])])
def test_early_detection_is_printed(generation: Generation, red: dict[str, Any], names: list[str]) -> None:
    based = " dscp-based" if red is DSCP else ""
    text = f"{CLASSES}policy-map WAN\n class High\n  bandwidth 500\n  random-detect{based}\n"
    high = class_counters(
        "High",
        match="all",
        queue=queue(7, conversation=265),
        bandwidth=bandwidth_counters(kbps=500),
        drops=drop_counters(random=packets_and_bytes(28, 2800), random_tail=packets_and_bytes(2, 0)),
        random_detect=red,
    )
    shown = printed_policy(text, generation, [high, class_counters()], [])
    ours = parse_policy_map_interface(shown)
    for parsed in (ours, ShowPolicyMapInterface(device=Mock()).parse(output=shown)):
        found = policy_classes(parsed)["High"]
        table = found["random_detect"]
        assert list(table["class"]) == names
        assert table["class"][names[0]]["transmitted_packets"] == "662"
        assert table["class"][names[-1]]["mark_prob"] == "1/10"
        assert table["mean_queue_depth"] == 3
        if parsed is ours or generation == "hqf":
            assert (found["total_drops"], found["queue_depth"]) == (30, 7)
    assert "unrecognised" not in str(ours)


@pytest.mark.parametrize("generation", ["classic", "hqf"])
def test_ecn_marks_of_early_detection_are_printed(generation: Generation) -> None:
    """Compare with the values of the output in Cisco's guide "WRED: Explicit Congestion Notification"."""
    text = f"{CLASSES}policy-map WAN\n class High\n  bandwidth 500\n  random-detect\n  random-detect ecn\n"
    high = class_counters(
        "High",
        match="all",
        queue=queue(7, conversation=265),
        bandwidth=bandwidth_counters(kbps=500),
        random_detect=RED | {"ecn_mark": packets_and_bytes(43, 5375)},
    )
    shown = printed_policy(text, generation, [high, class_counters()], [])
    ours = parse_policy_map_interface(shown)
    assert "unrecognised" not in str(ours)
    assert parse("ios", "show policy-map interface", shown).parsed == ours
    for parsed in (ours, ShowPolicyMapInterface(device=Mock()).parse(output=shown)):
        rows = policy_classes(parsed)["High"]["random_detect"]["class"]
        assert (list(rows), rows["0"]["transmitted_packets"]) == ([str(n) for n in range(8)], "662")
    table = policy_classes(ours)["High"]["random_detect"]
    assert table["explicit_congestion_notification"] is True
    marks = {name: (row["ecn_mark_packets"], row["ecn_mark_bytes"]) for name, row in table["class"].items()}
    assert marks == {str(n): ("0", "0") for n in range(8)} | {"1": ("43", "5375")}
    rows = [row for row in observed_class_rows("R1", ours, 6.0) if row["class"] == "High"]
    assert [row["random_detect_ecn_mark_packets"] for row in rows] == [43]


def test_queue_limits_in_bytes_are_printed() -> None:
    """Compare with values of IOS XE output; how it prints thresholds by code point is unknown."""
    text = (
        f"{CLASSES}policy-map WAN\n class High\n  bandwidth 300\n  queue-limit 10 ms\n  queue-limit dscp af12 5 ms\n"
        "  random-detect dscp-based\n  random-detect dscp ef 5 ms 9 ms\n"
    )
    table = DSCP | {"in_bytes": True, "mean_depth": 15000.4}
    high = class_counters(
        "High",
        match="all",
        queue=queue(7, depth_bytes=9476, limit_packets=None, limit_bytes=375000, limit_ms=10),
        bandwidth=bandwidth_counters(kbps=300),
        random_detect=table,
    )
    shown = printed_policy(text, "hqf", [high, class_counters()], [])
    assert "      queue limit 10 ms/ 375000 bytes\n      dscp af12 queue limit 5 ms\n" in shown
    ours = parse_policy_map_interface(shown)
    assert "unrecognised" not in str(ours)
    assert parse("ios", "show policy-map interface", shown).parsed == ours
    found = policy_classes(ours)["High"]
    assert (found["queue_limit_ms"], found["queue_limit_bytes"], found["queue_depth"]) == (10, 375000, 9476)
    (row,) = (row for row in observed_class_rows("R1", ours, 6.0) if row["class"] == "High")
    # The output does not give the number of packets.
    assert (row["queue_depth_packets"], row["queue_depth_bytes"], row["queue_limit_ms"]) == (None, 9476, 10)
    assert found["queue_thresholds"] == {"dscp": {"af12": "5 ms"}}
    assert found["random_detect"]["mean_queue_depth"] == 15000
    theirs = policy_classes(ShowPolicyMapInterface(device=Mock()).parse(output=shown))["High"]["random_detect"]
    assert list(theirs["class"]) == ["default", "af11", "ef"]
    listed = parse_policy_map(shown_policy_map(text, "hqf"))["policy_map"]["WAN"]["class"]["High"]
    assert "unrecognised" not in listed
    assert (listed["queue_limit_ms"], listed["queue_thresholds"]) == (10, {"dscp": {"af12": "5 ms"}})
    assert listed["random_detect"]["class"]["ef"]["min_threshold"] == "5 ms"


def test_early_detection_columns_are_aligned() -> None:
    text = f"{CLASSES}policy-map WAN\n class High\n  bandwidth percent 25\n  random-detect\n"
    one = RED | {"mean_depth": 0.0, "classes": [RED["classes"][0]]}  # type: ignore[index]
    high = class_counters(
        "High", match="all", queue=queue(), bandwidth=bandwidth_counters(percent=25, kbps=5000), random_detect=one
    )
    shown = printed_policy(text, "hqf", [high, class_counters()], [])
    assert shown.split("(pkts output/bytes output) 0/0\n")[1].split("\n\n")[0] == (
        "      bandwidth 25% (5000 kbps)\n"
        "        Exp-weight-constant: 9 (1/512)\n"
        "        Mean queue depth: 0 packets\n"
        "        class     Transmitted       Random drop      Tail drop          Minimum        Maximum     Mark\n"
        "                  pkts/bytes     pkts/bytes       pkts/bytes          thresh         thresh     prob\n"
        "        \n"
        "        0             662/67003           0/0              0/0                 20            40  1/10"
    )


@pytest.mark.parametrize(
    ("typed_line", "counters", "line"),
    [
        (
            "priority percent 10",
            {"priority": priority_counters(unit="percent", percent=10, kbps=2000, burst_bytes=50000)},
            "Priority: 10% (2000 kbps), burst bytes 50000, b/w exceed drops: 0",
        ),
        (
            "priority",
            {
                "priority": priority_counters(
                    unit="strict", kbps=None, burst_bytes=None, exceed_drops=packets_and_bytes(3, 9)
                )
            },
            "Priority: Strict, b/w exceed drops: 3",
        ),
        ("bandwidth 20000", {"bandwidth": bandwidth_counters(kbps=20000)}, "bandwidth 20000 kbps"),
        (
            "bandwidth remaining percent 25",
            {"bandwidth": bandwidth_counters(remaining_percent=25)},
            "bandwidth remaining 25%",
        ),
        (
            "bandwidth remaining ratio 10",
            {"bandwidth": bandwidth_counters(remaining_ratio=10)},
            "bandwidth remaining ratio 10",
        ),
    ],
)
def test_variants_of_the_later_generation_are_printed(typed_line: str, counters: dict[str, Any], line: str) -> None:
    text = f"{CLASSES}policy-map WAN\n class High\n  {typed_line}\n"
    high = class_counters("High", match="all", queue=queue(), **counters)
    shown = printed_policy(text, "hqf", [high, class_counters()], [])
    assert f"\n      {line}\n" in shown
    assert "unrecognised" not in str(parse_policy_map_interface(shown))
    assert ShowPolicyMapInterface(device=Mock()).parse(output=shown)


def test_priority_levels_are_printed() -> None:
    text = f"{CLASSES}policy-map WAN\n class Echo\n  priority level 1\n class High\n  priority level 2\n"
    classes = [
        class_counters(
            name, match="all", priority=priority_counters(unit="strict", kbps=None, burst_bytes=None, level=level)
        )
        for level, name in ((1, "Echo"), (2, "High"))
    ]
    queues = [
        {
            "level": level,
            "limit_packets": 64,
            "depth_packets": level,
            "drops": packets_and_bytes(level, 0),
            "output": packets_and_bytes(9, 9),
        }
        for level in (1, 2)
    ]
    shown = printed_policy(text, "hqf", [*classes, class_counters()], queues)
    parsed = parse_policy_map_interface(shown)
    assert "unrecognised" not in str(parsed)
    shared = parsed["Serial0/1/0"]["service_policy"]["output"]["policy_name"]["WAN"][
        "queue_stats_for_all_priority_classes"
    ]
    assert {level: found["queue_depth"] for level, found in shared["priority_level"].items()} == {"1": 1, "2": 2}
    assert policy_classes(parsed)["High"]["priority_level"] == 2


def test_three_levels_are_printed() -> None:
    text = CLASSES + (
        "policy-map Leaf\n class High\n  bandwidth percent 30\npolicy-map Middle\n class P5001\n  bandwidth 500\n"
        "  service-policy Leaf\npolicy-map WAN\n class class-default\n  shape average 1000000\n"
        "  service-policy Middle\n"
    )
    leaf = {
        "policy": "Leaf",
        "priority_queues": [],
        "classes": [
            class_counters(
                "High", match="all", packets=3, queue=queue(), bandwidth=bandwidth_counters(percent=30, kbps=150)
            ),
            class_counters(queue=queue()),
        ],
    }
    tcp = class_counters(
        "P5001", match="all", packets=5, queue=queue(174), bandwidth=bandwidth_counters(kbps=500), child=leaf
    )
    middle = {"policy": "Middle", "priority_queues": [], "classes": [tcp, class_counters(queue=queue())]}
    shown = printed_policy(text, "hqf", [class_counters(packets=7, queue=queue(), child=middle)], [])
    for parsed in (parse_policy_map_interface(shown), ShowPolicyMapInterface(device=Mock()).parse(output=shown)):
        outer = policy_classes(parsed)["class-default"]
        inner = outer["child_policy_name"]["Middle"]["class_map"]["P5001"]
        assert (outer["packets"], inner["packets"], inner["bandwidth_kbps"]) == (7, 5, 500)
    # Genie loses the third level; ours keeps it.
    inner = policy_classes(parse_policy_map_interface(shown))["class-default"]["child_policy_name"]["Middle"]
    assert inner["class_map"]["P5001"]["child_policy_name"]["Leaf"]["class_map"]["High"]["bandwidth_percent"] == 30


def shown_policy_map(text: str, generation: Generation, burst: int | None = 1600) -> str:
    config = compile_device(parse_config(text, hardware(generation)))
    resolved = {
        name: {
            "classes": [
                {"name": each["name"], "priority": each["priority"] and {"burst_bytes": burst}}
                for each in policy["classes"]
            ]
        }
        for name, policy in config["policy_maps"].items()
    }
    return show_policy_map(config, resolved)


def test_show_policy_map_is_printed_for_the_later_generation() -> None:
    assert shown_policy_map(HQF, "hqf") == (
        "  Policy Map WAN\n"
        "    Class Echo\n"
        "      priority 64 (kbps)\n"
        "    Class P5001\n"
        "      bandwidth 20 (%)\n"
        "      fair-queue \n"
        "    Class class-default\n"
        "      fair-queue \n"
    )
    parsed = ShowPolicyMap(device=Mock()).parse(output=shown_policy_map(HQF, "hqf"))
    assert parsed["policy_map"]["WAN"]["class"]["Echo"]["priority_kbps"] == 64


def test_show_policy_map_is_printed_for_the_earlier_generation() -> None:
    text = CLASSES + (
        "policy-map WAN\n class Echo\n  priority 100\n class High\n  bandwidth 50\n  set ip dscp ef\n class P5001\n"
        "  bandwidth 10\n  queue-limit 20\n class class-default\n  shape average 64000\n  shape max-buffers 50\n"
    )
    shown = shown_policy_map(text, "classic", 2500)
    assert shown == (
        "  Policy Map WAN\n"
        "    Class Echo\n"
        "      Strict Priority\n"
        "      Bandwidth 100 (kbps) Burst 2500 (Bytes)\n"
        "    Class High\n"
        "      Bandwidth 50 (kbps) Max Threshold 64 (packets)\n"
        "      set ip dscp ef\n"
        "    Class P5001\n"
        "      Bandwidth 10 (kbps) Max Threshold 20 (packets)\n"
        "    Class class-default\n"
        "      Average Rate Traffic Shaping\n"
        "      cir 64000 (bps)\n"
        "      Max. Buffers Limit 50 (Packets)\n"
    )
    found = parse_policy_map(shown)["policy_map"]["WAN"]["class"]
    assert "unrecognised" not in str(found)
    assert (found["Echo"]["priority_kbps"], found["Echo"]["priority_burst_bytes"]) == (100, 2500)
    assert found["class-default"]["max_buffers_packets"] == 50
    assert (found["P5001"]["bandwidth_kbps"], found["P5001"]["bandwidth_max_threshold_packets"]) == (10, 20)


@pytest.mark.parametrize("generation", ["classic", "hqf"])
def test_show_policy_map_prints_early_detection(generation: Generation) -> None:
    text = (
        f"{CLASSES}policy-map WAN\n class High\n  bandwidth 50\n  random-detect\n  random-detect precedence 3 10 20 5\n"
    )
    found = parse_policy_map(shown_policy_map(text, generation))["policy_map"]["WAN"]["class"]["High"]
    assert "unrecognised" not in found
    table = found["random_detect"]
    assert table["exponential_weight"] == 9
    assert "explicit_congestion_notification" not in table
    assert table["class"]["3"] == {"min_threshold": "10", "max_threshold": "20", "mark_probability": "1/5"}
    assert table["class"]["0"]["min_threshold"] == "-"


# Interfaces


def serial_router(text: str, **queue_counters: Any) -> FakeRouter:
    router = FakeRouter("2811")
    apply_config(router.device, f"interface Serial0/1/0\n{text}")
    idle = interface_counters()
    idle["line_rate_bps"] = 512_000
    idle["queue"] |= queue_counters  # type: ignore[typeddict-item]
    idle["tx_ring"] = {"limit": 2, "depth": 0}
    router.interfaces["Serial0/1/0"] = idle
    return router


def answer(router: FakeRouter, command: str) -> str:
    return type_lines(router, f"terminal length 0\r{command}\r").split(command + "\n", 1)[1].rpartition("R1#")[0]


CONVERSATIONS = {
    "strategy": "class_based",
    "depth": 64,
    "limit": 1000,
    "threshold": 64,
    "drops": 213395,
    "conversations": 1,
    "max_active_conversations": 3,
    "max_conversations": 128,
    "reserved_conversations": {"allocated": 1, "max": 1},
    "available_bandwidth_kbps": 320,
}
BLOCK = (
    "  Queueing strategy: Class-based queueing\n"
    "  Output queue: 64/1000/64/213395 (size/max total/threshold/drops) \n"
    "     Conversations  1/3/128 (active/max active/max total)\n"
    "     Reserved Conversations 1/1 (allocated/max allocated)\n"
    "     Available Bandwidth 320 kilobits/sec\n"
)


def test_serial_interface_prints_conversations() -> None:
    router = serial_router("bandwidth 512\nencapsulation ppp\nip address 172.16.1.129 255.255.255.252", **CONVERSATIONS)
    shown = answer(router, "show interfaces Serial0/1/0")
    assert BLOCK in shown
    for line in (
        "  Hardware is GT96K Serial\n",
        "  Internet address is 172.16.1.129/30\n",
        "  MTU 1500 bytes, BW 512 Kbit, DLY 20000 usec, \n",
        "  Encapsulation PPP, LCP ",
        "  CRC checking enabled\n",
    ):
        assert line in shown
    parsed = ShowInterfaces(device=Mock()).parse(output=shown)["Serial0/1/0"]
    assert parsed["queues"]["queue_strategy"] == "Class-based"
    assert parsed["bandwidth"] == 512


def test_later_generation_prints_no_conversations() -> None:
    router = serial_router("bandwidth 512", strategy="class_based", limit=1000)
    assert (
        "  Queueing strategy: Class-based queueing\n  Output queue: 0/1000/0 (size/max total/drops)\n  5 minute"
        in answer(router, "show interfaces Serial0/1/0")
    )


def test_show_queueing_interface_prints_queues() -> None:
    shown = answer(serial_router("bandwidth 512", **CONVERSATIONS), "show queueing interface Serial0/1/0")
    assert shown.startswith("Interface Serial0/1/0 queueing strategy: fair\n  Input queue: 0/75/0/0 (size/max/")
    assert shown.endswith(BLOCK)
    parsed = parse("ios", "show queueing interface Serial0/1/0", shown).parsed
    assert parsed == {
        "Serial0/1/0": {
            "queueing_strategy": "fair",
            "input_queue": {"size": 0, "max": 75, "drops": 0, "flushes": 0},
            "total_output_drops": 0,
            "strategy": "Class-based queueing",
            "output_queue": {"size": 64, "max_total": 1000, "threshold": 64, "drops": 213395},
            "conversations": {"active": 1, "max_active": 3, "max_total": 128},
            "reserved_conversations": {"allocated": 1, "max_allocated": 1},
            "available_bandwidth_kbps": 320,
        }
    }
    plain = answer(serial_router(""), "show queueing interface serial 0/1/0")
    assert plain.startswith("Interface Serial0/1/0 queueing strategy: none\n")
    assert "Output queue: 0/40 (size/max)\n" in plain


def test_show_queueing_fair_prints_queues() -> None:
    router = serial_router("", **CONVERSATIONS)
    shown = answer(router, "show queueing fair")
    assert shown.startswith("Current fair queue configuration:\n")
    assert "\n  Serial0/1/0         64         128      256      8       1\n" in shown
    assert parse("ios", "show queueing fair", shown).parsed == {
        "Serial0/1/0": {
            "discard_threshold": 64,
            "dynamic_queues": 128,
            "reserved_queues": 256,
            "link_queues": 8,
            "priority_queues": 1,
        }
    }
    assert answer(router, "show queueing").startswith(shown)


@pytest.mark.parametrize(
    ("text", "ring", "line"),
    [
        ("fair-queue\nclock rate 512000", 2, "tx_limited = 1(2), errata19 count1 - 0, count2 - 0"),
        ("no fair-queue", 128, "tx_limited = 0(128), errata19 count1 - 0, count2 - 0"),
        ("tx-ring-limit 128", 128, "tx_limited = 1(128), errata19 count1 - 0, count2 - 0"),
    ],
)
def test_show_controllers_prints_the_ring(text: str, ring: int, line: str) -> None:
    router = serial_router(text)
    router.interfaces["Serial0/1/0"]["tx_ring"] = {"limit": ring, "depth": 0}
    assert answer(router, "show controllers serial 0/1/0 | include tx_limit") == line + "\n"
    whole = answer(router, "show controllers Serial0/1/0")
    parsed = parse("ios", "show controllers Serial0/1/0", whole).parsed
    assert parsed is not None
    found = parsed["Serial0/1/0"]
    assert (found["tx_ring_limit"], found["tx_limited"]) == (ring, line.startswith("tx_limited = 1"))
    assert found.get("clock_rate_bps") == (512_000 if "clock" in text else None)


def test_only_serial_ports_have_controllers_to_show() -> None:
    assert "% Invalid input" in answer(FakeRouter("2811"), "show controllers FastEthernet0/0")


def test_processor_use_can_be_filtered() -> None:
    shown = answer(FakeRouter(), "show proc cpu | inc CPU")
    assert shown == "CPU utilization for five seconds: 8%/6%; one minute: 8%; five minutes: 5%\n"
