"""The program `qoslab`, also `python -m qoslab`."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress

# The statuses equal those of `qoslab.errors`, a module that may be unreadable.
USER_MISTAKE, OUR_FAULT, INTERRUPTED = 2, 4, 130
STDOUT = 1

FOLDER = __file__.rpartition("/")[0]
MIN_FILE_BYTES, MIN_DISK_BYTES = 2**20, 16 * 2**20
"""Limit of file sizes, and free space, from which Python may write compiled files. Python 3.11 does not notice a write
that is cut off (python/cpython#126606), and such a file fails at each later import."""
MIN_ADDRESS_SPACE_BYTES = 512 * 2**20
"""Address space. With less, OpenBLAS ends the process with status 1 when NumPy is loaded."""

# OpenBLAS creates a thread and a buffer for each processor when NumPy is loaded. qoslab needs only one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> int:
    """Run the command line (`qoslab.cli`) and return its status; 1 is only used for the verdict of a command."""
    if closed := _closed_descriptors():
        # The next file to be opened would become standard output and receive the printed text.
        for _ in closed:
            os.open(os.devnull, os.O_RDWR)
        if STDOUT in closed:
            _print_error(
                "qoslab: found standard output closed, expected it open; redirect it, for example to /dev/null"
            )
            return USER_MISTAKE
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < MIN_ADDRESS_SPACE_BYTES:
        _print_error(
            f"qoslab: found a memory limit of {limit >> 20} MiB (ulimit -v), expected at least "
            f"{MIN_ADDRESS_SPACE_BYTES >> 20} MiB"
        )
        return USER_MISTAKE
    if _is_write_truncated():
        sys.dont_write_bytecode = True
    try:
        return _flush_output(_command_line())
    except KeyboardInterrupt:
        _print_error("qoslab: interrupted")
        return INTERRUPTED
    except SystemExit:
        # A shell that asks for completions sets this variable.
        raise
    except BaseException as error:
        # An error while another one is reported, most likely because nothing can be printed.
        short = isinstance(error, (OSError, MemoryError))
        _print_error(f"qoslab: {error if short else type(error).__name__}")
        _discard_unwritten()
        return USER_MISTAKE if short else OUR_FAULT


def _command_line() -> int:
    """Run the command line; errors while loading it are reported in one line, like later errors."""
    try:
        from qoslab.cli import main as command_line
    except (OSError, MemoryError) as error:
        _print_error(f"qoslab: cannot read its own files: {str(error) or 'out of memory'}")
        return USER_MISTAKE
    except EOFError:
        _print_error("qoslab: a compiled Python file is truncated, possibly because the disk is full")
        _print_error(f"  Remove the __pycache__ folders below {FOLDER} and run the command again.")
        return USER_MISTAKE
    return command_line()


def _is_write_truncated() -> bool:
    """Return whether a file that is written may be cut off."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < MIN_FILE_BYTES:
        return True
    try:
        disk = os.statvfs(FOLDER)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < MIN_DISK_BYTES


def _closed_descriptors() -> set[int]:
    """Return which of the three standard descriptors are closed."""
    closed = set()
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            closed.add(number)
    return closed


def _flush_output(status: int) -> int:
    """Flush the output, which Python would do after the status is decided. Return `status` if that succeeds."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _print_error(f"qoslab: cannot write to standard output: {error.strerror}")
        status = USER_MISTAKE
        _discard(sys.stdout.fileno())
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        status = USER_MISTAKE
        _discard(sys.stderr.fileno())
    return status


def _discard_unwritten() -> None:
    """Discard buffered output that cannot be written: Python would fail on it at exit, and end with status 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            _discard(stream.fileno())


def _discard(stream: int) -> None:
    """Discard the unwritten output of a stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _print_error(text: str) -> None:
    with suppress(OSError):
        os.write(2, text.encode(errors="backslashreplace") + b"\n")


if __name__ == "__main__":
    sys.exit(main())
