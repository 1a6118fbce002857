"""Parser of `show interfaces` for the output of the simulated routers on Ethernet and serial interfaces.

The result is that of Genie's `ShowInterfaces`, which takes a second to import. Genie parses an output with any other
line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from qoslab.genie.line_patterns import line_pattern

Entry = dict[str, Any]
"""Values of one interface."""
Words = dict[str, str]
"""Groups of the pattern of a line."""

_HEAD = line_pattern(
    r"(?P<interface>(?:FastEthernet|GigabitEthernet|Serial)\d+(?:/\d+)*) is "
    r"(?P<enabled>up|down|administratively down), line protocol is (?P<line_protocol>up|down)"
    r"(?: \((?P<attribute>connected|notconnect)\))?"
)
_IGNORED_LINES = line_pattern(
    r"Keepalive not set|CRC checking enabled|\d+ watchdog|Received \d+ broadcasts, \d+ runts, \d+ giants, \d+ throttles"
    r"|Conversations +\d+/\d+/\d+ \(active/max active/max total\)"
    r"|Reserved Conversations \d+/\d+ \(allocated/max allocated\)|Available Bandwidth \d+ kilobits/sec"
    r"|Output queue: \d+/\d+/\d+ \(size/max total/drops\)|(?:Open|Closed): IPCP, loopback not set"
    r"|DCD=\w+ +DSR=\w+ +DTR=\w+ +RTS=\w+ +CTS=\w+"
)
"""Lines that Genie's parser ignores."""


def _store_numbers(of: str, **names: str) -> Callable[[Entry, Words], None]:
    """Store the integers of a line in the entry or in a part of it; optional ones may be absent."""

    def keep(entry: Entry, words: Words) -> None:
        part = entry.setdefault(of, {}) if of else entry
        part |= {name: int(words[group]) for name, group in names.items() if words[group] is not None}

    return keep


def _store_counts(*names: str) -> Callable[[Entry, Words], None]:
    return _store_numbers("counters", **{name: name for name in names})


def _store_words(**fixed: Any) -> Callable[[Entry, Words], None]:
    """Store the texts of a line unchanged, and the fixed values."""

    def keep(entry: Entry, words: Words) -> None:
        entry |= {name: word for name, word in words.items() if word is not None} | fixed

    return keep


def _store_address(entry: Entry, words: Words) -> None:
    entry.setdefault("ipv4", {})[f"{words['ip']}/{words['prefix_length']}"] = words


def _store_duplex(entry: Entry, words: Words) -> None:
    entry |= {"duplex_mode": words["duplex"].lower(), "port_speed": words["speed"].lower()}
    if words["link_type"]:
        entry |= {"link_type": words["link_type"], "auto_negotiate": True}
    entry["media_type"] = words["media_type"]


def _store_encapsulation(entry: Entry, words: Words) -> None:
    entry["encapsulations"] = {"encapsulation": words["encapsulation"].lower()}


def _store_arp(entry: Entry, words: Words) -> None:
    entry |= {"arp_type": words["arp_type"].lower(), "arp_timeout": words["arp_timeout"]}


def _store_strategy(entry: Entry, words: Words) -> None:
    entry.setdefault("queues", {})["queue_strategy"] = words["queue_strategy"]


def _store_cleared(entry: Entry, words: Words) -> None:
    entry["last_clear"] = words["last_clear"]


def _store_input_rate(entry: Entry, words: Words) -> None:
    seconds = int(words["load_interval"]) * (60 if words["unit"] == "minute" else 1)
    rate = {"load_interval": seconds, "in_rate": int(words["rate"]), "in_rate_pkts": int(words["packets"])}
    entry["counters"] = {"rate": rate}
    if (cleared := entry.pop("last_clear", None)) is not None:
        entry["counters"]["last_clear"] = cleared


def _store_output_rate(entry: Entry, words: Words) -> None:
    entry["counters"]["rate"] |= {"out_rate": int(words["rate"]), "out_rate_pkts": int(words["packets"])}


