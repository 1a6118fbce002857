"""Parsers of `show queueing` and `show controllers serial`: the queues of interfaces. Genie has none."""

from __future__ import annotations

import re
from typing import Any

from qoslab.genie.line_patterns import line_pattern

Values = dict[str, Any]

_INTERFACE = line_pattern(r"Interface (?P<name>\S+)(?: queueing strategy: (?P<strategy>\S+))?")
_LINES = [
    (line_pattern(pattern), name)
    for pattern, name in (
        (r"Input queue: <size>/<max>/<drops>/<flushes> \(.*", "input_queue"),
        (r"Output queue: <size>/<max> \(size/max\)", "output_queue"),
        (r"Output queue: <size>/<max_total>/<drops> \(.*", "output_queue"),
        (r"Output queue: <size>/<max_total>/<threshold>/<drops> \(.*", "output_queue"),
        (r"Conversations +<active>/<max_active>/<max_total> \(.*", "conversations"),
        (r"Reserved Conversations <allocated>/<max_allocated> \(.*", "reserved_conversations"),
    )
]
_CONVERSATION = line_pattern(
    r"\(depth/weight/total drops/no-buffer drops/interleaves\) <depth>/<weight>/<total_drops>"
    r"/<no_buffer_drops>/<interleaves>"
)
_HEAD = [
    line_pattern(pattern)
    for pattern in (
        r"Conversation <number>, linktype: (?P<linktype>\S+), length: <length>",
        r"source: (?P<source>\S+), destination: (?P<destination>\S+), id: (?P<id>0x[0-9A-Fa-f]+), ttl: <ttl>,",
        r"TOS: <tos> prot: <protocol>(?:, source port <source_port>, destination port <destination_port>)?",
    )
]
_FAIR = line_pattern(
    r" *(?P<name>[A-Z]\S+) +<discard_threshold> +<dynamic_queues> +<reserved_queues>"
    r" +<link_queues> +<priority_queues> *"
)


def _parse_numbers(match: re.Match[str]) -> Values:
    return {name: int(text) for name, text in match.groupdict().items() if name != "name"}


def parse_queueing_interface(text: str) -> Values:
    """Parse `show queueing interface X` by interface; empty without values."""
    result: Values = {}
    found: Values | None = None
    for raw in text.splitlines():
        line = raw.strip()
        if match := _INTERFACE.fullmatch(line):
            found = result.setdefault(match["name"], {})
            found["queueing_strategy"] = match["strategy"]
        elif found is None:
            continue
        elif match := re.fullmatch(r"Queueing strategy: (.+)", line):
            found["strategy"] = match[1]
        elif match := re.fullmatch(r"Available Bandwidth (\d+) kilobits/sec", line):
            found["available_bandwidth_kbps"] = int(match[1])
        else:
            for pattern, name in _LINES:
                if match := pattern.match(line):
                    found[name] = _parse_numbers(match)
            if match := re.search(r"Total output drops: (\d+)", line):
                found["total_output_drops"] = int(match[1])
    return result


def parse_queue(text: str, interface: str) -> Values:
    """Parse `show queue X` (which does not print the interface); empty without values."""
    found = parse_queueing_interface(f"Interface {interface}\n{text}")[interface]
    del found["queueing_strategy"]
    if conversations := _parse_conversations(text):
        found["conversation"] = conversations
    return {interface: found} if found else {}


def _parse_conversations(text: str) -> dict[int, Values]:
    """Return the conversations by number, with their next packets."""
    result: dict[int, Values] = {}
    values: Values = {}
    now: Values = {}
    for raw in text.splitlines():
        line = raw.strip()
        if match := _CONVERSATION.fullmatch(line):
            values = _parse_numbers(match)
            continue
        for pattern in _HEAD:
            if match := pattern.fullmatch(line):
                fields = {name: value for name, value in match.groupdict().items() if value is not None}
                if "number" in fields:
                    now = result.setdefault(int(fields.pop("number")), dict(values))
                now |= {name: int(value) if value.isdecimal() else value for name, value in fields.items()}
    return result


def parse_queueing_fair(text: str) -> Values:
    """Parse `show queueing fair` by interface; empty if no interface queues by conversations."""
    matches = (_FAIR.fullmatch(line) for line in text.splitlines())
    return {match["name"]: _parse_numbers(match) for match in matches if match is not None}


def parse_controllers_serial(text: str) -> Values:
    """Parse clock and transmit ring of `show controllers serial X`, by interface."""
    result: Values = {}
    found: Values | None = None
    for raw in text.splitlines():
        line = raw.strip()
        if match := _INTERFACE.fullmatch(line):
            found = result.setdefault(match["name"], {})
        elif found is None:
            continue
        elif match := re.fullmatch(r"Hardware is (.+)", line):
            found["hardware"] = match[1]
        elif match := re.fullmatch(r"(DCE|DTE) .*?(?:clock rate (\d+))?", line):
            found["clock"] = match[1]
            if match[2] is not None:
                found["clock_rate_bps"] = int(match[2])
        elif match := re.match(r"tx_limited = ([01])\((\d+)\)", line):
            found["tx_limited"], found["tx_ring_limit"] = match[1] == "1", int(match[2])
    return result
