"""Check for other runs on the nodes, before all other checks, which would disturb their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qoslab.ios.device_config.restore import MARK
from qoslab.run.real.preflight.facts import PreflightFinding


def check_locks(interfaces: Mapping[str, Mapping[str, str]], marks: Mapping[str, str]) -> Iterator[PreflightFinding]:
    """Report locked interfaces by host and run locks of routers, with the run that holds them."""
    for name, whose in interfaces.items():
        for device, who in whose.items():
            yield PreflightFinding(name, f"found {device} locked by {who}, expected no lock", "wait for it to finish")
    for name, who in marks.items():
        if who:
            hint = (
                f"wait for it to finish; if it crashed, run `qoslab lab rescue` on the machine that started it, or "
                f"enter `no {MARK}`"
            )
            yield PreflightFinding(name, f"found the run lock of another run, {who}, expected none", hint)
