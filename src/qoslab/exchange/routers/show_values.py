"""Values of `show version`, `show interfaces`, `show policy-map interface` and `show ip route`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from qoslab.ios.model.ios_names import interface_name

_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
XE_TRAINS = ("16.", "17.")
"""Beginnings of releases that are also printed with zeros: 16.09.05."""
_RELEASE = re.compile(r"(?:Version|Release) +(\d+\.\d+(?:\([^)\s]*\)\w*|\.\w+)?)")
_CHASSIS = re.compile(r"^cisco +(?!(?:ios|systems) )(\S+) .*(?:processor|bytes of memory)", re.IGNORECASE)
_UP = re.compile(r"^([A-Za-z][\w./:-]*) is ([\w ]*?(?:up|down|reset|deleted|standby)\b.*), line protocol is (\w+)")
_RATE = re.compile(r"(\d+) (second|minute) (input|output) rate (\d+) (\S*)bits/sec, (\d+) packets/sec", re.IGNORECASE)
_BANDWIDTH = re.compile(r"\bBW (\d+) ?Kbit", re.IGNORECASE)
_SPEED = re.compile(r"(\d+(?:\.\d+)?) ?([MG])b(?:/s|ps)\b")
_ADDRESS = re.compile(r"Internet address is (\S+)")
_OFFERED = re.compile(r"offered rate (\d+(?:\.\d+)?) ?([kmg]?)b(?:ps|its/sec)", re.IGNORECASE)
_COUNTED = re.compile(r"^\s*(\d+) packets, (\d+) bytes")
_POLICY = re.compile(r"^( *)Service-policy *(input|output)? *: *(\S+)")
_CLASS = re.compile(r"^( *)Class-map *: *(\S+)")
_ROUTE = re.compile(r"^([A-Z%*+][\w *%+]{0,5}?) +(\d+\.\d+\.\d+\.\d+)(?:/(\d+))?\b(.*)$")
_SUBNETTED = re.compile(r"^ +(\d+\.\d+\.\d+\.\d+)/(\d+) is subnetted")
_VIA = re.compile(r"via (\d+\.\d+\.\d+\.\d+)")


@dataclass(frozen=True)
class SoftwareVersion:
    """Model and release in `show version`; empty if they are not printed."""

    model: str = ""
    release: str = ""


@dataclass
class InterfaceCounters:
    """One interface in `show interfaces`."""

    name: str
    up: bool
    bandwidth_kbps: int | None = None
    line_bps: int | None = None
    """Speed of an Ethernet port."""
    address: IPv4Interface | None = None
    rates_bps: dict[str, int] = field(default_factory=dict)
    """Load by `input` and `output`: bits of frames."""
    packet_rates: dict[str, int] = field(default_factory=dict)
    """Packets a second."""
    period: str = ""
    """Averaging period, such as `5 minute`."""


@dataclass
class ClassCounters:
    """One class in `show policy-map interface`."""

    interface: str
    direction: str
    policy: str
    path: tuple[str, ...]
    """Names of the classes from the attached policy-map down to this one."""
    offered_bps: int = 0
    """Bits of frames that the class counts."""
    packets: int = 0
    bytes: int = 0


def full_interface_name(text: str) -> str:
    """Return the full name of an interface from any abbreviation; the unchanged text if it is not an interface.

    A channel of a controller, `Serial0/0/0:0`, has the name of its port.
    """
    bare = text.strip().replace(" ", "").partition(":")[0]
    return interface_name(bare) or bare


def read_version(lines: Iterable[str]) -> SoftwareVersion:
    """Return model and release."""
    model = release = ""
    for line in lines:
        if not release and (found := _RELEASE.search(line)) and "ROM" not in line and "Bootstrap" not in line:
            release = found[1]
        if not model and (found := _CHASSIS.match(line.strip())):
            model = found[1]
    return SoftwareVersion(model, re.sub(r"\.0(?=\d)", ".", release) if release.startswith(XE_TRAINS) else release)


def read_interfaces(lines: Iterable[str]) -> list[InterfaceCounters]:
    """Return the interfaces, in order."""
    found: list[InterfaceCounters] = []
    for line in lines:
        if begins := _UP.match(line):
            found.append(
                InterfaceCounters(full_interface_name(begins[1]), begins[2].strip() == "up" and begins[3] == "up")
            )
            continue
        if not found:
            continue
        current = found[-1]
        if bandwidth := _BANDWIDTH.search(line):
            current.bandwidth_kbps = int(bandwidth[1])
        if address := _ADDRESS.search(line):
            current.address = _parse_interface(address[1])
        if "uplex" in line and (speed := _SPEED.search(line)):
            current.line_bps = round(float(speed[1]) * (10**6 if speed[2] == "M" else 10**9))
        if rate := _RATE.search(line):
            factor = _FACTORS.get(rate[5].lower()[:1], 1)
            current.rates_bps[rate[3].lower()] = int(rate[4]) * factor
            current.packet_rates[rate[3].lower()] = int(rate[6])
            current.period = f"{rate[1]} {rate[2]}"
    return found


def read_policies(lines: Iterable[str]) -> list[ClassCounters]:
    """Return the classes of attached policy-maps in order, with the classes of child policies below their
    parent class.
    """
    found: list[ClassCounters] = []
    interface = direction = policy = ""
    above: list[tuple[int, str]] = []
    current: ClassCounters | None = None
    for line in lines:
        stripped = line.strip()
        if attached := _POLICY.match(line):
            if attached[2]:
                direction, policy, above = attached[2], attached[3], []
            current = None
        elif (begins := _CLASS.match(line)) and interface and direction:
            depth = len(begins[1])
            above = [each for each in above if each[0] < depth] + [(depth, begins[2])]
            current = ClassCounters(interface, direction, policy, tuple(name for _, name in above))
            found.append(current)
        elif (
            stripped
            and len(line) - len(line.lstrip()) <= 1
            and re.fullmatch(r"[A-Z][A-Za-z-]+ ?\d\S*(?: .*)?", stripped)
        ):
            interface, direction, current, above = (
                full_interface_name(stripped.split(" :")[0].split(":")[0]),
                "",
                None,
                [],
            )
        elif current is not None:
            if (counted := _COUNTED.match(line)) and not current.packets:
                current.packets, current.bytes = int(counted[1]), int(counted[2])
            if (offered := _OFFERED.search(line)) and not current.offered_bps:
                current.offered_bps = round(float(offered[1]) * _FACTORS[offered[2].lower()])
    return found


def read_routes(lines: Iterable[str]) -> dict[IPv4Network, IPv4Address]:
    """Return the next hop of each route that has one; connected and local routes have none."""
    found: dict[IPv4Network, IPv4Address] = {}
    length, prefix = 32, None
    for line in lines:
        if subnetted := _SUBNETTED.match(line):
            length = int(subnetted[2])
        elif route := _ROUTE.match(line):
            prefix = _to_network(route[2], int(route[3] or length))
            via = _VIA.search(route[4])
            if prefix is not None and via is not None:
                found.setdefault(prefix, IPv4Address(via[1]))
        elif (via := _VIA.search(line)) and prefix is not None:
            found.setdefault(prefix, IPv4Address(via[1]))
    return found


def _to_network(address: str, length: int) -> IPv4Network | None:
    try:
        return IPv4Network((address, length), strict=False)
    except ValueError:
        return None


def _parse_interface(text: str) -> IPv4Interface | None:
    try:
        return IPv4Interface(text)
    except ValueError:
        return None
