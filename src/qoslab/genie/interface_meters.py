"""Parsers of `show interfaces rate-limit` and `show traffic-shape`, for which Genie has none."""

from __future__ import annotations

from typing import Any

from qoslab.genie.line_patterns import line_pattern

Values = dict[str, Any]

_HEAD = line_pattern(r"(?P<name>[A-Z]\S*\d) ?(?P<description>.*)")
_MATCHES = line_pattern(r"matches: (?P<matches>.+)")
_PARAMS = line_pattern(r"params: +<rate_bps> bps, <normal_burst> limit, <extended_burst> extended limit")
_COUNTER_LINE = line_pattern(r"(?P<what>conformed|exceeded) <packets> packets, <bytes> bytes; action: (?P<action>.+)")
_BURST = line_pattern(r"last packet: <last_packet_ms>ms ago, current burst: <current_burst> bytes")
_SHAPER_LINE = line_pattern(
    r"(?P<name>[A-Z][a-z]\S+) +(?:<list> +)?<depth> +<packets> +<bytes>"
    r" +<packets_delayed> +<bytes_delayed> +(?P<active>yes|no)"
)


def parse_rate_limit(text: str) -> Values:
    """Parse `show interfaces [X] rate-limit`: the lines by interface and direction, in order."""
    result: Values = {}
    found: Values = {}
    lines: list[Values] = []
    for raw in text.splitlines():
        line = raw.strip()
        if not raw.startswith(" ") and (match := _HEAD.fullmatch(raw.rstrip())):
            found = result.setdefault(match["name"], {})
        elif line in ("Input", "Output"):
            lines = found.setdefault(line.lower(), [])
        elif match := _MATCHES.fullmatch(line):
            lines.append(match.groupdict())
        elif not lines:
            continue
        elif match := _PARAMS.fullmatch(line) or _BURST.fullmatch(line):
            lines[-1] |= {name: int(value) for name, value in match.groupdict().items()}
        elif match := _COUNTER_LINE.fullmatch(line):
            counted = {"packets": int(match["packets"]), "bytes": int(match["bytes"]), "action": match["action"]}
            lines[-1][match["what"]] = counted
    return {name: each for name, each in result.items() if each}


def parse_traffic_shape_statistics(text: str) -> Values:
    """Parse `show traffic-shape statistics [X]`: the shapers by interface, in order."""
    result: Values = {}
    for line in text.splitlines():
        if match := _SHAPER_LINE.fullmatch(line.strip()):
            shaper: Values = {name: int(match[name]) for name in ("depth", "packets", "bytes")}
            shaper |= {name: int(match[name]) for name in ("packets_delayed", "bytes_delayed")}
            shaper |= {"active": match["active"] == "yes"}
            shaper |= {} if match["list"] is None else {"access_list": match["list"]}
            result.setdefault(match["name"], []).append(shaper)
    return result
