"""Interface of a capture tool: a command, and parsers of its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from qoslab.errors import RunInvalid


class CaptureError(RunInvalid):
    """A capture did not start, or its file cannot be read; the message names the capture point."""


@dataclass(frozen=True)
class CaptureCounts:
    """Number of packets that the capture tool received, and that it dropped."""

    received: int
    dropped: int
    """Drops by the kernel's buffer and by the tool."""


class CaptureTool(Protocol):
    """A capture tool. Implementations are stateless: they only build commands and parse text.

    A capture is stopped with SIGINT; the tool then writes the rest of the file, prints its counts and exits.
    """

    name: str
    programs: tuple[str, ...]
    """Programs that must be installed where packets are captured."""
    settles_s: float
    """Seconds after which a packet is in the file even if the capture is stopped then."""

    def command(
        self, interface: str, file: str, *, filter: str = "", snaplen: int, comment: str = "", buffer_mib: int = 32
    ) -> tuple[str, ...]:
        """Return the command that captures from an interface into a pcapng file, truncating each packet to `snaplen`
        bytes.
        """
        ...

    def is_running(self, stderr: str) -> bool:
        """Return whether the tool captures every packet from now on, according to its output so far."""
        ...

    def failure(self, stderr: str) -> str:
        """Return the tool's error message; empty if it printed none."""
        ...

    def counts(self, stderr: str) -> CaptureCounts:
        """Return the counts that the tool printed at its end. Raise `CaptureError` if there are none, as after it was
        killed.
        """
        ...
