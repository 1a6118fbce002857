"""Names of DSCP code points (RFC 2474, RFC 2597, RFC 3246) as IOS writes them."""

from __future__ import annotations

DSCP_BY_NAME: dict[str, int] = {
    "default": 0,
    **{f"cs{n}": 8 * n for n in range(1, 8)},
    **{f"af{klass}{drop}": 8 * klass + 2 * drop for klass in range(1, 5) for drop in range(1, 4)},
    "ef": 46,
}

_NAMES = {value: name for name, value in DSCP_BY_NAME.items()}


def dscp_name(value: int) -> str:
    """The name of a code point, or its number where it has none."""
    return _NAMES.get(value, str(value))
