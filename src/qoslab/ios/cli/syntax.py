"""Notation of command syntax, compiled to a small automaton; see `grammar` for the notation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qoslab.ios.cli.arguments import ArgumentType, argument_type


@dataclass(frozen=True, slots=True)
class Argument:
    """`<name:type>`."""

    name: str
    type: ArgumentType


Symbol = str | Argument


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence of nodes."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several nodes; none of them if `optional`."""

    nodes: tuple[Node, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    """A node that occurs one or more times."""

    node: Node


Node = str | Argument | Sequence | Choice | Repeat

_LEXEME = re.compile(r"\s*(?:(?P<mark>[()\[\]|+])|<(?P<argument>[^<>\s]+)>|(?P<word>[^\s()\[\]|<>+]+))")
_NAME = re.compile(r"<([^<>:\s]+)[^<>\s]*>|([^\s()\[\]|<>+]+)")
_LEADING = re.compile(r"\s*+([^\s()\[\]|<>+]++)(?!\s*\+)")


def parse(text: str) -> Node:
    """Parse the notation. Raise ValueError if it is invalid."""
    lexemes: list[Symbol] = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = _LEXEME.match(text, position)
        if match is None:
            raise ValueError(f"syntax {text!r}: cannot read column {position}")
        position = match.end()
        if match["argument"]:
            name, _, kind = match["argument"].partition(":")
            lexemes.append(Argument(name, argument_type(kind or name)))
        else:
            lexemes.append(match["mark"] or match["word"])
    node, rest = _parse_choice(lexemes, 0)
    if rest != len(lexemes):
        raise ValueError(f"syntax {text!r}: unexpected {lexemes[rest]}")
    return node


def _parse_choice(lexemes: list[Symbol], index: int) -> tuple[Node, int]:
    nodes: list[Node] = []
    while True:
        node, index = _parse_sequence(lexemes, index)
        nodes.append(node)
        if index == len(lexemes) or lexemes[index] != "|":
            break
        index += 1
    return (nodes[0] if len(nodes) == 1 else Choice(tuple(nodes), False)), index


def _parse_sequence(lexemes: list[Symbol], index: int) -> tuple[Node, int]:
    nodes: list[Node] = []
    while index < len(lexemes) and lexemes[index] not in ("|", ")", "]"):
        lexeme = lexemes[index]
        index += 1
        if lexeme == "+":
            nodes.append(Repeat(nodes.pop()))
        elif lexeme in ("(", "["):
            node, index = _parse_choice(lexemes, index)
            closing = ")" if lexeme == "(" else "]"
            if index == len(lexemes) or lexemes[index] != closing:
                raise ValueError(f"syntax: {lexeme} is not closed")
            index += 1
            nodes.append(Choice((node,), True) if lexeme == "[" else node)
        else:
            nodes.append(lexeme)
    return Sequence(tuple(nodes)), index


def syntax_names(text: str) -> list[str]:
    """Return the name of every keyword and argument of the notation, without parsing it."""
    return [argument or word for argument, word in _NAME.findall(text)]


def leading_keywords(text: str, most: int) -> tuple[str, ...]:
    """Return the leading keywords common to all lines of this syntax, at most `most`."""
    depth = 0
    for mark in re.findall(r"[()\[\]|]", text):
        if mark == "|" and depth == 0:
            return ()
        depth += {"(": 1, "[": 1, "|": 0}.get(mark, -1)
    found: list[str] = []
    position = 0
    while len(found) < most and (match := _LEADING.match(text, position)):
        found.append(match[1])
        position = match.end()
    return tuple(found)


def with_keyword(word: str, node: Node) -> Node:
    """Return the syntax preceded by a keyword."""
    return Sequence((word, node))


def accept_truncated(node: Node) -> Node:
    """Return a syntax that also accepts truncated lines of `node`, from its leading keywords on."""
    nodes = node.nodes if isinstance(node, Sequence) else (node,)
    leading = next((i for i, each in enumerate(nodes) if not isinstance(each, str)), len(nodes))
    tail: tuple[Node, ...] = ()
    for each in reversed(nodes[max(leading, 1) :]):
        tail = (Choice((Sequence((each, *tail)),), True),)
    return Sequence((*nodes[: max(leading, 1)], *tail))


def without_optional_parts(node: Node) -> Node:
    """Return the syntax without its optional parts."""
    if isinstance(node, Sequence):
        return Sequence(tuple(without_optional_parts(each) for each in node.nodes))
    if isinstance(node, Choice):
        return (
            Sequence(()) if node.optional else Choice(tuple(without_optional_parts(each) for each in node.nodes), False)
        )
    return Repeat(without_optional_parts(node.node)) if isinstance(node, Repeat) else node


@dataclass(frozen=True, slots=True)
class Word:
    """A keyword or an argument of a parsed line."""

    name: str
    text: str
    keyword: bool

    def is_symbol(self, symbol: Symbol) -> bool:
        """Return whether the word matches a symbol of a syntax; arguments are compared by name, not by type."""
        return symbol == self.name if isinstance(symbol, str) else not self.keyword and symbol.name == self.name


@dataclass(frozen=True, slots=True)
class Edge:
    """A step from a state by one symbol."""

    symbol: Symbol
    target: int


class Automaton:
    """The states and edges of one syntax, without empty steps."""

    def __init__(self, node: Node) -> None:
        self._edges: list[list[Edge]] = []
        self._empty: list[list[int]] = []
        self.start = self._state()
        self._final = self._build(node, self.start)
        self._reach = [self._closure(state) for state in range(len(self._edges))]
        self._outgoing = [tuple(edge for state in reach for edge in self._edges[state]) for reach in self._reach]
        self._keywords = [
            tuple((edge.symbol.lower(), edge.symbol, edge.target) for edge in edges if isinstance(edge.symbol, str))
            for edges in self._outgoing
        ]
        self._arguments = [
            tuple((edge.symbol, edge.target) for edge in edges if isinstance(edge.symbol, Argument))
            for edges in self._outgoing
        ]

    def edges(self, state: int) -> tuple[Edge, ...]:
        """Return the steps possible from `state`."""
        return self._outgoing[state]

    def keyword_edges(self, state: int) -> tuple[tuple[str, str, int], ...]:
        """Return the steps by keywords: lower-case keyword, keyword as written, and next state."""
        return self._keywords[state]

    def argument_edges(self, state: int) -> tuple[tuple[Argument, int], ...]:
        """Return the steps by arguments, each with its next state."""
        return self._arguments[state]

    def accepts(self, state: int) -> bool:
        """Return whether the line may end in `state`."""
        return self._final in self._reach[state]

    def fill(self, words: tuple[Word, ...]) -> str | None:
        """Return the longest text of this syntax formed by some of `words`, in order; None if there is none."""
        found = self._fill(self.start, words)
        return None if found is None else " ".join(word.text for word in found)

    def _fill(self, state: int, words: tuple[Word, ...]) -> tuple[Word, ...] | None:
        best: tuple[Word, ...] | None = () if self.accepts(state) else None
        for edge in self.edges(state):
            at = next((index for index, word in enumerate(words) if word.is_symbol(edge.symbol)), None)
            rest = None if at is None else self._fill(edge.target, words[at + 1 :])
            if at is not None and rest is not None and (best is None or 1 + len(rest) > len(best)):
                best = (words[at], *rest)
        return best

    def _state(self) -> int:
        self._edges.append([])
        self._empty.append([])
        return len(self._edges) - 1

    def _build(self, node: Node, start: int) -> int:
        """Add the states of `node` after `start` and return its final state."""
        if isinstance(node, str | Argument):
            end = self._state()
            self._edges[start].append(Edge(node, end))
            return end
        if isinstance(node, Sequence):
            for each in node.nodes:
                start = self._build(each, start)
            return start
        if isinstance(node, Repeat):
            entry = self._state()
            self._empty[start].append(entry)
            end = self._build(node.node, entry)
            self._empty[end].append(entry)
            return end
        end = self._state()
        for each in node.nodes:
            entry = self._state()
            self._empty[start].append(entry)
            self._empty[self._build(each, entry)].append(end)
        if node.optional:
            self._empty[start].append(end)
        return end

    def _closure(self, state: int) -> tuple[int, ...]:
        reached = [state]
        for each in reached:
            reached.extend(target for target in self._empty[each] if target not in reached)
        return tuple(reached)
