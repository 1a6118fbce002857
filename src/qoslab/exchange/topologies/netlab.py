"""Reader of topology files of netlab (netlab.tools/topology-reference).

Nodes are a list or a mapping; a node has its own device, that of its group, or the default. Links are text (`a-b`),
lists of nodes, mappings with the nodes as keys, mappings with `interfaces`, or groups of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qoslab.exchange.topologies.common_form import ForeignEnd, ForeignLink, ForeignTopology
from qoslab.model.units import Rate
from qoslab.schema.document import Document, Steps
from qoslab.schema.overrides import as_mapping

REFUSED_KEYS = ("plugin", "components")
"""Top-level keys that change the nodes and links of the file."""


def is_netlab(data: Any) -> bool:
    """Return whether a document looks like a netlab topology."""
    return isinstance(data, dict) and "nodes" in data and "topology" not in data


def read_netlab(document: Document) -> ForeignTopology:
    """Return nodes and links, and add errors to the document's findings."""
    found, data = ForeignTopology("netlab", document), document.data
    for key in REFUSED_KEYS:
        if key in data:
            found.refuse(
                (key,),
                f"found {key}, expected nodes and links listed one by one",
                "netlab create -o yaml:nodefault:noaddr=FILE writes them",
            )
    defaults = as_mapping(data.get("defaults"))
    default = defaults.get("device", data.get("defaults.device"))
    of_group = dict(_group_nodes(found, as_mapping(data.get("groups"))))
    for name, content, steps in _read_nodes(data["nodes"]):
        own = as_mapping(content)
        device = own.get("device") or of_group.get(str(name)) or default
        found.add_node(name, device, steps, own.get("role", ""))
    if "module" in data:
        found.add_note("modules (routing protocols and others) are omitted: routes are static, along shortest paths")
    for link, steps in _read_links(data.get("links") or [], ("links",)):
        _link(found, link, steps)
    return found


def _group_nodes(found: ForeignTopology, groups: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the nodes that have the device of their group."""
    for name, group in groups.items():
        members = as_mapping(group).get("members") or []
        if not isinstance(members, list):
            found.refuse(("groups", name, "members"), f"found {members!r}, expected a list of nodes")
        elif "device" in as_mapping(group):
            yield from ((member, group["device"]) for member in members if isinstance(member, str))


def _read_nodes(nodes: Any) -> Iterator[tuple[Any, Any, Steps]]:
    if isinstance(nodes, dict):
        yield from ((name, content, ("nodes", name)) for name, content in nodes.items())
    elif isinstance(nodes, list):
        for number, node in enumerate(nodes):
            content = as_mapping(node)
            yield content.get("name") if content else node, content, ("nodes", number)


def _read_links(links: Any, steps: Steps) -> Iterator[tuple[Any, Steps]]:
    """Yield the links, including those of groups."""
    if isinstance(links, dict):
        for name, group in links.items():
            yield from _read_links(group, (*steps, name))
    elif isinstance(links, list):
        for number, link in enumerate(links):
            group = as_mapping(link)
            if "group" in group and "members" in group:
                yield from _read_links(group["members"], (*steps, number, "members"))
            else:
                yield link, (*steps, number)


def _link(found: ForeignTopology, link: Any, steps: Steps) -> None:
    attributes = as_mapping(link)
    ends = _read_ends(found, link, steps)
    if len(ends) != 2:
        named = ", ".join(end.node for end in ends) or "none"
        hint = "" if len(ends) > 2 else "no traffic can cross a stub network; remove it"
        found.refuse(steps, f"found a link with {len(ends)} nodes ({named}), expected two", hint)
        return
    kind = attributes.get("type", "p2p")
    if kind not in ("p2p", "lan"):
        found.refuse(steps, f"found a link of type {kind!r}, expected p2p or lan: other types have no equivalent")
        return
    rate = None
    if "bandwidth" in attributes:
        kbps = attributes["bandwidth"]
        if isinstance(kbps, bool) or not isinstance(kbps, int) or kbps <= 0:
            found.refuse((*steps, "bandwidth"), f"found {kbps!r}, expected kilobits per second, above 0")
        else:
            rate = Rate.parse(f"{kbps} kb/s")
    for key in attributes.keys() & {"mtu", "vlan", "ra", "tc", "disable"}:
        found.add_note(f"the links' {key} is left out")
    found.add_link(
        ForeignLink((ends[0], ends[1]), steps, rate, found.read_prefix(attributes.get("prefix"), (*steps, "prefix")))
    )


def _read_ends(found: ForeignTopology, link: Any, steps: Steps) -> list[ForeignEnd]:
    if isinstance(link, str):
        # Names with hyphens are only allowed in lists, in netlab as well.
        return [ForeignEnd(name) for name in link.split("-")]
    if isinstance(link, list):
        return [ForeignEnd(str(name)) for name in link]
    attributes = as_mapping(link)
    inside = attributes.get("interfaces")
    if isinstance(inside, list):
        return [_end(found, each, (*steps, "interfaces", at)) for at, each in enumerate(inside)]
    return [
        _end(found, {"node": name, **as_mapping(content)}, (*steps, name))
        for name, content in attributes.items()
        if name in found.nodes
    ]


def _end(found: ForeignTopology, end: Any, steps: Steps) -> ForeignEnd:
    content = {"node": end} if isinstance(end, str) else as_mapping(end)
    name, interface, address = content.get("node"), content.get("ifname", ""), content.get("ipv4")
    if not isinstance(name, str):
        found.refuse(steps, f"found {end!r}, expected a node")
        name = ""
    if isinstance(address, int):
        # A host part: numbering by netlab.
        address = None
    return ForeignEnd(name, str(interface), found.read_address(address, steps))
