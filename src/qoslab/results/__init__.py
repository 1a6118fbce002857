"""The run folder, its files and its records. internals/architecture.md describes the layout.

Names are imported on first use: processes that access devices need only the redaction of secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoslab.system.first_use import on_first_use

if TYPE_CHECKING:
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

_MODULES = {
    "FORMAT": "records",
    "Attempt": "records",
    "CaptureRecord": "records",
    "Cell": "cell",
    "CellFiles": "cell_files",
    "CellRecord": "records",
    "CellSummary": "records",
    "ClockRecord": "records",
    "FileSeal": "checksums",
    "FlowRecord": "records",
    "Health": "records",
    "HostClockRecord": "records",
    "Lateness": "records",
    "Manifest": "records",
    "ObservedCommand": "records",
    "PollingRecord": "records",
    "RunFolder": "folder",
    "RunOptions": "records",
    "SenderRecord": "records",
    "Session": "records",
    "StallRecord": "records",
    "Step": "records",
    "find_run": "folder",
    "find_unfinished": "folder",
    "runs": "folder",
}
"""Module of each name."""
__getattr__ = on_first_use(__name__, _MODULES)


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
