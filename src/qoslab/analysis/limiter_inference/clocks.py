"""Comparison of two clocks by packets that crossed between them: no packet arrives before it has left.

The second clock's time minus the first one's is a delay plus the lead of the second clock. In the forward direction,
delays are added to the lead; in the reverse direction, they are subtracted. So a line below all forward differences and
above all reverse differences gives lead and drift (V. Paxson, On calibrating measurements of packet transit times,
1998; for one direction S. Moon, P. Skelly, D. Towsley, Estimation and removal of clock skew from network delay
measurements, 1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from qoslab.errors import UserError

MOST_DRIFT = 1e-3
"""Maximum relative drift of two clocks; quartz clocks are ten times better."""
QUARTZ = 1e-4
"""Maximum drift that packets of one direction may show: a larger one is a growing queue."""
_BINS = 400
_FEW = 5
"""Number of packets of one direction that are too few to use."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Clocks:
    """Relation of the second clock to the first."""

    state: Literal["agree", "corrected", "offset unknown"]
    """`agree`: no packet contradicts a common clock. `corrected`: by packets of both directions. `offset unknown`:
    packets passed in one direction only, and the clocks differ; the shortest delay is then taken as zero.
    """
    ahead_s: float = 0.0
    """Lead of the second clock over the first, at time 0 of the first."""
    drift: float = 0.0
    error_s: float = 0.0
    """Possible error of the lead."""
    drift_known: bool = True
    """True if packets went in both directions, so that a drift can be detected."""

    def to_first_clock(self, time_s: Array) -> Array:
        """Return the first clock's times for these times of the second clock."""
        return (time_s - self.ahead_s) / (1 + self.drift)

    def __str__(self) -> str:
        by = f"the second is {1e3 * self.ahead_s:+.6g} ms ahead and drifts by {1e6 * self.drift:.3g} ppm"
        match self.state:
            case "agree":
                if not self.drift_known:
                    return "agree, as far as one direction can show: no packet leaves before it arrives"
                return "agree: no packet leaves before it arrives, in either direction"
            case "corrected":
                return (
                    f"different, corrected with packets in both directions: {by}, to within {1e3 * self.error_s:.3g} ms"
                )
            case _:
                return (
                    f"different, corrected except for a constant offset: {by}; packets in one direction cannot show "
                    f"more, so the shortest delay is taken as zero"
                )


def compare(there: tuple[Array, Array], back: tuple[Array, Array]) -> Clocks:
    """Compare the clocks by packets of each direction: the first clock's times, and the differences of the clocks, in
    s.

    Raise `UserError` if no steady clock explains the differences.
    """
    (there_s, there_d), (back_s, back_d) = there, back
    if len(back_d) < _FEW:
        if len(there_d) == 0 or there_d.min() >= 0:
            return Clocks("agree", drift_known=False)
        ahead, drift = _line_below(*_extremes(there_s, there_d, np.minimum))
        return Clocks("offset unknown", ahead, drift, drift_known=False)
    if there_d.min() >= 0 >= back_d.max():
        return Clocks("agree")
    ahead, drift, margin = _line_between(_extremes(there_s, there_d, np.minimum), _extremes(back_s, back_d, np.maximum))
    if margin < 0:
        raise UserError(
            f"the clocks of the two captures cannot be aligned: even with a drift of up to "
            f"{1e6 * MOST_DRIFT:g} ppm, one packet is {-1e3 * margin:.3g} ms too early",
            hint="Was a clock set during the capture? Capture again without adjusting the clocks.",
        )
    return Clocks("corrected", ahead, drift, margin)


def _extremes(time_s: Array, difference: Array, extreme: np.ufunc) -> tuple[Array, Array]:
    """Return the time and value of the least or greatest difference in each of equal periods; the bounds of the others
    follow from them.
    """
    first, last = time_s.min(), time_s.max()
    number = np.minimum(((time_s - first) / max(last - first, 1e-9) * _BINS).astype(np.int64), _BINS - 1)
    order = np.lexsort((difference if extreme is np.minimum else -difference, number))
    kept = order[np.unique(number[order], return_index=True)[1]]
    return time_s[kept], difference[kept]


def _line_below(time_s: Array, difference: Array) -> tuple[float, float]:
    """Return the line below all differences that is closest to them on average: its value at time 0, and its slope."""
    from scipy.optimize import linprog

    found = linprog(
        [-1.0, -float(time_s.mean())],
        A_ub=np.column_stack([np.ones_like(time_s), time_s]),
        b_ub=difference,
        bounds=[(None, None), (-QUARTZ, QUARTZ)],
    )
    return float(found.x[0]), float(found.x[1])


def _line_between(there: tuple[Array, Array], back: tuple[Array, Array]) -> tuple[float, float, float]:
    """Return the line midway between forward and reverse differences: its value at time 0, its slope, and the distance
    to the nearest difference, which is negative if no line separates them.
    """
    from scipy.optimize import linprog

    (there_s, there_d), (back_s, back_d) = there, back
    rows = np.vstack(
        [
            np.column_stack([np.ones_like(there_s), there_s, np.ones_like(there_s)]),
            np.column_stack([-np.ones_like(back_s), -back_s, np.ones_like(back_s)]),
        ]
    )
    limits = np.concatenate([there_d, -back_d])
    found = linprog(
        [0.0, 0.0, -1.0], A_ub=rows, b_ub=limits, bounds=[(None, None), (-MOST_DRIFT, MOST_DRIFT), (None, None)]
    )
    return float(found.x[0]), float(found.x[1]), float(found.x[2])
