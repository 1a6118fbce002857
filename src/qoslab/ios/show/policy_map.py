"""`show policy-map [P]` and `show class-map [C]`."""

from __future__ import annotations

from collections.abc import Mapping

from qoslab.ios.config import load
from qoslab.ios.registry import SHOW_POLICY_MAP_CLASS
from qoslab.ios.show.match import class_map_match
from qoslab.system import program_formats


def show_policy_map(
    config: program_formats.RouterConfig,
    resolved: Mapping[str, program_formats.ResolvedPolicy],
    *,
    name: str | None = None,
) -> str:
    """Return all policy-maps, or one.

    `config` is the active configuration; `resolved` has its policy-maps with all defaults filled in (the control
    protocol's `resolve`), since IOS prints the default burst.
    """
    lines: list[str] = []
    for policy_name, policy in resolved.items():
        if name not in (None, policy_name):
            continue
        if lines:
            lines.append("")
        lines.append(f"  Policy Map {policy_name}")
        typed = {entry["name"]: entry for entry in config["policy_maps"][policy_name]["classes"]}
        for entry in policy["classes"]:
            if entry["name"] not in typed:
                # The engine adds class-default.
                continue
            lines.append(f"    Class {entry['name']}")
            for part in SHOW_POLICY_MAP_CLASS.family_functions("router"):
                lines += part(config, typed[entry["name"]], entry)
    return "".join(line + "\n" for line in lines)


def show_class_map(config: program_formats.RouterConfig, *, name: str | None = None) -> str:
    """Return all class-maps, or one; IDs follow the order of definition, with class-default as 0."""
    class_default: program_formats.ClassMap = {"match": "any", "criteria": [{"type": "any"}]}
    lines: list[str] = []
    for number, (class_name, class_map) in enumerate({"class-default": class_default, **config["class_maps"]}.items()):
        if name not in (None, class_name):
            continue
        lines.append(f" Class Map match-{class_map['match']} {class_name} (id {number})")
        # IOS prints `none` for a class-map without criteria; it matches nothing.
        lines += [f"   Match {class_map_match(criterion)}" for criterion in class_map["criteria"]] or ["   Match none"]
        lines.append("")
    return "".join(line + "\n" for line in lines)


load()
