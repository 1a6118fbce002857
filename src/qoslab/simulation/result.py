"""Output of `qos-sim run` (internals/simulator.md): values of flows and hosts, and samples of the routers' counters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qoslab.errors import RunInvalid
from qoslab.model.experiment import Flow
from qoslab.model.traffic_kinds import KINDS, Codec
from qoslab.model.voice import best_voice_score
from qoslab.simulation.history import SampleHistory
from qoslab.simulation.scenario import FORMAT
from qoslab.system import program_formats
from qoslab.system.programs import SIMULATOR as PROGRAM
from qoslab.traffic import FlowResult, IntervalResult, StreamResult, TrafficError
from qoslab.traffic.base import check_streams, read_number
from qoslab.traffic.page_times import PageTimes


class SimulationError(RunInvalid):
    """Failure of the simulator, or unusable output of it."""


@dataclass(frozen=True)
class SimulationResult:
    """Result of a simulation."""

    version: str
    virtual_ns: int
    """End of the simulation in virtual time."""
    events: int
    flows: Mapping[str, program_formats.FlowReport]
    hosts: Mapping[str, program_formats.HostReport]
    routers: Mapping[str, SampleHistory]
    """Samples of each router."""
    probes: Mapping[str, program_formats.OperationReport]
    """Results of each probe at its end, with the time stamps of each packet."""

    def flow_text(self, name: str) -> str:
        """Return the text of a flow for the run folder; `read_flow` reads it."""
        return _json_text({"format": FORMAT, "program": PROGRAM, "version": self.version, **self.flows[name]})

    def host_text(self, name: str) -> str:
        """Return the text of a host for the run folder; `read_host` reads it."""
        return _json_text({"format": FORMAT, "program": PROGRAM, "version": self.version, **self.hosts[name]})


def _json_text(content: Mapping[str, object]) -> str:
    # Indented, it would be written by the slow encoder in Python.
    return json.dumps(content, separators=(",", ":")) + "\n"


def read_result(text: str) -> SimulationResult:
    """Parse the result. Raise `SimulationError` if the text is not a result."""
    try:
        report: program_formats.SimulationReport = json.loads(text)
        if report["program"] != PROGRAM or report["format"] != FORMAT:
            raise ValueError(f"format {report['format']!r} of {report['program']!r}, expected {FORMAT} of {PROGRAM}")
        routers = {
            name: SampleHistory(tuple(each["samples"]), tuple(each["ip_sla"]), tuple(each["process_busy_ns"]))
            for name, each in report["routers"].items()
        }
        if not all(router.samples for router in routers.values()):
            raise ValueError("a router without samples")
        return SimulationResult(
            version=str(report["version"]),
            virtual_ns=int(report["virtual_ns"]),
            events=int(report["events"]),
            flows=report["flows"],
            hosts=report["hosts"],
            routers=routers,
            probes=report["probes"],
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SimulationError(
            f"{PROGRAM}: its output is not a result ({type(error).__name__}: {error})",
            hint="Is the program of the same version? If not: cargo build --release -p qos-sim",
        ) from error


def read_flow(flow: Flow, text: str) -> FlowResult:
    """Read the values of a flow from `SimulationResult.flow_text`. Raise `TrafficError` if they cannot be used."""
    where = f'{PROGRAM}, traffic "{flow.name}"'
    try:
        report: program_formats.FlowReport = (whole := json.loads(text))
        codec = None if flow.kind is None else KINDS[flow.kind].codec
        streams = tuple(
            _stream_result(each, codec, pages=flow.protocol == "tcp" and flow.tool == "flood")
            for each in report["streams"]
        )
        intervals = tuple(_interval_result(each) for each in report["intervals"])
        failure = "; ".join(_failure_texts(report["streams"]))
        version = str(whole["version"])
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise TrafficError(f"{where}: the JSON is malformed ({type(error).__name__}: {error})") from error
    check_streams(PROGRAM, flow, len(streams))
    if failure and not flow.may_fail:
        raise TrafficError(f"{where}: {failure}")
    return FlowResult(PROGRAM, flow.protocol, version, streams, intervals, failure=failure)


def _failure_texts(streams: Sequence[program_formats.StreamReport]) -> Iterator[str]:
    """Yield failures in the wording of the traffic tools."""
    connected = sum(bool(each["connected"]) for each in streams)
    if connected < len(streams):
        yield f"{connected} of {len(streams)} connections were established"
    yield from (
        f"stream {each['stream']} was not finished" for each in streams if each["connected"] and not each["complete"]
    )


def _stream_result(report: program_formats.StreamReport, codec: Codec | None, *, pages: bool) -> StreamResult:
    seconds, count = read_number(report["seconds"]), _count(report["bytes"])
    sent = report["sender_bytes"]
    delay, writes = report["delay"], report["writes"] if pages else None
    unfinished = report.get("unfinished_writes", 0)
    times = PageTimes.from_histogram(writes["histogram"] if writes else (), unfinished) if pages else None
    return StreamResult(
        stream=_count(report["stream"]),
        local_port=report["local_port"],
        seconds=seconds,
        bytes=count,
        goodput_bps=count * 8 / seconds,
        sender_bytes=sent,
        sender_bps=None if sent is None else _count(sent) * 8 / seconds,
        retransmits=report["retransmits"],
        mss_bytes=report["mss_bytes"],
        rtt_mean_ms=report["rtt_mean_ms"],
        datagrams=report["datagrams"],
        lost=report["lost"],
        jitter_ms=report["jitter_ms"],
        delay_p50_ms=None if delay is None else delay["p50_ns"] / 1e6,
        delay_p99_ms=None if delay is None else delay["p99_ns"] / 1e6,
        delay_max_ms=None if delay is None else delay["max_ns"] / 1e6,
        voice_r=None if codec is None else _voice_rating_factor(codec, delay, report["datagrams"] or 0),
        pages=(0 if times is None else times.finished) if pages else None,
        pages_unfinished=unfinished if pages else None,
        page_p50_ms=None if times is None else times.p50_ms,
        page_mean_ms=None if writes is None else writes["mean_ns"] / 1e6,
        page_max_ms=None if writes is None else writes["max_ns"] / 1e6,
    )


def _voice_rating_factor(codec: Codec, delay: program_formats.DelayReport | None, sent: int) -> float | None:
    """Return the R factor of a call, computed from percentiles of its delays."""
    if delay is None:
        found = best_voice_score(codec, (), sent)
    else:
        half, late = delay["packets"] // 2, delay["packets"] // 100
        rest = delay["packets"] - half - late
        parts = ((delay["p50_ns"], half), (delay["p99_ns"], rest), (delay["max_ns"], late))
        found = best_voice_score(codec, parts, sent)
    return None if found is None else found.rating


def _interval_result(report: program_formats.IntervalReport) -> IntervalResult:
    start, end, count = read_number(report["start_s"]), read_number(report["end_s"]), _count(report["bytes"])
    return IntervalResult(_count(report["stream"]), start, end, count, count * 8 / (end - start))


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"found {value!r}, expected a count")
    return value


HOST_COUNTERS = ("sent_segments", "retransmitted_segments", "timeouts")
"""Counters of a host's TCP, with the meaning of the table `hosts`."""


def read_host(text: str, name: str) -> dict[str, int]:
    """Read a host's TCP counters from `SimulationResult.host_text`. Raise `SimulationError` if they cannot be used."""
    try:
        report = json.loads(text)["tcp"]
        return {counter: _count(report[counter]) for counter in HOST_COUNTERS}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SimulationError(f"{name}: not a counter of {PROGRAM} ({type(error).__name__}: {error})") from error
