"""What stands in an experiment file, unchecked: its arms, and the parameters of its matrices with their values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from qoslab.model.expressions import read_value
from qoslab.model.matrix import Matrix, Scalar
from qoslab.schema.document import read_document
from qoslab.units import QuantityError


@dataclass(frozen=True)
class Outline:
    """Of a file that need not hold."""

    arms: dict[str, str]
    """Titles, which may be empty, by name."""
    parameters: dict[str, tuple[str, ...]]
    """Values as cells are named by them; of all arms, and also those of which a constraint leaves no cell."""


def read_outline(path: Path) -> Outline:
    """Read a file. `ExperimentError` where it is not YAML; whatever is no arm and no matrix in it is left out."""
    data = read_document(path).data
    top = data if isinstance(data, dict) else {}
    found = top.get("arms")
    arms = [arm for arm in (found if isinstance(found, list) else ()) if isinstance(arm, dict)]
    values: dict[str, dict[str, None]] = {}
    for each in (top, *arms):
        for name, text in _values(each.get("matrix")):
            values.setdefault(name, {})[text] = None
    return Outline(
        {str(arm["name"]): str(arm.get("title") or "") for arm in arms if "name" in arm},
        {name: tuple(texts) for name, texts in values.items()},
    )


def _values(raw: Any) -> Iterator[tuple[str, str]]:
    """The values of a matrix and of what is run beside it."""
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
