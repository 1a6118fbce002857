"""One program that has all changes of a crate in it, of which an environment variable switches one on.

So that a crate is compiled once, and not once for each change. Where the text had `a < b`, it then has

    (match crate::switch::on() { 17 => (a) == (b), 18 => (a) > (b), _ => a < b })

and a function that returns something else returns that first, where it is switched on. A change that does not compile
in its place is left out: one that is wrong in itself says nothing, and one that only stands where nothing can be
switched (a constant, the type that a function's `impl Trait` is) is left to cargo-mutants, which tries one at a time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tree_sitter_rust
from tree_sitter import Language, Node, Parser, Tree

VARIABLE = "QOS_CORE_CHANGE"
MODULE = "switch"
MODULE_TEXT = f'''//! Which change is switched on.

use std::sync::OnceLock;

/// The number of the change; 0 is none.
#[inline]
pub fn on() -> u32 {{
    static ON: OnceLock<u32> = OnceLock::new();
    *ON.get_or_init(|| std::env::var("{VARIABLE}").map_or(0, |text| text.parse().expect("a number")))
}}
'''
ON = f"crate::{MODULE}::on()"
NOT_CONST = "E0015"
"""The compiler's code of a call where only constants are."""
_PARSER = Parser(Language(tree_sitter_rust.language()))


@dataclass(frozen=True)
class Change:
    """A change of a file, as cargo-mutants lists it."""

    number: int
    name: str
    genre: str
    start: int
    """Offset of its first byte in the file."""
    end: int
    replacement: str


@dataclass
class _Place:
    """Some of a file's text, and what may stand there instead."""

    start: int
    end: int
    before: str = ""
    after: str = ""
    instead: dict[int, bytes] = field(default_factory=dict)
    """By number of the change."""
    first: dict[int, bytes] = field(default_factory=dict)
    """What is done at its beginning."""
    numbers: set[int] = field(default_factory=set)
    """All changes that have to do with it."""


@dataclass(frozen=True)
class Part:
    """Bytes of the text with changes."""

    start: int
    end: int
    numbers: frozenset[int]
    own: bool
    """Whether it is what one change puts there; else it is all of a place where these changes are."""


@dataclass(frozen=True)
class Switched:
    """A file's text with its changes."""

    text: bytes
    parts: tuple[Part, ...]
    """The inner ones after those that they are in."""
    without: frozenset[int]
    """Changes of which the place was not found."""

    def blamed(self, at: int) -> Iterator[Part]:
        """The parts around a byte, the innermost first."""
        return (part for part in reversed(self.parts) if part.start <= at < part.end)


def listed(text: str, sources: Mapping[str, bytes]) -> dict[str, list[Change]]:
    """What `cargo mutants --list --json` says, by file; `sources` are the texts of these files."""
    found: dict[str, list[Change]] = defaultdict(list)
    lines = {name: source.decode().split("\n") for name, source in sources.items()}
    for number, entry in enumerate(json.loads(text), start=1):
        name, span = entry["file"], entry["span"]
        start, end = (_offset(lines[name], span[side]["line"], span[side]["column"]) for side in ("start", "end"))
        found[name].append(Change(number, entry["name"], entry["genre"], start, end, entry["replacement"]))
    return found


def _offset(lines: Sequence[str], line: int, column: int) -> int:
    """Of a byte; lines count from 1, and columns, which are of characters."""
    return sum(len(each.encode()) + 1 for each in lines[: line - 1]) + len(lines[line - 1][: column - 1].encode())


def switched(source: bytes, changes: Iterable[Change]) -> Switched:
    """A file with these changes, none of which is switched on."""
    places: dict[tuple[int, int], _Place] = {}
    without = set()
    tree = _PARSER.parse(source)
    for change in changes:
        if not _put(change, tree, source, places):
            without.add(change.number)
    writer = _Writer(source, sorted(places.values(), key=lambda place: (place.start, -place.end)))
    return Switched(*writer.written(), frozenset(without))


def _put(change: Change, tree: Tree, source: bytes, places: dict[tuple[int, int], _Place]) -> bool:
    """Have a change among the places; false where its place is not to be found."""

    def place(node: Node) -> _Place:
        here = places.setdefault((node.start_byte, node.end_byte), _Place(node.start_byte, node.end_byte))
        here.numbers.add(change.number)
        return here

    node = tree.root_node.descendant_for_byte_range(change.start, change.end)
    if node is None:
        return False
    new = change.replacement.encode()
    match change.genre:
        case "FnValue":
            if (block := _block(node, change)) is None:
                return False
            place(block).first[change.number] = b"if %s == %d { return %s; }" % (ON.encode(), change.number, new)
        case "BinaryOperator" if node.parent is not None and node.parent.type in _BINARY:
            left, right = (node.parent.child_by_field_name(side) for side in ("left", "right"))
            assert left is not None and right is not None
            place(node.parent).instead[change.number] = b"(%s) %s (%s)" % (_of(left, source), new, _of(right, source))
        case "UnaryOperator" if node.parent is not None and node.parent.type == "unary_expression":
            place(node.parent).instead[change.number] = b"(%s)" % _of(node.parent.children[1], source)
        case "MatchArmGuard" if (node.start_byte, node.end_byte) == (change.start, change.end):
            place(node).instead[change.number] = new
        case "MatchArm" if (arm := _around(node, "match_arm")) is not None:
            _never(change.number, arm, place)
            # That something is not covered any more is said of the whole.
            if (whole := _around(arm, "match_expression")) is not None:
                place(whole)
        case "StructField" if (struct := _around(node, "struct_expression")) is not None:
            whole = _of(struct, source)
            before, after = whole[: change.start - struct.start_byte], whole[change.end - struct.start_byte :]
            place(struct).instead[change.number] = before + after.lstrip().removeprefix(b",").lstrip()
        case _:
            return False
    return True


