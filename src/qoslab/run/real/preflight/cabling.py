"""Check that each link leads to the experiment's node: by hardware addresses, a switch's table, CDP and LLDP, pings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from qoslab.ios.model.ios_names import interface_kind
from qoslab.model.experiment import Link, LinkEnd
from qoslab.run.real.preflight.facts import CableAnswers, PreflightFacts, PreflightFinding

Proof = Literal["proven", "plausible", "not seen"]
"""Certainty of a link.

`proven`: the far end's hardware address is on this cable. `plausible`: the far end answers, but the path is unknown.
"""

HINT = "check the cable and the VLANs of the switch ports in between"


def check_cabling(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Report links that lead to another node, or to none."""
    for link in facts.experiment.topology.links:
        found = [each for end, far in (link.ends, link.ends[::-1]) for each in _proof_from_end(facts, link, end, far)]
        # Both ends of a wrong cable report it; one report is enough if they are equal.
        yield from dict.fromkeys(found)


def link_proofs(facts: PreflightFacts) -> dict[str, Proof]:
    """Return the certainty of each link."""
    return {link.name: _link_proof(facts, link) for link in facts.experiment.topology.links}


def has_unchecked_cables(facts: PreflightFacts) -> bool:
    """Return whether cables of hosts are still unchecked, since their interfaces are down until a run starts."""
    return any(
        card is not None and not card.up and facts.host_settings[end.node].isolate != "as it is"
        for _, end, _ in facts.link_ends()
        for card in (facts.host_nic(end),)
    )


def _link_proof(facts: PreflightFacts, link: Link) -> Proof:
    for near, far in (link.ends, link.ends[::-1]):
        expected = facts.end_mac(far)
        if expected and expected in _answering_macs(facts, near, far):
            return "proven"
        if near.node in facts.routers and _learnt_port(facts, near, far) == facts.device(near):
            return "proven"
        if _discovered_neighbour(facts, near) == (far.node, facts.device(far)):
            return "proven"
    for near, far in (link.ends, link.ends[::-1]):
        router = facts.routers.get(near.node)
        if router is not None and far.address is not None and str(far.address.ip) in router.pings:
            trips = router.pings[str(far.address.ip)]
            if trips.took_ms:
                return "plausible"
        cable = _cable_answers(facts, near)
        if cable is not None and cable.round_trips is not None:
            return "plausible"
    return "not seen"


def _proof_from_end(facts: PreflightFacts, link: Link, near: LinkEnd, far: LinkEnd) -> Iterator[PreflightFinding]:
    if near.node in facts.hosts:
        yield from _proof_from_host(facts, link, near, far)
    elif near.node in facts.routers and facts.routers[near.node].ios:
        yield from _proof_from_router(facts, link, near, far)


def _proof_from_host(facts: PreflightFacts, link: Link, near: LinkEnd, far: LinkEnd) -> Iterator[PreflightFinding]:
    cable, card = _cable_answers(facts, near), facts.host_nic(near)
    if cable is None or card is None or not card.carrier or cable.why:
        return
    where, there = f"{facts.device(near)} of {near.node}", f"{facts.device(far)} of {far.node}"
    expected = facts.end_mac(far)
    answers = _answering_macs(facts, near, far)
    if far.address is not None and len(answers) > 1:
        owners = " and ".join(facts.mac_owner(mac) or mac for mac in answers)
        message = f"found two devices answering for {far.address.ip} at {where} ({owners}), expected only {there}"
        yield PreflightFinding(f"link {link.name}", message, "remove the address from the other one")
        return
    if expected and expected in answers:
        return
    # If the far end's hardware address is unknown, the address of another device may answer.
    strangers = {facts.mac_owner(mac) or (mac if expected else "") for macs in cable.macs.values() for mac in macs}
    if others := sorted(strangers - {"", there}):
        message = f"found {' and '.join(others)} at {where}, expected {there}"
        yield PreflightFinding(
            f"link {link.name}", message, "connect the cable there, or name the interfaces in the inventory"
        )
    elif far.address is not None and not answers and not _has_reported_cause(facts, far):
        message = f"found no answer for {far.address.ip} at {where}, expected {there}"
        yield PreflightFinding(f"link {link.name}", message, HINT)


