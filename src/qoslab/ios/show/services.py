"""Services and tables of a device for inventory tools: names, time, SSH, SNMP, files, routing.

Services that a virtual device does not run are reported as off, in the words of IOS [R].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qoslab.ios.environment import Neighbour, PortState
from qoslab.ios.model.device import Device
from qoslab.ios.model.ios_names import ipv6_text, short_name
from qoslab.ios.show import join_lines
from qoslab.ios.show.interfaces import dotted_mac, interface_states

NO_NTP = "%NTP is not enabled.\n"
NO_SNMP = "%SNMP agent not enabled\n"
LOGIN_SECONDS, LOGIN_TRIES = 30, 3
"""Login limits of a virtual router's SSH server."""


def show_cdp(device: Device) -> str:
    """Return the timers of CDP, which is on by default."""
    if device.inert.find("cdp run") is not None:
        return "% CDP is not enabled\n"
    return join_lines(
        [
            "Global CDP information:",
            "        Sending CDP packets every 60 seconds",
            "        Sending a holdtime value of 180 seconds",
            "        Sending CDPv2 advertisements is  enabled",
        ]
    )


def show_lldp(device: Device) -> str:
    """Return the timers of LLDP, which is off by default."""
    if device.inert.find("lldp run") is None:
        return "% LLDP is not enabled\n"
    return join_lines(
        [
            "",
            "Global LLDP Information:",
            "    Status: ACTIVE",
            "    LLDP advertisements are sent every 30 seconds",
            "    LLDP hold time advertised is 120 seconds",
            "    LLDP interface reinitialisation delay is 2 seconds",
        ]
    )


def show_hosts(device: Device) -> str:
    """Return the domain without host names: none are stored."""
    lookup = "domain service" if device.domain_lookup else "static mappings"
    return join_lines(
        [
            f"Default domain is {device.domain_name or 'not set'}",
            f"Name/address lookup uses {lookup}",
            "Name servers are 255.255.255.255",
            "",
            "Codes: UN - unknown, EX - expired, OK - OK, ?? - revalidate",
            "       temp - temporary, perm - permanent",
            "       NA - Not Applicable None - Not defined",
            "",
            "Host                      Port  Flags      Age Type   Address(es)",
        ]
    )


def show_ip_ssh() -> str:
    """Return the settings of the SSH server."""
    return join_lines(
        [
            "SSH Enabled - version 2.0",
            f"Authentication timeout: {LOGIN_SECONDS} secs; Authentication retries: {LOGIN_TRIES}",
        ]
    )


def show_vrf(*, ip: bool) -> str:
    """Return an empty list of VRFs: there is only the global table."""
    if ip:
        return "  Name                             Default RD          Interfaces\n"
    return "  Name                             Default RD            Protocols   Interfaces\n"


def show_protocols(device: Device, ports: Mapping[str, PortState]) -> str:
    """Return the routed protocols, and the addresses by interface."""
    lines = ["Global values:", "  Internet Protocol routing is enabled"]
    for name, interface in device.interfaces.items():
        port = ports.get(interface.parent or name)
        status, protocol = interface_states(interface, port, shutdown=device.is_shut_down(interface))
        lines.append(f"{name} is {status}, line protocol is {protocol}")
        if interface.address is not None:
            lines.append(f"  Internet address is {interface.address}")
    return join_lines(lines)


def show_file_systems(flash: tuple[int, int] | None, nvram: tuple[int, int]) -> str:
    """Return the file systems with total and free bytes; `flash` is None if there is none."""
    rows = [(f"{nvram[0]}", f"{nvram[1]}", "nvram", "nvram:")]
    if flash is not None:
        rows.append((f"{flash[0]}", f"{flash[1]}", "disk", "flash:#"))
    lines = ["File Systems:", "", "     Size(b)     Free(b)      Type  Flags  Prefixes"]
    lines.append(f" {'-':>11} {'-':>11} {'opaque':>9}  {'rw':>4}   system:")
    for size, free, kind, prefix in rows:
        mark = "*" if prefix.startswith("flash") else " "
        lines.append(f"{mark}{size:>11} {free:>11} {kind:>9}  {'rw':>4}   {prefix}")
    return join_lines(lines)


def show_ipv6_neighbors(neighbours: Sequence[Neighbour]) -> str:
    """Return the IPv6 neighbours."""
    lines = ["IPv6 Address                              Age Link-layer Addr State Interface"]
    lines += [
        f"{ipv6_text(each.address):<41}{each.age_minutes:>4} {dotted_mac(each.mac):<15} {each.state:<5}"
        f" {short_name(each.interface)}"
        for each in neighbours
        if each.address.version == 6
    ]
    return join_lines(lines)
