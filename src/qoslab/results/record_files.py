"""JSON files of a run folder: sealed, of a common format, and without content that experiment files may not have."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from qoslab.errors import DamageError, UserError
from qoslab.model.comparison import PublishedFigure
from qoslab.model.experiment import Experiment
from qoslab.model.limits import beyond
from qoslab.model.reference_names import unknown_names, unknown_published
from qoslab.results.file_access import read_bytes, read_text
from qoslab.results.records import FORMAT
from qoslab.schema.named_files import check_values
from qoslab.system.printing import one_line

RECORD_MOST = 16 * 2**20
"""Maximum size of a cell's record, in bytes."""
MANIFEST_MOST = 512 * 2**20
TEXT_MOST = 256 * 2**20
"""Maximum size of any other file that is read as a whole, in bytes."""

_SEAL = re.compile(rb'\A\{\n  "seal": "([0-9a-f]{64})",\n')

_R = TypeVar("_R", bound=BaseModel)


def json_of(record: BaseModel) -> bytes:
    """Return a record as JSON text, without its seal."""
    return (record.model_dump_json(indent=2) + "\n").encode()


def sealed(text: bytes) -> bytes:
    """Return a JSON object in pydantic's layout, with its SHA-256 added as the first line."""
    assert text.startswith(b"{\n  ")
    return b'{\n  "seal": "' + hashlib.sha256(text).hexdigest().encode() + b'",\n' + text[2:]


def unsealed(content: bytes) -> tuple[bytes, bool]:
    """Return the argument of `sealed`, and whether its seal matches. Content without a seal is returned unchanged, as
    not matching.
    """
    found = _SEAL.match(content)
    if found is None:
        return content, False
    text = b"{\n" + content[found.end() :]
    return text, hashlib.sha256(text).hexdigest().encode() == found[1]


def read_whole(path: Path) -> str:
    """Return the text of any other file of a run. Raise `UserError` if it is too large."""
    return read_text(path, TEXT_MOST)


def read_record(kind: type[_R], path: Path, most: int, *, versioned: bool = False) -> _R:
    """Read a record from a sealed file of at most `most` bytes; a `versioned` record has a format.

    Raise `DamageError` if the file differs from its seal, and `UserError` if it is not a record or has another format.
    """
    return record_of(kind, str(path), read_bytes(path, most), versioned=versioned)


def record_of(kind: type[_R], label: str, content: bytes, *, versioned: bool = False) -> _R:
    """Return the record from the content of a file, as `read_record`; `label` names the file in messages."""
    check_values(label, content)
    text = _unsealed(label, content)
    if versioned:
        _check_version(label, text)
    return _parsed_as(kind, label, text)


def experiment_of(label: str, content: bytes) -> Experiment:
    """Return the experiment in a cell's file. Raise `UserError` if it could not have been run."""
    check_values(label, content)
    found = _parsed_as(Experiment, label, content)
    check_experiment(label, found)
    return found


def _parsed_as(kind: type[_R], label: str, text: bytes) -> _R:
    """Return the record in a text. Raise `UserError` if it is not a record."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        hint = "the file was changed or damaged"
        if first["type"] == "literal_error" and where.endswith(".platform"):
            hint += ", or the package that adds it is not installed"
        # Keys are from the file, and may contain line ends.
        message = one_line(f"{where}: {first['msg']}")
        raise UserError(f"{label}: {message}", hint=hint) from error


def check_experiment(label: str, experiment: Experiment, published: Iterable[PublishedFigure] = ()) -> None:
    """Raise `UserError` for content that would have been refused in an experiment's file."""
    for steps, problem in (*beyond(experiment), *unknown_names(experiment), *unknown_published(published)):
        message = one_line(f"{'.'.join(map(str, steps))}: {problem}")
        raise UserError(f"{label}: {message}", hint="the file was changed or damaged")


def _unsealed(label: str, content: bytes) -> bytes:
    """Return a record without its seal. Raise `DamageError` if the seal does not match, `UserError` for
    another format.
    """
    text, whole = unsealed(content)
    if not whole:
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            _check_format(label, json.loads(text)["format"])  # records of an older version have no seal
        raise DamageError(
            f"{label}: found {len(text)} bytes that do not match the checksum in the first line (SHA-256 of the "
            f"rest): the checksum is missing or wrong",
            hint="copy the run again, if there is another copy; `qoslab run --resume` re-runs the missing cells",
        )
    return text


def _check_format(label: str, found: object) -> None:
    """Raise `UserError` if a record has another format than `FORMAT`."""
    if found != FORMAT:
        newer = isinstance(found, int) and found > FORMAT
        raise UserError(
            f"{label}: found format {found}, expected {FORMAT}",
            hint="a newer qoslab wrote this run; use that version"
            if newer
            else "an older qoslab wrote it; run it again, or use that version for its report",
        )


def _check_version(label: str, text: bytes) -> None:
    """Raise `UserError` if a JSON object has no `format`, or another one than `FORMAT`."""
    try:
        found = json.loads(text)["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{label}: found no format version, expected {FORMAT}", hint="it is not a record of a run"
        ) from error
    _check_format(label, found)
