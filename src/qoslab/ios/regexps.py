r"""Regular expressions as IOS has them in output filters, matched in linear time. Pure.

`.` any character, `[a-z]` and `[^a-z]` ranges, `(…)` groups, `|` alternatives, `*`, `+`, `?` repetitions, `^` and `$`
the ends of the line, `\` before a character that means itself, and `_`: a comma, brace, bracket, blank or end of the
line (Cisco IOS Configuration Fundamentals, "Regular Expressions"; that it matches itself too is an interpretation, for
names with one). Recalled groups (`\1`) are not there.

An expression becomes a nondeterministic automaton, all of whose states are followed at once, so that no expression
takes longer than its length times the text's: in a virtual router it comes from whoever is logged in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

LENGTH_LIMIT = 254
"""Characters of an expression; a line typed to IOS has no more."""
CACHE_LIMIT = 4096
"""Remembered steps; then all are forgotten."""

NESTING_LIMIT = 50
"""Brackets inside one another."""

_DELIMITERS = frozenset(",{}() _")


class RegexpError(ValueError):
    """A text that is no regular expression."""


@dataclass(slots=True)
class _State:
    """`take` takes a character, `split` goes both ways, `start` and `end` hold there, `found` is the goal."""

    kind: str
    ways: tuple[int, ...] = ()
    characters: frozenset[str] = frozenset()
    all_but: bool = False
    """True if it takes all characters but those."""


class Regexp:
    """A regular expression. `RegexpError` where the text is none."""

    def __init__(self, text: str) -> None:
        if len(text) > LENGTH_LIMIT:
            raise RegexpError(f"found {len(text)} characters, expected at most {LENGTH_LIMIT}")
        self.text = text
        self._states = [_State("found")]
        self._begin = _Parser(text, self._states).whole()(0)
        self._steps: dict[tuple[frozenset[int], str, bool], frozenset[int]] = {}

    def search(self, line: str) -> bool:
        """Return whether it matches anywhere in the line."""
        states = self._closed([self._begin], first=True, last=not line)
        end = len(line) - 1
        for index, character in enumerate(line):
            if 0 in states:
                return True
            key = (states, character, index == end)
            following = self._steps.get(key)
            if following is None:
                if len(self._steps) >= CACHE_LIMIT:
                    self._steps.clear()
                following = self._steps[key] = self._step(states, character, last=index == end)
            states = following
        return 0 in states

    def _step(self, states: frozenset[int], character: str, *, last: bool) -> frozenset[int]:
        taken = [self._begin]  # a match may begin anywhere
        for number in states:
            state = self._states[number]
            if state.kind == "take" and (character in state.characters) != state.all_but:
                taken.extend(state.ways)
        return self._closed(taken, first=False, last=last)

    def _closed(self, states: list[int], *, first: bool, last: bool) -> frozenset[int]:
        """Return these states and those reached from them without a character."""
        seen = set[int]()
        while states:
            number = states.pop()
            if number in seen:
                continue
            seen.add(number)
            state = self._states[number]
            if state.kind == "split" or (state.kind == "start" and first) or (state.kind == "end" and last):
                states.extend(state.ways)
        return frozenset(seen)


_Part: TypeAlias = Callable[[int], int]
"""Adds its states before a state, and says which is the first."""


class _Parser:
    """Recursive descent; states are added from the end of the expression to its beginning."""

    def __init__(self, text: str, states: list[_State]) -> None:
        self.text = text
        self.states = states
        self.at = 0
        self.depth = 0

    def add(self, state: _State) -> int:
        self.states.append(state)
        return len(self.states) - 1

    def whole(self) -> _Part:
        part = self.alternatives()
        if self.at < len(self.text):
            raise RegexpError("found ) without (")
        return part

    def alternatives(self) -> _Part:
        ways = [self.sequence()]
        while self.text[self.at : self.at + 1] == "|":
            self.at += 1
            ways.append(self.sequence())
        if len(ways) == 1:
            return ways[0]
        return lambda after: self.add(_State("split", tuple(way(after) for way in ways)))

    def sequence(self) -> _Part:
        parts: list[_Part] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self.repeated())

        def part(after: int) -> int:
            for each in reversed(parts):
                after = each(after)
            return after

        return part

    def repeated(self) -> _Part:
        part = self.atom()
        while (sign := self.text[self.at : self.at + 1]) and sign in "*+?":
            self.at += 1
            part = self.repetition(part, sign)
        return part

    def repetition(self, part: _Part, sign: str) -> _Part:
        def repeated(after: int) -> int:
            again = self.add(_State("split"))
            first = part(after if sign == "?" else again)
            self.states[again].ways = (first, after)
            return first if sign == "+" else again

        return repeated

    def atom(self) -> _Part:
        character = self.text[self.at]
        self.at += 1
        match character:
            case "*" | "+" | "?":
                raise RegexpError(f"found nothing before {character}")
            case "(":
                self.depth += 1
                if self.depth > NESTING_LIMIT:
                    raise RegexpError(f"found more than {NESTING_LIMIT} brackets inside one another")
                part = self.alternatives()
                self.depth -= 1
                if self.at == len(self.text):
                    raise RegexpError("found ( without )")
                self.at += 1
                return part
            case "^" | "$":
                kind = "start" if character == "^" else "end"
                return lambda after: self.add(_State(kind, (after,)))
            case "_":
                return self.delimiter
            case "[":
                return self.range()
            case ".":
                return lambda after: self.add(_State("take", (after,), all_but=True))
            case "\\":
                if self.at == len(self.text):
                    raise RegexpError("found nothing behind the last \\")
                character = self.text[self.at]
                self.at += 1
        return lambda after: self.add(_State("take", (after,), frozenset(character)))

    def delimiter(self, after: int) -> int:
        ends = [self.add(_State(kind, (after,))) for kind in ("start", "end")]
        return self.add(_State("split", (*ends, self.add(_State("take", (after,), _DELIMITERS)))))

    def range(self) -> _Part:
        all_but = self.text[self.at : self.at + 1] == "^"
        self.at += all_but
        # A bracket right behind the opening one is a character.
        end = self.text.find("]", self.at + 1)
        if end < 0:
            raise RegexpError("found [ without ]")
        inside, self.at = self.text[self.at : end], end + 1
        characters: set[str] = set()
        while inside:
            if inside[1:2] == "-" and len(inside) > 2:
                low, high = ord(inside[0]), ord(inside[2])
                if high < low:
                    raise RegexpError(f"found the range {inside[:3]}, expected the lesser first")
                characters.update(map(chr, range(low, high + 1)))
                inside = inside[3:]
            else:
                characters.add(inside[0])
                inside = inside[1:]
        return lambda after: self.add(_State("take", (after,), frozenset(characters), all_but))
