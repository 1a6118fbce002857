"""Where the engine's mistakes on purpose stand: text that no program has in a build without them.

A change there cannot be noticed, and is not one of the program. The forms are an arm of a `match` with
`if mistaken!(Name) =>`, and `if mistaken!(Name) {`, each also behind `condition &&`, and `(condition &&
mistaken!(Name))`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MADE_IF = re.compile(r"\bif (?:(?:[^{}=;]|[=!<>]=)*&& )?mistaken!\(\w+\)\s*(?P<then>=>|\{)\s*")
MADE_BOTH = re.compile(r"\((?:[^(){}=;|&]|[=!<>]=)*&& mistaken!\(\w+\)\)")
PLACE = re.compile(r"^[^:]+:(\d+):(\d+): (.*)$")
STILL_A_CHANGE = re.compile(r"^replace && with \|\| |mistaken!\(\w+\) with true ")
"""Makes the mistake, or asks for the condition alone."""


def never_made(text: str) -> list[range]:
    """Offsets of conditions with a mistake and of what is done then, behind the `if`: a function may begin there."""
    made_if = [range(match.start() + 1, _end(text, match)) for match in MADE_IF.finditer(text)]
    return [*made_if, *(range(*match.span()) for match in MADE_BOTH.finditer(text))]


def _end(text: str, match: re.Match[str]) -> int:
    """Behind the block, or at the comma behind an arm without one."""
    block = match["then"] == "{"
    depth = int(block)
    for at in range(match.end(), len(text)):
        if text[at] in "([{":
            depth += 1
            block = block or (at == match.end() and text[at] == "{")
        elif text[at] in ")]}":
            depth -= 1
            if depth < 0 or (depth == 0 and block):
                return at + 1
        elif text[at] == "," and depth == 0:
            return at
    return len(text)


def without_effect(names: list[str], text: str) -> Iterator[str]:
    """Those changes of a file, by the names that cargo-mutants gives them, that change nothing of a program."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    dead = never_made(text)
    for name in names:
        if (match := PLACE.match(name)) and not STILL_A_CHANGE.search(match[3]):
            at = starts[int(match[1]) - 1] + int(match[2]) - 1
            if any(at in offsets for offsets in dead):
                yield name
