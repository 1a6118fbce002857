"""`$(NAME)` and `$(EXPRESSION)` in an experiment file: their places, and their replacement by values.

A text that consists of a single placeholder becomes the value itself: a quantity, a number, a truth value. Within a
longer text the value is formatted. `$$(` stands for `$(`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qoslab.errors import Finding
from qoslab.model.expectations import BOUND_KEYS
from qoslab.model.expressions import Expression, ExpressionError, Value, parse_expression, show_value
from qoslab.model.units import Quantity
from qoslab.schema.document import Document, Step, Steps

_PLACEHOLDER = re.compile(r"\$?\$\(")

KEYS_WITHOUT_PLACEHOLDERS = frozenset(
    {"name", "title", "description", "matrix", "compare", "arms", "order", "repetitions"}
)
"""Keys of the file that are common to all cells. Each arm has its own context."""


@dataclass(frozen=True)
class Placeholder:
    """A value of the file with a part that depends on the cell."""

    steps: Steps
    parts: tuple[str | Expression, ...]
    """Text and expressions, alternating."""

    @property
    def names(self) -> frozenset[str]:
        """The names that it uses."""
        return frozenset(name for part in self.parts if isinstance(part, Expression) for name in part.names)

    def value(self, values: Mapping[str, Value]) -> str | int | float | bool:
        """Return the value as written in a file. Raise `ExpressionError` if it has none."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Expression):
            found = self.parts[0].evaluate(values)
            if isinstance(found, Quantity):
                if "variables" in self.steps:
                    units = {"rate": "b/s", "size": "B", "duration": "ms", "percentage": "%"}[found.KIND]
                    raise ExpressionError(
                        f"found the {found.KIND} {found} for a variable of a template, expected a plain number",
                        hint=f"write $({self.parts[0].text} in {units})",
                    )
                return str(found)
            return found
        return "".join(
            show_value(part.evaluate(values)) if isinstance(part, Expression) else part for part in self.parts
        )


def find_placeholders(document: Document) -> tuple[dict[Steps, Placeholder], list[Finding]]:
    """Return all placeholders of a file by their place, and findings about invalid ones."""
    found: dict[Steps, Placeholder] = {}
    findings: list[Finding] = []
    for steps, text in _string_values(document.data, ()):
        if "$(" not in text:
            continue
        if _is_comparison_value(steps):
            continue
        if not steps or _is_common_to_cells(steps):
            findings.append(document.finding(steps, "found $(…) in a value that is the same for all cells"))
            continue
        try:
            parts = tuple(_split_text(text))
        except ExpressionError as error:
            findings.append(document.finding(steps, error.message, error.hint))
            continue
        found[steps] = Placeholder(steps, parts)
    return found, findings


def _is_comparison_value(steps: Steps) -> bool:
    """Return whether a value of the comparison is at this place: it is calculated for each cell, not filled in."""
    return steps[:2] == ("compare", "quantities") or (
        steps[:2] == ("compare", "expectations") and steps[3:4] in {(key,) for key in BOUND_KEYS}
    )


def _is_common_to_cells(steps: Steps) -> bool:
    if steps[0] == "arms":
        return steps[2:3] in (("name",), ("title",), ("matrix",))
    return steps[0] in KEYS_WITHOUT_PLACEHOLDERS


def _string_values(value: Any, steps: Steps) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _string_values(inner, (*steps, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _string_values(inner, (*steps, index))
    elif isinstance(value, str):
        yield steps, value


def _split_text(text: str) -> Iterator[str | Expression]:
    position = 0
    plain = ""
    while found := _PLACEHOLDER.search(text, position):
        plain += text[position : found.start()]
        if found[0] == "$$(":
            plain += "$("
            position = found.end()
            continue
        end = _find_closing_brace(text, found.end())
        if plain:
            yield plain
        plain = ""
        yield parse_expression(text[found.end() : end])
        position = end + 1
    plain += text[position:]
    if plain:
        yield plain


def _find_closing_brace(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    raise ExpressionError(f'found "{text}", expected a closing bracket after $(')


def fill_placeholders(
    value: Any, steps: Steps, placeholders: Mapping[Steps, Placeholder], values: Callable[[Steps], Mapping[str, Value]]
) -> Any:
    """Return the value at `steps` with all its placeholders replaced; `values` returns the known values at a place.

    Raise `ExpressionError` if a placeholder has no value.
    """
    if isinstance(value, dict):
        return {key: fill_placeholders(inner, (*steps, key), placeholders, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill_placeholders(inner, (*steps, index), placeholders, values) for index, inner in enumerate(value)]
    placeholder = placeholders.get(steps)
    return value if placeholder is None else placeholder.value(values(steps))


def fill_path(steps: Steps) -> tuple[Step, ...]:
    """Return the path of the part of the file that is filled in as a whole: a key of the file, or one arm."""
    return steps[:2] if steps[0] == "arms" else steps[:1]
