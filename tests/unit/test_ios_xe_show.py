"""`show policy-map interface` of IOS-XE, as in its output and as Genie's parser reads it."""

from __future__ import annotations

from typing import Any

from fake_router import class_counters, interface_counters

from qoslab.genie.show_parser import parse
from qoslab.ios.model.device import Interface
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.show.policy_interface import show_policy_map_interface
from qoslab.ios.show.queueing import queue_lines


def volume(packets: int, size: int, rate: float | None = None) -> dict[str, Any]:
    return {"packets": packets, "bytes": size} | ({} if rate is None else {"rate_bps": rate})


def queue(**replace: Any) -> dict[str, Any]:
    return {
        "discipline": "fifo",
        "limit_packets": 208,
        "limit_bytes": None,
        "limit_ms": None,
        "limit_us": None,
        "depth_packets": 0,
        "depth_bytes": 0,
        "in_ring_packets": 2,
        "per_flow_limit": None,
        "flows": None,
        "max_flows": None,
        "output": volume(0, 0),
        "conversation": None,
        "congested": volume(0, 0),
        **replace,
    }


SHAPE = {
    "mode": "average",
    "cir_bps": 50_000_000,
    "percent": None,
    "target_bps": 50_000_000,
    "bc_bits": 200_000,
    "be_bits": 200_000,
    "interval_ms": 4,
    "byte_limit": 50_000,
    "increment_bytes": 25_000,
    "active": True,
    "sent": volume(0, 0),
    "delayed": volume(0, 0),
}
POLICE = {
    "form": "cir",
    "cir_bps": 5_000_000,
    "cir_percent": 10,
    "bc_bytes": 156_250,
    "pir_bps": None,
    "pir_percent": None,
    "be_bytes": None,
    "conformed": volume(10, 2140, 17_000.0),
    "exceeded": volume(0, 0, 0.0),
    "violated": None,
    "dynamic": None,
}
NO_DROPS = class_counters()["drops"]
STRICT = {
    "unit": "strict",
    "kbps": None,
    "percent": None,
    "burst_bytes": None,
    "exceed_drops": volume(0, 0),
    "level": 1,
    "conversation": None,
}
RED_ROW = {
    "transmitted": volume(90, 126_000),
    "random_drop": volume(3, 4200),
    "tail_drop": volume(0, 0),
    "ecn_mark": volume(0, 0),
    "denominator": 10,
}


def edge() -> tuple[dict[str, Any], dict[str, Any]]:
    """Provide the configuration and the counters of a WAN edge: parent shaper, priority, `bandwidth remaining` and
    WRED.
    """
    rate = {"bps": 50_000_000}
    config = {
        "generation": "ios-xe",
        "class_maps": {
            "VOICE": {"match": "any", "criteria": [{"type": "dscp", "values": [46]}]},
            "DATA": {"match": "any", "criteria": [{"type": "dscp", "values": [18], "ip_only": True}]},
        },
        "policy_maps": {
            "PARENT": {"classes": [{"name": "class-default", "shape": {"mode": "average", "rate": rate}}]},
            "CHILD": {
                "classes": [
                    {
                        "name": "VOICE",
                        "priority": {"unit": "strict", "level": 1},
                        "police": {"cir": {"percent": 10}},
                    },
                    {
                        "name": "DATA",
                        "bandwidth": {"remaining_percent": 30},
                        "random_detect": {"basis": "dscp", "thresholds": []},
                    },
                ]
            },
        },
    }
    red = {
        "basis": "dscp",
        "exponential_weight": 9,
        "mean_depth": 60.4,
        "in_bytes": False,
        "ecn_mark": None,
        "classes": [{**RED_ROW, "value": 18, "min": 91, "max": 104}],
    }
    share = {"kbps": None, "percent": None, "remaining_percent": 30, "remaining_ratio": None}
    voice = class_counters("VOICE", packets=10, bytes=2140, offered_rate_bps=17_000.0, priority=STRICT, police=POLICE)
    drops = NO_DROPS | {"random": volume(3, 4200), "tail": volume(4, 5600)}
    data = class_counters(
        "DATA",
        packets=97,
        bytes=135_800,
        offered_rate_bps=900_400.0,
        drop_rate_bps=40_000.0,
        drops=drops,
        queue=queue(depth_packets=61, output=volume(90, 126_000)),
        bandwidth=share,
        random_detect=red,
    )
    default = class_counters(queue=queue(output=volume(5, 500)))
    child = {
        "policy": "CHILD",
        "classes": [voice, data, default],
        "priority_queues": [
            {"level": 1, "limit_packets": 512, "depth_packets": 0, "drops": volume(0, 0), "output": volume(10, 2140)}
        ],
    }
    parent = class_counters(
        packets=112,
        bytes=138_440,
        offered_rate_bps=920_000.0,
        drop_rate_bps=40_000.0,
        drops=drops,
        shape=SHAPE,
        queue=queue(depth_packets=61, output=volume(105, 128_640)),
        child=child,
    )
    policy = {"policy": "PARENT", "classes": [parent], "priority_queues": []}
    name = "GigabitEthernet0/0/0"
    return config, {"interfaces": {name: interface_counters(policy_output=policy)}}


