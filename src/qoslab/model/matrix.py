"""Parameters of a sweep, and the combinations of their values. No side effects."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from qoslab.model.expressions import ExpressionError, Value, parse_expression, read_value, show_value
from qoslab.model.units import Duration, Percent, Rate, Size

Scalar = str | int | float | bool
"""A parameter's value as written in a file."""
ParameterName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]

BUILT_IN = ("arm", "repetition")
"""Names in expressions in addition to the parameters."""
RESERVED = frozenset({*BUILT_IN, "include", "exclude", "constraints", "and", "or", "not", "in", "true", "false"})
"""Names that no parameter may have."""

COMBINATION_LIMIT = 200_000
"""Maximum number of combinations of all arms' parameters before exclusion. Each is examined when the file is read,
which takes some seconds and 200 MB at this number.
"""
CELL_LIMIT = 200_000
"""Maximum number of cells of an experiment, repetitions counted: twice the number in docs/sweeps.md. Plan and manifest
list each of them.
"""
VALUE_LIMIT = 1_000
"""Maximum number of values of all parameters of all arms. Each is checked in a separate experiment, which takes about
10 ms.
"""

WORK_LIMIT = 2_000_000
"""Maximum number of comparisons and words of expressions that are examined for all combinations of a file, which takes
some seconds.
"""

Parameters = dict[str, Value]
"""A cell's parameters with their values, in the order of the file."""

SLUG_LIMIT = 120
"""Maximum characters of a folder's name; file systems allow 255 bytes."""


class Matrix(BaseModel):
    """Parameters and their values; every combination of them is run, except the excluded ones."""

    # As `Frozen` in the experiment's model; other keys are the parameters.
    model_config = ConfigDict(
        frozen=True, extra="allow", strict=True, serialize_by_alias=True, allow_inf_nan=False, defer_build=True
    )
    __pydantic_extra__: dict[str, tuple[Scalar, ...]]

    include: tuple[dict[ParameterName, Scalar | tuple[Scalar, ...]], ...] = ()
    """Further combinations, each with a value (or a list of values) of every parameter."""
    exclude: tuple[dict[ParameterName, Scalar | tuple[Scalar, ...]], ...] = ()
    """Combinations to leave out: all with these values (or any value of a list) of these parameters."""
    constraints: tuple[str, ...] = ()
    """Conditions such as `pir <= link`; combinations for which one is false are left out."""

    @property
    def parameters(self) -> dict[str, tuple[Scalar, ...]]:
        """The values of each parameter as in the file, without parameters that only `include` names."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return tuple(dict.fromkeys([*self.parameters, *(name for entry in self.include for name in entry)]))

    @property
    def count(self) -> int:
        """Number of combinations before exclusion, calculated without building them."""
        entries: list[Mapping[str, Scalar | tuple[Scalar, ...]]] = [
            *([self.parameters] if self.parameters else []),
            *self.include,
        ]
        return sum(prod(len(each) if isinstance(each, tuple) else 1 for each in entry.values()) for entry in entries)

    @property
    def test_count(self) -> int:
        """Number of tests for each combination before it is run: values of `exclude`, words of the constraints."""
        return sum(map(len, self.exclude)) + sum(map(_split_words, self.constraints))


def _split_words(text: str) -> int:
    try:
        return parse_expression(text).words
    except ExpressionError:
        return 1  # reported at its place


def combinations(entry: Mapping[str, Scalar | tuple[Scalar, ...]]) -> Iterator[Parameters]:
    """Yield the cross product of the entry's values."""
    values = [
        [read_value(each) for each in (value if isinstance(value, tuple) else (value,))] for value in entry.values()
    ]
    for chosen in product(*values):
        yield dict(zip(entry, chosen, strict=True))


