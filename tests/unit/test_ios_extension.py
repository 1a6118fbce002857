"""Extension that no IOS has: a policer whose bucket adapts its size, from the command line to Genie."""

from __future__ import annotations

from typing import Any

import pytest
from fake_router import class_counters, interface_counters

from qoslab.errors import IosError
from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.genie.policy_parsers import parse_policy_map
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Generation, Hardware
from qoslab.ios.model.policy import DynamicBucket, Police
from qoslab.ios.parse import parse_config
from qoslab.ios.running_config import render
from qoslab.ios.show.policy_interface import show_policy_map_interface
from qoslab.ios.show.policy_map import show_policy_map
from qoslab.verification.requested_policy import policy_differences
from rollback_lines import undo_lines

HARDWARE = Hardware("3725", ("FastEthernet0/1",))
STATIC = """hostname R1
policy-map P
 class class-default
  police cir 1000000
interface FastEthernet0/1
 service-policy output P
"""
LINE = "qoslab-extension police dynamic-bucket initial 3000 monitoring 200"
DYNAMIC = STATIC.replace("1000000\n", f"1000000\n  {LINE}\n")


def policer(text: str, generation: Generation = "classic") -> Police | None:
    device = parse_config(text, Hardware("3725", ("FastEthernet0/1",), generation))
    return device.policy_maps["P"].classes[0].police


def test_extension_command_is_stored_printed_and_compiled() -> None:
    device = parse_config(DYNAMIC, HARDWARE)
    found = device.policy_maps["P"].classes[0].police
    assert found is not None
    assert found.dynamic == DynamicBucket(initial_bytes=3000, monitoring_ms=200)
    assert f"\n  {LINE}\n" in render(device)
    assert parse_config(render(device), HARDWARE) == device
    compiled = compile_device(device)["policy_maps"]["P"]["classes"][0]["police"]["dynamic"]
    assert (compiled["initial_bytes"], compiled["monitoring_ms"], compiled["maximum_bytes"]) == (3000, 200, None)


@pytest.mark.parametrize("generation", ["classic", "hqf"])
def test_dynamic_bucket_survives_a_new_rate_and_is_removed_with_the_policer(generation: Generation) -> None:
    again = DYNAMIC.replace(LINE, f"{LINE}\n  police cir 2000000\n   exceed-action drop")
    found = policer(again, generation)
    assert found is not None
    assert found.cir.number == 2_000_000
    assert found.dynamic is not None
    found = policer(DYNAMIC.replace(LINE, f"{LINE}\n  no police\n  police cir 2000000"), generation)
    assert found is not None
    assert found.dynamic is None
    found = policer(DYNAMIC.replace(LINE, f"{LINE}\n  no qoslab-extension police dynamic-bucket"), generation)
    assert found is not None
    assert found.dynamic is None


def test_dynamic_bucket_without_policer_or_out_of_range_is_refused() -> None:
    with pytest.raises(IosError, match="configure police first"):
        parse_config(DYNAMIC.replace("  police cir 1000000\n", ""), HARDWARE)
    with pytest.raises(IosError, match="Invalid input"):
        parse_config(DYNAMIC.replace("initial 3000", "initial 1000"), HARDWARE)


def test_dynamic_bucket_can_be_removed() -> None:
    bare = ["policy-map P", " class class-default", "  no qoslab-extension police dynamic-bucket"]
    assert undo_lines(STATIC, DYNAMIC, HARDWARE) == bare
    assert undo_lines(DYNAMIC, STATIC, HARDWARE) == [*bare[:2], f"  {LINE}"]


def test_show_output_of_a_dynamic_bucket_is_parsed_by_genie() -> None:
    config = compile_device(parse_config(DYNAMIC, HARDWARE))
    values = {
        "bucket_bytes": 18250,
        "level_bytes": 311,
        "mean_bucket_bytes": 17402,
        "initial_bytes": 3000,
        "minimum_bytes": 3000,
        "maximum_bytes": 187500,
        "monitoring_ms": 200,
        "growths": 4,
        "shrinks": 11,
        "overflow_bytes": 9120,
        "most_overflow_bytes": 3310,
    }
    nothing = {"packets": 0, "bytes": 0, "rate_bps": 0.0}
    police = {
        "form": "cir",
        "cir_bps": 1_000_000,
        "cir_percent": None,
        "bc_bytes": 18250,
        "pir_bps": None,
        "pir_percent": None,
        "be_bytes": None,
        "conformed": nothing,
        "exceeded": nothing,
        "violated": None,
        "dynamic": {**values, "watching": True, "changes": []},
    }
    policy = {"policy": "P", "classes": [class_counters(police=police)], "priority_queues": []}
    counters: Any = {"interfaces": {"FastEthernet0/1": interface_counters(policy_output=policy)}}
    text = show_policy_map_interface(config, counters)
    assert "qoslab-extension dynamic-bucket:" in text
    parsed = parse_policy_map_interface(text)
    shown = parsed["FastEthernet0/1"]["service_policy"]["output"]["policy_name"]["P"]["class_map"]["class-default"]
    assert shown["police"]["dynamic_bucket"] == values
    assert shown["police"]["cir_bps"] == 1_000_000
    assert "unrecognised" not in shown
    assert policy_differences(parsed, config) == []
    config["policy_maps"]["P"]["classes"][0]["police"]["dynamic"]["initial_bytes"] = 4000
    assert "dynamic-bucket initial 3000 bytes, expected 4000" in policy_differences(parsed, config)[0]
    config["policy_maps"]["P"]["classes"][0]["police"]["dynamic"] = None
    assert "found a dynamic bucket, expected none" in policy_differences(parsed, config)[0]

    resolved: dict[str, Any] = {
        "bc_bytes": 3000,
        "be_bytes": None,
        "dynamic": {"initial_bytes": 3000, "monitoring_ms": 200},
    }
    resolved["dynamic"] |= dict.fromkeys(("minimum_bytes", "maximum_bytes", "idle_ms", "first_growths"), 7)
    names = ("first_growth_percent", "growth_percent", "shrink_percent", "spare_percent")
    resolved["dynamic"] |= dict.fromkeys(names, 9)
    config = compile_device(parse_config(DYNAMIC, HARDWARE))
    print_out = show_policy_map(config, {"P": {"classes": [{"name": "class-default", "police": resolved}]}})
    bucket = parse_policy_map(print_out)["policy_map"]["P"]["class"]["class-default"]["police"]["dynamic_bucket"]
    assert (bucket["initial"], bucket["monitoring"], bucket["first_growth"]) == (3000, 200, 9)
