"""Rates of interfaces that follow from lines elsewhere: bundles of ports, and channels of a T1 or E1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from qoslab.ios.model.ios_names import interface_kind, interface_name
from qoslab.ios.rules import DEFAULT_BANDWIDTH_KBPS

_CHANNEL = re.compile(r"Serial(\d[\d/.]*):(\d+)")
_TIMESLOTS = re.compile(r"channel-group (\d+) timeslots ([\d,-]+)(?: speed (\d+))?")
_PRIMARY = re.compile(r"(?i)encapsulation dot1q .*\bprimary (\S+).*")
"""Encapsulation of a VLAN that uses one port of a bundle."""
_BANDWIDTH = re.compile(r"bandwidth (\d+)")
_SPEED = re.compile(r"speed (\d+)")
_CLOCK = re.compile(r"clock ?rate (\d+)")
TIMESLOT_KBPS = 64
"""Rate of a timeslot (ITU-T G.704); some T1 lines have 56 kb/s, by `speed 56`."""

Sections = Mapping[str, Sequence[str]]
"""Lines of a configuration by the interface or controller above them."""


def composed_rate(sections: Sections, interface: str) -> tuple[int, str] | None:
    """Return the rate of a bundle or a channel in kb/s and its source; None if it is unknown.

    A subinterface has the rate of its bundle; members that are shut down do not count.
    """
    bundle, dot, _ = interface.partition(".")
    if dot and (name := primary_port(sections.get(f"interface {interface}", ()))) is not None:
        rate = _port_kbps(sections, name)
        return None if rate is None else (rate, f"primary port {name}")
    if dot and _member_pattern(bundle) is not None:
        typed = _configured_kbps(sections, bundle)
        return composed_rate(sections, bundle) if typed is None else (typed, f"bandwidth of {bundle}")
    if (channel := _channel_kbps(sections, interface)) is not None:
        return channel
    rates = [_port_kbps(sections, each.removeprefix("interface ")) for each in _members(sections, interface)]
    if not rates or None in rates:
        return None
    total = sum(each for each in rates if each is not None)
    kind = "port" if interface.startswith("Port-channel") else "link"
    return total, f"{len(rates)} member {kind}{'s' if len(rates) > 1 else ''}"


def composed_clock_rate(sections: Sections, interface: str) -> tuple[int, str] | None:
    """Return the sum of the clock rates of a multilink bundle in b/s and its source; None if one is unknown."""
    if interface_kind(interface) != "Multilink":
        return None
    clocks = [_parse_number(_CLOCK, sections[each]) for each in _members(sections, interface)]
    known = [each for each in clocks if each is not None]
    if not known or len(known) < len(clocks):
        return None
    return sum(known), f"clock rate of {len(known)} member link{'s' if len(known) > 1 else ''}"


def primary_port(lines: Iterable[str]) -> str | None:
    """Return the port of a bundle that carries a VLAN by `encapsulation dot1Q VLAN primary PORT`; None without one."""
    found = next((match for each in lines if (match := _PRIMARY.fullmatch(each))), None)
    return None if found is None else interface_name(found[1])


def _members(sections: Sections, interface: str) -> list[str]:
    """Return the sections of the members of a bundle that are not shut down; empty for another interface."""
    pattern = _member_pattern(interface)
    return [
        name
        for name, lines in sections.items()
        if pattern is not None
        and name != f"interface {interface}"
        and any(map(pattern.match, lines))
        and "shutdown" not in lines
    ]


def _member_pattern(interface: str) -> re.Pattern[str] | None:
    number = re.sub(r"^\D+", "", interface)
    match interface_kind(interface):
        case "Port-channel":
            return re.compile(rf"channel-group {number}(?: |$)")
        case "Multilink":
            return re.compile(rf"(?:ppp multilink group|multilink-group) {number}$")
        case _:
            return None


def _port_kbps(sections: Sections, interface: str) -> int | None:
    """Return the rate of a member: its `bandwidth`, `speed` or channel, else the default of its kind."""
    if (typed := _configured_kbps(sections, interface)) is not None:
        return typed
    if _CHANNEL.fullmatch(interface):
        channel = _channel_kbps(sections, interface)
        return None if channel is None else channel[0]
    return DEFAULT_BANDWIDTH_KBPS.get(interface_kind(interface))


def _configured_kbps(sections: Sections, interface: str) -> int | None:
    """Return the rate by the lines `bandwidth` or `speed` of an interface."""
    lines = sections.get(f"interface {interface}", ())
    return next((kbps for kbps in (bandwidth_kbps(lines), speed_kbps(lines)) if kbps is not None), None)


def bandwidth_kbps(lines: Iterable[str]) -> int | None:
    """Return the value of the line `bandwidth` of an interface."""
    return _parse_number(_BANDWIDTH, lines)


def speed_kbps(lines: Iterable[str]) -> int | None:
    """Return the rate of the line `speed` of an interface."""
    mbps = _parse_number(_SPEED, lines)
    return None if mbps is None else mbps * 1000


def _parse_number(pattern: re.Pattern[str], lines: Iterable[str]) -> int | None:
    return next((int(found[1]) for each in lines if (found := pattern.fullmatch(each))), None)


def _channel_kbps(sections: Sections, interface: str) -> tuple[int, str] | None:
    """Return the rate of a channel of a T1 or E1 by its timeslots."""
    name = _CHANNEL.fullmatch(interface)
    if name is None:
        return None
    for place in (f"controller T1 {name[1]}", f"controller E1 {name[1]}"):
        for each in sections.get(place, ()):
            found = _TIMESLOTS.fullmatch(each)
            if found is not None and found[1] == name[2]:
                slots = sum(_group_size(part) for part in found[2].split(","))
                return slots * int(found[3] or TIMESLOT_KBPS), f"{slots} timeslots"
    return None


def _group_size(part: str) -> int:
    first, _, last = part.partition("-")
    return int(last or first) - int(first) + 1
