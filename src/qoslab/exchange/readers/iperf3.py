"""What `iperf3` printed, of one side alone: JSON of `-J`, or text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qoslab.errors import UserError
from qoslab.exchange.readers import iperf3_text
from qoslab.exchange.readers.base import Foreign, document_of, head_of, not_as_written, number

_APART_S = 1e-5
"""By no more do times differ that are rounded."""


def knows(head: bytes) -> bool:
    """By its first keys, or as text."""
    return _json(head) or iperf3_text.knows(head)


def read(path: Path) -> Foreign:
    """Streams and intervals. Bytes and rates are the receiver's where the file has them, else the sender's."""
    if not head_of(path).lstrip().startswith(b"{"):
        return iperf3_text.read(path)
    document = document_of(path, "iperf3 -J")
    if error := document.get("error"):
        raise UserError(f"{path}: iperf3 ended with an error: {error}", hint="it measured nothing, or not to the end")
    try:
        return _read(path, document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise not_as_written(path, "iperf3", error) from error


def _json(head: bytes) -> bool:
    return head.lstrip().startswith(b"{") and b'"start"' in head and (b'"connected"' in head or b'"version"' in head)


def _read(path: Path, document: dict[str, Any]) -> Foreign:
    start, end = document["start"], document["end"]
    udp = start["test_start"]["protocol"] == "UDP"
    found = Foreign(path.stem.removesuffix(".json"), f"iperf3 {str(start['version']).removeprefix('iperf ')}")
    numbers = {entry["socket"]: (place, int(entry["local_port"])) for place, entry in enumerate(start["connected"], 1)}
    if not end["streams"]:
        raise UserError(f"{path}: found no stream, expected some")
    for each in end["streams"]:
        entry = each["udp"] if udp else each["receiver"]
        sent = each.get("udp" if udp else "sender", {})
        place, port = numbers[entry["socket"]]
        seconds = number(entry["seconds"])
        count = int(number(entry["bytes"]))
        # A client's end of datagrams counts what it sent; what arrived is that without what was lost.
        lost, packets = (int(number(entry.get(name, 0))) for name in ("lost_packets", "packets"))
        if udp and packets and entry.get("sender", True):
            count = round(count * (packets - lost) / packets)
        found.flow(
            place,
            seconds,
            count,
            tool="iperf3",
            protocol="udp" if udp else "tcp",
            local_port=port,
            sender_bps=number(sent["bits_per_second"]) if "bits_per_second" in sent else None,
            retransmits=int(number(sent["retransmits"])) if "retransmits" in sent else None,
            rtt_mean_ms=number(sent["mean_rtt"]) / 1000 if sent.get("mean_rtt") else None,
            datagrams=packets if udp else None,
            lost=lost if udp else None,
            jitter_ms=number(entry.get("jitter_ms", 0)) if udp else None,
        )
        found.seconds = max(found.seconds, seconds)
    sender = False
    for interval in document["intervals"]:
        for entry in interval["streams"]:
            seconds = number(entry["seconds"])
            sender = sender or bool(entry.get("sender"))
            # A test's bytes are without those of the parts that were to be omitted (-O).
            if seconds > 0 and not entry.get("omitted"):
                count = int(number(entry["bytes"]))
                begin, finish = number(entry["start"]), number(entry["end"])
                if begin > 0 and abs(begin + finish - seconds) < _APART_S:
                    # It began in such a part: its start says how long before 0, its bytes count from 0.
                    begin, seconds = 0.0, finish
                found.interval(numbers[entry["socket"]][0], begin, finish, count, count * 8 / seconds)
    if sender:
        found.notes.append("intervals are the sender's, and tell what was handed to its kernel, not what arrived")
    return found
