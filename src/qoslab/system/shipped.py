"""Files that qoslab ships next to its code: playbooks, report templates, experiments, notebooks, schemas.

They are at the top of a working copy. The wheel contains them as package data in the same layout, so that relative
paths between them (an experiment's `../reports/published/…`) are valid in both.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from pathlib import Path

from qoslab.errors import MachineError

_PACKAGE = Path(str(files("qoslab"))).resolve()

JOB = _PACKAGE / "pyats_job" / "qoslab_job.py"
"""File for `pyats run job`."""


@functools.cache
def find_checkout() -> Path | None:
    """Return the working copy of this package; None if it was installed as a wheel."""
    top = _PACKAGE.parents[1]
    return top if (top / "pyproject.toml").is_file() and top / "src/qoslab" == _PACKAGE else None


def shipped_path(name: str) -> Path:
    """Return a folder or file by its path from the top of a working copy, such as `playbooks` or `reports/report.css`.

    Raise `MachineError` if it is missing in the installation.
    """
    top = find_checkout()
    found = packed_path(name) if top is None else top / name
    if not found.exists():
        raise MachineError(f"{found} is missing from the installation of qoslab", hint="Install qoslab again.")
    return found


def packed_path(name: str) -> Path:
    """Return the path of a file or folder in an installed wheel; it may not exist."""
    return _PACKAGE / "data" / name
