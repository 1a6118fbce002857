"""Parsers of `show mls qos …` and `show platform port-asic stats drop` of a Catalyst 3750, with nested dictionaries.

Neither Genie nor ntc-templates parses these commands. Queues and thresholds (weights) have the numbers of the output:
from 0 in statistics, from 1 in the configuration. Unknown lines are under `unrecognised`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

Values = dict[Any, Any]

_INTERFACE = re.compile(r"(?:Fast|Gigabit|TenGigabit)Ethernet\d+(?:/\d+)*")
_KINDS = {"Fa": "FastEthernet", "Gi": "GigabitEthernet", "Te": "TenGigabitEthernet"}


def parse_mls_qos(text: str) -> Values:
    """Parse `show mls qos`."""
    found: Values = {}
    for key, pattern in (("enabled", r"QoS is (\w+)"), ("rewrite_ip_dscp", r"QoS ip packet dscp rewrite is (\w+)")):
        if match := re.search(rf"^\s*{pattern}\s*$", text, re.MULTILINE):
            found[key] = match[1] == "enabled"
    return found


def parse_vlan(text: str) -> Values:
    """Parse `show mls qos vlan N`."""
    found: Values = {}
    vlan = 0
    for raw in text.splitlines():
        line = raw.strip()
        if match := re.fullmatch(r"Vlan(\d+)", line):
            vlan = int(match[1])
            found[vlan] = {}
        elif vlan and (match := re.fullmatch(r"Attached policy-map for Ingress: *(\S+)", line)):
            found[vlan]["policy_map"] = match[1]
        elif vlan and line:
            found[vlan].setdefault("unrecognised", []).append(line)
    return {"vlan": found} if found else {}


_Line = tuple[re.Pattern[str], Callable[[re.Match[str]], Values]]


def _split_by_interface(text: str, lines: list[_Line], interface: str) -> Values:
    """Split blocks that begin with an interface's name on a separate line."""
    found: Values = {}
    values = found.setdefault(interface, {}) if interface else None
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            continue
        if _INTERFACE.fullmatch(line):
            if interface and not values:
                found.clear()
            values = found.setdefault(line, {})
            continue
        if values is None:
            continue
        for pattern, take in lines:
            if match := pattern.fullmatch(line):
                values.update(take(match))
                break
        else:
            values.setdefault("unrecognised", []).append(line)
    found = {name: each for name, each in found.items() if each}
    return {"interface": found} if found else {}


def _parse_line(pattern: str, take: Callable[[re.Match[str]], Values]) -> _Line:
    return re.compile(pattern), take


def _parse_numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


_PORT: list[_Line] = [
    _parse_line(r"Attached policy-map for Ingress: *(\S+)", lambda m: {"policy_map": m[1]}),
    _parse_line(r"QoS is disabled\. .*", lambda m: {"enabled": False}),
    _parse_line(r"trust state: *(.+)", lambda m: {"trust_state": m[1]}),
    _parse_line(r"trust mode: *(.+)", lambda m: {"trust_mode": m[1]}),
    _parse_line(r"trust enabled flag: *(\w+)", lambda m: {"trust_enabled": m[1] == "ena"}),
    _parse_line(r"COS override: *(\w+)", lambda m: {"cos_override": m[1] == "ena"}),
    _parse_line(r"default COS: *(\d+)", lambda m: {"default_cos": int(m[1])}),
    _parse_line(r"DSCP Mutation Map: *(.+)", lambda m: {"dscp_mutation_map": m[1]}),
    _parse_line(r"Trust device: *(\S+)", lambda m: {"trust_device": m[1]}),
    _parse_line(r"qos mode: *(\S+)", lambda m: {"qos_mode": m[1]}),
]

_QUEUEING: list[_Line] = [
    _parse_line(r"Egress Priority Queue *: *(\w+)", lambda m: {"priority_queue": m[1] == "enabled"}),
    _parse_line(r"Shaped queue weights \(absolute\) *: *([\d ]+)", lambda m: {"shape": _parse_numbers(m[1])}),
    _parse_line(r"Shared queue weights *: *([\d ]+)", lambda m: {"share": _parse_numbers(m[1])}),
    _parse_line(
        r"The port bandwidth limit *: *(\d+) *\(Operational Bandwidth: *([\d.]+)\)",
        lambda m: {"limit_percent": int(m[1]), "operational_percent": float(m[2])},
    ),
    _parse_line(r"The port is mapped to qset *: *(\d+)", lambda m: {"queue_set": int(m[1])}),
    _parse_line(
        r"The allocations between the queues are *: *([\d ]+)", lambda m: {"buffers_percent": _parse_numbers(m[1])}
    ),
]


def parse_interface(text: str, interface: str = "") -> Values:
    """Parse `show mls qos interface [X]`; `interface` is the full requested name, which some images do not print."""
    return _split_by_interface(text, _PORT, interface)


def parse_queueing(text: str, interface: str = "") -> Values:
    """Parse `show mls qos interface [X] queueing` and `… buffers`."""
    return _split_by_interface(text, _QUEUEING, interface)


_ROW = re.compile(r"(\d+) *- *(\d+) *: *([\d ]+)")
_QUEUE_ROW = re.compile(r"queue (\d+) *: *([\d ]+)")
_SECTION = re.compile(r"(dscp|cos) *: *(incoming|outgoing)|output queues (enqueued|dropped) *:?")
_POLICER = re.compile(r"Policer: *Inprofile: *(\d+) *OutofProfile: *(\d+)")
_HEADING = re.compile(r"queue: +(threshold\d *)+")


