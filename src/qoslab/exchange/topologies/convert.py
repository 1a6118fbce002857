"""Conversion of a topology of another tool to a checked qoslab topology file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import islice
from pathlib import Path

from qoslab.errors import ExperimentError, UserError
from qoslab.exchange.shortest_paths import NodeInterface, shortest_routes
from qoslab.exchange.topologies.common_form import ForeignLink, ForeignTopology
from qoslab.exchange.topologies.containerlab import is_containerlab, read_containerlab
from qoslab.exchange.topologies.netlab import is_netlab, read_netlab
from qoslab.model.experiment import Node
from qoslab.model.units import Rate
from qoslab.platforms import MODELS, OTHER_MODEL, PLATFORMS
from qoslab.results.file_access import draft_path
from qoslab.schema.document import read_document
from qoslab.schema.topology import load_topology

REFUSED_KIND_SUBSTITUTE = "engine"
"""Substitute for a refused kind, so that the rest is also checked."""
KINDS = {
    **dict.fromkeys(("linux",), "host"),
    # Routers with an IOS command line; other systems of the vendor have different ones.
    **dict.fromkeys((kind for model in MODELS.values() for kind in model.node_kinds), "ios"),
    # Linux machines that forward.
    **dict.fromkeys(("frr", "linux router", "vyosnetworks_vyos", "vyos"), "engine"),
}
"""Platforms for nodes of containerlab (by kind) and of netlab (by device)."""
POOLS = tuple(IPv4Network(each) for each in ("10.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16"))
"""Address pools for links without addresses, a /24 each; the file's own addresses may occupy one of them."""
_ETHERNET = re.compile(r"(Fast|Gigabit|TenGigabit)?Ethernet")


@dataclass(frozen=True)
class ConversionOptions:
    """Options for parts missing in the other file."""

    model: str | None = None
    """Model of all routers with an IOS command line; by default the nearest to the kind of each."""
    rate: Rate = field(default_factory=lambda: Rate.parse("100 Mb/s"))
    """Rate of links that have none in the file."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Platforms of kinds, with priority over `KINDS`."""


@dataclass(frozen=True)
class _ConvertedEnd:
    node: str
    interface: str
    was: str
    address: IPv4Interface


@dataclass(frozen=True)
class _ConvertedLink:
    ends: tuple[_ConvertedEnd, _ConvertedEnd]
    rate: Rate


def import_topology(source: Path, to: Path, wishes: ConversionOptions) -> list[str]:
    """Convert a containerlab or netlab topology to a qoslab topology file, and return notes on omissions.

    Raise `ExperimentError`, which lists everything without a counterpart with its location, and `UserError` if `to`
    exists.
    """
    document = read_document(source)
    if is_containerlab(document.data):
        found = read_containerlab(document)
    elif is_netlab(document.data):
        found = read_netlab(document)
    else:
        raise UserError(
            f"{source}: found neither topology.nodes (containerlab) nor nodes (netlab), expected one of them",
            hint="qoslab's own topology files need no import",
        )
    platforms = _platforms_by_node(found, wishes)
    models = _models_by_node(found, platforms, wishes)
    _check_ports(found, models)
    if document.findings:
        raise ExperimentError(findings=document.findings)
    links = list(_named_links(found, platforms, models, wishes))
    if document.findings:
        raise ExperimentError(findings=document.findings)
    text = _topology_text(found, source, platforms, models, links)
    _write(to, text)
    return found.notes


def _platforms_by_node(found: ForeignTopology, wishes: ConversionOptions) -> dict[str, str]:
    """Return the platforms by node; refuse a kind without a counterpart."""
    platforms = {}
    for name, node in found.nodes.items():
        known = (kinds.get(kind) for kind in (f"{node.kind} {node.role}", node.kind) for kinds in (wishes.kinds, KINDS))
        word = next(filter(None, known), None)
        if word is None:
            found.refuse(
                node.steps,
                f'found the kind "{node.kind}", expected one of {", ".join(KINDS)}',
                f'--as "{node.kind}=engine" (or host, ios) maps it to a qoslab kind',
            )
            word = REFUSED_KIND_SUBSTITUTE
        platforms[name] = word
    return platforms


