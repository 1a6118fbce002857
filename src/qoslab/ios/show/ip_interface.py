"""`show ip interface [X]` and `show ipv6 interface [X]`: state and settings of IP on the interfaces.

Settings outside the data plane are printed with a router's defaults, or as configured by inert lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qoslab.ios.environment import PortState
from qoslab.ios.model.device import Device, HostInterface, Interface
from qoslab.ios.model.ios_names import ipv6_text
from qoslab.ios.model.mtu import ip_mtu, ipv6_mtu
from qoslab.ios.model.routes import NULL
from qoslab.ios.show.interfaces import interface_states

_DEFAULTS = (
    "  IP fast switching is enabled",
    "  IP fast switching on the same interface is disabled",
    "  IP Flow switching is disabled",
    "  IP CEF switching is {cef}",
    "  IP multicast fast switching is enabled",
    "  IP multicast distributed fast switching is disabled",
    "  IP route-cache flags are Fast{flags}",
    "  Router Discovery is disabled",
    "  IP output packet accounting is disabled",
    "  IP access violation accounting is disabled",
    "  TCP/IP header compression is disabled",
    "  RTP/IP header compression is disabled",
    "  Policy routing is disabled",
    "  Network address translation is disabled",
    "  BGP Policy Mapping is disabled",
)
_ND_DEFAULTS = (
    "  ND DAD is enabled, number of DAD attempts: 1",
    "  ND reachable time is 30000 milliseconds (using 30000)",
)


def show_ip_interface(
    device: Device, ports: Mapping[str, PortState], from_startup: frozenset[str], name: str | None = None
) -> str:
    """Return all interfaces, or one; those in `from_startup` have their address from the startup configuration."""
    lines: list[str] = []
    for interface in device.interfaces.values():
        if name in (None, interface.name):
            lines += _interface_lines(device, interface, ports, interface.name in from_startup)
    for own in device.host_interfaces.values():
        if name in (None, own.name) and own.name != NULL:
            lines += _loopback_lines(device, own, own.name in from_startup)
    return "".join(line + "\n" for line in lines)


def _heading_line(device: Device, interface: Interface, ports: Mapping[str, PortState]) -> str:
    port = ports.get(interface.parent or interface.name)
    status, protocol = interface_states(interface, port, shutdown=device.is_shut_down(interface))
    return f"{interface.name} is {status}, line protocol is {protocol}"


def _interface_lines(
    device: Device, interface: Interface, ports: Mapping[str, PortState], from_startup: bool
) -> Iterator[str]:
    yield _heading_line(device, interface, ports)
    if interface.address is None:
        switched = interface.port is not None and interface.port.switched
        yield "  Inbound  access list is not set" if switched else "  Internet protocol processing disabled"
        return
    yield from _addressed_lines(f"{interface.address}", ip_mtu(device, interface), from_startup)
    for address in interface.secondary_addresses:
        yield f"  Secondary address {address}"
    yield f"  Outgoing access list is {interface.filters.output or 'not set'}"
    yield f"  Inbound  access list is {interface.filters.input or 'not set'}"
    yield f"  Proxy ARP is {_state_word(interface, 'ip proxy-arp', 'enabled', 'disabled')}"
    yield "  Local Proxy ARP is disabled"
    yield "  Security level is default"
    yield f"  Split horizon is {'disabled' if interface.is_serial and interface.encapsulation is None else 'enabled'}"
    yield f"  ICMP redirects are {_state_word(interface, 'ip redirects', 'always sent', 'never sent')}"
    yield f"  ICMP unreachables are {_state_word(interface, 'ip unreachables', 'always sent', 'never sent')}"
    yield (
        f"  ICMP mask replies are {_state_word(interface, 'ip mask-reply', 'never sent', 'never sent', 'always sent')}"
    )
    yield from _switching_lines(device)


def _loopback_lines(device: Device, interface: HostInterface, from_startup: bool) -> Iterator[str]:
    """Yield the lines of a Loopback interface, which has no packets to filter."""
    status, protocol = ("administratively down", "down") if interface.shutdown else ("up", "up")
    yield f"{interface.name} is {status}, line protocol is {protocol}"
    if interface.address is None:
        yield "  Internet protocol processing disabled"
        return
    # Cisco, "show ip interface": a Loopback interface takes packets of 1514 bytes.
    yield from _addressed_lines(f"{interface.address}", 1514, from_startup)
    yield "  Outgoing access list is not set"
    yield "  Inbound  access list is not set"
    yield from _switching_lines(device)


def _addressed_lines(address: str, mtu: int, from_startup: bool) -> Iterator[str]:
    yield f"  Internet address is {address}"
    yield "  Broadcast address is 255.255.255.255"
    yield f"  Address determined by {'non-volatile memory' if from_startup else 'setup command'}"
    yield f"  MTU is {mtu} bytes"
    yield "  Helper address is not set"
    yield "  Directed broadcast forwarding is disabled"


def _switching_lines(device: Device) -> Iterator[str]:
    words = {"cef": "enabled" if device.ip_cef else "disabled", "flags": ", CEF" if device.ip_cef else ""}
    yield from (line.format(**words) for line in _DEFAULTS)


def _state_word(interface: Interface, line: str, default: str, negated: str, set_: str | None = None) -> str:
    """Return the word for the state of an inert line: default, negated or set."""
    found = interface.inert.find(line)
    if found is None:
        return default
    return negated if found.text.startswith("no ") else set_ or default


def show_ipv6_interface(device: Device, ports: Mapping[str, PortState], name: str | None = None) -> str:
    """Return all interfaces with IPv6, or one."""
    lines: list[str] = []
    for interface in device.interfaces.values():
        if name in (None, interface.name) and interface.runs_ipv6:
            lines += _ipv6_interface_lines(device, interface, ports)
    return "".join(line + "\n" for line in lines)


def _ipv6_interface_lines(device: Device, interface: Interface, ports: Mapping[str, PortState]) -> Iterator[str]:
    yield _heading_line(device, interface, ports)
    port = ports.get(interface.name)
    own = interface.ipv6_link_local or (None if port is None else port.link_local)
    yield f"  IPv6 is enabled, link-local address is {'UNKNOWN' if own is None else ipv6_text(own)} "
    if interface.ipv6_addresses:
        yield "  Global unicast address(es):"
        for address in interface.ipv6_addresses:
            yield f"    {ipv6_text(address.ip)}, subnet is {ipv6_text(address.network)} "
    else:
        yield "  No global unicast address is configured"
    yield "  Joined group address(es):"
    solicited = {int(each) & 0xFFFFFF for each in (own, *(each.ip for each in interface.ipv6_addresses)) if each}
    routers = ["FF02::2"] if device.ipv6_unicast_routing else []
    for group in (
        "FF02::1",
        *routers,
        *(f"FF02::1:FF{each >> 16:02X}:{each & 0xFFFF:X}" for each in sorted(solicited)),
    ):
        yield f"    {group}"
    yield f"  MTU is {ipv6_mtu(device, interface)} bytes"
    yield "  ICMP error messages limited to one every 100 milliseconds"
    yield "  ICMP redirects are enabled"
    yield "  ICMP unreachables are sent"
    # [I] Position of the lines about filters.
    if interface.ipv6_filters.input is not None:
        yield f"  Inbound access list {interface.ipv6_filters.input}"
    if interface.ipv6_filters.output is not None:
        yield f"  Outgoing access list {interface.ipv6_filters.output}"
    yield from _ND_DEFAULTS
    yield "  Hosts use stateless autoconfig for addresses."
