"""Plans in a real user-mode kernel: applied, read back and measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from kernel import virtual_kernel

from ios_strategies import devices
from qoslab.ios.compile import compile_device, engine_config
from qoslab.ios.model.device import Device
from qoslab.tc.user_mode_linux import UserModeKernel, find

HERE = Path(__file__).parent
GOLDENS = HERE.parent / "goldens" / "tc"
GUEST = (HERE / "tc_guest.py").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.skipif(find() is None, reason="needs the Debian package user-mode-linux or QOSLAB_UML"),
]


def run(
    *arguments: str,
    timeout_s: float = 120.0,
    configurations: list[Any] | None = None,
    virtual: bool = False,
) -> Any:
    """Run an experiment of tc_guest.py in a new kernel; in virtual time the machine's load changes no decision."""
    with virtual_kernel() if virtual else UserModeKernel(memory="384M") as kernel:
        if configurations is not None:
            (kernel.folder / "configurations.json").write_text(json.dumps(configurations), encoding="utf-8")
        kernel.run_script(GUEST, *arguments, timeout_s=timeout_s).check()
        return json.loads((kernel.folder / "result.json").read_text(encoding="utf-8"))


def test_each_policy_is_applied_read_back_and_removed() -> None:
    found = run("goldens", str(GOLDENS))
    assert len(found) == len(list(GOLDENS.glob("*.sh"))) - 1  # refused.ios
    assert found == {name: {"again": [], "left": []} for name in found}


def test_change_sends_the_difference_and_foreign_qdiscs_are_refused() -> None:
    found = run("changes")
    # Parameters of two classes that share by weight; there is no filter.
    assert all(each[:6] == ["class", "change", "dev", "eth1", "parent", "1:10"] for each in found["weights"]), found[
        "weights"
    ]
    assert 0 < len(found["weights"]) <= 3
    assert [" ".join(each).split(" limit ")[0] for each in found["fair"]] == [
        "qdisc del dev eth1 parent 1:14",
        "qdisc add dev eth1 parent 1:14 handle 14: sfq",
    ]
    assert not found["same"]
    assert found["repaired"]
    assert found["taken"].startswith("eth1 has the qdisc htb 1:, expected only the default")
    assert found["left"] == []
    assert found["parameter"].startswith(
        'tc refused "tc qdisc add dev eth0 parent 1:11 handle 11: pfifo limit 64 limit -1"'
    )
    assert found["parameter"].endswith('Illegal value for "limit": "-1"')


ROUNDING = 2.0
"""Rounding error in bytes: tc rounds buckets to a microsecond of the rate."""


class Bucket:
    """Token bucket of a router (RFC 2698), which follows the kernel's decisions and judges them."""

    def __init__(self, rate_bps: float, burst: float) -> None:
        self.bytes_a_ns, self.burst = rate_bps / 8e9, burst
        self.tokens, self.last_ns = burst, 0
        self.wrong = 0

    def judge(self, at_ns: int, size: int, *, conforms: bool) -> None:
        self.tokens = min(self.burst, self.tokens + (at_ns - (self.last_ns or at_ns)) * self.bytes_a_ns)
        self.last_ns = at_ns
        left = self.tokens - size
        self.wrong += (-left if conforms else left) > ROUNDING
        if conforms:
            self.tokens = left
        else:
            self.tokens = min(self.tokens, size)


def test_policer_decides_as_a_token_bucket_over_layer_2_bytes() -> None:
    police = "2000000 8000 conform-action transmit exceed-action drop"
    found = run("policer", police, "4000", "3e6", "1", virtual=True)
    bucket = Bucket(2e6, 8000)
    for at_ns, size, dscp in found["packets"]:
        bucket.judge(at_ns, size, conforms=dscp >= 0)
    dropped = sum(dscp < 0 for *_, dscp in found["packets"])
    assert len(found["packets"]) == 4000
    assert 1000 < dropped < 2000
    assert bucket.wrong == 0
    own = found["classes"][0]
    assert own["packets"] == own["police_conformed_packets"] + own["police_exceeded_packets"] == 4000
    assert own["police_exceeded_packets"] == own["drops_police_packets"] == dropped
    assert own["bytes"] == sum(size for _, size, _ in found["packets"])


def test_two_rate_policer_marks_three_colours() -> None:
    actions = "conform-action set-dscp-transmit af11|exceed-action set-dscp-transmit af12|violate-action drop"
    police = f"cir 500000 bc 4000 pir 900000 be 7000|{actions}"
    found = run("policer", police, "1500", "1.2e6", "2", virtual=True)
    peak, committed = Bucket(9e5, 7000), Bucket(5e5, 4000)
    for at_ns, size, dscp in found["packets"]:
        peak.judge(at_ns, size, conforms=dscp >= 0)
        if dscp >= 0:
            committed.judge(at_ns, size, conforms=dscp == AF11)
    colours = [sum(dscp == colour for *_, dscp in found["packets"]) for colour in (AF11, AF12, -1)]
    assert sum(colours) == 1500
    assert min(colours) > 200
    assert peak.wrong == committed.wrong == 0
    own = found["classes"][0]
    assert [own[f"police_{colour}_packets"] for colour in ("conformed", "exceeded", "violated")] == colours
    assert own["drops_police_packets"] == colours[2]


