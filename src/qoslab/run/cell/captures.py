"""Captures of a cell, from before the first packet until after the last."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from qoslab.capture import TOOLS, CaptureError
from qoslab.capture.filters import filter_program
from qoslab.errors import QoslabError
from qoslab.model.experiment import CapturePoint
from qoslab.results import CaptureRecord
from qoslab.run.protocols import RunningLab
from qoslab.system.programs import describe_exit

START_WAIT_S = 15.0
STOP_WAIT_S = 30.0
POLL_S = 0.02

_TOOL = TOOLS["dumpcap"]


class RunningCapture(Protocol):
    """Capture point of a running cell."""

    point: CapturePoint

    def wait_running(self) -> None:
        """Wait until every further packet is captured."""

    def stop(self, last_packet: float) -> CaptureRecord:
        """Complete the file and return the counts.

        The last packet for the file passed no later than `last_packet` (`time.monotonic`).
        """

    def kill(self) -> None:
        """End the capture; its file may be incomplete."""


def start_capture(lab: RunningLab, point: CapturePoint, file: Path, comment: str) -> RunningCapture:
    """Start a capture: by the router's data plane if it answers requests, otherwise by a program.

    The time stamps of a data plane are its event time, which is independent of the load of the machine; those of a
    program come from the kernel.
    """
    if point.node in lab.data_planes:
        return _DataPlaneCapture(lab, point, file, comment)
    return _ToolCapture(lab, point, file, comment)


def _capture_place(point: CapturePoint) -> str:
    return f'capture "{point.name}" at {point.node} {point.interface}'


class _DataPlaneCapture:
    """Capture by the data plane of the router."""

    def __init__(self, lab: RunningLab, point: CapturePoint, file: Path, comment: str) -> None:
        self.point = point
        self._lab = lab
        # The data plane runs in a different file system view.
        self._file = file.resolve()
        self._comment = comment
        self._ended = False
        try:
            asyncio.run(self._begin())
        except QoslabError as error:
            raise CaptureError(f"{_capture_place(point)}: {error}") from error

    async def _begin(self) -> None:
        point = self.point
        program = filter_program(point.filter)
        async with self._lab.control(point.node) as plane:
            await plane.capture(
                point.interface, self._file, snaplen=point.snaplen.bytes, filter=program, comment=self._comment
            )

    async def _end(self) -> CaptureRecord:
        self._ended = True
        async with self._lab.control(self.point.node) as plane:
            counts = await plane.end_capture(self._file)
        return CaptureRecord(received=counts.received, dropped=counts.dropped)

    def wait_running(self) -> None:
        """See `RunningCapture`: the capture runs from the data plane's answer on."""

    def stop(self, last_packet: float) -> CaptureRecord:
        """See `RunningCapture`."""
        try:
            return asyncio.run(self._end())
        except QoslabError as error:
            raise CaptureError(f"{_capture_place(self.point)}: {error}") from error

    def kill(self) -> None:
        """See `RunningCapture`."""
        if self._ended:
            return
        # The data plane may have ended.
        with suppress(QoslabError):
            asyncio.run(self._end())


class _ToolCapture:
    """Capture by a program at the interface."""

    def __init__(self, lab: RunningLab, point: CapturePoint, file: Path, comment: str) -> None:
        self.point = point
        self.file = file
        self._stderr = file.with_suffix(".stderr")
        tap = lab.capture_point(point.node, point.interface)
        self._host = tap.host
        written = tap.host.scratch_path(file)
        argv = _TOOL.command(tap.interface, written, filter=point.filter, snaplen=point.snaplen.bytes, comment=comment)
        self._process = tap.host.start(argv, stdout=None, stderr=self._stderr)

    def _log(self) -> str:
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    def wait_running(self) -> None:
        """See `RunningCapture`."""
        deadline = time.monotonic() + START_WAIT_S
        while not _TOOL.is_running(self._log()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise CaptureError(f"{_capture_place(self.point)}: {_TOOL.failure(self._log()) or 'did not start'}")
            time.sleep(POLL_S)

    def stop(self, last_packet: float) -> CaptureRecord:
        """See `RunningCapture`."""
        time.sleep(max(0.0, last_packet + _TOOL.settles_s - time.monotonic()))
        self._process.signal(signal.SIGINT)
        try:
            status = self._process.wait(STOP_WAIT_S)
        except TimeoutError:
            self.kill()
            raise CaptureError(f'capture "{self.point.name}": did not end within {STOP_WAIT_S:.0f} s') from None
        self._host.fetch(self.file)
        if status:
            # For example, a full disk; the counts do not cover packets missing from the file.
            why = _TOOL.failure(self._log()) or f"dumpcap {describe_exit(status)}"
            raise CaptureError(f"{_capture_place(self.point)}: {why}")
        counts = _TOOL.counts(self._log())
        self._stderr.unlink()
        return CaptureRecord(received=counts.received, dropped=counts.dropped)

    def kill(self) -> None:
        """See `RunningCapture`."""
        self._process.end()
