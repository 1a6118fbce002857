"""Parser process for the output of simulated routers, started on first use."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from qoslab.system.extras import lacking

if TYPE_CHECKING:
    from qoslab.run.devices.collector import Collector

UNPARSED = (
    "Genie, the parser of router output, is not installed; counters are in counters/, and the raw output is saved"
)


class GenieParser:
    """The parser of a process that simulates; its methods may be called from any thread.

    Where the extra `devices` is not installed, prints are kept without being parsed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._collector: Collector | None = None
        self._installed = not lacking("devices")

    def expect(self) -> None:
        """There will be something to parse: Genie takes seconds to import."""
        if self._installed:
            self._started()

    def parse(self, command: str, text: str) -> dict[str, Any]:
        """Parse `text`, the answer to `command`; return the reason if no parser accepts it."""
        return self._started().parse(command, text).data if self._installed else {"unparsed": UNPARSED}

    def close(self) -> None:
        """End the process, if it was started."""
        with self._lock:
            collector, self._collector = self._collector, None
        if collector is not None:
            collector.close()

    def _started(self) -> Collector:
        from qoslab.run.devices.collector import Collector  # most sweeps observe nothing

        with self._lock:
            if self._collector is None:
                self._collector = Collector()
            return self._collector
