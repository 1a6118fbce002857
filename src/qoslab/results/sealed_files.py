"""Files of a run, for readers: limits of size, checksums, and records.

`cell.json` names every file of its cell with size, lines and SHA-256, and `manifest.json` every `cell.json`. Both begin
with a separate line that has the SHA-256 of the rest of the file. A seal detects damage: an incomplete copy, a full
disk, a loss of power, or an edit by hand. Anybody with write access to a run folder can reseal it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from qoslab.errors import DamageError, UserError
from qoslab.model.comparison import PublishedValue
from qoslab.model.experiment import Experiment
from qoslab.model.limits import quantities_above_limits
from qoslab.model.reference_names import unknown_names, unknown_published_metrics
from qoslab.schema.named_files import check_values
from qoslab.system.printing import one_line

CELL_RECORD = "cell.json"
CRATE = "ro-crate-metadata.json"
"""Metadata file of an RO-Crate in a run's folder; it lists every file with its SHA-256."""
MOST_BYTES = 4 * 2**30
"""Maximum size of a file that is compared with its seal; files of cells are never larger."""
_TEXT = frozenset({".json", ".jsonl", ".txt", ".ios", ".tc", ".err", ".yml", ".csv"})
"""Suffixes of text files, which have lines."""
_BLOCK = 2**20
FORMAT = 3
"""Version of the run folder's layout and records. A reader refuses every other version."""
RECORD_MOST = 16 * 2**20
"""Maximum size of a cell's record, in bytes."""
MANIFEST_MOST = 512 * 2**20
TEXT_MOST = 256 * 2**20
"""Maximum size of any other file that is read as a whole, in bytes."""

_SEAL = re.compile(rb'\A\{\n  "seal": "([0-9a-f]{64})",\n')

_R = TypeVar("_R", bound=BaseModel)


