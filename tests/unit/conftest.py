"""Fixtures of the unit tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qoslab.genie.show_parser import parse
from qoslab.results.file_access import Disk
from qoslab.run.devices.collector import RouterAnswer
from qoslab.run.workers.genie_parser import GenieParser


class InProcessParser:
    """Parser in place of the collector process, which imports pyATS for seconds in each simulated run."""

    def parse(self, command: str, text: str, os_name: str = "ios") -> RouterAnswer:
        found = parse(os_name, command, text)
        return RouterAnswer(text, found.parsed, found.reason)

    def close(self) -> None: ...


@pytest.fixture(scope="session", autouse=True)
def files_are_not_synced() -> Iterator[None]:
    """Omit fsync, for which each run waits a tenth of a second: only a power failure could show the difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Disk, "sync", lambda self, path: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def parse_outputs_in_process() -> Iterator[None]:
    """Parse the output of simulated runs in the test process; a separate `qoslab` process has its collector."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GenieParser, "_start_process", lambda self: InProcessParser())
        yield
