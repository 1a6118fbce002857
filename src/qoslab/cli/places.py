"""Folders of experiments and runs, relative to the working directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qoslab.errors import ExperimentError, UserError, did_you_mean, format_found
from qoslab.model.labs import DEFAULT_LAB
from qoslab.system.shipped import shipped_path

if TYPE_CHECKING:
    from qoslab.schema import Sweep

EXPERIMENTS = Path("experiments")
"""Folder of experiment files."""
RUNS = Path("runs")
"""Folder of run folders."""


def find_experiment_file(given: str) -> Path:
    """Return the file of an argument: a path, or the name of a file in `experiments/` or of a shipped experiment."""
    path = Path(given)
    try:
        there = path.exists()
    except OSError as error:
        raise UserError(
            f"{format_found(given)}: {error.strerror}", hint="expected the path or name of an experiment"
        ) from error
    if not there and path.name == given:
        for folder in (EXPERIMENTS, shipped_path("experiments")):
            named = folder / f"{given}.yml"
            if named.exists():
                return named
    return path


def open_sweep(given: str, sets: Sequence[str], lab: str = DEFAULT_LAB) -> tuple[Path, Sweep]:
    """Read and check an experiment, with `--set` options.

    Raise `ExperimentError` if it is invalid, or if a lab of this kind cannot run it.
    """
    from qoslab.lab_kinds import find_kind
    from qoslab.schema import load_sweep, parse_set  # commands that only read runs need none of the checks

    file, values = find_experiment_file(given), dict(map(parse_set, sets))
    if not file.exists() and file.name == given:
        folders = (EXPERIMENTS, shipped_path("experiments"))
        known = [each.stem for folder in folders if folder.is_dir() for each in sorted(folder.glob("*.yml"))]
        raise ExperimentError(f"{file}: no such file or experiment", hint=did_you_mean(given, known))
    return file, load_sweep(file, values, find_kind(lab).check)