def _models_by_node(found: ForeignTopology, platforms: Mapping[str, str], wishes: ConversionOptions) -> dict[str, str]:
    """Return the models of routers with an IOS command line by node, with a note for each substitute."""
    models = {}
    for name, node in found.nodes.items():
        if not PLATFORMS[platforms[name]].access.command_line:
            continue
        models[name] = model = wishes.model or _find_model(node.kind)
        hardware = MODELS[model]
        release = ""
        if hardware.default_generation is not None:
            software = hardware.software(hardware.default_generation)
            release = f" with {'IOS' if software.train_name is None else 'IOS-XE'} {software.version}"
        found.add_note(
            f"nodes of kind {node.kind} are modelled as {model}{release}; "
            "other models and releases may queue differently (--model)"
        )
    return models


def _find_model(kind: str) -> str:
    return next((name for name, model in MODELS.items() if kind in model.node_kinds), OTHER_MODEL)


def _check_ports(found: ForeignTopology, models: Mapping[str, str]) -> None:
    """Refuse routers with more links than their model has ports."""
    for name, node in found.nodes.items():
        count = sum(end.node == name for link in found.links for end in link.ends)
        if not count:
            found.refuse(node.steps, "found no link, expected at least one")
        elif name in models and count > (most := len(_model_ports(models[name]))):
            found.refuse(
                node.steps,
                f"found {count} links, expected at most {most}, the number of Ethernet ports of a {models[name]}",
                f'--as "{node.kind}=engine" uses a router with any number of ports; --model selects another model',
            )


def _model_ports(model: str) -> list[str]:
    return [each.name for each in MODELS[model].interfaces if _ETHERNET.match(each.name)]


def _named_links(
    found: ForeignTopology, platforms: Mapping[str, str], models: Mapping[str, str], wishes: ConversionOptions
) -> Iterator[_ConvertedLink]:
    """Yield the links with qoslab's interface names and addresses, in order."""
    taken: dict[str, int] = {}
    given = [each.network for link in found.links for end in link.ends if (each := end.address) is not None]
    given += [link.prefix for link in found.links if link.prefix is not None]
    free = (
        (each, pool)
        for pool in POOLS
        for each in pool.subnets(new_prefix=24)
        if not any(each.overlaps(other) for other in given)
    )
    for link in found.links:
        if link.rate is None:
            found.add_note(f"links without a rate get {wishes.rate}")
        addresses = _link_addresses(found, link, free)
        if addresses is None:
            continue
        ends = []
        for end, address in zip(link.ends, addresses, strict=True):
            number = taken.get(end.node, 0)
            taken[end.node] = number + 1
            interface = _interface_name(platforms[end.node], models.get(end.node), number)
            ends.append(_ConvertedEnd(end.node, interface, end.interface, address))
        yield _ConvertedLink((ends[0], ends[1]), link.rate or wishes.rate)


def _interface_name(word: str, model: str | None, number: int) -> str:
    """Return the name of a node's interface number `number`, from 0."""
    if model is not None:
        return _model_ports(model)[number]
    name = f"eth{number}"
    taken = PLATFORMS[word].interface_problem(Node.model_validate({"platform": word}), name, "ethernet") is None
    return name if taken else f"GigabitEthernet0/{number}"


