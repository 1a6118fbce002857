"""Kinds of nodes: one module each, found by name in the registry below. Pure.

The rest of the package gets all properties of a node from its platform; no other module compares platform names.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from qoslab.platforms.base import PROGRAMS, TC_COMMANDS
from qoslab.platforms.base import AccessMethod as AccessMethod
from qoslab.platforms.base import InterfaceProblem as InterfaceProblem
from qoslab.platforms.base import Platform as Platform
from qoslab.platforms.engine import EnginePlatform
from qoslab.platforms.hardware_models import DEFAULT_MODEL as DEFAULT_MODEL
from qoslab.platforms.hardware_models import MODELS as MODELS
from qoslab.platforms.hardware_models import OTHER_MODEL as OTHER_MODEL
from qoslab.platforms.host import HostPlatform
from qoslab.platforms.ios import IosPlatform
from qoslab.platforms.ios_model import SOFTWARE as SOFTWARE
from qoslab.platforms.ios_model import RouterModel as RouterModel
from qoslab.platforms.tc import TcPlatform
from qoslab.system.plugins import PluginRegistry, missing_members

if TYPE_CHECKING:
    from qoslab.model.experiment import Node, Topology

PLATFORMS: PluginRegistry[Platform] = PluginRegistry(
    "platforms",
    {"host": HostPlatform(), "ios": IosPlatform(), "engine": EnginePlatform(), "tc": TcPlatform()},
    partial(missing_members, Platform),
)
"""Platforms by their name in experiment files; others come from packages (docs/internals/extending.md)."""


def node_platform(node: Node) -> Platform:
    """Return the node's platform."""
    return PLATFORMS[node.platform]


def is_switch(node: Node) -> bool:
    """Return whether the node is a switch model."""
    return node.model in MODELS and "switching" in MODELS[node.model].features


def router_names(topology: Topology) -> tuple[str, ...]:
    """Return the names of the nodes that forward packets."""
    return tuple(name for name, node in topology.nodes.items() if node_platform(node).is_router)


def has_engine(node: Node) -> bool:
    """Return whether the engine forwards and queues the node's packets in a virtual lab."""
    return node_platform(node).forwarding == "engine"


def has_kernel(node: Node) -> bool:
    """Return whether a kernel forwards and queues the node's packets in a virtual lab."""
    return node_platform(node).forwarding == "kernel"


def kernel_routers(topology: Topology) -> tuple[str, ...]:
    """Return the names of the routers whose packets a kernel forwards in a virtual lab."""
    return tuple(name for name in router_names(topology) if has_kernel(topology.nodes[name]))


def engine_routers(topology: Topology) -> tuple[str, ...]:
    """Return the names of the routers whose packets the engine forwards in a virtual lab."""
    return tuple(name for name in router_names(topology) if has_engine(topology.nodes[name]))


def host_names(topology: Topology) -> tuple[str, ...]:
    """Return the names of the nodes that do not forward packets."""
    return tuple(name for name, node in topology.nodes.items() if not node_platform(node).is_router)


def tc_command_nodes(topology: Topology) -> tuple[str, ...]:
    """Return the names of the nodes that tc(8) commands configure."""
    return tuple(name for name, node in topology.nodes.items() if node_platform(node).access == TC_COMMANDS)


def inventory_group(node: Node) -> str:
    """Return the group of an inventory for nodes like this one."""
    platform = node_platform(node)
    return platform.access.group or platform.ansible_role(node) or PROGRAMS.group


def command_line_nodes(topology: Topology) -> tuple[str, ...]:
    """Return the names of the nodes with an IOS command line."""
    return tuple(name for name, node in topology.nodes.items() if node_platform(node).access.command_line)
