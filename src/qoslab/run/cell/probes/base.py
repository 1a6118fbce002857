"""Interface of the probers, and shared functions."""

from __future__ import annotations

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qoslab.errors import RunInvalid
from qoslab.model.experiment import Experiment, Probe, probe_number
from qoslab.results import Cell, SenderRecord
from qoslab.run.cell.probes.results import unanswered_error
from qoslab.run.protocols import RunningLab
from qoslab.system import program_formats

Show = Callable[[str, str], str]
"""Function that returns a router's answer to a show command."""
Enter = Callable[[str, list[str]], str]
"""Function that returns a router's answer to configuration lines."""


@dataclass(frozen=True)
class Setting:
    """Cell with its probes."""

    lab: RunningLab
    experiment: Experiment
    cell: Cell
    observe: Show
    enter: Enter
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while a configuration is read, changed and written back, since probes run in parallel."""


class Prober(ABC):
    """Prober of one probe. Its methods are called in one thread, except for `stop`, after that thread has ended."""

    def __init__(self, setting: Setting, probe: Probe) -> None:
        self.setting = setting
        self.probe = probe
        self.warnings: list[str] = []
        """Warnings about its values."""
        self.sender: SenderRecord | None = None
        """Lateness of its packets; None if unknown."""

    @property
    def number(self) -> int:
        """Return the number of the operation."""
        return probe_number(self.setting.experiment, self.probe)

    @property
    def poll_interval_s(self) -> float | None:
        """Return the interval of `look` between start and reading, in seconds; None: never."""
        return None

    def prepare(self) -> None:  # noqa: B027 (most need nothing)
        """Prepare before the traffic. Raise `RunInvalid` if it is already known that the operation cannot run."""

    @property
    def notice_s(self) -> float:
        """Return how long before its start time `start` must be called, in seconds."""
        return 0.0

    @abstractmethod
    def start(self, at_ns: int) -> None:
        """Start the operation at this time of CLOCK_MONOTONIC, which is `notice_s` from now.

        Raise `RunInvalid` or `DeviceError` if it is refused.
        """

    def poll(self) -> None:  # noqa: B027 (most have nothing to examine)
        """Read data that will be lost by the end."""

    @abstractmethod
    def read(self) -> dict[str, Any]:
        """Read the results in the form of `results`; save raw output. Raise `RunInvalid` if no packet was answered."""

    @abstractmethod
    def stop(self) -> None:
        """End the operation if it was started, also if the traffic ended early."""

    def probe_file(self, suffix: str) -> Path:
        """Return the path of a file of this probe."""
        return self.setting.cell.path / "probes" / f"{self.probe.name}.{suffix}"

    def data_plane_report(self) -> program_formats.OperationReport:
        """Return the results of the sending router's data plane, with the stamps of each packet."""

        async def ask() -> program_formats.OperationReport:
            async with self.setting.lab.control(self.probe.source) as client:
                found = await client.ip_sla(self.number, samples=True)
                return found["operations"][str(self.number)]

        return asyncio.run(ask())

    def save_samples(self, report: program_formats.OperationReport) -> None:
        """Save the output of the data plane or program, with the time stamps of each packet."""
        self.setting.cell.write(self.probe_file("samples.json"), json.dumps(report) + "\n")

    def unanswered_error(self, code: str, reason: str = "") -> RunInvalid:
        """Return the error for unanswered packets; `code` is the latest return code, `reason` is added."""
        return unanswered_error(self.probe, code, reason)
