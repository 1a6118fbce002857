"""How match criteria, policer actions and set actions are written in show output.

Spacing as observed on devices: `show policy-map interface` and `show class-map` differ in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qoslab.ios.model.names import dscp_text

Criterion = Mapping[str, Any]
"""One of `criteria` in docs/control-protocol.md."""


def policy_match(criterion: Criterion) -> str:
    """What follows `Match: ` in `show policy-map interface`."""
    if criterion.get("negate"):
        return "not " + policy_match({**criterion, "negate": False})
    match criterion["type"]:
        case "dscp":
            return f"{_family(criterion)} dscp {_dscp_values(criterion['values'])}"
        case "precedence":
            return f"{_family(criterion)} precedence {'  '.join(map(str, criterion['values']))}"
        case "cos":
            return "cos " + "".join(f" {value}" for value in criterion["values"])
        case "access_group" if not _is_number(criterion["name"]):
            return f"access-group name {criterion['name']}"
        case "access_group":
            return f"access-group {criterion['name']}"
    return _common(criterion)


def class_map_match(criterion: Criterion) -> str:
    """What follows `Match ` in `show class-map`."""
    if criterion.get("negate"):
        return "not " + class_map_match({**criterion, "negate": False})
    match criterion["type"]:
        case "dscp":
            return f"{_family(criterion)}  dscp {_dscp_values(criterion['values'])}"
        case "precedence":
            return f"{_family(criterion)}  precedence {'  '.join(map(str, criterion['values']))}"
        case "cos":
            return "cos " + "".join(f" {value}" for value in criterion["values"]) + " "
        case "access_group" if not _is_number(criterion["name"]):
            return f"access-group name {criterion['name']}"
        case "access_group":
            return f"access-group  {criterion['name']}"
    return _common(criterion)


def _common(criterion: Criterion) -> str:
    match criterion["type"]:
        case "any":
            return "any "
        case "protocol":
            return f"protocol {criterion['name']}"
        case "packet_length":
            limits = [f" {word} {criterion[word]}" for word in ("min", "max") if criterion.get(word) is not None]
            return "packet length" + "".join(limits)
        case "input_interface":
            return f"input-interface {criterion['name']}"
        case "qos_group":
            return f"qos-group {criterion['value']}"
        case "class_map":
            # The reference gives this print without a device's own sample; match-all is the default of a class-map.
            return f"class-map match-{criterion.get('match', 'all')} {criterion['name']}"
    raise ValueError(f"no print for the match criterion {criterion['type']!r}")


def _family(criterion: Criterion) -> str:
    return "ip" if criterion.get("ip_only") else ""


def _dscp_values(values: Sequence[int]) -> str:
    return " ".join(f"{dscp_text(value)} ({value})" for value in values)


def _is_number(name: str) -> bool:
    return name.isdecimal()
