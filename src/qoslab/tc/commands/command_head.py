"""Words of a tc command before the kind: `tc qdisc|class|filter add|replace dev INTERFACE …`.

Shared by commands for the engine and for a kernel.
"""

from __future__ import annotations

from typing import Literal, cast

from qoslab.errors import did_you_mean, format_alternatives
from qoslab.tc.commands.command_tree import ROOT
from qoslab.tc.commands.command_words import PROGRAMS, RefusedWordError, Word, WordReader

TcObject = Literal["qdisc", "class", "filter"]
OBJECTS: tuple[TcObject, ...] = ("qdisc", "class", "filter")
VERBS = ("add", "replace")
"""Allowed verbs: a template describes the final configuration, so that it has none to delete or change objects."""
HOOKS = ("ingress", "egress", "clsact")
_VALUES = {
    "qdisc": ("dev", "parent", "handle", "estimator", "ingress_block", "egress_block"),
    "class": ("dev", "parent", "classid"),
    "filter": ("dev", "parent", "protocol", "prio", "pref", "preference", "priority", "handle", "chain"),
}
"""Words with one value."""
_PRIORITIES = ("pref", "preference", "priority")
Head = dict[str, Word]
"""Values by word. `prio` is the key for all its synonyms. The value of `root`, hooks and `stab` is the word itself."""


def read_choice(reader: WordReader, known: tuple[str, ...], expected: str) -> Word:
    """Read one of the known words. Raise `RefusedWordError` with `expected` for any other word."""
    word = reader.take(expected)
    if word.text not in known:
        raise RefusedWordError(
            word,
            f'found "{word.text}", expected {expected}: {format_alternatives(known)}',
            did_you_mean(word.text, known),
        )
    return word


def read_head(reader: WordReader) -> tuple[TcObject, Head]:
    """Read a command up to the kind of its object; return the object and the words. Raise `RefusedWordError`."""
    program = reader.peek_word()
    if program is not None and program.text in PROGRAMS:
        hint = "remove the line: links, addresses and routes are configured by the topology of the experiment"
        raise RefusedWordError(program, f'found "{program.text}", expected a command of tc', hint)
    read_choice(reader, ("tc",), "a command of tc")
    what = cast("TcObject", read_choice(reader, OBJECTS, "an object of tc").text)
    read_choice(reader, VERBS, f"a command for a {what}")
    head: Head = {}
    while (word := reader.peek_word()) is not None:
        if word.text in HOOKS and what == "qdisc":
            # For qdiscs these words are kinds.
            break
        if word.text == ROOT:
            head["parent"] = reader.take("")
        elif word.text in HOOKS:
            head["hook"] = reader.take("")
        elif word.text in _VALUES[what]:
            reader.take("")
            head["prio" if word.text in _PRIORITIES else word.text] = reader.take(f"the value of {word.text}")
        else:
            break
    return what, head
