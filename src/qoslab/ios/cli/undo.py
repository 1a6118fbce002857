"""Subjects and removal of printed configuration lines, for `diff`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Undo:
    """Undo of a command's lines beyond its `no` form.

    The syntaxes are filled with the matching keywords and arguments of a line, in order.
    """

    key: str | None = None
    """Syntax of the key of a line's subject: lines with the same key are values of one setting.

    None for the mandatory part of the `no` form.
    """
    line: str | None = None
    """Syntax of the removing line, without its `no` unless it begins with `default`; None if the key is the syntax."""
    needs_removal: bool = False
    """True if the old line must be removed before another value is set: parts of it, or its order, would remain."""
    needs_block_removal: bool = False
    """True if a block must be removed before a block with another first line replaces it."""
    table: bool = False
    """True if lines with the same key form one table, which the key's `no` form clears."""
    parts: bool = False
    """True if lines of this command whose keys extend the key of another line have no effect without that line."""
    ordered: Callable[[Any], bool] | None = None
    """Function of the line's `Args`: whether its position among its neighbours matters; new lines are appended."""
    referred: int | None = None
    """Rank among the objects that other lines may refer to, in the order in which they can be removed."""
    attaches: bool = False
    """True if the line applies a named object: it is removed before that object changes."""
    first: bool = False
    """True if its removal precedes all additions, because it may conflict with them."""
    rewrite: bool = False
    """True if the line is removed and re-entered if a change in place does not produce the wanted line."""
    early: bool = False
    """True if the line precedes re-entered addresses: after such an address it would be refused."""
    verbatim: bool = False
    """True for a text of possibly several lines; such texts are entered last."""
    late: bool = False
    """True if it is removed after its neighbours have been entered, since its block might otherwise become empty."""
    goes_with: str | None = None
    """Syntax of the key of the line whose removal also removes this line."""
    followed: str | None = None
    """A line to enter after it: it removes the settings of a macro, so that other values can be set."""
    split: Callable[[Any], Sequence[str]] | None = None
    """Function of the line's `Args`: the equivalent lines of single objects; removing one removes all after it."""


PLAIN = Undo()
"""Undo of a command by its `no` form alone."""
