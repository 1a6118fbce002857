"""Queueing without a policy-map: `traffic-shape`, priority and custom queueing, as typed, printed and shown."""

from __future__ import annotations

from typing import Any

import pytest
from fake_router import FakeRouter, interface_counters, type_lines
from ios_configured import configured_device, running_lines

from qoslab.errors import IosError
from qoslab.genie.show_parser import parse
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Generation
from qoslab.ios.parse import apply_config
from qoslab.ios.running_config import render
from qoslab.ios.show.queue_lists import show_queueing_custom, show_queueing_priority
from qoslab.ios.show.queueing import queue_lines, show_queue
from qoslab.ios.show.traffic_shape import (
    show_traffic_shape,
    show_traffic_shape_queue,
    show_traffic_shape_statistics,
)
from rollback_lines import undo_lines

PRIORITY = """\
priority-list 2 protocol ip high tcp telnet
priority-list 2 protocol ip medium list 101
priority-list 2 protocol ip high lt 100
priority-list 2 interface FastEthernet0/1 medium
priority-list 2 protocol ipx high
priority-list 2 default low
priority-list 2 queue-limit 10 20 30 40
interface Serial0/0
 priority-group 2
"""
CUSTOM = """\
queue-list 1 protocol ip 1 udp 5001
queue-list 1 protocol arp 0
queue-list 1 protocol ip 2 fragments
queue-list 1 default 3
queue-list 1 lowest-custom 2
queue-list 1 queue 2 byte-count 3492
queue-list 1 queue 2 limit 30
interface Serial0/0
 custom-queue-list 1
"""
SHAPED = "interface Serial0/0\n traffic-shape group 101 64000\n traffic-shape rate 8000\n"


def list_lines(text: str) -> list[str]:
    words = ("priority-", "queue-list", "custom-queue", "traffic-shape")
    return [line for line in running_lines(configured_device(text)) if line.startswith(words)]


def test_queue_lists_are_printed_as_typed() -> None:
    assert list_lines(PRIORITY) == ["priority-group 2", *PRIORITY.splitlines()[:7]]
    assert list_lines(CUSTOM) == ["custom-queue-list 1", *CUSTOM.splitlines()[:7]]


def test_shapers_are_printed_with_published_values() -> None:
    """Print shapers with published values: 8000 and 64000 b/s with bursts of 8000, 128000 with 7936, and 1000
    buffers.
    """
    assert list_lines(SHAPED) == [
        "traffic-shape group 101 64000 8000 8000 1000",
        "traffic-shape rate 8000 8000 8000 1000",
    ]
    assert list_lines("interface Serial0/0\n traffic-shape rate 128000\n") == [
        "traffic-shape rate 128000 7936 7936 1000"
    ]


@pytest.mark.parametrize("generation", ["classic", "hqf"])
@pytest.mark.parametrize("text", [PRIORITY, CUSTOM, SHAPED])
def test_queue_list_lines_are_removed(text: str, generation: Generation) -> None:
    before, after = configured_device("", generation), configured_device(text, generation)
    lines = undo_lines(render(before), render(after), before.hardware)
    apply_config(after, "\n".join(lines))
    assert after == before


def test_single_queue_list_lines_are_removed() -> None:
    device = configured_device(PRIORITY + CUSTOM.partition("interface")[0] + SHAPED.replace("Serial0/0", "Serial0/1"))
    apply_config(
        device,
        "no priority-list 2 protocol ip high lt 100\nno priority-list 2 default low\nno queue-list 1 lowest-custom 2\n"
        "no queue-list 1 queue 2 limit 30\ninterface Serial0/1\nno traffic-shape group 101\n",
    )
    found = [line for line in running_lines(device) if line.startswith(("priority-l", "queue-list", "traffic"))]
    removed = ("lt 100", "default low", "lowest-custom", "limit 30")
    typed_lines = [*PRIORITY.splitlines()[:7], *CUSTOM.splitlines()[:7]]
    kept = [line for line in typed_lines if not line.endswith(removed) and "lowest-custom" not in line]
    assert found == ["traffic-shape rate 8000 8000 8000 1000", *kept]


def test_retyped_rule_changes_its_queue_in_place() -> None:
    device = configured_device(PRIORITY + "priority-list 2 protocol ip low tcp telnet\n")
    assert [rule.queue for rule in device.priority_lists[2].rules] == [3, 1, 0, 1, 0]


