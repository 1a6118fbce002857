"""Writing of files of a run folder: atomic, and synced."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from itertools import takewhile
from pathlib import Path

from qoslab.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SYNCS = 8
"""Number of files that are synced at a time: a file system commits concurrent syncs in one transaction of its journal,
so that a cell costs little more than a single file.
"""


class Disk:
    """Operations that change a run folder. All files of the package are written through this class, so that a test can
    simulate failures.
    """

    def create(self, path: Path, content: bytes) -> None:
        """Create a file. Raise `FileExistsError` if it exists."""
        with path.open("xb") as handle:
            handle.write(content)

    def append(self, path: Path, content: bytes) -> None:
        """Append to a file, which is created if missing."""
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
        """Rename a file or a folder, replacing a file with the new name."""
        old.rename(new)


DISK = Disk()


class WriteError(UserError):
    """Error for a file or folder that cannot be written."""

    def __init__(self, message: str, *, hint: str = "", path: Path = Path(), reason: OSError | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.reason = reason or OSError(message)
        """Error of the file system."""


@contextmanager
def convert_write_errors(path: Path, *, in_run: bool = True) -> Iterator[None]:
    """Convert an `OSError` from writing `path` into a `WriteError`, with a hint on the state of the files.

    Without `in_run` the hint does not refer to files of a run: `path` is written as a whole or stays unchanged.
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
            return f"cannot be written: {error.filename} is not a folder", ""
        hint = "run folders are written once; start a new run" if in_run else "choose another path"
        return "found an existing file, expected none", hint
    # A library may give its own text, or no error number.
    why = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _FULL:
        left = f"the files written earlier stay in {path.parent}" if in_run else "it is unchanged"
        return f"cannot be written, the disk is full ({why})", f"{left}; free some space and run again"
    return f"cannot be written: {why}", "the files written earlier stay" if in_run else ""


@contextmanager
def create_folder(folder: Path) -> Iterator[None]:
    """Create a folder if it is missing; if the block fails, remove the folders that were created."""
    made = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in made:
            # Another process may have created a file there.
            with suppress(OSError):
                each.rmdir()
        raise


def write_once(path: Path, content: bytes) -> None:
    """Write a file that is never changed. Raise `UserError` if it exists. The file is synced later, with its folder."""
    with convert_write_errors(path):
        try:
            try:
                DISK.create(path, content)
            except FileNotFoundError:  # seldom: most folders get several files
                path.parent.mkdir(parents=True, exist_ok=True)
                DISK.create(path, content)
        except FileExistsError:
            raise
        except OSError:
            # An incomplete file would be mistaken for a complete one.
            path.unlink(missing_ok=True)
            raise


def append(path: Path, content: bytes) -> None:
    """Append to a file that grows while a cell runs."""
    with convert_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        DISK.append(path, content)


def is_special_file(path: Path) -> bool:
    """Return whether `path` is a special file such as a pipe or a terminal, which `replace` writes to directly."""
    return path.exists() and not path.is_file()


def replace(path: Path, content: bytes, *, private: bool = False, in_run: bool = True) -> None:
    """Write or replace a file atomically: the old file remains until the new one is complete and synced.

    Only its owner may read a `private` file; `in_run` is that of `writing`. A special file such as a pipe or a terminal
    is written to directly.
    """
    # The thread's ID is unique among the threads of all processes.
    draft = path.with_name(f".{path.name}.{threading.get_native_id()}.draft")
    with convert_write_errors(path, in_run=in_run):
        if is_special_file(path):
            DISK.append(path, content)
            return
        with create_folder(path.parent):
            draft.unlink(missing_ok=True)  # left by a killed thread with the same ID
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
def draft_path(to: Path) -> Iterator[Path]:
    """Yield a path for a file or folder that is renamed to `to` at the end of the block, or discarded if the block
    fails.
    """
    with draft_folder(to) as place:
        draft = place / "draft"
        yield draft
        draft.rename(to)


@contextmanager
def fill_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder with contents that are moved to an existing empty folder at the end of the block, all of them or
    none.
    """
    # The folder itself stays: it may be a working directory, a mount point, or the target of a link.
    with convert_write_errors(folder, in_run=False), tempfile.TemporaryDirectory(dir=folder, prefix=".draft.") as name:
        place = Path(name)
        yield place
        moved: list[Path] = []
        try:
            for each in sorted(place.iterdir()):
                if os.path.lexists(folder / each.name):  # created by another process since the check
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
    """Yield a temporary folder next to `to` for drafts; it is removed with its remaining contents after the block.

    A `WriteError` within the folder is raised for `to`, since users do not know the draft's path and nothing of it is
    kept.
    """
    with (
        convert_write_errors(to, in_run=False),
        create_folder(to.parent),
        tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.") as name,
    ):
        place = Path(name)
        try:
            yield place
        except WriteError as error:
            if place not in error.path.parents:
                raise
            raise error.reason from error


def sync_folder(top: Path) -> None:
    """Sync a folder with all its contents: files, and the folders that contain them."""
    with convert_write_errors(top):
        _sync(Path(folder, name) for folder, _, names in os.walk(top) for name in ("", *names))


def sync_names(path: Path, count: int) -> None:
    """Sync this number of parent folders of `path`, so that their names and its own survive a power failure."""
    with convert_write_errors(path):
        _sync(list(path.parents)[:count])


def _sync(paths: Iterable[Path]) -> None:
    synced = [_sync_threads().submit(DISK.sync, path) for path in paths]
    wait(synced)
    for each in synced:
        each.result()


@cache
def _sync_threads() -> ThreadPoolExecutor:
    """Return the threads of this process that sync, since starting them for each cell takes longer than syncing."""
    return ThreadPoolExecutor(SYNCS, thread_name_prefix="sync")


# Threads do not exist in a forked process.
os.register_at_fork(after_in_child=_sync_threads.cache_clear)