def _link_addresses(
    found: ForeignTopology, link: ForeignLink, free: Iterator[tuple[IPv4Network, IPv4Network]]
) -> tuple[IPv4Interface, IPv4Interface] | None:
    """Return addresses from the file, from its prefix, or from a pool; refuse the link and return None if none
    is left.
    """
    first, second = (end.address for end in link.ends)
    if first is not None and second is not None:
        return first, second
    given = first or second
    prefix = link.prefix if given is None else given.network
    if prefix is None:
        prefix, pool = next(free, (None, None))
        if prefix is None:
            pools = ", ".join(map(str, POOLS))
            found.refuse(
                link.steps,
                f"found no address, and no free one in {pools}; expected one for each end",
                "give the link addresses, or use smaller prefixes on other links",
            )
            return None
        found.add_note(f"links without addresses get addresses from {pool}")
    others = [each for each in islice(_host_addresses(prefix), 3) if each != given]
    if first is not None:
        others.insert(0, first)
    elif second is not None:
        others.insert(1, second)
    if len(others) < 2:
        found.refuse(
            link.steps,
            f"found {given} at one end and no address at the other, expected a prefix with room for both",
            "give both ends an address of one prefix, such as 10.0.0.1/30 and 10.0.0.2/30",
        )
        return None
    return others[0], others[1]


def _host_addresses(prefix: IPv4Network) -> Iterator[IPv4Interface]:
    return (IPv4Interface(f"{address}/{prefix.prefixlen}") for address in prefix.hosts())


def _router_routes(
    links: list[_ConvertedLink], platforms: Mapping[str, str]
) -> dict[str, dict[IPv4Network, IPv4Address]]:
    """Return the routes of the routers."""
    near: dict[str, list[NodeInterface[IPv4Address, IPv4Network]]] = {name: [] for name in platforms}
    for link in links:
        for end, other in (link.ends, link.ends[::-1]):
            near[end.node].append(NodeInterface(other.node, other.address.ip, end.address.network))
    return shortest_routes((name for name, word in platforms.items() if PLATFORMS[word].is_router), near)


def _topology_text(
    found: ForeignTopology,
    source: Path,
    platforms: Mapping[str, str],
    models: Mapping[str, str],
    links: list[_ConvertedLink],
) -> str:
    routes = _router_routes(links, platforms)
    if any(routes.values()):
        found.add_note("routers have static routes along shortest paths")
    lines = [f"# From {source.name}, a topology of {found.tool}.", "nodes:"]
    for name, word in platforms.items():
        model = f', model: "{models[name]}"' if name in models else ""
        own = f"platform: {word}{model}"
        if routes.get(name):
            lines.append(f"  {_quote_word(name)}:")
            lines += [f"    {part}" for part in own.split(", ")] + ["    routes:"]
            lines += [f"      - {{prefix: {network}, via: {via}}}" for network, via in routes[name].items()]
        else:
            lines.append(f"  {_quote_word(name)}: {{{own}}}")
    lines.append("links:")
    for number, link in enumerate(links, 1):
        lines += [f"  - name: link{number}", f"    rate: {link.rate}", "    ends:"]
        for end in link.ends:
            was = f"  # {_comment_lines(end.was)}" if end.was and end.was != end.interface else ""
            lines.append(
                f"      - {{node: {_quote_word(end.node)}, interface: {end.interface}, address: {end.address}}}{was}"
            )
    return "\n".join(lines) + "\n"


def _quote_word(name: str) -> str:
    """Quote a word if YAML would interpret it differently (`no`, `1`)."""
    return f'"{name}"'


def _comment_lines(text: str) -> str:
    return "".join(each for each in text if each.isprintable())[:40]


def _write(to: Path, text: str) -> None:
    """Write the file after it was checked, and only if it does not exist."""
    if to.exists() or to.is_symlink():
        raise UserError(f"{to}: found an existing file, expected none", hint="give another name with --to")
    with draft_path(to) as draft:
        draft.write_text(text, encoding="utf-8")
        try:
            load_topology(draft)
        except ExperimentError as error:
            # Locations in an internal file would not help the user.
            listed = "\n".join(f"{each.path}: {each.message}" for each in error.findings)
            raise UserError(f"the converted topology is not valid:\n{listed}") from error
