"""Files that qoslab ships next to its code: playbooks, report templates, experiments, notebooks, schemas.

They lie at the top of a working copy; the wheel takes them in as package data, in the same layout, so that paths
between them (an experiment's `../reports/published/…`) hold in both.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from qoslab.errors import MachineError

_PACKAGE = Path(str(files("qoslab"))).resolve()

JOB = _PACKAGE / "pyats_job" / "qoslab_job.py"
"""File for `pyats run job`."""


def checkout() -> Path | None:
    """The working copy that this package runs from; None if it was installed as a wheel."""
    top = _PACKAGE.parents[1]
    return top if (top / "pyproject.toml").is_file() and top / "src/qoslab" == _PACKAGE else None


def shipped(name: str) -> Path:
    """A folder or file by its path from the top of a working copy, such as `playbooks` or `reports/report.css`.

    `MachineError` if the installation lacks it.
    """
    top = checkout()
    found = packed(name) if top is None else top / name
    if not found.exists():
        raise MachineError(f"{found} is missing, which qoslab ships", hint="Install qoslab again.")
    return found


def packed(name: str) -> Path:
    """The place of a file or folder in an installed wheel; there need not be one."""
    return _PACKAGE / "data" / name
