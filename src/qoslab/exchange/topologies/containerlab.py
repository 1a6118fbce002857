"""Reader of topology files of containerlab (containerlab.dev/manual/topo-def-file).

A node has its own kind, that of its group, or the default. Linux routers have the kind `linux` as hosts do, and are
recognised by their image. Links are in the brief form (`endpoints: ["a:eth1", "b:eth1"]`) or of type `veth`.
"""

from __future__ import annotations

import re
from typing import Any

from qoslab.exchange.topologies.common_form import ForeignEnd, ForeignLink, ForeignTopology
from qoslab.schema.document import Document, Steps
from qoslab.schema.overrides import as_mapping

EXTERNAL_ENDS = ("host", "mgmt-net", "macvlan")
"""Names for the machine and its networks, in place of a node in the brief form."""
SWITCH = "l2"
"""Type of a node that is a switch."""
ROUTER_IMAGE = re.compile(r"(?:frr|vyos|bird|quagga)\b")
"""Beginning of image names of routers in containers."""
_EXTENDED_LINKS = ("type", "endpoints", "mtu", "vars", "labels", "ipv4", "ipv6")


def is_containerlab(data: Any) -> bool:
    """Return whether a document looks like a containerlab topology."""
    return isinstance(data, dict) and "topology" in data and "nodes" in as_mapping(data["topology"])


def read_containerlab(document: Document) -> ForeignTopology:
    """Return nodes and links, and add errors to the document's findings."""
    found = ForeignTopology("containerlab", document)
    topology = as_mapping(document.data["topology"])
    defaults, groups = as_mapping(topology.get("defaults")), as_mapping(topology.get("groups"))
    kinds = as_mapping(topology.get("kinds"))
    nodes = topology["nodes"]
    if not isinstance(nodes, dict):
        found.refuse(("topology", "nodes"), "found no mapping, expected nodes by name")
        return found
    for name, content in nodes.items():
        own = as_mapping(content)
        group = own.get("group", defaults.get("group"))
        around = as_mapping(groups.get(group)) if isinstance(group, str) else {}
        kind = own.get("kind") or around.get("kind") or defaults.get("kind")
        places = (own, around, as_mapping(kinds.get(kind)) if isinstance(kind, str) else {}, defaults)
        image = next((str(place["image"]) for place in places if place.get("image")), "")
        if str(own.get("type") or around.get("type") or "").lower() == SWITCH:
            # The forwarding of such a node differs from that of a router.
            kind = f"{kind} {SWITCH}"
        role = "router" if ROUTER_IMAGE.match(image.rpartition("/")[2]) else ""
        found.add_node(name, kind, ("topology", "nodes", name), role)
        for key in ("startup-config", "exec", "binds"):
            if key in own or key in around:
                found.add_note(f"the nodes' {key} is left out: configure routers in the experiment's arms")
    links = topology.get("links") or []
    if not isinstance(links, list):
        found.refuse(("topology", "links"), "found no list, expected links")
        return found
    for number, link in enumerate(links):
        _link(found, link, ("topology", "links", number))
    return found


def _link(found: ForeignTopology, link: Any, steps: Steps) -> None:
    if not isinstance(link, dict):
        found.refuse(steps, "found no mapping, expected a link with endpoints")
        return
    kind = link.get("type", "veth")
    if kind != "veth":
        found.refuse(steps, f"found a link of type {kind!r}, expected veth: other types have no equivalent")
        return
    for key in link.keys() - set(_EXTENDED_LINKS):
        found.refuse((*steps, key), f"found {key!r}, expected one of {', '.join(_EXTENDED_LINKS)}")
    for key in ("mtu", "vars", "labels", "ipv6"):
        if key in link:
            found.add_note(f"the links' {key} is left out")
    ends, addresses = link.get("endpoints"), link.get("ipv4")
    if not isinstance(ends, list) or len(ends) != 2:
        count = len(ends) if isinstance(ends, list) else "no"
        found.refuse(steps, f"found {count} endpoints, expected two")
        return
    own = addresses if isinstance(addresses, list) and len(addresses) == 2 else [None, None]
    made = [_end(found, end, own[at], (*steps, "endpoints", at)) for at, end in enumerate(ends)]
    if made[0] is not None and made[1] is not None:
        found.add_link(ForeignLink((made[0], made[1]), steps))


def _end(found: ForeignTopology, end: Any, address: Any, steps: Steps) -> ForeignEnd | None:
    if isinstance(end, dict):
        name, interface = end.get("node"), end.get("interface", "")
        address = end.get("ipv4", address)
    else:
        name, _, interface = str(end).partition(":")
    if not isinstance(name, str) or not name or not isinstance(interface, str):
        found.refuse(steps, f"found {end!r}, expected NODE:INTERFACE")
        return None
    if name in EXTERNAL_ENDS and name not in found.nodes:
        found.refuse(
            steps, f'found an end at "{name}", expected a node: the host machine cannot be a node of an experiment'
        )
        return None
    return ForeignEnd(name, interface, found.read_address(address, steps))
