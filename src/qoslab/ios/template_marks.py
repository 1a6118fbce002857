"""Marks in a configuration that Ansible would read as the beginning of a template."""

from __future__ import annotations

import re


def find_template_mark(text: str) -> str:
    """Return position and text of the first such mark as `LINE:COLUMN: found …`; empty if there is none.

    `ios_config` renders the file that it sends as a template: ansible.netcommon 8.2.0 renders trusted text only, which
    this is not; 8.7.1 marks all text as trusted and evaluates it.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.search(r"\{[{%#]", line):
            return (
                f"{number}:{found.start() + 1}: found {found[0]!r}, the start of an Ansible template: the line would "
                f"be rendered, not sent"
            )
    return ""