AF11, AF12, AF21, AF31, EF = 10, 12, 18, 26, 46
CS2 = 16
TCP, UDP = 6, 17
CLASSES: list[tuple[dict[str, Any], int]] = [
    ({"size": 200}, CS2),
    ({"size": 201}, 0),
    ({"size": 100, "dscp": EF}, EF),
    ({"size": 100, "dscp": AF31}, CS2),
    ({"size": 500, "dscp": AF31}, AF21),
    ({"size": 500, "protocol": TCP, "destination": "10.0.0.8", "ports": [1024, 80]}, AF21),
    ({"size": 500, "protocol": TCP, "destination": "10.0.0.9", "ports": [1024, 80]}, 0),
    ({"size": 500, "protocol": TCP, "destination": "10.0.0.8", "ports": [1024, 81]}, 0),
    ({"size": 500, "protocol": TCP, "destination": "10.0.0.9", "ports": [1024, 80], "flags": 0x10}, 0),
    ({"size": 500, "protocol": TCP, "destination": "10.0.1.9", "ports": [1024, 80], "flags": 0x10}, AF21),
    ({"size": 500, "protocol": TCP, "destination": "10.0.1.9", "ports": [1024, 80], "flags": 0x04}, AF21),
    ({"size": 500, "protocol": TCP, "destination": "10.0.1.9", "ports": [1024, 80], "flags": 0x02}, 0),
    ({"size": 500, "protocol": 1, "ports": [8, 0]}, AF21),
    ({"size": 500, "source": "10.0.6.3"}, AF12),
    ({"size": 500, "source": "10.0.6.4"}, 0),
    ({"size": 500, "source": "10.1.6.3"}, 0),
    ({"size": 200, "source": "2001:db8::1", "destination": "2001:db8::2"}, CS2),
    ({"size": 201, "source": "2001:db8::1", "destination": "2001:db8::2"}, 0),
    ({"size": 200, "source": "2001:db8::1", "destination": "2001:db8::2", "dscp": EF}, EF),
    ({"size": 500, "source": "2001:db8::1", "destination": "2001:db8::2", "dscp": AF31}, AF21),
]
"""Packets for class-map-logic.ios, and the code point that their class sets."""


def test_packets_get_the_class_of_the_router() -> None:
    packets = [packet for packet, _ in CLASSES]
    found = run("classification", str(GOLDENS / "class-map-logic.ios"), json.dumps(packets))
    assert [packet["class"] for packet in found] == [expected for _, expected in CLASSES]


SHAPER = """
policy-map P
 class class-default
  shape average 1000000 200000 200000
interface GigabitEthernet0/1
 service-policy output P
"""
CLASSES_AND_SHAPER = """
class-map match-any GOLD
 match dscp af31
class-map match-any SILVER
 match dscp af21
class-map match-any VOICE
 match dscp ef
policy-map CHILD
 class VOICE
  priority 40
 class GOLD
  bandwidth percent 40
 class SILVER
  bandwidth percent 20
 class class-default
  bandwidth percent 20
policy-map PARENT
 class class-default
  shape average 400000 40000 40000
  service-policy CHILD
interface GigabitEthernet0/1
 service-policy output PARENT
"""


def test_shaper_keeps_its_rate() -> None:
    found = run("flows", SHAPER, json.dumps([[0, 1000, 2e6]]), "8", virtual=True)
    arrivals = found["arrivals"]
    # After the first burst; the earliest packets of an eighth at either end are those that no timer delayed.
    steady = arrivals[100:]
    spacing_ns = 1014 * 8 * 1000
    lateness = [at_ns - steady[0][0] - number * spacing_ns for number, (at_ns, *_) in enumerate(steady)]
    eighth = len(steady) // 8
    drift = (min(lateness[-eighth:]) - min(lateness[:eighth])) / (steady[-1][0] - steady[0][0])
    assert len(steady) > 800
    assert abs(drift) < 1e-4
    (own,) = found["classes"]
    assert own["queue_output_packets"] == len(arrivals)
    assert own["packets"] == own["queue_output_packets"] + own["drops_tail_packets"]


def measured_shares(flows: list[tuple[int, int, float]]) -> dict[int, float]:
    """Return the rate of each code point while all queues are full, b/s."""
    arrivals = run("flows", CLASSES_AND_SHAPER, json.dumps(flows), "12", virtual=True)["arrivals"]
    seconds = 8
    first = arrivals[0][0] + 4 * 10**9
    totals = dict.fromkeys((dscp for dscp, *_ in flows), 0.0)
    for at_ns, size, dscp in arrivals:
        if first <= at_ns < first + seconds * 10**9:
            totals[dscp] += size * 8 / seconds
    return totals


def test_classes_share_the_bandwidth_left_by_priority() -> None:
    found = measured_shares([(AF31, 1000, 3e5), (AF21, 600, 2e5), (0, 1400, 2e5), (EF, 200, 3e4)])
    assert found[AF31] / found[AF21] == pytest.approx(2, rel=0.03)
    assert found[AF21] / found[0] == pytest.approx(1, rel=0.03)
    assert found[EF] == pytest.approx(3e4, rel=0.03)
    two = measured_shares([(AF31, 1000, 5e5), (0, 1400, 4e5)])
    assert two[AF31] / two[0] == pytest.approx(2, rel=0.03)


OUTSIDE_THE_PLAN = (
    *("tx_ring_limit", "queueing", "rate_limit_input", "rate_limit_output", "access_groups_input"),
    *("random_detect", "tcp_adjust_mss", "access_groups_output", "subinterfaces", "virtual_circuit", "fair_queue"),
)
"""Settings of interfaces that are refused."""


def test_plans_of_any_configuration_are_accepted_and_read_back() -> None:
    drawn: list[Any] = []

    @seed(5)
    @given(devices())
    @settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None, database=None)
    def draw(device: Device) -> None:
        config = engine_config(compile_device(device))
        for each in config["interfaces"].values():
            for name in OUTSIDE_THE_PLAN:
                each.pop(name, None)  # type: ignore[misc]
        drawn.append(config)

    draw()
    assert run("configurations", configurations=drawn, timeout_s=600) == []
