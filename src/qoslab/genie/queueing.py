"""Parsers of `show queueing` and `show controllers serial`: the queues of interfaces. Genie has none."""

from __future__ import annotations

import re
from typing import Any

Values = dict[str, Any]

_N = r"\d+"
_INTERFACE = re.compile(r"Interface (?P<name>\S+)(?: queueing strategy: (?P<strategy>\S+))?")
_LINES = [
    (re.compile(pattern), name)
    for pattern, name in (
        (rf"Input queue: (?P<size>{_N})/(?P<max>{_N})/(?P<drops>{_N})/(?P<flushes>{_N}) \(.*", "input_queue"),
        (rf"Output queue: (?P<size>{_N})/(?P<max>{_N}) \(size/max\)", "output_queue"),
        (rf"Output queue: (?P<size>{_N})/(?P<max_total>{_N})/(?P<drops>{_N}) \(.*", "output_queue"),
        (
            rf"Output queue: (?P<size>{_N})/(?P<max_total>{_N})/(?P<threshold>{_N})/(?P<drops>{_N}) \(.*",
            "output_queue",
        ),
        (
            rf"Conversations +(?P<active>{_N})/(?P<max_active>{_N})/(?P<max_total>{_N}) \(.*",
            "conversations",
        ),
        (
            rf"Reserved Conversations (?P<allocated>{_N})/(?P<max_allocated>{_N}) \(.*",
            "reserved_conversations",
        ),
    )
]
_CONVERSATION = re.compile(
    rf"\(depth/weight/total drops/no-buffer drops/interleaves\) (?P<depth>{_N})/(?P<weight>{_N})/(?P<total_drops>{_N})"
    rf"/(?P<no_buffer_drops>{_N})/(?P<interleaves>{_N})"
)
_HEAD = [
    re.compile(pattern)
    for pattern in (
        rf"Conversation (?P<number>{_N}), linktype: (?P<linktype>\S+), length: (?P<length>{_N})",
        rf"source: (?P<source>\S+), destination: (?P<destination>\S+), id: (?P<id>0x[0-9A-Fa-f]+), ttl: (?P<ttl>{_N}),",
        rf"TOS: (?P<tos>{_N}) prot: (?P<protocol>{_N})"
        rf"(?:, source port (?P<source_port>{_N}), destination port (?P<destination_port>{_N}))?",
    )
]
_FAIR = re.compile(
    rf" *(?P<name>[A-Z]\S+) +(?P<discard_threshold>{_N}) +(?P<dynamic_queues>{_N}) +(?P<reserved_queues>{_N})"
    rf" +(?P<link_queues>{_N}) +(?P<priority_queues>{_N}) *"
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
        elif match := re.fullmatch(rf"Available Bandwidth ({_N}) kilobits/sec", line):
            found["available_bandwidth_kbps"] = int(match[1])
        else:
            for pattern, name in _LINES:
                if match := pattern.match(line):
                    found[name] = _parse_numbers(match)
            if match := re.search(rf"Total output drops: ({_N})", line):
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
    figures: Values = {}
    now: Values = {}
    for raw in text.splitlines():
        line = raw.strip()
        if match := _CONVERSATION.fullmatch(line):
            figures = _parse_numbers(match)
            continue
        for pattern in _HEAD:
            if match := pattern.fullmatch(line):
                fields = {name: value for name, value in match.groupdict().items() if value is not None}
                if "number" in fields:
                    now = result.setdefault(int(fields.pop("number")), dict(figures))
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
        elif match := re.fullmatch(rf"(DCE|DTE) .*?(?:clock rate ({_N}))?", line):
            found["clock"] = match[1]
            if match[2] is not None:
                found["clock_rate_bps"] = int(match[2])
        elif match := re.match(rf"tx_limited = ([01])\(({_N})\)", line):
            found["tx_limited"], found["tx_ring_limit"] = match[1] == "1", int(match[2])
    return result
