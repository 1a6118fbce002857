"""Runs of a part of their file (`--arm`, `--only`), and the values that such runs leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from qoslab.model.expressions import show_value
from qoslab.model.run_values import RunValue

PARTIAL = ("--arm", "--only")
"""Options that leave cells out of a run."""


LeftOutTest = Callable[[RunValue], bool]
"""Function that returns True for a value that a run left out."""


STRICT = "--strict"
"""Option with which values that a shortened run cannot reach count as failures."""


def partial_options(overrides: Sequence[str]) -> str:
    """Return the options of a run that leave cells out, as typed; empty for the whole file."""
    return ", ".join(each for each in overrides if each.startswith(PARTIAL))


def left_out_test(
    overrides: Sequence[str], cells: Iterable[tuple[str, Mapping[str, str | int | float | bool]]]
) -> LeftOutTest:
    """Return a function that returns True for the values that a run with these options and cells left out.

    A run of the whole file leaves none out. A run of a part leaves out values without cells in it, by arm and
    parameters, and averages, which would be over fewer cells.
    """
    if not partial_options(overrides):
        return lambda metric_value: False
    own: dict[str, set[frozenset[tuple[str, str]]]] = {}
    for arm, parameters in cells:
        # A text in the manifest is already formatted.
        shown = ((name, value if isinstance(value, str) else show_value(value)) for name, value in parameters.items())
        own.setdefault(arm, set()).add(frozenset(shown))

    def measured(arm: str, where: str) -> bool:
        pairs = [part.partition(" = ")[::2] for part in where.split(", ")] if where else []
        wanted = [{(name, each) for each in values.split(" or ")} for name, values in pairs]
        return any(all(each & cell for each in wanted) for cell in own.get(arm, ()))

    return lambda metric_value: (
        bool(metric_value.subject) or not all(measured(arm, metric_value.where) for arm in metric_value.arm.split("/"))
    )


def common_values(values: Iterable[RunValue], *runs: LeftOutTest) -> tuple[RunValue, ...]:
    """Return the values that all of the runs have."""
    return tuple(each for each in values if not any(lacks(each) for lacks in runs))
