"""Faults of a lab, which may not recur in a fresh one, as opposed to faults of the input, which always recur."""

from __future__ import annotations

import time

from qoslab.errors import DeviceError
from qoslab.run.protocols import RunningLab

DETECTION_S = 1.0
"""Time until the lab's supervisor detects the end of a daemon, after others have seen broken connections."""


class TransientFault(DeviceError):  # noqa: N818 - the field's word
    """Failure of a router, or of a program that talks to routers: it died, hung, or could not be reached."""


class LabDiedFault(TransientFault):
    """Death of the lab or a part of it."""


def describe_death(lab: RunningLab, *, wait: bool = False) -> str:
    """Return the dead part of a lab, its end, and its last output; empty while all of it runs.

    `wait`: something has just failed that a death would explain, so wait for a death that is in progress.
    """
    deadline = time.monotonic() + (DETECTION_S if wait else 0.0)
    while True:
        if death := lab.describe_death():
            return f"the lab stopped:  {death}"
        if time.monotonic() >= deadline:
            return ""
        time.sleep(0.05)
