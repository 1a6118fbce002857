"""Fidelity of a plan: how close the kernel comes to each action of a policy."""

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
    """The command as it is typed, without its parameters."""
    text: str
    """The bound of an approximation, or the reason of a refusal; of an exact action its equivalent."""

    def __str__(self) -> str:
        return f"{self.degree}: {self.origin}: {self.action}: {self.text}"


@dataclass
class Notes:
    """Collector of the notes of a plan; the same note is taken once."""

    found: list[Note] = field(default_factory=list)

    def _add(self, degree: Degree, origin: Origin, action: str, text: str) -> None:
        note = Note(degree, origin, action, text)
        if note not in self.found:
            self.found.append(note)

    def exact(self, origin: Origin, action: str, text: str) -> None:
        """Take an action that the kernel carries out in the same way."""
        self._add("exact", origin, action, text)

    def approximate(self, origin: Origin, action: str, text: str) -> None:
        """Take an action that differs within the bound in `text`."""
        self._add("approximate", origin, action, text)

    def refused(self, origin: Origin, action: str, text: str) -> None:
        """Take an action without an equivalent, for the reason in `text`."""
        self._add("refused", origin, action, text)
