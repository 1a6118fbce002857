"""Interface of every capture tool: a command, and readers of its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from qoslab.errors import RunInvalid


class CaptureError(RunInvalid):
    """A capture did not start, or its file cannot be read; the message names the capture point."""


@dataclass(frozen=True)
class Counts:
    """Packets that the capture tool saw, and those that it could not keep."""

    received: int
    dropped: int
    """Drops by the kernel's buffer and by the tool itself."""


class CaptureTool(Protocol):
    """One way of capturing. Implementations are stateless: they build commands and read text, nothing more.

    A capture is stopped with SIGINT; it then writes the rest of the file, says its counts and ends.
    """

    name: str
    programs: tuple[str, ...]
    """Programs that must be installed where packets are captured."""
    settles_s: float
    """Seconds after a packet until it would be in the file even if the capture were stopped then."""

    def command(
        self, interface: str, file: str, *, filter: str = "", snaplen: int, comment: str = "", buffer_mib: int = 32
    ) -> tuple[str, ...]:
        """The command that captures from an interface into a pcapng file; `snaplen` bytes of each packet are kept."""
        ...

    def is_running(self, stderr: str) -> bool:
        """Return whether the tool captures every packet from now on, according to its output so far."""
        ...

    def failure(self, stderr: str) -> str:
        """The tool's own words of what went wrong; empty if it said nothing of the kind."""
        ...

    def counts(self, stderr: str) -> Counts:
        """The counts it said at its end. `CaptureError` if it said none, as when it was killed."""
        ...
