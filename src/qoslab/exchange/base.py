"""Interface of an export format, and its atomic output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qoslab.analysis import Outcome
from qoslab.errors import UserError
from qoslab.exchange.attribution import check_signed
from qoslab.results import RunFolder
from qoslab.results.file_access import drafted


@dataclass(frozen=True)
class ExportRequest:
    """A run that is written in another format."""

    folder: RunFolder
    outcome: Outcome
    """Outcome of the same run: its tables are as fresh as it."""
    licence: str = ""
    """SPDX identifier of the licence of the results; empty if not given."""
    authors: tuple[str, ...] = ()
    """`NAME`, or `NAME <ORCID or address of a page>`."""


@dataclass(frozen=True)
class Export:
    """A format: its word on the command line, what it makes, and who makes it."""

    name: str
    help: str
    ending: str
    """Ending of the default name."""
    write: Callable[[ExportRequest, Path], None]
    """Write the run to a place if nothing is: a file or a folder, as the format has it."""
    signed: bool = False
    """True if it has a place for a licence and authors."""


def write_export(export: Export, request: ExportRequest, to: Path) -> Path:
    """Write a run in a format; `to` is there afterwards, whole, or as before.

    `UserError` if something is there, and for a licence or an author that cannot be read.
    """
    check_signed(request.licence, request.authors)
    with whole(to) as draft:
        export.write(request, draft)
    return to


@contextmanager
def whole(to: Path) -> Iterator[Path]:
    """A place for a file or folder that is named `to` in the end. `UserError` if something is there already."""
    if to.exists() or to.is_symlink():
        what = "an existing folder" if to.is_dir() else "an existing file"
        raise UserError(f"{to}: found {what}, expected none", hint="name another place with --to")
    with drafted(to) as draft:
        yield draft
