"""Parsers of `show policy-map`, `show class-map` and `show running-config`, with Genie's structures.

Genie's parser for `show policy-map` fails on some forms of a policer. Its parser for `show class-map` rejects the whole
output if one class has only unknown criteria. Added keys of `show policy-map`: `set_fields` (all markings of a class,
of which Genie keeps the last as `set`), `fair_queue`, `bandwidth_max_threshold_packets`, `priority_burst_bytes`,
`random_detect` (thresholds by class, `explicit_congestion_notification`), `unrecognised`. A bandwidth in per cent is a
key of the class; Genie stores it under `random_detect`. In `show class-map`, criteria unknown to Genie are stored under
their first word, with the prefix `not ` if they are negated.
"""

from __future__ import annotations

import re
from typing import Any

from qoslab.genie.line_patterns import line_pattern

Values = dict[str, Any]

_POLICE_WORDS = [
    line_pattern(rf"{pattern}(?= |$)")
    for pattern in (
        # after `police`; some releases print units after rates and bursts
        r"(?:cir )?<cir_bps>(?: bps)?",
        r"cir percent <cir_percent>",
        r"rate percent <rate_percent>",
        r"rate <rate>(?: bps)?",
        r"bc <bc_ms> ms",
        r"(?:bc|burst) <cir_bc_bytes>(?: bytes)?",
        r"pir percent <pir_percent>",
        r"(?:pir|peak-rate) <pir>(?: bps)?",
        r"be <be_ms> ms",
        r"peak-burst <pir_be_bytes>(?: bytes)?",
        r"be <be_bytes>(?: bytes)?",
    )
]

_CLASS_LINES = [
    line_pattern(pattern)
    for pattern in (
        r"priority <priority_kbps> \(kbps\).*",
        r"priority <priority_percent> \(%\).*",
        r"[Pp]riority [Ll]evel <priority_levels>.*",
        r"[Bb]andwidth <bandwidth_kbps> \(kbps\)(?: Max Threshold <bandwidth_max_threshold_packets> \(packets\))?",
        r"[Bb]andwidth <bandwidth_percent> \(%\)(?: Max Threshold <bandwidth_max_threshold_packets> \(packets\))?",
        r"[Bb]andwidth remaining <bandwidth_remaining_percent> \(%\)"
        r"(?: Max Threshold <bandwidth_max_threshold_packets> \(packets\))?",
        r"bandwidth remaining ratio <bandwidth_remaining_ratio>",
        r"queue-limit <queue_limit_packets> packets",
        r"queue-limit <queue_limit_bytes> bytes",
        r"queue-limit <queue_limit_ms> ms",
        r"cir <cir_bps> \(bps\)(?: bc <bc_bits> \(bits\))?(?: be <be_bits> \(bits\))?",
        r"Max\. Buffers Limit <max_buffers_packets> \(Packets\)",
        r"cir <cir_percent>%(?: bc <bc_msec> \(msec\))?(?: be <be_msec> \(msec\))?",
    )
]
_FLAGS = {
    "Average Rate Traffic Shaping": "average_rate_traffic_shaping",
    "Peak Rate Traffic Shaping": "peak_rate_traffic_shaping",
    "Strict Priority": "priority",
}


_RED_ROW = line_pattern(
    r"(?P<value>\w+) +(?P<min_threshold>\d+(?: bytes| ms)?|-) +(?P<max_threshold>\d+(?: bytes| ms)?|-)"
    r" +(?P<mark_probability>1/\d+)"
)


def parse_policy_map(text: str) -> Values:
    """Parse `show policy-map`; empty without a policy-map."""
    policies: Values = {}
    policy: Values | None = None
    found: Values | None = None
    for raw in text.splitlines():
        line = raw.strip()
        if match := re.fullmatch(r"Policy Map (\S+)", line):
            policy, found = policies.setdefault(match[1], {}), None
        elif policy is not None and (match := re.fullmatch(r"Class (\S+)", line)):
            found = policy.setdefault("class", {}).setdefault(match[1], {})
        elif found is not None and line and not _parse_class_line(found, line):
            found.setdefault("unrecognised", []).append(line)
    return {"policy_map": policies} if policies else {}


