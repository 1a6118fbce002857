"""The line behind an interface of a virtual lab.

Its rate is that of an HTB at the interface's root, whose overhead and least size make it count bytes on the wire; the
root of a template is below it. Queues so build in the template's qdisc, as they do above the driver of a network card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LINE = "7fff:"
"""Handle of the qdisc that gives an interface its line rate."""
UNDER_LINE = f"{LINE}1"


@dataclass(frozen=True)
class Line:
    """The line behind an interface of a lab."""

    rate_bps: int
    """Rate of bytes on the wire."""
    overhead_bytes: int
    """Added to the frame that the kernel sees to give its bytes on the wire."""
    minimum_bytes: int
    """Least bytes of a frame on the wire."""
    burst_bytes: int


def line_commands(lines: Mapping[str, Line]) -> list[list[str]]:
    """Return the commands that give interfaces their line rates."""
    commands = []
    for interface, line in lines.items():
        burst = line.burst_bytes
        commands += [
            f"qdisc add dev {interface} root handle {LINE} htb default 1",
            f"class add dev {interface} parent {LINE} classid {UNDER_LINE} htb rate {line.rate_bps}bit "
            f"ceil {line.rate_bps}bit burst {burst} cburst {burst} overhead {line.overhead_bytes} "
            f"mpu {line.minimum_bytes} quantum 1514",
        ]
    return [each.split() for each in commands]


def below_line(words: Sequence[str], lines: Mapping[str, Line]) -> list[str]:
    """Return a command with its root below the line of its interface."""
    words = list(words)
    if words[0] == "qdisc" and words[words.index("dev") + 1] in lines and "root" in words:
        at = words.index("root")
        words[at : at + 1] = ["parent", UNDER_LINE]
    return words
