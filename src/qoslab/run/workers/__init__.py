"""Workers of cells: a module for each kind of lab, of the same name as in `qoslab.lab_kinds`, with its `MACHINERY`.

One is imported when it is used: a simulation starts no Ansible, and `qoslab validate` nothing at all.
"""

from __future__ import annotations

from importlib import import_module

from qoslab.lab_kinds import LabKind
from qoslab.run.workers.base import Machinery


def machinery(kind: LabKind) -> Machinery:
    """Return the machinery of such labs."""
    found: Machinery = import_module(f"{__name__}.{kind.name}").MACHINERY
    return found
