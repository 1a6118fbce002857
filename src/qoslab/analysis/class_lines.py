"""Keys of policy classes, and the lines behind interfaces. Pure; a worker that ends a cell loads it without pandas."""

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
    """Bytes of a packet on the line in addition to those counted by the router: FCS and flag, or preamble, FCS and gap.

    None on a line of cells, where it goes by the length of each packet.
    """
    header_bytes: int = 14
    """The layer-2 header that the router counts."""


Lines = Mapping[tuple[str, str], Line]
"""Lines by router and interface."""


def ends_of(lines: Lines, device: str) -> list[str]:
    """The interfaces of a router that have lines."""
    return [interface for router, interface in lines if router == device]