def _parse_class_line(found: Values, line: str) -> bool:
    for pattern in _CLASS_LINES:
        if match := pattern.fullmatch(line):
            found.update(_parse_integer(match))
            if line.startswith("priority"):
                found["priority"] = True
            return True
    if line in _FLAGS:
        found[_FLAGS[line]] = True
    elif match := line_pattern(r"Bandwidth <kbps> \(kbps\) Burst <burst> \(Bytes\)").fullmatch(line):
        found["priority_kbps"], found["priority_burst_bytes"] = int(match["kbps"]), int(match["burst"])
    elif match := re.fullmatch(r"service-policy (\S+)", line):
        found["service_policy"] = match[1]
    elif match := re.fullmatch(r"set (.+)", line):
        found["set"] = match[1]
        found.setdefault("set_fields", []).append(match[1])
    elif match := line_pattern(r"fair-queue(?: <queues>)?").fullmatch(line):
        found["fair_queue"] = int(match["queues"]) if match["queues"] else True
    elif match := re.fullmatch(r"(?:packet-based wred, )?exponential weight (\d+)", line):
        found.setdefault("random_detect", {})["exponential_weight"] = int(match[1])
    elif match := re.fullmatch(r"queue-limit (dscp|precedence|cos) (\w+) (\d+ \w+)", line):
        found.setdefault("queue_thresholds", {}).setdefault(match[1], {})[match[2]] = match[3]
    elif line == "explicit congestion notification":
        found.setdefault("random_detect", {})["explicit_congestion_notification"] = True
    elif "random_detect" in found and (match := _RED_ROW.fullmatch(line)):
        rows = found["random_detect"].setdefault("class", {})
        rows[match["value"]] = {name: text for name, text in match.groupdict().items() if name != "value"}
    elif "random_detect" in found and re.fullmatch(r"-+|(?:class|dscp) +min-threshold .*", line):
        pass
    elif match := re.fullmatch(r"qoslab-extension police dynamic-bucket((?: [a-z-]+ \d+)*)", line):
        words = match[1].split()
        bucket = {word.replace("-", "_"): int(value) for word, value in zip(words[::2], words[1::2], strict=True)}
        found.setdefault("police", {})["dynamic_bucket"] = bucket
    elif line.startswith("police "):
        return _parse_police(found.setdefault("police", {}), line.removeprefix("police "))
    elif match := re.fullmatch(r"(conform|exceed|violate)-action (.+)", line):
        found.setdefault("police", {}).setdefault(f"{match[1]}_action", []).append(match[2])
    else:
        return False
    return True


def _parse_police(police: Values, words: str) -> bool:
    while words:
        for pattern in _POLICE_WORDS:
            if match := pattern.match(words):
                police.update(_parse_integer(match))
                words = words[match.end() :].lstrip()
                break
        else:
            actions = re.findall(r"(conform|exceed|violate)-action (\S+(?: (?!\w+-action)\S+)*)", words)
            for colour, action in actions:
                police.setdefault(f"{colour}_action", []).append(action.strip())
            if not actions:
                return False
            break
    if (excess := police.pop("be_bytes", None)) is not None:
        # with two rates it belongs to the peak rate
        police["pir_be_bytes" if "pir" in police or "pir_percent" in police else "cir_be_bytes"] = excess
    return True


def _parse_integer(match: re.Match[str]) -> Values:
    return {name: int(value) for name, value in match.groupdict().items() if value is not None}


_CLASS_MAP = line_pattern(r" *Class Map (?P<criteria>match-a(?:ll|ny)) (?P<name>\S+) \(id <id>\) *")
_MATCH = line_pattern(
    r"(?P<negated>not +)?(?:(?P<any>any|none)|(?:ip +)?(?P<word>dscp|cos|precedence|protocol|qos-group|class-map|"
    r"input-interface|packet length|vlan|access-group(?: +name)?) +(?P<values>.+))"
)


def parse_class_map(text: str) -> Values:
    """Parse `show class-map`; empty without a class-map."""
    classes: Values = {}
    found: Values | None = None
    for raw in text.splitlines():
        if match := _CLASS_MAP.fullmatch(raw):
            found = classes.setdefault(match["name"], {})
            found.update(match_criteria=match["criteria"], cm_id=int(match["id"]), index={})
        elif found is not None and (line := re.fullmatch(r" *Match +(.+)", raw)):
            found["index"][len(found["index"]) + 1] = {"match": _parse_criterion(line[1].strip())}
    return {"class_maps": classes} if classes else {}


def _parse_criterion(text: str) -> Values:
    match = _MATCH.fullmatch(text)
    if match is None:
        return {"other": [text]}
    negated = "not " if match["negated"] else ""
    if match["any"]:
        return {f"{negated}policy": [match["any"]]}
    word = match["word"]
    # names precede their number: `ef (46)`
    values = re.sub(r"\(\d+\)", " ", match["values"]).split()
    name = "access_group" if word.startswith("access-group") else word.replace("-", "_").replace(" ", "_")
    return {f"{negated}{name}": values}


def parse_running_config(text: str) -> Values:
    """Return the running configuration as nested dictionaries, by indentation, without comments and heading."""
    result: Values = {}
    levels: list[tuple[int, Values]] = [(-1, result)]
    for raw in text.splitlines():
        line = raw.strip()
        if not line or raw.startswith("!") or re.match(r"Building configuration|Current configuration|end$", line):
            continue
        indent = len(raw) - len(raw.lstrip())
        while levels[-1][0] >= indent:
            levels.pop()
        levels.append((indent, levels[-1][1].setdefault(line, {})))
    return result
