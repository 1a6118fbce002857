"""Types of command arguments: recognition, value and placeholder in the answer to `?`.

A type returns None for text that it does not recognise, so that its caller can place the error marker.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import AddressValueError, IPv4Address, IPv6Address, IPv6Interface

from qoslab.ios.model import ios_names, port_names
from qoslab.model.units import DSCP_NUMBERS


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """Parser of an argument."""

    placeholder: str
    """Placeholder printed by `?`."""
    match: Callable[[str], object | None]
    begins: Callable[[str], bool] = lambda text: False
    """True if the text is the first of two tokens that form one value (`FastEthernet 0/1`)."""
    rest_of_line: bool = False
    """True if the argument extends to the end of the line, including blanks."""
    number: bool = False
    """True for a whole number within limits."""


def integer_type(low: int, high: int) -> ArgumentType:
    """Return the type of decimal integers from `low` to `high`."""

    def match(text: str) -> int | None:
        if not re.fullmatch(r"[0-9]{1,20}", text):
            return None
        value = int(text)
        return value if low <= value <= high else None

    return ArgumentType(f"<{low}-{high}>", match, number=True)


def rate_type(low: int, high: int) -> ArgumentType:
    """Return the type of rates from `low` to `high` in bits per second, with an optional decimal point and suffix k, m
    or g."""

    def match(text: str) -> int | None:
        found = re.fullmatch(r"([0-9]{1,20})(?:\.([0-9]{1,9}))?([kmg]?)", text.lower())
        if found is None or (found[2] and not found[3]):
            return None
        value = Decimal(f"{found[1]}.{found[2] or 0}") * {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[found[3]]
        return int(value) if value == int(value) and low <= value <= high else None

    return ArgumentType(f"<{low}-{high}>", match, number=True)


def _parse_address(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text)
    except AddressValueError:
        return None


def _parse_ipv6_address(text: str) -> IPv6Address | None:
    try:
        # IOS has no notation for a zone (`%eth0`).
        return IPv6Address(text) if "%" not in text else None
    except AddressValueError:
        return None


def _parse_ipv6_prefix(text: str) -> IPv6Interface | None:
    address, _, length = text.partition("/")
    found = _parse_ipv6_address(address)
    if found is None or not re.fullmatch(r"[0-9]{1,3}", length) or int(length) > 128:
        return None
    return IPv6Interface((found, int(length)))


def _parse_word(text: str) -> str | None:
    # A question mark asks for help and can't be part of a name.
    return text if "?" not in text else None


def _parse_host_name(text: str) -> str | None:
    """Return a host name; None for an address."""
    return text if re.fullmatch(r"[A-Za-z0-9_.-]*[A-Za-z][A-Za-z0-9_.-]*", text) else None


def _code_parser(numbers: dict[str, int], top: int) -> Callable[[str], int | None]:
    def match(text: str) -> int | None:
        if re.fullmatch(r"[0-9]{1,5}", text):
            return int(text) if int(text) <= top else None
        return numbers.get(text.lower())

    return match


def _list_number(*ranges: tuple[int, int]) -> Callable[[str], int | None]:
    def match(text: str) -> int | None:
        number = int(text) if re.fullmatch(r"[1-9][0-9]{0,3}", text) else 0
        return number if any(low <= number <= high for low, high in ranges) else None

    return match


def _parse_prefix_length(text: str) -> IPv4Address | None:
    """Return the mask of a prefix length such as `/27`."""
    if not re.fullmatch(r"/[0-9]{1,2}", text) or int(text[1:]) > 32:
        return None
    return IPv4Address((1 << 32) - (1 << 32 - int(text[1:])))


def _parse_octet(text: str) -> int | None:
    """Return the value of one or two hexadecimal digits."""
    return int(text, 16) if re.fullmatch(r"[0-9A-Fa-f]{1,2}", text) else None


def _parse_vlans(text: str) -> tuple[int, int] | None:
    """Return the first and last VLAN of `100` or `100-199`."""
    match = re.fullmatch(r"([1-9][0-9]{0,3})(?:-([1-9][0-9]{0,3}))?", text)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return (first, last) if first <= last <= 4094 else None


def _parse_overhead(text: str) -> int | None:
    """Return the bytes that overhead accounting adds or, if negative, subtracts."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,2}", text) and -63 <= int(text) <= 63 else None


