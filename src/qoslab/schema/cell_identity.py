"""Identity of a cell: arm, parameters, repetition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from qoslab.model.expressions import Value
from qoslab.model.matrix import Parameters, slug


@dataclass(frozen=True)
class CellIdentity:
    """Identity of a cell within its experiment."""

    arm: str
    parameters: tuple[tuple[str, Value], ...]
    repetition: int
    """Number of the repetition, from 1."""

    @property
    def values(self) -> Parameters:
        """The parameters by name."""
        return dict(self.parameters)

    @cached_property
    def folder(self) -> str:
        """Name of the cell, and its folder under `cells/`: ARM/REPETITION or ARM/PARAMETERS/REPETITION."""
        return "/".join(filter(None, (self.arm, slug(self.values), str(self.repetition))))

    def get(self, name: str) -> Value | None:
        """Return a parameter, or `arm` or `repetition`; None if the cell has no such parameter."""
        built_in: dict[str, Value] = {"arm": self.arm, "repetition": self.repetition}
        return built_in[name] if name in built_in else self.values.get(name)


class CellIdentified:
    """Object with the identity of a cell, and the names derived from it."""

    identity: CellIdentity

    @property
    def arm(self) -> str:
        """The arm's name."""
        return self.identity.arm

    @property
    def repetition(self) -> int:
        """Number of the repetition, from 1."""
        return self.identity.repetition

    @property
    def parameters(self) -> Parameters:
        """The cell's parameters with their values."""
        return self.identity.values

    @property
    def name(self) -> str:
        """Name of the cell, as its folder under `cells/`: ARM/REPETITION or ARM/PARAMETERS/REPETITION; equal for all
        attempts.
        """
        return self.identity.folder
