"""Check that interfaces have the experiment's addresses."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_interface

from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding


def check_addresses(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check the addresses of routers and of unchanged hosts; other hosts get theirs from the run."""
    for _, end, _ in facts.link_ends():
        device, port, card = facts.device(end), facts.router_interface(end), facts.host_nic(end)
        if port is not None:
            there = port.addresses
            elsewhere = {name: each.addresses for name, each in facts.routers[end.node].ports.items()}
        elif card is not None and facts.host_settings[end.node].isolate == "as it is":
            there = card.addresses
            elsewhere = {name: each.addresses for name, each in facts.hosts[end.node].cards.items()}
        else:
            continue
        for address in end.addresses:
            if any(ip_interface(each) == address for each in there):
                continue
            own = [each for each in there if ip_interface(each).version == address.version]
            has = " and ".join(own) if own else "no address"
            holder = [name for name, each in elsewhere.items() if str(address) in each]
            also = f" ({address} is on {holder[0]})" if holder else ""
            hint = "give it that address, or check whether it is the right interface"
            yield PreflightFinding(end.node, f"found {has} on {device}{also}, expected {address}", hint)
