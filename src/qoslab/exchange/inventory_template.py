"""Inventory template of a topology: known values are filled in, the others are marked. No side effects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from qoslab.model.experiment import Link, LinkEnd, Topology
from qoslab.model.inventory import EMULATED_BY, LINE
from qoslab.platforms import inventory_group, node_platform

MARK = "fill in"
"""Mark after each value to fill in."""
PLACEHOLDER_ADDRESS = ".fill-in.invalid"
"""Placeholder for addresses: no name server resolves it (RFC 2606), so that no other machine is contacted."""
HOSTS = "host"
"""Group of nodes for which no role pushes a configuration."""

_HEAD = """\
---
# An inventory for {name}. Nodes have the experiment's names and are cabled according to their interfaces.
# Values of your lab are marked "{mark}"; docs/real-routers.md lists further variables. Then check it:
#   qoslab lab check inventory/mine.yml {name}
# Passwords come from the environment here; a vault, a keyring or a prompt (--ask) are possible too.
all:
"""


@dataclass(frozen=True)
class _Group:
    """A group of nodes with common variables."""

    name: str
    variables: tuple[str, ...]
    child: str | None = None
    """Nested group."""


_GROUPS = (
    _Group(
        "ios",
        (
            "ansible_connection: ansible.netcommon.network_cli",
            "ansible_network_os: cisco.ios.ios",
            "ansible_user: \"{{ lookup('ansible.builtin.env', 'QOSLAB_USER') }}\"",
            "ansible_password: \"{{ lookup('ansible.builtin.env', 'QOSLAB_PASSWORD') }}\"",
            "# only if a login does not start at privilege level 15",
            "ansible_become: true",
            "ansible_become_method: ansible.netcommon.enable",
            "ansible_become_password: \"{{ lookup('ansible.builtin.env', 'QOSLAB_ENABLE') }}\"",
        ),
        child="ios_switch",
    ),
    _Group(
        "engine_router",
        (
            f"ansible_user: qoslab  # {MARK}",
            f"engine_router_program: /usr/local/bin/qos-router  # {MARK}",
            f"engine_router_socket: /run/qoslab/control.sock  # {MARK}",
        ),
    ),
    _Group(
        "linux_router",
        (
            f"ansible_user: qoslab  # {MARK}: a user who can log in with a key",
            "# qdiscs need root",
            "ansible_become: true",
        ),
    ),
    _Group(
        HOSTS,
        (
            f"ansible_user: qoslab  # {MARK}: a user who can log in with a key",
            "ansible_become: true",
            "# namespace, in place or as it is: docs/real-routers.md, Hosts",
            "qoslab_isolate: namespace",
        ),
    ),
)
"""Groups in the order of the inventory."""
_PLAIN = re.compile(r"[A-Za-z][\w./-]*", re.ASCII)
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Plain words that YAML interprets as other values."""


def inventory_text(topology: Topology, name: str) -> str:
    """Return an inventory in YAML with the nodes, interfaces and addresses of a topology; `name` is the name of the
    topology.
    """
    lines = [*_emulated_links(topology), "children:", *_indent(_group_children(topology))]
    return _HEAD.format(name=" ".join(name.split()), mark=MARK) + "\n".join(_indent(lines)) + "\n"


def _emulated_links(topology: Topology) -> Iterator[str]:
    """Yield the links that the lab must delay, or make lossy."""
    links = [link for link in topology.links if link.emulated_keys]
    if links:
        yield "vars:"
        yield f"  {EMULATED_BY}:"
        for link in links:
            wanted = ", ".join(link.emulated_keys)
            yield f"    {_yaml_key(link.name)}: {LINE}  # {MARK}: the source of its {wanted}: `line` or a node"


def _group_children(topology: Topology) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for name, node in topology.nodes.items():
        groups.setdefault(inventory_group(node), []).append(name)
    for group in _GROUPS:
        within = groups.get(group.child, []) if group.child is not None else []
        if not groups.get(group.name) and not within:
            continue
        yield f"{group.name}:"
        yield from _indent(["vars:", *_indent(group.variables)])
        yield from _indent(_host_entries(topology, groups.get(group.name, [])))
        if within:
            yield from _indent(["children:", f"  {group.child}:", *_indent(_indent(_host_entries(topology, within)))])


def _host_entries(topology: Topology, names: list[str]) -> Iterator[str]:
    if names:
        yield "hosts:"
    for name in names:
        node = topology.nodes[name]
        kind = "router" if node_platform(node).is_router else "host"
        yield f"  {_yaml_key(name)}:" + (f"  # {node.model}" if node.model else "")
        yield f"    ansible_host: {_yaml_key(name + PLACEHOLDER_ADDRESS)}  # {MARK}: its management address"
        if kind == "router" and node.model:
            yield f"    # qoslab_model: {MARK} its model in `show version`, if not {node.model}"
        yield f"    qoslab_interfaces:  # name in the experiment: name on the {kind}"
        for link, near, far in topology.node_links(name):
            yield (
                f"      {_yaml_key(near.interface)}: {_yaml_key(near.interface)}  # {MARK}; "
                f"{_interface_description(link, near, far)}"
            )


def _interface_description(link: Link, near: LinkEnd, far: LinkEnd) -> str:
    """Return a description of an interface of the experiment: its addresses, and its peer."""
    addresses = " ".join(map(str, near.addresses)) or "no address"
    return f"{addresses}, {link.name} to {far.node} {far.interface}, {link.rate}"


def _yaml_key(text: str) -> str:
    """Return a text for YAML, quoted if it could be interpreted differently."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text)


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
