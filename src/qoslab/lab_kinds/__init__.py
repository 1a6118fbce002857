"""Kinds of labs (`--lab`): one module each, found by name in the registry below. Pure.

A kind has its texts, its unsupported features, the steps of its cells and the readers of their output. The code that
runs its cells is in the module of the same name in `qoslab.run.workers`. No other code compares the names of kinds.
"""

from __future__ import annotations

from pathlib import Path

from qoslab.errors import UserError
from qoslab.lab_kinds.base import LabKind, report_step
from qoslab.lab_kinds.external import ExternalKind
from qoslab.lab_kinds.simulated import SimulatedKind
from qoslab.lab_kinds.virtual import VirtualKind

LABS: dict[str, LabKind] = {kind.name: kind for kind in (VirtualKind(), SimulatedKind(), ExternalKind())}
"""Kinds of labs by name. For a `placed` kind, `--lab` has the place instead of the name."""


def lab_kind(name: str, record: Path | str | None = None) -> LabKind:
    """Return the kind with this name; `record` is its file. Raise `UserError` if there is none."""
    if name not in LABS:
        place = "" if record is None else f"{record}: lab: "
        raise UserError(
            f'{place}found the unknown lab kind "{name}", expected one of {", ".join(LABS)}',
            hint="the record was changed, or written by a newer qoslab",
        )
    return LABS[name]


def find_kind(word: str) -> LabKind:
    """Return the kind for a value of `--lab`: the kind with that name, else the kind with such places."""
    named = LABS.get(word)
    return (
        named if named is not None and not named.has_place else next(kind for kind in LABS.values() if kind.has_place)
    )


__all__ = ["LABS", "LabKind", "find_kind", "lab_kind", "report_step"]
