"""Output filters, such as `show … | include RE`."""

from __future__ import annotations

from dataclasses import dataclass

from qoslab.ios.cli.grammar import (
    AmbiguousError,
    Column,
    HelpItem,
    IncompleteError,
    InvalidInputError,
    RejectedError,
    tokenise,
)
from qoslab.ios.regexps import Regexp, RegexpError

KINDS = {
    "begin": "Begin with the line that matches",
    "count": "Count number of lines which match regexp",
    "exclude": "Exclude lines that match",
    "include": "Include lines that match",
    "section": "Filter a section of output",
}


@dataclass(frozen=True, slots=True)
class OutputFilter:
    """A kind of filter and its regular expression."""

    kind: str
    pattern: Regexp

    def apply(self, text: str) -> str:
        """Return the filtered output of a command."""
        lines = text.splitlines()
        match self.kind:
            case "include":
                kept = [line for line in lines if self.pattern.search(line)]
            case "exclude":
                kept = [line for line in lines if not self.pattern.search(line)]
            case "begin":
                first = next((i for i, line in enumerate(lines) if self.pattern.search(line)), len(lines))
                kept = lines[first:]
            case "section":
                kept = self._sections(lines)
            case _:
                count = sum(1 for line in lines if self.pattern.search(line))
                kept = [f"Number of lines which match regexp = {count}"]
        return "".join(line + "\n" for line in kept)

    def _sections(self, lines: list[str]) -> list[str]:
        """Yield each matching line with the deeper indented lines below it."""
        kept: list[str] = []
        depth: int | None = None
        for line in lines:
            indentation = len(line) - len(line.lstrip(" "))
            if depth is not None and line.strip() and indentation <= depth:
                depth = None
            if depth is None and self.pattern.search(line):
                depth = indentation
            if depth is not None and line.strip():
                kept.append(line)
        return kept


def split(line: str) -> tuple[str, Column | None]:
    """Return the command before the first `|`, and the column after the `|` (None without one)."""
    command, mark, _ = line.partition("|")
    return command, len(command) + 1 if mark else None


def parse(line: str, start: Column) -> OutputFilter:
    """Parse the filter that begins at column `start`. Raise CliError with the refusal of IOS."""
    tokens = tokenise(line, start)
    if not tokens:
        raise IncompleteError
    word = tokens[0].text.lower()
    kinds = [kind for kind in KINDS if kind.startswith(word)]
    if not kinds:
        raise InvalidInputError(tokens[0].column)
    if len(kinds) > 1:
        raise AmbiguousError(line, tokens[0].column)
    # The rest of the line is the expression, blanks and further `|` included.
    expression = line[tokens[0].column + len(tokens[0].text) :].lstrip(" ")
    if not expression:
        raise IncompleteError
    try:
        return OutputFilter(kinds[0], Regexp(expression))
    except RegexpError:
        # [I] The wording of the refusal is not backed by a device's sample.
        raise RejectedError("% Failed to compile regular expression.") from None


def filter_help_items(line: str, start: Column) -> list[HelpItem]:
    """Return the possible words after the `|`."""
    tokens = tokenise(line, start)
    if len(tokens) > 1 or (tokens and line.endswith(" ")):
        return [HelpItem("LINE", "Regular Expression")]
    typed = tokens[0].text.lower() if tokens else ""
    items = [HelpItem(kind, text) for kind, text in KINDS.items() if kind.startswith(typed)]
    if not items:
        raise InvalidInputError(tokens[0].column)
    return items
