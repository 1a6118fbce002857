"""Deliberate faults in the compiled rules of marking, early detection and accounting: each changes a known result."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from qoslab.policy.pasted_configuration import read_configuration
from qoslab.trial.demand import parse_traffic
from qoslab.trial.edge import find_edge
from qoslab.trial.scenario import ROUTER, traffic_scenario
from qoslab.trial.simulate import simulate

HEAD = """\
version 17.9
class-map match-any EF
 match dscp ef
class-map match-any TEN
 match dscp 10
class-map match-any DISCARD
 match discard-class 3
"""
MARKED_PORTS = """\
interface GigabitEthernet0/0/0
 service-policy output OUT
interface GigabitEthernet0/0/1
 service-policy input IN
"""
TABLE = """\
table-map T
 map from 46 to 10
 default copy
policy-map IN
 class class-default
  set dscp dscp table T
policy-map OUT
 class TEN
  bandwidth 2000
"""
DISCARD = """\
policy-map IN
 class EF
  set discard-class 3
policy-map OUT
 class DISCARD
  bandwidth 1000
"""
BY_DISCARD = """\
policy-map IN
 class EF
  set discard-class 3
policy-map OUT
 class class-default
  shape average 1000000
  random-detect discard-class-based
  random-detect discard-class 3 5 10 1
"""
BY_COS = """\
policy-map OUT
 class class-default
  set cos 3
  shape average 1000000
  random-detect cos-based
  random-detect cos 3 5 10 1
"""
OUTPUT_PORT = """\
interface GigabitEthernet0/0/0
 service-policy output OUT
"""
ACCOUNT = """\
policy-map OUT
 class EF
  police cir 1000000
   account user-defined 100
"""
INTERFACE = """\
policy-map OUT
 class EF
  set qos-group 1
interface Serial0/1/0
 bandwidth 500
 random-detect
 random-detect precedence 5 2 4 1
 service-policy output OUT
"""
CALLS = "voice 20 calls"

Mutation = Callable[[dict[str, Any]], None]


def policy_class(config: dict[str, Any], policy: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in config["policy_maps"][policy]["classes"] if each["name"] == name)
    return found


def counters(text: str, mutation: Mutation | None, interface: str | None = None) -> dict[str, Any]:
    """Return the counters of the tried router after twenty calls of three seconds."""
    edge = find_edge(read_configuration(text), interface, None)
    scenario: Any = traffic_scenario(edge, edge.device, parse_traffic(CALLS), seconds=3, rtt_s=0.01)
    if mutation is not None:
        scenario = copy.deepcopy(scenario)
        mutation(scenario["nodes"][ROUTER]["configuration"])
    [report] = simulate([scenario])
    sample: Any = report["routers"][ROUTER]["samples"][-1]
    found: dict[str, Any] = sample["interfaces"][edge.wan]
    return found


def port_class(port: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in port["policy_output"]["classes"] if each["name"] == name)
    return found


def random_drops(port: dict[str, Any]) -> int:
    return int(port_class(port, "class-default")["drops"]["random"]["packets"])


def interface_drops(port: dict[str, Any]) -> int:
    red = port["random_detect"]
    return 0 if red is None else sum(each["random_drop"]["packets"] for each in red["classes"])


def _other_value(config: dict[str, Any]) -> None:
    policy_class(config, "IN", "class-default")["map"][0]["values"][46] = 12


def _no_map(config: dict[str, Any]) -> None:
    del policy_class(config, "IN", "class-default")["map"]


def _other_discard_class(config: dict[str, Any]) -> None:
    config["class_maps"]["DISCARD"]["criteria"][0]["value"] = 2


def _by_precedence(config: dict[str, Any]) -> None:
    policy_class(config, "OUT", "class-default")["random_detect"]["basis"] = "precedence"


def _without_account(config: dict[str, Any]) -> None:
    policy_class(config, "OUT", "EF")["police"].pop("account")


def _without_red(config: dict[str, Any]) -> None:
    config["interfaces"]["Serial0/1/0"]["random_detect"] = None


def _default_thresholds(config: dict[str, Any]) -> None:
    config["interfaces"]["Serial0/1/0"]["random_detect"] |= {"thresholds": []}


MARKED: dict[str, tuple[str, Callable[[dict[str, Any]], bool], list[Mutation]]] = {
    "table-map": (
        TABLE + MARKED_PORTS,
        lambda port: port_class(port, "TEN")["packets"] > 2800,
        [_other_value, _no_map],
    ),
    "discard class": (
        DISCARD + MARKED_PORTS,
        lambda port: port_class(port, "DISCARD")["packets"] > 2800,
        [_other_discard_class],
    ),
    "early detection by discard class": (
        BY_DISCARD + MARKED_PORTS,
        lambda port: random_drops(port) > 500,
        [_by_precedence],
    ),
    "early detection by CoS": (BY_COS + OUTPUT_PORT, lambda port: random_drops(port) > 500, [_by_precedence]),
    "early detection of an interface": (
        INTERFACE,
        lambda port: interface_drops(port) > 500,
        [_without_red, _default_thresholds],
    ),
    "accounting of a policer": (
        ACCOUNT + OUTPUT_PORT,
        # 1 Mb/s of packets of 214 bytes that count as 314; the bucket is full at the start.
        lambda port: (
            port_class(port, "EF")["police"]["conformed"]["packets"] < 3 * 1_000_000 / 8 / 314 + 31_250 / 314 + 2
        ),
        [_without_account],
    ),
}


@pytest.mark.parametrize("rule", MARKED)
def test_wrong_marking_is_detected(rule: str) -> None:
    text, holds, faults = MARKED[rule]
    assert holds(counters(HEAD + text, None))
    for fault in faults:
        assert not holds(counters(HEAD + text, fault))
