"""Seals of written files, so that a reader can detect changes.

`cell.json` names every file of its cell with size, lines and SHA-256, and `manifest.json` every `cell.json`. Both begin
with a separate line that has the SHA-256 of the rest of the file. A seal detects damage: an incomplete copy, a full
disk, a loss of power, or an edit by hand. Anybody with write access to a run folder can reseal it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

CELL_RECORD = "cell.json"
CRATE = "ro-crate-metadata.json"
"""Metadata file of an RO-Crate in a run's folder; it lists every file with its SHA-256."""
MOST_BYTES = 4 * 2**30
"""Maximum size of a file that is compared with its seal; files of cells are never larger."""
_TEXT = frozenset({".json", ".jsonl", ".txt", ".ios", ".tc", ".err", ".yml", ".csv"})
"""Suffixes of text files, which have lines."""
_BLOCK = 2**20


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


def seal_of(path: Path) -> FileSeal:
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
    return {name: seal_of(path) for name, path in sorted(files_below(folder))}


def content_difference(name: str, content: bytes, written: FileSeal) -> str:
    """Return the difference of a file's content from its seal, as `difference` does."""
    found = seal_of_content(content, text=written.lines is not None)
    return _difference(name, found, written)


def difference(path: Path, name: str, written: FileSeal) -> str:
    """Return the difference of a file from its seal, in words; empty if there is none."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            return f"{name}: {written.size} were written, {size} bytes are there"
        found = seal_of(path)
    except FileNotFoundError:
        return f"{name} is missing; it had {written.size}"
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
    return f"{name}: {written.size} were written, {found.size} are there"


def differences(folder: Path, written: Mapping[str, FileSeal]) -> Iterator[str]:
    """Yield the differences of a cell's files from their seals: truncated, changed, missing and added files."""
    there = dict(files_below(folder))
    for name, seal in written.items():
        # A name that leads out of the folder is not a file of the cell.
        if name in there:
            if damage := difference(there[name], name, seal):
                yield damage
        else:
            yield f"{name} is missing; it had {seal.size}"
    for name in sorted(there.keys() - written.keys()):
        yield f"{name} was not written by the run"
