"""Counters of a cell's routers and hosts, from the cell's files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

from qoslab.analysis import raw
from qoslab.analysis.class_lines import Line, Lines, interfaces_with_lines
from qoslab.analysis.kernel_counters import kernel_rows
from qoslab.analysis.show_policy_rows import COMMAND, observed_class_rows
from qoslab.analysis.show_readings import instants, last_common_time_ns, reading_rows
from qoslab.analysis.tree_counters import tree_rows
from qoslab.errors import DamageError, QoslabError
from qoslab.ios.model.port_names import TCP, UDP
from qoslab.model.experiment import Experiment
from qoslab.model.framing import COUNTED_HEADER, extra_bytes
from qoslab.model.instants import COUNTER_INTERVAL_S, DURING, traffic_time
from qoslab.model.interface_selection import select_experiment_interfaces
from qoslab.model.steps import TRAFFIC
from qoslab.results import CellFiles, CellRecord

WHOLE_PACKET = 1600
"""Maximum mean packet size, in bytes, on a host's interface that counts packets in their form on the line."""
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
"""Errors raised by a file with an unexpected structure."""
STRAY_S = 600.0
"""Maximum time before and after a cell's traffic of time stamps that belong to it, in seconds. Graphs have a value for
each tenth of a second from the first to the last, so that a stamp of another year would take all memory.
"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class HostCount:
    """Counters of a host's NIC over the traffic time."""

    sent: int
    received: int
    sent_bytes: int

    @property
    def counts_line_frames(self) -> bool:
        """True if it counts packets in their form on the line; an interface with segmentation offload may count larger
        ones.
        """
        return self.sent_bytes <= WHOLE_PACKET * self.sent


class Latest(NamedTuple):
    """Last counters of a router."""

    time_ns: int
    """Nanoseconds since 1970."""
    every_s: float
    """Time between two readings, in seconds."""


def add_counters(
    files: CellFiles, record: CellRecord, experiment: Experiment, add: Callable[[str, raw.Row], None]
) -> tuple[list[str], dict[str, Latest]]:
    """Add the rows of the tables `classes`, `interfaces`, `queues` and `conversations`.

    Return messages for unreadable data, and the last counters of each router.
    """
    problems: list[str] = []
    last: dict[str, Latest] = {}
    origin_ns = 0 if record.traffic_start is None else ns(record.traffic_start)
    counted, lines = files.devices_with_counters(), lines_by_interface(experiment)
    names = _traffic_lookup(record, experiment)
    for device in counted:
        try:
            replies = list(files.counter_replies(device))
            _check(device, replies, origin_ns, experiment)
            last[device] = Latest(max(reply["time_ns"] for reply in replies), COUNTER_INTERVAL_S)
            for name, row in _counted_rows(device, replies, origin_ns, names):
                add(name, row)
            for name, row in kernel_rows(device, replies, origin_ns):
                add(name, row)
        except QoslabError as error:
            problems.append(error.message)
        except DAMAGE:
            problems.append(f"the counters of {device} are damaged")
    seconds = experiment.duration.seconds
    moments = {"before": -1.0, "during": DURING * seconds, "after": seconds + 1.0}
    for entry in record.observed:
        if entry.command.startswith(COMMAND) and entry.device not in counted:
            try:
                parsed = files.parsed_output(entry.device, entry.moment, entry.command)
            except QoslabError as error:
                problems.append(error.message)
                continue
            if entry.before is not None and entry.after is not None:
                times: raw.Row = instants(ns(entry.before), ns(entry.after), origin_ns)
            elif entry.moment in moments:
                times = {"time_s": moments[entry.moment]}
            else:
                continue
            try:
                measured = select_experiment_interfaces(parsed or {}, interfaces_with_lines(lines, entry.device))
                rows = list(observed_class_rows(entry.device, measured, 0.0))
            except DAMAGE:
                problems.append(f'the parsed output of "{entry.command}" of {entry.device} is damaged')
                continue
            for row in rows:
                add("classes", row | times)
    for device in files.devices_with_readings():
        try:
            readings, polled = list(files.readings(device)), record.polling.get(device)
            period = COUNTER_INTERVAL_S if polled is None else max(polled.every_s, COUNTER_INTERVAL_S)
            last[device] = Latest(last_common_time_ns(readings), period)
            for name, row in reading_rows(device, readings, origin_ns, lines, names):
                add(name, row)
        except QoslabError as error:
            problems.append(error.message)
        except DAMAGE:
            problems.append(f"the readings of {device} are damaged")
    return problems, last


