"""Reader of `irtt client -o`: timestamps of each packet, in nanoseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qoslab.errors import UserError
from qoslab.exchange.readers.base import ForeignResults, parse_number, read_json_object, unexpected_content_error

_FORMAT = 1
"""Version of its JSON format, as written by 0.9."""
_DELAYS = {"rtt": "round trip", "send": "one way, out", "receive": "one way, back"}


def recognises(head: bytes) -> bool:
    """Recognise its keys, in this order."""
    return head.lstrip().startswith(b"{") and b'"irtt"' in head


def read(path: Path) -> ForeignResults:
    """Return the round trip of each packet by its send time, and both one-way delays if the server added timestamps."""
    document = read_json_object(path, "irtt")
    version = document.get("version")
    form = version.get("json_format") if isinstance(version, dict) else None
    if form != _FORMAT:
        raise UserError(
            f"{path}: found format {form!r} of irtt's JSON, expected {_FORMAT}", hint="irtt 0.9 writes that format"
        )
    try:
        return _read(path, document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise unexpected_content_error(path, "irtt", error) from error


def _read(path: Path, document: dict[str, Any]) -> ForeignResults:
    found = ForeignResults(path.name.removesuffix(".gz").removesuffix(".json"), f"irtt {document['version']['irtt']}")
    trips = document["round_trips"]
    if not trips:
        raise UserError(f"{path}: found no round trip, expected at least one")
    zero: float | None = None
    lost = 0
    for trip in trips:
        sent = parse_number(trip["timestamps"]["client"]["send"]["monotonic"])
        zero = sent if zero is None else zero
        time_s = (sent - zero) / 1e9
        found.seconds = max(found.seconds, time_s)
        if str(trip["lost"]) != "false":
            lost += 1
            continue
        for key, name in _DELAYS.items():
            if key in trip["delay"]:
                value = parse_number(trip["delay"][key]) / 1e6
                found.sample(name, "ms", time_s, value)
    found.rows["flows"] = []
    if lost:
        found.notes.append(f"{lost} of {len(trips)} packets had no answer")
    if any(row["series"] != _DELAYS["rtt"] for row in found.samples):
        found.notes.append(
            "one-way delays compare the clocks of two machines, and are wrong by the offset between them"
        )
    return found
