"""Users' templates of tc(8) commands: `tc qdisc|class|filter add|replace dev INTERFACE …`, one a line.

Blank lines and lines that begin with `#` are comments; a `\\` at the end of a line continues it. The checks here need
no kernel: they find the interface, the kinds, and what would leave the experiment's interfaces.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from qoslab.tc.kernel_kinds import ACTIONS, FILTERS, QDISCS, Kinds, described

TcObject = Literal["qdisc", "class", "filter"]
OBJECTS: tuple[TcObject, ...] = ("qdisc", "class", "filter")
VERBS = ("add", "replace")
HOOKS = ("ingress", "egress", "clsact")
_PAIRS = {
    "qdisc": ("dev", "parent", "handle", "estimator", "ingress_block", "egress_block"),
    "class": ("dev", "parent", "classid"),
    "filter": ("dev", "parent", "protocol", "prio", "pref", "preference", "priority", "handle", "chain"),
}
"""Words before the kind that have one value."""
_ALONE = ("root", *HOOKS)
_FORM = "tc qdisc|class|filter add|replace dev INTERFACE …"


class RefusedError(Exception):
    """A line that is refused."""

    def __init__(self, number: int, message: str, hint: str = "") -> None:
        """`number` counts lines of the text from 1."""
        super().__init__(message)
        self.number, self.message, self.hint = number, message, hint


@dataclass(frozen=True)
class Command:
    """One command."""

    number: int
    """Line of the text, from 1; of a continued command its first."""
    words: tuple[str, ...]
    """Words after `tc`."""
    what: TcObject
    interface: str
    kind: str
    """Kind of the qdisc, class or filter."""
    actions: tuple[str, ...] = ()
    """Kinds of the actions of a filter."""


@dataclass(frozen=True)
class Wanted:
    """Kinds that commands need of a kernel."""

    qdiscs: frozenset[str]
    filters: frozenset[str]
    actions: frozenset[str]

    def missing(self, kinds: Kinds) -> list[str]:
        """Return those that a kernel lacks, with their modules."""
        return kinds.missing(sorted(self.qdiscs), sorted(self.filters), sorted(self.actions))


def wanted(commands: Iterable[Command]) -> Wanted:
    """Return the kinds of these commands."""
    commands = tuple(commands)
    return Wanted(
        frozenset(each.kind for each in commands if each.what == "qdisc"),
        frozenset(each.kind for each in commands if each.what == "filter"),
        frozenset(action for each in commands for action in each.actions),
    )


def parse(text: str, interfaces: Collection[str]) -> list[Command]:
    """Return the commands of a configuration; `RefusedError` for the first line that is none for these interfaces."""
    return [_command(number, words, interfaces) for number, words in _lines(text)]


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    pending, first = "", 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if not pending and line.lstrip().startswith("#"):
            continue
        first = first if pending else number
        if line.rstrip().endswith("\\"):
            pending += line.rstrip()[:-1] + " "
            continue
        whole, pending = pending + line, ""
        try:
            words = shlex.split(whole)
        except ValueError as error:
            raise RefusedError(first, f'found "{whole.strip()}": {error}, expected {_FORM}') from None
        if words:
            yield first, words


def _command(number: int, words: Sequence[str], interfaces: Collection[str]) -> Command:
    found = " ".join(words)
    if words[0] != "tc":
        raise RefusedError(number, f'found "{found}", expected {_FORM}', "every line is a whole tc command")
    if len(words) < 3 or words[1] not in OBJECTS or words[2] not in VERBS:
        raise RefusedError(number, f'found "{found}", expected {_FORM}')
    what, rest = words[1], list(words[3:])
    values: dict[str, str] = {}
    alone = set()
    while rest:
        if rest[0] in _PAIRS[what] and len(rest) > 1:
            values[rest[0]] = rest[1]
            del rest[:2]
        elif rest[0] in _ALONE and not (what == "qdisc" and rest[0] in QDISCS):
            alone.add(rest.pop(0))
        elif rest[0] == "stab" and what == "qdisc":
            while rest and rest[0] not in QDISCS:
                rest.pop(0)
        else:
            break
    interface = values.get("dev", "")
    if interface not in interfaces:
        known = ", ".join(sorted(interfaces))
        raise RefusedError(
            number,
            f'found {"no dev" if not interface else f"the interface {interface}"} in "{found}", '
            f"expected dev with an interface of the experiment: {known}",
            "other interfaces of the machine are not touched",
        )
    kinds = {"qdisc": QDISCS, "filter": FILTERS}.get(what)
    if not rest:
        raise RefusedError(number, f'found "{found}", expected a kind of {what}')
    if kinds is not None and rest[0] not in kinds:
        raise RefusedError(number, f"found the {what} {rest[0]}, expected one of {', '.join(kinds)}")
    if what == "filter" and "parent" not in values and not alone & set(HOOKS):
        raise RefusedError(
            number,
            f'found "{found}", expected parent HANDLE: or ingress in a filter',
            "give the qdisc a handle, such as 1:, and the filter parent 1:",
        )
    return Command(number, tuple(words[1:]), what, interface, rest[0], tuple(_actions(number, rest[1:])))


def _actions(number: int, words: Sequence[str]) -> Iterator[str]:
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        if before == "action":
            kind = {"ok": "gact", "drop": "gact", "pass": "gact", "pipe": "gact", "continue": "gact"}.get(word, word)
            if kind not in ACTIONS:
                raise RefusedError(number, f"found the action {word}, expected one of {', '.join(ACTIONS)}")
            yield kind
        elif word == "police":
            yield word


def lacking(commands: Iterable[Command], kinds: Kinds) -> Iterator[tuple[int, str]]:
    """Yield the line of each command whose kind a kernel lacks, and that kind with its module."""
    for each in commands:
        if each.what == "qdisc" and each.kind not in kinds.qdiscs:
            yield each.number, described("qdisc", each.kind)
        if each.what == "filter" and each.kind not in kinds.filters:
            yield each.number, described("filter", each.kind)
        for action in each.actions:
            if action not in kinds.actions:
                yield each.number, described("action", action)
