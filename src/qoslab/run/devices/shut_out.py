"""Why a device lets nobody in, in the words that a door (`qoslab.run.door`) says to those who come to it."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """Why a device lets nobody in."""

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


PASSING = frozenset({Kind.OUT_OF_REACH, Kind.NO_ANSWER, Kind.HUNG_UP, Kind.BUSY})
"""What another try may not meet."""
