"""Expectations of values: bounds, or predictions of a model, as quantities or as expressions of the parameters.

The docstrings of classes and fields are the descriptions in the JSON Schema: they speak to the file's author.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from qoslab.model.expressions import Expression, ExpressionError, Value, parse_expression, read_value, show_value
from qoslab.model.frozen import NAME, Frozen
from qoslab.model.matrix import ParameterName, Parameters, Scalar, as_texts, matcher
from qoslab.model.metrics import MAXIMA, Reference, Unit, as_float, format_value
from qoslab.model.units import Duration, Percent, Quantity, Rate, Size


def _bound_kind(value: object) -> str:
    """Return the kind of a bound's text; one without a known unit is left to `number`, and refused there."""
    if isinstance(value, Quantity):
        return value.KIND
    if not isinstance(value, str):
        return "number"
    if value.startswith("$("):
        return "expression"
    unit = value.strip().lstrip("0123456789.").strip()
    if unit == "%":
        return "percentage"
    if "/s" in unit or unit.endswith(("ps", "bit")):
        return "rate"
    if unit.endswith(("B", "byte", "bytes")):
        return "size"
    return "duration" if unit in Duration.UNITS or unit in ("m", "sec") else "number"


Bound = Annotated[
    Annotated[Rate, Tag("rate")]
    | Annotated[Size, Tag("size")]
    | Annotated[Duration, Tag("duration")]
    | Annotated[Percent, Tag("percentage")]
    | Annotated[float, Tag("number")],
    Discriminator(_bound_kind),
]
"""A bound: a quantity with its unit, or a plain number for metrics that are counts or ratios."""

Formula = Annotated[str, Field(pattern=r"^\$\(", max_length=500)]
"""`$(EXPRESSION)`: of the parameters of the arm's cells, of `quantities`, and of the experiment's `duration`."""

Predicted = Annotated[
    Annotated[Rate, Tag("rate")]
    | Annotated[Size, Tag("size")]
    | Annotated[Duration, Tag("duration")]
    | Annotated[Percent, Tag("percentage")]
    | Annotated[float, Tag("number")]
    | Annotated[Formula, Tag("expression")],
    Discriminator(_bound_kind),
]
"""A bound, or an expression with a value for each combination of the parameters that it uses."""

DURATION = "duration"
"""Name of the experiment's traffic time in expressions, unless a parameter has this name."""
FORMS = ("between", "at_least", "at_most", "equals", "within")
"""Keys of an expectation that bound the value; exactly one of them is given."""
LOOSE_FACTOR = 3.0
"""Ratio of the upper to the lower bound above which a bound is loose: a value within it proves little."""
BOUND_KEYS = ("predicted", *FORMS, "possible")
"""Keys of an expectation that may hold expressions."""


def parse_formula(text: str) -> Expression:
    """Return the expression of a `Formula`. Raise `ExpressionError` if it cannot be parsed."""
    if not text.endswith(")"):
        raise ExpressionError(f'found "{text}", expected a closing bracket after $(')
    return parse_expression(text[2:-1])


