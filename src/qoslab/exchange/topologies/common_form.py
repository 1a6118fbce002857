"""Common form of the files of both tools: nodes with their kinds, links with two ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network

from qoslab.model.units import Rate
from qoslab.schema.document import Document, Steps

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


@dataclass(frozen=True)
class ForeignNode:
    """A node as in its file."""

    kind: str
    steps: Steps
    """Location in the file."""
    role: str = ""
    """Role of the node in its file, in addition to the kind."""


@dataclass(frozen=True)
class ForeignEnd:
    """An end of a link."""

    node: str
    interface: str = ""
    """Name of the interface; empty if the file leaves it to the tool."""
    address: IPv4Interface | None = None


@dataclass(frozen=True)
class ForeignLink:
    """A link with two ends."""

    ends: tuple[ForeignEnd, ForeignEnd]
    steps: Steps
    rate: Rate | None = None
    prefix: IPv4Network | None = None


@dataclass
class ForeignTopology:
    """A topology of another tool while it is read."""

    tool: str
    document: Document
    nodes: dict[str, ForeignNode] = field(default_factory=dict)
    links: list[ForeignLink] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Descriptions of omitted parts."""

    def refuse(self, steps: Steps, message: str, hint: str = "") -> None:
        """Add an error to the findings."""
        self.document.findings.append(self.document.finding(steps, message, hint))

    def add_note(self, text: str) -> None:
        """Add a note about an omitted part, once."""
        if text not in self.notes:
            self.notes.append(text)

    def add_node(self, name: object, kind: object, steps: Steps, role: object = "") -> None:
        """Add a node, or refuse an invalid name or kind."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.refuse(steps, f"found {name!r}, expected a node's name")
        elif not isinstance(kind, str) or not kind:
            self.refuse(steps, "found no kind, expected one here, in its group or in the defaults")
        else:
            self.nodes[name] = ForeignNode(kind, steps, str(role))

    def add_link(self, link: ForeignLink) -> None:
        """Add a link, or refuse an end without a node."""
        unknown = [end.node for end in link.ends if end.node not in self.nodes]
        for name in unknown:
            self.refuse(link.steps, f'found an end at "{name}", expected one of the nodes')
        if not unknown and link.ends[0].node == link.ends[1].node:
            self.refuse(link.steps, "found both ends at one node, expected two nodes")
        elif not unknown:
            self.links.append(link)

    def read_address(self, value: object, steps: Steps) -> IPv4Interface | None:
        """Return an IPv4 address with its prefix length; None if there is none."""
        if value is None or isinstance(value, bool):
            return None
        try:
            found = IPv4Interface(str(value))
        except ValueError:
            found = None
        if found is None or "/" not in str(value):
            self.refuse(steps, f"found {value!r}, expected an IPv4 address with its prefix length, such as 10.0.0.1/24")
            return None
        return found

    def read_prefix(self, value: object, steps: Steps) -> IPv4Network | None:
        """Return an IPv4 prefix of a link; None if there is none."""
        if isinstance(value, Mapping):
            value = value.get("ipv4")
        if value is None or isinstance(value, bool):
            return None
        try:
            found = IPv4Network(str(value), strict=False)
        except ValueError:
            found = None
        if found is None or found.num_addresses < 2:
            self.refuse(steps, f"found {value!r}, expected an IPv4 prefix for two ends, such as 10.0.0.0/30")
            return None
        return found
