"""Marks in a configuration with which a template of Ansible would begin."""

from __future__ import annotations

import re


def template_mark(text: str) -> str:
    """Return where the first such mark is and what it is, as `LINE:COLUMN: found …`; empty if there is none.

    `ios_config` renders the file that it sends: with ansible.netcommon 8.2.0 only if Ansible trusts the text, which
    it does not; 8.7.1 declares all of it trusted, and runs what it says.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.search(r"\{[{%#]", line):
            return (
                f"{number}:{found.start() + 1}: found {found[0]!r}, the start of an Ansible template: the line would "
                f"be rendered, not sent"
            )
    return ""
