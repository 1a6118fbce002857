"""Interface of an export format, with atomic output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qoslab.analysis import Outcome
from qoslab.errors import UserError
from qoslab.exchange.attribution import check_licence
from qoslab.results import RunFolder
from qoslab.results.file_access import draft_path


@dataclass(frozen=True)
class ExportRequest:
    """Request to export a run."""

    folder: RunFolder
    outcome: Outcome
    """Outcome of the same run, computed together with its tables."""
    licence: str = ""
    """SPDX identifier of the licence of the results; empty if not given."""
    authors: tuple[str, ...] = ()
    """`NAME`, or `NAME <ORCID or address of a page>`."""


@dataclass(frozen=True)
class Export:
    """An export format: its name on the command line, its description and its function."""

    name: str
    help: str
    ending: str
    """Suffix of the default name."""
    write: Callable[[ExportRequest, Path], None]
    """Function that writes the run to a path that does not exist: a file or a folder, depending on the format."""
    signed: bool = False
    """True if the format has a licence and authors."""


def write_export(export: Export, request: ExportRequest, to: Path) -> Path:
    """Write a run in a format. Afterwards `to` is complete, or unchanged on failure.

    Raise `UserError` if `to` exists, and for an invalid licence or author.
    """
    check_licence(request.licence, request.authors)
    with write_atomically(to) as draft:
        export.write(request, draft)
    return to


@contextmanager
def write_atomically(to: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `to` at the end. Raise `UserError` if `to` exists."""
    if to.exists() or to.is_symlink():
        what = "an existing folder" if to.is_dir() else "an existing file"
        raise UserError(f"{to}: found {what}, expected none", hint="choose another path with --to")
    with draft_path(to) as draft:
        yield draft
