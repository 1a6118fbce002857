"""Missing values of metrics, with the reason. Pure.

A missing counter is never taken as 0: a sum over readings with a missing counter is missing.
"""

from __future__ import annotations

import numpy as np

from qoslab.results.columns import Column


class Missing(str):
    """Reason of the missing value of a metric that applies."""

    __slots__ = ()


NEVER = "was not reached"
"""Text in the reason of a value at an instant that was not reached."""
NOTHING_COUNTED = "no counter recorded it"
BUCKET_LASTED = "the policer's bucket was full at the start and never ran empty"
NOT_TOGETHER = "the flows never all ran at the same time"
READ_ONCE = "the counters were read only once, which does not cover the traffic time"
_OF_LONGER = (BUCKET_LASTED, NOT_TOGETHER, READ_ONCE)


def needs_longer_traffic(missing: str) -> bool:
    """Return whether a value is missing for a reason that longer traffic may remove.

    An instant of a counter counts only if there was traffic on the way to it.
    """
    if any(reason in missing for reason in _OF_LONGER):
        return True
    return f" {NEVER}: " in missing and NOTHING_COUNTED not in missing and ": 0 B " not in missing


MetricValue = tuple[str, float | Missing]
"""Name of a metric, and its value or the reason of the missing value."""


def total(values: Column, what: str) -> float | Missing:
    """Return the sum, or a missing value if one of them is unknown. `what` describes the values, in the plural."""
    known = np.asarray(values, dtype=float)
    if lacking := int(np.isnan(known).sum()):
        return Missing(f"{what} are unknown for {lacking} of {len(known)}")
    return float(known.sum())


def known_maximum(values: Column, what: str) -> float | Missing:
    """Return the maximum, or a missing value if one of them is unknown."""
    known = total(values, what)
    return known if isinstance(known, Missing) else float(values.max())
