"""The run folder, its files and its records. internals/architecture.md describes the layout.

Names are imported on first use: processes that access devices need only the redaction of secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoslab.system.first_use import lazy_imports

if TYPE_CHECKING:
    from qoslab.results.cell import Cell as Cell
    from qoslab.results.cell_files import CellFiles as CellFiles
    from qoslab.results.folder import RunFolder as RunFolder
    from qoslab.results.folder import find_run as find_run
    from qoslab.results.folder import find_run_to_resume as find_run_to_resume
    from qoslab.results.folder import runs as runs
    from qoslab.results.records import Attempt as Attempt
    from qoslab.results.records import CaptureRecord as CaptureRecord
    from qoslab.results.records import CellRecord as CellRecord
    from qoslab.results.records import CellSummary as CellSummary
    from qoslab.results.records import ClockRecord as ClockRecord
    from qoslab.results.records import FlowRecord as FlowRecord
    from qoslab.results.records import Health as Health
    from qoslab.results.records import HostClockRecord as HostClockRecord
    from qoslab.results.records import Lateness as Lateness
    from qoslab.results.records import Manifest as Manifest
    from qoslab.results.records import ObservedCommand as ObservedCommand
    from qoslab.results.records import PollingRecord as PollingRecord
    from qoslab.results.records import RunOptions as RunOptions
    from qoslab.results.records import SenderRecord as SenderRecord
    from qoslab.results.records import Session as Session
    from qoslab.results.records import StallRecord as StallRecord
    from qoslab.results.records import Step as Step
    from qoslab.results.sealed_files import FORMAT as FORMAT
    from qoslab.results.sealed_files import FileSeal as FileSeal

_MODULES = {
    "FORMAT": "sealed_files",
    "Attempt": "records",
    "CaptureRecord": "records",
    "Cell": "cell",
    "CellFiles": "cell_files",
    "CellRecord": "records",
    "CellSummary": "records",
    "ClockRecord": "records",
    "FileSeal": "sealed_files",
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
    "find_run_to_resume": "folder",
    "runs": "folder",
}
"""Module of each name."""
__getattr__ = lazy_imports(__name__, _MODULES)