def arm_combinations(matrix: Matrix | None, arm: str) -> Iterator[Parameters]:
    """Yield the combinations of an arm's matrix that are run; one empty combination without a matrix.

    Raise `ExpressionError` for a constraint that cannot be parsed or is not a truth value.
    """
    if matrix is None:
        yield {}
        return
    constraints = [parse_expression(text) for text in matrix.constraints]
    crossed = combinations(matrix.parameters) if matrix.parameters else ()
    excluded = exclusion_test(matrix)
    for found in crossed:
        if not excluded(found) and all(each.is_true({**found, "arm": arm}) for each in constraints):
            yield found
    for entry in matrix.include:
        yield from combinations({name: entry[name] for name in matrix.names})


def matches(parameters: Mapping[str, Value], entry: Mapping[str, Scalar | tuple[Scalar, ...]]) -> bool:
    """Return whether the parameters have these values; a missing parameter has none."""
    return matcher(entry)(parameters)


def matcher(entry: Mapping[str, Scalar | tuple[Scalar, ...]]) -> Callable[[Mapping[str, Value]], bool]:
    """Return `fits` for many combinations: the entry's values are parsed once."""
    wanted = [
        (name, frozenset(_typed_key(read_value(each)) for each in (value if isinstance(value, tuple) else (value,))))
        for name, value in entry.items()
    ]
    return lambda parameters: all(
        name in parameters and _typed_key(parameters[name]) in values for name, values in wanted
    )


def exclusion_test(matrix: Matrix) -> Callable[[Mapping[str, Value]], bool]:
    """Return a function that returns whether `exclude` excludes a combination."""
    entries = [matcher(entry) for entry in matrix.exclude]
    return lambda parameters: any(each(parameters) for each in entries)


def _typed_key(value: Value) -> tuple[bool, Value]:
    """Return a key that is equal for values that are the same (see `same`)."""
    return isinstance(value, bool), value


def is_same_value(one: Value, other: Value) -> bool:
    """Return whether two values are equal and of one kind: 1 is not true."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def parameters_text(parameters: Mapping[str, Value]) -> str:
    """Format parameters for display: `pir = 1 Mb/s, connections = 4`."""
    return ", ".join(f"{name} = {show_value(value)}" for name, value in parameters.items())


def as_texts(parameters: Mapping[str, Value]) -> dict[str, Scalar]:
    """Return the parameters as in a record or a file: quantities as texts."""
    return {
        name: value if isinstance(value, bool | int | float | str) else show_value(value)
        for name, value in parameters.items()
    }


def as_values(texts: Mapping[str, Scalar]) -> Parameters:
    """Parse the result of `as_texts`."""
    return {name: read_value(value) for name, value in texts.items()}


def as_scalar(text: str) -> Scalar:
    """Parse the text of an option or a table. Raise `QuantityError` for a misspelled unit."""
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[0-9]{1,18}\.[0-9]{1,18}", text):
        return float(text)
    value = read_value(text)
    return value if isinstance(value, str) else show_value(value)


def as_number(value: Value) -> float | int | bool | str:
    """Return the value for tables and graphs: b/s, B, ms, fractions of the whole; numbers, texts and truth values
    unchanged.
    """
    match value:
        case Rate():
            return value.bps
        case Size():
            return value.bytes
        case Duration():
            return value.ns / 10**6
        case Percent():
            return value.fraction
        case bool() | int() | float() | str():
            return value
    raise TypeError(f"no value of a parameter: {value!r}")


def slug(parameters: Mapping[str, Value]) -> str:
    """Return the parameters as the name of a folder, unique for each set of parameters; empty if there are none."""
    if not parameters:
        return ""
    whole = ",".join(f"{name}={show_value(value)}" for name, value in parameters.items())
    # Removed blanks and "/s" of quantities do not distinguish two values.
    lossy = False
    words = []
    for name, value in parameters.items():
        plain = show_value(value)
        if not isinstance(value, str):
            plain = plain.replace(" ", "").replace("/s", "ps").replace("%", "pct")
        safe = re.sub(r"[^A-Za-z0-9.+_-]", "_", plain)
        lossy |= safe != plain
        words.append(f"{name}={safe}")
    text = ",".join(words)
    if not lossy and len(text) <= SLUG_LIMIT:
        return text
    return f"{text[:SLUG_LIMIT]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
