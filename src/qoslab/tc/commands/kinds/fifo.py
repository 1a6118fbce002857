"""`pfifo` and `bfifo`: first in, first out (tc-bfifo(8))."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.tc.commands.qdisc_kind import Kind, Leaf, Parameter
from qoslab.tc.commands.tc_units import count, size_bytes

TXQUEUELEN = 1000
"""Packets: length of the transmit queue that Linux gives an Ethernet interface, the default limit of `pfifo`."""
FULL_FRAME = 1514
"""Bytes of a full Ethernet frame without its check sequence, which `bfifo` has as many as `txqueuelen` of."""


@dataclass(frozen=True, slots=True)
class Pfifo:
    """Settings of `pfifo`."""

    limit: int = TXQUEUELEN
    """Packets."""


@dataclass(frozen=True, slots=True)
class Bfifo:
    """Settings of `bfifo`."""

    limit: int = TXQUEUELEN * FULL_FRAME
    """Bytes."""


KINDS = (
    Kind(
        "pfifo", Pfifo, {"limit": Parameter("limit", count)}, leaf=lambda it: Leaf({"kind": "pfifo", "limit": it.limit})
    ),
    Kind(
        "bfifo",
        Bfifo,
        {"limit": Parameter("limit", size_bytes)},
        leaf=lambda it: Leaf({"kind": "bfifo", "limit": it.limit}),
    ),
)
