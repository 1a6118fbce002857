"""Lookup `ios_refusals`: patterns by which Ansible recognises that an IOS router refused a line."""

from __future__ import annotations

import re
from typing import Any

from ansible.plugins.lookup import LookupBase


def refusals() -> list[dict[str, str]]:
    """Return the patterns of the installed cisco.ios, then those of qoslab, for `ansible_terminal_stderr_re`.

    That variable replaces the list of the collection, which differs between its releases.
    """
    from ansible_collections.cisco.ios.plugins.terminal.ios import TerminalModule

    from qoslab.ios.refusals import REFUSALS

    theirs = [
        {"pattern": each.pattern.decode()} | ({"flags": "re.I"} if each.flags & re.IGNORECASE else {})
        for each in TerminalModule.terminal_stderr_re
    ]
    return [*theirs, *({"pattern": pattern, "flags": "re.M"} for pattern in REFUSALS)]


class LookupModule(LookupBase):
    """Lookup plugin; Ansible requires this name."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[dict[str, str]]:
        """Return the patterns, each with its flags; terms are ignored."""
        return refusals()
