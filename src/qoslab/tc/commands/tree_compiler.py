"""Compiler from the typed tree to the engine's configuration of an interface."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network

from qoslab.errors import did_you_mean, format_alternatives
from qoslab.ios.model.ios_names import interface_name
from qoslab.system import program_formats
from qoslab.tc.commands.command_tree import ROOT, Commands, Filter, Match, Qdisc, TcClass, Tree
from qoslab.tc.commands.command_words import RefusedWordError, TcError
from qoslab.tc.commands.qdisc_kind import Leaf

MAX_NODES = 255
"""Maximum number of classes and queues of an interface."""
PORT_PROTOCOLS = (6, 17)
DEFAULT_QUEUE: program_formats.QueueDisciplinePfifo = {"kind": "pfifo", "limit": 1000}
"""The queue of a class without a qdisc, as long as Linux's transmit queue."""


@dataclass(frozen=True, slots=True)
class CompiledTrees:
    """The engine's configuration of the interfaces in the commands."""

    queueing: Mapping[str, program_formats.InterfaceQueueingTree]
    """Trees by the interface's full name."""
    access_lists: Mapping[str, list[program_formats.AccessListEntry]]
    """Access lists compiled from the filters."""


def compile_commands(
    commands: Commands, interfaces: Collection[str], *, source: str = "configuration"
) -> CompiledTrees:
    """Return the engine's configuration; `interfaces` are those of the router. `TcError` for the first mistake."""
    queueing: dict[str, program_formats.InterfaceQueueingTree] = {}
    lists: dict[str, list[program_formats.AccessListEntry]] = {}
    for name, tree in commands.items():
        try:
            full = _compile_interface(name, tree, interfaces)
            made = _TreeBuilder(tree, full)
            queueing[full] = made.build_queueing()
            lists |= made.access_lists
        except RefusedWordError as refusal:
            raise TcError(source, refusal.word, refusal.found, refusal.hint) from None
    return CompiledTrees(queueing, lists)


def _compile_interface(name: str, tree: Tree, interfaces: Collection[str]) -> str:
    full = name if name in interfaces else interface_name(name)
    if full is None or full not in interfaces:
        message = f'found dev "{name}", expected an interface of the router: {format_alternatives(interfaces)}'
        raise RefusedWordError(tree.place, message, did_you_mean(name, interfaces))
    return full


