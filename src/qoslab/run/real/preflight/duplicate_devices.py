"""Check that no two nodes of an inventory are the same device."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from qoslab.run.real.preflight.facts import Facts, Found, HostFacts, RouterFacts

LOOPBACK = "lo"


def twice(facts: Facts) -> Iterator[Found]:
    """Report a router with two names, and a machine with two names unless each has its interfaces in a namespace.

    Hardware addresses are compared: virtual routers of one model may share a serial number, and hosts that are
    namespaces of one machine share a machine-id.
    """
    for (name, router), (other, another) in combinations(facts.routers.items(), 2):
        own = _of_router(router)
        if own and own == _of_router(another):
            board = f", serial number {router.board}" if router.board else ""
            message = f"found one router under both names ({_listed(own)}{board}), expected a device for each"
            yield Found(f"{name} and {other}", message, "correct the ansible_host of one of them")
    for (name, host), (other, another_host) in combinations(facts.hosts.items(), 2):
        own = _of_host(host)
        if not own or (host.machine, own) != (another_host.machine, _of_host(another_host)):
            continue
        of_one, of_other = _used(facts, name), _used(facts, other)
        ways = {facts.host_settings[each].isolate for each in (name, other)}
        if both := sorted(of_one & of_other):
            message = (
                f"found one machine under both names, and {', '.join(both)} for both, expected one interface for each"
            )
            yield Found(
                f"{name} and {other}",
                message,
                "give each a different device in qoslab_interfaces, or a different ansible_host",
            )
        elif ways != {"namespace"}:
            message = f"found one machine under both names ({_listed(own)}), expected a device for each"
            yield Found(f"{name} and {other}", message, "set `qoslab_isolate: namespace` for both, or use two machines")


def _of_router(router: RouterFacts) -> dict[str, str]:
    return {name: port.mac for name, port in router.ports.items() if port.mac}


def _of_host(host: HostFacts) -> dict[str, str]:
    return {name: card.mac for name, card in host.cards.items() if name != LOOPBACK and card.mac}


def _used(facts: Facts, name: str) -> set[str]:
    """Return the experiment's interfaces under the host's own names."""
    return {facts.device(near) for _, near, _ in facts.experiment.topology.links_of(name)}


def _listed(addresses: dict[str, str]) -> str:
    name, mac = next(iter(addresses.items()))
    return f"{name} has {mac} in both"
