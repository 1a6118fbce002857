"""Static routes along shortest paths, for imported topologies."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Generic, NamedTuple, TypeVar

A = TypeVar("A", IPv4Address, IPv6Address)
N = TypeVar("N", IPv4Network, IPv6Network)


class NodeInterface(NamedTuple, Generic[A, N]):
    """An interface of a node: the node and address at the other end, and its network."""

    other: str
    """Node at the other end; empty if none is known."""
    address: A
    network: N


def shortest_routes(routers: Iterable[str], near: Mapping[str, Sequence[NodeInterface[A, N]]]) -> dict[str, dict[N, A]]:
    """Return the routes by router: for each remote network, the next router on a shortest path."""
    found: dict[str, dict[N, A]] = {name: {} for name in routers}
    for router, routes in found.items():
        own = {each.network for each in near[router]}
        waiting = deque((each.other, each.address) for each in near[router] if each.other in found)
        seen = {router}
        while waiting:
            name, via = waiting.popleft()
            if name in seen:
                continue
            seen.add(name)
            for each in near[name]:
                if each.network not in own:
                    routes.setdefault(each.network, via)
                if each.other in found:
                    waiting.append((each.other, via))
    return found
