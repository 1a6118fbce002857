"""Runs the captures of a cell: on before the first packet, off after the last."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from qoslab.capture import TOOLS, CaptureError
from qoslab.model.experiment import CapturePoint
from qoslab.results import CaptureRecord
from qoslab.run.lab import Lab

START_WAIT_S = 15.0
STOP_WAIT_S = 30.0
POLL_S = 0.02

_TOOL = TOOLS["dumpcap"]


class RunningCapture:
    """One capture point of a cell."""

    def __init__(self, lab: Lab, point: CapturePoint, file: Path, comment: str) -> None:
        self.point = point
        self.file = file
        self._stderr = file.with_suffix(".stderr")
        tap = lab.tap(point.node, point.interface)
        self._host = tap.host
        written = tap.host.scratch(file)
        argv = _TOOL.command(tap.interface, written, filter=point.filter, snaplen=point.snaplen.bytes, comment=comment)
        self._process = tap.host.start(argv, stdout=None, stderr=self._stderr)

    def _said(self) -> str:
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    def wait_running(self) -> None:
        """Return once every packet from now on is captured."""
        deadline = time.monotonic() + START_WAIT_S
        while not _TOOL.is_running(self._said()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise CaptureError(
                    f'capture "{self.point.name}" at {self.point.node} {self.point.interface}: '
                    f"{_TOOL.failure(self._said()) or 'did not start'}"
                )
            time.sleep(POLL_S)

    def stop(self) -> CaptureRecord:
        """Write the rest of the file and return the counts."""
        self._process.signal(signal.SIGINT)
        try:
            status = self._process.wait(STOP_WAIT_S)
        except TimeoutError:
            self.kill()
            raise CaptureError(f'capture "{self.point.name}": did not end within {STOP_WAIT_S:.0f} s') from None
        self._host.fetch(self.file)
        if status:
            # A disk that is full, for example; of what did not get into the file the counts say nothing.
            why = _TOOL.failure(self._said()) or f"ended with status {status}"
            raise CaptureError(f'capture "{self.point.name}" at {self.point.node} {self.point.interface}: {why}')
        counts = _TOOL.counts(self._said())
        self._stderr.unlink()
        return CaptureRecord(received=counts.received, dropped=counts.dropped)

    def kill(self) -> None:
        """End it without caring for its file."""
        self._process.end()
