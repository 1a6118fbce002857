"""Show output: the article's printed blocks, both generations, and Genie's parsers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from fake_router import FakeRouter, class_counters, interface_counters, type_lines
from genie.libs.parser.ios.show_interface import ShowInterfaces, ShowIpInterfaceBrief
from genie.libs.parser.ios.show_platform import ShowProcessesCpu, ShowVersion
from genie.libs.parser.ios.show_routing import ShowIpRouteDistributor
from genie.libs.parser.ios.show_system import ShowClock
from genie.libs.parser.iosxe.show_arp import ShowArp
from genie.libs.parser.iosxe.show_class import ShowClassMap
from genie.libs.parser.iosxe.show_policy_map import ShowPolicyMap, ShowPolicyMapInterface

from qoslab.ios.environment import RouteEntry
from qoslab.ios.show.ip import show_ip_route
from qoslab.ios.show.match import class_map_match, policy_match
from qoslab.ios.show.policy_interface import show_policy_map_interface
from qoslab.ios.show.policy_map import show_class_map, show_policy_map
from qoslab.ios.show.times import clock_text, elapsed_text, uptime_text

GOLDENS = Path(__file__).parent.parent / "goldens" / "ios"
# The article "Policing versus shaping" prints these values; the indentation is that of routers of the time.
POLICED = (GOLDENS / "show_policy-map_interface.policed.txt").read_text()
SHAPED = (GOLDENS / "show_policy-map_interface.shaped.txt").read_text()


def packets_and_bytes(packets: int, size: int, rate: float | None = None) -> dict[str, Any]:
    return {"packets": packets, "bytes": size} | ({} if rate is None else {"rate_bps": rate})


def police_counters(**replace: Any) -> dict[str, Any]:
    return {
        "form": "cir",
        "cir_bps": 1_000_000,
        "cir_percent": None,
        "bc_bytes": 31250,
        "pir_bps": None,
        "pir_percent": None,
        "be_bytes": None,
        "conformed": packets_and_bytes(1394, 1992832, 57_400.0),
        "exceeded": packets_and_bytes(673, 1005594, 29_501.0),
        "violated": None,
        "dynamic": None,
        **replace,
    }


def policed_class(**replace: Any) -> dict[str, Any]:
    return class_counters(
        packets=2070, bytes=2998927, offered_rate_bps=83_200.0, **{"police": police_counters(), **replace}
    )


SHAPE = {
    "mode": "average",
    "cir_bps": 1_000_000,
    "percent": None,
    "target_bps": 1_000_000,
    "bc_bits": 25000,
    "be_bits": 25000,
    "interval_ms": 25,
    "byte_limit": 6250,
    "increment_bytes": 3125,
    "active": True,
    "sent": packets_and_bytes(554, 715690),
    "delayed": packets_and_bytes(491, 708722),
}
QUEUE = {
    "discipline": "weighted_fair",
    "limit_packets": 64,
    "limit_bytes": None,
    "limit_ms": None,
    "depth_packets": 69,
    "depth_bytes": 90_000,
    "in_ring_packets": 0,
    "per_flow_limit": None,
    "flows": 4,
    "max_flows": 256,
    "output": packets_and_bytes(554, 715690),
}


def configuration(classes: list[dict[str, Any]], generation: str = "classic", **class_maps: Any) -> dict[str, Any]:
    names = ("set", "police", "shape", "queue_limit", "fair_queue", "service_policy")
    full = [{**dict.fromkeys(names), **entry} for entry in classes]
    return {"generation": generation, "class_maps": class_maps, "policy_maps": {"P": {"classes": full}}}


def printed_policy(
    config: dict[str, Any], classes: list[dict[str, Any]], *, interval: int = 300, name: str = "P"
) -> str:
    config = {**config, "policy_maps": {name: config["policy_maps"]["P"]}}
    counters: Any = {
        "interfaces": {
            "FastEthernet0/0": interface_counters(),
            "FastEthernet0/1": interface_counters(
                load_interval_s=interval, policy_output={"policy": name, "classes": classes, "priority_queues": []}
            ),
        }
    }
    return show_policy_map_interface(config, counters)


CIR: dict[str, Any] = {"name": "class-default", "police": {"cir": {"bps": 1_000_000}}}


def test_printed_policer_equals_that_of_the_article() -> None:
    assert printed_policy(configuration([CIR]), [policed_class()], name="Police") == POLICED


def test_printed_shaper_equals_that_of_the_article() -> None:
    config = configuration([{"name": "class-default", "shape": {"mode": "average", "rate": {"bps": 1_000_000}}}])
    counters = class_counters(packets=783, bytes=1050468, shape=SHAPE, queue=QUEUE)
    assert printed_policy(config, [counters], name="Shape") == SHAPED


def test_shorter_rate_keeps_the_shaper_columns() -> None:
    config = configuration([{"name": "class-default", "shape": {"mode": "peak", "rate": {"bps": 512_000}}}])
    shape = {**SHAPE, "cir_bps": 512_000, "target_bps": 1_024_000, "bc_bits": 12800, "byte_limit": 3200}
    text = printed_policy(config, [class_counters(shape=shape, queue=QUEUE)])
    header, row = (next(line for line in text.splitlines() if part in line) for part in ("Target/", "1024000/"))
    assert header.index("Byte") == row.index("3200")
    assert row.startswith("          1024000/512000    3200   12800")


def test_shaper_of_the_later_generation_is_printed() -> None:
    config = configuration([{"name": "class-default", "shape": {}}], "hqf")
    shape = {**SHAPE, "bc_bits": 4000, "be_bits": 4000}
    queue = {**QUEUE, "discipline": "fifo", "per_flow_limit": None, "depth_packets": 60}
    drops = class_counters()["drops"] | {"tail": packets_and_bytes(7, 700)}
    text = printed_policy(config, [class_counters(shape=shape, queue=queue, drops=drops)])
    assert text.split("Match: any \n")[1] == (
        "      Queueing\n"
        "      queue limit 64 packets\n"
        "      (queue depth/total drops/no-buffer drops) 60/7/0\n"
        "      (pkts output/bytes output) 554/715690\n"
        "      shape (average) cir 1000000, bc 4000, be 4000\n"
        "      target shape rate 1000000\n"
    )


def test_fair_queue_of_the_later_generation_counts_flow_drops_twice() -> None:
    config = configuration([{"name": "class-default", "fair_queue": {"queues": None}}], "hqf")
    # 18 packets: 16 in the queue and 2 in the transmit ring.
    waiting = {"depth_packets": 16, "in_ring_packets": 2, "output": packets_and_bytes(3496, 908540)}
    queue = {**QUEUE, "discipline": "fair_queue", "per_flow_limit": 16, **waiting}
    drops = class_counters()["drops"] | {"tail": packets_and_bytes(2, 0), "flow": packets_and_bytes(1605, 0)}
    text = printed_policy(config, [class_counters(queue=queue, drops=drops)], interval=30)
    assert "      30 second offered rate 0 bps, drop rate 0 bps\n" in text
    assert text.split("Match: any \n")[1] == (
        "      Queueing\n"
        "      queue limit 64 packets\n"
        "      (queue depth/total drops/no-buffer drops/flowdrops) 18/1607/0/1605\n"
        "      (pkts output/bytes output) 3496/908540\n"
        "      Fair-queue: per-flow queue limit 16 packets\n"
    )


def test_three_colour_policer_is_printed_with_marks() -> None:
    config = configuration(
        [
            {
                "name": "EF",
                "set": [{"field": "dscp", "value": 46}],
                "police": {
                    "cir": {"percent": 20},
                    "bc": {"ms": 10},
                    "pir": {"bps": 256_000},
                    "conform": [{"action": "set-dscp-transmit", "value": 18}],
                    "exceed": [{"action": "set-prec-transmit", "value": 1}],
                },
            },
            {"name": "class-default"},
        ],
        EF={"match": "any", "criteria": [{"type": "dscp", "values": [46], "ip_only": False, "negate": False}]},
    )
    ef = class_counters(
        "EF",
        packets=20,
        bytes=2000,
        criteria=[packets_and_bytes(20, 2000, 1499.0)],
        set=[{"field": "dscp", "value": 46, "packets": 20}],
        police=police_counters(
            cir_bps=8000,
            cir_percent=20,
            bc_bytes=1500,
            pir_bps=256_000,
            be_bytes=8000,
            violated=packets_and_bytes(1, 2, 0.0),
        ),
    )
    assert printed_policy(config, [ef, class_counters()]).split("drop rate 0 bps\n", 1)[1] == (
        "      Match:  dscp ef (46)\n"
        "        20 packets, 2000 bytes\n"
        "        5 minute rate 1000 bps\n"
        "      QoS Set\n"
        "        dscp ef\n"
        "          Packets marked 20\n"
        "      police:\n"
        "          cir 20 % bc 10 ms\n"
        "          cir 8000 bps, bc 1500 bytes\n"
        "          pir 256000 bps, be 8000 bytes\n"
        "        conformed 1394 packets, 1992832 bytes; actions:\n"
        "          set-dscp-transmit af21 \n"
        "        exceeded 673 packets, 1005594 bytes; actions:\n"
        "          set-prec-transmit 1 \n"
        "        violated 1 packets, 2 bytes; actions:\n"
        "          set-prec-transmit 1 \n"
        "        conformed 57000 bps, exceed 30000 bps, violate 0 bps\n"
        "\n"
        "    Class-map: class-default (match-any)\n"
        "      0 packets, 0 bytes\n"
        "      5 minute offered rate 0 bps, drop rate 0 bps\n"
        "      Match: any \n"
    )


def test_nested_policy_is_indented_by_four() -> None:
    config = configuration([{"name": "class-default", "shape": {}, "service_policy": "P"}], "hqf")
    child = {"policy": "P", "classes": [class_counters(packets=5)], "priority_queues": []}
    text = printed_policy(config, [class_counters(child=child)])
    assert "\n\n      Service-policy : P\n\n        Class-map: class-default (match-any)  \n          5 packets" in text
    assert GenieParser.policy_interface(text)["FastEthernet0/1"]["service_policy"]["output"]["policy_name"]["P"]


@pytest.mark.parametrize(
    ("criterion", "in_policy", "in_class_map"),
    [
        ({"type": "any"}, "any ", "any "),
        ({"type": "access_group", "name": "101"}, "access-group 101", "access-group  101"),
        ({"type": "access_group", "name": "X"}, "access-group name X", "access-group name X"),
        ({"type": "protocol", "name": "icmp"}, "protocol icmp", "protocol icmp"),
        (
            {"type": "dscp", "values": [26, 28], "ip_only": True},
            "ip dscp af31 (26) af32 (28)",
            "ip  dscp af31 (26) af32 (28)",
        ),
        ({"type": "precedence", "values": [1], "ip_only": False}, " precedence 1", "  precedence 1"),
        ({"type": "precedence", "values": [6, 7], "ip_only": True}, "ip precedence 6  7", "ip  precedence 6  7"),
        ({"type": "cos", "values": [5]}, "cos  5", "cos  5 "),
        (
            {"type": "packet_length", "min": 100, "max": 300},
            "packet length min 100 max 300",
            "packet length min 100 max 300",
        ),
        ({"type": "packet_length", "min": None, "max": 0}, "packet length max 0", "packet length max 0"),
        ({"type": "qos_group", "value": 1}, "qos-group 1", "qos-group 1"),
        ({"type": "protocol", "name": "icmp", "negate": True}, "not protocol icmp", "not protocol icmp"),
    ],
)
def test_match_lines_are_printed(criterion: dict[str, Any], in_policy: str, in_class_map: str) -> None:
    assert policy_match(criterion) == in_policy
    assert class_map_match(criterion) == in_class_map


def test_show_policy_map_prints_the_chosen_burst_and_the_typed_shape() -> None:
    config = configuration([CIR, {"name": "class-default", "shape": {}}])
    config["policy_maps"] = {
        "Police": {"classes": [{"name": "class-default", "police": {"cir": {"bps": 1_000_000}, "bc": None}}]},
        "Shape": {
            "classes": [
                {
                    "name": "class-default",
                    "shape": {"mode": "average", "rate": {"bps": 1_000_000}, "bc": {"bits": 8000}, "be": None},
                    "service_policy": "Police",
                }
            ]
        },
    }
    resolved = {
        **config["policy_maps"],
        "Police": {
            "classes": [{"name": "class-default", "police": {"bc_bytes": 31250, "be_bytes": None, "dynamic": None}}]
        },
    }
    assert show_policy_map(config, resolved) == (
        "  Policy Map Police\n"
        "    Class class-default\n"
        "     police cir 1000000 bc 31250\n"
        "       conform-action transmit \n"
        "       exceed-action drop \n"
        "\n"
        "  Policy Map Shape\n"
        "    Class class-default\n"
        "      Average Rate Traffic Shaping\n"
        "      cir 1000000 (bps) bc 8000 (bits)\n"
        "      service-policy Police\n"
    )
    assert show_policy_map(config, resolved, name="Shape").startswith("  Policy Map Shape\n")


@pytest.mark.parametrize(
    ("typed_police", "line"),
    [
        ({"cir": {"bps": 8000}, "violate": [{"action": "drop"}]}, "police cir 8000 bc 1500 be 1500"),
        ({"cir": {"bps": 8000}, "pir": {"bps": 16000}}, "police cir 8000 bc 1500 pir 16000 be 1500"),
        (
            {"cir": {"percent": 20}, "bc": {"ms": 10}, "pir": {"percent": 40}},
            "police cir percent 20 bc 10 ms pir percent 40",
        ),
        ({"form": "rate", "cir": {"bps": 8000}}, "police rate 8000 bps burst 1500 bytes peak-burst 1500 bytes"),
    ],
)
def test_show_policy_map_prints_the_police_line(typed_police: dict[str, Any], line: str) -> None:
    config = {"generation": "classic", "policy_maps": {"P": {"classes": [{"name": "A", "police": typed_police}]}}}
    percent = "percent" in typed_police["cir"]
    burst = None if percent else 1500
    resolved = {"P": {"classes": [{"name": "A", "police": {"bc_bytes": burst, "be_bytes": burst, "dynamic": None}}]}}
    assert show_policy_map(config, resolved).splitlines()[2].strip() == line


def test_show_policy_map_of_ios_xe_prints_typed_rates_and_classes() -> None:
    rate = {"form": "rate", "cir": {"bps": 10_000_000_000}}
    config = {"generation": "ios-xe", "policy_maps": {"P": {"classes": [{"name": "A", "police": rate}]}}}
    default = {"bc_bytes": 312_500_000, "be_bytes": None, "dynamic": None}
    resolved = {"P": {"classes": [{"name": "A", "police": default}, {"name": "class-default"}]}}
    assert show_policy_map(config, resolved).split("\n") == [
        "  Policy Map P",
        "    Class A",
        "     police rate 10000000000",
        "       conform-action transmit ",
        "       exceed-action drop ",
        "",
    ]


# Clock and durations


def test_show_clock_prints_the_time() -> None:
    assert clock_text(datetime(2025, 1, 6, 10, 20, 30, 123_999, tzinfo=UTC)) == "*10:20:30.123 UTC Mon Jan 6 2025"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "00:00:00"), (5287, "01:28:07"), (93_600, "1d02h"), (777_600, "1w2d")]
)
def test_elapsed_time_is_printed_like_ios(seconds: int, text: str) -> None:
    assert elapsed_text(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("uptime", "text"),
    [
        (timedelta(0), "0 minutes"),
        (timedelta(hours=1), "1 hour"),
        (timedelta(days=10, hours=4, minutes=30), "1 week, 3 days, 4 hours, 30 minutes"),
        (timedelta(days=366, minutes=1), "1 year, 1 day, 1 minute"),
    ],
)
def test_uptime_is_printed_like_ios(uptime: timedelta, text: str) -> None:
    assert uptime_text(uptime) == text


# Genie reads what we print.


class GenieParser:
    """Parsers of clients, without a connection."""

    @staticmethod
    def parse(parser: Any, output: str, **keys: Any) -> dict[str, Any]:
        result: dict[str, Any] = parser(device=Mock()).parse(output=output, **keys)
        return result

    @classmethod
    def policy_interface(cls, output: str) -> dict[str, Any]:
        return cls.parse(ShowPolicyMapInterface, output)


def test_genie_parses_the_policer() -> None:
    parsed = GenieParser.policy_interface(POLICED)["FastEthernet0/1"]["service_policy"]["output"]["policy_name"][
        "Police"
    ]
    default = parsed["class_map"]["class-default"]
    assert (default["packets"], default["bytes"], default["rate"]["offered_rate_bps"]) == (2070, 2998927, 83000)
    assert default["police"]["cir_bps"] == 1000000
    assert default["police"]["cir_bc_bytes"] == 31250
    assert default["police"]["conformed"]["packets"] == 1394
    assert default["police"]["exceeded"]["bytes"] == 1005594
    assert default["police"]["exceeded"]["actions"] == {"drop": True}


def test_genie_parses_the_later_shaper() -> None:
    config = configuration([{"name": "class-default", "shape": {}}], "hqf")
    queue = {**QUEUE, "per_flow_limit": None}
    text = printed_policy(config, [class_counters(shape=SHAPE, queue=queue)])
    default = GenieParser.policy_interface(text)["FastEthernet0/1"]["service_policy"]["output"]["policy_name"]["P"][
        "class_map"
    ]["class-default"]
    assert (default["shape_type"], default["shape_cir_bps"], default["queue_depth"]) == ("average", 1000000, 69)


def test_genie_parses_policy_maps_and_class_maps() -> None:
    config = configuration([CIR], VOICE={"match": "any", "criteria": [{"type": "dscp", "values": [46]}]})
    resolved = {
        "P": {"classes": [{"name": "class-default", "police": {"bc_bytes": 31250, "be_bytes": None, "dynamic": None}}]}
    }
    parsed = GenieParser.parse(ShowPolicyMap, show_policy_map(config, resolved))
    assert parsed["policy_map"]["P"]["class"]["class-default"]["police"]["cir_bc_bytes"] == 31250
    classes = GenieParser.parse(ShowClassMap, show_class_map(config))["class_maps"]
    assert classes["VOICE"]["cm_id"] == 1
    assert classes["class-default"]["match_criteria"] == "match-any"


def test_genie_parses_all_output_of_the_router() -> None:
    router = FakeRouter()
    router.device.interfaces["FastEthernet0/1"].shutdown = True

    def output(command: str) -> str:
        return type_lines(router, f"terminal length 0\r{command}\r").split(command + "\n", 1)[1].rpartition("R1#")[0]

    version = GenieParser.parse(ShowVersion, output("show version"))["version"]
    assert (version["hostname"], version["chassis"], version["version"]) == ("R1", "3725", "12.4(15)T14")
    interfaces = GenieParser.parse(ShowInterfaces, output("show interfaces"))
    assert interfaces["FastEthernet0/0"]["oper_status"] == "up"
    assert interfaces["FastEthernet0/0"]["mac_address"] == "0200.0000.0000"
    assert interfaces["FastEthernet0/0"]["bandwidth"] == 100000
    assert interfaces["FastEthernet0/0"]["ipv4"] == {"192.168.10.1/24": {"ip": "192.168.10.1", "prefix_length": "24"}}
    assert interfaces["FastEthernet0/1"]["enabled"] is False
    brief = GenieParser.parse(ShowIpInterfaceBrief, output("show ip interface brief"))["interface"]
    assert brief["FastEthernet0/1"]["status"] == "administratively down"
    assert brief["FastEthernet0/0"]["ip_address"] == "192.168.10.1"
    cpu = GenieParser.parse(ShowProcessesCpu, output("show processes cpu"))
    assert (cpu["five_sec_cpu_total"], cpu["five_sec_cpu_interrupts"]) == (8, 6)
    assert GenieParser.parse(ShowClock, output("show clock"))["year"] == "2026"
    arp = GenieParser.parse(ShowArp, output("show arp"))["interfaces"]["FastEthernet0/0"]["ipv4"]["neighbors"]
    assert arp["192.168.10.1"]["link_layer_address"] == "0200.0000.0000"


def test_genie_parses_the_routing_table() -> None:
    networks = ("10.1.1.0/24", "10.1.2.0/30", "192.168.10.0/24", "172.16.1.128/30")
    routes = [RouteEntry(IPv4Network(text), "connected", None, "FastEthernet0/0") for text in networks]
    for text in ("0.0.0.0/0", "10.0.0.0/8"):
        routes.append(RouteEntry(IPv4Network(text), "static", IPv4Address("192.168.10.2"), None))
    text = show_ip_route(routes)
    assert "     172.16.0.0/30 is subnetted, 1 subnets\nC       172.16.1.128 is directly connected" in text
    assert "     10.0.0.0/8 is variably subnetted, 3 subnets, 3 masks\n" in text
    assert "Gateway of last resort is 192.168.10.2 to network 0.0.0.0\n" in text
    parsed = GenieParser.parse(ShowIpRouteDistributor, text)["vrf"]["default"]["address_family"]["ipv4"]["routes"]
    assert set(parsed) == {*networks, "0.0.0.0/0", "10.0.0.0/8"}
