"""Permanent virtual circuits of ATM interfaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AtmEncapsulation = Literal["aal5snap", "aal5mux ip", "aal5mux ppp dialer"]
"""Encapsulation as typed."""

DEFAULT_ENCAPSULATION: AtmEncapsulation = "aal5snap"


@dataclass(frozen=True, slots=True)
class Contract:
    """Traffic contract of a circuit: `ubr PCR`, `cbr PCR` or `vbr-nrt PCR SCR [MBS]`. Rates count whole cells."""

    category: Literal["ubr", "cbr", "vbr-nrt"]
    peak_kbps: int
    sustainable_kbps: int | None = None
    """Sustainable rate of `vbr-nrt`."""
    burst_cells: int | None = None

    def __str__(self) -> str:
        values = (self.peak_kbps, self.sustainable_kbps, self.burst_cells)
        return " ".join([self.category, *(str(value) for value in values if value is not None)])

    @property
    def rate_kbps(self) -> int:
        """Return the long-term rate."""
        return self.peak_kbps if self.sustainable_kbps is None else self.sustainable_kbps


@dataclass(frozen=True, slots=True)
class Circuit:
    """`pvc VPI/VCI`. Transmit ring and policies are stored with its interface."""

    name: str
    """VPI/VCI, such as 0/33."""
    encapsulation: AtmEncapsulation | None = None
    """Encapsulation; None is aal5snap."""
    contract: Contract | None = None
    """Traffic contract; None for `ubr` at the line rate."""
