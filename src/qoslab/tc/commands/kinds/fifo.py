"""`pfifo` and `bfifo`: first in, first out (tc-bfifo(8))."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.tc.commands.qdisc_kind import Leaf, Parameter, QdiscKind
from qoslab.tc.commands.tc_units import count, parse_size

TXQUEUELEN = 1000
"""Default transmit queue length of an Ethernet interface in Linux, in packets; the default limit of `pfifo`."""
FULL_FRAME = 1514
"""Bytes of a full Ethernet frame without the FCS; `bfifo`'s default limit is `txqueuelen` times this."""


@dataclass(frozen=True, slots=True)
class Pfifo:
    """Settings of `pfifo`."""

    limit: int = TXQUEUELEN
    """Queue limit in packets."""


@dataclass(frozen=True, slots=True)
class Bfifo:
    """Settings of `bfifo`."""

    limit: int = TXQUEUELEN * FULL_FRAME
    """Queue limit in bytes."""


KINDS = (
    QdiscKind(
        "pfifo", Pfifo, {"limit": Parameter("limit", count)}, leaf=lambda it: Leaf({"kind": "pfifo", "limit": it.limit})
    ),
    QdiscKind(
        "bfifo",
        Bfifo,
        {"limit": Parameter("limit", parse_size)},
        leaf=lambda it: Leaf({"kind": "bfifo", "limit": it.limit}),
    ),
)
