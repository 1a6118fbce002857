"""Runs of a part of their file (`--arm`, `--only`), and which figures they were not asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from qoslab.model.expressions import show_value
from qoslab.model.run_figures import RunFigure

PARTIAL = ("--arm", "--only")
"""Options of a run that leaves cells out."""


LeftOut = Callable[[RunFigure], bool]
"""True if a run was not asked for a figure."""


STRICT = "--strict"
"""The option of a run in which values that shortened traffic did not come to are failures."""


def part_of(overrides: Sequence[str]) -> str:
    """Return the options of a run that leave cells out, as typed; empty for the whole file."""
    return ", ".join(each for each in overrides if each.startswith(PARTIAL))


def left_out(overrides: Sequence[str], cells: Iterable[tuple[str, Mapping[str, str | int | float | bool]]]) -> LeftOut:
    """Return whether a figure is none that a run of these options and cells was asked for.

    Of a run of the whole file none is left out. Of one of a part, figures of which it has no cells, by arm and
    parameters, and averages: they would be over fewer cells.
    """
    if not part_of(overrides):
        return lambda figure: False
    own: dict[str, set[frozenset[tuple[str, str]]]] = {}
    for arm, parameters in cells:
        # Of a text the manifest has what is shown.
        shown = ((name, value if isinstance(value, str) else show_value(value)) for name, value in parameters.items())
        own.setdefault(arm, set()).add(frozenset(shown))

    def measured(arm: str, where: str) -> bool:
        pairs = [part.partition(" = ")[::2] for part in where.split(", ")] if where else []
        wanted = [{(name, each) for each in values.split(" or ")} for name, values in pairs]
        return any(all(each & cell for each in wanted) for cell in own.get(arm, ()))

    return lambda figure: bool(figure.about) or not all(measured(arm, figure.where) for arm in figure.arm.split("/"))


def asked_of_all(figures: Iterable[RunFigure], *runs: LeftOut) -> tuple[RunFigure, ...]:
    """The figures that each of the runs was asked for."""
    return tuple(each for each in figures if not any(lacks(each) for lacks in runs))
