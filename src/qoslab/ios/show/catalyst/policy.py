"""`show policy-map` and `show policy-map interface` of a Catalyst 3750."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.catalyst.commands.vlan_interface import vlan_interfaces
from qoslab.ios.commands.policy_map import class_lines
from qoslab.ios.model.device import Device
from qoslab.ios.model.policy import CLASS_DEFAULT, PolicyMap
from qoslab.ios.show.match import policy_match
from qoslab.system import program_formats

MATCH_ANY: program_formats.ClassMap = {"match": "any", "criteria": [{"type": "any"}]}
"""class-default."""


def show_policy_map(device: Device, name: str | None = None) -> str:
    """Return all policy-maps, or one, in the layout of a router, with class lines as in the configuration [R]."""
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


def show_policy_map_interface(device: Device, config: program_formats.RouterConfig, name: str | None = None) -> str:
    """Return the policies of all ports and VLAN interfaces, or of one.

    Counters are zero, as on the switch: policers are counted in `show mls qos interface statistics` [R].
    """
    attached = [(each.name, each.service_policy_input) for each in device.interfaces.values()]
    attached += [(each.name, each.service_policy_input) for _, each in vlan_interfaces(device)]
    blocks: list[str] = []
    for interface, policy_name in attached:
        policy = device.policy_maps.get(policy_name or "")
        if policy is None or name not in (None, interface):
            continue
        lines = [f" {interface} ", "", f"  Service-policy input: {policy.name}", ""]
        blocks.append("\n".join([*lines, *_class_lines(device, config, policy, "    ")]))
    return "\n".join(blocks)


def _class_lines(device: Device, config: program_formats.RouterConfig, policy: PolicyMap, indent: str) -> Iterator[str]:
    """Yield the lines of a policy-map's classes, each followed by those of its child policy."""
    children = {each.name: each.service_policy for each in policy.classes}
    for each in (*(name for name in children if name != CLASS_DEFAULT), CLASS_DEFAULT):
        class_map = config["class_maps"].get(each, MATCH_ANY)
        yield f"{indent}Class-map: {each} (match-{class_map['match']})"
        yield f"{indent}  0 packets, 0 bytes"
        yield f"{indent}  5 minute offered rate 0 bps, drop rate 0 bps"
        yield from (f"{indent}  Match: {policy_match(criterion)}" for criterion in class_map["criteria"])
        yield ""
        child = device.policy_maps.get(children.get(each) or "")
        if child is not None:
            yield from (f"{indent}  Service-policy : {child.name}", "")
            yield from _class_lines(device, config, child, f"{indent}    ")
