"""The JSON files of a run folder: sealed, of one format, with nothing that no experiment may have."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from qoslab.errors import DamageError, UserError
from qoslab.model.comparison import PublishedFigure
from qoslab.model.experiment import Experiment
from qoslab.model.limits import beyond
from qoslab.model.reference_names import unknown_names, unknown_published
from qoslab.results.checksums import unsealed
from qoslab.results.file_access import read_bytes, read_text
from qoslab.results.records import FORMAT
from qoslab.schema.named_files import check_values
from qoslab.system.printing import one_line

RECORD_MOST = 16 * 2**20
"""Bytes of a cell's records."""
MANIFEST_MOST = 512 * 2**20
TEXT_MOST = 256 * 2**20
"""Bytes of any other file that is read as a whole."""

_R = TypeVar("_R", bound=BaseModel)


def json_of(record: BaseModel) -> bytes:
    """Return a record as JSON text, without its seal."""
    return (record.model_dump_json(indent=2) + "\n").encode()


def read_whole(path: Path) -> str:
    """Any other file of a run; `UserError` where it is too large."""
    return read_text(path, TEXT_MOST)


def parsed_as(kind: type[_R], path: Path, text: bytes) -> _R:
    """The record that a file is; `UserError` where it is none."""
    check_values(path, text)
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        hint = "the file was changed or damaged"
        if first["type"] == "literal_error" and where.endswith(".platform"):
            hint += ", or the package that adds it is not installed"
        # Keys are those of the file, and may have line ends.
        said = one_line(f"{where}: {first['msg']}")
        raise UserError(f"{path}: {said}", hint=hint) from error


def check_experiment(path: Path, experiment: Experiment, published: Iterable[PublishedFigure] = ()) -> None:
    """`UserError` for what no experiment may have, since its file is refused before it is run."""
    for steps, told in (*beyond(experiment), *unknown_names(experiment), *unknown_published(published)):
        said = one_line(f"{'.'.join(map(str, steps))}: {told}")
        raise UserError(f"{path}: {said}", hint="the file was changed or damaged")


def read_sealed(path: Path, most: int) -> bytes:
    """A record without its seal; `DamageError` where that does not fit, `UserError` where it has another format."""
    text, whole = unsealed(read_bytes(path, most))
    if not whole:
        check_values(path, text)
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            _check_format(path, json.loads(text)["format"])  # what an older version wrote has no seal
        raise DamageError(
            f"{path}: found {len(text)} bytes that do not match the checksum in the first line (SHA-256 of the "
            f"rest): it is missing or wrong",
            hint="copy the run again, if there is another copy; `qoslab run --resume` re-runs the missing cells",
        )
    return text


def _check_format(path: Path, found: object) -> None:
    """`UserError` where a record has another format than ours."""
    if found != FORMAT:
        newer = isinstance(found, int) and found > FORMAT
        raise UserError(
            f"{path}: found format {found}, expected {FORMAT}",
            hint="a newer qoslab wrote this run; use that one"
            if newer
            else "an older qoslab wrote it; run it again, or use that version for its report",
        )


def formatted(path: Path, text: bytes) -> dict[str, Any]:
    """A JSON object whose `format` is ours; `UserError` otherwise."""
    check_values(path, text)
    try:
        content = json.loads(text)
        found = content["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{path}: found no format version, expected {FORMAT}", hint="it is no record of a run"
        ) from error
    _check_format(path, found)
    return dict(content)