def queueing_lines(text: str) -> Any:
    return compile_device(configured_device(text))["interfaces"]["Serial0/0"]["queueing"]


def test_data_plane_gets_a_priority_list() -> None:
    """Compile a priority list: a protocol that the data plane does not carry is left out."""
    assert queueing_lines(PRIORITY) == {
        "type": "priority",
        "rules": [
            {"queue": 0, "protocol": "ip", "port": {"protocol": 6, "number": 23}},
            {"queue": 1, "protocol": "ip", "access_list": "101"},
            {"queue": 0, "protocol": "ip", "smaller_than": 100},
            {"queue": 1, "interface": "FastEthernet0/1"},
        ],
        "default": 3,
        "limits": [10, 20, 30, 40],
    }
    assert compile_device(configured_device(PRIORITY))["access_lists"]["101"] == []


def test_data_plane_gets_a_queue_list() -> None:
    assert queueing_lines(CUSTOM) == {
        "type": "custom",
        "rules": [
            {"queue": 1, "protocol": "ip", "port": {"protocol": 17, "number": 5001}},
            {"queue": 0, "protocol": "other"},
            {"queue": 2, "protocol": "ip", "fragments": True},
        ],
        "default": 3,
        "lowest": 2,
        "queues": [{"number": 2, "byte_count": 3492, "limit": 30}],
    }
    assert queueing_lines("interface Serial0/0\n custom-queue-list 7\n") == {
        "type": "custom",
        "rules": [],
        "queues": [],
    }


def test_data_plane_gets_shapers() -> None:
    shape = {"mode": "average", "rate": {"bps": 64_000}, "bc": {"bits": 8_000}, "be": {"bits": 8_000}}
    found = queueing_lines(SHAPED)
    assert found["shapers"][0] == {"access_list": "101", "shape": shape, "buffers": 1_000}
    assert [each["access_list"] for each in found["shapers"]] == ["101", None]


QUEUES = "policy-map Q\nclass class-default\nshape average 64000\ninterface Serial0/0\n"


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ("fair-queue", "priority-group 1", "fair-queue"),
        ("fair-queue", "custom-queue-list 1", "fair-queue"),
        ("priority-group 1", "fair-queue", "priority-group"),
        ("priority-group 1", "custom-queue-list 1", "priority-group"),
        ("priority-group 1", "traffic-shape rate 8000", "priority-group"),
        ("custom-queue-list 1", "priority-group 1", "custom-queue-list"),
        ("custom-queue-list 1", "service-policy output Q", "custom-queue-list"),
        ("traffic-shape rate 8000", "service-policy output Q", "traffic-shape"),
        ("service-policy output Q", "priority-group 1", "service-policy output"),
        ("service-policy output Q", "traffic-shape rate 8000", "service-policy output"),
    ],
)
def test_interface_accepts_only_one_queueing_method(first: str, second: str, what: str) -> None:
    with pytest.raises(IosError, match=f"Must remove {what} configuration first"):
        configured_device(f"{QUEUES}{first}\n{second}\n")


@pytest.mark.parametrize("other", ["fair-queue", "service-policy output Mark", "priority-group 3"])
def test_compatible_queueing_commands_are_accepted(other: str) -> None:
    first = "no fair-queue\npriority-group 1" if other.startswith("priority") else "traffic-shape rate 8000"
    text = f"policy-map Mark\nclass class-default\nset dscp ef\ninterface Serial0/0\n{first}\n{other}\n"
    assert other in running_lines(configured_device(text))


def numbered_queues(limits: list[int]) -> list[dict[str, Any]]:
    none = {"packets": 0, "bytes": 0}
    return [
        {"number": number, "depth_packets": 0, "limit_packets": limit, "drops": none, "output": none}
        for number, limit in enumerate(limits)
    ]


def lines_about_queues(text: str, strategy: str, limits: list[int]) -> list[str]:
    queue = interface_counters()["queue"] | {"strategy": strategy}
    counters = interface_counters(queue=queue, numbered_queues=numbered_queues(limits))
    made = configured_device(text)
    return list(queue_lines(made.interfaces["Serial0/0"], counters, made.hardware.qos))[1:]


