"""Result of an import of routers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from qoslab.exchange.routers.ignored import OmittedLines
from qoslab.exchange.routers.load import OfferedLoad
from qoslab.exchange.routers.network import ImportedNetwork


@dataclass
class ImportResult:
    """Result of an import."""

    folder: Path
    experiment: Path
    network: ImportedNetwork
    offered: OfferedLoad
    left: list[OmittedLines]
    notes: list[str] = field(default_factory=list)
