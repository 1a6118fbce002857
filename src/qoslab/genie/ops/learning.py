"""What ops classes have in common: commands that a device has nothing to say to leave their part out."""

from __future__ import annotations

from typing import Any

from genie.metaparser.util.exceptions import SchemaEmptyParserError


def parsed(device: Any, command: str) -> dict[str, Any]:
    """What a device says to a show command; empty where there is nothing in it."""
    try:
        found: dict[str, Any] = device.parse(command)
    except SchemaEmptyParserError:
        return {}
    return found
