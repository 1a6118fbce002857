"""Parser process for the output of simulated routers, started on first use."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from qoslab.genie import own_parsers
from qoslab.system.extras import missing_packages

if TYPE_CHECKING:
    from qoslab.run.devices.collector import CollectorProcess

NOT_PARSED = (
    "Genie, the parser of router output, is not installed; counters are in counters/, and the raw output is saved"
)


class GenieParser:
    """Parser of a simulating process; its methods may be called from any thread.

    Most output is parsed in this process. The rest goes to a process with Genie; if the extra `devices` is not
    installed, such output is saved without parsing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._collector: CollectorProcess | None = None
        self._installed = not missing_packages("devices")

    def expect(self, commands: Iterable[str]) -> None:
        """Announce commands with answers to parse; Genie, if one of them needs it, takes a second to import."""
        if self._installed and not all(map(own_parsers.supports_command, commands)):
            self._start_process()

    def parse(self, command: str, text: str) -> dict[str, Any]:
        """Parse `text`, the answer to `command`; return the reason if no parser accepts it."""
        if own_parsers.supports_command(command) and (found := own_parsers.parse(command, text)) is not None:
            return {"unparsed": found.reason} if found.parsed is None else found.parsed
        return self._start_process().parse(command, text).data if self._installed else {"unparsed": NOT_PARSED}

    def close(self) -> None:
        """End the process, if it was started."""
        with self._lock:
            collector, self._collector = self._collector, None
        if collector is not None:
            collector.close()

    def _start_process(self) -> CollectorProcess:
        from qoslab.run.devices.collector import CollectorProcess  # Most sweeps observe nothing.
        from qoslab.run.devices.collector_process import PARSE_ONLY_ARGUMENT

        with self._lock:
            if self._collector is None:
                self._collector = CollectorProcess(PARSE_ONLY_ARGUMENT)
            return self._collector
