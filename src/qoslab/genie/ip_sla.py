"""Parser of `show ip sla statistics [aggregated]` with jitter, in both forms; Genie's own parser omits it."""

from __future__ import annotations

import re
from typing import Any

_OPERATION = re.compile(r"(?:IPSLA operation id: |Round Trip Time \(RTT\) for\s+Index )(?P<id>\d+)")
_LINES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("type", r"Type of operation: (.+)"),
        ("start", r"(?:Start Time Index|Latest operation start time): (.+)"),
        ("latest_rtt_ms", r"Latest RTT: (\d+) milliseconds"),
        ("return_code", r"Latest operation return code: (.+)"),
        ("rtt_count", r"Number Of RTT: (\d+)"),
        ("rtt_ms", r"RTT Min/Avg/Max: (\d+/\d+/\d+)"),
        ("one_way_samples", r"Number of Latency one-way Samples: (\d+)"),
        ("one_way_sd_ms", r"Source to Destination Latency one way Min/Avg/Max: (\d+/\d+/\d+)"),
        ("one_way_ds_ms", r"Destination to Source Latency one way Min/Avg/Max: (\d+/\d+/\d+)"),
        ("jitter_samples", r"Number of (?:SD )?Jitter Samples: (\d+)"),
        ("jitter_ds_samples", r"Number of DS Jitter Samples: (\d+)"),
        ("jitter_sd_ms", r"Source to Destination Jitter Min/Avg/Max: (\d+/\d+/\d+)"),
        ("jitter_ds_ms", r"Destination to Source Jitter Min/Avg/Max: (\d+/\d+/\d+)"),
        ("over_threshold", r"Number Of RTT Over Threshold: (\d+)"),
        ("late", r"Packet Late Arrival: (\d+)"),
        ("lost", r"Packet Loss: (\d+)"),
        ("lost_sd", r"Loss Source to Destination: (\d+)"),
        ("lost_ds", r"Loss Destination to Source: (\d+)"),
        ("skipped", r"Packet Skipped: (\d+)"),
        ("successes", r"Number of successes: (\d+)"),
        ("failures", r"Number of failures: (\d+)"),
        ("time_to_live", r"Operation time to live: (.+)"),
    )
)
_TRIPLET = re.compile(r"(\d+)/(\d+)/(\d+)")


def parse_statistics(text: str) -> dict[str, Any]:
    """Return the blocks of the output by operation, in order; a triplet is {min, avg, max}. Empty if there are none."""
    found: dict[str, list[dict[str, Any]]] = {}
    block: dict[str, Any] = {}
    for line in text.splitlines():
        if (head := _OPERATION.search(line)) is not None:
            block = {}
            found.setdefault(head["id"], []).append(block)
            continue
        for name, pattern in _LINES:
            if (match := pattern.search(line)) is not None:
                block[name] = _parse_value(match[1].strip())
    return {"operations": {number: {"groups": groups} for number, groups in found.items()}} if found else {}


def _parse_value(text: str) -> Any:
    if (triplet := _TRIPLET.fullmatch(text)) is not None:
        return dict(zip(("min", "avg", "max"), map(int, triplet.groups()), strict=True))
    return int(text) if text.isdecimal() else text
