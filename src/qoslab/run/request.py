"""Request for a run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from qoslab.lab_kinds import kind_at
from qoslab.plan import Plan

if TYPE_CHECKING:
    # Slow to load, and of a run that is only estimated nobody needs it.
    from qoslab.model.comparison import PublishedFigure
    from qoslab.results import Cell, RunFolder, RunOptions
    from qoslab.run.background_analysis import Begin


@dataclass(frozen=True)
class Request:
    """Request for a run."""

    file: Path
    """The experiment file."""
    plan: Plan
    published: tuple[PublishedFigure, ...]
    overrides: tuple[str, ...]
    """Overrides as typed, for the manifest."""
    runs: Path
    """The folder of run folders."""
    options: RunOptions
    """Options that a resumed run repeats; saved in `run.json`."""
    jobs: int | None = 1
    """Cells that have traffic at the same time; None: as many as the machine has time for."""
    begin: Begin | None = None
    """Begun when the first traffic starts, and called with each valid cell while others run; where cells must be
    punctual in a thread of least priority. It has ended before `carry_out` gives the folder."""
    resume: RunFolder | None = None
    """Run what this run lacks, into its folder."""
    enough: Callable[[Sequence[Cell]], str] | None = None
    """Asked before each cell with the valid repetitions of it: why it is not needed, or nothing if it is."""
    attempts: int = 1
    """Number of attempts for a cell that a busy machine or a failed lab made invalid, or that was lost with its worker.
    """
    broken_off: Callable[[RunFolder], None] = lambda folder: None
    """Called where the user ends the run early and there are results: shows them."""
    scheduler: str | None = None
    """Address of the Dask scheduler whose workers run the cells; `local`: processes of this machine; None: this one."""
    place: str = ""
    """Place of the lab, for kinds that are `placed`."""
    watched: Callable[[RunFolder, Callable[[str], None]], None] = lambda folder, note: None
    """Called when the run has begun: serves it to those who watch. `note` takes lines for people."""
    tls: Mapping[str, Path | None] = field(default_factory=dict)
    """The files with which the scheduler is reached; see `qoslab.run.cluster.dask_cluster.Tls`."""


def resuming(options: RunOptions, run: Path) -> str:
    """The command that goes on with a run.

    What reaches devices is typed again: a run's folder may be another's, an inventory is a program, and an experiment
    with hardware may do everything that the login may.
    """
    words = ["qoslab", "run"]
    if kind_at(options.lab).placed:
        sets = (word for each in options.sets for word in ("--set", each))
        words += [options.file, "--lab", options.lab, *sets]
    return shlex.join([*words, "--resume", str(run)])
