"""flood: qoslab's own generator of datagrams with exact pacing, and of pages over TCP (crates/flood); JSON on both
sides.

As with the articles' flood.pl, sizes and rates are those of IP packets; goodput is payload, as with every tool. The
receiver prints a line for each interval, then the sums; only the sender's count includes datagrams lost at the end.
`flood_pages` has the part for TCP.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from qoslab.model.experiment import Family, Flow
from qoslab.model.traffic_kinds import KINDS
from qoslab.model.units import Duration
from qoslab.system import program_formats
from qoslab.traffic import flood_pages
from qoslab.traffic.base import (
    DRAIN_S,
    IP_AND_UDP_HEADER,
    MTU,
    Commands,
    Endpoints,
    FlowOutput,
    FlowProblem,
    FlowResult,
    IntervalResult,
    Listener,
    SendingPace,
    StreamResult,
    TrafficError,
    UncountedBounds,
    check_streams,
    decimal_shift,
    read_count,
    read_number,
)

IPPROTO_UDP = 17
STAMP = 28
"""Bytes of payload that the receiver needs to count a datagram: the minimum payload."""
MAX_DATAGRAM = 65535
"""Greatest length of an IP packet, bytes."""
INTERVAL_S = 0.5
SILENT_LINES = 4
"""Consecutive empty intervals after the end of the client before queues count as drained and the receiver stops."""

MAX_LATENESS_NS = 2047
"""Greatest lateness that flood 0.1.0 distinguishes: it reports any longer lateness as this value."""

Json = dict[str, Any]


class Flood:
    """The tool `flood`."""

    name = "flood"
    suffix = "jsonl"
    programs: tuple[str, ...] = ("flood",)
    families: tuple[Family, ...] = (4, 6)

    def largest_datagram(self, family: Family) -> int:
        """See `TrafficTool`. A size is that of the IP packet."""
        return MTU

    def check(self, flow: Flow) -> Iterator[FlowProblem]:
        """See `TrafficTool`."""
        if flow.may_fail:
            yield FlowProblem(
                "may_fail", "found true with the tool flood, expected false: flood has no failure to allow"
            )
        if "protocol" not in flow.model_fields_set:
            message = 'found no key "protocol", expected udp for datagrams or tcp for pages with the tool flood'
            yield FlowProblem("protocol", message)
        elif flow.protocol == "tcp":
            yield from flood_pages.check(flow)
            return
        if (flow.rate is None) == (flow.delay is None):
            found = "neither" if flow.rate is None else "both"
            yield FlowProblem("delay", f'found {found} of the keys "rate" and "delay", expected exactly one of them')
        if "size" in flow.random:
            if flow.size is not None:
                yield FlowProblem("size", f"found {flow.size} in addition to a random size, expected no size")
            if flow.rate is not None:
                yield FlowProblem("rate", f"found {flow.rate} with random sizes, expected a delay")
        elif flow.size is None:
            yield FlowProblem("size", 'found no key "size", required for a flood unless sizes are random')
        elif not (least := IP_AND_UDP_HEADER[flow.family or 4] + STAMP) <= flow.size.bytes <= MAX_DATAGRAM:
            yield FlowProblem("size", f"found {flow.size}, expected an IP packet of {least} B to {MAX_DATAGRAM} B")
        elif (
            flow.rate is not None
            and not 1e-9 <= (gap_s := 8 * flow.size.bytes / flow.rate.bps) <= flood_pages.LONGEST_S
        ):
            message = f"found {flow.rate} in packets of {flow.size}, {gap_s:g} s apart, expected 1 ns to 1 h"
            yield FlowProblem("rate", message)
        if flow.delay is not None and flow.delay.seconds > flood_pages.LONGEST_S:
            yield FlowProblem("delay", f"found {flow.delay} between two datagrams, expected at most 1 h")
        if len(set(flow.random)) != len(flow.random):
            yield FlowProblem("random", f"found {', '.join(flow.random)}, expected each word at most once")
        if "port" in flow.random and flow.port is not None:
            yield FlowProblem("port", f"found port {flow.port} in addition to a random port, expected no port")
        for key in ("window", "congestion_control"):
            if getattr(flow, key) is not None:
                yield FlowProblem(
                    key, f'found "{getattr(flow, key)}" on a flood, expected this key on flows of iperf only'
                )

    def commands(self, flow: Flow, duration: Duration, ends: Endpoints, congestion_control: str) -> Commands:
        """See `TrafficTool`. Datagrams have no congestion control."""
        if flow.protocol == "tcp":
            return flood_pages.page_commands(flow, duration, ends, congestion_control)
        any_port = "port" in flow.random
        server = ["flood", "receive", "--address", str(ends.destination), "--id", str(ends.seed)]
        server += ["--interval", str(INTERVAL_S)]
        server += ["--any-port"] if any_port else ["--port", str(ends.port)]
        client = ["flood", "send", str(ends.destination), "--source", str(ends.source)]
        client += _pacing_options(flow, ends)
        if not any_port:
            client += ["--port", str(ends.port)]
        if ends.client_port is not None:
            client += ["--source-port", str(ends.client_port)]
        client += ["--duration", decimal_shift(duration.ns, 9), "--streams", str(flow.streams)]
        client += ["--seed", str(ends.seed), "--id", str(ends.seed)]
        if flow.dscp is not None:
            client += ["--dscp", str(flow.dscp)]
        return Commands(
            server=tuple(server),
            client=tuple(client),
            listener=Listener("raw", IPPROTO_UDP) if any_port else Listener("udp", ends.port),
            server_exits=False,
            deadline_s=duration.seconds + DRAIN_S,
            cut_off=True,
        )

    def sending_pattern(self, flow: Flow) -> program_formats.FlowPart:
        """See `TrafficTool`. Sizes and rates are those of IP packets; ports alternate."""
        return {
            "payload_bytes": None if flow.size is None else flow.size.bytes - IP_AND_UDP_HEADER[flow.family or 4],
            "rate_layer": "ip",
            "gap_ns": None if flow.delay is None else flow.delay.ns,
            "take_turns": True,
            "interval_ns": round(INTERVAL_S * 10**9),
        }

    def uncounted_bounds(self, flow: Flow) -> UncountedBounds:
        """See `TrafficTool`: every datagram counts when it arrives, and every byte of a page."""
        return UncountedBounds(0)

    def is_finished(self, flow: Flow, server_stdout: str) -> bool:
        """See `TrafficTool`: True if no datagram has arrived for some time, and always for background flows.

        A long queue of a slow line may deliver packets for longer than the deadline: 1000 packets of 570 bytes take
        36 s at 128 kb/s. The receiver is then cut off.
        """
        if flow.background or flow.protocol == "tcp":
            return True
        lines = server_stdout.splitlines()[-SILENT_LINES:]
        try:
            intervals = [json.loads(line) for line in lines]
            return len(intervals) == SILENT_LINES and all(
                "waiting" in line or line["interval"]["packets"] == 0 for line in intervals
            )
        except (ValueError, KeyError, TypeError):
            return False

    def parse(self, flow: Flow, duration: Duration, client: FlowOutput, server: FlowOutput) -> FlowResult:
        """See `TrafficTool`."""
        errors = [
            f'flood {side}, traffic "{flow.name}": {line.removeprefix("flood: ")}'
            for side, output in (("client", client), ("server", server))
            for line in output.stderr.splitlines()
            if line.strip()
        ]
        if errors:
            raise TrafficError("; ".join(errors))
        sent = _parse_lines(client.stdout, "client", flow)
        lines = _parse_lines(server.stdout, "server", flow)
        try:
            if flow.protocol == "tcp":
                return flood_pages.page_result(flow, sent[-1], lines[-1])
            return _flow_result(flow, duration, sent[-1], lines[:-1], lines[-1]["received"])
        except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError) as error:
            raise TrafficError(
                f'flood, traffic "{flow.name}": the JSON is not a report of flood ({type(error).__name__}: {error})',
                hint="compare the raw files in traffic/ with the version of the installed flood",
            ) from error


def _pacing_options(flow: Flow, ends: Endpoints) -> list[str]:
    """Return the options for pace and sizes: single datagrams, or the frames of a source in bursts."""
    kind = None if flow.kind is None else KINDS[flow.kind]
    if kind is not None and kind.sends_bursts:
        gap_ns = kind.interval_ns(None if flow.rate is None else flow.rate.bps)
        size = min(kind.largest + IP_AND_UDP_HEADER[6 if ends.destination.version == 6 else 4], MTU)
        frames = ",".join(str(each) for each in kind.sizes)
        return ["--delay", decimal_shift(gap_ns, 6), "--size", str(size), "--frames", frames]
    options: list[str] = []
    if flow.rate is not None:
        options += ["--bandwidth", decimal_shift(flow.rate.bps, 3)]
    if flow.delay is not None:
        options += ["--delay", decimal_shift(flow.delay.ns, 6)]
    if flow.size is not None:
        options += ["--size", str(flow.size.bytes)]
    return options


def _parse_lines(text: str, side: str, flow: Flow) -> list[Json]:
    where = f'flood {side}, traffic "{flow.name}"'
    try:
        found = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise TrafficError(f"{where}: the JSON is malformed or truncated ({error})") from error
    if not found or not all(isinstance(line, dict) for line in found):
        raise TrafficError(f"{where}: it printed no JSON object: it was killed or never started")
    return found


def _flow_result(flow: Flow, duration: Duration, sent: Json, lines: list[Json], received: Json) -> FlowResult:
    overflowed = read_count(received["overflowed"])
    if overflowed:
        raise TrafficError(
            f'flood server, traffic "{flow.name}": a full socket buffer lost {overflowed} received datagrams'
        )
    check_streams("flood", flow, len(sent["streams"]))
    numbers = {read_count(stream["source_port"]): number for number, stream in enumerate(sent["streams"], start=1)}
    # Packets of the same flood of an earlier cell, still in a queue, have other ports.
    got = {read_count(source["source_port"]): source for source in received["sources"]}
    # A starved stream may receive its few datagrams at once; a slow queue may deliver its last ones after the end.
    streams = []
    for stream in sent["streams"]:
        port = read_count(stream["source_port"])
        source = got.get(port, {"packets": 0, "payload_bytes": 0, "jitter_ms": None, "last_s": 0.0})
        seconds = max(duration.seconds, read_number(source["last_s"]))
        payload, packets = read_count(source["payload_bytes"]), read_count(source["packets"])
        jitter = source["jitter_ms"]
        streams.append(
            StreamResult(
                stream=numbers[port],
                local_port=port,
                seconds=seconds,
                bytes=payload,
                goodput_bps=payload * 8 / seconds,
                sender_bytes=read_count(stream["payload_bytes"]),
                sender_bps=read_count(stream["payload_bytes"]) * 8 / read_number(sent["seconds"]),
                datagrams=read_count(stream["packets"]),
                lost=read_count(read_count(stream["packets"]) - packets),
                jitter_ms=None if jitter is None else read_number(jitter),
            )
        )
    intervals = []
    for interval in _intervals_while_sending([line["interval"] for line in lines if "interval" in line], duration):
        start, end = read_number(interval["start_s"]), read_number(interval["end_s"])
        by_port = {
            read_count(source["source_port"]): read_count(source["payload_bytes"]) for source in interval["sources"]
        }
        if end > start:
            intervals += [
                IntervalResult(number, start, end, by_port.get(port, 0), by_port.get(port, 0) * 8 / (end - start))
                for port, number in numbers.items()
            ]
    return FlowResult(
        tool="flood",
        protocol="udp",
        version=str(sent["version"]),
        streams=tuple(streams),
        intervals=tuple(sorted(intervals, key=lambda interval: (interval.stream, interval.start_s))),
        warnings=tuple(_flow_warnings(sent, received)),
        pace=_sender_pace(sent),
    )


def _intervals_while_sending(intervals: list[Json], duration: Duration) -> list[Json]:
    """Return the intervals with sent or received datagrams; in later ones the receiver only waited for queues to
    drain.
    """
    length = len(intervals)
    for interval in reversed(intervals):
        middle = (read_number(interval["start_s"]) + read_number(interval["end_s"])) / 2
        if read_count(interval["packets"]) or middle <= duration.seconds:
            break
        length -= 1
    return intervals[:length]


def _sender_pace(sent: Json) -> SendingPace:
    """Return the pace of the sender: only skipped datagrams are missing; those that its own queue refused were in
    time."""
    skipped, errors = read_count(sent["skipped"]), sum(read_count(number) for number in sent["send_errors"].values())
    due = skipped + errors + read_count(sent["packets"])
    late = sent["pacing_error_ns"]
    return SendingPace(skipped / due if due else 0.0, _lateness_ms(late["p99"]), _lateness_ms(late["max"]))


def _lateness_ms(late_ns: object) -> float | None:
    """Return the lateness in ms; None for `MAX_LATENESS_NS`, which is only a lower bound."""
    found = read_number(late_ns)
    return None if found == MAX_LATENESS_NS else found / 1e6


def _flow_warnings(sent: Json, received: Json) -> Iterator[str]:
    """Yield warnings about the flood."""
    skipped, packets = read_count(sent["skipped"]), read_count(sent["packets"])
    refused = {str(name): read_count(number) for name, number in sent["send_errors"].items()}
    if skipped:
        yield f"flood client: it got no CPU time and skipped {skipped} of {skipped + packets} datagrams"
    if refused:
        listed = ", ".join(f"{number} ({name})" for name, number in refused.items())
        yield f"flood client: the operating system refused {listed} of {sum(refused.values()) + packets} datagrams"