def test_show_interfaces_prints_queues_of_lists() -> None:
    """Show queues of lists: public notes have both outputs, except for the blanks in the lines of a queue list."""
    assert lines_about_queues(PRIORITY, "priority", [10, 20, 30, 40]) == [
        "Queueing strategy: priority-list 2",
        "Output queue (queue priority: size/max/drops):",
        "   high: 0/10/0, medium: 0/20/0, normal: 0/30/0, low: 0/40/0",
    ]
    assert lines_about_queues(CUSTOM, "custom", [20, 30, *[20] * 15]) == [
        "Queueing strategy: custom-list 1",
        "Output queues: (queue #: size/max/drops)",
        "   0: 0/20/0 1: 0/30/0 2: 0/20/0 3: 0/20/0 4: 0/20/0",
        "   5: 0/20/0 6: 0/20/0 7: 0/20/0 8: 0/20/0 9: 0/20/0",
        "   10: 0/20/0 11: 0/20/0 12: 0/20/0 13: 0/20/0 14: 0/20/0",
        "   15: 0/20/0 16: 0/20/0",
    ]


def test_show_queueing_prints_lists() -> None:
    text = "priority-list 2 default low\npriority-list 2 queue-limit 10 20 30 40\n"
    assert show_queueing_priority(configured_device(text)) == (
        "Current DLCI priority queue configuration:\nCurrent priority queue configuration:\n\nList   Queue  Args\n"
        "2      low    default\n2      high   limit 10\n2      medium limit 20\n2      normal limit 30\n"
        "2      low    limit 40\n"
    )
    text = (
        "queue-list 1 default 2\nqueue-list 1 interface Serial0/1 2\nqueue-list 1 protocol ip 2\n"
        "queue-list 1 queue 1 limit 30\nqueue-list 1 queue 2 byte-count 128\n"
    )
    assert show_queueing_custom(configured_device(text)) == (
        "Current custom queue configuration:\n\nList   Queue  Args\n1      2      default\n"
        "1      2      interface Serial0/1\n1      2      protocol ip\n1      1      limit 30\n"
        "1      2      byte-count 128\n"
    )


def shaper_counters() -> dict[str, Any]:
    return {
        "shape": {
            "mode": "average",
            "cir_bps": 8_000,
            "percent": None,
            "target_bps": 8_000,
            "bc_bits": 8_000,
            "be_bits": 8_000,
            "interval_ms": 1_000,
            "byte_limit": 2_000,
            "increment_bytes": 1_000,
            "active": False,
            "sent": {"packets": 613, "bytes": 61_873},
            "delayed": {"packets": 0, "bytes": 0},
        },
        "depth_packets": 0,
        "limit_packets": 1_000,
        "drops": {"packets": 0, "bytes": 0},
        "conversations": 0,
        "max_conversations": 16,
    }


def test_show_traffic_shape_equals_the_published_output() -> None:
    """Compare with output of a router in public notes."""
    device = configured_device("interface FastEthernet0/0\n no service-policy output Edge\n traffic-shape rate 8000\n")
    counters = {"FastEthernet0/0": interface_counters(shapers=[shaper_counters()])}
    assert show_traffic_shape(device, counters) == (
        "\nInterface   Fa0/0\n"
        "       Access Target    Byte   Sustain   Excess    Interval  Increment Adapt\n"
        "VC     List   Rate      Limit  bits/int  bits/int  (ms)      (bytes)   Active\n"
        "-             8000      2000   8000      8000      1000      1000      -   \n"
    )
    assert show_traffic_shape_statistics(device, counters) == (
        "                  Acc. Queue Packets   Bytes     Packets   Bytes     Shaping\n"
        "I/F               List Depth                     Delayed   Delayed   Active\n"
        "Fa0/0                   0     613       61873     0         0         no\n"
    )
    parsed = parse("ios", "show traffic-shape statistics", show_traffic_shape_statistics(device, counters)).parsed
    counted = {"depth": 0, "packets": 613, "bytes": 61873, "packets_delayed": 0, "bytes_delayed": 0, "active": False}
    assert parsed == {"Fa0/0": [counted]}
    line = "Se0/0             101   10    613       61873     9         1000      yes\n"
    parsed = parse("ios", "show traffic-shape statistics Serial0/0", line).parsed
    assert parsed == {
        "Se0/0": [
            counted
            | {"access_list": "101", "depth": 10, "packets_delayed": 9}
            | {"bytes_delayed": 1000, "active": True}
        ]
    }
    assert "  Queueing Stats: 0/1000/64/0 (size/max total/threshold/drops)\n" in show_traffic_shape_queue(
        device, counters
    )
    assert show_traffic_shape(device, counters, interface="Serial0/0") == ""


