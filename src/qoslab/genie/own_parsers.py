"""Show commands of IOS that the modules next to this one parse without Genie."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from qoslab.genie.interfaces import parse_interfaces
from qoslab.genie.ip_sla import parse_statistics
from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.genie.queueing import parse_queue
from qoslab.genie.show_parser import UNKNOWN_COMMAND, ParsedOutput, failed_parse, to_json_types
from qoslab.genie.vlans import parse_vlans

_Parser = Callable[[str, str], dict[str, Any] | None]
"""Function of the output and of the interface in the command, or an empty text. It returns None if only Genie can parse
the output.
"""
_INTERFACE = r"(?P<interface>[A-Za-z]+\d[\d/.:]*)"
_PARSERS: tuple[tuple[re.Pattern[str], _Parser], ...] = (
    (re.compile(rf"show policy-map interface(?: {_INTERFACE}(?: input| output)?)?"), parse_policy_map_interface),
    (re.compile(r"show ip sla statistics(?: aggregated)?(?: \d+)?"), lambda text, _: parse_statistics(text)),
    (re.compile(rf"show queue {_INTERFACE}"), parse_queue),
    (re.compile(rf"show interfaces(?: {_INTERFACE})?"), lambda text, _: parse_interfaces(text)),
    (re.compile(r"show vlans"), lambda text, _: parse_vlans(text)),
)


def supports_command(command: str) -> bool:
    """Return whether `parse` supports the command."""
    return any(pattern.fullmatch(command) for pattern, _ in _PARSERS)


def parse(command: str, text: str) -> ParsedOutput | None:
    """Parse a router's answer to a command as `show_parser.parse` does; return None if only Genie can.

    Raise `ValueError` for an unknown command.
    """
    for pattern, parser in _PARSERS:
        if found := pattern.fullmatch(command):
            try:
                parsed = parser(text, found.groupdict().get("interface") or "")
            except Exception as error:
                # parsers raise any exception of their code
                return failed_parse(error)
            if parsed is None:
                return None
            return ParsedOutput(to_json_types(parsed)) if parsed else UNKNOWN_COMMAND
    raise ValueError(command)
