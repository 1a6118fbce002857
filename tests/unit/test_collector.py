"""Process that observes routers, without a router."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qoslab.errors import DeviceError
from qoslab.run.devices.ansible_inventory import EngineAccess, IosAccess
from qoslab.run.devices.collector import CollectorProcess, SharedCollector
from qoslab.run.devices.collector_process import _LOGIN_TROUBLE, _exception_text
from qoslab.run.faults import TransientFault

RECORDED = Path(__file__).parent.parent / "recorded" / "ios"


@pytest.fixture(scope="module")
def collector() -> Iterator[CollectorProcess]:
    with CollectorProcess() as collector:
        yield collector


def test_output_is_parsed_in_the_collector(collector: CollectorProcess) -> None:
    observed = collector.parse("show policy-map interface", (RECORDED / "shape.classic.txt").read_text())
    assert observed.reason == ""
    assert observed.data["FastEthernet0/1"]["service_policy"]["output"]["policy_name"].keys() == {"Shape"}


DURING_IMPORTS = """
import sys, threading, time
from qoslab.genie.show_parser import parse
from qoslab.run.devices.collector_process import _import_slow_modules

warm = threading.Thread(target=_import_slow_modules)
warm.start()
while "unicon" not in sys.modules:
    time.sleep(0.001)
time.sleep(float(sys.argv[1]))
print(parse("ios", "show clock", "*10:00:00.000 UTC Mon Jan 6 2025"))
warm.join()
"""


@pytest.mark.long
@pytest.mark.parametrize("after_s", ["0", "0.01", "0.02"])
def test_request_during_imports_waits(after_s: str) -> None:
    # Unicon's plugins import Genie: threads that begin with different modules would deadlock.
    output = subprocess.run(
        [sys.executable, "-c", DURING_IMPORTS, after_s], capture_output=True, text=True, check=False
    )
    assert (output.returncode, output.stderr) == (0, "")
    assert "reason=''" in output.stdout


def test_unparsed_reading_has_a_reason(collector: CollectorProcess) -> None:
    assert collector.parse("show tides", "high\n").data == {"unparsed": "there is no parser for 'show tides' on ios"}


def test_collector_reports_a_missing_router(collector: CollectorProcess) -> None:
    routers = {"R1": IosAccess("127.0.0.1", "lab", "secret", 1)}
    with pytest.raises(DeviceError, match=r"R1 cannot be reached: .*refused"):
        collector.connect(routers)
    # without a wait, the first command reports it
    collector.connect(routers, wait=False)
    with pytest.raises(DeviceError, match="R1 cannot be reached"):
        collector.observe("R1", "show clock")


def test_unknown_router_is_reported(collector: CollectorProcess) -> None:
    with pytest.raises(DeviceError, match="R7 is not a connected router"):
        collector.observe("R7", "show clock")


def test_engine_routers_have_no_command_line(collector: CollectorProcess) -> None:
    collector.connect({"R2": EngineAccess("/run/none.sock")})


def test_killed_shared_collector_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = '{"id": 1, "ok": true, "parsed": null, "reason": ""}'
    monkeypatch.setattr("qoslab.run.devices.collector.PROGRAM", (sys.executable, "-c", f"input(); print('{answer}')"))
    shared = SharedCollector()
    try:
        first = shared.get()
        os.kill(first._helper.process.pid, signal.SIGKILL)
        with pytest.raises(TransientFault, match="was killed by SIGKILL"):
            first.parse("show clock", "")
        assert shared.get() is not first
        assert shared.get().parse("show tides", "high\n").parsed is None
    finally:
        shared.close()


def test_invalid_answer_line_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = '{"id": 1, "ok": true, "parsed": {"a": 1}, "reason": ""}'
    program = f"print('a library talks'); print('[1]'); input(); print('{answer}')"
    monkeypatch.setattr("qoslab.run.devices.collector.PROGRAM", (sys.executable, "-c", program))
    with CollectorProcess() as collector:
        assert collector.parse("show clock", "").parsed == {"a": 1}


def test_killed_collector_is_reported() -> None:
    with CollectorProcess() as collector:
        os.kill(collector._helper.process.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(TransientFault, match="was killed by SIGKILL"):
                collector.parse("show clock", "")


def test_collector_never_syncs_all_disks() -> None:
    """Run without `os.sync`, which Unicon calls with each line that it sends."""
    script = (
        "import os; from qoslab.run.devices import collector_process; collector_process.main(); "
        "os.write(2, repr(os.sync()).encode() + os.sync.__module__.encode())"
    )
    done = subprocess.run([sys.executable, "-c", script], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert done.stderr.endswith(b"Noneqoslab.run.devices.collector_process")


def test_silent_router_reveals_neither_input_nor_expected_prompt() -> None:
    """Query a silent router: Unicon's message would contain a password and every refusal pattern."""
    waited = "['^.*% (Bad secrets|Access denied)', '^.*[Pp]assword( for )?: ?$', '^.*[Pp]ermission denied']"
    silent = TimeoutError(
        f"timeout occurred:\n timeout value: 20\n last_command: 'xEDNv0s60FQe\\r'\n pattern: {waited}\n"
    )
    state = ConnectionError('Failed while bringing device to "any" state')
    error = ConnectionError("failed to connect to R1")
    state.__cause__, error.__cause__ = silent, state
    text = _exception_text(error)
    assert text.startswith("failed to connect to R1: ") and text.endswith("timeout occurred: timeout value: 20")
    assert not _LOGIN_TROUBLE.search(text)
    refused = ConnectionError("failed to connect")
    refused.__cause__ = PermissionError("Permission denied, please try again")
    assert _LOGIN_TROUBLE.search(_exception_text(refused))
