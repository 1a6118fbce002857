"""Fidelity of a run's kernels to the given IOS policies."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from qoslab.errors import QoslabError
from qoslab.model.experiment import Experiment
from qoslab.platforms import kernel_routers
from qoslab.report.arms import arm_title
from qoslab.results import CellFiles


@dataclass(frozen=True)
class KernelNote:
    """An action of a policy, and its equivalent in the kernel."""

    degree: str
    place: str
    action: str
    text: str


@dataclass(frozen=True)
class KernelFidelity:
    """Notes about a router that are common to these arms."""

    router: str
    arms: list[str]
    notes: list[KernelNote]


def kernel_fidelity(cells: Iterable[CellFiles], experiment: Experiment) -> list[KernelFidelity]:
    """Return the notes of each router of platform tc with an IOS policy, approximations first."""
    found: dict[tuple[str, tuple[KernelNote, ...]], list[str]] = {}
    routers = kernel_routers(experiment.topology)
    for cell in cells:
        for router in routers:
            notes = _notes(cell, router)
            title = arm_title(experiment, cell.record().arm)
            if notes and title not in found.setdefault((router, notes), []):
                found[router, notes].append(title)
    return [KernelFidelity(router, arms, list(notes)) for (router, notes), arms in found.items()]


def _notes(cell: CellFiles, router: str) -> tuple[KernelNote, ...]:
    try:
        notes = json.loads(cell.kernel_configuration(router) or "{}").get("notes", ())
        made = [
            KernelNote(
                each["degree"],
                ", ".join(filter(None, (f"{each['interface']} {each['direction']}".strip(), " / ".join(each["path"])))),
                each["action"],
                each["text"],
            )
            for each in notes
        ]
    except (QoslabError, ValueError, LookupError, TypeError, AttributeError):
        # Validity names damaged files.
        return ()
    return tuple(sorted(made, key=lambda note: note.degree == "exact"))
