"""The run folder: where everything of a run is, and the records in it. Its layout is in docs/architecture.md."""

from qoslab.results.folder import Cell, RunFolder, find_run, runs
from qoslab.results.records import (
    FORMAT,
    CaptureRecord,
    CellRecord,
    CellSummary,
    FlowRecord,
    Health,
    Lateness,
    Manifest,
    ObservedCommand,
    Step,
)

__all__ = [
    "FORMAT",
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
    "Step",
    "find_run",
    "runs",
]
