"""Match criteria, policer actions and set actions in show output.

Spacing as observed on devices: `show policy-map interface` and `show class-map` differ in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from qoslab.ios.model.ios_names import dscp_text, vlans_text
from qoslab.ios.model.nbar import MATCH_LIST, PROTOCOL_LIST
from qoslab.system import program_formats


def policy_match(criterion: program_formats.Criterion, kind: program_formats.MatchMode = "all") -> str:
    """Return the text after `Match: ` in `show policy-map interface`; `kind` is the mode of a nested class-map."""
    return _negation_prefix(criterion) + _positive_policy_match(criterion, kind)


def _positive_policy_match(criterion: program_formats.Criterion, kind: program_formats.MatchMode) -> str:
    match criterion["type"]:
        case "dscp":
            return f"{_protocol_family_text(criterion)} dscp {_format_dscp_values(criterion['values'])}"
        case "precedence":
            return f"{_protocol_family_text(criterion)} precedence {'  '.join(map(str, criterion['values']))}"
        case "cos":
            return "cos " + "".join(f" {value}" for value in criterion["values"])
        case "access_group" if criterion["name"].startswith((PROTOCOL_LIST, MATCH_LIST)):
            return criterion["name"].removeprefix(MATCH_LIST)
        case "access_group":
            return f"access-group {'' if criterion['name'].isdecimal() else 'name '}{criterion['name']}"
    return _common_match_text(criterion, kind)


def class_map_match(criterion: program_formats.Criterion) -> str:
    """Return the text after `Match ` in `show class-map`."""
    return _negation_prefix(criterion) + _positive_class_map_match(criterion)


def _positive_class_map_match(criterion: program_formats.Criterion) -> str:
    match criterion["type"]:
        case "dscp":
            return f"{_protocol_family_text(criterion)}  dscp {_format_dscp_values(criterion['values'])}"
        case "precedence":
            return f"{_protocol_family_text(criterion)}  precedence {'  '.join(map(str, criterion['values']))}"
        case "cos":
            return "cos " + "".join(f" {value}" for value in criterion["values"]) + " "
        case "access_group" if criterion["name"].startswith((PROTOCOL_LIST, MATCH_LIST)):
            return criterion["name"].removeprefix(MATCH_LIST)
        case "access_group":
            return f"access-group {' ' if criterion['name'].isdecimal() else 'name '}{criterion['name']}"
    # This output is in the reference only, without a sample of a device; match-all is the default of a class-map.
    return _common_match_text(criterion, "all")


def _negation_prefix(criterion: program_formats.Criterion) -> str:
    return "not " if criterion.get("negate") else ""


def _common_match_text(criterion: program_formats.Criterion, kind: program_formats.MatchMode) -> str:
    match criterion["type"]:
        case "vlan":
            return "vlan " + "".join(f" {vlans_text((first, last))}" for first, last in criterion["ranges"])
        case "any":
            return "any "
        case "protocol":
            return f"protocol {criterion['name']}"
        case "packet_length":
            limits = (("min", criterion.get("min")), ("max", criterion.get("max")))
            return "packet length" + "".join(f" {word} {limit}" for word, limit in limits if limit is not None)
        case "input_interface":
            return f"input-interface {criterion['name']}"
        case "input_interfaces":
            return f"input-interface {' '.join(criterion['names'])}"
        case "qos_group":
            return f"qos-group {criterion['value']}"
        case "discard_class":
            return f"discard-class  {criterion['value']}"
        case "class_map":
            return f"class-map match-{kind} {criterion['name']}"
    raise ValueError(f"no output form for the match criterion {criterion['type']!r}")


def _protocol_family_text(criterion: program_formats.CriterionDscp) -> str:
    return "ip" if criterion.get("ip_only") else ""


def _format_dscp_values(values: Sequence[int]) -> str:
    return " ".join(f"{dscp_text(value)} ({value})" for value in values)
