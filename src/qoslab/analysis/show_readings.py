"""Rows of classes, interfaces, queues and conversations from show commands during the traffic. Pure.

Values missing from the output are null. `time_s` is the middle between command and answer, and `time_error_s` half of
the time between them. Counters of 32 bits that wrapped within a run are continued.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from qoslab.analysis.class_lines import Lines, interfaces_with_lines
from qoslab.analysis.raw import Row
from qoslab.analysis.show_policy_rows import COMMAND, observed_class_rows
from qoslab.genie.queueing import parse_queue
from qoslab.model.interface_selection import select_experiment_interfaces

_INTERFACE = re.compile(r"show interfaces (\S+)")
_QUEUE = re.compile(r"show queue \S+")
_STATISTICS = re.compile(r"show mls qos interface \S+ statistics")
_ASIC = re.compile(r"show platform port-asic stats drop \S+")
WORD = 1 << 32
"""Modulus of the counters of many releases."""
SLACK_BYTES = 10_000
"""Tolerance in bytes above the capacity of a line between two readings, since their instants are not known exactly."""
_STRATEGIES = {
    "fifo": "fifo",
    "weighted fair": "weighted_fair",
    "class-based queueing": "class_based",
    "priority-list": "priority",
    "custom-list": "custom",
}


def instants(before_ns: int, after_ns: int, origin_ns: int) -> Row:
    """Return the columns `time_s` and `time_error_s` for the times of the command and the answer."""
    return {"time_s": ((before_ns + after_ns) / 2 - origin_ns) / 1e9, "time_error_s": (after_ns - before_ns) / 2e9}


def reading_rows(
    device: str,
    readings: Iterable[Mapping[str, Any]],
    origin_ns: int,
    lines: Lines,
    traffic_of: Callable[[Mapping[str, Any]], str | None],
) -> Iterator[tuple[str, Row]]:
    """Yield table names and rows of all readings of a router, in order.

    `traffic_of` returns the traffic of an IP header.
    """
    readings = list(readings)
    detailed = {
        _printed_interface(each)
        for each in readings
        if _STATISTICS.fullmatch(each["command"]) and "dropped" in _outputs(each)
    }
    interfaces: list[Row] = []
    for each in readings:
        command, parsed = each["command"], each["parsed"]
        if "unparsed" in parsed:
            continue
        own = {"device": device, **instants(each["before_ns"], each["after_ns"], origin_ns)}
        if command.startswith(COMMAND):
            measured = select_experiment_interfaces(parsed, interfaces_with_lines(lines, device))
            yield from (("classes", row | own) for row in observed_class_rows(device, measured, 0.0))
        elif match := _INTERFACE.fullmatch(command):
            interfaces += [
                own | {"interface": name} | _interface(entry, parse_queue(each["raw"], name).get(name, {}))
                for name, entry in parsed.items()
                if name == match[1]
            ]
        elif _QUEUE.fullmatch(command):
            yield from (("conversations", own | row) for row in _conversations(parsed, traffic_of))
        elif _STATISTICS.fullmatch(command):
            yield from (("queues", own | row) for row in _statistics(parsed))
        elif _ASIC.fullmatch(command) and _printed_interface(each) not in detailed:
            yield from (("queues", own | row) for row in _asic(parsed))
    yield from (("interfaces", row) for row in unwrap_counters(interfaces, lines))


def last_common_time_ns(readings: Iterable[Mapping[str, Any]]) -> int:
    """Return the oldest of the last reading times of all commands for counters, in nanoseconds since 1970.

    These commands are for classes, for each interface, and for each port's queues. Return 0 if one of them was never
    read.
    """
    last: dict[str, int] = {}
    for each in readings:
        command = each["command"]
        if command.startswith(COMMAND) or _INTERFACE.fullmatch(command) or _STATISTICS.fullmatch(command):
            last.setdefault(command, 0)
            if "unparsed" not in each["parsed"]:
                last[command] = max(last[command], (each["before_ns"] + each["after_ns"]) // 2)
    return min(last.values(), default=0)


def _printed_interface(reading: Mapping[str, Any]) -> str:
    """Return the interface in its printed form."""
    return next(iter(reading["parsed"].get("interface", {})), "")


def _outputs(reading: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (
        reading["parsed"].get("interface", {}).get(_printed_interface(reading), {}).get("output_queues", {})
    )
    return found


def _interface(entry: Mapping[str, Any], queue: Mapping[str, Any]) -> Row:
    """Return the values of `show interfaces`: in Genie's form, and with queues from our own parser."""
    counters, queues = entry.get("counters", {}), entry.get("queues", {})
    rate = counters.get("rate", {})
    strategy = str(queue.get("strategy", queues.get("queue_strategy", ""))).lower()
    conversations = queue.get("conversations", {})
    return {
        "enabled": entry.get("enabled"),
        "load_interval_s": rate.get("load_interval"),
        "input_packets": counters.get("in_pkts"),
        "input_bytes": counters.get("in_octets"),
        "input_rate_bps": rate.get("in_rate"),
        "input_rate_pps": rate.get("in_rate_pkts"),
        "input_drops": queues.get("input_queue_drops"),
        "output_packets": counters.get("out_pkts"),
        "output_bytes": counters.get("out_octets"),
        "output_rate_bps": rate.get("out_rate"),
        "output_rate_pps": rate.get("out_rate_pkts"),
        "output_drops": queues.get("total_output_drop"),
        "queue_strategy": next((name for word, name in _STRATEGIES.items() if strategy.startswith(word)), None),
        "queue_depth": queues.get("output_queue_size"),
        "queue_limit": queues.get("output_queue_max"),
        "queue_drops": queue.get("output_queue", {}).get("drops"),
        "queue_threshold": queue.get("output_queue", {}).get("threshold"),
        "queue_conversations": conversations.get("active"),
        "queue_max_active_conversations": conversations.get("max_active"),
        "queue_max_conversations": conversations.get("max_total"),
        "queue_available_bandwidth_kbps": queue.get("available_bandwidth_kbps"),
    }


