"""Conditions of an access list entry on addresses and ports."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Literal


@dataclass(frozen=True, slots=True)
class AddressMatch:
    """An address and its wildcard, of one family: bits set in the wildcard do not matter."""

    address: IPv4Address | IPv6Address
    wildcard: IPv4Address | IPv6Address


ANY_ADDRESS = AddressMatch(IPv4Address("0.0.0.0"), IPv4Address("255.255.255.255"))
ANY_IPV6_ADDRESS = AddressMatch(IPv6Address(0), IPv6Address((1 << 128) - 1))


@dataclass(frozen=True, slots=True)
class PortMatch:
    """TCP or UDP ports; `range` has two, `gt`, `lt` one, `eq` and `neq` one or more."""

    op: Literal["eq", "neq", "gt", "lt", "range"]
    ports: tuple[int, ...]
