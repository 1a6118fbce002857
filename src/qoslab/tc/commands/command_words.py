"""Words of tc commands with their positions, and the error for a refused word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qoslab.errors import IosError

_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+|\S+""")
"""Pattern of a word; blanks within quotes are part of it, and an unclosed quote is a word by itself."""
_QUOTED = re.compile(r""""([^"]*)"|'([^']*)'""")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command."""

    text: str
    line: int
    """Line of the text, from 1."""
    column: int
    """Column of the line, from 1."""


class TcError(IosError):
    """Error for a tc command that the router refuses; `number` is the line."""

    def __init__(self, source: str, word: Word, found: str, hint: str = "") -> None:
        """`found` says "found …, expected …"."""
        super().__init__(f"{source}:{word.line}:{word.column}: {found}", hint=hint)
        self.number, self.column, self.found, self.near = word.line, word.column, found, hint


class RefusedWordError(Exception):
    """Error for a refused word; the caller that read the text adds the name of the source."""

    def __init__(self, word: Word, found: str, hint: str = "") -> None:
        """`found` says "found …, expected …"."""
        super().__init__(found)
        self.word, self.found, self.hint = word, found, hint


_NOT_IOS = ("tc", "ethtool", "sysctl", "nft", "iptables", "modprobe", "ifconfig")
"""Programs of Linux whose names begin no line of IOS."""
PROGRAMS = ("ip", "bridge", *_NOT_IOS[1:])
"""Other programs of Linux whose commands users may expect in a template."""
_IP_OBJECTS = ("link", "neigh", "rule", "netns")
"""Objects of ip(8) that begin no word after `ip` on IOS, unlike `addr`."""


def is_linux_command(command: list[Word]) -> bool:
    """Return whether a command is one of tc or of another program of Linux, and no line of IOS."""
    words = [each.text for each in command[:2]]
    return words[0] in _NOT_IOS or (words[0] == "ip" and words[-1] in _IP_OBJECTS)


def split_commands(text: str) -> Iterator[list[Word]]:
    """Yield the words of each command: one a line, or several lines that end with a backslash.

    Blank lines are left out, and comments: from `#` at the start of a word to the end of the line. Quotes join words
    as in a shell, and are removed.
    """
    words: list[Word] = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in _WORD.finditer(line):
            if match[0].startswith("#") or match[0] == "\\":
                break
            text = _QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", match[0])
            words.append(Word(text, number, match.start() + 1))
        if not line.rstrip().endswith("\\") and words:
            yield words
            words = []
    if words:
        yield words


class WordReader:
    """The words of a command, read from the left."""

    def __init__(self, words: list[Word]) -> None:
        self._words = words
        self._next = 0

    @property
    def last(self) -> Word:
        """The word read last; the first one before that."""
        return self._words[max(self._next - 1, 0)]

    def peek_word(self) -> Word | None:
        """Return the next word without reading it."""
        return self._words[self._next] if self._next < len(self._words) else None

    def take(self, expected: str) -> Word:
        """Read a word. Raise `RefusedWordError` with `expected` at the end of the command."""
        word = self.peek_word()
        if word is None:
            raise RefusedWordError(
                self.last, f'found the end of the command after "{self.last.text}", expected {expected}'
            )
        self._next += 1
        return word

    def read_rest(self) -> list[Word]:
        """Read all remaining words."""
        words, self._next = self._words[self._next :], len(self._words)
        return words

    def skip(self, text: str) -> bool:
        """Read the next word if it is `text`; return whether it was."""
        word = self.peek_word()
        if word is None or word.text != text:
            return False
        self._next += 1
        return True
