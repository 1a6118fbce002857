"""`show policy-map` and `show policy-map interface` of a Catalyst 3750."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoslab.ios.commands.policy_map import class_lines
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.ios.show.match import policy_match

if TYPE_CHECKING:
    from qoslab import formats


MATCH_ANY: formats.ClassMap = {"match": "any", "criteria": [{"type": "any"}]}
"""class-default."""


def show_policy_map(device: Device, name: str | None = None) -> str:
    """Every policy-map, or one. The layout is a router's, the lines of a class are those of the configuration [R]."""
    if name is not None and name not in device.policy_maps:
        return f"% policy map {name} not configured\n"
    lines: list[str] = []
    for each, policy in device.policy_maps.items():
        if name not in (None, each):
            continue
        lines += [*([""] if lines else []), f"  Policy Map {each}"]
        for policy_class in policy.classes:
            lines.append(f"    Class {policy_class.name}")
            lines += [f"     {line.strip()}" for line in class_lines(device, policy_class)]
    return "".join(line + "\n" for line in lines)


def show_policy_map_interface(device: Device, config: formats.RouterConfig, name: str | None = None) -> str:
    """The policies of all ports, or of one.

    Their counters are zero, as on the switch: its policers count in `show mls qos interface statistics` [R].
    """
    blocks: list[str] = []
    for interface in device.interfaces.values():
        policy = device.policy_maps.get(interface.service_policy_input or "")
        if policy is None or name not in (None, interface.name):
            continue
        lines = [f" {interface.name} ", "", f"  Service-policy input: {policy.name}", ""]
        classes = [each.name for each in policy.classes if each.name != CLASS_DEFAULT]
        for each in (*classes, CLASS_DEFAULT):
            class_map = config["class_maps"].get(each, MATCH_ANY)
            lines += [
                f"    Class-map: {each} (match-{class_map['match']})",
                "      0 packets, 0 bytes",
                "      5 minute offered rate 0 bps, drop rate 0 bps",
                *(f"      Match: {policy_match(criterion)}" for criterion in class_map["criteria"]),
                "",
            ]
        blocks.append("\n".join(lines))
    return "\n".join(blocks)
