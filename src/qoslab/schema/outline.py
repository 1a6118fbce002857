"""Unchecked contents of an experiment file: names, titles, arms, and the parameters of its matrices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from qoslab.model.expressions import read_value
from qoslab.model.matrix import Matrix, Scalar
from qoslab.model.units import QuantityError
from qoslab.schema.document import read_document


@dataclass(frozen=True)
class Outline:
    """Outline of a file that may be invalid."""

    arms: dict[str, str]
    """Titles by name of the arm; a title may be empty."""
    parameters: dict[str, tuple[str, ...]]
    """Values of each parameter, as in names of cells: those of all arms, including values whose cells a constraint
    excludes.
    """


def read_outline(path: Path) -> Outline:
    """Read the outline of a file, and skip invalid arms and matrices. Raise `ExperimentError` if it is not YAML."""
    data = read_document(path).data
    top = data if isinstance(data, dict) else {}
    found = top.get("arms")
    arms = [arm for arm in (found if isinstance(found, list) else ()) if isinstance(arm, dict)]
    values: dict[str, dict[str, None]] = {}
    for each in (top, *arms):
        for name, text in _matrix_values(each.get("matrix")):
            values.setdefault(name, {})[text] = None
    return Outline(
        {str(arm["name"]): str(arm.get("title") or "") for arm in arms if "name" in arm},
        {name: tuple(texts) for name, texts in values.items()},
    )


def _matrix_values(raw: Any) -> Iterator[tuple[str, str]]:
    """Yield the values of a matrix, including those of `include`."""
    try:
        matrix = Matrix.model_validate_json(json.dumps(raw), by_alias=True, by_name=False)
    except (ValidationError, TypeError, ValueError):
        return
    entries: list[Mapping[str, Scalar | tuple[Scalar, ...]]] = [matrix.parameters, *matrix.include]
    for entry in entries:
        for name, given in entry.items():
            for value in given if isinstance(given, tuple) else (given,):
                try:
                    yield name, str(read_value(value))
                except QuantityError:
                    continue