def read_bytes(path: Path, most: int) -> bytes:
    """Return the content of a file of a run. Raise `UserError` if it cannot be read or is larger than `most` bytes."""
    try:
        with path.open("rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            # The buffer has the requested size.
            content = handle.read(size) if size <= most else b""
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", hint="is this a complete run folder?") from error
    if size > most:
        message = f"{path}: found {size} bytes, expected at most {most}"
        raise UserError(message, hint="a run never writes a file of this size; it was changed")
    return content


def read_text(path: Path, most: int) -> str:
    """Return the text of a file, with invalid UTF-8 replaced."""
    return as_text(read_bytes(path, most))


def as_text(content: bytes) -> str:
    """Return bytes as text with Unix line ends, with invalid UTF-8 replaced."""
    return content.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")


class FileSeal(BaseModel):
    """Checksum and size of a written file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int = Field(ge=0)
    lines: int | None = None
    """Number of lines of a text."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @property
    def size(self) -> str:
        """Size in words."""
        words = f"{self.bytes} byte" + ("" if self.bytes == 1 else "s")
        return words if self.lines is None else f"{self.lines} line" + ("" if self.lines == 1 else "s") + f" ({words})"


def compute_seal(path: Path) -> FileSeal:
    """Return the seal of a file in its present state. Raise `OSError` if it cannot be read."""
    digest = hashlib.sha256()
    size = lines = 0
    with path.open("rb") as handle:
        while block := handle.read(_BLOCK):
            digest.update(block)
            size += len(block)
            lines += block.count(b"\n")
    return FileSeal(bytes=size, lines=lines if path.suffix in _TEXT else None, sha256=digest.hexdigest())


def seal_of_content(content: bytes, *, text: bool = False) -> FileSeal:
    """Return the seal of a file with this content."""
    lines = content.count(b"\n") if text else None
    return FileSeal(bytes=len(content), lines=lines, sha256=hashlib.sha256(content).hexdigest())


def files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield every file in a cell's folder except its record: the name within the folder, with `/`, and the path."""
    top = len(str(folder)) + 1
    for around, _, names in os.walk(str(folder)):
        for name in names:
            inner = f"{around}/{name}"[top:]
            if inner != CELL_RECORD:
                yield inner, folder / inner


def seals(folder: Path) -> dict[str, FileSeal]:
    """Return the seals of a cell's files, sorted by their names within the folder."""
    return {name: compute_seal(path) for name, path in sorted(files_below(folder))}


def content_difference(name: str, content: bytes, written: FileSeal) -> str:
    """Return the difference of a file's content from its seal, as `difference` does."""
    found = seal_of_content(content, text=written.lines is not None)
    return _difference(name, found, written)


def difference(path: Path, name: str, written: FileSeal) -> str:
    """Return the difference of a file from its seal, in words; empty if there is none."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            return f"{name}: found {size} bytes, expected {written.size}"
        found = compute_seal(path)
    except FileNotFoundError:
        return f"{name} is missing; its recorded size is {written.size}"
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"
    return _difference(name, found, written)


def _difference(name: str, found: FileSeal, written: FileSeal) -> str:
    if found.sha256 == written.sha256:
        return ""
    if found.bytes == written.bytes:
        return (
            f"{name}: found content that was changed after the run, in {found.size} "
            f"(SHA-256 {found.sha256[:12]}…, expected {written.sha256[:12]}…)"
        )
    return f"{name}: found {found.size}, expected {written.size}"


def differences(folder: Path, written: Mapping[str, FileSeal]) -> Iterator[str]:
    """Yield the differences of a cell's files from their seals: truncated, changed, missing and added files."""
    there = dict(files_below(folder))
    for name, seal in written.items():
        # A name that leads out of the folder is not a file of the cell.
        if name in there:
            if damage := difference(there[name], name, seal):
                yield damage
        else:
            yield f"{name} is missing; its recorded size is {seal.size}"
    for name in sorted(there.keys() - written.keys()):
        yield f"{name} was not written by the run"


def record_json(record: BaseModel) -> bytes:
    """Return a record as JSON text, without its seal."""
    return (record.model_dump_json(indent=2) + "\n").encode()


def add_seal(text: bytes) -> bytes:
    """Return a JSON object in pydantic's layout, with its SHA-256 added as the first line."""
    assert text.startswith(b"{\n  ")
    return b'{\n  "seal": "' + hashlib.sha256(text).hexdigest().encode() + b'",\n' + text[2:]


def split_seal(content: bytes) -> tuple[bytes, bool]:
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
    return parse_record(kind, str(path), read_bytes(path, most), versioned=versioned)


def parse_record(kind: type[_R], label: str, content: bytes, *, versioned: bool = False) -> _R:
    """Return the record from the content of a file, as `read_record`; `label` names the file in messages."""
    check_values(label, content)
    text = _check_and_remove_seal(label, content)
    if versioned:
        _check_version(label, text)
    return _validate_record(kind, label, text)


def parse_experiment(label: str, content: bytes) -> Experiment:
    """Return the experiment in a cell's file. Raise `UserError` if it could not have been run."""
    check_values(label, content)
    found = _validate_record(Experiment, label, content)
    check_experiment(label, found)
    return found


def _validate_record(kind: type[_R], label: str, text: bytes) -> _R:
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


def check_experiment(label: str, experiment: Experiment, published: Iterable[PublishedValue] = ()) -> None:
    """Raise `UserError` for content that would have been refused in an experiment's file."""
    for steps, problem in (
        *quantities_above_limits(experiment),
        *unknown_names(experiment),
        *unknown_published_metrics(published),
    ):
        message = one_line(f"{'.'.join(map(str, steps))}: {problem}")
        raise UserError(f"{label}: {message}", hint="the file was changed or damaged")


def _check_and_remove_seal(label: str, content: bytes) -> bytes:
    """Return a record without its seal. Raise `DamageError` if the seal does not match, `UserError` for
    another format.
    """
    text, whole = split_seal(content)
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