def stale_counter_messages(last: Mapping[str, Latest], record: CellRecord, experiment: Experiment) -> Iterator[str]:
    """Return one sentence for each router without counters from the end of the traffic, since its values would be too
    low.

    The last counters are read when all flows are done. They may be older by the polling period.
    """
    over_ns = _last_end_ns(record, experiment)
    if over_ns is None:
        return
    for device, (last_ns, period) in last.items():
        if (early := (over_ns - last_ns) / 1e9) > period:
            yield (
                f"the last counters of {device} were taken {early:.1f} s before the end of the traffic, "
                f"expected at most {period:g} s"
            )


def _last_end_ns(record: CellRecord, experiment: Experiment) -> int | None:
    """Return the end time of the last flow, in nanoseconds since 1970; None if none ran.

    A flow that was stopped, or had no more to send, ended before its planned time.
    """
    arm = experiment.arm(record.arm)
    lengths = {flow.name: experiment.flow_duration(arm, flow).ns for flow in experiment.arm_flows(arm)}
    ends = [ns(flow.started) + lengths[flow.traffic] for flow in record.flows if flow.traffic in lengths]
    done = [ns(step.ended) for step in record.steps if step.name == TRAFFIC and step.ended is not None]
    return min([max(ends), *done]) if ends else None


def _check(device: str, replies: Sequence[Mapping[str, Any]], origin_ns: int, experiment: Experiment) -> None:
    """Raise `DamageError` if counters are missing, or belong to unknown nodes, interfaces or another time."""
    hint = "the file was changed or damaged"
    interfaces = {end.interface for link in experiment.topology.links for end in link.ends if end.node == device}
    if not interfaces:
        raise DamageError(f'found counters of "{device}", which is not in the topology', hint=hint)
    if not replies:
        raise DamageError(f"{device} reported no counters", hint=hint)
    latest = traffic_time(experiment, experiment.arms[0]).seconds + STRAY_S
    for reply in replies:
        if foreign := sorted({*reply["interfaces"], *reply.get("tc", ())} - interfaces):
            message = f'found counters of the interface "{foreign[0]}" of {device}, which is not in the topology'
            raise DamageError(message, hint=hint)
        time_s = (reply["time_ns"] - origin_ns) / 1e9
        # Without flows there is no start time to compare with.
        if origin_ns and not -STRAY_S <= time_s <= latest:
            message = f"the counters of {device}: found a reading at {time_s:g} s from the start of the traffic"
            raise DamageError(f"{message}, expected -{STRAY_S:g} to {latest:g} s", hint=hint)


def _counted_rows(
    device: str,
    replies: Sequence[Mapping[str, Any]],
    origin_ns: int,
    traffic_of: Callable[[Mapping[str, Any]], str | None],
) -> Iterator[tuple[str, raw.Row]]:
    """Yield tables and rows of a virtual router's counters."""
    tables: dict[str, Iterable[raw.Row]] = {
        "classes": chain(raw.class_rows(device, replies, origin_ns), tree_rows(device, replies, origin_ns)),
        "interfaces": raw.interface_rows(device, replies, origin_ns),
        "queues": raw.queue_rows(device, replies, origin_ns),
        "conversations": raw.conversation_rows(device, replies, origin_ns, traffic_of),
    }
    return ((name, row) for name, rows in tables.items() for row in rows)


def _traffic_lookup(record: CellRecord, experiment: Experiment) -> Callable[[Mapping[str, Any]], str | None]:
    """Return a function from an IP header to the traffic with its address and port; None for answers and
    other packets.
    """
    numbers: dict[str, int] = {"tcp": TCP, "udp": UDP}
    protocols = {flow.name: numbers[flow.protocol] for flow in experiment.arm_flows(experiment.arm(record.arm))}
    known: dict[tuple[object, ...], str] = {
        (protocols[flow.traffic], str(flow.destination), flow.port): flow.traffic
        for flow in record.flows
        if flow.traffic in protocols
    }

    def name(ip: Mapping[str, Any]) -> str | None:
        return known.get((ip.get("protocol"), ip.get("destination"), ip.get("destination_port")))

    return name


def host_nic_counters(files: CellFiles) -> dict[str, dict[str, HostCount]]:
    """Return the counters of hosts over the traffic time, by interface."""
    found = {}
    for host, text in files.interface_counters():
        counted = json.loads(text)
        before, after = counted["before"], counted["after"]
        found[host] = {
            name: HostCount(
                *(each[key] - before[name][key] for key in ("sent_packets", "received_packets", "sent_bytes"))
            )
            for name, each in after.items()
        }
    return found


def lines_by_interface(experiment: Experiment) -> Lines:
    """Return the lines at interfaces, by node and interface."""
    return {
        (end.node, end.interface): Line(float(link.rate.bps), extra_bytes(link.framing), COUNTED_HEADER[link.framing])
        for link in experiment.topology.links
        for end in link.ends
    }


def ns(moment: datetime) -> int:
    """Return exact nanoseconds since 1970."""
    gone = moment - _EPOCH
    return (gone.days * 86_400 + gone.seconds) * 10**9 + gone.microseconds * 1000