def parse_statistics(text: str) -> Values:
    """Parse `show mls qos interface [X] statistics`."""
    found: Values = {}
    values: Values | None = None
    section: Values = {}
    for raw in text.splitlines():
        line = raw.strip()
        if match := re.fullmatch(r"(\S+) +\(All statistics are in packets\)", line):
            values = found.setdefault(match[1], {})
        elif not line or set(line) == {"-"} or values is None or _HEADING.fullmatch(line):
            continue
        elif match := _SECTION.fullmatch(line):
            if match[1]:
                section = values.setdefault(match[1], {}).setdefault(match[2], {})
            else:
                section = values.setdefault("output_queues", {}).setdefault(match[3], {}).setdefault("queue", {})
        elif match := _ROW.fullmatch(line):
            # The last row of code points is labelled up to 64 and has four values.
            section.update(enumerate(_parse_numbers(match[3]), int(match[1])))
        elif match := _QUEUE_ROW.fullmatch(line):
            section[int(match[1])] = {"threshold": dict(enumerate(_parse_numbers(match[2]), 1))}
        elif match := _POLICER.fullmatch(line):
            values["policer"] = {"in_profile": int(match[1]), "out_of_profile": int(match[2])}
        else:
            values.setdefault("unrecognised", []).append(line)
    return {"interface": found} if found else {}


_TABLE_ROW = re.compile(r"(\w+) *: *([\d ]+)")


def _parse_table(lines: list[str]) -> Values:
    """Return the columns of a table by queue."""
    rows = [
        (match[1].lower(), _parse_numbers(match[2])) for line in lines if (match := _TABLE_ROW.fullmatch(line.strip()))
    ]
    queues = next((values for name, values in rows if name == "queue"), [])
    return {
        queue: {name: values[column] for name, values in rows if name != "queue"} for column, queue in enumerate(queues)
    }


def parse_queue_set(text: str) -> Values:
    """Parse `show mls qos queue-set [S]`."""
    parts = re.split(r"^\s*Queueset *: *(\d+)\s*$", text, flags=re.MULTILINE)[1:]
    sets = {
        int(number): {"queue": _parse_table(body.splitlines())}
        for number, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return {"queue_set": sets} if sets else {}


def parse_input_queue(text: str) -> Values:
    """Parse `show mls qos input-queue`."""
    queues = _parse_table(text.splitlines())
    return {"queue": queues} if queues else {}


_MAPS = {
    "Policed-dscp map:": "policed-dscp",
    "Dscp-cos map:": "dscp-cos",
    "Cos-dscp map:": "cos-dscp",
    "IpPrecedence-dscp map:": "ip-prec-dscp",
    "Dscp-outputq-threshold map:": "dscp-output-q",
    "Dscp-inputq-threshold map:": "dscp-input-q",
    "Cos-outputq-threshold map:": "cos-output-q",
    "Cos-inputq-threshold map:": "cos-input-q",
    "Dscp-dscp mutation map:": "dscp-mutation",
}
_TENS = re.compile(r"(\d) *: +(\d[\d -]*)")
_CODES = re.compile(r"(dscp|queue-threshold): +(\d[\d -]*)")
_MAP_HEADING = re.compile(r"(d1 *:|cos:|ipprec:).*|-+")


def _split_cells(text: str) -> Iterator[Any]:
    for word in text.split():
        if "-" in word:
            queue, threshold = word.split("-")
            yield {"queue": int(queue), "threshold": int(threshold)}
        else:
            yield int(word)


def parse_maps(text: str) -> Values:
    """Parse `show mls qos maps [NAME]`: by map, then by code point, class of service or precedence."""
    maps: Values = {}
    values: Values | None = None
    for raw in text.splitlines():
        line = raw.strip()
        if line in _MAPS:
            values = maps.setdefault(_MAPS[line], {})
        elif values is None or not line or _MAP_HEADING.fullmatch(line):
            continue
        elif match := _TENS.fullmatch(line):
            values.update(enumerate(_split_cells(match[2]), 10 * int(match[1])))
        elif match := _CODES.fullmatch(line):
            values.update(enumerate(_split_cells(match[2])))
        elif line.endswith(":") and "dscp-mutation" in maps:
            values = maps["dscp-mutation"].setdefault(line[:-1], {})
    return {"map": maps} if maps else {}


_AGGREGATE = re.compile(r"aggregate-policer (\S+) (\d+) (\d+) exceed-action (\S+)")


def parse_aggregate_policer(text: str) -> Values:
    """Parse `show mls qos aggregate-policer [NAME]`."""
    found: Values = {}
    values: Values = {}
    for raw in text.splitlines():
        line = raw.strip()
        if match := _AGGREGATE.fullmatch(line):
            values = found.setdefault(match[1], {"policy_maps": []})
            values.update(rate_bps=int(match[2]), burst_bytes=int(match[3]), exceed_action=match[4])
        elif values and (match := re.fullmatch(r"Used by policy map (.+)", line)):
            values["policy_maps"] = match[1].split()
    return {"aggregate_policer": found} if found else {}


def parse_port_asic_drops(text: str) -> Values:
    """Parse `show platform port-asic stats drop [X]`: frames by interface, queue and weight."""
    found: Values = {}
    queues: Values = {}
    weights: Values = {}
    for raw in text.splitlines():
        line = raw.strip()
        if match := re.fullmatch(r"Interface (\S+) TxQueue Drop Statistics", line):
            name = _KINDS.get(match[1][:2], match[1][:2]) + match[1][2:]
            queues = found.setdefault(name, {}).setdefault("queue", {})
        elif match := re.fullmatch(r"Queue (\d+)", line):
            weights = queues.setdefault(int(match[1]), {}).setdefault("weight", {})
        elif match := re.fullmatch(r"Weight (\d+) Frames (\d+)", line):
            weights[int(match[1])] = int(match[2])
    return {"interface": found} if found else {}
