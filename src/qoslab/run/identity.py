"""Identity of the measuring code: hashes of qoslab's own programs and sources, since a version may stay the same."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from qoslab import __version__
from qoslab.errors import MachineError
from qoslab.system.programs import OWN_PROGRAMS, find_own_program, program_variable
from qoslab.system.shipped import shipped_path
from qoslab.system.source_hash import hash_files, list_files

READERS = ("analysis", "cli", "report")
"""Packages that only read results, except `RESULT_DEFINING_PACKAGES`; each report computes their values again."""
RESULT_DEFINING_PACKAGES = frozenset(
    f"analysis/{name}.py"
    for name in (
        "conservation",
        "counter_files",
        "kernel_counters",
        "class_lines",
        "show_policy_rows",
        "raw",
        "show_readings",
        "tree_counters",
    )
)
"""Modules of these packages that decide if a finished cell is valid, which is saved with the cell."""
SHORT_HASH_DIGITS = 16
"""Number of hex digits that distinguish programs and sources for people."""


def _source_files() -> Iterator[tuple[str, Path]]:
    for inner, path in list_files(Path(__file__).resolve().parents[1], {"data"}):
        if inner.split("/")[0] not in READERS or inner in RESULT_DEFINING_PACKAGES:
            yield f"qoslab/{inner}", path
    yield from ((f"playbooks/{inner}", path) for inner, path in list_files(shipped_path("playbooks")))


@functools.cache
def hash_sources() -> str:
    """Return the SHA-256 of all files of the package and the playbooks that affect results, in hex; read once."""
    return hash_files(_source_files())


def hash_program(name: str) -> str:
    """Return the SHA-256 of one of qoslab's own programs, in hex; empty if it is missing."""
    try:
        path = find_own_program(name)
        stat = path.stat()
    except (MachineError, OSError):
        return ""
    return _file_digest(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=32)
def _file_digest(path: Path, changed_ns: int, size: int) -> str:
    """Return the digest of a file; the file is read again if it was written again."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def software_line(programs: Collection[str]) -> str:
    """Return version, sources and programs in one line; equal lines mean that results come from the same code."""
    words = [__version__, f"sources {hash_sources()[:SHORT_HASH_DIGITS]}"]
    return ", ".join(
        [*words, *(f"{name} {hash_program(name)[:SHORT_HASH_DIGITS] or 'missing'}" for name in sorted(programs))]
    )


def identity_facts(programs: Collection[str]) -> dict[str, str]:
    """Return hashes and the programs named by environment variables, for the manifest."""
    found = {"qoslab, sources": f"SHA-256 {hash_sources()}"}
    found |= {f"{name}, program": f"SHA-256 {hash_program(name)}" for name in sorted(programs) if hash_program(name)}
    variables = {program_variable(name) for name in OWN_PROGRAMS} & os.environ.keys()
    found |= {variable: os.environ[variable] for variable in sorted(variables)}
    return found