FLOOD = {
    "source": "10.0.0.10",
    "destination": "10.0.20.10",
    "id": 0x0D2A,
    "ttl": 127,
    "tos": 0,
    "protocol": 17,
    "source_port": 1046,
    "destination_port": 5002,
}
CONVERSATIONS = [
    {"number": 10, "depth_packets": 57, "weight": 32384, "drops": 12799, "head": {"bytes": 260, "ip": FLOOD}},
    {
        "number": 3,
        "depth_packets": 7,
        "weight": 5397,
        "drops": 0,
        "head": {
            "bytes": 60,
            "ip": FLOOD | {"protocol": 1, "tos": 160, "id": 0, "source_port": None, "destination_port": None},
        },
    },
    {"number": 4, "depth_packets": 1, "weight": 32384, "drops": 0, "head": {"bytes": 20, "ip": None}},
]
"""Conversations in the form of `counters`: a flood as printed by a router of 2009, one whose next packet has no ports,
and a non-IP one.
"""


def test_conversations_of_a_queue_are_printed_and_parsed() -> None:
    router = FakeRouter()
    weighted = interface_counters()["queue"] | {"strategy": "weighted_fair", "threshold": 64}
    counters = interface_counters(queue=weighted, conversations=CONVERSATIONS)
    shown = show_queue(router.device.interfaces["FastEthernet0/0"], counters, router.device.hardware.qos)
    print(shown)
    assert (
        "\n\n  (depth/weight/total drops/no-buffer drops/interleaves) 57/32384/12799/0/0\n"
        "  Conversation 10, linktype: ip, length: 260\n"
        "  source: 10.0.0.10, destination: 10.0.20.10, id: 0x0D2A, ttl: 127,\n"
        "  TOS: 0 prot: 17, source port 1046, destination port 5002\n"
        "\n"
    ) in shown
    parsed = parse("ios", "show queue FastEthernet0/0", shown).parsed
    assert parsed is not None
    found = parsed["FastEthernet0/0"]["conversation"]
    values = ("depth", "weight", "total_drops", "length")
    assert {number: tuple(each[name] for name in values) for number, each in found.items()} == {
        "10": (57, 32384, 12799, 260),
        "3": (7, 5397, 0, 60),
        "4": (1, 32384, 0, 20),
    }
    assert (found["10"]["id"], found["10"]["destination_port"], found["3"]["tos"]) == ("0x0D2A", 5002, 160)
    assert "source_port" not in found["3"] and "source" not in found["4"] and found["4"]["linktype"] == "other"


def test_later_software_prints_conversations_of_an_interface_and_none_of_a_policy() -> None:
    router = FakeRouter("2811")
    name = "Serial0/1/0"
    queue = interface_counters()["queue"]
    fair = interface_counters(queue=queue | {"strategy": "weighted_fair", "threshold": 64}, conversations=CONVERSATIONS)
    router.interfaces[name] = fair
    assert "Conversation 10, linktype: ip, length: 260" in type_lines(router, "terminal length 0\rshow queue s0/1/0\r")
    router.interfaces[name] = interface_counters(queue=queue | {"strategy": "class_based", "threshold": None})
    assert "'Show queue' not supported with HQF." in type_lines(router, "show queue s0/1/0\r")


def test_router_answers_the_queueing_show_commands() -> None:
    router = FakeRouter()
    assert "'Show queue' not supported with FIFO queueing." in type_lines(router, "show queue fa0/0\r")
    assert "Current custom queue configuration:" in type_lines(router, "show queueing custom\r")
    assert "Current DLCI priority queue configuration:" in type_lines(router, "show queueing\r")
    assert "Acc. Queue Packets" in type_lines(router, "show traffic-shape statistics\r")
    weighted = interface_counters()["queue"] | {"strategy": "weighted_fair", "threshold": 64}
    counters = interface_counters(queue=weighted)
    shown = show_queue(router.device.interfaces["FastEthernet0/0"], counters, router.device.hardware.qos)
    parsed = parse("ios", "show queue FastEthernet0/0", shown).parsed
    assert parsed is not None
    assert parsed["FastEthernet0/0"]["strategy"] == "weighted fair"
    assert parsed["FastEthernet0/0"]["output_queue"]["threshold"] == 64
    assert parse("ios", "show queue FastEthernet0/0", type_lines(router, "show queue fa0/0\r")).parsed is None
