"""Kinds of labs (`--lab`): one module each, found by name in the registry below. Pure.

A kind brings its words, what it cannot run, the steps of its cells and how their output is read; what runs them is the
module of the same name in `qoslab.run.workers`. Nobody else compares the names of kinds.
"""

from __future__ import annotations

from pathlib import Path

from qoslab.errors import UserError
from qoslab.lab_kinds.base import LabKind, report_step
from qoslab.lab_kinds.external import External
from qoslab.lab_kinds.simulated import Simulated
from qoslab.lab_kinds.virtual import Virtual

LABS: dict[str, LabKind] = {kind.name: kind for kind in (Virtual(), Simulated(), External())}
"""Kinds of labs by name. Of a kind that is `placed`, `--lab` has the place in its stead."""


def lab_kind(name: str, record: Path | str | None = None) -> LabKind:
    """The kind of that name, which a record has; `UserError` if there is none."""
    if name not in LABS:
        place = "" if record is None else f"{record}: lab: "
        raise UserError(
            f'{place}found the kind of lab "{name}", expected one of {", ".join(LABS)}',
            hint="a record was changed, or a newer qoslab wrote it",
        )
    return LABS[name]


def kind_at(word: str) -> LabKind:
    """The kind that a `--lab` means: one of that name, else the one that is at that place."""
    named = LABS.get(word)
    return named if named is not None and not named.placed else next(kind for kind in LABS.values() if kind.placed)


__all__ = ["LABS", "LabKind", "kind_at", "lab_kind", "report_step"]
