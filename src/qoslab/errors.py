"""Exceptions that qoslab raises on purpose, and the exit status of each.

QoslabError                  root; an exception outside this tree is a bug in qoslab
├── UserError                the user can fix it: wrong input, missing file, unreachable device
│   ├── ExperimentError      an invalid experiment file
│   ├── IosError             a configuration line that the device model refuses
│   ├── MachineError         this machine lacks something (a package, a permission)
│   ├── DeviceError          a device refused a configuration or could not be reached
│   └── DamageError          a file of a run differs from the file that was written
└── RunInvalid               the run ended, but its values must not be trusted
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit status of every qoslab command."""

    WITHIN = 0
    """Success; for a run, every expected value is within its tolerance."""
    OUTSIDE = 1
    """The run is valid, but a measured value is out of its tolerance."""
    USER_MISTAKE = 2
    """The input, the machine or a device must be fixed first; qoslab leaves nothing behind."""
    RUN_INVALID = 3
    """The run is invalid, or most cells of an expected value are invalid or lack it. The report has the reason."""
    OUR_FAULT = 4
    """A defect in qoslab itself."""
    INTERRUPTED = 130
    """Interrupted by Ctrl-C; devices are restored."""


SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors due to a shortage of open files, memory or disk space."""
_NO_LIBRARY = (
    *map(os.strerror, (errno.EMFILE, errno.ENFILE, errno.ENOMEM)),
    "failed to map segment from shared object",
    "cannot allocate memory in static TLS block",
)
"""End of the message of an import that could not open its library because of a shortage."""
_NO_THREAD = "can't start new thread"
"""Python's message if the kernel refuses a thread, for lack of memory or because of a limit on processes."""


def find_shortage(error: BaseException) -> str:
    """Return the exhausted resource of this machine that caused an error, or that prevents opening files now; else an
    empty string.
    """
    reason: BaseException | None = error
    while reason is not None:
        if isinstance(reason, MemoryError):
            return "memory"
        if isinstance(reason, RuntimeError) and str(reason) == _NO_THREAD:
            return "threads, or memory for threads"
        if isinstance(reason, ImportError) and str(reason).endswith(_NO_LIBRARY):
            return str(reason)
        if isinstance(reason, OSError) and reason.errno in SHORTAGES:
            return ": ".join(str(part) for part in (reason.strerror, reason.filename) if part is not None)
        reason = reason.__cause__ or reason.__context__
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as unreadable:
        return str(unreadable.strerror)
    return ""


def find_damaged_bytecode(error: BaseException) -> str:
    """Return the damaged file of compiled Python that caused an error; else an empty string.

    Python 3.11 does not notice a write that a full disk or a limit truncates (python/cpython#126606), and fails at each
    later import of that file, which is only a cache.
    """
    reason: BaseException | None = error
    while reason is not None:
        trace = reason.__traceback__ if isinstance(reason, (EOFError, ValueError)) else None
        while trace is not None:
            if path := trace.tb_frame.f_locals.get("bytecode_path"):
                return str(path)
            trace = trace.tb_next
        reason = reason.__cause__ or reason.__context__
    return ""


class QoslabError(Exception):
    """Root of all errors that qoslab raises on purpose.

    `message` names the error and its place; `hint` is the next step for the user, or empty.
    """

    exit_status = ExitStatus.OUR_FAULT

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(QoslabError):
    """An error that the user can fix."""

    exit_status = ExitStatus.USER_MISTAKE


@dataclass(frozen=True)
class Finding:
    """One error in an experiment."""

    file: str
    """The file; empty if the error is in a command-line option."""
    line: int
    """Line, counted from 1; 0 if there is no line."""
    column: int
    """Column, counted from 1; 0 if there is no line."""
    option: str
    """The command-line option with the error, as typed; empty if the error is in a file."""
    path: str
    """Path of the key, such as `topology.links.wan.rate`."""
    message: str
    """Message: `found …, expected …`."""
    hint: str = ""
    """Hint: `did you mean …?`, if there is a proposal."""

    @property
    def location(self) -> str:
        """Location: `file:line:column`, or the option."""
        return self.option or (f"{self.file}:{self.line}:{self.column}" if self.line else self.file)

    def __str__(self) -> str:
        text = ": ".join(filter(None, (self.location, self.path, self.message))) + (
            f"; {self.hint}" if self.hint else ""
        )
        # Quoted text may have line ends; a finding is one line.
        return text.replace("\r", "\\r").replace("\n", "\\n")


class ExperimentError(UserError):
    """An invalid experiment file. Each finding names file, line and column; the message lists all findings."""

    def __init__(self, message: str = "", *, hint: str = "", findings: Sequence[Finding] = ()) -> None:
        self.findings = tuple(findings)
        super().__init__(message or "\n".join(map(str, self.findings)), hint=hint)


class IosError(UserError):
    """A configuration line that the IOS device model refuses; the message names the line."""


class MachineError(UserError):
    """This machine lacks a package or a permission."""


class DeviceError(UserError):
    """A device refused a configuration, or could not be reached."""


class DamageError(UserError):
    """A file of a run differs from the file that was written: do not trust the values of the run."""

    exit_status = ExitStatus.RUN_INVALID


class RunInvalid(QoslabError):  # noqa: N818 - it is a verdict, not a fault
    """The run ended, but its values must not be trusted."""

    exit_status = ExitStatus.RUN_INVALID


def format_alternatives(known: Iterable[str]) -> str:
    """Return `one of a, b, c` for the message of an error; `a` if there is only one."""
    words = list(dict.fromkeys(known))
    return f"one of {', '.join(words)}" if len(words) > 1 else "".join(words) or "but there is none"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean "…"?`, or an empty string if no known word is similar."""
    from difflib import get_close_matches  # most commands need no suggestion

    if len(word) > 100:
        return ""  # the time of a comparison grows with the square of the length
    folded = {candidate.lower(): candidate for candidate in reversed(list(dict.fromkeys(known)))}
    near = get_close_matches(word.lower(), folded, 1)
    return f'did you mean "{folded[near[0]]}"?' if near and folded[near[0]] != word else ""


def clip_text(text: str) -> str:
    """Return the text as quoted in a finding, shortened."""
    return text if len(text) <= 60 else f"{text[:57]}…"


def format_found(value: object) -> str:
    """Return a value as shown in a finding, shortened."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{clip_text(value)}"'
        case dict():
            return "a mapping"
        case list() | tuple():
            return "an empty list" if not value else f"a list of {len(value)}"
        case _:
            return str(value)