def _conversations(parsed: Mapping[str, Any], traffic_of: Callable[[Mapping[str, Any]], str | None]) -> Iterator[Row]:
    """Return the values of `show queue X`: conversations with packets, each by its next packet."""
    for interface, entry in parsed.items():
        for number, each in entry.get("conversation", {}).items():
            yield {
                "interface": interface,
                "conversation": int(number),
                "traffic": traffic_of(each),
                "depth_packets": each["depth"],
                "weight": each["weight"],
                "drops": each["total_drops"],
            }


def _statistics(parsed: Mapping[str, Any]) -> Iterator[Row]:
    """Return the values of `show mls qos interface X statistics`, in which queues count from 0 and
    thresholds from 1.
    """
    for interface, entry in parsed.get("interface", {}).items():
        counted = entry.get("output_queues", {})
        places = {
            (int(queue), int(threshold))
            for each in counted.values()
            for queue, one in each["queue"].items()
            for threshold in one["threshold"]
        }
        for queue, threshold in sorted(places):
            row: Row = {"interface": interface, "queue": queue + 1, "threshold": threshold}
            for name in ("enqueued", "dropped"):
                one = counted.get(name, {}).get("queue", {}).get(str(queue), {})
                row[name] = one.get("threshold", {}).get(str(threshold))
            yield row


def _asic(parsed: Mapping[str, Any]) -> Iterator[Row]:
    """Return the drops of `show platform port-asic stats drop X`, in which queues and weights count from 0."""
    for interface, entry in parsed.get("interface", {}).items():
        for queue, one in entry["queue"].items():
            for weight, frames in one["weight"].items():
                place = {"interface": interface, "queue": int(queue) + 1, "threshold": int(weight) + 1}
                yield place | {"dropped": frames}


def unwrap_counters(rows: Iterable[Row], lines: Lines) -> Iterator[Row]:
    """Return the rows of interfaces with counters that continue after 32-bit counters wrapped.

    This applies only if the line can have carried the difference since the previous reading; otherwise the counters
    were cleared.
    """
    before: dict[tuple[object, object], tuple[Row, dict[str, int]]] = {}
    for row in rows:
        key = (row["device"], row["interface"])
        last, added = before.get(key, (row, {}))
        line = lines.get((str(row["device"]), str(row["interface"])))
        seconds = _number(row["time_s"]) - _number(last["time_s"])
        most = 0.0 if line is None else line.rate_bps / 8 * seconds + SLACK_BYTES
        for name in ("input_packets", "input_bytes", "output_packets", "output_bytes"):
            then, now = last[name], row[name]
            if isinstance(then, int) and isinstance(now, int) and now < then < WORD and now + WORD - then <= most:
                added[name] = added.get(name, 0) + WORD
        before[key] = (row, added)
        yield row | {name: _require_integer(row[name]) + more for name, more in added.items() if row[name] is not None}


def _number(value: object) -> float:
    assert isinstance(value, float | int)
    return float(value)


def _require_integer(value: object) -> int:
    assert isinstance(value, int)
    return value
