"""Identity of the measuring code: hashes of qoslab's own programs and sources, since a version may stay the same."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from qoslab import __version__
from qoslab.errors import MachineError
from qoslab.system.programs import OWN_PROGRAMS, own_program, variable_of
from qoslab.system.shipped import shipped
from qoslab.system.source_hash import files_below, sha256_of

READERS = ("analysis", "cli", "report")
"""Packages that only read results, except for the modules in `DECIDING`; each report computes their values again."""
DECIDING = frozenset(
    f"analysis/{name}.py"
    for name in (
        "conservation",
        "counter_files",
        "kernel_counters",
        "class_lines",
        "observed",
        "raw",
        "show_readings",
        "tree_counters",
    )
)
"""Modules of these packages that decide if a finished cell is valid, which is saved with the cell."""
SHORT = 16
"""Number of hex digits that distinguish programs and sources for people."""


def _sources() -> Iterator[tuple[str, Path]]:
    for inner, path in files_below(Path(__file__).resolve().parents[1], {"data"}):
        if inner.split("/")[0] not in READERS or inner in DECIDING:
            yield f"qoslab/{inner}", path
    yield from ((f"playbooks/{inner}", path) for inner, path in files_below(shipped("playbooks")))


@functools.cache
def sources() -> str:
    """Return the SHA-256 of all files of the package and the playbooks that affect results, in hex; read once."""
    return sha256_of(_sources())


def program(name: str) -> str:
    """Return the SHA-256 of one of qoslab's own programs, in hex; empty if it is missing."""
    try:
        path = own_program(name)
        stat = path.stat()
    except (MachineError, OSError):
        return ""
    return _digest(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=32)
def _digest(path: Path, changed_ns: int, size: int) -> str:
    """Return the digest of a file; the file is read again if it was written again."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def made_with(programs: Collection[str]) -> str:
    """Return version, sources and programs in one line; equal lines mean that results come from the same code."""
    words = [__version__, f"sources {sources()[:SHORT]}"]
    return ", ".join([*words, *(f"{name} {program(name)[:SHORT] or 'missing'}" for name in sorted(programs))])


def facts(programs: Collection[str]) -> dict[str, str]:
    """Return hashes and the programs named by environment variables, for the manifest."""
    found = {"qoslab, sources": f"SHA-256 {sources()}"}
    found |= {f"{name}, program": f"SHA-256 {program(name)}" for name in sorted(programs) if program(name)}
    variables = {variable_of(name) for name in OWN_PROGRAMS} & os.environ.keys()
    found |= {variable: os.environ[variable] for variable in sorted(variables)}
    return found
