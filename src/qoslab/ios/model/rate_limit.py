"""Committed access rate: `rate-limit` lines of interfaces, and their rate-limit access lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LimitMatch = Literal["all", "access-group", "rate-limit", "dscp", "qos-group"]
"""Match of a line: all packets, an access list, a rate-limit access list, a code point, or a group."""


@dataclass(frozen=True, slots=True)
class LimitAction:
    """Action on a packet of a line: new marks, and the next step."""

    then: Literal["transmit", "drop", "continue"]
    field: Literal["dscp", "prec", "qos"] | None = None
    value: int = 0


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One `rate-limit` line: rate in b/s, bursts in bytes."""

    direction: Literal["input", "output"]
    match: LimitMatch
    number: int
    """Number of the list, the code point or the group; 0 if everything is metered."""
    rate_bps: int
    normal_burst: int
    extended_burst: int
    conform: LimitAction
    exceed: LimitAction


@dataclass(frozen=True, slots=True)
class RateLimitList:
    """`access-list rate-limit N`: a precedence, or a mask of several."""

    number: int
    precedence: int | None
    mask: int | None
    """Bit n stands for precedence n."""

    @property
    def precedences(self) -> tuple[int, ...]:
        """The precedences that it permits."""
        if self.mask is None:
            return () if self.precedence is None else (self.precedence,)
        return tuple(each for each in range(8) if self.mask >> each & 1)
