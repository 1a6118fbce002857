"""Reader of the output of one side of `iperf3`: JSON of `-J`, events of `--json-stream`, or text."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qoslab.errors import UserError, clip_text
from qoslab.exchange.readers import iperf3_text
from qoslab.exchange.readers.base import (
    ForeignResults,
    arm_name,
    parse_number,
    read_head,
    read_json_object,
    read_text,
    unexpected_content_error,
)

_EVENT = re.compile(r'\s*\{"event":')
_VISIBLE = re.compile(r"\S")
_ENDED = "interrupt - the server has terminated"
_TIME_TOLERANCE_S = 1e-5
"""Maximum difference between rounded times."""


def recognises(head: bytes) -> bool:
    """Recognise the first keys, or the text."""
    return _is_json(head) or iperf3_text.recognises(head)


def read(path: Path) -> ForeignResults:
    """Return streams and intervals. Bytes and rates are the receiver's if the file has them, else the sender's."""
    if not read_head(path).lstrip().startswith(b"{"):
        return iperf3_text.read(path)
    document = _single_test(path)
    if error := document.get("error"):
        raise UserError(f"{path}: iperf3 ended with an error: {error}", hint="the test did not finish")
    try:
        return _read_test(path, document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise unexpected_content_error(path, "iperf3", error) from error


def _is_json(head: bytes) -> bool:
    return head.lstrip().startswith(b"{") and b'"start"' in head and (b'"connected"' in head or b'"version"' in head)


def _single_test(path: Path) -> dict[str, Any]:
    """Return the JSON document of a file with one test: a single document, or the events of one test."""
    text = read_text(path)
    if _EVENT.match(text):
        return _join_events(path, text)
    # Stopping a server that waits for the next test adds a separate document.
    documents = [
        each for each in _split_documents(text) if each.get("error") != _ENDED or each["start"].get("connected")
    ]
    if len(documents) > 1:
        raise UserError(
            f"{path}: found {len(documents)} JSON documents, expected one document from one test",
            hint="iperf3 -s -J writes one for each test: split the file at the end of each, and import the parts",
        )
    return documents[0] if documents else read_json_object(path, "iperf3 -J")


def _split_documents(text: str) -> list[dict[str, Any]]:
    """Return the successive documents of a text; empty if one is incomplete."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    place = 0
    while begin := _VISIBLE.search(text, place):
        try:
            document, place = decoder.raw_decode(text, begin.start())
            # A file that is not from iperf3 is reported as incomplete.
            document["start"].keys()
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return []
        found.append(document)
    return found


