"""Compiler to the data plane's configuration."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from ios_strategies import devices, hardware
from levels import example_count
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.parse import parse_config

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "qos-router-config.schema.json"


@cache
def validator() -> Any:
    """Return the validator of configurations of the data plane, with a valid schema."""
    from jsonschema import Draft202012Validator

    schema = json.loads(SCHEMA.read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_policer_of_the_article_is_reproduced() -> None:
    text = (
        "hostname R1\npolicy-map Police\n class class-default\n  police cir 1000000\n"
        "interface FastEthernet0/1\n service-policy output Police\n"
    )
    assert compile_device(parse_config(text, Hardware("3725", ("FastEthernet0/1",)))) == {
        "format": 1,
        "router": "R1",
        "generation": "classic",
        "access_lists": {},
        "class_maps": {},
        "policy_maps": {
            "Police": {
                "classes": [
                    {
                        "name": "class-default",
                        "set": [],
                        "police": {
                            "form": "cir",
                            "cir": {"bps": 1000000},
                            "bc": None,
                            "pir": None,
                            "be": None,
                            "conform": [{"action": "transmit"}],
                            "exceed": [{"action": "drop"}],
                            "violate": None,
                            "dynamic": None,
                        },
                        "shape": None,
                        "shape_buffers": None,
                        "queue_limit": None,
                        "queue_thresholds": [],
                        "fair_queue": None,
                        "bandwidth": None,
                        "priority": None,
                        "random_detect": None,
                        "service_policy": None,
                    }
                ]
            }
        },
        "interfaces": {
            "FastEthernet0/1": {
                "enabled": True,
                "bandwidth_kbps": 100000,
                "clock_rate_bps": None,
                "encapsulation": "ethernet",
                "load_interval_s": 300,
                "tx_ring_limit": None,
                "hold_queue_out": None,
                "fair_queue": None,
                "max_reserved_percent": None,
                "service_policy_input": None,
                "service_policy_output": "Police",
            }
        },
    }


def test_serial_line_and_bursts_are_compiled() -> None:
    text = (
        "policy-map P\nclass class-default\nshape peak percent 20 10 ms\npolice rate percent 5 burst 30 ms\n"
        "interface s0/0\nbandwidth 512\nencapsulation ppp\nclock rate 512000\ntx-ring-limit 3\nno fair-queue\n"
        "hold-queue 20 out\nload-interval 30\nshutdown\n"
    )
    compiled = compile_device(parse_config(text, hardware()))
    (each,) = compiled["policy_maps"]["P"]["classes"]
    assert each["shape"] == {"mode": "peak", "rate": {"percent": 20}, "bc": {"ms": 10}, "be": None}
    assert each["police"]["form"] == "rate"
    assert (each["police"]["cir"], each["police"]["bc"]) == ({"percent": 5}, {"ms": 30})
    assert compiled["interfaces"]["Serial0/0"] == {
        "enabled": False,
        "bandwidth_kbps": 512,
        "clock_rate_bps": 512000,
        "encapsulation": "ppp",
        "load_interval_s": 30,
        "tx_ring_limit": 3,
        "hold_queue_out": 20,
        "fair_queue": {"enabled": False, "discard_threshold": None, "dynamic_queues": None, "reserved_queues": None},
        "max_reserved_percent": None,
        "service_policy_input": None,
        "service_policy_output": None,
    }
    assert compiled["interfaces"]["Serial0/1"]["encapsulation"] == "hdlc"


def test_queueing_is_compiled() -> None:
    text = (
        "class-map Voice\nmatch dscp ef\nclass-map Web\nmatch cos 1\n"
        "policy-map P\nclass Voice\npriority 64 2000\nclass Web\nbandwidth percent 20\nqueue-limit 32\n"
        "random-detect dscp-based\nrandom-detect exponential-weighting-constant 5\nrandom-detect dscp af11 10 20\n"
        "random-detect ecn\n"
        "random-detect dscp ef 20 30 5\nclass class-default\nfair-queue 64\n"
        "interface s0/0\nfair-queue 128 32\nmax-reserved-bandwidth 90\nservice-policy output P\n"
    )
    compiled = compile_device(parse_config(text, hardware()))
    voice, web, default = compiled["policy_maps"]["P"]["classes"]
    assert voice["priority"] == {"unit": "kbps", "number": 64, "burst_bytes": 2000, "level": None}
    assert (web["bandwidth"], web["queue_limit"]) == ({"percent": 20}, {"packets": 32})
    assert web["random_detect"] == {
        "basis": "dscp",
        "exponential_weight": 5,
        "ecn": True,
        "unit": "packets",
        "thresholds": [
            {"value": 10, "min": 10, "max": 20, "denominator": None},
            {"value": 46, "min": 20, "max": 30, "denominator": 5},
        ],
    }
    assert default["fair_queue"] == {"queues": 64}
    line = compiled["interfaces"]["Serial0/0"]
    assert line["max_reserved_percent"] == 90
    assert line["fair_queue"] == {
        "enabled": True,
        "discard_threshold": 128,
        "dynamic_queues": 32,
        "reserved_queues": None,
    }


@pytest.mark.parametrize(
    ("typed", "field", "compiled"),
    [
        ("bandwidth remaining percent 30", "bandwidth", {"remaining_percent": 30}),
        ("bandwidth remaining ratio 7", "bandwidth", {"remaining_ratio": 7}),
        ("bandwidth 200", "bandwidth", {"kbps": 200}),
        ("priority level 2", "priority", {"unit": "strict", "number": None, "burst_bytes": None, "level": 2}),
        ("priority percent 30", "priority", {"unit": "percent", "number": 30, "burst_bytes": None, "level": None}),
        ("priority", "priority", {"unit": "strict", "number": None, "burst_bytes": None, "level": None}),
    ],
)
def test_all_forms_of_bandwidth_and_priority_are_compiled(typed: str, field: str, compiled: dict[str, object]) -> None:
    text = f"class-map Web\nmatch cos 1\npolicy-map P\nclass Web\n{typed}\n"
    result = compile_device(parse_config(text, hardware("hqf")))
    assert result["policy_maps"]["P"]["classes"][0][field] == compiled


def test_classification_is_compiled() -> None:
    text = (
        "access-list 101 remark web\naccess-list 101 permit tcp any eq 80 host 10.0.0.1 range 5001 5003 established\n"
        "class-map match-any C\nmatch access-group 101\nmatch not ip dscp af11\nmatch packet length max 100\n"
        "match qos-group 3\nmatch access-group name Later\n"
    )
    compiled = compile_device(parse_config(text, hardware()))
    (entry,) = compiled["access_lists"]["101"]
    assert entry["source_port"] == {"op": "eq", "ports": [80]}
    assert entry["destination"] == {"address": "10.0.0.1", "wildcard": "0.0.0.0"}
    assert entry["destination_port"] == {"op": "range", "ports": [5001, 5003]}
    assert (entry["protocol"], entry["established"]) == (6, True)
    assert compiled["access_lists"]["Later"] == []
    assert compiled["class_maps"]["C"] == {
        "match": "any",
        "criteria": [
            {"type": "access_group", "negate": False, "name": "101"},
            {"type": "dscp", "negate": True, "values": [10], "ip_only": True},
            {"type": "packet_length", "negate": False, "min": None, "max": 100},
            {"type": "qos_group", "negate": False, "value": 3},
            {"type": "access_group", "negate": False, "name": "Later"},
        ],
    }


@given(devices())
@settings(
    max_examples=example_count(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_every_device_has_a_valid_configuration(device: Device) -> None:
    compiled = json.loads(json.dumps(compile_device(device)))
    validator().validate(compiled)
    named = {c["name"] for m in compiled["class_maps"].values() for c in m["criteria"] if c["type"] == "access_group"}
    for each in compiled["interfaces"].values():
        limits = [limit["match"] for field in ("input", "output") for limit in each.get(f"rate_limit_{field}", [])]
        named |= {match["name"] for match in limits if match is not None and match["type"] == "access_group"}
        queueing = each.get("queueing") or {}
        queues = queueing.get("shapers", []) + queueing.get("rules", [])
        named |= {name for queue in queues if (name := queue.get("access_list")) is not None}
    for made in (*device.priority_lists.values(), *device.queue_lists.values()):
        # Lists also exist for an interface that will name them later.
        named |= {str(rule.value) for rule in made.rules if rule.kind == "list"}
    assert named | set(device.access_lists) == set(compiled["access_lists"])
