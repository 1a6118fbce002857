"""Patterns of lines in the output of routers."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(?<!\?P)<(\w+)>")


def line_pattern(text: str) -> re.Pattern[str]:
    r"""Compile a regular expression in which `<name>` is a number: `(?P<name>\d+)`."""
    return re.compile(_NUMBER.sub(r"(?P<\1>\\d+)", text))
