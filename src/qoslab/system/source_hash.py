"""Hash of source files, which identifies the code of a measurement and the code that read a run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Set
from pathlib import Path


def list_files(top: Path, without: Set[str] = frozenset()) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder with their relative paths, in a fixed order, except in the folders `without`."""
    for folder, below, names in os.walk(str(top)):
        inner = folder[len(str(top)) + 1 :]
        below[:] = sorted({*below} - {"__pycache__", *(() if inner else without)})
        yield from ((f"{inner}/{name}" if inner else name, Path(folder, name)) for name in sorted(names))


def hash_files(files: Iterable[tuple[str, Path]]) -> str:
    """Return the SHA-256 of files and their names, in hex."""
    digest = hashlib.sha256()
    for name, path in files:
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
