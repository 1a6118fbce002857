"""Kinds of nodes: one module each, found by name in the registry below. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoslab.platforms.base import Platform, Problem
from qoslab.platforms.host import Host
from qoslab.platforms.ios import MODELS, SOFTWARE, Ios, RouterModel
from qoslab.platforms.linux import Linux

if TYPE_CHECKING:
    from qoslab.model.experiment import Node

PLATFORMS: dict[str, Platform] = {"host": Host(), "ios": Ios(), "linux": Linux()}
"""By the word in experiment files."""


def platform_of(node: Node) -> Platform:
    """The node's platform."""
    return PLATFORMS[node.platform]


__all__ = ["MODELS", "PLATFORMS", "SOFTWARE", "Platform", "Problem", "RouterModel", "platform_of"]