@dataclass(slots=True)
class _TreeBuilder:
    tree: Tree
    interface: str
    nodes: list[program_formats.TreeNode] = field(default_factory=list)
    access_lists: dict[str, list[program_formats.AccessListEntry]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Parents and classes that have been added to the tree."""

    def build_queueing(self) -> program_formats.InterfaceQueueingTree:
        tree = self.tree
        root = tree.qdiscs.get(ROOT)
        if root is None:
            message = f'found commands for "{tree.place.text}" without a qdisc at its root, expected'
            raise RefusedWordError(tree.place, f"{message} tc qdisc add dev {tree.place.text} root …")
        self._add_qdisc(root, None)
        self._refuse_unused()
        if len(self.nodes) > MAX_NODES:
            raise RefusedWordError(
                tree.place, f"found {len(self.nodes)} classes and queues, expected at most {MAX_NODES}"
            )
        rules = [rule for each in self._compile_filters() for rule in self._filter_rules(each)]
        return {"type": "tree", "nodes": self.nodes, "rules": rules, "default": self._default_queue(root)}

    def _add_qdisc(self, qdisc: Qdisc, parent: str | None, own: program_formats.TreeNode | None = None) -> None:
        """Add a qdisc below a node; `own` is its class, and the qdisc becomes the queue of that class if possible."""
        self.used.add(qdisc.parent)
        name = qdisc.handle or f"{qdisc.kind.name} at {qdisc.parent}"
        if qdisc.kind.classes is not None:
            self._add_classes(qdisc, parent, own)
            return
        below = self._single_child(qdisc)
        if qdisc.kind.shape is not None and below is not None:
            if own is not None:
                parent = self._add(own)
            self._add(_tree_node(name, parent, qdisc.kind.shape(qdisc.settings)))
            self._add_qdisc(below, name)
            return
        leaf = qdisc.kind.leaf(qdisc.settings) if qdisc.kind.leaf is not None else Leaf(DEFAULT_QUEUE)
        if own is not None and leaf.shape is None:
            self._add(own | {"queue": leaf.queue})
            return
        if own is not None:
            parent = self._add(own)
        self._add(_tree_node(name, parent, leaf.shape) | {"queue": leaf.queue})

    def _single_child(self, qdisc: Qdisc) -> Qdisc | None:
        """Return the qdisc below a qdisc with a single child; None without one."""
        if qdisc.handle is None:
            return None
        # Linux calls the only class of such a qdisc MAJOR:1.
        found = (self.tree.qdiscs.get(qdisc.handle + minor) for minor in ("", "1"))
        return next(filter(None, found), None)

    def _add_classes(self, qdisc: Qdisc, parent: str | None, own: program_formats.TreeNode | None) -> None:
        if own is not None:
            parent = self._add(own)
        outermost = [each for each in self.tree.classes.values() if each.parent == qdisc.handle]
        if qdisc.handle is None or not outermost:
            known = f"tc class add dev {self.tree.place.text} parent {qdisc.handle or '1:'} classid …"
            raise RefusedWordError(
                qdisc.place, f"found {qdisc.kind.name} without classes, expected handle MAJOR: and {known}"
            )
        for each in outermost:
            self._add_class(each, parent)

    def _add_class(self, each: TcClass, parent: str | None) -> None:
        classes = each.kind.classes
        if classes is None or classes.class_share is None:
            raise AssertionError(f"{each.kind.name} has classes without a share")
        share = classes.class_share(each.settings)
        node = _tree_node(each.classid, parent, share.shape)
        node |= {"minimum_bps": share.minimum_bps, "weight": share.weight}
        children = [other for other in self.tree.classes.values() if other.parent == each.classid]
        qdisc = self.tree.qdiscs.get(each.classid)
        if children and qdisc is not None:
            message = f"found a qdisc at class {each.classid}, which has classes below it, expected it at one of those"
            raise RefusedWordError(qdisc.place, message)
        if children:
            self._add(node)
            for child in children:
                self._add_class(child, each.classid)
        elif qdisc is not None:
            self._add_qdisc(qdisc, parent, node)
        else:
            self._add(node | {"queue": DEFAULT_QUEUE})
        self.used.add(each.classid)

    def _add(self, node: program_formats.TreeNode) -> str:
        self.nodes.append(node)
        return node["name"]

    def _refuse_unused(self) -> None:
        """Refuse qdiscs and classes whose parent does not exist."""
        known = [*self.tree.classes, *(each.handle for each in self.tree.qdiscs.values() if each.handle)]
        for parent, qdisc in self.tree.qdiscs.items():
            if parent not in self.used:
                message = f"found a qdisc at parent {parent}, expected the root, or an existing class or qdisc"
                raise RefusedWordError(
                    qdisc.place, f"{message}: {format_alternatives(known)}", did_you_mean(parent, known)
                )
        for classid, each in self.tree.classes.items():
            if classid not in self.used:
                message = f"found class {classid} below {each.parent}, expected a qdisc with classes, or such a class"
                raise RefusedWordError(each.place, message, did_you_mean(each.parent, known))

    def _queue(self, name: str) -> int | None:
        """Return the number of a class's queue; None if it has none."""
        numbers = {node["name"]: number for number, node in enumerate(self.nodes)}
        number = numbers.get(name)
        while number is not None and self.nodes[number].get("queue") is None:
            below = [other for other, node in enumerate(self.nodes) if node.get("parent") == self.nodes[number]["name"]]
            number = below[0] if len(below) == 1 and name not in self._parent_classes() else None
        return number

    def _parent_classes(self) -> set[str]:
        """Return the classes that have classes below them."""
        return {each.parent for each in self.tree.classes.values()}

    def _default_queue(self, root: Qdisc) -> int:
        """Return the queue of packets that no filter matches."""
        qdisc: Qdisc | None = root
        while qdisc is not None and qdisc.kind.classes is None:
            qdisc = self._single_child(qdisc) if qdisc.kind.shape is not None else None
        if qdisc is None:
            return len(self.nodes) - 1
        minor = qdisc.settings.default
        known = [each for each in self.tree.classes if each not in self._parent_classes()]
        if minor is None:
            message = f"found {qdisc.kind.name} without default, expected default MINOR, the class of unmatched packets"
            raise RefusedWordError(qdisc.place, f"{message}: {format_alternatives(known)}")
        wanted = f"{(qdisc.handle or '')[:-1]}:{minor:x}"
        number = self._queue(wanted)
        if number is None:
            message = (
                f"found default {minor:x}, expected the minor number of a class with a queue: "
                f"{format_alternatives(known)}"
            )
            raise RefusedWordError(qdisc.place, message, did_you_mean(wanted, known))
        return number

    def _compile_filters(self) -> Iterator[Filter]:
        yield from sorted(self.tree.filters, key=lambda each: each.priority)

    def _filter_rules(self, each: Filter) -> Iterator[program_formats.QueueRule]:
        number = self._queue(each.target.text)
        if number is None:
            known = [name for name in self.tree.classes if name not in self._parent_classes()]
            message = f'found flowid "{each.target.text}", expected a class with a queue: {format_alternatives(known)}'
            raise RefusedWordError(each.target, message, did_you_mean(each.target.text, known))
        if each.match == Match():
            yield {"queue": number}
            return
        for family in (4, 6):
            entries = list(_access_list_entries(each.match, family))
            if entries:
                name = f"tc {self.interface} {len(self.access_lists) + 1}"
                self.access_lists[name] = entries
                yield {"queue": number, "access_list": name}


def _tree_node(name: str, parent: str | None, shape: program_formats.TreeShape | None) -> program_formats.TreeNode:
    return {"name": name, "parent": parent, "shape": shape}


def _access_list_entries(match: Match, family: int) -> Iterator[program_formats.AccessListEntry]:
    """Yield the access list entries for packets of one version of IP that meet the criteria."""
    networks = (match.source, match.destination)
    if match.family not in (None, family) or any(each is not None and each.version != family for each in networks):
        return
    ports = (match.source_port, match.destination_port)
    any_port = ports == (None, None)
    protocols = (match.protocol,) if any_port or match.protocol is not None else PORT_PROTOCOLS
    for protocol in protocols:
        entry: program_formats.AccessListEntry = {
            "action": "permit",
            "source": _engine_address(match.source, family),
            "destination": _engine_address(match.destination, family),
        }
        if protocol is not None:
            entry["protocol"] = protocol
        if match.source_port is not None:
            entry["source_port"] = {"op": "eq", "ports": [match.source_port]}
        if match.destination_port is not None:
            entry["destination_port"] = {"op": "eq", "ports": [match.destination_port]}
        if match.dscp is not None:
            entry["dscp"] = match.dscp
        yield entry


def _engine_address(network: IPv4Network | IPv6Network | None, family: int) -> program_formats.AddressMatch:
    wanted = network or (IPv4Network("0.0.0.0/0") if family == 4 else IPv6Network("::/0"))
    return {"address": str(wanted.network_address), "wildcard": str(wanted.hostmask)}
