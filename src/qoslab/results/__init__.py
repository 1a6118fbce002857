"""The run folder: where everything of a run is, and the records in it. Its layout is in internals/architecture.md."""

from qoslab.results.cell import Cell
from qoslab.results.cell_files import CellFiles
from qoslab.results.checksums import FileSeal
from qoslab.results.folder import RunFolder, find_run, find_unfinished, runs
from qoslab.results.records import (
    FORMAT,
    Attempt,
    CaptureRecord,
    CellRecord,
    CellSummary,
    ClockRecord,
    FlowRecord,
    Health,
    HostClockRecord,
    Lateness,
    Manifest,
    ObservedCommand,
    PollingRecord,
    RunOptions,
    SenderRecord,
    Session,
    StallRecord,
    Step,
)

__all__ = [
    "FORMAT",
    "Attempt",
    "CaptureRecord",
    "Cell",
    "CellFiles",
    "CellRecord",
    "CellSummary",
    "ClockRecord",
    "FileSeal",
    "FlowRecord",
    "Health",
    "HostClockRecord",
    "Lateness",
    "Manifest",
    "ObservedCommand",
    "PollingRecord",
    "RunFolder",
    "RunOptions",
    "SenderRecord",
    "Session",
    "StallRecord",
    "Step",
    "find_run",
    "find_unfinished",
    "runs",
]
