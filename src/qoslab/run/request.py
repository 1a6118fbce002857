"""Request for a run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from qoslab.lab_kinds import find_kind
from qoslab.plan import Plan

if TYPE_CHECKING:
    # Slow to load, and not needed for a mere estimate.
    from qoslab.model.comparison import PublishedValue
    from qoslab.results import Cell, RunFolder, RunOptions
    from qoslab.run.background_analysis import Begin


@dataclass(frozen=True)
class RunRequest:
    """Request for a run."""

    file: Path
    """The experiment file."""
    plan: Plan
    published: tuple[PublishedValue, ...]
    overrides: tuple[str, ...]
    """Overrides as typed, for the manifest."""
    runs: Path
    """The folder of run folders."""
    options: RunOptions
    """Options that a resumed run repeats; saved in `run.json`."""
    jobs: int | None = 1
    """Number of cells with traffic at the same time; None: as many as the machine has time for."""
    begin: Begin | None = None
    """Background analysis, begun when the first traffic starts and called with each valid cell while other cells run.

    If cells must be punctual, it runs in a thread of least priority. It has ended before the run yields the folder.
    """
    resume: RunFolder | None = None
    """Run to resume: only its missing cells are run, into its folder."""
    enough: Callable[[Sequence[Cell]], str] | None = None
    """Stopping rule, called before each cell with the valid repetitions of that cell.

    It returns the reason why the cell is not needed, or an empty text if it is.
    """
    attempts: int = 1
    """Number of attempts at a cell that a busy machine or a failed lab made invalid, or that was lost with its worker.
    """
    report_interrupted: Callable[[RunFolder], None] = lambda folder: None
    """Called if the user ends the run early and there are results, to show them."""
    scheduler: str | None = None
    """Address of the Dask scheduler for the cells; `local`: processes of this machine; None: this process."""
    place: str = ""
    """Place of the lab, for kinds that are `placed`."""
    serve: Callable[[RunFolder, Callable[[str], None]], None] = lambda folder, note: None
    """Called when the run has begun, to serve it to viewers. `note` takes lines for people."""
    tls: Mapping[str, Path | None] = field(default_factory=dict)
    """Certificate files for the connection to the scheduler; see `qoslab.run.cluster.dask_cluster.Tls`."""


def resume_command(options: RunOptions, run: Path) -> str:
    """Return the command that resumes a run.

    Options that give access to devices have to be typed again: the folder of a run may come from another user, an
    inventory is a program, and an experiment on hardware may do everything that the login may.
    """
    words = ["qoslab", "run"]
    if find_kind(options.lab).has_place:
        sets = (word for each in options.sets for word in ("--set", each))
        words += [options.file, "--lab", options.lab, *sets]
    return shlex.join([*words, "--resume", str(run)])
