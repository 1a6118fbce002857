"""The typed tree of a template: its qdiscs, classes and filters, by interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from qoslab.tc.commands.command_words import Word
from qoslab.tc.commands.qdisc_kind import QdiscKind

ROOT = "root"
"""The parent of an interface's root qdisc."""


@dataclass(frozen=True, slots=True)
class Qdisc:
    """`tc qdisc add`."""

    place: Word
    """The word that names its kind."""
    parent: str
    """`root`, a handle with its colon, or a class."""
    handle: str | None
    """Major number with its colon: `1:`."""
    kind: QdiscKind
    settings: Any


@dataclass(frozen=True, slots=True)
class TcClass:
    """`tc class add`."""

    place: Word
    parent: str
    classid: str
    kind: QdiscKind
    """The kind of the class's qdisc."""
    settings: Any


@dataclass(frozen=True, slots=True)
class Match:
    """Criteria of a filter; a packet must meet all of them. None matches any value."""

    family: int | None = None
    protocol: int | None = None
    source: IPv4Network | IPv6Network | None = None
    destination: IPv4Network | IPv6Network | None = None
    source_port: int | None = None
    destination_port: int | None = None
    dscp: int | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """`tc filter add`."""

    place: Word
    parent: str
    priority: int
    match: Match
    target: Word
    """The class that the filter selects."""


@dataclass(slots=True)
class Tree:
    """Commands for an interface, in order."""

    place: Word
    """The word that names the interface."""
    qdiscs: dict[str, Qdisc] = field(default_factory=dict)
    """Qdiscs by parent."""
    classes: dict[str, TcClass] = field(default_factory=dict)
    filters: list[Filter] = field(default_factory=list)


Commands = dict[str, Tree]
"""Trees by interface name as written in the commands."""
