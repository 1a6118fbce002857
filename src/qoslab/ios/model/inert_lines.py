"""Inert lines of a configuration: stored and printed, without effect on the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class InertLine:
    """A line without effect here, with the lines below it."""

    key: str
    """Key of the line's subject: a later line with the same key replaces it."""
    text: str
    """Text in the running configuration."""
    subject: str
    """Subject of the inert line, in a few words."""
    place: int
    """The rank of its block in the running configuration."""
    undecided: bool = False
    """True if, on a real device, the line affects packets that a lab does not have."""
    below: tuple[str, ...] = ()
    """The lines of its block in order, each with its indentation relative to the first line of the block."""

    @property
    def sentence(self) -> str:
        """The line with a remark for users."""
        if self.undecided:
            return f'undecided: "{self.text}" has no effect in a lab ({self.subject})'
        return f'accepted without effect: "{self.text}" ({self.subject})'


@dataclass(frozen=True, slots=True, eq=False)
class InertLines:
    """Inert lines in the order of their first entry; equality ignores the order."""

    lines: tuple[InertLine, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InertLines) and set(self.lines) == set(other.lines)

    def __hash__(self) -> int:
        return hash(frozenset(self.lines))

    def __iter__(self) -> Iterator[InertLine]:
        return iter(self.lines)

    def block_lines(self, place: int) -> list[InertLine]:
        """Return the lines of a block of the running configuration."""
        return [line for line in self.lines if line.place == place]

    def find(self, key: str) -> InertLine | None:
        """Return the line with that key; None if there is none."""
        return next((line for line in self.lines if line.key == key), None)

    def add_line(self, line: InertLine) -> InertLines:
        """Return the lines with an added line, which replaces a line with the same key."""
        if self.find(line.key) is None:
            return InertLines((*self.lines, line))
        return InertLines(tuple(line if each.key == line.key else each for each in self.lines))

    def remove_line(self, key: str) -> InertLines:
        """Return the lines without the line of that key, and without lines whose keys extend it."""
        return InertLines(tuple(each for each in self.lines if not f"{each.key} ".startswith(f"{key} ")))


NO_INERT_LINES = InertLines()


def indentation(line: str) -> int:
    """Return the number of leading blanks of a line."""
    return len(line) - len(line.lstrip(" "))


def insert_line(line: InertLine, text: str, cursor: int) -> tuple[InertLine, int]:
    """Return the block with a line inserted after the line at `cursor` (-1: at the start), and its index.

    A line that follows at the same depth is not inserted twice, so that text may be pasted again. A `no` form of the
    line is removed.
    """
    line, cursor = _remove_siblings(line, cursor, text, lambda each: f"{text} ".startswith(f"{_negated_line(each)} "))
    below = line.below
    depth = indentation(text)
    at = cursor + 1
    while at < len(below) and indentation(below[at]) >= depth:
        if below[at] == text:
            return line, at
        at += 1
    if depth == 0:
        at = len(below)
    return replace(line, below=(*below[:at], text, *below[at:])), at


def remove_lines(line: InertLine, text: str, cursor: int) -> tuple[InertLine, int]:
    """Return the block without the lines around `cursor` that begin with `text`, and the new cursor."""
    return _remove_siblings(line, cursor, text, lambda each: f"{each} ".startswith(f"{text} "))


def _negated_line(text: str) -> str:
    """Return the line that a `no` line negates, with its indentation; for other lines, a text that no line begins
    with."""
    plain = text.lstrip(" ")
    return " " * indentation(text) + plain[3:] if plain.startswith("no ") else "\n"


def _remove_siblings(line: InertLine, cursor: int, text: str, unwanted: Callable[[str], bool]) -> tuple[InertLine, int]:
    """Return the block without the unwanted siblings of `text` and their children, and the adjusted cursor."""
    below, depth = list(line.below), indentation(text)
    first = min(cursor, len(below) - 1)
    while first >= 0 and indentation(below[first]) >= depth:
        first -= 1
    at = first + 1
    while at < len(below) and indentation(below[at]) >= depth:
        end = at + 1
        while end < len(below) and indentation(below[end]) > indentation(below[at]):
            end += 1
        if indentation(below[at]) == depth and unwanted(below[at]):
            del below[at:end]
            cursor -= max(min(cursor + 1, end) - at, 0) if cursor >= at else 0
        else:
            at = end
    return replace(line, below=tuple(below)), cursor
