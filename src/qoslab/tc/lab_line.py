"""Emulated line of an interface of a virtual lab.

An HTB at the interface's root enforces the line rate; its overhead and minimum size make it count bytes on the wire.
The root of a template is below it, so that queues build in the template's qdisc, as above a network card's driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LINE = "7fff:"
"""Handle of the qdisc that gives an interface its line rate."""
LINE_PARENT = f"{LINE}1"


@dataclass(frozen=True)
class Line:
    """Emulated line of an interface of a lab."""

    rate_bps: int
    """Line rate, counting bytes on the wire."""
    overhead_bytes: int
    """Bytes on the wire beyond those of the frame that the kernel sees."""
    minimum_bytes: int
    """Minimum bytes of a frame on the wire."""
    burst_bytes: int


def line_commands(lines: Mapping[str, Line]) -> list[list[str]]:
    """Return the tc commands that set the line rates of interfaces."""
    commands = []
    for interface, line in lines.items():
        burst = line.burst_bytes
        commands += [
            f"qdisc add dev {interface} root handle {LINE} htb default 1",
            f"class add dev {interface} parent {LINE} classid {LINE_PARENT} htb rate {line.rate_bps}bit "
            f"ceil {line.rate_bps}bit burst {burst} cburst {burst} overhead {line.overhead_bytes} "
            f"mpu {line.minimum_bytes} quantum 1514",
        ]
    return [each.split() for each in commands]


def move_below_line(words: Sequence[str], lines: Mapping[str, Line]) -> list[str]:
    """Return a command with `root` replaced by the line of its interface as parent."""
    words = list(words)
    if words[0] == "qdisc" and words[words.index("dev") + 1] in lines and "root" in words:
        at = words.index("root")
        words[at : at + 1] = ["parent", LINE_PARENT]
    return words
