"""Redaction of secrets in written and printed text: known values, and secrets in IOS commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from qoslab.ios.device_config.secret_lines import SECRET_REPLACEMENT, remove_secrets

LITERAL = 8
"""Length from which a secret is searched anywhere; a shorter one may be a part of any word."""
_CONTEXT = r"(?:pass(?:word|wd|phrase)?|secret|key|community|token)\W{1,5}(?:[0-9] )?"
"""Text before a short secret."""


class Redaction:
    """Values that must not be shown. Its methods may be called from any thread."""

    def __init__(self, values: Iterable[str | None] = ()) -> None:
        self._values: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None
        self.know(*values)

    def know(self, *values: str | None) -> None:
        """Add values to hide; None and empty texts are ignored."""
        self._values |= {value for value in values if value}
        # Also in their JSON form. A secret that is a prefix of another one is sorted after it.
        forms = {form for value in self._values for form in (value, json.dumps(value)[1:-1])}
        ordered = sorted(forms, reverse=True)
        words = [re.escape(form) for form in ordered if len(form) >= LITERAL]
        short = [re.escape(form) for form in ordered if len(form) < LITERAL]
        if short:
            words.append(rf"(?P<before>(?i:{_CONTEXT}))(?:{'|'.join(short)})(?!\w)")
        self._pattern = re.compile("|".join(words)) if words else None

    @property
    def values(self) -> frozenset[str]:
        """Return the hidden values."""
        return self._values

    def hidden(self, text: str) -> str:
        """Return the text without known values; JSON remains valid."""
        return text if self._pattern is None else self._pattern.sub(_replacement, text)

    def mask(self, text: str) -> str:
        """Return the text of a device without secrets."""
        return self.hidden(remove_secrets(text))


def _replacement(found: re.Match[str]) -> str:
    return (found.groupdict().get("before") or "") + SECRET_REPLACEMENT


KNOWN = Redaction()
"""Secrets that this process has read, as from an inventory."""
