"""Unchecked contents of an experiment file: names, titles, arms, and the parameters of its matrices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent

from qoslab.errors import UserError
from qoslab.model.expressions import read_value
from qoslab.model.matrix import Matrix, Scalar
from qoslab.model.units import QuantityError
from qoslab.schema.document import DEPTH_LIMIT, SIZE_LIMIT, read_document
from qoslab.schema.named_files import FileRefusedError, read_bytes


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


@dataclass(frozen=True)
class Names:
    """Name, title and arms of a file that may be invalid."""

    name: str
    title: str
    arms: tuple[str, ...]


def read_names(path: Path) -> Names:
    """Read only the names of a file, in a tenth of the time of `read_outline`. Raise `UserError` if it is not YAML."""
    try:
        data = _load_yaml(read_bytes(path, SIZE_LIMIT))
    except (OSError, YAMLError, FileRefusedError, RecursionError, ValueError) as error:
        raise UserError(f"{path}: found no YAML ({error})") from error
    top = data if isinstance(data, dict) else {}
    arms = top.get("arms")
    return Names(
        str(top.get("name") or path.stem),
        str(top.get("title") or ""),
        tuple(
            str(arm["name"])
            for arm in (arms if isinstance(arms, list) else ())
            if isinstance(arm, dict) and "name" in arm
        ),
    )


def _load_yaml(content: bytes) -> Any:
    """Load YAML with the C parser, whose stack would overflow on a file that is nested too deeply."""
    depth = 0
    for event in YAML(typ="safe").parse(content):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEPTH_LIMIT:
            raise ValueError(f"nested more than {DEPTH_LIMIT} deep")
    return YAML(typ="safe").load(content)


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