def policy_output() -> str:
    config, counters = edge()
    return show_policy_map_interface(config, counters)  # type: ignore[arg-type]


def test_genie_parses_the_wan_edge() -> None:
    parsed: Any = parse("iosxe", "show policy-map interface", policy_output()).parsed
    policies = parsed["GigabitEthernet0/0/0"]["service_policy"]["output"]["policy_name"]
    parent = policies["PARENT"]["class_map"]["class-default"]
    assert parent["target_shape_rate"] == 50_000_000
    assert (parent["shape_bc_bps"], parent["shape_be_bps"]) == (200_000, 200_000)
    # Packets queued below a class belong to its child; drops of the child count here too.
    assert (parent["queue_depth"], parent["total_drops"]) == (0, 7)
    assert parent["rate"]["drop_rate_bps"] == 0
    child = parent["child_policy_name"]["CHILD"]
    levels = policies["PARENT"]["queue_stats_for_all_priority_classes"]["priority_level"]
    assert levels["1"]["queue_limit_packets"] == "512"
    voice, data = child["class_map"]["VOICE"], child["class_map"]["DATA"]
    assert voice["priority"]["type"] == "Strict"
    assert voice["priority_level"] == 1
    assert voice["police"]["cir_bc_bytes"] == 156_250
    assert voice["police"]["conformed"] == {
        "packets": 10,
        "bytes": 2140,
        "bps": 17_000,
        "actions": {"transmit": True},
    }
    assert voice["police"]["exceeded"]["bps"] == 0
    assert (data["queue_limit_packets"], data["queue_depth"], data["total_drops"]) == ("208", 61, 7)
    assert data["bandwidth_remaining_percent"] == 30
    red = data["random_detect"]
    assert (red["exp_weight_constant"], red["mean_queue_depth"]) == ("9 (1/512)", 60)
    assert (red["class"]["af21"]["minimum_thresh"], red["class"]["af21"]["maximum_thresh"]) == ("91", "104")


def test_rates_are_whole_kilobits_in_bits() -> None:
    text = policy_output()
    assert "5 minute offered rate 900000 bps, drop rate 40000 bps\n" in text
    assert "5 minute offered rate 920000 bps, drop rate 0000 bps\n" in text
    assert "conformed 17000 bps, exceeded 0000 bps\n" in text


def test_ios_xe_match_lines_have_no_counters() -> None:
    lines = [line.strip() for line in policy_output().splitlines()]
    at = lines.index("Match:  dscp ef (46)")
    assert "packets" not in lines[at + 1]
    assert not any(line.endswith("rate 0 bps") for line in lines)


def test_queue_limits_in_microseconds_are_printed() -> None:
    config, counters = edge()
    policy = counters["interfaces"]["GigabitEthernet0/0/0"]["policy_output"]
    data = policy["classes"][0]["child"]["classes"][1]
    data["queue"] |= {"limit_packets": None, "limit_bytes": 49_152, "limit_us": 3932}
    text = show_policy_map_interface(config, counters)  # type: ignore[arg-type]
    assert "          queue limit 3932 us/ 49152 bytes\n" in text


def test_queues_of_an_interface_have_the_lines_of_ios_xe() -> None:
    counters: Any = interface_counters()
    counters["queue"] |= {"strategy": "class_based", "threshold": None}
    assert list(queue_lines(Interface("GigabitEthernet0/0/0"), counters, GENERATIONS["ios-xe"])) == [
        "Input queue: 0/375/0/0 (size/max/drops/flushes); Total output drops: 0",
        "Queueing strategy: Class-based queueing",
        "Output queue: 0/40 (size/max)",
    ]
