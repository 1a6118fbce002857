"""The run folder: where everything of a run is, and the records in it. Its layout is in docs/architecture.md."""

from qoslab.results.folder import Cell, RunFolder, find_run, find_unfinished, runs
from qoslab.results.records import (
    FORMAT,
    Attempt,
    CaptureRecord,
    CellRecord,
    CellSummary,
    FlowRecord,
    Health,
    Lateness,
    Manifest,
    ObservedCommand,
    Session,
    Step,
)

__all__ = [
    "FORMAT",
    "Attempt",
    "CaptureRecord",
    "Cell",
    "CellRecord",
    "CellSummary",
    "FlowRecord",
    "Health",
    "Lateness",
    "Manifest",
    "ObservedCommand",
    "RunFolder",
    "Session",
    "Step",
    "find_run",
    "find_unfinished",
    "runs",
]
