"""Fidelity of a plan: how closely the kernel implements each action of a policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from qoslab.tc.objects import Origin

Degree = Literal["exact", "approximate", "refused"]


@dataclass(frozen=True, slots=True)
class Note:
    """The fidelity of one action."""

    degree: Degree
    origin: Origin
    action: str
    """The command as typed, without its parameters."""
    text: str
    """The bound of an approximation, the reason for a refusal, or the equivalent of an exact action."""

    def __str__(self) -> str:
        return f"{self.degree}: {self.origin}: {self.action}: {self.text}"


@dataclass
class FidelityNotes:
    """Collector of the notes of a plan, without duplicates."""

    found: list[Note] = field(default_factory=list)

    def _add(self, degree: Degree, origin: Origin, action: str, text: str) -> None:
        note = Note(degree, origin, action, text)
        if note not in self.found:
            self.found.append(note)

    def add_exact(self, origin: Origin, action: str, text: str) -> None:
        """Record an action that the kernel implements exactly."""
        self._add("exact", origin, action, text)

    def add_approximate(self, origin: Origin, action: str, text: str) -> None:
        """Record an action that differs within the bound in `text`."""
        self._add("approximate", origin, action, text)

    def add_refused(self, origin: Origin, action: str, text: str) -> None:
        """Record an action without an equivalent, with the reason in `text`."""
        self._add("refused", origin, action, text)
