"""Counters of the kernel's traffic control as plain values. A value is None where the kernel does not count it.

Bytes of qdiscs and classes are those of the device on output (on Ethernet with its header), changed by a size table if
the qdisc has one; bytes of filters on input are IP packets.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qoslab.tc import rtnetlink_dump
from qoslab.tc.device_state import ACTIONS_ATTRIBUTE, ROOT, handle_of
from qoslab.tc.router_plan import ClassPlan, InterfacePlan
from qoslab.tc.rtnetlink_dump import Attributes, Message, attributes_of

BASIC, QUEUE, APP, PACKETS_64 = 1, 3, 4, 8
"""TCA_STATS_*."""
ACT_KIND, ACT_STATS = 1, 4
"""TCA_ACT_*."""


@dataclass(frozen=True, slots=True)
class TinCounters:
    """A tin of CAKE (tc-cake(8)), in the order of the kernel."""

    threshold_bps: int
    target_us: int
    interval_us: int
    peak_delay_us: int
    average_delay_us: int
    base_delay_us: int
    sent_packets: int
    sent_bytes: int
    dropped_packets: int
    ecn_marks: int
    acks_dropped_packets: int
    backlog_bytes: int
    sparse_flows: int
    bulk_flows: int
    unresponsive_flows: int


@dataclass(frozen=True, slots=True)
class QdiscCounters:
    """A qdisc or a class of HTB."""

    kind: str
    handle: str
    parent: str
    packets: int
    """Sent packets; of a qdisc of classes those of all classes."""
    bytes: int
    drops: int | None
    """All packets dropped: by a full queue and by the discipline."""
    overlimits: int | None
    requeues: int | None
    backlog_packets: int | None
    backlog_bytes: int | None
    ecn_marks: int | None = None
    early_drops: int | None = None
    """Drops before the queue is full: by the mean of red, random or forced, and by the probability of PIE."""
    limit_drops: int | None = None
    """Drops of a full queue."""
    delay_us: int | None = None
    """Latest sojourn time (CoDel), or the estimate (PIE)."""
    dropping: bool | None = None
    """CoDel drops or marks at present."""
    flows: int | None = None
    """Flows with packets (FQ-CoDel)."""
    memory_bytes: int | None = None
    borrowed: int | None = None
    """Packets of a class of HTB above its own rate."""
    tins: tuple[TinCounters, ...] = ()


@dataclass(frozen=True, slots=True)
class PoliceCounters:
    """A policer of a class; of a two-rate policer the PIR is first."""

    packets: int
    bytes: int
    exceeded_packets: int
    dropped_packets: int


@dataclass(frozen=True, slots=True)
class ClassCounters:
    """A class of a policy-map."""

    path: tuple[str, ...]
    policy: str
    direction: str
    packets: int
    bytes: int
    police: tuple[PoliceCounters, ...]
    leaf: str | None
    """HTB class of its queue; classes of one priority level, or without a queue of their own, share it."""
    queue: QdiscCounters | None
    """The queue itself; None if the class has none."""


@dataclass(frozen=True, slots=True)
class InterfaceCounters:
    """All counters of an interface."""

    interface: str
    device: str
    qdiscs: tuple[QdiscCounters, ...]
    """Qdiscs, then classes of HTB."""
    classes: tuple[ClassCounters, ...]


def read_device(device: str) -> tuple[QdiscCounters, ...]:
    """Return the counters of the qdiscs and HTB classes of a device in this network namespace. Raise DeviceError."""
    qdiscs = [
        each for each in rtnetlink_dump.dump(rtnetlink_dump.GET_QDISC, device) if each.kind not in ("clsact", "ingress")
    ]
    classes = [each for each in rtnetlink_dump.dump(rtnetlink_dump.GET_CLASS, device) if each.kind == "htb"]
    return tuple(qdisc_counters(each) for each in (*qdiscs, *classes))


def read(plan: InterfacePlan) -> InterfaceCounters:
    """Return the counters of an interface with its classes. Raise DeviceError if the device is gone."""
    device = plan.port.device
    found = read_device(device)
    queues = {each.parent: each for each in found if each.kind != "htb"}
    chains: _Chains = {}
    for hook in sorted({each.hook for each in plan.classes}):
        for message in rtnetlink_dump.filters(device, hook):
            chains.setdefault((hook, message.chain), []).append(_actions(message))
    classes = []
    for each in plan.classes:
        below = [
            one
            for one in plan.classes
            if one.hook == each.hook and one.path[: len(each.path)] == each.path and one.chain is not None
        ]
        queue = None if each.leaf is None else queues.get(each.leaf)
        classes.append(_class(each, below, chains, queue))
    return InterfaceCounters(plan.port.interface, device, found, tuple(classes))


@dataclass(frozen=True, slots=True)
class _Action:
    kind: str
    packets: int
    bytes: int
    drops: int
    overlimits: int


_Chains = dict[tuple[str, int | None], list[list[_Action]]]


def _actions(message: Message) -> list[_Action]:
    given = attributes_of(message.options)
    actions = attributes_of(given.get(ACTIONS_ATTRIBUTE.get(message.kind, 0), b""))
    found = []
    for number in sorted(actions):
        action = attributes_of(actions[number])
        stats = attributes_of(action.get(ACT_STATS, b""))
        packets, size = _basic(stats)
        _, _, drops, _, overlimits = struct.unpack_from("=IIIII", stats[QUEUE])
        found.append(_Action(rtnetlink_dump.text_of(action[ACT_KIND]), packets, size, drops, overlimits))
    return found


def _class(plan: ClassPlan, below: Sequence[ClassPlan], chains: _Chains, queue: QdiscCounters | None) -> ClassCounters:
    """Return the counters of a class; `below` are it and the classes below it that count packets."""
    counting = [actions[0] for one in below for actions in chains.get((one.hook, one.chain), ()) if actions]
    policing = chains.get((plan.hook, plan.police_chain), ()) if plan.police_chain is not None else ()
    police = [each for actions in policing for each in actions if each.kind == "police"]
    return ClassCounters(
        plan.path,
        plan.policy,
        "input" if plan.hook == "ingress" else "output",
        sum(each.packets for each in counting),
        sum(each.bytes for each in counting),
        tuple(PoliceCounters(each.packets, each.bytes, each.overlimits, each.drops) for each in police),
        plan.leaf,
        queue,
    )


def _basic(stats: Attributes) -> tuple[int, int]:
    """Return packets and bytes."""
    size, packets = struct.unpack_from("=QI", stats[BASIC])
    return (struct.unpack_from("=Q", stats[PACKETS_64])[0] if PACKETS_64 in stats else packets), size


def qdisc_counters(message: Message) -> QdiscCounters:
    """Return the counters of a qdisc or class in a message of the kernel."""
    stats = attributes_of(message.attributes.get(rtnetlink_dump.STATS2, b""))
    packets, size = _basic(stats) if BASIC in stats else (0, 0)
    queue = struct.unpack_from("=IIIII", stats[QUEUE]) if QUEUE in stats else (None,) * 5
    backlog_packets, backlog_bytes, drops, requeues, overlimits = queue
    own = READERS.get(message.kind)
    data = stats.get(APP, b"")
    more = own(data) if own is not None and data else {}
    return QdiscCounters(
        message.kind,
        handle_of(message.handle),
        "root" if message.parent == ROOT else handle_of(message.parent),
        packets,
        size,
        drops,
        overlimits,
        requeues,
        backlog_packets,
        backlog_bytes,
        **more,  # type: ignore[arg-type]
    )


More = dict[str, object]


def _red(data: bytes) -> More:
    early, full, other, marked = struct.unpack_from("=IIII", data)
    return {"early_drops": early, "limit_drops": full + other, "ecn_marks": marked}


def _codel(data: bytes) -> More:
    _, _, _, delay, _, full, marks, dropping = struct.unpack_from("=IIIIiIII", data)
    return {"delay_us": delay, "limit_drops": full, "ecn_marks": marks, "dropping": bool(dropping)}


def _fq_codel(data: bytes) -> More:
    """Return the values of the qdisc; a class of it (type 1) has others."""
    if struct.unpack_from("=I", data)[0] != 0:
        return {}
    _, full, marks, _, new, old, _, memory = struct.unpack_from("=IIIIIIII", data, 4)
    return {"limit_drops": full, "ecn_marks": marks, "flows": new + old, "memory_bytes": memory}


def _pie(data: bytes) -> More:
    _, delay, _, _, _, dropped, full, _, marks = struct.unpack_from("=QIIIIIIII", data)
    # The kernel counts drops of a full queue among all drops.
    return {"delay_us": delay, "early_drops": dropped - full, "limit_drops": full, "ecn_marks": marks}


def _htb(data: bytes) -> More:
    return {"borrowed": struct.unpack_from("=II", data)[1]}


TINS, MEMORY_USED = 10, 4
"""TCA_CAKE_STATS_*."""
TIN: dict[str, int] = {
    "sent_packets": 2,
    "sent_bytes": 3,
    "dropped_packets": 4,
    "acks_dropped_packets": 6,
    "ecn_marks": 8,
    "backlog_bytes": 11,
    "threshold_bps": 12,
    "target_us": 13,
    "interval_us": 14,
    "peak_delay_us": 18,
    "average_delay_us": 19,
    "base_delay_us": 20,
    "sparse_flows": 21,
    "bulk_flows": 22,
    "unresponsive_flows": 23,
}
"""TCA_CAKE_TIN_STATS_*; the threshold is in bytes per second."""


def _cake(data: bytes) -> More:
    """Return the values of the qdisc; a class of it has no tins."""
    given = attributes_of(data)
    if TINS not in given:
        return {}
    tins = attributes_of(given[TINS])
    made = []
    for number in sorted(tins):
        values = attributes_of(tins[number])
        found = {name: int.from_bytes(values.get(key, b""), sys.byteorder) for name, key in TIN.items()}
        found["threshold_bps"] *= 8
        made.append(TinCounters(**found))
    marks = sum(tin.ecn_marks for tin in made)
    return {"tins": tuple(made), "ecn_marks": marks, "memory_bytes": int.from_bytes(given[MEMORY_USED], sys.byteorder)}


READERS: dict[str, Callable[[bytes], More]] = {
    "red": _red,
    "codel": _codel,
    "fq_codel": _fq_codel,
    "pie": _pie,
    "htb": _htb,
    "cake": _cake,
}
"""Readers of the counters that a kind of qdisc has beyond the common ones."""