_ELAPSED_TIME = r"[\w.:]+"
_RATE = r"<rate> bits/sec, <packets> packets/sec"
_LINES: tuple[tuple[re.Pattern[str], Callable[[Entry, Words], None]], ...] = tuple(
    (line_pattern(pattern), keep)
    for pattern, keep in (
        (
            r"Hardware is (?P<type>[a-zA-Z0-9\-/+()_ ]+?)"
            r"(?:, address is (?P<mac_address>[a-f0-9.]+) \(bia (?P<phys_address>[a-f0-9.]+)\))?",
            _store_words(),
        ),
        (r"Internet address is (?P<ip>[0-9.]+)/<prefix_length>", _store_address),
        (
            r"MTU <mtu> bytes, BW <bandwidth> Kbit(?:/sec)?, DLY <delay> usec,",
            _store_numbers("", delay="delay", mtu="mtu", bandwidth="bandwidth"),
        ),
        (r"reliability (?P<reliability>[\d/]+), txload (?P<txload>[\d/]+), rxload (?P<rxload>[\d/]+)", _store_words()),
        (
            r"Encapsulation (?P<encapsulation>ARPA|HDLC|PPP), (?:loopback not set|LCP (?:Open|Closed))",
            _store_encapsulation,
        ),
        (r"Keepalive set \(<keepalive> sec\)", _store_numbers("", keepalive="keepalive")),
        (
            r"(?P<duplex>Full|Half)[- ][dD]uplex, (?P<speed>\d+(?:Mb/s|Mbps))"
            r"(?:, link type is (?P<link_type>auto))?, (?:media type is )?(?P<media_type>[\w/]+)",
            _store_duplex,
        ),
        (
            r"input flow-control is off, output flow-control is unsupported",
            _store_words(flow_control={"receive": False, "send": False}),
        ),
        (r"ARP type: (?P<arp_type>\w+), ARP Timeout (?P<arp_timeout>[\w:.]+)", _store_arp),
        (
            rf"Last input (?P<last_input>{_ELAPSED_TIME}), output (?P<last_output>{_ELAPSED_TIME}), "
            rf"output hang (?P<output_hang>{_ELAPSED_TIME})",
            _store_words(),
        ),
        (rf'Last clearing of "show interface" counters (?P<last_clear>{_ELAPSED_TIME})', _store_cleared),
        (
            r"Input queue: <size>/<max>/<drops>/<flushes> \(size/max/drops/flushes\); Total output drops: <output>",
            _store_numbers(
                "queues",
                input_queue_size="size",
                input_queue_max="max",
                input_queue_drops="drops",
                input_queue_flushes="flushes",
                total_output_drop="output",
            ),
        ),
        (r"Queueing strategy: (?P<queue_strategy>\S+).*", _store_strategy),
        (
            r"Output queue: <size>/<max>(?:/<threshold>/<drops>)? \(size/max(?: total/threshold/drops)?\)",
            _store_numbers(
                "queues", output_queue_size="size", output_queue_max="max", threshold="threshold", drops="drops"
            ),
        ),
        (rf"<load_interval> (?P<unit>minute|second) input rate {_RATE}", _store_input_rate),
        (rf"\d+ (?:minute|second) output rate {_RATE}", _store_output_rate),
        (
            r"<in_pkts> packets input, <in_octets> bytes(?:, <in_no_buffer> no buffer)?",
            _store_counts("in_pkts", "in_octets", "in_no_buffer"),
        ),
        (
            r"<in_errors> input errors, <in_crc_errors> CRC, <in_frame> frame, "
            r"<in_overrun> overrun, <in_ignored> ignored(?:, <in_abort> abort)?",
            _store_counts("in_errors", "in_crc_errors", "in_frame", "in_overrun", "in_ignored", "in_abort"),
        ),
        (r"<in_with_dribble> input packets with dribble condition detected", _store_counts("in_with_dribble")),
        (
            r"<out_pkts> packets output, <out_octets> bytes, <out_underruns> underruns",
            _store_counts("out_pkts", "out_octets", "out_underruns"),
        ),
        (
            r"<out_errors> output errors, <out_collision> collisions, <out_interface_resets> interface resets",
            _store_counts("out_errors", "out_interface_resets", "out_collision"),
        ),
        (
            r"<out_babble> babbles, <out_late_collision> late collision, <out_deferred> deferred",
            _store_counts("out_babble", "out_late_collision", "out_deferred"),
        ),
        (
            r"<out_lost_carrier> lost carrier, <out_no_carrier> no carrier",
            _store_counts("out_lost_carrier", "out_no_carrier"),
        ),
        (
            r"<out_buffer_failure> output buffer failures, <out_buffers_swapped> output buffers swapped out",
            _store_counts("out_buffer_failure", "out_buffers_swapped"),
        ),
        (r"<transitions> carrier transitions", _store_numbers("", carrier_transitions="transitions")),
    )
)


def parse_interfaces(text: str) -> dict[str, Entry] | None:
    """Return the values of each interface; None if the output has a line that only Genie can parse."""
    found: dict[str, Entry] = {}
    entry: Entry | None = None
    for line in filter(None, map(str.strip, text.splitlines())):
        if (head := _HEAD.fullmatch(line)) is not None:
            if head["interface"] in found:
                return None
            entry = found[head["interface"]] = _new_entry(head.groupdict())
        elif entry is None or not (_IGNORED_LINES.fullmatch(line) or _store_line(entry, line)):
            return None
    return found


def _new_entry(words: dict[str, str | None]) -> Entry:
    entry: Entry = {
        "port_channel": {"port_channel_member": False},
        "is_deleted": False,
        "enabled": words["enabled"] != "administratively down",
        "line_protocol": words["line_protocol"],
        "oper_status": words["line_protocol"],
    }
    if (attribute := words["attribute"]) is not None:
        entry |= {"connected": attribute == "connected", "err_disabled": False, "suspended": False}
    return entry


def _store_line(entry: Entry, line: str) -> bool:
    """Store the values of a line; return False if the line is not recognised."""
    for pattern, keep in _LINES:
        if (words := pattern.fullmatch(line)) is not None:
            keep(entry, words.groupdict())
            return True
    return False
