r"""Regular expressions of IOS in output filters, matched in linear time by RE2. Pure.

`.` any character, `[a-z]` and `[^a-z]` ranges, `(…)` groups, `|` alternatives, `*`, `+`, `?` repetitions, `^` and `$`
the ends of the line, `\` before a literal character, and `_`: a comma, brace, bracket, blank or end of the line (Cisco
IOS Configuration Fundamentals, "Regular Expressions"; a literal underscore matches too, which is an interpretation).
Recalled groups (`\1`) are not supported.

RE2 has no backtracking: an expression comes from any user who is logged in to a virtual router.
"""

from __future__ import annotations

import re

import re2

LENGTH_LIMIT = 254
"""Maximum length of an expression, that of a line typed to IOS."""
NESTING_LIMIT = 50
"""Maximum depth of nested parentheses."""

_DELIMITER = "(?:^|$|[,{}() _])"


class RegexpError(ValueError):
    """Invalid regular expression."""


class Regexp:
    """A regular expression. Raise RegexpError if the text is invalid."""

    def __init__(self, text: str) -> None:
        if len(text) > LENGTH_LIMIT:
            raise RegexpError(f"found {len(text)} characters, expected at most {LENGTH_LIMIT}")
        self.text = text
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(_to_re2(_replace_surrogates(text)), options)
        except re2.error as error:
            raise RegexpError(f"found an expression that RE2 refuses: {error}") from error

    def search(self, line: str) -> bool:
        """Return whether the expression matches anywhere in the line."""
        return self._compiled.search(_replace_surrogates(line)) is not None


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates (bytes that are not UTF-8), which RE2 does not accept."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _to_re2(text: str) -> str:
    """Return the expression in RE2's syntax."""
    # The open group is the last list, of finished parts; the last part is the atom that a repetition refers to.
    groups: list[list[str]] = [[]]
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        parts = groups[-1]
        match character:
            case "*" | "+" | "?":
                if not parts or parts[-1] == "|":
                    raise RegexpError(f"found nothing before {character}")
                parts[-1] = f"(?:{parts[-1]}){character}"
            case "(":
                if len(groups) > NESTING_LIMIT:
                    raise RegexpError(f"found more than {NESTING_LIMIT} nested brackets")
                groups.append([])
            case ")":
                if len(groups) == 1:
                    raise RegexpError("found ) without (")
                closed = groups.pop()
                groups[-1].append(f"(?:{''.join(closed)})")
            case "|" | "^" | "$":
                parts.append(character)
            case "_":
                parts.append(_DELIMITER)
            case "[":
                range_text, at = _character_set(text, at)
                parts.append(range_text)
            case ".":
                parts.append("(?s:.)")
            case "\\":
                if at == len(text):
                    raise RegexpError("found nothing after the last \\")
                parts.append(re2.escape(text[at]))
                at += 1
            case _:
                parts.append(re2.escape(character))
    if len(groups) > 1:
        raise RegexpError("found ( without )")
    return "".join(groups[0])


def _character_set(text: str, at: int) -> tuple[str, int]:
    """Return the character set that starts after `[` in RE2's syntax, and the position after `]`."""
    negated = text[at : at + 1] == "^"
    at += negated
    # A bracket right after the opening one is a character.
    end = text.find("]", at + 1)
    if end < 0:
        raise RegexpError("found [ without ]")
    inside, found = text[at:end], ""
    while inside:
        length = 3 if inside[1:2] == "-" and len(inside) > 2 else 1
        low, high = inside[0], inside[length - 1]
        if high < low:
            raise RegexpError(f"found the range {inside[:3]}, expected the lower character first")
        found += re2.escape(low) if length == 1 else f"{re2.escape(low)}-{re2.escape(high)}"
        inside = inside[length:]
    return f"[{'^' if negated else ''}{found}]", end + 1
