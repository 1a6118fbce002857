"""Rates of interfaces: the base of percentages, the line, and the line of the port below a tunnel or dialer."""

from __future__ import annotations

import re

from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.ios_names import interface_kind
from qoslab.ios.rules import DEFAULT_BANDWIDTH_KBPS, interface_bandwidth_kbps
from qoslab.policy.pasted_configuration import Attachment, Configuration
from qoslab.policy.rate import Rate
from qoslab.policy.tunnels import find_tunnels

LINE = Rate(line=1.0)
CARRIED = ("Tunnel", "Dialer")
"""Kinds of interfaces whose packets leave by a port."""


def base_rate(
    interface: Interface | None, at: Attachment, rate_bps: int | None, speed_mbps: int | None
) -> tuple[Rate, str]:
    """Return the base of percentages and its source: `bandwidth`, else the speed or kind of the port."""
    if interface is not None:
        if interface.bandwidth_kbps is None and speed_mbps is not None:
            return Rate(speed_mbps * 1e6), f"speed {speed_mbps}"
        typed = interface.bandwidth_kbps is not None or interface.circuit is not None
        source = "bandwidth" if interface.circuit is None else "circuit"
        source = source if typed else f"default bandwidth of {interface.kind}"
        if interface.kind in DEFAULT_BANDWIDTH_KBPS or typed:
            return Rate(interface_bandwidth_kbps(interface) * 1000.0), source
    if at.bandwidth_kbps is not None:
        return Rate(at.bandwidth_kbps * 1000.0), at.bandwidth_source
    return (LINE, "not known") if rate_bps is None else (Rate(float(rate_bps)), "--rate")


def line_rate(
    device: Device, interface: Interface | None, rate_bps: int | None, speed_mbps: int | None
) -> tuple[Rate, str] | None:
    """Return the line rate and its source; None if only `bandwidth` is known."""
    if rate_bps is not None:
        return Rate(float(rate_bps)), "--rate"
    if interface is None:
        return None
    port = device.interfaces.get(interface.parent or interface.name, interface)
    if port.clock_rate_bps is not None:
        return Rate(float(port.clock_rate_bps)), "clock rate"
    if port.kind.endswith("Ethernet"):
        if speed_mbps is not None:
            return Rate(speed_mbps * 1e6), f"speed {speed_mbps}"
        return Rate(DEFAULT_BANDWIDTH_KBPS[port.kind] * 1000.0), port.kind
    return None


def carrier_line(configuration: Configuration, at: Attachment) -> tuple[Rate, str]:
    """Return the line rate of a tunnel or dialer and its source: the rate of the port by which its packets leave.

    The line `bandwidth` of such an interface limits nothing.
    """
    port = configuration.device.interfaces.get(_carrier(configuration, at.interface)[0])
    if port is None or port.kind not in DEFAULT_BANDWIDTH_KBPS:
        return LINE, "not known"
    if port.is_atm and (port.circuit is None or port.circuit.contract is None):
        return LINE, "not known"
    speed = configuration.speed_mbps(port.parent or port.name)
    own = Attachment(port.name, "output", "", 0)
    rate, name = line_rate(configuration.device, port, None, speed) or base_rate(port, own, None, speed)
    where = f"{port.name} below {at.interface}"
    return rate, where if name == port.kind else f"{name} of {where}"


def ppp_circuit(configuration: Configuration, at: Attachment) -> Interface | None:
    """Return the ATM port below a dialer with PPP over ATM, whose queues are those of the circuit; None otherwise."""
    name, member = _carrier(configuration, at.interface)
    port = configuration.device.interfaces.get(name)
    return port if port is not None and port.is_atm and member.startswith("dialer pool-member ") else None


def _carrier(configuration: Configuration, interface: str) -> tuple[str, str]:
    """Return the port of a tunnel or dialer, and its line that joins the pool of the dialer; empty if unknown."""
    if interface_kind(interface) == "Tunnel":
        return next((each.source for each in find_tunnels(configuration) if each.name == interface), ""), ""
    below = configuration.lines.below.get(f"interface {interface}", [])
    pool = next((each.split()[2] for each in below if re.fullmatch(r"dialer pool \d+", each)), "")
    member = re.compile(rf"(?:pppoe-client dial-pool-number|dialer pool-member) {pool}(?: |$)")
    lines = configuration.reading.input_lines()
    places = (
        (each.place[0].removeprefix("interface "), each.text)
        for each in lines
        if each.place and pool and member.match(each.text)
    )
    return next(places, ("", ""))
