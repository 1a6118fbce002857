"""Result of an import of routers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from qoslab.exchange.routers.ignored import Left
from qoslab.exchange.routers.load import Offered
from qoslab.exchange.routers.network import Network


@dataclass
class Imported:
    """Result of an import."""

    folder: Path
    experiment: Path
    network: Network
    offered: Offered
    left: list[Left]
    notes: list[str] = field(default_factory=list)
