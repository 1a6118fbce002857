"""Facts from the show output of a router: Genie's structures → `facts`; text patterns if there is no parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qoslab.ios.refusals import find_refusal
from qoslab.run.real.access.rollback_methods import RollbackState
from qoslab.run.real.preflight.facts import Port, RoundTrips, RouterFacts, normalise_mac

Parse = Callable[[str, str], Mapping[str, Any]]
"""Function that returns Genie's result, empty if it parses nothing: `parse("show version", text)`."""

INTERFACES, STARTUP, FLASH = "show interfaces", "show startup-config", "dir flash:"
COMMON_COMMANDS = ("show version", INTERFACES, "show arp", "show running-config", STARTUP, FLASH)
"""Show commands for every router."""
CDP, LLDP, MACS = "show cdp neighbors detail", "show lldp neighbors detail", "show mac address-table"

_DAMAGE = {
    "in_crc_errors": "CRC errors",
    "in_errors": "input errors",
    "out_errors": "output errors",
    "out_collision": "collisions",
    "out_late_collision": "late collisions",
}
_RELEASE = re.compile(r"Version (\d+\.\d+(?:\.\d+)?(?:\([\w.]+\)\w*)?)")
_BOARD = re.compile(r"^Processor board ID (\w+)", re.MULTILINE)
_IOS = re.compile(r"Cisco (?:IOS|Internetwork Operating System)")
_CLOCK = re.compile(r"[Cc]lock ?rate:? (\d+)")
_SUCCESS = re.compile(r"Success rate is \d+ percent \((\d+)/(\d+)\)")
_TIMES = re.compile(r"round-trip min/avg/max = (\d+)/(\d+)/(\d+) ms")
_SPEED = re.compile(r"(?:(?P<number>[\d.]+) ?(?P<unit>[GM])b(?:/s|ps))", re.IGNORECASE)
_INTERFACE = re.compile(r"^interface (\S+).*\n((?: .*\n)*)", re.MULTILINE)
_IPV6 = re.compile(r"^ ipv6 address (\S+/\d+)", re.MULTILINE)
_UNITS = {"m": 1.0, "g": 1000.0}
_MAC_ROW = re.compile(
    r"^[ *]*\d+ +([0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}) +\w+ +(?:\S+ +)*?([A-Z][A-Za-z]*[\d/.]+)\s*$", re.M
)


def show_commands(*, switch: bool, serials: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the show commands for a router's facts."""
    further = (MACS,) if switch else ()
    return (*COMMON_COMMANDS, CDP, LLDP, *further, *(f"show controllers {name}" for name in serials))


def router_facts(
    answers: Mapping[str, str], parse: Parse, pings: Mapping[str, Sequence[str]], address: str
) -> RouterFacts:
    """Return the facts from a router's answers to commands, and to pings by far address."""
    version = answers["show version"]
    software = next((line.strip() for line in version.splitlines() if line.strip()), "nothing")
    ios = bool(_IOS.search(version))
    release = _RELEASE.search(version)
    shown = parse("show version", version).get("version", {}) if ios else {}
    return RouterFacts(
        software=software,
        ios=ios,
        release=release[1] if release else "",
        model=str(shown.get("chassis", "")),
        ports=_read_ports(answers, parse) if ios else {},
        arp=_read_arp(parse("show arp", answers["show arp"])) if ios else {},
        learnt={normalise_mac(mac): port for mac, port in _MAC_ROW.findall(answers.get(MACS, ""))},
        neighbours=_read_neighbours(answers, parse),
        pings={far: round_trips(*texts) for far, texts in pings.items()},
        address=address,
        board=board[1] if (board := _BOARD.search(version)) else "",
        running=answers["show running-config"],
        rollback_state=RollbackState(answers["show running-config"], answers[STARTUP], answers[FLASH]),
        refused=find_refusal(answers["show running-config"]) or "",
    )


def _read_ports(answers: Mapping[str, str], parse: Parse) -> dict[str, Port]:
    configured = {name: _IPV6.findall(lines) for name, lines in _INTERFACE.findall(answers["show running-config"])}
    ports = {}
    for name, shown in parse(INTERFACES, answers[INTERFACES]).items():
        counted = shown.get("counters", {})
        clock = _CLOCK.search(answers.get(f"show controllers {name}", ""))
        speed = _SPEED.search(str(shown.get("port_speed", "")))
        ports[name] = Port(
            shut_down=not shown.get("enabled", True),
            line=shown.get("oper_status") == "up" and shown.get("line_protocol") == "up",
            mac=normalise_mac(shown.get("mac_address")),
            addresses=(*shown.get("ipv4", {}), *configured.get(name, ())),
            mbps=float(speed["number"]) * _UNITS[speed["unit"].lower()] if speed else None,
            duplex=shown.get("duplex_mode"),
            errors={words: counted[key] for key, words in _DAMAGE.items() if counted.get(key)},
            clock_rate_bps=int(clock[1]) if clock else None,
        )
    return ports


def _read_arp(shown: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {
        address: (normalise_mac(entry.get("link_layer_address")), interface)
        for interface, table in shown.get("interfaces", {}).items()
        for address, entry in table.get("ipv4", {}).get("neighbors", {}).items()
    }


def _read_neighbours(answers: Mapping[str, str], parse: Parse) -> tuple[tuple[str, str, str], ...]:
    found = [
        (entry["local_interface"], str(entry["device_id"]).partition(".")[0], entry["port_id"])
        for entry in parse(CDP, answers.get(CDP, "")).get("index", {}).values()
    ]
    for interface, neighbours in parse(LLDP, answers.get(LLDP, "")).get("interfaces", {}).items():
        for port, systems in neighbours.get("port_id", {}).items():
            found += [(interface, str(name).partition(".")[0], port) for name in systems.get("neighbors", {})]
    return tuple(dict.fromkeys(found))


def round_trips(*texts: str) -> RoundTrips:
    """Return the combined results of successive `ping` commands, with the three times of each."""
    each = [_ping_times(text) for text in texts]
    return RoundTrips(sum(sent for sent, _ in each), tuple(took for _, times in each for took in times), summed=True)


def _ping_times(text: str) -> tuple[int, tuple[float, ...]]:
    """Return the number of requests, and the times of the answers."""
    success, times = _SUCCESS.search(text), _TIMES.search(text)
    received, sent = (int(success[1]), int(success[2])) if success else (0, 0)
    least, mean, most = map(float, times.groups()) if times else (0.0, 0.0, 0.0)
    middle = (mean,) * max(received - 2, 0)
    return sent, (least, *middle, most)[:received]
