"""Reasons for a refused login, in the terms of an access proxy (`qoslab.run.real.access`)."""

from __future__ import annotations

from enum import StrEnum


class FailureKind(StrEnum):
    """Reason for a refused login."""

    LOGIN_REFUSED = "login refused"
    ENABLE_REFUSED = "enable refused"
    KEY_CHANGED = "host key changed"
    KEY_UNKNOWN = "host key unknown"
    NO_ALGORITHM = "no common algorithm"
    OUT_OF_REACH = "out of reach"
    NO_ANSWER = "no answer"
    HUNG_UP = "hung up"
    ENDLESS = "endless answer"
    BUSY = "busy"
    DEFECT = "defect of the access proxy"


TRANSIENT_FAILURES = frozenset({FailureKind.OUT_OF_REACH, FailureKind.NO_ANSWER, FailureKind.HUNG_UP, FailureKind.BUSY})
"""Reasons that may not recur at another attempt."""
