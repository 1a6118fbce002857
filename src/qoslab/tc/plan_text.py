"""Text of a plan: a shell script with its fidelity notes as comments, and plain values for JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from qoslab.tc.fidelity import Note
from qoslab.tc.objects import Origin
from qoslab.tc.plan_lines import LineFinder, unknown_line
from qoslab.tc.router_plan import OFFLOADS, InterfacePlan, RouterPlan

WIDTH = 100
"""Maximum width of comments in columns; commands are not wrapped."""
DEGREES = {
    "refused": "Refused: the kernel cannot do this",
    "approximate": "Approximate, with the difference",
    "exact": "Exact",
}


def plan_script(plan: RouterPlan, line_of: LineFinder = unknown_line) -> str:
    """Return the plan as a shell script; without its commands if an action is refused."""
    lines = ["#!/bin/sh -e", *_comment_lines(f"QoS of {plan.router} for tc(8), Linux 5.1 or later.")]
    if plan.interfaces:
        devices = ", ".join(f"{each.port.device} is {each.port.interface}" for each in plan.interfaces)
        lines += _comment_lines(f"Devices: {devices}.")
    for degree, title in DEGREES.items():
        notes = [each for each in plan.notes if each.degree == degree]
        if notes:
            lines += ["#", f"# {title}:", *(line for note in notes for line in _note_lines(note, line_of))]
    if plan.refused_actions:
        lines += ["#", *_comment_lines("No commands are printed while an action is refused.")]
        return "\n".join(lines) + "\n"
    for each in plan.interfaces:
        lines += ["", *_interface_lines(each)]
    return "\n".join(lines) + "\n"


def _comment_lines(text: str, indent: str = "# ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="# ", subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _note_lines(note: Note, line_of: LineFinder) -> list[str]:
    number = line_of(note.origin, note.action)
    line = f"line {number}: " if number else ""
    return _comment_lines(f"  {line}{note.origin}: {note.action}: {note.text}", "#     ")


def _interface_lines(interface: InterfacePlan) -> Iterator[str]:
    device = interface.port.device
    policies = ", ".join(_policy_lines(interface))
    yield f"# {interface.port.interface}, policies: {policies}"
    yield f"ethtool -K {device} {' '.join(f'{each} off' for each in OFFLOADS)}"
    if any(each.command().startswith("qdisc") and " root " in each.command() for each in interface.objects):
        yield f"tc qdisc del dev {device} root 2>/dev/null || true"
    yield f"tc qdisc del dev {device} clsact 2>/dev/null || true"
    last: Origin | None = Origin(interface.port.interface)
    for each in interface.objects:
        if each.origin != last:
            yield from _comment_lines(_origin_title(each.origin), "#   ")
            last = each.origin
        yield f"tc {each.command()}"


def _policy_lines(interface: InterfacePlan) -> list[str]:
    words = {"ingress": "input", "egress": "output"}
    outer = (each for each in interface.classes if len(each.path) == 1)
    return list(dict.fromkeys(f"{words[each.hook]} {each.policy}" for each in outer))


def _origin_title(origin: Origin) -> str:
    return ", ".join(str(origin).split(", ")[1:]) or ("line" if origin.direction else "filters")


def to_json(plan: RouterPlan, line_of: LineFinder = unknown_line) -> dict[str, Any]:
    """Return the plan as plain values."""
    return {
        "router": plan.router,
        "interfaces": [
            {
                "interface": each.port.interface,
                "device": each.port.device,
                "kinds": [list(kind) for kind in sorted(each.kinds())],
                "commands": [f"tc {command}" for command in each.commands()],
                "classes": [
                    {
                        "policy": one.policy,
                        "path": list(one.path),
                        "hook": one.hook,
                        "chain": one.chain,
                        "police_chain": one.police_chain,
                        "leaf": one.leaf,
                    }
                    for one in each.classes
                ],
            }
            for each in plan.interfaces
        ],
        "notes": [
            {
                "degree": each.degree,
                "line": line_of(each.origin, each.action),
                "interface": each.origin.interface,
                "direction": each.origin.direction,
                "policy": each.origin.policy,
                "path": list(each.origin.path),
                "action": each.action,
                "text": each.text,
            }
            for each in plan.notes
        ],
    }
