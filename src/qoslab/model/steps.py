"""Steps of a run: what is done to which nodes, how long it takes, and under which key it is recorded."""

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
    """One thing that is done."""

    key: str
    """The step of `cell.json` that it is part of; those of one key follow each other."""
    kind: StepKind
    nodes: tuple[str, ...]
    """The nodes that it concerns."""
    detail: str
    """Description of the details of the step."""
    seconds: float | None
    """Estimate; None if unknown."""
    after_s: float | None = None
    """Started so long after the cell's traffic, while that goes on: takes no time of its own."""
    moment: str | None = None
    """Time of an observation."""