def _join_events(path: Path, text: str) -> dict[str, Any]:
    """Return the document of the events of `--json-stream`, one per line: start, each interval, then end or an
    error.
    """
    document: dict[str, Any] = {"intervals": []}
    for line, row in enumerate(text.splitlines(), start=1):
        if not row.strip():
            continue
        try:
            parsed = json.loads(row)
            event, data = str(parsed["event"]), parsed["data"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UserError(
                f"{path}:{line}: found an incomplete event, expected a JSON object with event and data",
                hint="was the output of iperf3 --json-stream copied completely?",
            ) from error
        if event == "interval":
            document["intervals"].append(data)
        elif event in document:
            raise UserError(
                f'{path}:{line}: found a second event "{clip_text(event)}", expected the events of one test',
                hint="split the file at the end of each test, and import the parts",
            )
        else:
            document[event] = data
    if "end" not in document and "error" not in document:
        raise UserError(
            f'{path}: found no event "end", expected one', hint="is the file complete, and did the test end?"
        )
    return document


@dataclass(frozen=True)
class _Stream:
    place: int
    """Number among the streams of the test, from 1."""
    port: int
    traffic: str
    """Name of the traffic, as for text output: in a bidirectional test, the file's name with the direction, such as
    `TX-C`.
    """


def _read_test(path: Path, document: dict[str, Any]) -> ForeignResults:
    start, end = document["start"], document["end"]
    udp = start["test_start"]["protocol"] == "UDP"
    found = ForeignResults(arm_name(path), f"iperf3 {str(start['version']).removeprefix('iperf ')}")
    if not end["streams"]:
        raise UserError(f"{path}: found no stream, expected at least one")
    server = "accepted_connection" in start
    ends = [each["udp"] if udp else _receiver_end(each, server=server) for each in end["streams"]]
    streams = _streams_by_socket(found.name, start["connected"], ends, side="S" if server else "C")
    arrived = _add_intervals(found, document["intervals"], streams)
    for each, entry in zip(end["streams"], ends, strict=True):
        sent = each.get("udp" if udp else "sender", {})
        stream = streams[entry["socket"]]
        seconds = parse_number(entry["seconds"])
        reported, packets = (int(parse_number(entry.get(name, 0))) for name in ("lost_packets", "packets"))
        lost = found.read_loss(reported, stream.place, packets) if udp else None
        count = int(parse_number(entry["bytes"]))
        if udp and not entry.get("sender", True):
            # The receiver's summary has the sent bytes, or 0 if they are unknown.
            count = arrived[stream.place]
        elif udp and lost is None:
            found.notes.append(f"stream {stream.place}: its bytes are sent bytes, not received ones")
        elif udp and packets:
            count = round(count * (packets - (lost or 0)) / packets)
        found.add_flow(
            stream.place,
            seconds,
            count,
            traffic=stream.traffic,
            tool="iperf3",
            protocol="udp" if udp else "tcp",
            local_port=stream.port,
            # A server has zeros for the data sent by the client.
            sender_bps=parse_number(sent["bits_per_second"]) if sent.get("bytes") else None,
            retransmits=int(parse_number(sent["retransmits"])) if "retransmits" in sent else None,
            rtt_mean_ms=parse_number(sent["mean_rtt"]) / 1000 if sent.get("mean_rtt") else None,
            datagrams=packets if udp else None,
            lost=lost,
            jitter_ms=parse_number(entry.get("jitter_ms", 0)) if udp else None,
        )
        found.seconds = max(found.seconds, seconds)
    if server and any(entry.get("sender") for entry in ends):
        found.notes.append("values missing at the receiver are the sender's")
    return found


def _receiver_end(each: dict[str, Any], *, server: bool) -> dict[str, Any]:
    """Return the receiver's end of a TCP stream, or the sender's if a server has zeros for the data from its client."""
    entry: dict[str, Any] = each["receiver"]
    return each["sender"] if server and entry.get("sender") and not entry["bytes"] else entry


def _streams_by_socket(
    name: str, connected: list[dict[str, Any]], ends: list[dict[str, Any]], *, side: str
) -> dict[int, _Stream]:
    """Return the streams by socket. Before iperf3 3.13 the start does not have the direction of a test, so
    bidirectional tests are recognised by their streams.
    """
    sends = {entry["socket"]: bool(entry.get("sender")) for entry in ends}
    both_ways = len(set(sends.values())) > 1
    found = {}
    for place, each in enumerate(connected, start=1):
        socket = each["socket"]
        way = f" {'TX' if sends.get(socket) else 'RX'}-{side}" if both_ways else ""
        found[socket] = _Stream(place, int(each["local_port"]), name + way)
    return found


def _add_intervals(found: ForeignResults, intervals: list[dict[str, Any]], streams: dict[int, _Stream]) -> Counter[int]:
    """Add the intervals, and return the number of bytes in them by stream number."""
    sender = False
    counted: Counter[int] = Counter()
    losses: dict[int, list[tuple[float, int | None]]] = {}
    for entry in (entry for interval in intervals for entry in interval["streams"]):
        seconds = parse_number(entry["seconds"])
        sender = sender or bool(entry.get("sender"))
        # A test's bytes exclude omitted parts (-O).
        if seconds > 0 and not entry.get("omitted"):
            count = int(parse_number(entry["bytes"]))
            begin, finish = parse_number(entry["start"]), parse_number(entry["end"])
            if begin > 0 and abs(begin + finish - seconds) < _TIME_TOLERANCE_S:
                # The interval began in an omitted part: its start is before 0, and its bytes count from 0.
                begin, seconds = 0.0, finish
            stream = streams[entry["socket"]]
            found.add_interval(stream.place, begin, finish, count, count * 8 / seconds, traffic=stream.traffic)
            counted[stream.place] += count
            losses.setdefault(stream.place, []).append((begin, int(parse_number(entry.get("lost_packets", 0)))))
    for place, own in losses.items():
        found.note_interval_losses(place, iter(own))
    if sender:
        found.notes.append("intervals of a sender count data passed to its kernel, not received data")
    return counted
