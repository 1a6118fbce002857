"""Kinds of labs (`--lab`): one module each, found by name in the registry below. Pure.

A kind brings its words, what it cannot run, the steps of its cells and how their output is read; what runs them is the
module of the same name in `qoslab.run.labs`. Nobody else compares the names of kinds.
"""

from __future__ import annotations

from qoslab.labs.base import LabKind, report_step
from qoslab.labs.simulated import Simulated
from qoslab.labs.virtual import Virtual

LABS: dict[str, LabKind] = {kind.name: kind for kind in (Virtual(), Simulated())}
"""By the word of `--lab`."""


def lab_kind(name: str) -> LabKind:
    """The kind of that name; `KeyError` where there is none."""
    return LABS[name]


__all__ = ["LABS", "LabKind", "lab_kind", "report_step"]
