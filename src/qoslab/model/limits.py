"""Greatest quantities of an experiment, in a file and in a run's records."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from qoslab.model.units import Duration, Percent, Quantity, Rate, Size

LARGEST: tuple[Quantity, ...] = (Rate(10**15), Size(10**15), Duration(366 * 86400 * 10**9), Percent(10**12))
"""More than any line, memory or patience has."""


def beyond(value: object, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Quantities that no lab can have, each with its place in what they are in, and what is wrong with it."""
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            yield from beyond(getattr(value, name), (*steps, field.alias or name))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from beyond(inner, (*steps, key))
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from beyond(inner, (*steps, index))
    elif isinstance(value, Quantity):
        largest = next(each for each in LARGEST if type(each) is type(value))
        if value > largest:
            yield steps, f"found {value}, expected at most {largest}"
