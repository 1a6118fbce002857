"""Difference between two lists of tc commands: the commands that change one into the other.

The difference depends on the commands alone. A kernel may refuse it, since some parameters of a qdisc cannot change;
the caller then replaces everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qoslab.tc.commands.command_head import read_head
from qoslab.tc.commands.command_words import Word, WordReader

Words = tuple[str, ...]
"""A command without `tc`."""
Key = tuple[str, ...]
"""Object, interface and place of a command. Filters without a preference share a key, since the kernel numbers them."""


def command_difference(before: Iterable[Sequence[str]], after: Iterable[Sequence[str]]) -> list[Words] | None:
    """Return the commands from `before` to `after`, empty if equal; None if a qdisc or class must be removed."""
    was, wanted = _commands_by_key(before), _commands_by_key(after)
    if any(key[0] != "filter" and key not in wanted for key in was):
        return None
    removed = [_removal_command(key) for key in was if key[0] == "filter" and wanted.get(key) != was[key]]
    steps: list[Words] = []
    for key, commands in wanted.items():
        found = was.get(key)
        if found == commands:
            continue
        if key[0] == "filter" or found is None:
            steps += commands
        elif _kind_and_handle(found[0]) == _kind_and_handle(commands[0]):
            steps += [(each[0], "change", *each[2:]) for each in commands]
        elif key[0] == "qdisc" and ":" in key[2]:
            # Removing a class also removes everything below it, so that it must be a leaf.
            if any(
                other[0] == "class" and other[1] == key[1] and _parent_key(was[other][0]) == key[2] for other in was
            ):
                return None
            steps += [("qdisc", "del", "dev", key[1], "parent", key[2]), *commands]
        else:
            return None
    return [*removed, *steps]


def _commands_by_key(commands: Iterable[Sequence[str]]) -> dict[Key, list[Words]]:
    found: dict[Key, list[Words]] = {}
    for each in commands:
        found.setdefault(_command_key(each), []).append(tuple(each))
    return found


def command_place(words: Sequence[str]) -> dict[str, str]:
    """Return the words of a command before the kind, by name; `kind` is the kind itself."""
    reader = WordReader([Word(text, 0, 0) for text in ("tc", *words)])
    _, head = read_head(reader)
    kind = reader.peek_word()
    return {name: word.text for name, word in head.items()} | {"kind": "" if kind is None else kind.text}


def _command_key(words: Sequence[str]) -> Key:
    place = command_place(words)
    device = place["dev"]
    match words[0]:
        case "qdisc":
            return "qdisc", device, place.get("parent", place["kind"])
        case "class":
            return "class", device, place.get("classid", "")
    at = place.get("hook") or f"parent {place['parent']}"
    if "prio" not in place or "handle" in place:
        return "filter", device, at
    return "filter", device, at, place.get("chain", "0"), place["prio"]


def _kind_and_handle(words: Sequence[str]) -> tuple[str | None, ...]:
    place = command_place(words)
    return place["kind"], place.get("handle"), place.get("parent")


def _parent_key(words: Sequence[str]) -> str | None:
    return command_place(words).get("parent")


def _removal_command(key: Key) -> Words:
    _, device, at, *rest = key
    own = ("chain", rest[0], "pref", rest[1]) if rest else ()
    return "filter", "del", "dev", device, *at.split(), *own
