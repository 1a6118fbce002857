"""Object groups: named sets of addresses or services for entries of access lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, summarize_address_range
from typing import Literal

from qoslab.ios.model.matches import ANY_ADDRESS, AddressMatch, PortMatch

NOWHERE = IPv4Address(0)


@dataclass(frozen=True, slots=True)
class NetworkObject:
    """A line of a network object group: `host`, a subnet with its mask, `range`, `any`, or another group."""

    kind: Literal["host", "subnet", "range", "any", "group"]
    first: IPv4Address = NOWHERE
    second: IPv4Address = NOWHERE
    """Mask of a subnet, or end of a range."""
    group: str = ""

    @property
    def matches(self) -> list[AddressMatch]:
        """Return the matches of the line itself, without nested groups."""
        match self.kind:
            case "any":
                return [ANY_ADDRESS]
            case "host":
                return [AddressMatch(self.first, NOWHERE)]
            case "subnet":
                wildcard = IPv4Address(int(self.second) ^ 0xFFFFFFFF)
                return [AddressMatch(IPv4Address(int(self.first) & int(self.second)), wildcard)]
            case "range":
                parts = summarize_address_range(self.first, self.second)
                return [AddressMatch(part.network_address, part.hostmask) for part in parts]
            case "group":
                return []


@dataclass(frozen=True, slots=True)
class ServiceObject:
    """A line of a service object group: protocols with ports or an ICMP message, or another group."""

    protocols: tuple[int, ...] = ()
    """Protocol numbers: TCP and UDP for `tcp-udp`, empty for any protocol."""
    source_port: PortMatch | None = None
    destination_port: PortMatch | None = None
    icmp_type: int | None = None
    icmp_code: int | None = None
    group: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ObjectGroup:
    """`object-group network NAME` or `object-group service NAME`; both kinds share one set of names.

    The order of objects is not significant: groups with the same objects are equal.
    """

    name: str
    kind: Literal["network", "service"]
    description: str | None = None
    networks: tuple[NetworkObject, ...] = ()
    services: tuple[ServiceObject, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectGroup) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def _content(self) -> tuple[object, ...]:
        return self.name, self.kind, self.description, frozenset(self.networks), frozenset(self.services)

    @property
    def groups(self) -> list[str]:
        """The nested groups."""
        names = [each.group for each in self.networks] + [each.group for each in self.services]
        return [name for name in names if name]

    @property
    def empty(self) -> bool:
        """True if it has no objects."""
        return not self.networks and not self.services


Groups = Mapping[str, ObjectGroup]


def nested_groups(groups: Groups, name: str) -> Iterator[ObjectGroup]:
    """Yield a group and all its directly or indirectly nested groups, each once."""
    names = [name]
    for each in names:
        if each in groups:
            yield groups[each]
            names += [below for below in groups[each].groups if below not in names]


def group_addresses(groups: Groups, name: str) -> list[AddressMatch]:
    """Return the addresses of a network object group."""
    found = [match for group in nested_groups(groups, name) for each in group.networks for match in each.matches]
    return list(dict.fromkeys(found))


def group_services(groups: Groups, name: str) -> list[ServiceObject]:
    """Return the services of a service object group."""
    found = [each for group in nested_groups(groups, name) for each in group.services if not each.group]
    return list(dict.fromkeys(found))
