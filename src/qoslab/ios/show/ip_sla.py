"""`show ip sla …` in both output formats: that of 2008 (12.4) and the later one (15.x).

Sources: the output in the article on tx-ring-limit (April 2008), Cisco's "IP SLAs ICMP Jitter Operations", and the test
outputs of Genie's parsers. Parts without a source are marked below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Literal

from qoslab.ios.model.ios_names import address_text
from qoslab.ios.model.ip_sla import (
    DEFAULT_BUCKET_MS,
    DEFAULT_BUCKETS,
    DEFAULT_FREQUENCY_S,
    DEFAULT_HOURS,
    DEFAULT_INTERVAL_MS,
    DEFAULT_PACKETS,
    DEFAULT_THRESHOLD_MS,
    DEFAULT_TIMEOUT_MS,
    REQUEST_SIZES,
    IpSla,
    Operation,
)
from qoslab.system import program_formats

Print = Literal["2008", "later"]

PRINTS: dict[str, Print] = {"12.4": "2008", "15.0": "later", "15.1": "later", "15.2": "later"}
"""Output format by train of the image."""
TYPES_2008 = {"icmp-echo": "echo", "icmp-jitter": "icmpJitter", "udp-echo": "udpEcho", "udp-jitter": "udpJitter"}
"""Names of types in 2008: `icmpJitter` is from the article, the others are those of the MIB (from memory)."""

RETURN_CODES = {
    "ok": "OK",
    "unknown": "Unknown",
    "timeout": "Timeout",
    "no_connection": "No connection",
    "busy": "Busy",
    "over_threshold": "Over threshold",
}
NO_FIGURES = "NoConnection/Busy/Timeout"

Reports = Mapping[str, "program_formats.OperationReport"]
"""Results of the data plane, by operation."""


def output_format(version: str) -> Print:
    """Return the output format of an image with this `version` line."""
    return PRINTS.get(version, "2008" if version.startswith("12.") else "later")


def show_statistics(sla: IpSla, reports: Reports, which: Print, *, number: int | None, details: bool) -> str:
    """Return `show ip sla statistics [N] [details]`."""
    chosen = [each for key, each in sorted(sla.operations.items()) if number in (None, key) and each.kind is not None]
    blocks = [list(_latest_lines(each, reports.get(str(each.number)), which, details)) for each in chosen]
    if not blocks:
        return ""
    head = ["IPSLAs Latest Operation Statistics", ""] if which == "later" else []
    return "".join(line + "\n" for line in [*head, *_separate_blocks(blocks)])


def show_aggregated(sla: IpSla, reports: Reports, which: Print, *, number: int | None) -> str:
    """Return `show ip sla statistics aggregated [N]`: one block for each stored hour."""
    blocks = [
        list(_hour_lines(sla.operations[key], hour, which))
        for key in sorted(sla.operations)
        if number in (None, key) and sla.operations[key].kind is not None
        for hour in _stored_hours(reports.get(str(key)))
    ]
    head = ["IPSLAs aggregated statistics", ""] if which == "later" and blocks else []
    return "".join(line + "\n" for line in [*head, *_separate_blocks(blocks)])


def _stored_hours(report: program_formats.OperationReport | None) -> list[program_formats.Hour]:
    return [] if report is None else report["hours"]


def _separate_blocks(blocks: list[list[str]]) -> Iterator[str]:
    for index, block in enumerate(blocks):
        if index:
            yield ""
        yield from block


def time_text(time_ns: int) -> str:
    """Return a time as `13:15:22.851 UTC Fri Apr 18 2008`."""
    moment = datetime.fromtimestamp(time_ns / 1e9, UTC)
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03} UTC {moment:%a %b} {moment.day} {moment.year}"


def _format_second(time_ns: int) -> str:
    moment = datetime.fromtimestamp(time_ns // 10**9, UTC)
    return f"{moment:%H:%M:%S} UTC {moment:%a %b} {moment.day} {moment.year}"


def _heading_lines(operation: Operation, which: Print) -> Iterator[str]:
    kind = operation.kind or ""
    if which == "2008":
        yield f"Round Trip Time (RTT) for       Index {operation.number}"
        return
    yield f"IPSLA operation id: {operation.number}"
    yield f"Type of operation: {kind}"


def _hour_lines(operation: Operation, hour: program_formats.Hour, which: Print) -> Iterator[str]:
    yield from _heading_lines(operation, which)
    yield f"Start Time Index: {time_text(hour['start_ns'])}"
    if which == "2008":
        yield f"Type of operation: {TYPES_2008[operation.kind or '']}"
    if operation.is_jitter:
        yield from _value_lines(operation, hour["statistics"], which)
        if which == "2008":
            return
    yield f"Number of successes: {hour['successes']}"
    yield f"Number of failures: {hour['failures']}"


def _latest_lines(
    operation: Operation, report: program_formats.OperationReport | None, which: Print, details: bool
) -> Iterator[str]:
    # The heading of the latest statistics in 2008 is from memory, not from an output.
    yield from _heading_lines(operation, which)
    latest = None if report is None else report["latest"]
    if report is None or latest is None or latest["return_code"] == "unknown":
        yield "        Latest RTT: Unknown" if which == "later" else "        Latest RTT: 0 milliseconds"
        yield "Latest operation start time: Unknown"
        yield "Latest operation return code: Unknown"
    else:
        rtt = latest["rtt_ms"]
        yield f"        Latest RTT: {NO_FIGURES if rtt is None else f'{rtt} milliseconds'}"
        yield f"Latest operation start time: {_format_second(latest['start_ns'])}"
        yield f"Latest operation return code: {RETURN_CODES[latest['return_code']]}"
        if operation.is_jitter:
            yield from _value_lines(operation, latest["statistics"], which)
    if details:
        occurred = report is not None and report["over_thresholds_occurred"]
        yield f"Over thresholds occurred: {'TRUE' if occurred else 'FALSE'}"
    yield f"Number of successes: {0 if report is None else report['successes']}"
    yield f"Number of failures: {0 if report is None else report['failures']}"
    yield f"Operation time to live: {_time_to_live_text(report)}"
    if details:
        state = "Pending" if report is None else str(report["state"]).capitalize()
        yield f"Operational state of entry: {state}"
        yield "Last time this entry was reset: Never"


def _time_to_live_text(report: program_formats.OperationReport | None) -> str:
    seconds = 0 if report is None else report["time_to_live_s"]
    return "Forever" if seconds is None else f"{seconds} sec"


def format_triplet(least: int, mean: int, greatest: int) -> str:
    """Return three values as `6/15/31`."""
    return f"{least}/{mean}/{greatest}"


def format_summary_triplet(summary: program_formats.Summary) -> str:
    """Return minimum, truncated mean and maximum of a summary; `0/0/0` if it is empty."""
    count = summary["count"]
    return format_triplet(summary["min"], summary["sum"] // count if count else 0, summary["max"])


def format_jitter_triplet(jitter: program_formats.Jitter, which: Print) -> str:
    """Return the jitter of one direction, positive and negative differences together.

    In 2008 zeros are left out. Later they count for the minimum, and (inferred) for the mean.
    """
    parts = [part for part in (jitter["positive"], jitter["negative"]) if part["count"]]
    if not parts:
        return format_triplet(0, 0, 0)
    counted = sum(part["count"] for part in parts)
    pairs = counted if which == "2008" else jitter["pairs"]
    least = min(part["min"] for part in parts) if pairs == counted else 0
    return format_triplet(least, sum(part["sum"] for part in parts) // pairs, max(part["max"] for part in parts))


def jitter_sample_count(jitter: program_formats.Jitter) -> int:
    """Return the number of nonzero differences."""
    return int(jitter["positive"]["count"] + jitter["negative"]["count"])


def _value_lines(operation: Operation, found: program_formats.Statistics, which: Print) -> Iterator[str]:
    rtt, sd, ds = found["rtt"], found["jitter_sd"], found["jitter_ds"]
    unit = " milliseconds" if which == "later" else ""
    number = f"Number Of RTT: {rtt['count']}"
    yield "RTT Values:"
    yield f"        {number:<32}RTT Min/Avg/Max: {format_summary_triplet(rtt)}{unit}"
    yield "Latency one-way time:"
    yield f"        Number of Latency one-way Samples: {found['one_way_sd']['count']}"
    yield (
        "        Source to Destination Latency one way Min/Avg/Max: "
        f"{format_summary_triplet(found['one_way_sd'])}{unit}"
    )
    yield (
        "        Destination to Source Latency one way Min/Avg/Max: "
        f"{format_summary_triplet(found['one_way_ds'])}{unit}"
    )
    yield "Jitter Time:"
    if which == "2008":
        # One number for both directions: assumed to be that of nonzero differences from source to destination.
        yield f"        Number of Jitter Samples: {jitter_sample_count(sd)}"
    else:
        yield f"        Number of SD Jitter Samples: {sd['pairs']}"
        yield f"        Number of DS Jitter Samples: {ds['pairs']}"
    yield f"        Source to Destination Jitter Min/Avg/Max: {format_jitter_triplet(sd, which)}{unit}"
    yield f"        Destination to Source Jitter Min/Avg/Max: {format_jitter_triplet(ds, which)}{unit}"
    if which == "2008":
        return
    losses = found["losses"]
    both = losses["out_of_sequence_both"]
    order = losses["out_of_sequence_sd"] + losses["out_of_sequence_ds"] + both
    if operation.kind == "udp-jitter":
        yield "Packet Loss Values:"
        yield (
            f"        Loss Source to Destination: {losses['source_to_destination']:<12}"
            f"Loss Destination to Source: {losses['destination_to_source']}"
        )
        yield f"        Out Of Sequence: {order:<7}Tail Drop: {losses['missing']}"
        yield f"        Packet Late Arrival: {losses['late']:<3}Packet Skipped: {losses['skipped']}"
        # No codec is configured, so there is no voice score.
        yield "Voice Score Values:"
        yield "        Calculated Planning Impairment Factor (ICPIF): 0"
        yield "        Mean Opinion Score (MOS): 0"
        return
    over = found["over_threshold"]
    yield "Over Threshold:"
    yield f"        Number Of RTT Over Threshold: {over} ({100 * over // rtt['count'] if rtt['count'] else 0}%)"
    yield f"Packet Late Arrival: {losses['late']}"
    yield f"Out Of Sequence: {order}"
    there = f"Source to Destination: {losses['out_of_sequence_sd']}"
    yield f"        {there:<32}Destination to Source {losses['out_of_sequence_ds']}"
    yield f"        In both Directions: {both}"
    # The lines from here on are inferred.
    skipped = f"Packet Skipped: {losses['skipped']}"
    yield f"{skipped:<24}Packet Unprocessed: 0"
    yield f"Packet Loss: {losses['total']}"
    yield f"        Loss Period Length Min/Max: {losses['period_min']}/{losses['period_max']}"


SUMMARY_HEAD = (
    "IPSLAs Latest Operation Summary",
    "Codes: * active, ^ inactive, ~ pending",
    "",
    "ID           Type        Destination       Stats       Return      Last",
    "                                           (ms)        Code        Run ",
    "-----------------------------------------------------------------------",
)
_SIGNS = {"active": "*", "inactive": "^", "pending": "~"}


def show_summary(sla: IpSla, reports: Reports, now: datetime) -> str:
    """Return `show ip sla summary`."""
    lines = list(SUMMARY_HEAD)
    for number in sorted(sla.operations):
        operation, report = sla.operations[number], reports.get(str(number))
        if operation.kind is None:
            continue
        latest = None if report is None else report["latest"]
        known = latest is not None and latest["return_code"] != "unknown"
        rtt = latest["rtt_ms"] if known and latest is not None else None
        sign = _SIGNS[report["state"] if report else "pending"]
        code = RETURN_CODES[latest["return_code"]] if latest is not None else "Unknown"
        last = _elapsed_text(now, latest["start_ns"]) if known and latest is not None else "-"
        stats = "-" if rtt is None else f"RTT={rtt}"
        target = address_text(operation.target)
        lines.append(f"{sign + str(number):<13}{operation.kind:<12}{target:<16}  {stats:<12}{code:<11} {last}")
    return "".join(line + "\n" for line in lines)


def _elapsed_text(now: datetime, time_ns: int) -> str:
    gone = now - datetime.fromtimestamp(time_ns / 1e9, UTC)
    seconds = max(0, int(gone / timedelta(seconds=1)))
    for unit, size in (("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return f"{seconds} second{'' if seconds == 1 else 's'} ago"


def show_configuration(sla: IpSla, *, number: int | None) -> str:
    """Return `show ip sla configuration [N]`."""
    lines = ["IP SLAs Configuration:"]
    for key in sorted(sla.operations):
        operation = sla.operations[key]
        if operation.kind is None or number not in (None, key):
            continue
        lines += ["", *_configuration_lines(sla, operation)] if len(lines) > 1 else _configuration_lines(sla, operation)
    return "".join(line + "\n" for line in lines)


def _value_or_default(value: int | None, default: int) -> int:
    return default if value is None else value


def _configuration_lines(sla: IpSla, operation: Operation) -> list[str]:
    kind = operation.kind
    assert kind is not None
    schedule = sla.schedules.get(operation.number)
    # The line of the traffic class is from memory, not from an output.
    address = ("::" if operation.is_ipv6 else "0.0.0.0") if operation.source is None else address_text(operation.source)
    byte = "Traffic-Class parameter" if operation.is_ipv6 else "Type Of Service parameters"
    sizes = REQUEST_SIZES[kind]
    lines = [
        f"Entry Number: {operation.number}",
        f"Owner: {operation.owner or ''}",
        f"Tag: {operation.tag or ''}",
        f"Type of operation to perform: {kind}",
        f"Target address: {address_text(operation.target)}",
        f"Source address: {address}",
    ]
    if operation.is_udp:
        lines += [
            f"Target port: {operation.target_port}",
            f"Source port: {_value_or_default(operation.source_port, 0)}",
            f"Control Packets: {'enabled' if operation.control else 'disabled'}",
        ]
    if operation.is_jitter:
        lines += [
            f"Packet Interval (milliseconds): {_value_or_default(operation.interval_ms, DEFAULT_INTERVAL_MS)}",
            f"Number of packets: {_value_or_default(operation.packets, DEFAULT_PACKETS)}",
        ]
    if sizes is not None:
        lines.append(f"Request size (ARR data bytes): {_value_or_default(operation.request_data_size, sizes[1])}")
    lines += [
        f"Timeout (milliseconds): {_value_or_default(operation.timeout_ms, DEFAULT_TIMEOUT_MS)}",
        f"{byte}: 0x{_value_or_default(operation.tos, 0):X}",
        f"Frequency (seconds): {_value_or_default(operation.frequency_s, DEFAULT_FREQUENCY_S)}",
        "Verify data: No",
        f"Status of entry (SNMP RowStatus): {'notInService' if schedule is None else 'Active'}",
        f"Threshold (milliseconds): {_value_or_default(operation.threshold_ms, DEFAULT_THRESHOLD_MS)}",
        "Distribution Statistics:",
        f"Number of statistics hours kept: {_value_or_default(operation.hours, DEFAULT_HOURS)}",
        f"Number of statistics distributions buckets kept: {_value_or_default(operation.buckets, DEFAULT_BUCKETS)}",
        f"Statistic distribution interval (milliseconds): {_value_or_default(operation.bucket_ms, DEFAULT_BUCKET_MS)}",
    ]
    return lines


def show_responder(report: program_formats.ResponderReport | None) -> str:
    """Return `show ip sla responder`; `report` is None if the responder is off."""
    lines = [f"IP SLAs Responder is: {'Disabled' if report is None else 'Enabled'}"]
    if report is not None:
        lines = [
            "        General IP SLA Responder on Control port 1967",
            "General IP SLA Responder is: Enabled",
            f"Number of control message received: {report['control_messages'] + report['errors']} "
            f"Number of errors: {report['errors']} ",
            "Recent sources:",
            *(
                f"        {address_text(ip_address(each['address']))} [{time_text(each['time_ns'])}]"
                for each in report["recent"]
            ),
        ]
    return "".join(line + "\n" for line in lines)
