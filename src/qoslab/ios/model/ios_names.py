"""Names that IOS uses for interfaces, code points, protocols and ports, and their short forms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Interface, IPv6Network

from qoslab.model.units import DSCP_NUMBERS

INTERFACE_TYPES = (
    "FastEthernet",
    "GigabitEthernet",
    "TenGigabitEthernet",
    "Ethernet",
    "Serial",
    "ATM",
    "Loopback",
    "Tunnel",
    "Vlan",
    "Port-channel",
    "Null",
)

FURTHER_TYPES = (
    "TwoGigabitEthernet",
    "FiveGigabitEthernet",
    "TwentyFiveGigE",
    "FortyGigabitEthernet",
    "HundredGigE",
    "BDI",
    "Dialer",
    "Multilink",
    "Virtual-Template",
)
"""Interface types of later routers: they do not change the abbreviations of the other types."""

OTHER_KINDS = ("Port-channel", "Tunnel", "Vlan", "BDI", "Dialer", "Multilink", "Virtual-Template")
"""Interface types without a physical line, which no packet of a lab uses."""

_NUMBERS = r"(?:[0-9]{1,10}(?:/[0-9]{1,10}){0,2}(?:\.([0-9]{1,10}))?)"
_INTERFACE = re.compile(rf"([A-Za-z][A-Za-z-]*)({_NUMBERS})")
MAX_SUBINTERFACE = 2**32 - 1
"""The largest number of a subinterface (Cisco, "interface")."""


def interface_type(abbreviation: str) -> str | None:
    """Return the full type name that `abbreviation` stands for; None if there is none or more than one."""
    wanted = abbreviation.lower()
    exact = [name for name in (*INTERFACE_TYPES, *FURTHER_TYPES) if name.lower() == wanted]
    found = exact or next(
        filter(None, (_unique_prefix_match(wanted, names) for names in (INTERFACE_TYPES, FURTHER_TYPES))), []
    )
    return found[0] if len(found) == 1 else None


def _unique_prefix_match(wanted: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.lower().startswith(wanted)]


def interface_name(text: str) -> str | None:
    """Return the full name of an interface written in any abbreviation (`Fa0/1`, `f0/1`), or None."""
    match = _INTERFACE.fullmatch(text)
    if match is None:
        return None
    kind = interface_type(match[1])
    return None if kind is None or not _is_subinterface(match[3]) else kind + match[2]


def interface_kind(name: str) -> str:
    """Return the type of a full interface name: `FastEthernet` of `FastEthernet0/1`."""
    return name.rstrip("0123456789/.")


def short_name(name: str) -> str:
    """Return the short form of a full interface name: `Gi1/0/15` of `GigabitEthernet1/0/15`."""
    kind = interface_kind(name)
    return kind[:2] + name[len(kind) :]


def ipv6_text(address: IPv4Address | IPv6Address | IPv6Interface | IPv4Network | IPv6Network) -> str:
    """Return an IPv6 address, with or without prefix length, as IOS prints it: upper-case, longest zeros compressed.

    The type allows either family, but all callers pass IPv6 addresses.
    """
    return str(address).upper()


def address_text(address: IPv4Address | IPv6Address | None) -> str:
    """Return an address of either family as IOS prints it; empty for None."""
    if address is None:
        return ""
    return ipv6_text(address) if address.version == 6 else str(address)


def _is_subinterface(number: str | None) -> bool:
    """Return whether this is a valid subinterface number, or there is none."""
    return number is None or int(number) <= MAX_SUBINTERFACE


DSCP_NAMES: dict[int, str] = {number: name for name, number in DSCP_NUMBERS.items()}

# RFC 791, section 3.1, in the spelling of IOS.
PRECEDENCE_NUMBERS: dict[str, int] = {
    "routine": 0,
    "priority": 1,
    "immediate": 2,
    "flash": 3,
    "flash-override": 4,
    "critical": 5,
    "internet": 6,
    "network": 7,
}
PRECEDENCE_NAMES: dict[int, str] = {number: name for name, number in PRECEDENCE_NUMBERS.items()}


def dscp_text(value: int) -> str:
    """Return the name that IOS prints for a code point, or its number if it has none."""
    return DSCP_NAMES.get(value, str(value))


def vlans_text(vlans: tuple[int, int]) -> str:
    """Return a range of VLANs as typed, such as `100` or `100-199`."""
    first, last = vlans
    return str(first) if first == last else f"{first}-{last}"


def join_with_blanks(values: Iterable[object]) -> str:
    """Return values separated by blanks, as in commands and output."""
    return " ".join(map(str, values))
