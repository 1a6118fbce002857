"""Keys of policy classes, and lines behind interfaces. Pure; it does not import pandas, for workers that
finish a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CLASS = ["device", "interface", "direction", "policy", "class"]
"""Columns that identify a class."""


@dataclass(frozen=True)
class Line:
    """The line behind an interface."""

    rate_bps: float
    extra_bytes: int | None
    """Bytes of a packet on the line beyond those that the router counts: FCS and flag, or preamble, FCS and gap.

    None for a line of cells, since the overhead depends on each packet's length.
    """
    header_bytes: int = 14
    """Bytes of the layer-2 header, which the router counts."""


Lines = Mapping[tuple[str, str], Line]
"""Lines by router and interface."""


def interfaces_with_lines(lines: Lines, device: str) -> list[str]:
    """Return the interfaces of a router that have lines."""
    return [interface for router, interface in lines if router == device]
