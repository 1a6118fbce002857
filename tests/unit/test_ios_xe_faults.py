"""Deliberate faults in the rules of IOS-XE: each changes an answer that the other tests check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fake_router import interface_counters
from test_ios_xe_show import policy_output

from qoslab.ios.model import generations
from qoslab.ios.model.device import Interface
from qoslab.ios.show.queueing import queue_lines
from qoslab.policy import shares
from qoslab.policy.answer import answer_policy
from qoslab.policy.render import answer_text

pytestmark = pytest.mark.long

CONFIGURATION = """\
version 17.9
class-map C1
 match dscp 1
class-map C2
 match dscp 2
class-map C3
 match dscp 3
policy-map CHILD
 class C1
  priority
  police 5000000
 class C2
  bandwidth 10000
  random-detect
 class C3
  bandwidth 5000
  fair-queue
  random-detect dscp-based
policy-map PARENT
 class class-default
  shape average 50000000
  service-policy CHILD
policy-map SLOW
 class class-default
  shape average 1000000
policy-map FLAT
 class C1
  priority 100000
  queue-limit 20000
 class C2
  bandwidth percent 90
  queue-limit 20000
policy-map LEAVES
 class C2
  bandwidth percent 10
  service-policy CHILD
policy-map RATIO
 class C1
  shape average 10000000
  bandwidth remaining ratio 4 account user-defined 100
interface GigabitEthernet0/0/0
 service-policy output PARENT
interface GigabitEthernet0/0/1
 service-policy output SLOW
interface GigabitEthernet0/0/2
 service-policy output FLAT
interface GigabitEthernet0/0/3
 service-policy output RATIO
"""


def all_output() -> list[str]:
    """Return all output of this package on a router with IOS-XE."""
    interface = Interface("GigabitEthernet0/0/0")
    counters = interface_counters()
    counters["queue"] |= {"strategy": "class_based", "threshold": None}
    lines = queue_lines(interface, counters, generations.GENERATIONS["ios-xe"])  # type: ignore[arg-type]
    return [answer_text(answer_policy(CONFIGURATION)), policy_output(), *lines]


PROPERTIES: dict[str, Any] = {
    "reservable_percent": 99,
    "minimum_and_excess": False,
    "queue_limit_ms": None,
    "priority_queue_limit": 64,
    "random_detect_by_limit": False,
    "class_flow_queues": 256,
    "flow_limit_with_random_detect": False,
    "allowed": generations.GENERATIONS["hqf"].allowed,
    "greatest_queue_limit": 4096,
    "tx_ring": None,
    "prints_thousands": False,
    "counts_each_match": True,
    "parents_without_depth": False,
    "exceeded": "exceed",
    "input_hold_queue": 75,
    "output_queue_of_fifo": False,
    "shape_interval_ms": 25,
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_wrong_generation_property_is_detected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = all_output()
    wrong = replace(generations.GENERATIONS["ios-xe"], **{name: PROPERTIES[name]})
    monkeypatch.setitem(generations.GENERATIONS, "ios-xe", wrong)  # type: ignore[arg-type]
    assert all_output() != right


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("XE_QUEUE_LIMIT_PACKET", 1514),
        ("XE_QUEUE_LIMIT_LEAST", 40),
        ("PRIORITY_BURST_MS", 250),
        ("POLICE_BURST_DIVISOR", 40),
        ("RANDOM_DETECT_WEIGHT", 10),
        ("FLOW_LIMIT_DIVISOR", 2),
    ],
)
def test_wrong_default_value_is_detected(value: str, wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = all_output()
    monkeypatch.setattr(generations.engine_defaults, value, wrong)
    assert all_output() != right


def test_wrong_bandwidth_division_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    right = all_output()
    monkeypatch.setattr(
        shares, "_excess_rates", lambda classes, level, left: shares._queue_weights(classes, level.base, left)
    )
    assert all_output() != right
