"""Parser from the text of tc commands to the typed tree.

Commands are `tc qdisc add|replace`, `tc class add|replace` and `tc filter add|replace`. A template describes the final
configuration of an interface, so that it has no commands to delete or change objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from qoslab.errors import did_you_mean, format_alternatives
from qoslab.tc.commands.command_head import read_choice, read_head
from qoslab.tc.commands.command_tree import ROOT, Commands, Filter, Match, Qdisc, TcClass, Tree
from qoslab.tc.commands.command_words import (
    RefusedWordError,
    TcError,
    Word,
    WordReader,
    is_linux_command,
    split_commands,
)
from qoslab.tc.commands.kinds import KINDS
from qoslab.tc.commands.tc_units import UnitError, count

OF_THE_ENGINE = {
    "qdisc": ("dev", "parent", "handle"),
    "class": ("dev", "parent", "classid"),
    "filter": ("dev", "parent", "protocol", "prio"),
}
"""Words before the kind that the engine supports, by object."""
_HANDLE = re.compile(r"(0x)?([0-9a-fA-F]{1,4}):")
_CLASS = re.compile(r"([0-9a-fA-F]{1,4}):([0-9a-fA-F]{1,4})")
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58}
FAMILIES: dict[str, int | None] = {"ip": 4, "ipv6": 6, "all": None}
U32_MATCHES = ("ip", "ip6")


def is_tc(text: str) -> bool:
    """Return whether a rendered template consists of tc commands, as opposed to lines of IOS.

    One command of Linux is enough, so that a command of another program is refused as such.
    """
    return any(map(is_linux_command, split_commands(text)))


def parse(text: str, *, source: str = "configuration") -> Commands:
    """Return the tree of these commands. Raise `TcError` naming `source`, line and column of the first mistake."""
    trees: Commands = {}
    for words in split_commands(text):
        try:
            _parse_command(WordReader(words), trees)
        except RefusedWordError as refusal:
            raise TcError(source, refusal.word, refusal.found, refusal.hint) from None
    return trees


def _parse_command(reader: WordReader, trees: Commands) -> None:
    what, head = read_head(reader)
    dev = head.get("dev")
    if dev is None:
        raise RefusedWordError(reader.last, f"found a {what} without an interface, expected dev INTERFACE")
    for name, word in head.items():
        if name not in OF_THE_ENGINE[what]:
            found = word.text if name == "hook" else f"{name} {word.text}"
            raise RefusedWordError(
                word,
                f'found "{found}", which only a kernel supports, expected {format_alternatives(OF_THE_ENGINE[what])}',
            )
    tree = trees.setdefault(dev.text, Tree(dev))
    {"qdisc": _parse_qdisc, "class": _parse_class, "filter": _filter}[what](reader, head, tree)


def _handle(word: Word | None) -> str | None:
    if word is None:
        return None
    match = _HANDLE.fullmatch(word.text)
    if match is None:
        raise RefusedWordError(word, f'found handle "{word.text}", expected a major number with a colon, such as 1:')
    return f"{int(match[2], 16):x}:"


def _parse_class_number(word: Word, expected: str) -> str:
    match = _CLASS.fullmatch(word.text)
    if match is None:
        raise RefusedWordError(word, f'found "{word.text}", expected {expected}, such as 1:10')
    return f"{int(match[1], 16):x}:{int(match[2], 16):x}"


def _parse_parent(head: dict[str, Word], reader: WordReader, expected: str) -> tuple[str, Word]:
    word = head.get("parent")
    if word is None:
        raise RefusedWordError(reader.last, f"found no parent, expected {expected}")
    if word.text == ROOT:
        return ROOT, word
    return (_handle(word) or "" if word.text.endswith(":") else _parse_class_number(word, expected)), word


def _parse_qdisc(reader: WordReader, head: dict[str, Word], tree: Tree) -> None:
    parent, at = _parse_parent(head, reader, "root or parent CLASS")
    word = reader.take("a kind of qdisc")
    kind = KINDS.get(word.text)
    if kind is None:
        expected = f"a qdisc that the engine implements: {format_alternatives(sorted(KINDS))}"
        raise RefusedWordError(word, f'found "{word.text}", expected {expected}', did_you_mean(word.text, KINDS))
    if parent in tree.qdiscs:
        raise RefusedWordError(
            at,
            f"found a second qdisc at {parent}, expected one (the first is in line {tree.qdiscs[parent].place.line})",
        )
    tree.qdiscs[parent] = Qdisc(word, parent, _handle(head.get("handle")), kind, kind.read(reader))


def _parse_class(reader: WordReader, head: dict[str, Word], tree: Tree) -> None:
    parent, _ = _parse_parent(head, reader, "parent HANDLE or CLASS")
    number = head.get("classid")
    if number is None:
        raise RefusedWordError(reader.last, "found a class without a number, expected classid MAJOR:MINOR")
    classid = _parse_class_number(number, "the number of a class")
    classful = {name: kind for name, kind in KINDS.items() if kind.classes is not None}
    kind = classful[read_choice(reader, tuple(classful), "a kind of class").text]
    if classid in tree.classes:
        raise RefusedWordError(number, f"found class {classid} again, expected another number")
    settings = kind.classes.read(reader) if kind.classes is not None else None
    tree.classes[classid] = TcClass(number, parent, classid, kind, settings)


def _filter(reader: WordReader, head: dict[str, Word], tree: Tree) -> None:
    parent, _ = _parse_parent(head, reader, "parent HANDLE")
    protocol = head.get("protocol")
    if protocol is not None and protocol.text not in FAMILIES:
        known = tuple(FAMILIES)
        message = f'found protocol "{protocol.text}", expected {format_alternatives(known)}'
        raise RefusedWordError(protocol, message, did_you_mean(protocol.text, known))
    priority = head.get("prio")
    number = 0 if priority is None else _parse_value(priority, count)
    kind = read_choice(reader, ("u32", "flower", "matchall"), "a kind of filter")
    match = Match(family=FAMILIES[protocol.text] if protocol else None)
    target: Word | None = None
    while (word := reader.peek_word()) is not None:
        reader.take("")
        if word.text in ("flowid", "classid"):
            target = reader.take("a class")
        elif word.text == "match" and kind.text == "u32":
            match = _parse_u32(reader, match)
        elif kind.text == "flower":
            match = _parse_flower(reader, word, match)
        else:
            known = ("match", "flowid", "classid") if kind.text == "u32" else ("flowid", "classid")
            raise RefusedWordError(
                word, f'found "{word.text}", expected {format_alternatives(known)}', did_you_mean(word.text, known)
            )
    if target is None:
        raise RefusedWordError(reader.last, "found a filter without a class, expected flowid CLASS")
    target = replace(target, text=_parse_class_number(target, "a class"))
    tree.filters.append(Filter(kind, parent, number, match, target))


def _parse_value(word: Word, read: Callable[[str], Any]) -> Any:
    try:
        return read(word.text)
    except UnitError as error:
        raise RefusedWordError(word, f'found "{word.text}", expected {error}') from None


def _parse_network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError:
        raise UnitError("a prefix such as 10.0.1.0/24, without host bits") from None


def _parse_number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise UnitError("a number such as 5001 or 0xb8") from None


def _parse_u32(reader: WordReader, match: Match) -> Match:
    """Read `match ip FIELD VALUE [MASK]`."""
    family = read_choice(reader, U32_MATCHES, "a header that the engine supports")
    fields = ("src", "dst", "sport", "dport", "protocol", "tos", "dsfield", "priority")
    name = read_choice(reader, fields, f"a field of {family.text}")
    match = replace(match, family=4 if family.text == "ip" else 6)
    value = reader.take(f"the value of {name.text}")
    if name.text in ("src", "dst"):
        network = _parse_value(value, _parse_network)
        return replace(match, source=network) if name.text == "src" else replace(match, destination=network)
    mask = reader.take(f"the mask of {name.text}")
    whole = {"sport": 0xFFFF, "dport": 0xFFFF, "protocol": 0xFF}.get(name.text, 0xFC)
    if _parse_value(mask, _parse_number) != whole:
        raise RefusedWordError(mask, f'found mask "{mask.text}", expected {whole:#x}: the engine matches whole fields')
    number = _parse_value(value, _parse_number)
    return _set_number(match, name.text, number >> 2 if whole == 0xFC else number)


def _set_number(match: Match, name: str, number: int) -> Match:
    match name:
        case "sport" | "src_port":
            return replace(match, source_port=number)
        case "dport" | "dst_port":
            return replace(match, destination_port=number)
        case "protocol" | "ip_proto":
            return replace(match, protocol=number)
        case _:
            return replace(match, dscp=number)


def _parse_flower(reader: WordReader, word: Word, match: Match) -> Match:
    """Read a criterion of `flower`."""
    known = ("ip_proto", "src_ip", "dst_ip", "src_port", "dst_port", "ip_tos")
    if word.text not in known:
        raise RefusedWordError(
            word,
            f'found "{word.text}", expected {format_alternatives((*known, "flowid"))}',
            did_you_mean(word.text, known),
        )
    value = reader.take(f"the value of {word.text}")
    if word.text in ("src_ip", "dst_ip"):
        network = _parse_value(value, _parse_network)
        return replace(match, source=network) if word.text == "src_ip" else replace(match, destination=network)
    if word.text == "ip_proto" and value.text in PROTOCOLS:
        return replace(match, protocol=PROTOCOLS[value.text])
    number, _, mask = value.text.partition("/")
    if word.text == "ip_tos":
        if mask and _parse_number(mask) != 0xFC:
            raise RefusedWordError(
                value, f'found "{value.text}", expected the mask 0xfc: the engine matches only the DSCP'
            )
        return replace(match, dscp=_parse_value(replace(value, text=number), _parse_number) >> 2)
    return _set_number(match, word.text, _parse_value(value, _parse_number))
