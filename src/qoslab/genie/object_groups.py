"""`show object-group`, for which Genie has no parser."""

from __future__ import annotations

import re
from typing import Any

Values = dict[str, Any]

_HEAD = re.compile(r"(Network|Service) object group (\S+)")


def parse_object_groups(text: str) -> Values:
    """Parse `text` by name: `kind`, and the lines of its `objects`; empty without groups."""
    result: Values = {}
    objects: list[str] | None = None
    for line in text.splitlines():
        if match := _HEAD.fullmatch(line.rstrip()):
            objects = []
            result[match[2]] = {"kind": match[1].lower(), "objects": objects}
        elif objects is not None and line.startswith(" ") and line.strip():
            objects.append(line.strip())
    return result
