"""Rates, queues and delays from successive counter readings of routers. Pure.

Bits are counted as by the router: layer 3 and its layer-2 header. The rates equal those of `analysis.series`, which
computes them for a whole cell; here each is available with its second reading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from qoslab.analysis.raw import class_rows, interface_rows
from qoslab.analysis.show_policy_rows import COMMAND, observed_class_rows
from qoslab.genie.policy_map_interface import parse_policy_map_interface
from qoslab.genie.queueing import parse_queue
from qoslab.model.drops import DROP_REASONS

MIN_INTERVAL_S = 0.5
"""Least distance of readings, in seconds; closer ones are skipped, since their rate would look like a peak."""
MAX_POINTS = 3600
"""Greatest number of stored points of a class or an interface: an hour."""
_INTERFACE = re.compile(r"show interfaces (\S+)")
_COUNTED = {way: re.compile(rf"^ *(\d+) packets {way}, (\d+) bytes", re.MULTILINE) for way in ("input", "output")}
_DROPS = re.compile(r"Total output drops: *(\d+)")


@dataclass(frozen=True)
class ClassKey:
    """Key of a class."""

    router: str
    interface: str
    direction: str
    policy: str
    name: str
    """Class name; `parent/child` if nested."""

    @property
    def title(self) -> str:
        """Return the display title."""
        return f"{self.attachment}, class {self.name}"

    @property
    def attachment(self) -> str:
        """Return the interface and direction of its policy."""
        return f"{self.router} {self.interface} {self.direction}, policy {self.policy}"


@dataclass(frozen=True)
class ClassPoint:
    """State of a class between two readings, and at the later one."""

    time_s: float
    """Time of the later reading, since the first of the cell."""
    offered_bps: float
    sent_bps: float | None
    dropped_bps: float | None
    queue_packets: int | None
    """Packets in the queue; None without a queue."""
    wait_ms: float | None
    """Time to send the content of the queue at the sending rate of the class (Little's law), in ms.

    This is about the wait of a packet that arrives now. None without a queue, or if nothing was sent.
    """
    bucket_bytes: int | None
    level_bytes: int | None
    """Level of a dynamic bucket."""
    offered_bytes: int
    dropped_bytes: int | None
    """Dropped bytes so far."""


@dataclass(frozen=True)
class InterfacePoint:
    """State of an interface between two readings, and at the later one."""

    time_s: float
    input_bps: float
    output_bps: float
    queue_packets: int | None
    drops: int | None
    """Output drops so far."""
    delay_ms: float | None
    """Mean queueing delay of the packets that left since the last reading; None if not counted, or if none left."""
    input_bytes: int
    output_bytes: int


InterfaceKey = tuple[str, str]
"""Router and interface."""


@dataclass
class CounterRates:
    """Rates of one cell. Readings must come in the order of their times."""

    classes: dict[ClassKey, list[ClassPoint]] = field(default_factory=dict)
    interfaces: dict[InterfaceKey, list[InterfacePoint]] = field(default_factory=dict)
    origin_ns: int | None = None
    """Time of the first reading, by the router's clock."""
    _before: dict[ClassKey | InterfaceKey, dict[str, Any]] = field(default_factory=dict)

    def add_counters(self, router: str, reply: Mapping[str, Any]) -> None:
        """Add a `counters` reply of a data plane, or a sample of a simulated router.

        Raise `LookupError`, `TypeError` or `ValueError` if it is invalid.
        """
        origin = self._set_origin(int(reply["time_ns"]))
        for row in class_rows(router, [reply], origin):
            self._add_class(row)
        for row in interface_rows(router, [reply], origin):
            self._add_interface(row)

    def add_reading(self, router: str, reading: Mapping[str, Any]) -> None:
        """Add the output of a show command, from a router with only a command line. Errors as above."""
        time_ns = (int(reading["before_ns"]) + int(reading["after_ns"])) // 2
        time_s = (time_ns - self._set_origin(time_ns)) / 1e9
        command, raw = str(reading["command"]), str(reading["raw"])
        if command.startswith(COMMAND):
            for row in observed_class_rows(router, parse_policy_map_interface(raw), time_s):
                self._add_class(row)
        elif match := _INTERFACE.fullmatch(command):
            row = {"device": router, "interface": match[1], "time_s": time_s, **_printed_counters(raw, match[1])}
            self._add_interface(row)

    def _set_origin(self, time_ns: int) -> int:
        if self.origin_ns is None:
            self.origin_ns = time_ns
        return self.origin_ns

    def _previous_reading(
        self, key: ClassKey | InterfaceKey, row: dict[str, Any], count: str
    ) -> tuple[dict[str, Any], float]:
        """Return the last reading and the seconds since; (nothing, 0) if there is none to compare with."""
        before = self._before.get(key)
        seconds = 0.0 if before is None else row["time_s"] - before["time_s"]
        if before is not None and seconds < MIN_INTERVAL_S:
            return {}, 0.0
        self._before[key] = row
        if before is None or row[count] is None or before[count] is None or row[count] < before[count]:
            # The first reading, or the policy was attached again.
            return {}, 0.0
        return before, seconds

    def _add_class(self, row: dict[str, Any]) -> None:
        key = ClassKey(*(str(row[name]) for name in ("device", "interface", "direction", "policy", "class")))
        row |= {"dropped": _dropped_bytes(row), "waiting": _queued_bytes(row)}
        before, seconds = self._previous_reading(key, row, "bytes")
        if not before:
            return

        def rate(names: tuple[str, ...]) -> float | None:
            """Return the rate of the first count minus the others."""
            values = [(row[name], before[name]) for name in names]
            if any(None in pair for pair in values):
                return None
            (now, then), *others = values
            return float(now - then - sum(each - past for each, past in others)) * 8 / seconds

        sent = rate(("bytes", "dropped", "waiting"))
        depth = row.get("queue_depth_packets")
        wait = None if depth is None or row["waiting"] is None or not sent else row["waiting"] * 8000 / sent
        point = ClassPoint(
            time_s=row["time_s"],
            offered_bps=rate(("bytes",)) or 0.0,
            sent_bps=sent,
            dropped_bps=rate(("dropped",)),
            queue_packets=depth,
            wait_ms=wait,
            bucket_bytes=row.get("police_dynamic_bucket_bytes"),
            level_bytes=row.get("police_dynamic_level_bytes"),
            offered_bytes=row["bytes"],
            dropped_bytes=row["dropped"],
        )
        _check_numbers(point.queue_packets, point.bucket_bytes, point.level_bytes)
        points = self.classes.setdefault(key, [])
        points.append(point)
        del points[:-MAX_POINTS]

    def _add_interface(self, row: dict[str, Any]) -> None:
        key = (str(row["device"]), str(row["interface"]))
        before, seconds = self._previous_reading(key, row, "output_bytes")
        if not before or row["input_bytes"] is None or before["input_bytes"] is None:
            return
        point = InterfacePoint(
            time_s=row["time_s"],
            input_bps=max(0, row["input_bytes"] - before["input_bytes"]) * 8 / seconds,
            output_bps=(row["output_bytes"] - before["output_bytes"]) * 8 / seconds,
            queue_packets=row.get("queue_depth"),
            drops=row.get("output_drops"),
            delay_ms=_mean_delay_ms(before, row),
            input_bytes=row["input_bytes"],
            output_bytes=row["output_bytes"],
        )
        _check_numbers(point.queue_packets, point.drops)
        points = self.interfaces.setdefault(key, [])
        points.append(point)
        del points[:-MAX_POINTS]


def _check_numbers(*values: object) -> None:
    """Raise `TypeError` if a value for the graphs is not a number; the other values are computed."""
    for value in values:
        if value is not None and not isinstance(value, int | float):
            raise TypeError(value)


def _dropped_bytes(row: Mapping[str, Any]) -> int | None:
    """Return the bytes dropped for any reason; None if the reading lacks a counter."""
    counts = [row.get(f"drops_{reason}_bytes") for reason in DROP_REASONS]
    return None if None in counts else sum(int(each or 0) for each in counts)


def _queued_bytes(row: Mapping[str, Any]) -> int | None:
    """Return the bytes in the queue of a class, 0 without a queue; None if not in the reading."""
    packets = row.get("queue_depth_packets")
    if packets == 0 or (packets is None and row.get("queue_discipline") is None):
        return 0
    found: int | None = row.get("queue_depth_bytes")
    return found


def _mean_delay_ms(before: Mapping[str, Any], row: Mapping[str, Any]) -> float | None:
    """Return the mean delay between two readings, from their packet counts and means since the start."""
    names = ("queueing_delay_packets", "queueing_delay_mean_ns")
    counts = [each.get(name) for each in (before, row) for name in names]
    if None in counts:
        return None
    then, mean_then, now, mean_now = map(float, counts)  # type: ignore[arg-type]
    return None if now <= then else max(0.0, (now * mean_now - then * mean_then) / (now - then)) / 1e6


def _printed_counters(raw: str, interface: str) -> dict[str, Any]:
    """Return the counters of an interface in `show interfaces`; None for a counter that is not shown."""
    found: dict[str, Any] = {}
    for way, pattern in _COUNTED.items():
        match = pattern.search(raw)
        found[f"{way}_bytes"] = None if match is None else int(match[2])
    drops = _DROPS.search(raw)
    found["output_drops"] = None if drops is None else int(drops[1])
    found["queue_depth"] = parse_queue(raw, interface).get(interface, {}).get("output_queue", {}).get("size")
    return found