class Expectation(Frozen):
    """Bound for a metric of one arm, or for the ratio of two arms. Give exactly one bound; bounds are inclusive."""

    metric: str
    """A metric's name, with a selector or without; docs/reference/metrics.md lists them."""
    arm: Annotated[str, Field(pattern=rf"^{NAME}(/{NAME})?$", max_length=81)]
    """An arm, or `A/B`: the metric of arm A divided by that of arm B, a plain number."""
    predicted: Predicted | None = None
    """Prediction of the model; `reason` explains it. The report shows it next to the published and the measured
    value.
    """
    within: Predicted | None = None
    """Maximum distance from `predicted`: in the metric's unit, or in percent (for shares: in percentage points)."""
    between: tuple[Predicted, Predicted] | None = None
    """Lower and upper bound."""
    at_least: Predicted | None = None
    """Lower bound."""
    at_most: Predicted | None = None
    """Upper bound."""
    equals: Predicted | None = None
    """Exact value."""
    possible: tuple[Predicted, Predicted] | None = None
    """Physical limits; a value outside them is an error in the measurement or the analysis: the run is invalid."""
    where: dict[ParameterName, Scalar | tuple[Scalar, ...]] = Field(default={})
    """Selects cells with these values (or any value of a list) of these parameters; default: all cells of the arm."""
    each: tuple[ParameterName, ...] = ()
    """One expectation for each combination of values of these parameters, and of the parameters of expressions."""
    reason: str = ""
    """Reason for this bound or prediction, for the report."""
    explained: str = ""
    """Possible reason for a published value that contradicts the prediction, for the report."""
    fitted: str = ""
    """Parts of the model that were fitted to this publication: the value does not count as reproduced."""
    unproven: bool = False
    """True if no deliberate mistake violates the bounds. The verdict `loose bounds` does not count as passed."""

    @property
    def selection(self) -> str:
        """`where` for display, and to distinguish values of the same metric: `bucket = 31250 B, connections = 1`."""
        return selection_text(self.where)

    @property
    def arms(self) -> tuple[str, ...]:
        """One arm, or numerator and denominator."""
        return tuple(self.arm.split("/"))

    @property
    def unit(self) -> Unit:
        """The unit of the metric, or `ratio` of two arms. Raise `KeyError` for an unknown metric."""
        return "ratio" if len(self.arms) == 2 else Reference.parse(self.metric).metric.unit

    def in_unit(self, bound: Predicted | None) -> float | None:
        """Convert a bound to `unit`. Raise `QuantityError` if its kind does not fit, `ExpressionError` for an
        expression that is not `resolved`.
        """
        if isinstance(bound, str):
            raise ExpressionError(f"{bound} was not resolved")
        return None if bound is None else as_float(bound, self.unit)

    @property
    def prediction(self) -> float | None:
        """`predicted` in `unit`, else the value of `equals`."""
        return self.in_unit(self.predicted if self.predicted is not None else self.equals)

    @property
    def margin(self) -> float | None:
        """`within` in `unit`. Raise `QuantityError` if its kind does not fit."""
        if isinstance(self.within, Percent) and self.unit != "fraction":
            return None if self.prediction is None else self.prediction * self.within.fraction
        return self.in_unit(self.within)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Lower and upper bound in `unit`, inclusive; None is open. Raise `QuantityError` if a bound's kind does not
        fit.
        """
        if self.between is not None:
            return self.in_unit(self.between[0]), self.in_unit(self.between[1])
        if self.equals is not None:
            return self.in_unit(self.equals), self.in_unit(self.equals)
        if self.prediction is not None and self.margin is not None:
            return self.prediction - self.margin, self.prediction + self.margin
        return self.in_unit(self.at_least), self.in_unit(self.at_most)

    def is_within_bounds(self, measured: float, *, uncertain: float = 0.0) -> bool:
        """Return whether a value in `unit` is within the bounds. A value that is known to ± `uncertain` is within if
        its interval overlaps the bounds.
        """
        least, greatest = self.bounds
        return (least is None or measured + uncertain >= least) and (
            greatest is None or measured - uncertain <= greatest
        )

    @property
    def has_loose_bounds(self) -> bool:
        """True if a value within the bounds proves little: the expectation is `unproven`, the upper bound is more than
        `LOOSE_FACTOR` times the lower one, or every possible value is within, such as at most 100 % of a share.
        """
        if self.unproven:
            return True
        least, greatest = self.bounds
        most = MAXIMA.get(Reference.parse(self.metric).metric.name) if len(self.arms) == 1 else None
        if greatest is None or (most is not None and greatest >= most):
            return least is None or least <= 0
        if least is None:
            return False
        if least <= 0:
            return self.unit == "fraction" and greatest >= 1
        return greatest > LOOSE_FACTOR * least

    def is_possible(self, measured: float) -> bool:
        """Return whether a value in `unit` is physically possible."""
        if self.possible is None:
            return True
        least, greatest = (self.in_unit(each) for each in self.possible)
        return (least is None or measured >= least) and (greatest is None or measured <= greatest)

    @property
    def tolerance(self) -> str:
        """The bounds for display: `93 Mb/s to 95.5 Mb/s`, `at least 1`, `31250 B`."""
        if self.between is not None:
            return " to ".join(format_bound(bound, self.unit) for bound in self.between)
        if self.equals is not None:
            return format_bound(self.equals, self.unit)
        if self.within is not None:
            return " to ".join(format_value(each, self.unit) for each in self.bounds if each is not None)
        if self.at_least is not None:
            return f"at least {format_bound(self.at_least, self.unit)}"
        return f"at most {format_bound(self.at_most, self.unit)}" if self.at_most is not None else ""

    def formulas(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield every expression with its path: a key, or a key and 0 or 1."""
        for key in BOUND_KEYS:
            value = getattr(self, key)
            for place, each in enumerate(value) if isinstance(value, tuple) else ((None, value),):
                if isinstance(each, str):
                    yield (key,) if place is None else (key, place), each

    def evaluate_for(self, values: Mapping[str, Value]) -> Expectation:
        """Return the expectation with its expressions evaluated for these values. Raise `ExpressionError` if one has no
        value.
        """

        def resolve(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(resolve(each) for each in value)
            return parse_formula(value).rounded_value(values) if isinstance(value, str) else value

        return self.model_copy(update={key: resolve(getattr(self, key)) for key in BOUND_KEYS})


Quantities = Mapping[str, Predicted]
"""Quantities of expressions by name, in order: each may use those before it."""


def evaluate_quantities(quantities: Quantities, parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Return the parameters and the quantities by name. Raise `ExpressionError` if one has no value."""
    known = dict(parameters)
    for name, value in quantities.items():
        known[name] = parse_formula(value).rounded_value(known) if isinstance(value, str) else value
    return known


def used_names(expectation: Expectation, quantities: Quantities) -> frozenset[str]:
    """Return the names in the expectation's expressions, including those in the `quantities` that it uses. Raise
    `ExpressionError` for an invalid expression.
    """
    used: dict[str, frozenset[str]] = {}
    for name, value in quantities.items():
        with suppress(ExpressionError):  # another check reports it
            used[name] = parse_formula(value).names if isinstance(value, str) else frozenset()
    taken: set[str] = set()
    fresh = {name for _, text in expectation.formulas() for name in parse_formula(text).names}
    while fresh:
        taken |= fresh
        fresh = {each for name in fresh for each in used.get(name, ())} - taken
    return frozenset(taken)


def expand_expectations(
    expectation: Expectation, quantities: Quantities, cells: Iterable[Parameters]
) -> Iterator[tuple[Expectation, dict[str, Value]]]:
    """Yield the expectation for each combination of its parameters, still with expressions, and all values.

    `cells` are the parameters of the cells of its arm, in the order of the file. Without parameters the expectation is
    yielded once, unchanged. Raise `ExpressionError` for an expression that cannot be parsed.
    """
    names = used_names(expectation, quantities) | {*expectation.each}
    about = matcher(expectation.where)
    seen: set[tuple[Value, ...]] = set()
    for cell in cells:
        chosen = {name: value for name, value in cell.items() if name in names}
        if not about(cell) or tuple(chosen.values()) in seen:
            continue
        seen.add(tuple(chosen.values()))
        where = expectation.where
        if chosen:
            # In the order of the cell's parameters.
            values = {**where, **as_texts(chosen)}
            where = {name: values[name] for name in cell if name in values}
        yield expectation.model_copy(update={"where": where, "each": ()}), chosen


def resolve_expectation(
    expectation: Expectation, quantities: Quantities, cells: Iterable[Parameters], duration: Duration
) -> Iterator[Expectation]:
    """Resolve the expectation: values in place of expressions, by combination of the parameters used."""
    for each, values in expand_expectations(expectation, quantities, cells):
        yield each.evaluate_for(
            evaluate_quantities(needed_quantities(each, quantities), {DURATION: duration, **values})
        )


def needed_quantities(expectation: Expectation, quantities: Quantities) -> Quantities:
    """Return the quantities that the expectation uses: others may depend on a parameter that its arm lacks."""
    taken = used_names(expectation, quantities)
    return {name: value for name, value in quantities.items() if name in taken}


def selection_text(where: Mapping[str, Scalar | tuple[Scalar, ...]]) -> str:
    """Describe the selected cells; empty for all."""

    def words(value: Scalar | tuple[Scalar, ...]) -> str:
        values = value if isinstance(value, tuple) else (value,)
        return " or ".join(show_value(read_value(each)) for each in values)

    return ", ".join(f"{name} = {words(value)}" for name, value in where.items())


_LONG = 6
"""Minimum number of digits of a quantity to be rounded for display: it was calculated."""


def format_bound(bound: Predicted, unit: Unit) -> str:
    """Format a bound for display as in the file; a calculated one with four digits."""
    if isinstance(bound, int | float):
        return format_value(bound, unit)
    text = str(bound)
    calculated = sum(each.isdigit() for each in text) >= _LONG and isinstance(bound, Quantity)
    return format_value(as_float(bound, unit), unit) if calculated and not isinstance(bound, str) else text
