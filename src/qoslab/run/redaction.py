"""Secrets in what a run writes and prints: those that are known, and those that IOS's own commands say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from qoslab.ios.secrets import REMOVED, without_secrets

LITERAL = 8
"""Characters from which a secret is looked for anywhere; a shorter one may be a part of any word."""


class Redaction:
    """The secrets of a run. Its methods may be called from any thread."""

    def __init__(self, values: Iterable[str | None] = ()) -> None:
        self._values: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.know(*values)

    def know(self, *values: str | None) -> None:
        """Hide these from now on; None and empty texts are no secrets."""
        self._values |= {value for value in values if value}
        # The longest first: one secret may begin as another.
        words = [_sought(value) for value in sorted(self._values, key=len, reverse=True)]
        self._pattern = re.compile("|".join(words)) if words else None

    @property
    def values(self) -> frozenset[str]:
        """What is hidden."""
        return self._values

    def masked(self, text: str) -> str:
        """The text as it may be kept and shown."""
        shown = without_secrets(text)
        return shown if self._pattern is None else self._pattern.sub(REMOVED, shown)


def _sought(value: str) -> str:
    """A short secret counts as a whole word only."""
    word = re.escape(value)
    return word if len(value) >= LITERAL else rf"(?<!\w){word}(?!\w)"
