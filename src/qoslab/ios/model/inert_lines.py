"""Lines of a configuration that are kept and printed, and change nothing that is modelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class InertLine:
    """A line without effect here, with those below it."""

    key: str
    """Key of the line's subject: a later line with the same key replaces it."""
    text: str
    """Text in the running configuration."""
    about: str
    """Subject of the inert line, in a few words."""
    place: int
    """The rank of its block in the running configuration."""
    undecided: bool = False
    """True if the line affects packets on a device that a lab does not have."""
    below: tuple[str, ...] = ()
    """The lines of its block in order, each with the blanks that it is indented by beyond the first."""

    @property
    def sentence(self) -> str:
        """Line with its remark for users."""
        if self.undecided:
            return f'undecided: "{self.text}" has no effect in a lab ({self.about})'
        return f'accepted without effect: "{self.text}" ({self.about})'


@dataclass(frozen=True, slots=True, eq=False)
class InertLines:
    """Lines without effect in the order in which they were first entered; the order does not distinguish two."""

    lines: tuple[InertLine, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InertLines) and set(self.lines) == set(other.lines)

    def __hash__(self) -> int:
        return hash(frozenset(self.lines))

    def __iter__(self) -> Iterator[InertLine]:
        return iter(self.lines)

    def at(self, place: int) -> list[InertLine]:
        """Return the lines of a block of the running configuration."""
        return [line for line in self.lines if line.place == place]

    def find(self, key: str) -> InertLine | None:
        """Return the line about that, or None."""
        return next((line for line in self.lines if line.key == key), None)

    def with_line(self, line: InertLine) -> InertLines:
        """Return these and one more, which takes the place of the line about the same."""
        if self.find(line.key) is None:
            return InertLines((*self.lines, line))
        return InertLines(tuple(line if each.key == line.key else each for each in self.lines))

    def without(self, key: str) -> InertLines:
        """Return these without the line about that, and without those about more of the same."""
        return InertLines(tuple(each for each in self.lines if not f"{each.key} ".startswith(f"{key} ")))


NO_INERT_LINES = InertLines()


def indented(line: str) -> int:
    """Return how many blanks a line begins with."""
    return len(line) - len(line.lstrip(" "))


def entered(line: InertLine, text: str, cursor: int) -> tuple[InertLine, int]:
    """Return the block with a line entered behind the one at `cursor` (-1: the first), and where that line stands.

    A line that comes next anyway, at the same depth, is not entered twice: text may be pasted again. One that was
    entered with `no` gives way.
    """
    line, cursor = _without_siblings(line, cursor, text, lambda each: f"{text} ".startswith(f"{_negated(each)} "))
    below = line.below
    depth = indented(text)
    at = cursor + 1
    while at < len(below) and indented(below[at]) >= depth:
        if below[at] == text:
            return line, at
        at += 1
    if depth == 0:
        at = len(below)
    return replace(line, below=(*below[:at], text, *below[at:])), at


def taken_out(line: InertLine, text: str, cursor: int) -> tuple[InertLine, int]:
    """Return the block without the lines at the place of `cursor` that begin with `text`, and the place again."""
    return _without_siblings(line, cursor, text, lambda each: f"{each} ".startswith(f"{text} "))


def _negated(text: str) -> str:
    """Return what a line that begins with `no` removes, at its depth; a line that nothing begins with if it does
    not."""
    plain = text.lstrip(" ")
    return " " * indented(text) + plain[3:] if plain.startswith("no ") else "\n"


def _without_siblings(
    line: InertLine, cursor: int, text: str, unwanted: Callable[[str], bool]
) -> tuple[InertLine, int]:
    """Return the block without the lines around `text`, with what is below them, and the cursor where it was."""
    below, depth = list(line.below), indented(text)
    first = min(cursor, len(below) - 1)
    while first >= 0 and indented(below[first]) >= depth:
        first -= 1
    at = first + 1
    while at < len(below) and indented(below[at]) >= depth:
        end = at + 1
        while end < len(below) and indented(below[end]) > indented(below[at]):
            end += 1
        if indented(below[at]) == depth and unwanted(below[at]):
            del below[at:end]
            cursor -= max(min(cursor + 1, end) - at, 0) if cursor >= at else 0
        else:
            at = end
    return replace(line, below=tuple(below)), cursor
