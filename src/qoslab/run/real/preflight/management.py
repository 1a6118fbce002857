"""Check that test traffic and management paths are separate."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_interface, ip_network

from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding

SEPARATE_NETWORK_HINT = "keep the management network apart from the test networks"


def check_management(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Report test traffic through the management interface, and management traffic through a test interface."""
    networks = {each.network for link in facts.experiment.topology.links for end in link.ends for each in end.addresses}
    for name, host in facts.hosts.items():
        settings = facts.host_settings[name]
        own = {settings.device(near.interface) for _, near, _ in facts.experiment.topology.node_links(name)}
        if host.management in own:
            message = f"found the path to it through {host.management}, expected an interface outside the test networks"
            yield PreflightFinding(name, message, "reach it through another interface")
        if settings.isolate == "namespace":
            continue  # It contains nothing but the test interfaces.
        for device, card in host.cards.items():
            inside = [each for each in card.addresses if ip_interface(each).network in networks]
            if device not in own and inside:
                message = f"found {inside[0]} on {device}, expected test networks only on {' and '.join(sorted(own))}"
                yield PreflightFinding(name, message, f"remove that address; {SEPARATE_NETWORK_HINT}")
        for address, (device, prefix) in host.routes.items():
            if not device or device in own or not _stays_during_run(settings.isolate, address, prefix, networks):
                continue
            message = f"found the route to {address} through {device}, expected it through {' or '.join(sorted(own))}"
            yield PreflightFinding(name, message, f"fix the route to {prefix}")
    for name, router in facts.routers.items():
        try:
            inside_of = [each for each in networks if ip_address(router.address) in each]
        except ValueError:
            continue  # A name.
        if inside_of:
            message = f"found its management address {router.address}, in the test network {inside_of[0]}"
            yield PreflightFinding(
                name,
                message,
                f"its management traffic would cross the test links; {SEPARATE_NETWORK_HINT}",
                is_error=False,
            )


def _stays_during_run(isolate: str, address: str, prefix: str, networks: set[IPv4Network | IPv6Network]) -> bool:
    """Return whether a route remains in effect during the run, which sets routes to the test networks if allowed."""
    if isolate == "as it is":
        return True
    if prefix == "default":
        return False
    length = ip_network(prefix).prefixlen if "/" in prefix else ip_address(prefix).max_prefixlen
    return any(ip_address(address) in each and length > each.prefixlen for each in networks)
