"""Completion for bash: click's method, except for words that bash splits.

Bash ends a word at each character of `COMP_WORDBREAKS`, two of which (`=` and `:`) occur in qoslab's words, and
replaces only the part after the last one. Therefore this module parses the line as typed, and returns only that part of
each proposal.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

_SOURCE = """\
%(complete_func)s() {
    local response type value
    response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                COMPREPLY+=("$value")
                # A value follows.
                if [[ $value == *= ]]; then compopt -o nospace; fi
                ;;
        esac
    done <<< "$response"
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_SPECIAL = re.compile(r"([^\w@%+=:,./~^-])")
"""Characters with a special meaning in bash outside quotes."""


@dataclass(frozen=True)
class TypedLine:
    """A line up to the cursor."""

    words: tuple[str, ...]
    """Complete words, without quotes."""
    incomplete: str
    """The incomplete word at the cursor, parsed in the same way."""
    kept_characters: int
    """Number of characters of the word that remain; bash replaces the rest."""
    quote: str
    """The open quote; empty if there is none."""

    def completion_suffix(self, proposal: str) -> str:
        """Return the part of a proposal that replaces the end of the word."""
        rest = proposal[self.kept_characters :]
        if self.quote == "'":
            return rest.replace("'", r"'\''")
        return re.sub(r'([$`"\\])' if self.quote else _SPECIAL, r"\\\1", rest)


def split_line(line: str, breaks: str) -> TypedLine:
    """Split a line as bash does; `breaks` is its `COMP_WORDBREAKS`."""
    words: list[str] = []
    word: str | None = None
    kept, quote, escaped = 0, "", False
    for each in line:
        if escaped:
            word, escaped = (word or "") + each, False
        elif each == "\\" and quote != "'":
            word, escaped = word or "", True
        elif each == quote:
            quote = ""
        elif quote:
            word = (word or "") + each
        elif each in "'\"":
            word, quote = word or "", each
            kept = len(word)
        elif each.isspace():
            words += [] if word is None else [word]
            word, kept = None, 0
        else:
            word = (word or "") + each
            kept = len(word) if each in breaks else kept
    return TypedLine(tuple(words), word or "", kept, quote)


@add_completion_class
class Bash(BashComplete):
    """Completion in bash that supports `KEY=VALUE` and values with blanks."""

    source_template = _SOURCE

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words after the program's name, and the incomplete word at the cursor."""
        self._typed = split_line(os.environ["COMP_LINE"], os.environ.get("COMP_WORDBREAKS", ""))
        return list(self._typed.words[1:]), self._typed.incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return `TYPE,VALUE`, the form that the script above reads."""
        # For --lab=si, click completes the part after the =.
        option = re.match(r"--[\w-]+=", self._typed.incomplete)
        proposal = f"{option.group() if option else ''}{item.value}"
        return f"{item.type},{self._typed.completion_suffix(proposal)}"
