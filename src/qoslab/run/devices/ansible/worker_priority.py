"""Imported by Ansible: its workers lead their own sessions; each gets lower priority than traffic, like Ansible."""

from __future__ import annotations

import os

from qoslab.system.priority import lower_priority

_lead_session = os.setsid


def _lower_session_priority() -> None:
    _lead_session()
    # A worker is too short-lived to try again.
    lower_priority(again=False)


os.setsid = _lower_session_priority