_BINARY = ("binary_expression", "compound_assignment_expr")


def _of(node: Node, source: bytes) -> bytes:
    return source[node.start_byte : node.end_byte]


def _around(node: Node | None, kind: str) -> Node | None:
    while node is not None and node.type != kind:
        node = node.parent
    return node


def _block(node: Node | None, change: Change) -> Node | None:
    """The body of the function whose statements are to be replaced."""
    while node is not None and not (node.type == "block" and node.start_byte < change.start):
        node = node.parent
    return node if node is not None and node.parent is not None and node.parent.type == "function_item" else None


def _never(number: int, arm: Node, place: Callable[[Node], _Place]) -> None:
    """Have an arm not match where the change is on."""
    pattern = arm.child_by_field_name("pattern")
    assert pattern is not None
    condition = pattern.child_by_field_name("condition")
    if condition is None:
        here = place(pattern)
        here.after += f" if {ON} != {number}"
    else:
        here = place(condition)
        here.before, here.after = f"{here.before}{ON} != {number} && (", f"){here.after}"


class _Writer:
    """Writes a file's text anew, place in place."""

    def __init__(self, source: bytes, places: Sequence[_Place]) -> None:
        """`places` in the order in which they begin, outer ones first."""
        self._source = source
        self._places = list(places)
        self._out = bytearray()
        self._parts: list[Part] = []

    def written(self) -> tuple[bytes, tuple[Part, ...]]:
        """The text, and its parts."""
        self._upto(0, len(self._source), 0)
        return bytes(self._out), tuple(sorted(self._parts, key=lambda part: (part.start, -part.end)))

    def _upto(self, at: int, end: int, index: int) -> int:
        """Write from one offset to another; the place that comes next."""
        while index < len(self._places) and self._places[index].start < end:
            place = self._places[index]
            self._out += self._source[at : place.start]
            index = self._place(place, index + 1)
            at = place.end
        self._out += self._source[at:end]
        return index

    def _place(self, place: _Place, index: int) -> int:
        start = len(self._out)
        self._out += place.before.encode()
        at = place.start
        if place.first:
            self._out += self._source[at : at + 1]
            at += 1
            for number, text in place.first.items():
                self._own(number, text)
        if place.instead:
            self._out += b"(match %s { " % ON.encode()
            for number, text in place.instead.items():
                self._out += b"%d => " % number
                self._own(number, text)
                self._out += b", "
            self._out += b"_ => "
        index = self._upto(at, place.end, index)
        self._out += b" })" if place.instead else b""
        self._out += place.after.encode()
        self._parts.append(Part(start, len(self._out), frozenset(place.numbers), own=False))
        return index

    def _own(self, number: int, text: bytes) -> None:
        start = len(self._out)
        self._out += text
        self._parts.append(Part(start, len(self._out), frozenset((number,)), own=True))


@dataclass(frozen=True)
class Refused:
    """What the compiler does not take, and why that is."""

    in_itself: frozenset[int]
    """Changes that are no program, wherever they are."""
    here: frozenset[int]
    """Changes that cannot be switched on in their place."""


def refused(messages: Iterable[Mapping[str, Any]], files: Mapping[str, Switched], left: frozenset[int]) -> Refused:
    """Who is to blame for the compiler's errors, of the changes that are `left`; nobody where none is near.

    `messages` are the compiler's own, in its JSON; `files` by the names that it gives them.
    """
    in_itself, here = set(), set()
    for message in messages:
        if message.get("level") != "error":
            continue
        code = (message.get("code") or {}).get("code")
        for part in _nearest(message, files, left):
            blamed = part.numbers & left
            if part.own and code != NOT_CONST:
                in_itself |= blamed
            else:
                here |= blamed
    return Refused(frozenset(in_itself), frozenset(here - in_itself))


def _nearest(message: Mapping[str, Any], files: Mapping[str, Switched], left: frozenset[int]) -> Iterator[Part]:
    """The innermost part with changes left around what an error points at; around what it names besides, where none."""
    for primary in (True, False):
        for span in message["spans"]:
            if span["is_primary"] is primary and (file := files.get(span["file_name"])) is not None:
                for part in file.blamed(span["byte_start"]):
                    if part.numbers & left:
                        yield part
                        return
