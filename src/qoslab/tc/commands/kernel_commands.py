"""Parser of tc commands for a kernel: interfaces and kinds, without access to a kernel.

The kernel checks the parameters of a kind, so that only the words before the kind, and the kinds of a filter's actions,
are read here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from qoslab.errors import did_you_mean, format_alternatives
from qoslab.tc.commands.command_head import TcObject, read_head
from qoslab.tc.commands.command_words import RefusedWordError, TcError, Word, WordReader, split_commands
from qoslab.tc.kernel_kinds import ACTIONS, FILTERS, QDISCS, KernelKinds, kind_and_module

_CONTROLS = frozenset({"ok", "drop", "pass", "pipe", "continue", "goto", "shot", "reclassify", "trap"})
"""Keywords of the action `gact`."""


@dataclass(frozen=True)
class KernelCommand:
    """One tc command."""

    number: int
    """Line of the text, from 1 (the first line of a continued command); 0 if there is none."""
    words: tuple[str, ...]
    """Words after `tc`."""
    what: TcObject
    interface: str
    kind: str
    """Kind of the qdisc, class or filter."""
    actions: tuple[str, ...] = ()
    """Kinds of the actions of a filter."""
    place: Mapping[str, str] = field(default_factory=dict)
    """Words before the kind, by name."""


def parse_commands(text: str, interfaces: Collection[str], *, source: str = "configuration") -> list[KernelCommand]:
    """Return the commands of a text. Raise `TcError` for the first one that is invalid for these interfaces."""
    found = []
    for words in split_commands(text):
        try:
            found.append(_parse_command(words, interfaces))
        except RefusedWordError as refusal:
            raise TcError(source, refusal.word, refusal.found, refusal.hint) from None
    return found


def _parse_command(words: list[Word], interfaces: Collection[str]) -> KernelCommand:
    reader = WordReader(words)
    what, head = read_head(reader)
    dev = head.get("dev")
    if dev is None or dev.text not in interfaces:
        found = "no dev" if dev is None else f"the interface {dev.text}"
        raise RefusedWordError(
            dev or reader.last,
            f"found {found}, expected dev with an interface of the experiment: "
            f"{format_alternatives(sorted(interfaces))}",
            "other interfaces of the machine are not changed",
        )
    if what == "qdisc" and reader.skip("stab"):
        while (word := reader.peek_word()) is not None and word.text not in QDISCS:
            reader.take("")
    kind = reader.take(f"a kind of {what}")
    known = {"qdisc": QDISCS, "filter": FILTERS}.get(what)
    if known is not None and kind.text not in known:
        message = f"found the {what} {kind.text}, expected {format_alternatives(known)}"
        raise RefusedWordError(kind, message, did_you_mean(kind.text, known))
    if what == "filter" and not {"parent", "hook"} & head.keys():
        raise RefusedWordError(
            kind,
            "found a filter without a parent, expected parent HANDLE: or ingress",
            "give the qdisc a handle, such as 1:, and the filter parent 1:",
        )
    return KernelCommand(
        words[0].line,
        tuple(word.text for word in words[1:]),
        what,
        dev.text,
        kind.text,
        tuple(_action_kinds(reader.read_rest())) if what == "filter" else (),
        {name: word.text for name, word in head.items()},
    )


def replace_interfaces(words: Sequence[str], devices: Mapping[str, str]) -> list[str]:
    """Return a command with the network devices of interfaces of the experiment, where their names differ."""
    before = ("", *words)
    return [
        devices.get(word, word) if ahead in ("dev", "indev") else word
        for ahead, word in zip(before, words, strict=False)
    ]


def _action_kinds(words: Sequence[Word]) -> Iterator[str]:
    for before, word in zip([None, *words], words, strict=False):
        if before is not None and before.text == "action":
            kind = "gact" if word.text in _CONTROLS else word.text
            if kind not in ACTIONS:
                message = f"found the action {word.text}, expected {format_alternatives(ACTIONS)}"
                raise RefusedWordError(word, message, did_you_mean(word.text, ACTIONS))
            yield kind
        elif word.text == "police":
            yield word.text


def unsupported_lines(commands: Iterable[KernelCommand], kinds: KernelKinds) -> Iterator[tuple[int, str]]:
    """Yield the line of each command with a kind that a kernel lacks, and that kind with its module."""
    for each in commands:
        if each.what == "qdisc" and each.kind not in kinds.qdiscs:
            yield each.number, kind_and_module("qdisc", each.kind)
        if each.what == "filter" and each.kind not in kinds.filters:
            yield each.number, kind_and_module("filter", each.kind)
        for action in each.actions:
            if action not in kinds.actions:
                yield each.number, kind_and_module("action", action)