def _parse_wide_overhead(text: str) -> int | None:
    """Return the bytes of overhead accounting within the wider limits of IOS-XE."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,7}", text) and abs(int(text)) <= 1_000_000 else None


def _parse_circuit(text: str) -> str | None:
    """Return the `VPI/VCI` of an ATM circuit."""
    match = re.fullmatch(r"([0-9]{1,3})/([0-9]{1,5})", text)
    if match is None or int(match[1]) > 255 or not 1 <= int(match[2]) <= 65535:
        return None
    return f"{int(match[1])}/{int(match[2])}"


def _parse_clock(text: str) -> int | None:
    """Return the seconds of `hh:mm` or `hh:mm:ss`."""
    match = re.fullmatch(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", text)
    if match is None or int(match[2]) > 59 or int(match[3] or 0) > 59:
        return None
    return 3600 * int(match[1]) + 60 * int(match[2]) + int(match[3] or 0)


def _parse_other_interface(text: str) -> str | None:
    name = ios_names.interface_name(text) or text
    return name if _OTHER_INTERFACE.fullmatch(name) else None


def _parse_host_interface(text: str) -> str | None:
    """Return the full name of a Loopback interface with up to ten digits, or of Null0."""
    name = ios_names.interface_name(text)
    return name if name is not None and re.fullmatch(r"Loopback\d{1,10}|Null0", name) else None


def _parse_vlan_interface(text: str) -> str | None:
    """Return the full name of a Vlan interface from 1 to 4094."""
    name = ios_names.interface_name(text)
    found = None if name is None else re.fullmatch(r"Vlan([1-9]\d{0,3})", name)
    return name if found is not None and int(found[1]) <= 4094 else None


_KINDS = (
    "Async|BDI|BRI|BVI|CEM|Cellular|Dialer|Embedded-Service-Engine|Group-Async|ISM|IDS-Sensor|Integrated-Service-Engine"
    "|MFR|Multilink|POS|Port-channel|Service-Engine|Switch|Tunnel|Virtual-(?:Template|PPP|TokenRing)|Vlan|Wlan-GigabitEthernet"
    "|wlan-ap|Dot11Radio|HSSI|TokenRing|NVI|Lex|SM|ucse|vmi|VirtualPortGroup|VoaBypassIn|Video|Content-Engine|LISP|nve|pseudowire|vasileft|vasiright"
)
_OTHER_INTERFACE = re.compile(rf"(?:{_KINDS})(?:\d[\d/:.]*)|Serial\d[\d/.]*:\d+", re.IGNORECASE)
_OTHER_KIND = re.compile(_KINDS, re.IGNORECASE)

TYPES: dict[str, ArgumentType] = {
    "address": ArgumentType("A.B.C.D", _parse_address),
    "mask": ArgumentType("A.B.C.D", _parse_address),
    "wildcard": ArgumentType("A.B.C.D", _parse_address),
    "length": ArgumentType("/nn", _parse_prefix_length),
    "ipv6-address": ArgumentType("X:X:X:X::X", _parse_ipv6_address),
    "ipv6-prefix": ArgumentType("X:X:X:X::X/<0-128>", _parse_ipv6_prefix),
    "word": ArgumentType("WORD", _parse_word),
    "host-name": ArgumentType("WORD", _parse_host_name),
    "overhead": ArgumentType("<-63-63>", _parse_overhead, number=True),
    "wide-overhead": ArgumentType("<-1000000-1000000>", _parse_wide_overhead, number=True),
    "circuit": ArgumentType("<0-255>/<1-65535>", _parse_circuit),
    "clock": ArgumentType("hh:mm", _parse_clock),
    "line": ArgumentType("LINE", lambda text: text or None, rest_of_line=True),
    "interface": ArgumentType(
        "Interface",
        ios_names.interface_name,
        begins=lambda text: text.replace("-", "").isalpha() and ios_names.interface_type(text) is not None,
    ),
    "other-interface": ArgumentType(
        "Interface", _parse_other_interface, begins=lambda text: _OTHER_KIND.fullmatch(text) is not None
    ),
    "host-interface": ArgumentType(
        "Interface",
        _parse_host_interface,
        begins=lambda text: text.isalpha() and ios_names.interface_type(text) in ("Loopback", "Null"),
    ),
    "vlan-interface": ArgumentType(
        "Vlan", _parse_vlan_interface, begins=lambda text: text.isalpha() and ios_names.interface_type(text) == "Vlan"
    ),
    "engine-id": ArgumentType("engineID", lambda text: text if text.lower() == "engineid" else None),
    "tcp-port": ArgumentType("<0-65535>", _code_parser(port_names.TCP_PORTS, 65535)),
    "udp-port": ArgumentType("<0-65535>", _code_parser(port_names.UDP_PORTS, 65535)),
    "standard-list": ArgumentType("<1-99>", _list_number((1, 99), (1300, 1999))),
    "extended-list": ArgumentType("<100-199>", _list_number((100, 199), (2000, 2699))),
    "hexadecimal-octet": ArgumentType("<0-FF>", _parse_octet),
    "dscp": ArgumentType("<0-63>", _code_parser(DSCP_NUMBERS, 63)),
    "vlans": ArgumentType("<1-4094>", _parse_vlans),
    "precedence": ArgumentType("<0-7>", _code_parser(ios_names.PRECEDENCE_NUMBERS, 7)),
}


def argument_type(text: str) -> ArgumentType:
    """Return the type named `text` in the syntax notation: a name in `TYPES`, `LOW-HIGH`, or a rate `LOW-HIGHkmg`."""
    limits = re.fullmatch(r"(\d+)-(\d+)(kmg)?", text)
    if limits:
        return (rate_type if limits[3] else integer_type)(int(limits[1]), int(limits[2]))
    if text not in TYPES:
        raise ValueError(f"no argument type {text!r}")
    return TYPES[text]
