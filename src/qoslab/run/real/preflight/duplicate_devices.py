"""Check that no two nodes of an inventory are the same device."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from qoslab.run.real.preflight.facts import HostFacts, PreflightFacts, PreflightFinding, RouterFacts

LOOPBACK = "lo"


def check_duplicates(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Report a router with two names, and a machine with two names unless each has its interfaces in a namespace.

    Hardware addresses are compared: virtual routers of one model may share a serial number, and hosts that are
    namespaces of one machine share a machine-id.
    """
    for (name, router), (other, another) in combinations(facts.routers.items(), 2):
        own = _router_identity(router)
        if own and own == _router_identity(another):
            board = f", serial number {router.board}" if router.board else ""
            message = f"found one router under both names ({_format_addresses(own)}{board}), expected a device for each"
            yield PreflightFinding(f"{name} and {other}", message, "correct the ansible_host of one of them")
    for (name, host), (other, another_host) in combinations(facts.hosts.items(), 2):
        own = _host_identity(host)
        if not own or (host.machine, own) != (another_host.machine, _host_identity(another_host)):
            continue
        of_one, of_other = _used_interfaces(facts, name), _used_interfaces(facts, other)
        ways = {facts.host_settings[each].isolate for each in (name, other)}
        if both := sorted(of_one & of_other):
            message = (
                f"found one machine under both names, and {', '.join(both)} for both, expected one interface for each"
            )
            yield PreflightFinding(
                f"{name} and {other}",
                message,
                "give each a different device in qoslab_interfaces, or a different ansible_host",
            )
        elif ways != {"namespace"}:
            message = f"found one machine under both names ({_format_addresses(own)}), expected a device for each"
            yield PreflightFinding(
                f"{name} and {other}", message, "set `qoslab_isolate: namespace` for both, or use two machines"
            )


def _router_identity(router: RouterFacts) -> dict[str, str]:
    return {name: port.mac for name, port in router.ports.items() if port.mac}


def _host_identity(host: HostFacts) -> dict[str, str]:
    return {name: card.mac for name, card in host.cards.items() if name != LOOPBACK and card.mac}


def _used_interfaces(facts: PreflightFacts, name: str) -> set[str]:
    """Return the experiment's interfaces under the host's own names."""
    return {facts.device(near) for _, near, _ in facts.experiment.topology.node_links(name)}


def _format_addresses(addresses: dict[str, str]) -> str:
    name, mac = next(iter(addresses.items()))
    return f"{name} has {mac} in both"
