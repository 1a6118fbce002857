"""Faults of a lab, which another attempt in a fresh one may not meet, as opposed to faults of the input, which stay."""

from __future__ import annotations

import time

from qoslab.errors import DeviceError
from qoslab.run.protocols import Lab

NOTICED_S = 1.0
"""Time until the lab's supervisor knows the end of a daemon that others notice by broken connections."""


class PassingFault(DeviceError):  # noqa: N818 - the field's word
    """A router, or a program that talks to routers, did not do its part: it died, hung, or could not be reached."""


class LabDied(PassingFault):
    """The lab, or a part of it, has died."""


def death_of(lab: Lab, *, wait: bool = False) -> str:
    """Return the dead part of a lab, its end, and its last output; empty while all of it lives.

    `wait`: something has just gone wrong that a death would explain, so one that is only just happening is waited for.
    """
    deadline = time.monotonic() + (NOTICED_S if wait else 0.0)
    while True:
        if death := lab.death():
            return f"the lab stopped:  {death}"
        if time.monotonic() >= deadline:
            return ""
        time.sleep(0.05)
