"""Workers of cells: for each kind of lab, a module with its name in `qoslab.lab_kinds`, and with its `MACHINERY`.

A module is imported when it is used: a simulation starts no Ansible, and `qoslab validate` nothing at all.
"""

from __future__ import annotations

from importlib import import_module

from qoslab.lab_kinds import LabKind
from qoslab.run.workers.base import LabMachinery


def lab_machinery(kind: LabKind) -> LabMachinery:
    """Return the machinery of such labs."""
    found: LabMachinery = import_module(f"{__name__}.{kind.name}").MACHINERY
    return found
