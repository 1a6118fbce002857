"""Recognition and undo of printed configuration lines, for `diff`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Undo:
    """Undo of a command's lines beyond its `no` form.

    The syntaxes are filled with the keywords and arguments of a line, as many of them as fit, in order.
    """

    key: str | None = None
    """Syntax of what a line is about: two lines with the same key are two values of one setting.

    None is the mandatory part of the `no` form.
    """
    line: str | None = None
    """Syntax of what takes a line back, behind `no` or, if it begins so, `default`. None is the key."""
    afresh: bool = False
    """True if the old line is removed before another value: it keeps something of that, or the order below it."""
    renewed: bool = False
    """True if a block is removed before one with another first line takes its place."""
    table: bool = False
    """True if lines with the same key make one table together, which the key's `no` form clears."""
    parts: bool = False
    """True if lines of this command whose keys extend another line's come to nothing without that."""
    ordered: Callable[[Any], bool] | None = None
    """Given the line's `Args`, whether its place among its neighbours counts, new lines being appended."""
    referred: int | None = None
    """A rank among what other lines may refer to, in the order in which these can be removed."""
    attaches: bool = False
    """True if it puts a named object in force: it is removed before that object changes."""
    first: bool = False
    """True if, if it is to go, it does so before anything is entered: it would be in the way of that."""
    rewrite: bool = False
    """True if it is removed and entered again if a change in place does not give the wanted line."""
    early: bool = False
    """True if it comes first if addresses are entered again: with one of them it would be refused."""
    verbatim: bool = False
    """True if it is a text that may go over several lines; such come last."""
    late: bool = False
    """True if it is removed after its neighbours have been entered: without it there may be nothing left."""
    goes_with: str | None = None
    """Syntax of the key of the line that takes this one along when it is removed."""
    followed: str | None = None
    """A line to be typed behind it: it removes what a macro has set, so that something else can be set there."""
    split: Callable[[Any], Sequence[str]] | None = None
    """Given the line's `Args`, the lines of single objects that it stands for; removing one removes all behind it."""


PLAIN = Undo()
"""Undo of a command by its `no` form alone."""
