"""Steps of a run: the action, its nodes, its duration, and the key of its record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StepKind = Literal[
    "lab up",
    "reach",
    "workers up",
    "restore",
    "apply",
    "verify",
    "wait",
    "prepare",
    "capture on",
    "observe",
    "traffic",
    "probe",
    "capture off",
    "scenario",
    "simulate",
    "results",
    "lab down",
    "leave",
    "report",
]

TRAFFIC = "traffic"
"""The key of the step in which a cell's traffic runs."""
SIMULATION = "simulate"
"""The key of the step in which a cell is computed in virtual time."""


@dataclass(frozen=True)
class Step:
    """One action of a run."""

    key: str
    """Key of its step in `cell.json`; actions with the same key are consecutive."""
    kind: StepKind
    nodes: tuple[str, ...]
    """Nodes of the action."""
    detail: str
    """Description of the details of the step."""
    seconds: float | None
    """Estimate; None if unknown."""
    after_s: float | None = None
    """Time from the start of the cell's traffic to the start of the action in seconds; it runs during the traffic, and
    adds no time. None for other actions.
    """
    moment: str | None = None
    """Time of an observation."""
