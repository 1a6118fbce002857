"""Near matches and the wording of findings."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean "…"?`, or an empty string if no known word is similar."""
    if len(word) > 100:
        return ""  # comparing takes time that grows with the square
    candidates = list(dict.fromkeys(known))
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    near = get_close_matches(word.lower(), folded, 1, cutoff=0.6)
    return f'did you mean "{folded[near[0]]}"?' if near and folded[near[0]] != word else ""


def clip_text(text: str) -> str:
    """Return the text as quoted in a finding, shortened."""
    return text if len(text) <= 60 else f"{text[:57]}…"


def format_value(value: Any) -> str:
    """Return a value as shown in a finding, shortened."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{clip_text(value)}"'
        case dict():
            return "a mapping"
        case list() | tuple():
            return "an empty list" if not value else f"a list of {len(value)}"
        case _:
            return str(value)
