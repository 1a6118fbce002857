"""Imported by Ansible itself: its workers lead sessions of their own, and each is put behind traffic as Ansible is."""

from __future__ import annotations

import os

from qoslab.system.priority import step_behind_traffic

_lead_session = os.setsid


def _lead_session_behind_traffic() -> None:
    _lead_session()
    # A worker does not live long enough to try again.
    step_behind_traffic(again=False)


os.setsid = _lead_session_behind_traffic