def _proof_from_router(facts: PreflightFacts, link: Link, near: LinkEnd, far: LinkEnd) -> Iterator[PreflightFinding]:
    router = facts.routers[near.node]
    where, there = f"{facts.device(near)} of {near.node}", f"{facts.device(far)} of {far.node}"
    neighbour = _discovered_neighbour(facts, near)
    if neighbour is not None and neighbour[0] in facts.routers and neighbour != (far.node, facts.device(far)):
        yield PreflightFinding(
            f"link {link.name}",
            f"found {neighbour[1]} of {neighbour[0]} at {where}according to that device, expected {there}",
            HINT,
        )
        return
    port = _learnt_port(facts, near, far)
    if port and port != facts.device(near):
        yield PreflightFinding(
            f"link {link.name}", f"found {there} at {port} of {near.node}, expected it at {facts.device(near)}", HINT
        )
        return
    if far.address is None or far.node not in facts.routers:
        return
    address, expected = str(far.address.ip), facts.end_mac(far)
    mac, _ = router.arp.get(address, ("", ""))
    if mac and expected and mac != expected:
        message = f"found {facts.mac_owner(mac) or mac} with {address} at {where}, expected {there}"
        yield PreflightFinding(f"link {link.name}", message, HINT)
        return
    silent = not mac and address in router.pings and not router.pings[address].took_ms
    if silent and not _has_reported_cause(facts, far) and not _has_reported_cause(facts, near):
        message = f"found no answer for {address} at {where}, expected {there}"
        yield PreflightFinding(f"link {link.name}", message, HINT)


def _cable_answers(facts: PreflightFacts, near: LinkEnd) -> CableAnswers | None:
    host = facts.hosts.get(near.node)
    return None if host is None else host.cables.get(near.interface)


def _answering_macs(facts: PreflightFacts, near: LinkEnd, far: LinkEnd) -> tuple[str, ...]:
    """Return the hardware addresses that answer for the far end's address on the near end's cable."""
    if far.address is None:
        return ()
    address = str(far.address.ip)
    cable = _cable_answers(facts, near)
    if cable is not None:
        return tuple(cable.macs.get(address, ()))
    router = facts.routers.get(near.node)
    mac, interface = ("", "") if router is None else router.arp.get(address, ("", ""))
    return (mac,) if mac and interface == facts.device(near) else ()


def _learnt_port(facts: PreflightFacts, near: LinkEnd, far: LinkEnd) -> str:
    """Return the full name of the port on which a switch has learnt the far end; empty if it has not."""
    router = facts.routers.get(near.node)
    short = "" if router is None else router.learnt.get(facts.end_mac(far), "")
    if not short or router is None:
        return ""
    return next((name for name in router.ports if _is_same_interface(short, name)), short)


def _is_same_interface(short: str, name: str) -> bool:
    """Return whether a short interface name such as Gi1/0/15 matches a full one such as GigabitEthernet1/0/15."""
    kind, full = interface_kind(short), interface_kind(name)
    return full.startswith(kind) and name[len(full) :] == short[len(kind) :]


def _discovered_neighbour(facts: PreflightFacts, near: LinkEnd) -> tuple[str, str] | None:
    """Return the neighbour by CDP or LLDP: node and interface."""
    router = facts.routers.get(near.node)
    if router is None:
        return None
    device = facts.device(near)
    return next(
        ((name, port) for own, name, port in router.neighbours if own == device or _is_same_interface(own, device)),
        None,
    )


def _has_reported_cause(facts: PreflightFacts, end: LinkEnd) -> bool:
    """Return whether another check has reported the cause of the missing answer."""
    port, card = facts.router_interface(end), facts.host_nic(end)
    if port is not None:
        has = end.address is None or str(end.address) in port.addresses
        return port.shut_down or not port.line or not has
    if card is not None:
        # The run may set its address.
        return not card.up or not card.carrier or str(end.address) not in card.addresses
    return True
