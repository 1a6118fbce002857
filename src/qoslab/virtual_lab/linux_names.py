"""Linux names of a virtual router's interfaces."""

from __future__ import annotations

import re

from qoslab.errors import UserError

LINUX_NAME_LIMIT = 15
"""Greatest length of an interface name in the kernel: IFNAMSIZ - 1 (linux/if.h)."""

_IOS_NAME = re.compile(r"(?P<type>[A-Z][A-Za-z-]*[A-Za-z])(?P<numbers>\d+(?:/\d+)*(?:\.\d+)?)")


def linux_interface(ios_name: str, suffix: str = "") -> str:
    """Return the Linux name of a router's interface: two letters of the type, numbers joined by `-`.

    FastEthernet0/1 → Fa0-1, GigabitEthernet1/0/15 → Gi1-0-15; `suffix` (for example `.in`) is appended. Raise
    `UserError` if `ios_name` is not a full IOS interface name, or if its Linux name would be longer than 15 characters.
    """
    match = _IOS_NAME.fullmatch(ios_name)
    if match is None:
        raise UserError(
            f"{ios_name!r} is not an IOS interface name",
            hint="Write the type in full and the numbers, for example FastEthernet0/1.",
        )
    name = match["type"][:2] + match["numbers"].replace("/", "-") + suffix
    if len(name) > LINUX_NAME_LIMIT:
        raise UserError(
            f"interface {ios_name} would be called {name} in Linux, which is longer than {LINUX_NAME_LIMIT} characters",
            hint="Use an interface with smaller numbers.",
        )
    return name
