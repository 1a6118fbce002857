"""`show interfaces` of an IEEE 802.1Q subinterface, and `show vlans`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from qoslab.ios.environment import PortState
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.hardware import Chassis
from qoslab.ios.model.mtu import line_mtu
from qoslab.ios.show.interfaces import KEEPALIVE_S, dotted_mac, interface_states
from qoslab.ios.show.times import elapsed_text
from qoslab.system import program_formats

NO_COUNTERS: program_formats.Count = {"packets": 0, "bytes": 0}


def show_subinterface(
    device: Device, interface: Interface, chassis: Chassis, port: PortState | None, cleared: str, kbit: str
) -> str:
    """Return the output of `show interfaces` for a subinterface, which has no counters in IOS; `port` is its port's."""
    parent = device.interfaces[interface.parent or ""]
    hardware = chassis.interface(parent.name)
    if hardware is None:
        raise ValueError(f"{parent.name} is not an interface of a {chassis.name}")
    status, protocol = interface_states(interface, port, shutdown=device.is_shut_down(interface))
    lines = [f"{interface.name} is {status}, line protocol is {protocol} "]
    address = "" if port is None or port.mac is None or interface.is_atm else dotted_mac(port.mac)
    lines.append(f"  Hardware is {hardware.chip}" + (f", address is {address} (bia {address})" if address else ""))
    if interface.description is not None:
        lines.append(f"  Description: {interface.description}")
    if interface.address is not None:
        lines.append(f"  Internet address is {interface.address}")
    own = parent.bandwidth_kbps if interface.bandwidth_kbps is None else interface.bandwidth_kbps
    bandwidth = hardware.bandwidth_kbps if own is None else own
    lines.append(f"  MTU {line_mtu(parent)} bytes, BW {bandwidth} {kbit}, DLY {hardware.delay_us} usec, ")
    lines.append("     reliability 255/255, txload 1/255, rxload 1/255")
    if interface.is_atm:
        lines.append("  Encapsulation ATM")
        lines.append(f'  Last clearing of "show interface" counters {cleared}')
        return "".join(line + "\n" for line in lines)
    if interface.vlan is None:
        lines.append("  Encapsulation ARPA, loopback not set")
    else:
        lines.append(f"  Encapsulation 802.1Q Virtual LAN, Vlan ID  {interface.vlan}.")
        lines.append("  ARP type: ARPA, ARP Timeout 04:00:00")
    lines.append(f"  Keepalive set ({KEEPALIVE_S} sec)" if parent.keepalive else "  Keepalive not set")
    lines.append(f'  Last clearing of "show interface" counters {cleared}')
    return "".join(line + "\n" for line in lines)


def cleared_text(now: datetime, cleared: datetime | None) -> str:
    """Return the text of the time since counters were cleared."""
    return elapsed_text(None if cleared is None else now - cleared)


def show_vlans(
    device: Device, counters: Mapping[str, program_formats.InterfaceCounters], vlan: int | None = None
) -> str:
    """Return `show vlans`: all VLANs of the router's subinterfaces, or one, with interface and packet counts.

    The layout is that of a router [R]; packets of protocols other than IP are not counted separately.
    """
    by_vlan: dict[int, list[Interface]] = {}
    for interface in device.interfaces.values():
        if interface.vlan is not None and vlan in (None, interface.vlan):
            by_vlan.setdefault(interface.vlan, []).append(interface)
    lines = []
    for number, interfaces in sorted(by_vlan.items()):
        lines += [f"Virtual LAN ID:  {number} (IEEE 802.1Q Encapsulation)", ""]
        for place, interface in enumerate(interfaces):
            lines.append(f"{'   vLAN Trunk Interface:' if not place else '':<24}   {interface.name}")
        lines.append("")
        native = [each.name for each in interfaces if each.native]
        if native:
            lines += [" This is configured as native Vlan for the following interface(s) :", *native, ""]
        lines.append("   Protocols Configured:   Address:              Received:        Transmitted:")
        for interface in interfaces:
            lines += _counter_lines(interface, counters)
        lines.append("")
    return "".join(line + "\n" for line in lines)


def _counter_lines(interface: Interface, counters: Mapping[str, program_formats.InterfaceCounters]) -> Iterator[str]:
    port = counters.get(interface.parent or "")
    own = None if port is None else port["subinterfaces"].get(interface.name)
    received, sent = (NO_COUNTERS, NO_COUNTERS) if own is None else (own["input"], own["output"])
    if interface.address is not None:
        address = str(interface.address.ip)
        yield f"           IP              {address:<17}{received['packets']:>14}{sent['packets']:>20}"
    yield ""
    yield f"   {received['packets']} packets, {received['bytes']} bytes input"
    yield f"   {sent['packets']} packets, {sent['bytes']} bytes output"
