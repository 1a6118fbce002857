"""Files of a run folder: written whole or not at all, synced, read within bounds."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from qoslab.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SYNCS = 8
"""Files that are synced at a time: a file system writes what comes together with one turn of its journal, so that a
cell costs little more than a single file."""


class Disk:
    """Operations that change a run folder. The only way to the disk for the package's own files, so that a test can
    fail it.
    """

    def create(self, path: Path, content: bytes) -> None:
        """A new file; `FileExistsError` if there is one."""
        with path.open("xb") as handle:
            handle.write(content)

    def append(self, path: Path, content: bytes) -> None:
        """More of a file, which is created if missing."""
        with path.open("ab") as handle:
            handle.write(content)

    def sync(self, path: Path) -> None:
        """Sync a file's content, or a folder's names, so that they survive a power failure."""
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file or a folder another name; a file that has it is replaced."""
        old.rename(new)


DISK = Disk()


class WriteError(UserError):
    """A file or folder that cannot be written."""

    def __init__(self, message: str, *, hint: str = "", path: Path = Path(), reason: OSError | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.reason = reason or OSError(message)
        """Error of the file system."""


@contextmanager
def writing(path: Path, *, in_run: bool = True) -> Iterator[None]:
    """Turn what the file system says against writing `path` into a `WriteError`, which says what is kept.

    Not `kept`: nothing that goes on with it, since it is written whole or stays as it was.
    """
    try:
        yield
    except OSError as error:
        message, hint = _message(error, path, in_run)
        raise WriteError(f"{path}: {message}", hint=hint, path=path, reason=error) from error


def _message(error: OSError, path: Path, in_run: bool) -> tuple[str, str]:
    """Return the message for a path that cannot be written, and the hint."""
    if isinstance(error, FileExistsError):
        if error.filename is not None and Path(error.filename) in path.parents:
            return f"cannot be written: {error.filename} is no folder", ""
        hint = "run folders are written once; start a new run" if in_run else "name another place"
        return "found an existing file, expected none", hint
    # A library may give a text of its own, or nothing else.
    why = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _FULL:
        left = f"the files written before stay in {path.parent}" if in_run else "it is as it was before"
        return f"cannot be written, the disk is full ({why})", f"{left}; free some space and run again"
    return f"cannot be written: {why}", "the files written before stay" if in_run else ""


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """A folder, created if missing; where the block fails, what was made for it goes again."""
    made = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in made:
            # Somebody else may have put something there.
            with suppress(OSError):
                each.rmdir()
        raise


def write_once(path: Path, content: bytes) -> None:
    """Write a file that is never changed; `UserError` if there is one. It is synced with its folder later."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            DISK.create(path, content)
        except FileExistsError:
            raise
        except OSError:
            # A file that is half there would be taken for the whole.
            path.unlink(missing_ok=True)
            raise


def append(path: Path, content: bytes) -> None:
    """Write more of a file that grows while a cell runs."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        DISK.append(path, content)


def no_file(path: Path) -> bool:
    """Return whether there is what `replace` writes to as it is, as a pipe or a terminal."""
    return path.exists() and not path.is_file()


def replace(path: Path, content: bytes, *, private: bool = False, in_run: bool = True) -> None:
    """Write or replace a file: the old one remains until the new one is complete and synced.

    A `private` one only its owner may read; `kept` as in `writing`. What is no file, as a pipe or a terminal, is
    written to as it is.
    """
    # The number of a thread, which no other thread of any process has.
    draft = path.with_name(f".{path.name}.{threading.get_native_id()}.draft")
    with writing(path, in_run=in_run):
        if no_file(path):
            DISK.append(path, content)
            return
        with made_folder(path.parent):
            draft.unlink(missing_ok=True)  # of a thread of that number that was killed
            try:
                if private:
                    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                    DISK.append(draft, content)
                else:
                    DISK.create(draft, content)
                DISK.sync(draft)
                DISK.rename(draft, path)
            finally:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)
        DISK.sync(path.parent)


@contextmanager
def drafted(to: Path) -> Iterator[Path]:
    """A place for a file or folder that is named `to` in the end, whole, or not at all."""
    with draft_folder(to) as place:
        draft = place / "draft"
        yield draft
        draft.rename(to)


@contextmanager
def filled(folder: Path) -> Iterator[Path]:
    """A place for what an empty folder that is there holds in the end: all of it, or nothing."""
    # The folder itself stays: it may be somebody's working directory, a mount point, or be reached by a link.
    with writing(folder, in_run=False), tempfile.TemporaryDirectory(dir=folder, prefix=".draft.") as name:
        place = Path(name)
        yield place
        moved: list[Path] = []
        try:
            for each in sorted(place.iterdir()):
                if os.path.lexists(folder / each.name):  # somebody else's, since we looked
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder / each.name))
                moved.append(each)
                each.rename(folder / each.name)
        except BaseException:
            for each in moved:
                with suppress(OSError):
                    (folder / each.name).rename(each)
            raise


@contextmanager
def draft_folder(to: Path) -> Iterator[Path]:
    """A folder next to `to` for what is named so in the end, which goes with what is left in it.

    `WriteError` of `to` if something in it cannot be written: of a draft nobody heard, and nothing is kept of it.
    """
    with (
        writing(to, in_run=False),
        made_folder(to.parent),
        tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.") as name,
    ):
        place = Path(name)
        try:
            yield place
        except WriteError as error:
            if place not in error.path.parents:
                raise
            raise error.reason from error


def sync_all(top: Path) -> None:
    """Sync a folder with all that is in it: files, and the folders that name them."""
    with writing(top):
        _sync(Path(folder, name) for folder, _, names in os.walk(top) for name in ("", *names))


def sync_names(path: Path, count: int) -> None:
    """Sync so many folders around `path`, so that its name, and theirs, outlast a loss of power."""
    with writing(path):
        _sync(list(path.parents)[:count])


def _sync(paths: Iterable[Path]) -> None:
    with ThreadPoolExecutor(SYNCS, thread_name_prefix="sync") as pool:
        for done in [pool.submit(DISK.sync, path) for path in paths]:
            done.result()


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a file of a run; `UserError` if it cannot be read or is larger than `most` bytes."""
    try:
        with path.open("rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            # A buffer is made as large as what is asked for.
            content = handle.read(size) if size <= most else b""
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", hint="is this a complete run folder?") from error
    if size > most:
        message = f"{path}: found {size} bytes, expected at most {most}"
        raise UserError(message, hint="no run writes a file of this size; it was changed")
    return content


def read_text(path: Path, most: int) -> str:
    """Return the text of a file, with invalid UTF-8 replaced."""
    return as_text(read_bytes(path, most))


def as_text(content: bytes) -> str:
    """Return bytes as text with Unix line ends, with invalid UTF-8 replaced."""
    return content.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
