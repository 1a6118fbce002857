"""Files that an experiment names: templates and published values. They are read only from allowed folders.

Users run experiments of other authors, who must not read the users' files. Therefore a named file must be below the
folder of the experiment, with links resolved. In a project, whose experiments are in a folder called `experiments`, it
may be anywhere in that folder or in the `reports/published` next to it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from qoslab.errors import UserError

SIZE_LIMIT = 2**18
"""Maximum bytes of a file that an experiment names; the largest of this repository has 30 000."""


class FileRefusedError(UserError):
    """A file that must not be read. The message has the reason, but no contents of the file."""


def allowed_folders(experiment_file: Path) -> tuple[Path, ...]:
    """Return the folders, with links resolved, that may contain an experiment's files."""
    folder = experiment_file.parent.resolve()
    for around in (folder, *folder.parents):
        if around.name == "experiments":
            return around, (around.parent / "reports" / "published").resolve()
    return (folder,)


def normalise_path(path: Path) -> Path:
    """Normalise a path for messages, without `..` in the middle."""
    return Path(os.path.normpath(path))


def path_refusal(path: Path, allowed: tuple[Path, ...]) -> str:
    """Return the reason for refusing to read a path; empty if it is allowed. The reason does not reveal whether the
    file exists.
    """
    try:
        inside = any(path.resolve().is_relative_to(root) for root in allowed)
    except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL
        inside = False
    return "" if inside else f"expected a file below {' or '.join(map(str, allowed))}, after following links"


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raise `FileRefusedError` for anything else, `OSError` if it cannot be opened."""
    # Do not block on a FIFO.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FileRefusedError("it is not a regular file")
    return file


def read_bytes(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes. Raise `FileRefusedError` for anything else, `OSError` if it cannot
    be read.
    """
    with open_regular(path) as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise FileRefusedError(f"it has more than {limit} bytes")
    return raw


def read_text(path: Path, allowed: tuple[Path, ...], limit: int = SIZE_LIMIT) -> str:
    """Return the text of a file that an experiment names. Raise `FileRefusedError` with the reason if it cannot be
    read.
    """
    if why := path_refusal(path, allowed):
        raise FileRefusedError(f"it is outside the project: {why}")
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileRefusedError("not text in UTF-8") from error
    except OSError as error:
        raise FileRefusedError(error.strerror or "it cannot be read") from error
    except ValueError as error:
        raise FileRefusedError("its name is not a path") from error


MAX_VALUES = 8_000_000
"""Maximum number of values in a JSON file that is read as a whole: Python needs up to a hundred bytes for each."""


def check_values(path: Path | str, text: bytes) -> None:
    """Raise `FileRefusedError` if a JSON text may have more values than any record of a run."""
    # An upper limit: each value except the first of a list follows a comma, and each list or object has its bracket.
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > MAX_VALUES:
        raise FileRefusedError(f"{path}: found {values} commas and brackets, expected at most {MAX_VALUES}")
