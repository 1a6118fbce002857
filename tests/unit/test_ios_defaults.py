"""Default values of a router in Python equal those of the engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from ios_strategies import bandwidths, hardware, polices, priorities, shapes
from levels import example_count
from qoslab.ios.cli.grammar import RejectedError
from qoslab.ios.commands.interface import interface_bandwidth_kbps
from qoslab.ios.compile import compile_device
from qoslab.ios.device_config.normalise import fill_in_defaults, red_thresholds, resolve_percentages
from qoslab.ios.model import ip_sla
from qoslab.ios.model.device import Device, Generation
from qoslab.ios.model.policy import (
    Amount,
    Bandwidth,
    ClassMap,
    Criterion,
    Police,
    PolicyClass,
    PolicyMap,
    Priority,
    QueueLimit,
    RandomDetect,
    Shape,
)
from qoslab.ios.rules import check_attachment, check_policy
from qoslab.system.programs import SIMULATOR, find_own_program

TOP = Path(__file__).parents[2]
LEAST_SHAPE_BURST = 256
"""Minimum burst of a shaper in bits."""
PORT, OTHER = "FastEthernet0/0", "FastEthernet0/1"


def active_values(device: Device, *, dscp: int = 0, sample: int = 0) -> Any:
    """Return the engine's counters at the port with the active values: before the start, or in the last sample (-1),
    after a flow of that code point.
    """
    config = compile_device(device)
    config["interfaces"] = {name: config["interfaces"][name] for name in (PORT, OTHER)}
    wires = ((PORT, "A", "10.0.1"), (OTHER, "B", "10.0.2"))
    rate, flow = 1000 * interface_bandwidth_kbps(device.interfaces[PORT]), {"source": "B", "destination": "A"}
    scenario = {
        "format": 1,
        "nodes": {
            "R1": {"kind": "router", "configuration": config},
            **{
                host: {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "via": f"{network}.1"}]}
                for _, host, network in wires
            },
        },
        "links": [
            {
                "name": host,
                "rate_bps": rate,
                "framing": "ethernet",
                "ends": [
                    {"node": "R1", "interface": port, "address": f"{network}.1/24"},
                    {"node": host, "interface": "eth0", "address": f"{network}.2/24"},
                ],
            }
            for port, host, network in wires
        ],
        "flows": [
            {
                "name": "one",
                "protocol": "udp",
                "duration_ns": 10**6,
                "rate_bps": 10**6,
                "payload_bytes": 100,
                **flow,
                "dscp": dscp,
            }
        ],
    }
    program = str(find_own_program(SIMULATOR))
    done = subprocess.run([program, "run"], input=json.dumps(scenario), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["routers"]["R1"]["samples"][sample]["interfaces"][PORT]


def drop_policer_form(value: Any) -> Any:
    """Return the value without the spelling of a policer, which affects only show output."""
    if isinstance(value, dict):
        return {key: drop_policer_form(each) for key, each in value.items() if key != "form"}
    return [drop_policer_form(each) for each in value] if isinstance(value, list) else value


def device_with(generation: Generation, each: PolicyClass, percent: int | None = None) -> Device:
    """Return a router whose port has a policy with one class; `RejectedError` if a router refuses it."""
    made = Device(hardware(generation))
    made.class_maps = {"A": ClassMap("A", "any", (Criterion("any"),))}
    policy = PolicyMap("P", (each,))
    made.policy_maps = {"P": policy}
    port = made.interfaces[PORT]
    port.max_reserved_bandwidth = percent
    check_policy(made, policy)
    check_attachment(made, policy, port, "output")
    port.service_policy_output = "P"
    return made


@pytest.mark.parametrize("feature", ["police", "shape", "priority", "queue_limit"])
@given(st.data(), st.sampled_from(("classic", "hqf")))
@settings(
    max_examples=example_count(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_typed_default_changes_nothing(feature: str, data: DataObject, generation: Generation) -> None:
    each = PolicyClass("A")
    if feature == "police":
        each = PolicyClass("A", police=data.draw(polices()))
    elif feature == "shape":
        each = PolicyClass("A", shape=data.draw(shapes()))
    elif feature == "priority":
        each = PolicyClass("A", priority=data.draw(priorities(generation)))
    else:
        limit = QueueLimit(data.draw(st.sampled_from((63, 64, 65))))
        each = PolicyClass("A", bandwidth=data.draw(bandwidths("percent")), queue_limit=limit)
    percent = data.draw(st.sampled_from((None, 74, 75))) if generation == "classic" else None
    try:
        device = device_with(generation, each, percent)
    except RejectedError:
        assume(False)
    shape = fill_in_defaults(device).policy_maps["P"].classes[0].shape
    if shape is not None and shape.bc is not None:
        # The 4 ms burst of a slow shaper may be less than the minimum that can be typed.
        assume(shape.bc.unit == "ms" or shape.bc.number >= LEAST_SHAPE_BURST)
    assert drop_policer_form(active_values(fill_in_defaults(device))) == drop_policer_form(active_values(device))


def test_operation_defaults_equal_those_of_the_program() -> None:
    schema = json.loads((TOP / "docs/schema/qos-router-config.schema.json").read_text(encoding="utf-8"))
    reported = {name: each.get("default") for name, each in schema["$defs"]["OperationConfig"]["properties"].items()}
    known = {
        "frequency_s": ip_sla.DEFAULT_FREQUENCY_S,
        "timeout_ms": ip_sla.DEFAULT_TIMEOUT_MS,
        "threshold_ms": ip_sla.DEFAULT_THRESHOLD_MS,
        "packets": ip_sla.DEFAULT_PACKETS,
        "interval_ms": ip_sla.DEFAULT_INTERVAL_MS,
        "hours": ip_sla.DEFAULT_HOURS,
        "buckets": ip_sla.DEFAULT_BUCKETS,
        "bucket_ms": ip_sla.DEFAULT_BUCKET_MS,
    }
    assert {name: reported[name] for name in known} == known


def fill_bases(device: Device) -> Device:
    """Return the device with its defaults and the percentages of its policy as rates."""
    kbps = interface_bandwidth_kbps(device.interfaces[PORT])
    made = device.copy()
    policy = made.policy_maps["P"]
    classes = tuple(resolve_percentages(each, kbps * 1000, kbps * 1000, device.generation) for each in policy.classes)
    made.policy_maps["P"] = PolicyMap("P", classes)
    return made


def drop_shares(value: Any) -> Any:
    """Return the device without the typed percentages."""
    if isinstance(value, dict):
        left = ("form", "percent", "cir_percent", "pir_percent", "unit")
        return {key: drop_shares(each) for key, each in value.items() if key not in left}
    return [drop_shares(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("generation", ["classic", "hqf"])
@pytest.mark.parametrize(
    "each",
    [
        PolicyClass("A", police=Police("cir", Amount(7, "percent"))),
        PolicyClass("A", police=Police("cir", Amount(7, "percent"), bc=Amount(40, "ms"), pir=Amount(13, "percent"))),
        PolicyClass("A", shape=Shape("average", Amount(3, "percent"))),
        PolicyClass("A", shape=Shape("average", Amount(3, "percent"), bc=Amount(20, "ms"))),
        PolicyClass("A", bandwidth=Bandwidth("percent", 17)),
        PolicyClass("A", priority=Priority("percent", 11)),
    ],
    ids=["police", "two rates", "shape", "shape bc", "bandwidth", "priority"],
)
def test_percentages_give_the_rates_of_the_engine(generation: Generation, each: PolicyClass) -> None:
    device = device_with(generation, each)
    assert drop_shares(active_values(fill_bases(device))) == drop_shares(active_values(device))


@pytest.mark.parametrize("generation", ["classic", "hqf"])
@pytest.mark.parametrize("dscp", [0, 8, 10, 12, 14, 28, 38, 46, 48, 57])
def test_early_detection_has_the_thresholds_of_the_engine(generation: Generation, dscp: int) -> None:
    for basis, value in (("dscp", dscp), ("precedence", dscp >> 3)):
        red = RandomDetect("dscp" if basis == "dscp" else "precedence")
        device = device_with(generation, PolicyClass("A", bandwidth=Bandwidth("percent", 17), random_detect=red))
        (found,) = active_values(device, dscp=dscp, sample=-1)["policy_output"]["classes"][:1]
        row = next(each for each in found["random_detect"]["classes"] if each["value"] == value)
        expected = red_thresholds(red, value, generation, None)
        assert (row["min"], row["max"], row["denominator"]) == (
            expected.minimum,
            expected.maximum,
            expected.denominator,
        )


def test_early_detection_in_bytes_has_the_thresholds_of_the_engine() -> None:
    limit = QueueLimit(90_000, "bytes")
    for dscp in (0, 8, 12, 46):
        red = RandomDetect("dscp")
        each = PolicyClass("A", bandwidth=Bandwidth("percent", 17), random_detect=red, queue_limit=limit)
        found = active_values(device_with("hqf", each), dscp=dscp, sample=-1)["policy_output"]["classes"][0]
        row = next(one for one in found["random_detect"]["classes"] if one["value"] == dscp)
        expected = red_thresholds(red, dscp, "hqf", limit.number)
        assert (row["min"], row["max"]) == (expected.minimum, expected.maximum)
