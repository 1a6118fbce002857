"""Notation of the tables of commands that are accepted without effect, undecided, or refused.

    [MODE REQUIRES, RANK]
    SUBJECT
        SYNTAX

A section has the subjects of one mode; `REQUIRES` and `RANK` may be missing. The subject of refused commands is the
reason. A syntax is in the notation of `cli.grammar`; a line that begins with `|` continues the one above. It may begin
with marks:

    ~   on by default: the `no` form is stored
    =   printed in either form
    >   begins a block: its lines are stored unchanged, or refused with the first line

Everything except `rest` at its end identifies the subject of a line: a later line replaces an earlier one with the same
subject. If a syntax has `^`, the words before it are the subject; its `no` form is defined in another module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

RANKS = {
    "services": 10,
    "platform": 11,
    "boot": 12,
    "messages": 13,
    "access": 14,
    "resolver": 16,
    "voice": 65,
    "other-interfaces": 92,
    "http": 105,
    "snmp": 121,
    "control-plane": 125,
    "clock": 145,
}
"""Ranks of blocks in the running configuration."""
_SECTION = re.compile(r"\[([a-z-]+)(?: ([a-z-]+))?(?:, ([a-z-]+))?\]")


@dataclass(frozen=True, slots=True)
class CommandFamily:
    """Commands on one subject, or refused for one reason."""

    subject: str
    rows: tuple[str, ...]
    """Syntaxes with their marks."""
    mode: str
    requires: str = ""
    """`router`, `switch` or a capability; empty for all."""
    rank: int = 0
    """The rank of its block in the running configuration; 0 below a mode."""
    undecided: bool = False
    """True if, on a real device, the lines affect packets that a lab does not have."""

    @property
    def syntaxes(self) -> list[str]:
        """The syntax of each row, without marks."""
        return [row.lstrip("~=>").replace(" ^", "") for row in self.rows]


def parse_families(table: str, *, undecided: bool = False) -> tuple[CommandFamily, ...]:
    """Return the families of a table."""
    found: list[CommandFamily] = []
    mode = requires = rank = subject = ""
    for line in table.replace("\n    |", "|").strip().splitlines():
        if section := _SECTION.fullmatch(line):
            mode, requires, rank = section.groups(default="")
        elif not line.startswith(" "):
            subject = line
            found.append(CommandFamily(subject, (), mode, requires, RANKS.get(rank, 0), undecided))
        else:
            last = found.pop()
            rows = (*last.rows, line.strip())
            found.append(CommandFamily(subject, rows, mode, requires, last.rank, undecided))
    return tuple(found)
