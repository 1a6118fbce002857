"""Interfaces, routes and names of a configuration, including kinds of interfaces that the device model lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Interface

from qoslab.exchange.routers.show_values import full_interface_name
from qoslab.ios.model.ios_names import interface_kind
from qoslab.policy.pasted_text import is_indented

INTERFACES_WITHOUT_LINE = (
    "Loopback",
    "Null",
    "Tunnel",
    "Virtual-Template",
    "Virtual-Access",
    "NVI",
    "Group-Async",
    "VirtualPortGroup",
)
"""Kinds of interfaces that are not the end of a link."""
ETHERNETS = (
    *("Ethernet", "FastEthernet", "GigabitEthernet", "TwoGigabitEthernet", "FiveGigabitEthernet"),
    *("TenGigabitEthernet", "TwentyFiveGigE", "FortyGigabitEthernet", "HundredGigE"),
)
LINES = (*ETHERNETS, "Serial", "ATM")
"""Kinds of interfaces with a physical line."""
BRIDGED_INTERFACES = ("Vlan", "BDI", "BVI")
"""Kinds of interfaces whose frames leave by the ports of a VLAN, a bridge domain or a bridge group."""
CELLULAR = "Cellular"
"""Kind of interfaces to a mobile network, whose lines have no fixed rate."""
MANAGEMENT = re.compile(r"mgmt|management|oob", re.IGNORECASE)

_BLOCK = re.compile(r"^interface +(.+?)(?: +(?:point-to-point|multipoint))? *$")
_NEXT = re.compile(
    r"(?:interface|router|line|class-map|policy-map|hostname|access-list|route-map|control-plane|dial-peer|end|banner"
    r"|map-class|object-group|controller|crypto (?!map \S+$|ipsec df)|snmp-server|logging"
    r"|ip (?:route|access-list|forward-protocol|http|classless|default-gateway|prefix-list))\b|!"
)
_ADDRESS = re.compile(r"ip address (\d\S+) (\d\S+)( secondary)?")
_IPV6_ADDRESS = re.compile(r"ipv6 address ([0-9A-Fa-f:.]+/\d+)(?: anycast)?")
_DYNAMIC = re.compile(r"ip (?:address (?:dhcp|negotiated|pool \S+)|unnumbered (\S.*))")
_ROUTE = re.compile(
    r"ip route(?: vrf (\S+))? (\d\S+) (\d\S+) (?:(?P<port>[A-Za-z][\w/.-]* ?\d?[\d/.:]*) ?)?(?P<via>\d+\.\S+)?"
)


@dataclass
class ConfiguredPort:
    """An interface of a configuration."""

    name: str
    line: int
    lines: dict[int, str] = field(default_factory=dict)
    """Lines of the interface by number, with single blanks between words."""

    def last_match(self, pattern: str) -> str | None:
        """Return the first group of the last line that matches; None without a match."""
        found = None
        for text in self.lines.values():
            if match := re.match(pattern, text):
                found = match[1] if match.re.groups else match[0]
        return found

    def line_number(self, beginning: str) -> int:
        """Return the number of the last line with this beginning, or of the interface line."""
        return max((number for number, text in self.lines.items() if text.startswith(beginning)), default=self.line)

    @property
    def kind(self) -> str:
        """Kind of the interface: FastEthernet, Dialer."""
        return interface_kind(self.name)

    @property
    def parent(self) -> str | None:
        """Port of a subinterface; None for other interfaces."""
        port, dot, _ = self.name.partition(".")
        return port if dot else None

    @property
    def shutdown(self) -> bool:
        """True if it is shut down."""
        return "shutdown" in self.lines.values()

    @property
    def address(self) -> IPv4Interface | None:
        """Primary address; None without one, or if it is a host address (/32)."""
        for text in self.lines.values():
            found = _ADDRESS.fullmatch(text)
            if found and not found[3]:
                try:
                    return IPv4Interface(f"{found[1]}/{found[2]}")
                except ValueError:
                    return None
        return None

    @property
    def ipv6_address(self) -> IPv6Interface | None:
        """First global IPv6 address, except one with an interface identifier (`eui-64`) or a prefix name."""
        return None if (found := self.ipv6_line) is None else found[1]

    @property
    def ipv6_line(self) -> tuple[int, IPv6Interface] | None:
        """Number of the line with the IPv6 address, and the address."""
        for number, text in self.lines.items():
            if found := _IPV6_ADDRESS.fullmatch(text):
                try:
                    address = IPv6Interface(found[1])
                except ValueError:
                    continue
                special = address.ip.is_multicast or address.ip.is_unspecified or address.ip.is_loopback
                if not special and not address.ip.is_link_local and 0 < address.network.prefixlen < 128:
                    return number, address
        return None

    @property
    def dynamic(self) -> str:
        """Source of an address that is not in the configuration: `dhcp`, `negotiated`, `unnumbered Loopback0`."""
        found = next((text for text in self.lines.values() if _DYNAMIC.fullmatch(text)), "")
        return found.removeprefix("ip ").removeprefix("address ")

    @property
    def vrf(self) -> str:
        """Name of its VRF; empty in the global table."""
        return self.last_match(r"(?:ip )?vrf forwarding (\S+)") or ""

    @property
    def policies(self) -> Mapping[str, str]:
        """Names of attached policy-maps by `input` and `output`."""
        found = {}
        for text in self.lines.values():
            if match := re.fullmatch(r"service-policy (input|output) (\S+)", text):
                found[match[1]] = match[2]
        return found

    @property
    def has_network(self) -> bool:
        """True if packets are routed to and from it: it has its own address or gets one from another device."""
        return not self.shutdown and (self.address is not None or bool(self.dynamic) or self.ipv6_address is not None)

    @property
    def is_management(self) -> bool:
        """True if it is only for management of the device."""
        return bool(MANAGEMENT.search(self.vrf)) or (self.name == "GigabitEthernet0" and bool(self.vrf))


@dataclass
class StaticRoute:
    """A static route."""

    prefix: IPv4Network
    via: IPv4Address | None
    port: str


@dataclass
class InterfaceLayout:
    """The parts of a configuration that determine a topology."""

    hostname: str = ""
    ports: dict[str, ConfiguredPort] = field(default_factory=dict)
    routes: list[StaticRoute] = field(default_factory=list)

    def member_interfaces(self, port: ConfiguredPort) -> list[ConfiguredPort]:
        """Return the interfaces that carry the packets of a Dialer, Multilink, Port-channel or VLAN interface."""
        number = re.sub(r"^\D+", "", port.name)
        others = [each for each in self.ports.values() if each is not port and not each.shutdown]
        pool = port.last_match(r"dialer pool (\d+)") or number
        patterns = {
            "Dialer": rf"(?:pppoe-client dial-pool-number|dialer pool-member) {pool}\b",
            "Multilink": rf"(?:ppp multilink|multilink-group|multilink) ?(?:group )?{number}$",
            "Port-channel": rf"channel-group {number}\b",
            "Vlan": rf"switchport access vlan {number}$",
            "BDI": rf"bridge-domain {number}\b",
            "BVI": rf"bridge-group {number}$",
        }
        pattern = patterns.get(port.kind)
        found = [each for each in others if pattern is not None and each.last_match(pattern) is not None]
        if port.kind == "Vlan" and not found:
            found = [each for each in others if self._carries_vlan(each, int(number))]
        return found

    def _carries_vlan(self, port: ConfiguredPort, number: int) -> bool:
        """Return whether a switched port carries a VLAN: the default VLAN without a line, the allowed VLANs of
        a trunk.
        """
        if port.last_match(r"switchport") is None or port.address is not None:
            return number == 1 and is_switched(port)
        if port.last_match(r"switchport mode trunk") is not None:
            allowed = port.last_match(r"switchport trunk allowed vlan ([\d,-]+)$")
            return allowed is None or number in _expand_ranges(allowed)
        return number == 1 and port.last_match(r"switchport access vlan (\d+)") in (None, "1")


def is_switched(port: ConfiguredPort) -> bool:
    """Return whether a port without an address belongs to a switch module: three numbers, and no `no ip address`."""
    return port.kind in ETHERNETS and not port.has_network and "no ip address" not in port.lines.values()


def _expand_ranges(ranges: str) -> set[int]:
    found: set[int] = set()
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found.update(range(int(first), min(int(last or first), 4095) + 1))
    return found


def read_layout(text: str) -> InterfaceLayout:
    """Return hostname, interfaces and routes of a configuration with or without indentation."""
    found = InterfaceLayout()
    current: ConfiguredPort | None = None
    indented = is_indented(text)
    for number, line in enumerate(text.splitlines(), 1):
        words = " ".join(line.split())
        if begins := _BLOCK.fullmatch(line.strip()) if not line.startswith("  ") else None:
            name = full_interface_name(begins[1])
            current = found.ports.setdefault(name, ConfiguredPort(name, number))
            continue
        if words and not line.startswith(" ") and (indented or _NEXT.match(words)):
            current = None
        if current is not None and words:
            current.lines[number] = words
        elif words.startswith("hostname ") and not found.hostname:
            found.hostname = words.split()[1].strip('"')
        elif words.startswith("ip route "):
            found.routes += _read_routes(words)
    return found


def _read_routes(text: str) -> Iterator[StaticRoute]:
    match = _ROUTE.match(text)
    if match is None:
        return
    try:
        prefix = IPv4Network(f"{match[2]}/{match[3]}", strict=False)
        via = IPv4Address(match["via"]) if match["via"] else None
    except ValueError:
        return
    yield StaticRoute(prefix, via, full_interface_name(match["port"] or ""))
