"""Check that ports are up, and match the speed of the experiment's links."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.model.experiment import Link, LinkEnd
from qoslab.run.real.preflight.facts import Facts, Found, HostNic, Port

NO_LINE = frozenset({"", "veth", "dummy", "bridge", "tun", "virtio_net", "macvlan", "802.1Q VLAN Support"})
"""Drivers of NICs whose speed and duplex are only nominal."""


def ports(facts: Facts) -> Iterator[Found]:
    """Check state, duplex, speed and clock rate."""
    for link, end, _ in facts.ends():
        port, card, device = facts.port(end), facts.card(end), facts.device(end)
        if port is not None:
            yield from _of_router(link, end.node, device, port)
        elif card is not None:
            yield from _of_host(facts, link, end, card)


def _of_router(link: Link, node: str, device: str, port: Port) -> Iterator[Found]:
    if port.shut_down:
        yield Found(
            node, f"found {device} shut down, expected it up for the link {link.name}", "enter `no shutdown` there"
        )
    elif not port.line:
        hint = "check whether the cable is in, and the other end is up"
        yield Found(node, f"found {device} down, expected it up for the link {link.name}", hint)
    if port.shut_down or not port.line:
        return
    if port.duplex == "half":
        yield Found(
            node, f"found {device} half duplex, expected full duplex", "set both ends to `duplex full`, or both to auto"
        )
    if port.mbps is not None and link.framing == "ethernet":
        yield from _speed(link, node, device, port.mbps, "`speed`")
    rate = port.clock_rate_bps
    if rate is not None and rate != link.rate.bps:
        message = f"found clock rate {rate} on {device}, expected {link.rate.bps} for the link {link.name}"
        yield Found(node, message, "set `clock rate`, unless the experiment's configuration does", grave=False)


def _of_host(facts: Facts, link: Link, end: LinkEnd, card: HostNic) -> Iterator[Found]:
    device = facts.device(end)
    if not card.up:
        if facts.host_settings[end.node].isolate == "as it is":
            yield Found(
                end.node, f"found {device} down, expected it up for the link {link.name}", f"ip link set {device} up"
            )
        return
    if not card.carrier:
        hint = "check whether the cable is in, and the other end is up"
        yield Found(end.node, f"found no link on {device}, expected the link {link.name}", hint)
        return
    if card.driver in NO_LINE:
        return
    if card.duplex == "half":
        hint = "set both ends to full duplex, or let both negotiate"
        yield Found(end.node, f"found {device} half duplex, expected full duplex", hint)
    if card.mbps is not None:
        yield from _speed(link, end.node, device, card.mbps, "ethtool")


def _speed(link: Link, node: str, device: str, mbps: float, by: str) -> Iterator[Found]:
    # Ports report whole Mb/s.
    if int(mbps) == link.rate.bps // 1_000_000:
        return
    expected = f"expected {link.rate} for the link {link.name}"
    if mbps * 1_000_000 < link.rate.bps:
        yield Found(
            node,
            f"found {device} at {mbps:g} Mb/s, {expected}",
            f"the port is too slow: check the cable, or set {by}",
        )
    else:
        yield Found(
            node,
            f"found {device} at {mbps:g} Mb/s, {expected}",
            f"set {by} at both ends, or the link's rate in the experiment",
        )


def damage(facts: Facts) -> Iterator[Found]:
    """Report damaged frames; a run may still be valid if none arrive during it."""
    hint = "check cable and duplex; earlier errors stay counted"
    for link, end, _ in facts.ends():
        port, card, device = facts.port(end), facts.card(end), facts.device(end)
        shown = ""
        if port is not None and port.errors:
            shown = ", ".join(f"{count} {what}" for what, count in port.errors.items())
        elif card is not None and card.errors:
            shown = f"{card.errors} errors"
        if shown:
            yield Found(
                end.node, f"found {shown} on {device}, expected none on the link {link.name}", hint, grave=False
            )
