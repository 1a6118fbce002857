"""Largest quantities in an experiment file and in the records of a run."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from qoslab.model.units import Duration, Percent, Quantity, Rate, Size

LARGEST: tuple[Quantity, ...] = (Rate(10**15), Size(10**15), Duration(366 * 86400 * 10**9), Percent(10**12))
"""Largest rate, size and duration: above any real line, memory or test."""


def quantities_above_limits(
    value: object, steps: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the quantities above the limits of a lab, each with its path and an error message."""
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            yield from quantities_above_limits(getattr(value, name), (*steps, field.alias or name))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from quantities_above_limits(inner, (*steps, key))
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from quantities_above_limits(inner, (*steps, index))
    elif isinstance(value, Quantity):
        largest = next(each for each in LARGEST if type(each) is type(value))
        if value > largest:
            yield steps, f"found {value}, expected at most {largest}"
