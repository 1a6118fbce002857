"""One step of a packet, and text of times and marks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from qoslab.explain.lines import ConfigurationLine
from qoslab.explain.packet import dscp_name
from qoslab.policy.rate import format_number
from qoslab.system import program_formats


@dataclass(frozen=True)
class Step:
    """One decision about the packet."""

    key: str
    """Stable identifier of the kind of decision."""
    title: str
    text: str
    lines: tuple[ConfigurationLine, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    """The decision as plain values, for JSON."""

    def as_dict(self, place: int) -> dict[str, Any]:
        """Return the step as plain values, for JSON."""
        lines = [{"file": each.file or None, "line": each.number, "text": each.text} for each in self.lines]
        return {"step": place, "kind": self.key, "title": self.title, "text": self.text, **self.values, "lines": lines}


def format_ms(nanoseconds: int) -> str:
    """Format a time as microseconds, milliseconds or seconds."""
    if nanoseconds >= 10**9:
        return f"{format_number(nanoseconds / 1e9, 5)} s"
    return (
        f"{format_number(nanoseconds / 1e6, 5)} ms"
        if nanoseconds >= 10**6
        else f"{format_number(nanoseconds / 1e3, 4)} µs"
    )


def marks_text(old: program_formats.Marks, new: program_formats.Marks) -> str:
    """Return the changed marks as text."""
    parts = []
    if old["dscp"] != new["dscp"]:
        parts.append(f"DSCP {_dscp_text(old['dscp'])} -> {_dscp_text(new['dscp'])}")
    if old["ecn"] != new["ecn"]:
        parts.append(f"ECN {old['ecn']} -> {new['ecn']}")
    if old["cos"] != new["cos"]:
        parts.append(f"CoS {old['cos']} -> {new['cos']}")
    if old["qos_group"] != new["qos_group"]:
        parts.append(f"qos-group {old['qos_group']} -> {new['qos_group']}")
    if old["discard_class"] != new["discard_class"]:
        parts.append(f"discard-class {old['discard_class']} -> {new['discard_class']}")
    return ", ".join(parts) or "unchanged"


def _dscp_text(value: int) -> str:
    name = dscp_name(value)
    return name if name == str(value) else f"{name} ({value})"
