"""The configuration lines that bring a device back from one running configuration to another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from qoslab.errors import IosError, QoslabError
from qoslab.ios.device import Device, Hardware
from qoslab.ios.parse import apply, parse_config
from qoslab.ios.running_config import render

_SERVICE_POLICY = "service-policy "

_REMOVED_LAST = ("policy-map ", "class-map ", "ip access-list ", "access-list ")
"""What something else may refer to, in the order in which it can be removed."""

_WHOLE = ("ip access-list ", "access-list ")
"""Blocks in which the order of lines counts: changed ones are removed and written anew."""


@dataclass
class _Block:
    line: str
    children: dict[str, _Block] = field(default_factory=dict)

    def lines(self, depth: int = 0) -> Iterator[str]:
        yield " " * depth + self.line
        for child in self.children.values():
            yield from child.lines(depth + 1)


def undo_lines(before: str, after: str, hardware: Hardware) -> list[str]:
    """The lines that, configured on a device which runs `after`, make it run `before`; none where they are alike.

    Both are running configurations as printed. What differs is changed in place where that leads there; otherwise
    policies are detached, removed and written anew. The result is tried out on the device model before it is returned.
    """
    wanted = parse_config(before, hardware, source="the configuration before")
    current = parse_config(after, hardware, source="the configuration after")
    if wanted == current:
        return []
    for attempt in (_in_place, _anew):
        lines = attempt(wanted, current)
        device = current.copy()
        try:
            apply(device, "\n".join(lines), source="lines that undo")
        except IosError:
            continue
        if device == wanted:
            return lines
    raise QoslabError(
        "no configuration lines are known that lead from the present running configuration back to the one before",
        hint="Compare the two by hand; both are in the run folder.",
    )


def _in_place(wanted: Device, current: Device) -> list[str]:
    """Detach what is no longer attached, remove what is new, change what differs, add what is gone."""
    target, present = _tree(wanted), _tree(current)
    lines: list[str] = []
    for name, block in present.items():
        detached = [
            each for each in block.children
            if each.startswith(_SERVICE_POLICY) and each not in target.get(name, _Block(name)).children
        ]  # fmt: skip
        if name.startswith("interface ") and detached:
            lines += [name, *(f" no {each}" for each in detached)]
            for each in detached:
                del block.children[each]
    return lines + list(_difference(target, present)) + _banner(wanted, current)


def _anew(wanted: Device, current: Device) -> list[str]:
    """Detach and remove all policies, class-maps and access lists that differ, and write them anew."""
    lines: list[str] = []
    bare = current.copy()
    for interface in bare.interfaces.values():
        attached = {"input": interface.service_policy_input, "output": interface.service_policy_output}
        detached = [f" no {_SERVICE_POLICY}{way} {name}" for way, name in attached.items() if name is not None]
        if detached:
            lines += [f"interface {interface.name}", *detached]
            interface.service_policy_input = interface.service_policy_output = None
    # A policy may be the child of another that comes later.
    children = {
        each.service_policy
        for policy in bare.policy_maps.values()
        for each in policy.classes
        if each.service_policy is not None
    }
    for name in sorted(bare.policy_maps, key=lambda each: each in children):
        lines.append(f"no policy-map {name}")
    bare.policy_maps = {}
    for name, class_map in reversed(bare.class_maps.items()):
        lines.append(f"no class-map match-{class_map.match} {name}")
    bare.class_maps = {}
    return lines + list(_difference(_tree(wanted), _tree(bare))) + _banner(wanted, current)


def _tree(device: Device) -> dict[str, _Block]:
    """The running configuration by indentation; a banner is no line of configuration and left out."""
    device = device.copy()
    device.banner_motd = None
    blocks: dict[str, _Block] = {}
    path: list[tuple[int, dict[str, _Block]]] = [(-1, blocks)]
    for text in render(device).splitlines():
        line = text.strip()
        if not line or line == "end" or line.startswith(("!", "version ", "Building ", "Current configuration")):
            continue
        depth = len(text) - len(text.lstrip())
        while path[-1][0] >= depth:
            path.pop()
        # The lines of a numbered access list are one block, since their order counts.
        numbered = re.match(r"access-list (\d+) ", line)
        key = line if numbered is None else f"access-list {numbered[1]}"
        block = path[-1][1].setdefault(key, _Block(key))
        if numbered is not None:
            block.children[line] = _Block(line)
        path.append((depth, block.children))
    return blocks


def _difference(target: dict[str, _Block], present: dict[str, _Block], depth: int = 0) -> Iterator[str]:
    """The lines from `present` to `target`: removals, changes inside blocks, additions."""
    indent = " " * depth
    gone = [name for name in present if name not in target]
    changed = [name for name in present if name in target and not _alike(present[name], target[name])]
    whole = [name for name in changed if name.startswith(_WHOLE) or _is_value(present[name])]
    for name in sorted([*gone, *whole], key=_removal_order):
        removal = _negated(name, target)
        if removal is not None:
            yield indent + removal
    # In the order of the running configuration, in which what is referred to comes first.
    for name, block in target.items():
        if name in changed and name not in whole:
            yield indent + name
            yield from _difference(block.children, present[name].children, depth + 1)
        elif name not in present or name in whole:
            lines = list(block.lines(depth))
            # The block of a numbered access list has no line of its own.
            yield from (line.strip() for line in lines[1:]) if name.startswith("access-list ") else lines


def _alike(one: _Block, other: _Block) -> bool:
    return list(one.lines()) == list(other.lines())


def _is_value(block: _Block) -> bool:
    """A line whose children only spell it out, such as a policer with its actions."""
    return block.line.startswith("police ")


def _removal_order(name: str) -> int:
    return next((place for place, start in enumerate(_REMOVED_LAST, 1) if name.startswith(start)), 0)


def _negated(line: str, target: dict[str, _Block]) -> str | None:
    """The line that takes `line` back; None where a line of the target does so by itself."""
    if not line.startswith("no "):
        return f"no {line}"
    positive = line.removeprefix("no ")
    if any(name == positive or name.startswith(positive + " ") for name in target):
        return None
    return positive


def _banner(wanted: Device, current: Device) -> list[str]:
    if wanted.banner_motd == current.banner_motd:
        return []
    if wanted.banner_motd is None:
        return ["no banner motd"]
    # Not the control character that IOS prints: on a terminal it would interrupt.
    text = wanted.banner_motd
    delimiter = next(each for each in map(chr, range(0x23, 0x7F)) if each not in text)
    return f"banner motd {delimiter}{text}{delimiter}".splitlines()
