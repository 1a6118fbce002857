"""Common functions of ops classes: a command without an answer leaves its part out."""

from __future__ import annotations

from typing import Any

from genie.metaparser.util.exceptions import SchemaEmptyParserError


def learn_parsed(device: Any, command: str) -> dict[str, Any]:
    """Return a device's parsed answer to a show command; empty if the answer is empty."""
    try:
        found: dict[str, Any] = device.parse(command)
    except SchemaEmptyParserError:
        return {}
    return found
