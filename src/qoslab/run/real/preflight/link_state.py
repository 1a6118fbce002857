"""Check that ports are up, and match the speed of the experiment's links."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.model.experiment import Link, LinkEnd
from qoslab.run.real.preflight.facts import HostNic, Port, PreflightFacts, PreflightFinding

NOMINAL_SPEED_DRIVERS = frozenset(
    {"", "veth", "dummy", "bridge", "tun", "virtio_net", "macvlan", "802.1Q VLAN Support"}
)
"""Drivers of NICs whose speed and duplex are only nominal."""


def check_ports(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check state, duplex, speed and clock rate."""
    for link, end, _ in facts.link_ends():
        port, card, device = facts.router_interface(end), facts.host_nic(end), facts.device(end)
        if port is not None:
            yield from _check_router_port(link, end.node, device, port)
        elif card is not None:
            yield from _check_host_nic(facts, link, end, card)


def _check_router_port(link: Link, node: str, device: str, port: Port) -> Iterator[PreflightFinding]:
    if port.shut_down:
        yield PreflightFinding(
            node, f"found {device} shut down, expected it up for the link {link.name}", "enter `no shutdown` there"
        )
    elif not port.line:
        hint = "check whether the cable is in, and the other end is up"
        yield PreflightFinding(node, f"found {device} down, expected it up for the link {link.name}", hint)
    if port.shut_down or not port.line:
        return
    if port.duplex == "half":
        yield PreflightFinding(
            node, f"found {device} half duplex, expected full duplex", "set both ends to `duplex full`, or both to auto"
        )
    if port.mbps is not None and link.framing == "ethernet":
        yield from _check_speed(link, node, device, port.mbps, "`speed`")
    rate = port.clock_rate_bps
    if rate is not None and rate != link.rate.bps:
        message = f"found clock rate {rate} on {device}, expected {link.rate.bps} for the link {link.name}"
        yield PreflightFinding(
            node, message, "set `clock rate`, unless the experiment's configuration does", is_error=False
        )


def _check_host_nic(facts: PreflightFacts, link: Link, end: LinkEnd, card: HostNic) -> Iterator[PreflightFinding]:
    device = facts.device(end)
    if not card.up:
        if facts.host_settings[end.node].isolate == "as it is":
            yield PreflightFinding(
                end.node, f"found {device} down, expected it up for the link {link.name}", f"ip link set {device} up"
            )
        return
    if not card.carrier:
        hint = "check whether the cable is in, and the other end is up"
        yield PreflightFinding(end.node, f"found no link on {device}, expected the link {link.name}", hint)
        return
    if card.driver in NOMINAL_SPEED_DRIVERS:
        return
    if card.duplex == "half":
        hint = "set both ends to full duplex, or let both negotiate"
        yield PreflightFinding(end.node, f"found {device} half duplex, expected full duplex", hint)
    if card.mbps is not None:
        yield from _check_speed(link, end.node, device, card.mbps, "ethtool")


def _check_speed(link: Link, node: str, device: str, mbps: float, by: str) -> Iterator[PreflightFinding]:
    # Ports report whole Mb/s.
    if int(mbps) == link.rate.bps // 1_000_000:
        return
    expected = f"expected {link.rate} for the link {link.name}"
    if mbps * 1_000_000 < link.rate.bps:
        yield PreflightFinding(
            node, f"found {device} at {mbps:g} Mb/s, {expected}", f"the port is too slow: check the cable, or set {by}"
        )
    else:
        yield PreflightFinding(
            node,
            f"found {device} at {mbps:g} Mb/s, {expected}",
            f"set {by} at both ends, or the link's rate in the experiment",
        )


def check_damaged_frames(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Report damaged frames; a run may still be valid if none arrive during it."""
    hint = "check cable and duplex; earlier errors stay counted"
    for link, end, _ in facts.link_ends():
        port, card, device = facts.router_interface(end), facts.host_nic(end), facts.device(end)
        shown = ""
        if port is not None and port.errors:
            shown = ", ".join(f"{count} {what}" for what, count in port.errors.items())
        elif card is not None and card.errors:
            shown = f"{card.errors} errors"
        if shown:
            yield PreflightFinding(
                end.node, f"found {shown} on {device}, expected none on the link {link.name}", hint, is_error=False
            )
