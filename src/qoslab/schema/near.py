"""Near matches and the wording of findings."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean "…"?`, or nothing if no known word is near."""
    if len(word) > 100:
        return ""  # comparing takes time that grows with the square
    candidates = list(dict.fromkeys(known))
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    near = get_close_matches(word.lower(), folded, 1, cutoff=0.6)
    return f'did you mean "{folded[near[0]]}"?' if near and folded[near[0]] != word else ""


def one_of(known: Iterable[str]) -> str:
    """`one of a, b, c`; `a` where there is only one."""
    words = list(dict.fromkeys(known))
    return f"one of {', '.join(words)}" if len(words) > 1 else "".join(words) or "one, but there is none"


def clipped(text: str) -> str:
    """The text as a finding quotes it, shortened."""
    return text if len(text) <= 60 else f"{text[:57]}…"


def shown(value: Any) -> str:
    """A value as a finding shows it, shortened."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{clipped(value)}"'
        case dict():
            return "a mapping"
        case list() | tuple():
            return "an empty list" if not value else f"a list of {len(value)}"
        case _:
            return str(value)
